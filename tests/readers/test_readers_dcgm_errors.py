"""The messages of DCGM's table of errors (dcgmlib/dcgm_errors.h), and the faults that they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text

from dgxcheck.cli import main
from dgxcheck.readers.dcgm.diag import read_diag
from dgxcheck.readers.dcgm.messages import fault_of

IDS = "| GPU Device IDs Detected   | {:46} |"
BANDWIDTH = (
    "Bandwidth of GPU 1 in direction Host to Device of 12.90 did not exceed minimum required bandwidth of 20.00."
)


@pytest.mark.parametrize(("message", "fault"), [
    (BANDWIDTH, "link-tested"),
    ("Latency type h2d of GPU 1 value 22.00 exceeded maximum allowed latency of 10.00.", "link-tested"),
    ("GPU 1 only achieved a memory bandwidth of 3.00 GB/s, failing to meet 4.00 GB/s for test 1", "slow"),
    ("Only 17 NvLinks are up out of the expected 18", "nvlink-reported"),
    ("Detected fatal errors on NvSwitch 2 link 4", "nvswitch-fatal"),
    ("Detected fatal NvSwitch SXID 20034", "nvswitch-fatal"),
    ("Detected nonfatal errors on NvSwitch 2 link 4", "nvswitch-watched"),
    ("Found driver on the denylist: nouveau", "nouveau"),
    ("A pending retired page has been detected in GPU 1.", "retirement-pending"),
    ("64 or more retired pages have been detected in GPU 1.", "pages-exhausted"),
    ("Detected 3 dbe_volatile for GPU 1", "ecc-uncorrected"),
    ("Detected 3 pcie_replay_counter for GPU 1", "pcie-replays"),
    ("Detected XID 79 for GPU 1", "gpu-lost"),
    ("Detected XID 13 for GPU 1", "xid-application"),
    ("GPU 1 Detected XID error: 95", "ecc-uncorrected"),
    ("Detected XID 160 for GPU 1", "repair-pending"),  # its response in remedies.tsv
    ("GPU 1 has fallen off the bus", "gpu-lost"),
    ("GPU had a contained error.", "xid-contained"),
    ("Found 2 faulty memory elements on GPU 1", "memory-faulty"),
    ("Detected a miscompare failure in the L1 cache.", "memory-faulty"),
    ("GPU 1 was unsuccessfully written to by GPU 2 in a peer-to-peer test: copy", "p2p-tested"),
    ("GPU 1 was unsuccessfully written to in a peer-to-peer test: copy", "p2p-tested"),
    ("GPU 1 unsuccessfully wrote data in a peer-to-peer test: copy", "p2p-tested"),
    ("SRAM Threshold Count exceeded on GPU 1: 4", "sram-exceeded"),
    ("GPU 1 exceeded uncorrectable row remap limit with 9 remapped rows", "rows-exhausted"),
    ("ECC memory for GPU 1 is in a pending state.", "ecc-pending"),
    ("Clocks event for GPU 1 because of clocks event starting 3.0 seconds into the test.", "hardware-slowdown"),
    ("Clocks are being throttled for GPU 1 because of clock throttling starting 3.0 seconds into the test."
     " clocks_throttle_reason_hw_power_brake_slowdown: the power brake assertion has triggered.", "power-brake"),
    ("Clocks are being throttled for GPU 1 because of clock throttling starting 3.0 seconds into the test."
     " clocks_throttle_reason_hw_slowdown: either the temperature is too high or there is a power supply problem"
     " (the power brake assertion has been tripped).", "hardware-slowdown"),
    ("Max power of 9.0 did not reach desired power minimum of 20.0 for GPU 1", "slow"),
    ("GPU 1: Fabric State is Not Started (1).", "fabric-failed"),
    ("NvSwitch physical ID 1's NvLink port 2 is currently down.", "fabric-manager-error"),
    ("Detected symbol BER 1.00e-05 exceeds minimum threshold on GPU 1's NVLink.", "nvlink-errors"),
    ("GPU 1 requires a reset to recover from a fault. Recovery action: 1 (GPU_RESET).", "reset-required"),
    ("GPU 1 failed to create a CUDA context: system not yet initialized", "fabric-manager-down"),
    ("Error using CUDA API cudaMalloc", "test-failed"),
])  # fmt: skip
def test_faults_of_the_table(message: str, fault: str) -> None:
    assert fault_of(message).word == fault


def _steps(message: str, tmp_path: Path) -> tuple[str, list[str]]:
    rows = [f"| {'Memory':25} | {'Fail - GPU: 1':46} |",
            *(f"| {'' if at else 'Error':25} | {message[at:at + 46]:46} |" for at in range(0, len(message), 46))]
    _, found = of_text("\n".join([IDS.format("2330,2330"), *rows, ""]), tmp_path)
    (cause,) = found["causes"]
    return cause["id"], [action["action"] for action in cause["actions"]]


def test_a_failed_test_alone_is_confirmed_before_anything_is_disturbed(tmp_path: Path) -> None:
    """By DCGM's own advice: its logs and those of the system first, then a reset."""
    component, steps = _steps("Error using CUDA API cudaMalloc", tmp_path)
    assert component.startswith("gpu/")
    assert steps[:4] == ["inspect", "drain", "stop-jobs", "reset-gpu"]


def test_a_power_brake_is_of_the_power_supply(tmp_path: Path) -> None:
    component, steps = _steps("clocks_event_reason_hw_power_brake_slowdown: the power brake has triggered", tmp_path)
    assert component.endswith("/power supply")
    assert steps[0] == "inspect"


def test_what_holds_a_slow_gpu_down_is_read_while_the_test_runs(tmp_path: Path) -> None:
    rows = [IDS.format("2330,2330"), f"| {'Targeted Power':25} | {'Fail - GPU: 1':46} |",
            f"| {'Warning':25} | {'Max power of 9.0 did not reach desired power':46} |", ""]  # fmt: skip
    _, found = of_text("\n".join(rows), tmp_path)
    assert "PERFORMANCE,POWER,CLOCK" in str([each["remedy"] for each in found["findings"]])


def test_a_setting_that_a_test_fails_for_can_wait(tmp_path: Path) -> None:
    rows = [IDS.format("2330,2330"), f"| {'Persistence Mode':25} | {'Fail - GPU: 1':46} |",
            f"| {'Warning':25} | {'Persistence mode for GPU 1 is disabled.':46} |", ""]  # fmt: skip
    (cause,) = of_text("\n".join(rows), tmp_path)[1]["causes"]
    assert {action["urgency"] for action in cause["actions"]} == {"next-maintenance"}


def test_memory_that_does_not_hold_what_was_written_is_diagnosed(tmp_path: Path) -> None:
    component, steps = _steps("Found 2 faulty memory elements on GPU 1", tmp_path)
    assert component.endswith("/memory")
    assert steps[:2] == ["drain", "field-diagnostic"]


def test_an_error_of_an_nvswitch_is_not_of_the_gpu_whose_test_found_it(tmp_path: Path) -> None:
    assert _steps("Detected fatal NvSwitch SXID 20034", tmp_path)[0] == "host/host/NVSwitches"


@pytest.mark.parametrize(("ids", "gpus"), [("2330,2330", 2), ("2330,1db1", 0), ("N/A", 0)])
def test_device_ids_are_those_of_gpus_that_are_all_alike(ids: str, gpus: int) -> None:
    rows = (IDS.format(ids), f"| {'PCIe':25} | {'Pass - All':46} |")
    facts = read_diag(rows)[0].facts
    found = [fact for key, fact in facts.items() if key.startswith("nvml nvmlDeviceGetPciInfo ")]
    assert found == [{"pciDeviceId": 0x233010DE}] * gpus


def test_a_slow_module_is_not_to_be_reseated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"GPU 1 {BANDWIDTH}"
    rows = [f"| {'PCIe':25} | {'Fail - GPU: 1':46} |",
            *(f"| {'' if at else 'Warning':25} | {text[at:at + 46]:46} |" for at in range(0, len(text), 46))]
    path = tmp_path / "diag.txt"
    path.write_text("\n".join([IDS.format("2330,2330"), *rows, ""]))
    main(["health", "--from", str(path)])
    shown = capsys.readouterr().out
    assert "inspect: compare LnkSta" in shown
    assert "reseat" not in shown
