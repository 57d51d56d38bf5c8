"""What health --from says of one text alone: JSON that was cut, a driver out of reach, NVLinks with unnamed ends."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from dgxcheck.assessment import Request, assess
from dgxcheck.assessment.importing.texts import lines
from dgxcheck.assessment.machine import open_source
from dgxcheck.cli import main
from dgxcheck.components.component import FABRIC_MANAGER
from dgxcheck.facts.missing import BadInput

CUT = """{
  "DCGM GPU Diagnostic": {
    "test_categories": [
      {
        "category": "Integration",
        "tests": [
          {"name": "PCIe", "results": [{"status": "FAIL", "gpu_ids": "3", "warnings": ["GPU 3 is slow"]}]},
          {"name": "Memory", "results": [{"gpu_ids": "0", "sta
"""


def test_a_diagnosis_that_was_cut_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "diag.json"
    file.write_text(CUT)
    assert main(["health", "--from", str(file), "--fail-on", "fail"]) == 2
    assert "GPU 3 is slow" in capsys.readouterr().out


def test_a_damaged_recording_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "box.json"
    file.write_text(CUT.replace("{", '{\n"schema": "dgxcheck/recording/1",', 1))
    with pytest.raises(BadInput, match="damaged recording"):
        open_source(str(file))


def test_an_output_in_a_string_of_json_reads_as_a_plain_one() -> None:
    """What Ansible and agents return; a message of ``dmesg -J`` stays one, whoever wrote a line into it."""
    held = json.dumps({"host": "n1", "rc": 0, "stdout": "GPU 0: NVIDIA H200\n\t Link 0: <inactive>\n", "stderr": "a"})
    assert lines(held.encode(), "f")[1:3] == ("GPU 0: NVIDIA H200", "\t Link 0: <inactive>")
    log = json.dumps({"dmesg": [{"pri": "warn", "time": 1.5, "msg": "usb\n[ 2.0] NVRM: Xid (PCI:0000:3b:00): 79, a"}]})
    assert lines(log.encode(), "f") == (log,)


def test_a_text_may_be_packed_or_come_from_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rotated logs are packed by gzip."""
    log = b"[ 12.345678] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    (tmp_path / "kern.log.2.gz").write_bytes(gzip.compress(log))
    (tmp_path / "dmesg.txt").write_bytes(log)
    for spec in ("kern.log.2.gz", "-"):
        with (tmp_path / "dmesg.txt").open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            monkeypatch.chdir(tmp_path)
            assert main(["health", "--from", spec]) == 2
            assert "3b:00.0" in capsys.readouterr().out
    with (tmp_path / "nothing.txt").open("w+") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert main(["health", "--from", "-"]) == 3
        assert capsys.readouterr().err.count("\n") == 1


def test_an_empty_text_is_called_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "nothing.txt"
    file.write_text("\n")
    assert main(["import", "--show", str(file)]) == 3
    said = capsys.readouterr()
    assert "nothing.txt: 1 line\n" in said.out
    assert "nothing.txt: file is empty\n" in said.err


def test_a_driver_that_nvidia_smi_cannot_reach_is_to_blame(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else is known of the machine; where nothing was asked of NVML, nothing is blamed."""
    file = tmp_path / "mail.txt"
    file.write_text("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")
    assert main(["health", "--from", str(file), "--format", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert [cause["component"]["kind"] for cause in document["causes"]] == ["driver"]
    assert "gpu.count" not in [found["check"] for found in document["findings"] if found["status"] == "unknown"]


@pytest.mark.parametrize(
    ("model", "lanes", "status"),
    [("Tesla P100-PCIE-16GB", 4, "warn"), ("Tesla P100-PCIE-16GB", 8, "unknown"), ("Tesla P100-PCIE-16GB", 16, "skip"),
     ("Tesla V100-SXM2-32GB", 2, "skip")],
)
def test_the_link_of_a_gpu_alone_is_narrow_or_its_slot(model: str, lanes: int, status: str, tmp_path: Path) -> None:
    """In a dump of nvidia-smi; a V100 beside a POWER9 has two lanes."""
    file = tmp_path / "smi.txt"
    file.write_text(
        "==============NVSMI LOG==============\nDriver Version                      : 418.67\n"
        f"Attached GPUs                       : 1\nGPU 00000000:03:00.0\n    Product Name              : {model}\n"
        "    PCI\n        GPU Link Info\n            Link Width\n                Max                 : 16x\n"
        f"                Current             : {lanes}x\n"
    )
    (width,) = [each for each in assess(open_source(str(file))).findings if each.id == "pcie.width"]
    assert width.status.value == status


def test_multicast_that_nvlinks_refuse_is_looked_at_before_anything_is_restarted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """https://github.com/pytorch/ci-infra/pull/541: without what NCCL puts before its lines."""
    file = tmp_path / "job.txt"
    file.write_text(
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152:\n"
        "CUDA error 401 'the operation cannot be performed in the present state'.\n"
        "This is usually caused by a system or configuration error in the Fabric Manager or NVSwitches.\n"
    )
    assert main(["health", "--from", str(file)]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[0].endswith("-> systemctl status nvidia-fabricmanager")
    assert "not recognised" not in out


def test_a_gpu_alone_that_waits_for_the_fabric_waits_for_its_manager(tmp_path: Path) -> None:
    """https://github.com/siderolabs/extensions/pull/717: without NVLSM it stays so; no reset helps."""
    file = tmp_path / "smi.txt"
    file.write_text(
        "Driver Version                            : 570.133.20\nAttached GPUs                             : 8\n"
        "GPU 00000000:1B:00.0\n    Product Name                          : NVIDIA B200\n    Fabric\n"
        "        State                             : In Progress\n        Status                            : N/A\n"
    )
    (cause,) = assess(open_source(str(file))).causes
    assert (cause.component, cause.actions[0].step) == (FABRIC_MANAGER, "inspect")


@pytest.mark.parametrize(("name", "together"), [("Tesla V100-SXM2-16GB", True), ("Tesla V100-PCIE-16GB", False)])
def test_gpus_with_nvlinks_to_unnamed_ends_are_reset_together(
    name: str, together: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before Ampere nvidia-smi resets none of them alone."""
    table = f"index, name, ecc.errors.uncorrected.volatile.total\n0, {name}, 3\n1, {name}, 0\n"
    links = "".join(f"GPU {gpu}: {name} (UUID: GPU-{gpu})\n\t Link 0: 25.781 GB/s\n" for gpu in (0, 1))
    file = tmp_path / "mail.txt"
    file.write_text(table + (links if together else ""))
    assert main(["health", "--from", str(file)]) == 2
    assert f"reset GPU: nvidia-smi -r{'' if together else ' -i 0'};" in capsys.readouterr().out


ALL_INACTIVE = "NVML: Unable to retrieve NVLink information as all links are inActive"


@pytest.mark.parametrize("model", ["NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA B200"])
@pytest.mark.parametrize("links", [ALL_INACTIVE, "\n".join(f"\t Link {n}: <inactive>" for n in range(12))])
def test_no_nvlink_up_at_any_gpu_is_of_fabric_manager(model: str, links: str, tmp_path: Path) -> None:
    path = tmp_path / "links.txt"
    path.write_text("".join(f"GPU {n}: {model} (UUID: GPU-{n})\n{links}\n" for n in range(8)))
    result = assess(str(path), Request())
    assert {f.subject.name for f in result.findings if f.id == "nvlink.state" and f.status.value == "warn"} == {
        f"GPU{n}" for n in range(8)
    }
    assert [cause.component for cause in result.diagnosis.causes] == [FABRIC_MANAGER]


@pytest.mark.parametrize(("state", "said"), [("Not Started", "not started"), ("In Progress", "in progress")])
def test_a_fabric_that_is_not_completed_has_no_status(state: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    head = "==============NVSMI LOG==============\n\nDriver Version : 580.65.06\nAttached GPUs : 1\n"
    path.write_text(f"{head}GPU 00000000:18:00.0\n    Product Name : NVIDIA H100 80GB HBM3\n    Fabric\n"
                    f"        State : {state}\n        Status : N/A\n        CliqueId : N/A\n")  # fmt: skip
    found = {f.id: f for f in assess(str(path), Request()).findings}
    assert found["driver.fabric"].status.value == "fail"
    assert said in found["driver.fabric"].judgement.message


@pytest.mark.parametrize(
    ("model", "due"),
    [
        ("NVIDIA RTX A6000", "next-maintenance"),
        ("Quadro RTX 8000", "next-maintenance"),
        ("NVIDIA A100-SXM4-40GB", "now"),
    ],
)
def test_persistence_mode_of_workstation_boards_can_wait(model: str, due: str, tmp_path: Path) -> None:
    """And it stands behind every other warning."""
    path = tmp_path / "mail.csv"
    rows = "".join(f"{n}, {model}, 00000000:{n + 1:02X}:00.0, Disabled, Disabled\n" for n in range(2))
    odd = "CA 'mlx5_8'\nibpanic: [4242] main: stat of IB device 'mlx5_8' failed: No such file or directory\n"
    path.write_text(f"index, name, pci.bus_id, persistence_mode, display_active\n{rows}\n{odd}")
    causes = assess(str(path), Request()).diagnosis.causes
    assert [cause.actions[0].urgency for cause in causes if cause.component.part == "persistence mode"] == [due]
    assert [cause.component.part for cause in causes] == ["", "persistence mode"]


SERVICE = "Jan 05 14:45:41 node7 systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.\n"
NOT_STARTED = "Job for nvidia-fabricmanager.service failed because the control process exited.\n"


@pytest.mark.parametrize("said", [SERVICE, NOT_STARTED])
@pytest.mark.parametrize(
    ("model", "number", "due"),
    [("NVIDIA H100 80GB HBM3", 8, "fail"), ("NVIDIA H100 80GB HBM3", 4, "unknown"), ("NVIDIA L40S", 8, "unknown")],
)
def test_fabric_manager_that_does_not_start_is_missed_behind_nvswitches_alone(
    said: str, model: str, number: int, due: str, tmp_path: Path
) -> None:
    path = tmp_path / "mail.txt"
    gpus = "".join(f"GPU {n}: {model} (UUID: GPU-{n})\n" for n in range(number))
    path.write_text(said + gpus)
    (found,) = (f for f in assess(str(path), Request()).findings if f.id == "tools.reports")
    assert found.status.value == due


def test_a_log_alone_tells_which_programs_the_driver_refused(tmp_path: Path) -> None:
    """NVML's version and the module's stand nowhere in it."""
    file = tmp_path / "dmesg.txt"
    file.write_text("[ 12.345678] NVRM: API mismatch: the client has the version 570.1.2, but\n")
    (cause,) = assess(open_source(str(file))).causes
    assert (cause.component.part, cause.actions[0].step) == ("programs with another driver library", "stop-jobs")
