"""The engine of the checks: statuses, verdict, selection, thresholds, and what hides a GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dgxcheck.checks.catalogue import CHECKS, PROBES
from dgxcheck.checks.check import HOST, Box, Check
from dgxcheck.checks.finding import Judgement, Status, Subject
from dgxcheck.checks.gaps import unjudged
from dgxcheck.checks.run import run, verdict
from dgxcheck.cli import main
from dgxcheck.reading import Gap, Json, Missing
from dgxcheck.source.library import open_source
from dgxcheck.survey import survey
from dgxcheck.topology.build import build

GPU2 = "0000:0a:00.0"
NVML = "nvml nvmlDeviceGet"


def box(spec: str) -> Box:
    facts = survey(open_source(spec), PROBES)
    topology = build(facts.pci, facts.infiniband, facts.gpu, facts.nvlink, facts.gpu_pairs, facts.numa)
    return Box(snapshot=facts, topology=topology, gpus=topology.gpus)


def changed(folder: Path, facts: dict[str, Json], base: str = "dgx-1-v100") -> str:
    path = folder / "fault.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": base, "facts": facts}), encoding="utf-8")
    return str(path)


def status(spec: str, check: str, bdf: str | None = GPU2) -> str:
    """``pass``, ``warn`` ..., with the reason of a skip."""
    (wanted,) = [each for each in CHECKS if each.id == check]
    (finding,) = [each for each in run(box(spec), [wanted]) if each.subject.bdf == bdf]
    return " ".join([finding.status.value, finding.judgement.reason]).rstrip()


@pytest.mark.parametrize(
    ("check", "facts", "due"),
    [
        ("ecc.retired-pages", {"RetiredPages {} 0": [{"address": n} for n in range(10)]}, "pass"),
        ("ecc.retired-pages", {"RetiredPages {} 0": [{"address": n} for n in range(11)]}, "warn"),
        ("ecc.retired-pages", {"RetiredPages {} 1": [{"address": n} for n in range(59)]}, "warn"),
        ("ecc.retired-pages", {"RetiredPages {} 1": [{"address": n} for n in range(60)]}, "fail"),
        ("ecc.volatile", {"TotalEccErrors {} 1 0": 1}, "fail"),
        ("ecc.aggregate", {"TotalEccErrors {} 1 1": 7}, "pass"),
        ("ecc.retirement-pending", {"RetiredPagesPendingStatus {}": 1, "TotalEccErrors {} 1 0": 1}, "fail"),
        ("thermal.temperature", {"Temperature {} 0": 82}, "pass"),
        ("thermal.temperature", {"Temperature {} 0": 83}, "warn"),
        ("thermal.temperature", {"Temperature {} 0": 86}, "warn"),
        ("thermal.temperature", {"Temperature {} 0": 87}, "fail"),
        ("power.limit", {"EnforcedPowerLimit {}": 299999}, "warn"),
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
        assert status(spec, "driver.responsive", None) == "fail"


def test_the_table_of_gaps_is_complete() -> None:
    assert {gap: unjudged(Missing(gap, "x")).status for gap in Gap if gap is not Gap.GARBLED} == {
        gap: Status.SKIP for gap in Gap if gap is not Gap.GARBLED
    }
    assert unjudged(Missing(Gap.GARBLED, "x")).status is Status.UNKNOWN


HANDLE = "nvml nvmlDeviceGetHandleByIndex 7"
LAST = "0000:8a:00.0"


@pytest.mark.parametrize(
    ("more", "due"),
    [
        ({}, "fail"),
        ({f"link /sys/bus/pci/devices/{LAST}/driver": "../../../../bus/pci/drivers/vfio-pci"}, "skip not-visible"),
        ({"opens /dev/nvidia7": {"missing": "denied", "detail": "Operation not permitted"}}, "skip not-visible"),
    ],
)
def test_a_gpu_is_lost_only_if_it_is_ours(more: dict[str, Json], due: str, tmp_path: Path) -> None:
    facts: dict[str, Json] = {"nvml nvmlDeviceGetCount": 7, HANDLE: {"missing": "unrecorded"}}
    spec = changed(tmp_path, facts | more)
    assert status(spec, "gpu.lost", LAST) == due
    assert status(spec, "ecc.volatile", LAST) == "skip dependency-failed"
    assert status(spec, "gpu.lost") == "pass"


def broken(_: Box) -> Iterator[tuple[Subject, Judgement]]:
    raise RuntimeError("no such thing")
    yield


def test_a_check_that_raises_is_unknown_and_stops_no_other() -> None:
    bad = Check(id="bad.one", rule="", source="", remedy="", judge=broken)
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
        capsys, "--only", "ecc", "--skip", "ecc.mode,ecc.row-remap", "-i", "2", "-v", "--from", "dgx-1-v100"
    )
    lines = out.partition("\n\n")[0].splitlines()
    assert [line.split()[1] for line in lines] == [
        "ecc.volatile", "ecc.aggregate", "ecc.retired-pages", "ecc.retirement-pending",
    ]  # fmt: skip
    assert all(GPU2 in line for line in lines)
    assert code == 0


def test_nothing_judged_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, "--only", "ecc.row-remap", "--from", "dgx-1-v100")
    assert code == 3
    assert "Verdict: unknown" in out
    assert "Nothing could be judged." in out
    assert "0 success, 0 errors, 0 warnings, 8 did not run\nOne or more tests didn't run.\n" in out


def test_a_required_check_that_skips_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, "--from", "dgx-1-v100", "--require", "ecc.mode")[0] == 0
    code, out, _ = asked(capsys, "--from", "dgx-1-v100", "--require", "ecc.row-remap")
    assert code == 3
    assert out.count("required, but not judged (not-supported)") == 8


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
        assert check.rule in out
        assert check.remedy in out


@pytest.mark.parametrize("option", ["--only", "--skip", "--require", "--explain"])
def test_an_unknown_check_names_the_near_one(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = asked(capsys, option, "ecc.volatil", "--from", "dgx-1-v100")
    assert (code, out) == (3, "")
    assert err == "dgxcheck: no check 'ecc.volatil'; did you mean ecc.volatile?\n"
