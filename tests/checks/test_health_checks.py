"""The engine of the checks: statuses, verdict, selection, thresholds, and what hides a GPU."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import read_box
from seam import judge_once
from together import for_each

from dgxcheck.checks.engine.box import DEFAULTS, HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.run import run, verdict
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli import main
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.output.health.explanation import rule

GPU2 = "0000:0a:00.0"
NVML = "nvml nvmlDeviceGet"


@pytest.fixture(autouse=True)
def boxes_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_once(monkeypatch)


def box(spec: str) -> Box:
    return read_box.box(spec)


def changed(folder: Path, facts: dict[str, Json], base: str = "dgx-1-v100", add: Mapping[str, Json] = {}) -> str:
    path = folder / "fault.json"
    overlay = {"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, "add": add}
    path.write_text(json.dumps(overlay), encoding="utf-8")
    return str(path)


def status(spec: str, check: str, bdf: str | None = GPU2) -> str:
    """``pass``, ``warn`` ..., with the reason of a skip."""
    (wanted,) = [each for each in CHECKS if each.id == check]
    checks = CHECKS if wanted.last else [wanted]
    (finding,) = [each for each in run(box(spec), checks) if (each.id, each.subject.bdf) == (check, bdf)]
    return " ".join([finding.status.value, finding.judgement.reason]).rstrip()


@for_each(
    ("check", "facts", "due"),
    [
        ("ecc.retired-pages", {"RetiredPages {} 0": [{"address": n} for n in range(10)]}, "pass"),
        ("ecc.retired-pages", {"RetiredPages {} 0": [{"address": n} for n in range(11)]}, "warn"),
        ("ecc.retired-pages", {"RetiredPages {} 1": [{"address": n} for n in range(62)]}, "warn"),
        ("ecc.retired-pages", {"RetiredPages {} 1": [{"address": n} for n in range(63)]}, "fail"),
        ("ecc.retired-pages", {"RetiredPages {} 1": [{"address": 1}]}, "warn"),
        ("ecc.corrected", {"TotalEccErrors {} 0 0": 50_000_000}, "pass"),
        ("ecc.corrected", {"TotalEccErrors {} 0 0": 50_000_001}, "fail"),
        ("thermal.memory", {"FieldValues {} 82": 80}, "warn"),
        ("thermal.memory", {"FieldValues {} 82": 51}, "warn"),
        ("thermal.memory", {"FieldValues {} 82": 50}, "pass"),
        ("thermal.memory", {"FieldValues {} 82": 85}, "fail"),
        ("thermal.memory", {"FieldValues {} 82": 82, "TemperatureThreshold {} 2": {"missing": "unsupported"}}, "warn"),
        ("ecc.volatile", {"TotalEccErrors {} 1 0": 1}, "fail"),
        ("ecc.aggregate", {"TotalEccErrors {} 1 1": 7}, "pass"),
        ("ecc.retirement-pending", {"RetiredPagesPendingStatus {}": 1, "TotalEccErrors {} 1 0": 1}, "fail"),
        ("thermal.temperature", {"Temperature {} 0": 82}, "pass"),
        ("thermal.temperature", {"Temperature {} 0": 83}, "warn"),
        ("thermal.temperature", {"Temperature {} 0": 86}, "warn"),
        ("thermal.temperature", {"Temperature {} 0": 87}, "fail"),
        ("ecc.mode", {"EccMode {}": [0, None]}, "warn"),
        ("ecc.mode", {"EccMode {}": [1, None]}, "pass"),
        ("power.limit", {"EnforcedPowerLimit {}": 299001}, "pass"),
        ("power.limit", {"EnforcedPowerLimit {}": 299000}, "warn"),
        ("clock.throttle", {"CurrentClocksEventReasons {}": 0x4 | 0x2 | 0x10}, "pass"),
        ("clock.throttle", {"CurrentClocksEventReasons {}": 0x20}, "warn"),
        ("gpu.compute-mode", {"ComputeMode {}": 3}, "pass"),
        ("gpu.reset-required", {"FieldValues {} 230": 3}, "warn"),
        ("gpu.reset-required", {"FieldValues {} 230": 9}, "fail"),
    ],
)
def test_thresholds(check: str, facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, {f"{NVML}{key.format(GPU2)}": value for key, value in facts.items()})
    assert status(spec, check) == due


@pytest.mark.parametrize(
    ("gap", "due"),
    [
        (Gap.ABSENT, "skip not-supported"),
        (Gap.UNSUPPORTED, "skip not-supported"),
        (Gap.DENIED, "skip no-permission"),
        (Gap.GARBLED, "unknown"),
        (Gap.LOST, "skip dependency-failed"),
        (Gap.TIMEOUT, "skip dependency-failed"),
        (Gap.UNRECORDED, "skip not-recorded"),
    ],
)
def test_a_gap_never_passes(gap: Gap, due: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, {f"{NVML}PersistenceMode {GPU2}": {"missing": gap.value, "detail": "x"}})
    assert status(spec, "driver.persistence") == due
    if gap is Gap.LOST:
        assert status(spec, "gpu.lost") == "fail"
    if gap is Gap.TIMEOUT:
        assert status(spec, "driver.responsive") == "fail"


def test_the_table_of_gaps_is_complete() -> None:
    unknown = {gap for gap in Gap if unjudged(Missing(gap, "nvmlDeviceGetName")).status is not Status.SKIP}
    assert unknown == {Gap.GARBLED}
    unknown = {gap for gap in Gap if unjudged(Missing(gap, "/sys/x")).status is not Status.SKIP}
    assert unknown == {Gap.GARBLED, Gap.LOST, Gap.TIMEOUT}  # no other finding fails for these


HANDLE = "nvml nvmlDeviceGetHandleByIndex 7"
LAST = "0000:8a:00.0"


@pytest.mark.parametrize(
    ("more", "due"),
    [
        ({}, "fail"),
        ({f"link /sys/bus/pci/devices/{LAST}/driver": "../../../../bus/pci/drivers/vfio-pci"}, "skip not-visible"),
        ({"opens /dev/nvidia7": {"missing": "denied", "detail": "Operation not permitted"}}, "skip not-visible"),
        ({"text /.dockerenv": ""}, "fail"),  # a container that was given every node
    ],
)
def test_a_gpu_is_lost_only_if_it_is_ours(more: dict[str, Json], due: str, tmp_path: Path) -> None:
    facts: dict[str, Json] = {"nvml nvmlDeviceGetCount": 7, HANDLE: {"missing": "unrecorded"}}
    spec = changed(tmp_path, facts | more)
    assert status(spec, "gpu.lost", LAST) == due
    assert status(spec, "ecc.volatile", LAST) == "skip dependency-failed"
    assert status(spec, "gpu.lost") == "pass"


LOST: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
LINK = f"link /sys/bus/pci/devices/{GPU2}/driver"
DENIED: Json = {"missing": "denied", "detail": "NVML 4: no permission"}
MISMATCH: Json = {"missing": "garbled", "detail": "NVML 18: library and kernel module differ in version"}
ABSENT: Json = {"missing": "absent", "detail": "NVML 12: libnvidia-ml.so.1 not found"}
SHUT: Json = {"missing": "denied", "detail": "Operation not permitted"}
CONTAINER: dict[str, Json] = {"text /.dockerenv": ""}
NO_NODES: dict[str, Json] = {f"opens /dev/nvidia{minor}": SHUT for minor in range(8)}
PORT = "0000:09:08.0"
WIDTH = "text /sys/bus/pci/devices/{}/current_link_width"
HANDLE_2 = "nvml nvmlDeviceGetHandleByIndex 2"
UNKNOWN_ERROR: Json = {"missing": "garbled", "detail": "NVML 999"}
ONES: dict[str, Json] = {f"data /sys/bus/pci/devices/{GPU2}/config": {"size": 64, "rows": {
    f"0{row}0": "f" * 32 for row in range(4)}}}  # fmt: skip


@for_each(
    ("check", "bdf", "facts", "due"),
    [
        ("gpu.lost", GPU2, {HANDLE_2: LOST, LINK: {"missing": "absent"}}, "fail"),
        ("gpu.lost", GPU2, {HANDLE_2: LOST, HANDLE: {"missing": "unrecorded"}}, "skip not-recorded"),
        ("gpu.lost", GPU2, {HANDLE_2: {"missing": "timeout"}}, "skip dependency-failed"),
        ("gpu.lost", GPU2, {HANDLE_2: {"missing": "denied"}}, "unknown"),
        ("gpu.lost", GPU2, CONTAINER | {HANDLE_2: {"missing": "denied"}}, "skip no-permission"),
        ("gpu.lost", GPU2, {HANDLE_2: {"missing": "denied"}, "opens /dev/nvidia2": SHUT}, "skip no-permission"),
        ("gpu.lost", GPU2, {HANDLE_2: UNKNOWN_ERROR}, "fail"),
        ("gpu.lost", GPU2, CONTAINER | {HANDLE_2: UNKNOWN_ERROR}, "unknown"),
        ("gpu.lost", GPU2, ONES | {HANDLE_2: UNKNOWN_ERROR}, "fail"),
        ("gpu.lost", GPU2, ONES | CONTAINER | {HANDLE_2: {"missing": "denied"}}, "skip no-permission"),
        ("gpu.lost", GPU2, ONES | {HANDLE_2: UNKNOWN_ERROR, LINK: "../../../../bus/pci/drivers/vfio-pci"}, "unknown"),
        ("gpu.lost", LAST, ONES | {HANDLE_2: UNKNOWN_ERROR, HANDLE: UNKNOWN_ERROR}, "fail"),
        ("gpu.lost", LAST, ONES | {f"{NVML}Count": 7, HANDLE_2: UNKNOWN_ERROR, HANDLE: {"missing": "unrecorded"},
                                   "opens /dev/nvidia7": SHUT}, "skip not-visible"),
        ("gpu.lost", GPU2, {f"{NVML}TopologyCommonAncestor 0000:06:00.0 {GPU2}": LOST}, "pass"),
        ("gpu.lost", GPU2, {WIDTH.format(GPU2): LOST}, "pass"),
        ("pcie.width", GPU2, {WIDTH.format(GPU2): LOST}, "pass"),  # the port knows too
        ("pcie.width", GPU2, {WIDTH.format(GPU2): LOST, WIDTH.format(PORT): LOST}, "unknown"),
        ("gpu.lost", GPU2, {f"{NVML}Temperature {GPU2} 0": {"missing": "timeout"}}, "skip dependency-failed"),
        ("driver.responsive", None, {"names /sys/class/infiniband": {"missing": "timeout"}}, "pass"),
        ("driver.library", None, {"nvml nvmlInit": ABSENT}, "fail"),
        ("driver.library", None, CONTAINER | {"nvml nvmlInit": ABSENT}, "fail"),
        ("driver.library", None, CONTAINER | NO_NODES | {"nvml nvmlInit": ABSENT}, "skip not-visible"),
        ("driver.library", None, CONTAINER | NO_NODES | {"nvml nvmlInit": MISMATCH}, "fail"),
        ("driver.library", None, {"nvml nvmlInit": DENIED}, "unknown"),
        ("driver.library", None, {"nvml nvmlDeviceGetCount": DENIED}, "unknown"),
        ("driver.library", None, CONTAINER | NO_NODES | {"nvml nvmlInit": DENIED}, "skip not-visible"),
        ("driver.bound", GPU2, {LINK: "../../../../bus/pci/drivers/vfio-pci"}, "warn"),
        ("thermal.temperature", GPU2, {f"{NVML}TemperatureThreshold {GPU2} 1": -2}, "unknown"),
        ("power.limit", GPU2, {f"{NVML}PowerManagementDefaultLimit {GPU2}": 0}, "unknown"),
        ("gpu.compute-mode", GPU2, {f"{NVML}ComputeMode {GPU2}": 7}, "unknown"),
        ("ecc.retired-pages", GPU2, {f"{NVML}RetiredPages {GPU2} 0": {"missing": "unsupported"},
                                     f"{NVML}RetiredPages {GPU2} 1": [{"address": n} for n in range(63)]}, "fail"),
        ("ecc.retired-pages", GPU2, {f"{NVML}RetiredPages {GPU2} 0": {"missing": "denied"}}, "skip no-permission"),
    ],
)  # fmt: skip
def test_who_is_to_blame(check: str, bdf: str | None, facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert status(changed(tmp_path, facts), check, bdf) == due


def test_a_lost_gpu_that_is_nowhere_is_told_of_the_host(tmp_path: Path) -> None:
    path = Path(changed(tmp_path, {HANDLE_2: LOST}))
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | {"drop": [GPU2]}), encoding="utf-8")
    assert status(str(path), "gpu.lost", None) == "fail"


def broken(_: Box) -> Iterator[tuple[Subject, Judgement]]:
    raise RuntimeError("no such thing")
    yield


def test_a_check_that_raises_is_unknown_and_stops_no_other() -> None:
    bad = Check("bad.one", broken)
    findings = run(box("dgx-1-v100"), [bad, *CHECKS])
    assert (findings[0].subject, findings[0].status, findings[0].key) == (HOST, Status.UNKNOWN, "bad.one")
    assert "no such thing" in findings[0].judgement.message
    assert len(findings) > 100
    assert verdict(findings) is Status.UNKNOWN


def test_keys_are_unique() -> None:
    keys = [finding.key for finding in run(box("dgx-1-v100"), CHECKS)]
    assert len(keys) == len(set(keys))


def asked(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(["health", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_selection(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(
        capsys,
        "--only",
        "ecc",
        "--skip",
        "ecc.mode,ecc.row-remap,ecc.sram,ecc.spare-rows",
        "-i",
        "2",
        "-v",
        "--from",
        "dgx-1-v100",
    )
    (judged,) = re.findall(rf"^GPU2 {GPU2}:\n((?:  .*\n)+)", out, re.MULTILINE)
    assert [line.split()[1] for line in judged.splitlines()] == [
        "ecc.volatile", "ecc.aggregate", "ecc.corrected", "ecc.retired-pages", "ecc.retirement-pending",
    ]  # fmt: skip
    assert len(re.findall(r"^  PASS ", out, re.MULTILINE)) == 5
    assert code == 0


def test_a_gpu_asked_for_twice_is_judged_once(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = asked(capsys, "--only", "gpu.lost", "-i", "2", "-i", GPU2, "-v", "--from", "dgx-1-v100")
    assert "1 success" in out


def test_what_is_required_must_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = asked(capsys, "--only", "gpu", "--require", "ecc.mode", "--from", "dgx-1-v100")
    assert (code, out) == (3, "")
    assert err == "dgxcheck: --require ecc.mode: the check is excluded by --only or --skip\n"


def test_nothing_judged_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, "-v", "--only", "ecc.row-remap", "--from", "dgx-1-v100")
    assert code == 3
    assert out.startswith("UNKNOWN  nothing could be judged\n")
    assert "0 of 8 checks ran." in out
    assert "0 success, 0 errors, 0 warnings, 8 did not run\nOne or more tests didn't run.\n" in out


def test_a_required_check_that_skips_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, "--from", "dgx-1-v100", "--require", "ecc.mode")[0] == 0
    code, out, _ = asked(capsys, "--from", "dgx-1-v100", "--require", "ecc.row-remap")
    assert code == 3
    assert len(re.findall(r"^UNKNOWN ecc.row-remap .*required, but skipped \(not-supported\):", out, re.MULTILINE)) == 8


@pytest.mark.parametrize(
    ("spec", "codes"), [("dgx-1-v100-power-cap", (1, 0, 0)), ("dgx-1-v100-hot", (2, 2, 2)), ("dgx-1-v100", (0, 0, 0))]
)
def test_fail_on_changes_the_exit_code_alone(
    spec: str, codes: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    ran = [asked(capsys, "--from", spec, "--fail-on", word) for word in ("warn", "unknown", "fail")]
    assert tuple(code for code, _, _ in ran) == codes
    assert len({out for _, out, _ in ran}) == 1


def test_explain_knows_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    for check in CHECKS:
        code, out, _ = asked(capsys, "--explain", check.id)
        assert code == 0
        assert rule(check, DEFAULTS) in out
        assert check.remedy in out


@pytest.mark.parametrize("option", ["--only", "--skip", "--require", "--explain"])
def test_an_unknown_check_names_the_near_one(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = asked(capsys, option, "ecc.volatil", "--from", "dgx-1-v100")
    assert (code, out) == (3, "")
    assert err == "dgxcheck: no check 'ecc.volatil'; did you mean ecc.volatile?\n"


NO_GPUS: dict[str, Json] = {
    "nvml nvmlInit": {"missing": "absent", "detail": "NVML 9: driver not loaded", "code": 9},
    "names /sys/bus/pci/devices": [],
}


@pytest.mark.parametrize(
    ("more", "argv", "due"),
    [
        ({}, [], 2),  # its firmware says that it is a DGX-1
        ({"text /sys/class/dmi/id/product_name": "a server\n"}, [], 3),
        ({"text /sys/class/dmi/id/product_name": "a server\n"}, ["--profile", "dgx-1-v100"], 2),
        ({"text /.dockerenv": ""}, [], 3),
    ],
)
def test_a_box_without_gpus(
    more: dict[str, Json], argv: list[str], due: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not one is a fault of a machine that is known to have some; else nothing can be judged."""
    spec = changed(tmp_path, NO_GPUS | more)
    assert asked(capsys, "-q", "--only", "gpu.count", "--from", spec, *argv)[0] == due


def test_a_gpu_that_must_be_reset_is_not_lost(tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        f"{NVML}Temperature {GPU2} 0": {"missing": "lost", "detail": "NVML 16: GPU requires a reset"}
    }
    spec = changed(tmp_path, facts)
    assert status(spec, "gpu.lost") == "skip dependency-failed"
    assert status(spec, "gpu.reset-required") == "fail"
    assert status(spec, "gpu.reset-required", "0000:06:00.0").startswith("skip")
