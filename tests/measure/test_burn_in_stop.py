"""When a burn-in ends by itself, what is kept of its samples, and how its time is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.cli import main
from dgxcheck.cli.options import parsed
from dgxcheck.facts.kernel_log import KernelLog, OffBus, Xid, with_overwritten
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.measure.burn_in.events import MOST, Event, Events, Listener
from dgxcheck.measure.burn_in.polling import Poll
from dgxcheck.measure.burn_in.result import BurnInResult, drift
from dgxcheck.measure.burn_in.stop_rules import Sample, SlowdownThresholds, Stop, grown, stop_for_log, stop_for_samples
from dgxcheck.output.progress import clock

GPU, OTHER = "0000:06:00.0", "0000:07:00.0"
KNOWN = SlowdownThresholds(degrees={GPU: 87, OTHER: 87}, margins={})
BY_MARGIN = SlowdownThresholds(degrees={}, margins={GPU: -2})
BRAKE, THERMAL, SLOWDOWN, SOFTWARE, CAP = 0x80, 0x40, 0x8, 0x20, 0x4


class Silent(Listener):
    """Listens to nothing."""

    def sample(self, at: float, sample: Mapping[str, Any]) -> None:
        return

    def event(self, at: float, event: Event) -> None:
        return

    def progress(self, elapsed: float, step: str) -> None:
        return

    def new_findings(self, poll: Poll) -> Sequence[Event]:
        return ()


def sample(at: float = 0.0, **row: Any) -> Sample:
    calm = {"temperature": 60, "reasons": 0, "dbe": 0, "lost": False, "sm_clock": 1400, "power_w": 290.0}
    return {"at": at, "gpus": {GPU: {**calm, **row}, OTHER: calm}, "aer": {}}


def stop(*recent: Sample, known: SlowdownThresholds = KNOWN, first: Sample | None = None) -> Stop | None:
    return stop_for_samples(first or sample(), recent, known)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"temperature": 83}, None),
        ({"temperature": 84}, "near-slowdown"),
        ({"temperature": 95}, "near-slowdown"),
        ({"temperature": None}, None),
        ({"dbe": 1}, "memory-error"),
        ({"dbe": None}, None),
        ({"lost": True, "temperature": None}, "vanished"),
        ({"reasons": BRAKE | SLOWDOWN}, None),
    ],
)
def test_one_sample_ends_the_load(row: dict[str, Any], reason: str | None) -> None:
    found = stop(sample(1.0, **row))
    assert (found.reason if found else None) == reason
    assert found is None or found.gpu == GPU


@pytest.mark.parametrize(("seconds", "first", "due"), [
    (29, {}, None), (31, {}, ("unwatched", GPU)), (31, {"temperature": None}, None),
    (31, {"temperature": None, "margin": 40}, ("unwatched", GPU)),
])  # fmt: skip
@pytest.mark.parametrize("blind", [None, 0, -40])
def test_a_gpu_that_tells_no_temperature_any_more_is_not_loaded_unseen(
    blind: int | None, seconds: int, first: dict[str, Any], due: tuple[str, str] | None
) -> None:
    samples = [sample(float(at), temperature=60 if at == 0 else blind) for at in range(seconds + 1)]
    found = stop(*samples[1:], first=sample(**first))
    assert (None if found is None else (found.reason, found.gpu)) == due
    assert stop(*samples, sample(seconds + 1.0), first=sample(**first)) is None


def test_events_of_pcie_errors_leave_room_for_others() -> None:
    events = Events(Silent())
    for _ in range(1000):
        events.note("aer", GPU, "1 new correctable PCIe error")
    events.note("stopped", GPU, "gone", "fail")
    found = [(each["event"], each["text"]) for each in events.all() if isinstance(each, dict)]
    assert len(found) == MOST // 2 + 2
    assert found[-2:] == [("stopped", "gone"), ("note", f"{1000 - MOST // 2} more events, not recorded")]


def test_what_the_kernel_overwrote_is_kept() -> None:
    old = replace(log(xid(74, seconds=10.0), xid(31, seconds=50.0)), begins=1.0)
    new = replace(log(xid(31, seconds=50.0), xid(13, seconds=90.0)), begins=40.0)
    both = with_overwritten(old, new)
    assert ([each.number for each in both.xids], both.begins) == ([74, 31, 13], 1.0)
    assert with_overwritten(both, new) == both
    for other in (Missing(Gap.DENIED, "/dev/kmsg"), replace(log(), begins=40.0)):
        assert with_overwritten(other, new) == new


def test_errors_from_before_the_load_end_nothing() -> None:
    assert stop(sample(1.0, dbe=7), first=sample(dbe=7)) is None
    found = stop(sample(1.0, dbe=9), first=sample(dbe=7))
    assert found is not None
    assert "2 new" in found.text
    assert stop(sample(1.0, dbe=0), first=sample(dbe=7)) is None


@pytest.mark.parametrize(("margin", "ends"), [(40, False), (2, False), (1, True), (-2, True), (None, False)])
def test_boards_that_tell_margins_are_held_to_them(margin: int | None, ends: bool) -> None:
    found = stop(sample(1.0, temperature=100, margin=margin), known=BY_MARGIN)
    assert (found is not None and found.reason == "near-slowdown") is ends


@pytest.mark.parametrize(
    ("masks", "ends"),
    [
        ([BRAKE] * 11, "power brake"),
        ([THERMAL | SLOWDOWN] * 11, "hardware thermal slowdown"),
        ([SLOWDOWN] * 11, "hardware slowdown"),
        ([BRAKE] * 5 + [THERMAL] * 6, "hardware thermal slowdown"),
        ([BRAKE] * 10, None),
        ([BRAKE] * 5 + [0] + [BRAKE] * 10, None),
        ([BRAKE] * 20 + [0], None),
        ([SOFTWARE | CAP] * 30, None),
        ([None] * 30, None),
    ],
)
def test_the_hardware_may_hold_clocks_down_for_ten_seconds(masks: list[int | None], ends: str | None) -> None:
    found = stop(*(sample(float(second), reasons=mask) for second, mask in enumerate(masks)))
    if ends is None:
        assert found is None
    else:
        assert found == Stop("slowdown", GPU, f"{ends} for 10 s")


def log(*xids: Xid, off_bus: tuple[OffBus, ...] = ()) -> KernelLog:
    return KernelLog(where="/dev/kmsg", begins=0.0, xids=xids, sxids=(), off_bus=off_bus, pcie=())


def xid(number: int, bdf: str = GPU, seconds: float = 5.0) -> Xid:
    return Xid(bdf=bdf, number=number, seconds=seconds, pid=None, process="", part="", text="x", line="", past=False)


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (log(xid(48)), "xid"),
        (log(xid(79)), "xid"),
        (log(xid(13)), None),
        (log(xid(48, "0000:99:00.0")), None),
        (log(xid(48, seconds=1.0)), None),
        (log(xid(48, seconds=1.0), xid(48, seconds=9.0)), "xid"),
        (log(off_bus=(OffBus(bdf=GPU, seconds=5.0, xid=False, line="", past=False),)), "off-bus"),
        (Missing(Gap.DENIED, "/dev/kmsg"), None),
    ],
)
def test_only_a_new_fatal_xid_of_a_loaded_gpu_ends_the_load(new: KernelLog | Missing, reason: str | None) -> None:
    found = stop_for_log(log(xid(48, seconds=1.0)), new, (GPU, OTHER))
    assert (found.reason if found else None) == reason


def test_a_log_that_could_not_be_read_before_ends_nothing() -> None:
    assert stop_for_log(Missing(Gap.DENIED, "/dev/kmsg"), log(xid(79)), (GPU,)) is None


@given(st.lists(st.floats(min_value=0.1, max_value=1e3), max_size=60))
def test_drift_compares_the_ends(rates: list[float]) -> None:
    found = drift(rates)
    assert (found is None) is (len(rates) < 5)
    if found is not None:
        part = len(rates) // 5
        assert min(rates[:part]) - 0.001 <= found[0] <= max(rates[:part]) + 0.001
        assert min(rates[-part:]) - 0.001 <= found[1] <= max(rates[-part:]) + 0.001


def test_what_was_seen_is_counted() -> None:
    seen = BurnInResult(GPU)
    seen.start = {"value": 1 << 30, "peer": OTHER, "turns": ["power", "host"], "how": "simulated", "tool": "x"}
    seen.first = {"dbe": 1, "sbe": 2, "replays": None}
    for second in range(10):
        row = {"reasons": CAP if second < 4 else 0, "sm_clock": 1000 + second, "temperature": 50 + second}
        seen.sample({**row, "power_w": 100.0, "dbe": 1, "sbe": 5, "replays": 3}, settled=second >= 2)
    for cycle in range(10):
        seen.turn("power", {"compute": 14.0})
        seen.turn("host", {"host-to-device": 12.0 if cycle < 5 else 10.0, "wrong": 0})
        seen.turn("memory", {"wrong": cycle == 3 and 7, "checked": 100, "first": None})
        seen.turn("peer", {"skipped": "busy", "detail": "full"})
    fact: Any = json.loads(json.dumps(seen.fact(60.04, KNOWN)))
    assert (fact["value"], fact["unit"], fact["how"]) == (60.0, "s", "simulated")
    assert (fact["wrong"], fact["wrong_in"], fact["cycles"]) == (7, {"memory": 7}, 10)
    assert fact["sm_clock"] == {"min": 1002, "median": 1005.5}
    assert fact["throttled"] == {"power cap": 0.4}
    assert (fact["temperature_max"], fact["power_max"], fact["slowdown_at"]) == (59, 100.0, 87)
    assert (fact["dbe"], fact["sbe"], fact["replays"]) == (0, 3, None)
    assert fact["drift"] == {"compute": [14.0, 14.0], "host-to-device": [12.0, 10.0]}


@pytest.mark.parametrize(("old", "new", "due"), [(1, 3, 2), (3, 1, None), (None, 3, None), (3, None, None), (2, 2, 0)])
def test_a_counter_that_falls_has_not_grown(old: int | None, new: int | None, due: int | None) -> None:
    assert grown({"sbe": old}, {"sbe": new}, "sbe") == due


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1h0m5s", 3605), (" 5m ", 300)],
)
def test_times_that_people_write(text: str, seconds: int) -> None:
    assert parsed(text) == seconds


@given(st.integers(0, 999), st.integers(0, 999), st.integers(0, 999))
def test_parts_of_a_time_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert parsed(f"{hours}h{minutes}m{seconds}s") == 3600 * hours + 60 * minutes + seconds


@pytest.mark.parametrize(
    "text", ["", "30", "m", "1.5h", "30m1h", "-5m", "5 m", "1h 30m", "5x", "nan", "٣m", "9999999s"]
)
def test_what_is_no_time_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed(text) is None
    assert main(["health", f"--duration={text}"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "is not a time; write it as 90s, 30m, 2h or 1h30m" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("text", ["0s", "169h", "999999h"])
def test_a_time_has_its_bounds(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--duration", text]) == 3
    assert "is not between 1s and 168h" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["-q"], "-q"),
        (["--from", "dgx-1-v100"], "--from"),
        (["--window", "5"], "--window"),
        (["--state", "x"], "--state"),
        (["--kernel-log", "x"], "--kernel-log"),
    ],
)
def test_it_goes_with_the_machine_alone(more: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--duration", "30m", *more]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith(f"it cannot be combined with {named}\n")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(("seconds", "due"), [(5345, "1:29:05"), (247, "4:07"), (0, "0:00"), (-3, "0:00")])
def test_the_time_left_is_readable(seconds: float, due: str) -> None:
    assert clock(seconds) == due
