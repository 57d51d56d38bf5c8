"""One input has so much CPU time: then reading ends, what was read is judged, and that is said."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from smi_texts import STATION

from dgxcheck.assessment.health import assess
from dgxcheck.assessment.importing.bundle import open_bundle
from dgxcheck.assessment.importing.recording import open_text
from dgxcheck.assessment.request import Request
from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.fleet.document import RESULT
from dgxcheck.fleet.node_names import racks_of
from dgxcheck.fleet.reading import Unread, documents
from dgxcheck.input_file import CpuTime
from dgxcheck.limits import READ_CPU_S
from dgxcheck.settings import Settings
from dgxcheck.source.kernel_log.saved import load, times
from dgxcheck.watch.log_events import replayed

EXCEEDED = f"not read to its end: {READ_CPU_S} s of CPU time are spent"
XID = "[{0}.500000] NVRM: Xid (PCI:0000:06:00): {0}, pid=17, name=a\n"


def clock(step: float = 1.0) -> Callable[[], float]:
    """Each look at it takes so many seconds."""
    return partial(next, count(0.0, step))


def test_what_is_within_the_time_is_read() -> None:
    time = CpuTime(clock())
    assert [*time.within(range(READ_CPU_S))] == [*range(READ_CPU_S)]
    assert not time.exceeded
    time.more(1)
    assert [*time.within("abc")] == ["a"]
    assert time.exceeded == EXCEEDED
    assert [*time.within("d")] == []


def endless() -> list[object]:
    return [re.match("(a+)+b", "a" * 64)]


def test_a_match_that_does_not_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dgxcheck.input_file.READ_CPU_S", 0.1)
    time = CpuTime()
    assert time.whole("x", lambda: time.of(lambda: "ab")) == ("a", "b")
    assert not time.exceeded
    assert time.of(endless) == ()
    assert time.exceeded == EXCEEDED
    with pytest.raises(BadInput, match=f"x: {EXCEEDED}"):
        time.whole("x", endless)
    with pytest.raises(BadInput, match=f"fleet.rack_pattern: {EXCEEDED}"):
        racks_of(["n" * 64], Settings(rack_pattern="((?:n+)+)!"))
    assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_in_a_thread_that_no_signal_reaches_is_read_all_the_same() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(CpuTime().of, lambda: "ab").result() == ("a", "b")


def test_of_a_text_what_the_first_readers_found_counts(tmp_path: Path) -> None:
    path = tmp_path / "pasted"
    path.write_text(STATION + "\n" + XID.format(79))
    whole, part = open_text(str(path)), open_text(str(path), clock=clock(READ_CPU_S / 25))
    assert whole is not None
    assert part is not None
    assert whole.origin.note == ""
    assert not isinstance(whole.kernel_log(), Missing)
    assert part.origin.note == EXCEEDED
    assert isinstance(part.kernel_log(), Missing)
    assert {*part.lines} == {line for line in whole.lines if line != "kmsg"}


def test_of_a_bundle_what_was_read_counts(tmp_path: Path) -> None:
    for name in ("1.txt", "2.txt"):
        (tmp_path / name).write_text(STATION)
    assert open_bundle(str(tmp_path)).origin.note == ""
    assert open_bundle(str(tmp_path), clock=clock(READ_CPU_S / 30)).origin.note == EXCEEDED
    with pytest.raises(BadInput, match="contains no output"):
        open_bundle(str(tmp_path), clock=clock(READ_CPU_S + 1))


def test_of_a_log_that_ends_early_faults_count_and_nothing_else_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dmesg"
    path.write_text("".join(XID.format(number) for number in range(1, 101)))
    log = load(str(path), lambda _, raw, time: times(raw, time), clock())
    assert (len(log.lines), log.cut) == (READ_CPU_S, EXCEEDED)
    path.write_text("[    1.000000] NVRM: loading NVIDIA UNIX\n" * (READ_CPU_S + 1))
    given = Request(kernel_log=str(path), only=("kernel", "report"))
    assert assess("dgx-1-v100", given).verdict is Status.PASS
    monkeypatch.setattr("dgxcheck.readers.kernel_log.excerpt.load", lambda path, read: load(path, read, clock()))
    found = assess("dgx-1-v100", given)
    assert found.verdict is Status.UNKNOWN
    assert [each.judgement.message for each in found.findings if EXCEEDED in each.judgement.message]
    with pytest.raises(BadInput, match=EXCEEDED):
        [*replayed(str(path))]


def test_a_result_earns_time_and_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    result = f'{{{{"schema": "{RESULT}", "number": {{}}}}}}\n'
    path.write_text("".join(map(result.format, range(1000))))
    assert len([*documents([str(path)], clock(0.01))]) == 1000
    for line in ('{{"number": {}}}\n', "{}\n", "x{}\n"):
        path.write_text(result.format(0) + "".join(map(line.format, range(1000 * READ_CPU_S))))
        *found, more, said = documents([str(path)], clock(0.01))
        assert len(found) == 4
        assert isinstance(more, Unread)
        assert re.fullmatch(r"299\d more lines hold no result", more.why)
        assert said == Unread(str(path), EXCEEDED)
