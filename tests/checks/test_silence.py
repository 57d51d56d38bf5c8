"""What must answer and did not has a finding of its own: the invariant behind every check that skips."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from live_box import shipped
from sample import swept
from together import for_each

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.finding import BAD, Status
from dgxcheck.facts.missing import NO_WORKER, Json
from dgxcheck.facts.nvml.quantities import GROUPS
from dgxcheck.source.recording.keys import GroupedFacts, insert

GPUS = [f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a")]
GPU2, LAST = GPUS[2], GPUS[7]
NVML = "nvml nvmlDeviceGet"
LOST: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost", "code": 15}
UNSUPPORTED: Json = {"missing": "unsupported", "detail": "NVML 3: not supported", "code": 3}
NO_FUNCTION: Json = {"missing": "unsupported", "detail": "NVML 13: function not found in this driver", "code": 13}
DENIED: Json = {"missing": "denied", "detail": "NVML 4: no permission", "code": 4}
KILLED: Json = {"missing": "timeout", "detail": "died: SIGKILL", "code": NO_WORKER}


def findings(
    folder: Path, facts: dict[str, Json], base: str = "dgx-1-v100", only: tuple[str, ...] = (), **more: Json
) -> dict[str, str]:
    """Bad findings of the box with changed facts, by key."""
    path = folder / "box.json"
    document: dict[str, Json] = {"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, **more}
    path.write_text(json.dumps(document), encoding="utf-8")
    judged = assess(str(path), Request(only=only))
    bad = {each.key: each.status.value for each in judged.findings if each.status in BAD}
    assert bool(bad) == (judged.verdict is not Status.PASS)
    return bad


def later(facts: dict[str, Json]) -> list[Json]:
    lines: GroupedFacts = {}
    for key, fact in facts.items():
        insert(lines, key, fact)
    return [{"at_s": 10, "facts": dict(lines)}]


def code(number: int, gap: str) -> Json:
    return {"missing": gap, "detail": f"NVML {number}", "code": number}


@pytest.mark.parametrize(
    ("second", "key", "due"),
    [
        ({f"{NVML}Count": 7, f"{NVML}HandleByIndex 7": {"missing": "unrecorded"}}, f"gpu.lost/{LAST}", "fail"),
        ({f"{NVML}HandleByIndex 2": LOST}, f"gpu.lost/{GPU2}", "fail"),
        ({f"{NVML}PcieReplayCounter {GPU2}": LOST}, f"gpu.lost/{GPU2}", "fail"),
        ({f"{NVML}PcieReplayCounter {GPU2}": {"missing": "timeout"}}, f"driver.responsive/{GPU2}", "fail"),
        ({f"{NVML}PcieReplayCounter {GPU2}": KILLED}, "driver.responsive", "unknown"),
        ({f"{NVML}PcieReplayCounter {GPU2}": UNSUPPORTED}, f"driver.answers/{GPU2}", "unknown"),
        ({f"{NVML}TotalEccErrors {GPU2} 1 0": DENIED}, f"driver.answers/{GPU2}", "unknown"),
        ({"nvml nvmlInit": code(9, "absent")}, "driver.library", "fail"),
        ({"nvml nvmlInit": DENIED}, "driver.library", "unknown"),
        ({"nvml nvmlInit": {"missing": "timeout"}}, "driver.responsive", "fail"),
        ({f"{NVML}NvLinkState {GPU2} {link}": 0 for link in range(6)}, f"nvlink.symmetry/{GPU2}/{GPUS[3]}", "fail"),
    ],
)
def test_the_second_reading_counts_as_the_first(second: dict[str, Json], key: str, due: str, tmp_path: Path) -> None:
    assert findings(tmp_path, {}, later=later(second)).get(key) == due


def test_a_link_that_came_up_meanwhile_is_still_reported(tmp_path: Path) -> None:
    down = {f"{NVML}NvLinkState {GPU2} {link}": 0 for link in range(6)}
    up: dict[str, Json] = dict.fromkeys(down, 1)
    first = findings(tmp_path, dict(down))
    assert findings(tmp_path, dict(down), later=later(up)) == first != {}


@pytest.mark.parametrize(
    ("number", "gap", "due"),
    swept([
        *((number, "unsupported", "unknown") for number in (2, 3, 13, 25, 26)),
        *((number, "denied", "unknown") for number in (4, 17)),
        *((number, "absent", "unknown") for number in (6, 9, 12)),
        (999, "garbled", "fail"),
        (15, "lost", "fail"),
    ], 4),
)
def test_a_gpu_that_is_counted_and_has_no_handle(number: int, gap: str, due: str, tmp_path: Path) -> None:
    found = findings(tmp_path, {f"{NVML}HandleByIndex 2": code(number, gap)})
    assert found.get(f"gpu.lost/{GPU2}") == due


def test_what_a_broken_inforom_does_not_answer_is_reported_as_that(tmp_path: Path) -> None:
    found = findings(tmp_path, {f"{NVML}TotalEccErrors {GPU2} 1 0": code(14, "unsupported")})
    assert found == {f"gpu.inforom/{GPU2}": "fail"}


def test_nvml_counts_more_gpus_than_there_are(tmp_path: Path) -> None:
    found = findings(tmp_path, {f"{NVML}Count": 9}, add={f"{NVML}HandleByIndex 8": code(2, "unsupported")})
    assert found == {"gpu.lost": "unknown"}


@pytest.mark.parametrize("gap", [UNSUPPORTED, NO_FUNCTION])
@pytest.mark.parametrize("gpus", [GPUS, [GPU2]])
def test_no_nvlink_where_the_machine_has_some(gap: Json, gpus: list[str], tmp_path: Path) -> None:
    facts = {f"{NVML}NvLinkState {gpu} {link}": gap for gpu in gpus for link in range(6)}
    found = findings(tmp_path, facts, only=("nvlink",))
    assert {key: due for key, due in found.items() if key.startswith("nvlink.state")} == {
        f"nvlink.state/{gpu}": "fail" for gpu in gpus
    }


def test_p2p_that_all_nvlinks_do_not_support(tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        f"{NVML}P2PStatus {a} {b} {way}": 5 for a in GPUS for b in GPUS if a != b for way in range(3)
    }
    assert "fail" in findings(tmp_path, facts).values()


def test_a_gpu_is_lost_in_questions_about_pairs_alone(tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        f"{NVML}P2PStatus {a} {b} 0": LOST for a in GPUS for b in GPUS if a != b and GPU2 in (a, b)
    }
    lost = {key: due for key, due in findings(tmp_path, facts).items() if key.startswith("gpu.lost")}
    assert lost == {f"gpu.lost/{GPU2}": "fail"}
    one: dict[str, Json] = {f"{NVML}TopologyCommonAncestor {GPUS[0]} {GPU2}": LOST}
    assert findings(tmp_path, one) == {f"gpu.lost/{GPUS[0]}/{GPU2}": "fail"}


@pytest.mark.parametrize(
    "function",
    swept(("Temperature {} 0", "ClockInfo {} 0", "PowerUsage {}", "EccMode {}", "MemoryInfo {}", "FieldValues {} 82"),
          4),
)
@for_each("gap", [UNSUPPORTED, DENIED, code(6, "absent"), code(999, "garbled")])
def test_one_gpu_is_silent_where_its_siblings_answer(function: str, gap: Json, tmp_path: Path) -> None:
    facts = {f"{NVML}{function.format(GPU2)}": gap}
    assert findings(tmp_path, facts, only=("driver",)).get(f"driver.answers/{GPU2}") == "unknown"


def test_all_gpus_are_silent_where_their_model_answers(tmp_path: Path) -> None:
    facts = {f"{NVML}Temperature {gpu} 0": UNSUPPORTED for gpu in GPUS}
    assert findings(tmp_path, facts) == {f"driver.answers/{gpu}": "unknown" for gpu in GPUS}


def test_a_gpu_in_another_mode_answers_other_questions(tmp_path: Path) -> None:
    """With ECC off there are no error counters: the mode is a finding, the silence is none."""
    facts: dict[str, Json] = {f"{NVML}EccMode {GPU2}": [0, 0]}
    facts |= {f"{NVML}TotalEccErrors {GPU2} {error} {period}": UNSUPPORTED for error in (0, 1) for period in (0, 1)}
    assert f"driver.answers/{GPU2}" not in findings(tmp_path, facts)


@pytest.mark.parametrize("question", ["nvml nvmlInit", f"{NVML}Count"])
def test_a_driver_that_this_user_may_not_ask(question: str, tmp_path: Path) -> None:
    found = findings(tmp_path, {question: DENIED})
    assert found.get("driver.library") == "unknown"
    assert "fail" not in found.values()


def test_a_lack_of_processes_is_no_fault_of_the_driver(tmp_path: Path) -> None:
    found = findings(tmp_path, {"nvml nvmlInit": KILLED})
    assert found.get("driver.responsive") == "unknown"
    assert "fail" not in found.values()


def test_nothing_was_measured_without_libcuda(tmp_path: Path) -> None:
    start: Json = {"skipped": "not-supported", "detail": "no CUDA driver: libcuda.so.1: cannot open shared object file"}
    found = findings(tmp_path, {}, add={"measure cuda all": start})
    assert [due for key, due in found.items() if key.startswith("measure.")] == ["unknown"]


@pytest.mark.parametrize(("share", "due"), [(0.4, {}), (0.7, {"driver.answers/0009:01:00.0": "unknown"})])
def test_a_recording_that_lacks_most_of_what_its_one_gpu_answers(
    share: float, due: dict[str, str], tmp_path: Path
) -> None:
    asked = [each for group in GROUPS.values() for each in group if each.scope == "gpu"]
    keys = [" ".join(("nvml", each.function, "0009:01:00.0", *map(str, each.args))) for each in asked]
    cut: dict[str, Json] = {key: {"missing": "unrecorded"} for key in keys[int((1 - share) * len(keys)) :]}
    assert findings(tmp_path, cut, base="gh200", only=("driver.answers",)) == due


def test_resource_lines_that_are_all_zero(tmp_path: Path) -> None:
    line = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    found = findings(tmp_path, {f"text /sys/bus/pci/devices/{GPU2}/resource": line * 13})
    assert found.get(f"pcie.bar1/{GPU2}") == "fail"


def test_nvml_lists_a_gpu_that_the_pci_tree_does_not_have(tmp_path: Path) -> None:
    listed = shipped("dgx-1-v100")["facts"]["/sys/bus/pci/devices"]["names"]  # type: ignore[index, call-overload]
    others: Json = [name for name in listed if name != GPU2]  # type: ignore[union-attr]
    found = findings(tmp_path, {"names /sys/bus/pci/devices": others})
    assert found.get(f"driver.answers/{GPU2}") == "unknown"
    assert findings(tmp_path, {"names /sys/bus/pci/devices": {"missing": "denied"}}).get("driver.answers") == "unknown"


@pytest.mark.parametrize("function", ["DriverVersion", "NVMLVersion", "CudaDriverVersion"])
def test_nvml_that_does_not_tell_its_versions_is_sick(function: str, tmp_path: Path) -> None:
    key = f"nvml nvmlSystemGet{function}"
    assert findings(tmp_path, {key: code(999, "garbled")}, only=("driver",))["driver.library"] == "unknown"
    assert "driver.library" not in findings(tmp_path, {key: NO_FUNCTION}, only=("driver",))


@pytest.mark.parametrize(("gap", "is_due"), [(code(999, "garbled"), True), (UNSUPPORTED, False)])
def test_a_board_without_a_part_number_gives_no_other_error(gap: Json, is_due: bool, tmp_path: Path) -> None:
    found = findings(tmp_path, {f"{NVML}BoardPartNumber {GPU2}": gap}, only=("driver",))
    assert (f"driver.answers/{GPU2}" in found) is is_due
