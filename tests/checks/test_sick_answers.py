"""What a sick driver answers, one GPU or one function at a time: none of it passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_box import grown
from test_health_checks import box, changed

from dgxcheck.assessment import assess
from dgxcheck.checks.answers.capability import is_answered
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD, Judgement, Status
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.profiles import library
from dgxcheck.source.recording.load import load, shipped

BOX, GPU = "dgx-a100", "0000:47:00.0"
GAPS = {3: "unsupported", 4: "denied", 9: "absent", 12: "absent", 16: "lost", 20: "garbled", 999: "garbled"}


def answers(function: str, code: int, bdf: str = "", base: str = BOX) -> dict[str, Json]:
    """This error of NVML in place of each value of a function, of one GPU or of all."""
    facts = load(dict(shipped())[base])["facts"]
    assert isinstance(facts, dict)
    gap: Json = {"missing": GAPS[code], "code": code, "detail": f"NVML {code}"}
    found: dict[str, Json] = {}
    for line, values in facts.items():
        if line.startswith(f"nvml nvmlDevice{function} ") and bdf in line and isinstance(values, dict):
            read = [args for args, value in values.items() if not (isinstance(value, dict) and "missing" in value)]
            found |= {f"{line} {args}".rstrip(): gap for args in read}
    assert found
    return found


def bad(tmp_path: Path, facts: dict[str, Json]) -> set[tuple[str, str | None, str]]:
    return worse(box(changed(tmp_path, facts, BOX)))


def worse(machine: Box) -> set[tuple[str, str | None, str]]:
    findings = run(replace(machine, boards=library.boards_for(None)), CHECKS)
    return {(each.id, each.subject.bdf, each.status.value) for each in findings if each.status in BAD}


@pytest.mark.parametrize("function", ["GetP2PStatus", "GetTopologyCommonAncestor"])
def test_a_reset_that_only_questions_about_pairs_ask_for_is_of_the_gpu_that_they_share(
    function: str, tmp_path: Path
) -> None:
    found = bad(tmp_path, answers(function, 16, GPU))
    assert ("gpu.reset-required", GPU, "fail") in found
    assert {bdf for check, bdf, _ in found if check == "gpu.reset-required"} == {GPU}


def test_one_pair_that_asks_for_a_reset_is_a_finding_about_both(tmp_path: Path) -> None:
    facts = answers("GetTopologyCommonAncestor", 16, f"{GPU} 0000:4e:00.0")
    assert ("gpu.reset-required", GPU, "fail") in bad(tmp_path, facts)


@pytest.mark.parametrize("code", [3, 4, 999])
def test_nvlinks_whose_far_ends_no_gpu_tells_are_no_wiring(code: int, tmp_path: Path) -> None:
    facts = answers("GetNvLinkRemotePciInfo", code)
    assert sum(check == "driver.answers" for check, _, _ in bad(tmp_path, facts)) == 8
    without_profile = run(replace(box(changed(tmp_path, facts, BOX)), boards={}), CHECKS)
    assert sum((each.id, each.status.value) == ("driver.answers", "unknown") for each in without_profile) == 8


@pytest.mark.parametrize("code", [3, 4, 999])
def test_one_gpu_without_what_its_sisters_answer_is_unknown(code: int, tmp_path: Path) -> None:
    assert bad(tmp_path, answers("GetSupportedGraphicsClocks", code, GPU)) == {("driver.answers", GPU, "unknown")}


def test_what_is_documented_for_a_geforce_is_missed_though_no_gpu_answers(tmp_path: Path) -> None:
    facts = answers("GetUtilizationRates", 3, base="geforce-x4")
    silent = {each.subject.bdf for each in run(box(changed(tmp_path, facts, "geforce-x4")), CHECKS)
              if each.id == "driver.answers" and each.status is Status.UNKNOWN}  # fmt: skip
    assert len(silent) == 4


@pytest.mark.parametrize("code", [9, 12, 20, 999])
@pytest.mark.parametrize("function", ["GetPersistenceMode", "GetClockInfo", "GetVbiosVersion", "GetBrand"])
def test_a_lone_gpu_that_answers_by_an_error_is_unknown(function: str, code: int, tmp_path: Path) -> None:
    """A guest's only GPU, of which no model says what it answers."""
    lone = "vgpu-l40s"
    found = worse(box(changed(tmp_path, answers(function, code, base=lone), lone)))
    assert {check for check, _, status in found if status == "unknown"} >= {"driver.answers"}


def banks(number: int) -> Json:
    return {"max": number, "high": 0, "partial": 0, "low": 0, "none": 0}


@pytest.mark.parametrize(
    ("facts", "check"),
    [
        ({f"nvml nvmlDeviceGetRowRemapperHistogram {GPU}": banks(0xFFFFFFFF)}, "consistency.readings"),
        ({f"nvml nvmlDeviceGetRowRemapperHistogram {GPU}": banks(0x7F7F7F7F)}, "consistency.readings"),
        ({f"nvml nvmlDeviceGetMaxCustomerBoostClock {GPU} 0": 0xFFFFFFFF}, "consistency.readings"),
        ({f"nvml nvmlDeviceGetMinorNumber {GPU}": 77}, "driver.device-nodes"),
    ],
)
def test_numbers_that_no_gpu_has(facts: dict[str, Json], check: str, tmp_path: Path) -> None:
    assert (check, GPU, "unknown") in bad(tmp_path, facts)


def test_nvlinks_that_are_not_there_at_the_second_reading(tmp_path: Path) -> None:
    """Their state is not supported any more, so that nothing asks for their errors."""
    states = answers("GetNvLinkState", 3, GPU)
    lines: dict[str, dict[str, Json]] = {}
    for key, gap in states.items():
        lines.setdefault(key.rpartition(" ")[0], {})[key.rpartition(" ")[2]] = gap
    path = tmp_path / "later.json"
    document = {"schema": "dgxcheck/overlay/1", "base": BOX, "facts": {}, "later": [{"at_s": 60, "facts": lines}]}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert ("driver.answers", GPU, "unknown") in worse(grown(str(path)))


@pytest.mark.parametrize(("file", "check", "bdf"), [
    (f"/sys/bus/pci/devices/{GPU}/aer_dev_fatal", "driver.answers", GPU),
    ("/sys/bus/pci/devices/0000:41:00.0/aer_dev_correctable", "pcie.answers", "0000:41:00.0"),
    ("/sys/class/net/ib0/carrier_down_count", "host.answers", None),
    ("/sys/class/block/md0/md/raid_disks", "host.answers", None),
    ("/proc/uptime", "host.answers", None),
])  # fmt: skip
def test_a_file_that_no_kernel_writes_so_is_no_pass(file: str, check: str, bdf: str | None, tmp_path: Path) -> None:
    assert (check, bdf, "unknown") in bad(tmp_path, {f"text {file}": "?!\n"})
    assert check == "driver.answers" or check not in {id for id, *_ in bad(tmp_path, {f"text {file}": ""})}


ERR_TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.144.03             Driver Version: 550.144.03     CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   33C    P0             52W /  400W |       0MiB /  40960MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-40GB          On  |   00000000:0F:00.0 Off |                    0 |
| N/A  ERR!    P0            ERR! /  400W |       0MiB /  40960MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""


def test_err_in_a_table_names_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "smi.txt"
    path.write_text(ERR_TABLE, encoding="utf-8")
    found = {finding.id: finding for finding in assess(str(path)).findings if finding.subject.bdf == "0000:0f:00.0"}
    assert found["driver.answers"].status is Status.UNKNOWN
    assert found["driver.answers"].judgement.remedy.startswith("run nvidia-smi -q -i")
    assert found["driver.answers"].remedy.startswith("run nvidia-smi -q -i 0000:0f:00.0 as root; ")


def test_only_answers_that_are_a_fault_blame_the_gpu(tmp_path: Path) -> None:
    machine = box(changed(tmp_path, {}, BOX))
    check = next(each for each in CHECKS if each.id == "driver.answers")
    (at,) = [each.subject for each in run(machine, (check,)) if each.subject.bdf == GPU]
    silent = Judgement(Status.UNKNOWN, "no answer")
    assert not [*check.blames(machine, at, silent)]
    assert [each.bdf for each in check.blames(machine, at, replace(silent, fault=Fault.GPU_UNREADABLE))] == [GPU]


@pytest.mark.parametrize(("state", "silent"), [(0, False), (1, True)])
def test_only_a_link_that_is_up_has_a_far_end(state: int, silent: bool, tmp_path: Path) -> None:
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetNvLinkState {GPU} 3": state}
    gap: Json = {"missing": "unsupported", "code": 3, "detail": "NVML 3"}
    found = bad(tmp_path, facts | {f"nvml nvmlDeviceGetNvLinkRemotePciInfo {GPU} 3": gap})
    assert (("driver.answers", GPU, "unknown") in found) is silent


@pytest.mark.parametrize("path", ["gpu_ecc.volatile_corrected.total", "gpu_ecc.aggregate_uncorrected.total"])
def test_errors_are_counted_where_ecc_is_on(path: str) -> None:
    assert is_answered(path, "NVIDIA A40", 550, True)
    assert not is_answered(path, "NVIDIA A40", 550, False)
