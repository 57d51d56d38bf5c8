"""Two readings of the counters: in a recording, within a window, and against the state file of an earlier run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.assessment.health import within
from dgxcheck.assessment.last_run import RENEWED_AFTER_S, Present, last_run
from dgxcheck.checks.engine.box import Growth
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.engine.growth import counter_growth, duration
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli import main
from dgxcheck.components.device_facts import GpuView
from dgxcheck.facts.missing import BadInput, Gap, Json, Missing
from dgxcheck.source import state_file
from dgxcheck.source.protocol import Source
from dgxcheck.source.recording.load import open_source
from dgxcheck.survey import COUNTERS, Snapshot, survey

GONE = Missing(Gap.TIMEOUT, "x")


@given(st.integers(0), st.integers(0))
def test_growth_is_never_negative(old: int, new: int) -> None:
    found = counter_growth(old, new)
    assert found == (new - old if new >= old else None)


def test_what_is_missing_has_not_grown() -> None:
    assert counter_growth(GONE, 3) is counter_growth(3, GONE) is GONE


def read(spec: str = "dgx-1-v100") -> tuple[Source, Snapshot]:
    source = open_source(spec)
    return source, survey(source, ("host", "gpu"))


def since_last_run(source: Source, facts: Snapshot, path: str | None) -> Growth | Judgement:
    return last_run(source, facts, path, Present(counts={}, accepted=False)).growth


def test_a_recording_compares_its_moments() -> None:
    source = open_source("dgx-1-v100")
    growth = within(source, survey(source, COUNTERS), 1e9)
    assert isinstance(growth, Growth)
    assert growth.seconds > 0
    assert growth.how == f"within {growth.seconds:g} s"
    assert not isinstance(growth.new.gpu_counters, Missing)


def test_a_recording_of_one_moment_is_no_history(tmp_path: Path) -> None:
    path = tmp_path / "box.json"
    document = {"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "later": []}
    path.write_text(json.dumps(document), encoding="utf-8")
    source = open_source(str(path))
    growth = within(source, survey(source, COUNTERS), 1)
    assert isinstance(growth, Judgement)
    assert growth.reason == "not-recorded"


def at(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(state_file, "now", lambda: (seconds, "2026-11-21T00:00:00Z"))


def test_the_second_run_compares_with_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "deep" / "counters.json"
    at(monkeypatch, 100)
    first = since_last_run(*read(), str(file))
    assert isinstance(first, Judgement)
    assert (first.reason, first.message) == ("no-history", "no earlier run: the next run compares with this one")
    assert file.stat().st_mode & 0o777 == 0o644
    written = file.read_text(encoding="utf-8")
    at(monkeypatch, 160)
    second = since_last_run(*read(), str(file))
    assert isinstance(second, Growth)
    assert (second.seconds, second.how) == (60, "since 2026-11-21T00:00:00Z")
    assert second.old == second.new
    assert file.read_text(encoding="utf-8") == written
    at(monkeypatch, 100 + RENEWED_AFTER_S)
    assert isinstance(since_last_run(*read(), str(file)), Growth)
    assert file.read_text(encoding="utf-8") != written


@pytest.mark.parametrize(("minutes", "least", "most"), [
    (5, 60, 120), (59, 60, 180), (61, 61, 61), (1440, 1440, 1440),
])  # fmt: skip
def test_after_the_first_hour_no_run_sees_less(
    minutes: int, least: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen = tmp_path / "counters.json", []
    for run in range(30):
        at(monkeypatch, 100 + 60 * minutes * run)
        found = since_last_run(*read(), str(file))
        if run * minutes >= 60:
            assert isinstance(found, Growth)
            seen.append(found.seconds / 60)
    assert least <= min(seen) <= max(seen) <= most


def test_counters_are_compared_with_those_of_that_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, overlay = tmp_path / "counters.json", tmp_path / "overlay.json"
    old = []
    for hour in range(5):
        facts: dict[str, Json] = {"nvml nvmlDeviceGetPcieReplayCounter 0000:06:00.0": 1000 + hour}
        overlay.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts}))
        at(monkeypatch, 100 + 3600 * hour)
        found = since_last_run(*read(str(overlay)), str(file))
        if isinstance(found, Growth):
            old.append([getattr(GpuView(each, "0000:06:00.0").counters, "pcie_replays", None)
                        for each in (found.old, found.new)])  # fmt: skip
    assert old == [[1000, 1001], [1001, 1002], [1002, 1003], [1003, 1004]]


@pytest.mark.parametrize(
    ("key", "value"),
    [("text /proc/sys/kernel/random/boot_id", "other\n"), ("nvml nvmlSystemGetDriverVersion", "575.1")],
)
def test_another_boot_or_driver_begins_anew(
    key: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, overlay = tmp_path / "counters.json", tmp_path / "overlay.json"
    at(monkeypatch, 100)
    since_last_run(*read(), str(file))
    document = {"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": {key: value}}
    overlay.write_text(json.dumps(document), encoding="utf-8")
    at(monkeypatch, 200)
    found = since_last_run(*read(str(overlay)), str(file))
    assert isinstance(found, Judgement)
    assert found.message.startswith("no earlier run with this driver since the last boot: the next run")
    assert isinstance(state_file.read(str(file)), state_file.Reading)
    at(monkeypatch, 150)  # a clock of another boot
    assert isinstance(since_last_run(*read(str(overlay)), str(file)), Judgement)


HEAD = '{"schema": "dgxcheck/recording/1", "facts": {}'


@pytest.mark.parametrize("text", ["", "{}", "no JSON", f"{HEAD}}}", f'{HEAD}, "state": {{"at_s": "x"}}}}'])
def test_a_file_that_is_no_state_is_replaced_only_in_the_usual_place(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", f"{tmp_path}:/elsewhere")
    file = tmp_path / "counters.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="json: not a state file of dgxcheck health, or a damaged one"):
        since_last_run(*read(), str(file))
    assert file.read_text(encoding="utf-8") == text
    assert state_file.default_path() == str(file)
    assert isinstance(since_last_run(*read(), None), Judgement)
    assert isinstance(since_last_run(*read(), None), Growth)


def test_what_makes_no_sense_in_the_file_is_no_answer_of_the_driver(tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    since_last_run(*read(), str(file))
    document = json.loads(file.read_text())
    document["facts"]["nvml nvmlDeviceGetPcieReplayCounter 0000:06:00.0"][""] = "x"
    document["state"]["at_s"] -= 60
    file.write_text(json.dumps(document))
    found = since_last_run(*read(), str(file))
    assert isinstance(found, Growth)
    replays = GpuView(found.old, "0000:06:00.0").counters
    assert not isinstance(replays, Missing)
    assert isinstance(replays.pcie_replays, Missing)
    assert replays.pcie_replays.gap is Gap.UNRECORDED


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    file = str(tmp_path / "file" / "counters.json")
    found = last_run(*read(), file, Present(counts={}, accepted=False))
    assert isinstance(found.growth, Judgement)
    assert (found.growth.message, found.trouble) == ("no earlier run", f"{file} cannot be written: File exists")


def test_no_recording_is_written_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    main(["health", "--from", "dgx-1-v100"])
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("more", [["-e"], ["--window", "1"], ["--state", "x"]])
def test_quick_goes_with_nothing_that_takes_time(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "-q", *more, "--from", "dgx-1-v100"]) == 3
    assert "-q reads the state only once" in capsys.readouterr().err


def test_the_live_machine_keeps_its_counters(served: Any, standin: Path, tmp_path: Path) -> None:
    box = served("dgx-1-v100")
    given = box.environment(standin, STATE_DIRECTORY=str(tmp_path))
    assert box.live(given, "health").code == 0
    reading = state_file.read(str(tmp_path / "counters.json"))
    assert reading is not None
    assert reading.driver
    assert box.live(given, "health", "-q").code == 0
    before = (tmp_path / "counters.json").read_bytes()
    assert box.live(given, "health").code == 0
    assert (tmp_path / "counters.json").read_bytes() == before


def test_a_driver_that_is_silent_for_once_costs_no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, overlay = tmp_path / "counters.json", tmp_path / "overlay.json"
    at(monkeypatch, 100)
    since_last_run(*read(), str(file))
    before = file.read_bytes()
    facts = {"nvml nvmlInit": {"missing": "timeout"}}
    overlay.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts}))
    at(monkeypatch, 10_000)
    assert isinstance(since_last_run(*read(str(overlay)), str(file)), Growth)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("seconds", "due"),
    [
        (0.25, "0.25 s"),
        (10.0034, "10 s"),
        (60, "60 s"),
        (119, "119 s"),
        (120, "2 minutes"),
        (3600, "60 minutes"),
        (7200, "2 hours"),
        (172799, "48 hours"),
        (172800, "2 days"),
        (2592000, "30 days"),
    ],
)
def test_a_time_is_told_as_people_read_it(seconds: float, due: str) -> None:
    assert duration(seconds) == due


def test_checks_that_rest_on_counters() -> None:
    assert {check.id for check in CHECKS if check.witness == "counters"} == {
        "network.port-errors", "network.transport-errors", "nvlink.errors", "nvlink.switch-port", "pcie.aer",
        "pcie.replay", "power.violation",
    }  # fmt: skip
