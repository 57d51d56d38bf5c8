"""The messages of DCGM's table of errors (dcgmlib/dcgm_errors.h), and the faults that they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dgxcheck.cli import main
from dgxcheck.readers.dcgm.diag import fault_of, read_diag

IDS = "| GPU Device IDs Detected   | {:46} |"
BANDWIDTH = (
    "Bandwidth of GPU 1 in direction Host to Device of 12.90 did not exceed minimum required bandwidth of 20.00."
)


@pytest.mark.parametrize(("message", "fault"), [
    (BANDWIDTH, "link-tested"),
    ("Latency type h2d of GPU 1 value 22.00 exceeded maximum allowed latency of 10.00.", "link-tested"),
    ("GPU 1 only achieved a memory bandwidth of 3.00 GB/s, failing to meet 4.00 GB/s for test 1", "test-failed"),
    ("Only 17 NvLinks are up out of the expected 18", "nvlink-reported"),
    ("Detected fatal errors on NvSwitch 2 link 4", "nvswitch-fatal"),
    ("Detected fatal NvSwitch SXID 20034", "nvswitch-fatal"),
    ("Detected nonfatal errors on NvSwitch 2 link 4", "nvswitch"),
    ("Found driver on the denylist: nouveau", "nouveau"),
    ("A pending retired page has been detected in GPU 1.", "retirement-pending"),
    ("64 or more retired pages have been detected in GPU 1.", "pages-exhausted"),
    ("Detected 3 dbe_volatile for GPU 1", "ecc-uncorrected"),
    ("Detected 3 pcie_replay_counter for GPU 1", "pcie-replays"),
])  # fmt: skip
def test_faults_of_the_table(message: str, fault: str) -> None:
    assert fault_of(message).word == fault


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
