"""Where events go: lines, journal, metrics, table, systemd, the site's program."""

from __future__ import annotations

import json
import os
import socket
import time
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest
from clock import SPARE
from prometheus_client.parser import text_string_to_metric_families

from dgxcheck.checks.engine.finding import Status
from dgxcheck.cli.watch_sinks import JournalSink, MetricsSink, ProgramSink, TableSink
from dgxcheck.output import watch
from dgxcheck.output.watch import json_line, text_line
from dgxcheck.watch.dispatcher import Dispatcher
from dgxcheck.watch.event import Event, ReportedEvent
from dgxcheck.watch.hook import MOST_RUNNING, MOST_WAITING, Hook
from dgxcheck.watch.memory import BadFinding, LastJudgement, Memory
from dgxcheck.watch.readings import changes
from dgxcheck.watch.systemd import Notifier

DATE = "2026-11-22T10:00:00Z"
EVENT = Event(kind="xid", status=Status.FAIL, bdf="0000:0a:00.0", code="79", text="Xid 79 (\x1b[31mgone)\nNAME=forged")
TOLD = ReportedEvent(EVENT, DATE, 1)


def known(*events: Event) -> Memory:
    memory = Memory()
    assert [*memory.ledger.take(events or (EVENT,), 1.0, DATE)]
    bad = {"pcie.width/x": BadFinding("fail", "x", "x8 of x16")}
    memory.judged = LastJudgement(verdict="fail", date=DATE, findings=bad)
    return memory


def test_lines_hold_no_control_characters() -> None:
    assert text_line(TOLD) == f"{DATE}  FAIL  0000:0a:00.0  Xid 79 (\ufffd[31mgone)\ufffdNAME=forged"
    assert json.loads(json_line(TOLD))["text"] == "Xid 79 (\ufffd[31mgone)\ufffdNAME=forged"
    repeated = ReportedEvent(EVENT, "", 12)
    assert text_line(repeated).startswith("[    0.000000]  FAIL")
    assert text_line(repeated).endswith("(1 more, 12 in all)")


@pytest.mark.parametrize(("name", "old", "new", "due"), [
    ("width 0000:0a:00.0", 16, 0, "PCIe link down, was x16"),
    ("width 0000:0a:00.0", 0, 16, "PCIe link x16, was down"),
    ("aer correctable 0000:0a:00.0", 8, 38, "38 correctable PCIe errors (+30)"),
    ("edac uncorrected mc0", 0, 1, "1 uncorrected memory error at mc0 (+1)"),
    ("port symbol_error mlx5_0/1", 8, 38, "mlx5_0/1: symbol_error 38 (+30)"),
])  # fmt: skip
def test_readings_are_worded_with_their_growth(name: str, old: int, new: int, due: str) -> None:
    (event,) = changes({name: old}, {name: new})
    assert text_line(ReportedEvent(event, DATE, 1 if event.kind == "link" else 31)).endswith(f"  {due}")


def test_an_entry_of_the_journal_has_fields_that_nobody_can_forge() -> None:
    fields = dict(line.split("=", 1) for line in watch.journal_entry(TOLD).decode().splitlines())
    assert "NAME" not in fields
    assert (fields["GPU_BDF"], fields["DGXCHECK_ID"], fields["PRIORITY"]) == ("0000:0a:00.0", "79", "2")


def test_the_journal_gets_a_datagram(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
        there.bind(str(tmp_path / "socket"))
        JournalSink(str(tmp_path / "socket")).tell(TOLD)
        assert there.recv(4096) == watch.journal_entry(TOLD)


def test_a_journal_that_is_gone_leaves_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    JournalSink(str(tmp_path / "socket")).tell(TOLD)
    assert json.loads(capsys.readouterr().out)["code"] == "79"


def test_metrics_are_read_by_prometheus() -> None:
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(watch.metrics(known(EVENT, EVENT)))
        for sample in family.samples
    }
    assert found["dgxcheck_watch_events_total", "00000000:0A:00.0", "xid", "79"] == 2
    assert found["dgxcheck_watch_event_status", "00000000:0A:00.0", "xid", "79"] == 2
    seen = found["dgxcheck_watch_event_timestamp_seconds", "00000000:0A:00.0", "xid", "79"]
    assert seen == found["dgxcheck_watch_judged_timestamp_seconds",]
    assert found["dgxcheck_watch_verdict",] == 2
    assert found["dgxcheck_watch_judged_timestamp_seconds",] == 1795341600
    assert found["dgxcheck_watch_findings", "fail"] == 1
    assert "watch_findings{" not in watch.metrics(Memory()), "of no judgement"


def at_times(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
    """The sinks read these times, one after the other."""
    times = iter(seconds)
    monkeypatch.setattr("dgxcheck.cli.watch_sinks.time", SimpleNamespace(monotonic=lambda: next(times)))


def test_metrics_are_written_at_most_twice_a_minute_and_soon_after_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "dgxcheck.prom"
    sink = MetricsSink(str(file))
    at_times(monkeypatch, 100.0, 100.0, 129.9, 130.0, 130.0, 131.0, 131.5, 132.0, 132.0)
    written = []
    for told in (False, False, False, True, False):
        if told:
            sink.tell(TOLD)
        sink.show(known())
        written.append(file.exists())
        file.unlink(missing_ok=True)
    assert written == [True, False, True, False, True]


def test_the_loop_comes_around_when_metrics_are_due_or_a_program_runs(tmp_path: Path) -> None:
    metrics, program = MetricsSink(str(tmp_path / "x.prom")), ProgramSink(script(tmp_path, "cat"))
    dispatcher = Dispatcher(str(tmp_path / "watch.json"), [metrics, program])
    metrics.show(known())
    assert dispatcher.due > time.monotonic() + 10
    dispatcher.note("x", "y")
    dispatcher.save(now=True)
    assert dispatcher.due <= time.monotonic() + 0.5, "the program runs"
    program.finish(SPARE)
    assert dispatcher.due <= time.monotonic() + 1.0, "the metrics are old"
    assert Dispatcher(str(tmp_path / "watch.json"), []).due == inf


def test_metrics_that_cannot_be_written_are_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = MetricsSink(str(tmp_path / "none/dgxcheck.prom"))
    at_times(monkeypatch, 0.0, 0.0, 40.0, 40.0, 80.0, 80.0, 120.0, 120.0)
    sink.show(known())
    sink.show(known())
    assert capsys.readouterr().err.count("cannot be written") == 1
    (tmp_path / "none").mkdir()
    sink.show(known())
    assert "dgxcheck_watch_verdict 2" in (tmp_path / "none/dgxcheck.prom").read_text()
    assert capsys.readouterr().err == ""


def test_the_table_is_drawn_once_a_second_and_at_an_event(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = TableSink()
    at_times(monkeypatch, 100.0, 100.0, 100.5, 100.6, 100.6)
    drawn = []
    for told in (False, False, True):
        if told:
            sink.tell(TOLD)
        sink.show(known())
        drawn.append("Xid 79" in capsys.readouterr().out)
    assert drawn == [True, False, True]


@pytest.mark.parametrize(("text", "due"), [
    (None, "cannot be started"), ("exit 3", "hook: exit 3"), ("kill -11 $$", "hook: SIGSEGV"),
    ("sleep 60", "hook: not done within 0.1 s"), ("cat", ""),
])  # fmt: skip
def test_what_became_of_the_program_of_the_site_is_said_once(
    text: str | None, due: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = str(tmp_path / "nothing") if text is None else script(tmp_path, text)
    sink = ProgramSink(program)
    sink.hook = Hook(program, 0.1 if due.endswith("0.1 s") else SPARE)
    for _ in range(2):
        sink.tell(TOLD)
        sink.finish(SPARE)
        sink.show(known())
    said = capsys.readouterr().err
    assert (said.count(due), said.count("\n")) == (1, 1) if due else said == ""


@pytest.mark.parametrize("size", [(80, 24), (40, 10), (20, 3), (200, 60)])
def test_the_table_fits_the_terminal(size: tuple[int, int]) -> None:
    wide = "x" * 90
    many = [Event(kind="xid", status=Status.WARN, bdf="0000:0a:00.0", code=str(each), text=wide) for each in range(50)]
    drawn = watch.table(known(*many), DATE, *size).splitlines()
    assert len(drawn) < size[1]
    assert max(map(len, drawn)) <= size[0]
    assert "\x1b" not in "".join(drawn)


def test_systemd_hears_of_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"\0dgxcheck-test-{os.getpid()}"
        manager.bind(name)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name[1:]}")
        monkeypatch.setenv("WATCHDOG_USEC", "40000")
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
        notifier = Notifier()
        notifier.alive()
        notifier.alive()  # too early
        time.sleep(0.03)
        notifier.alive()
        notifier.say("STOPPING=1")
        assert [manager.recv(99) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_without_systemd_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.setenv("WATCHDOG_USEC", "40000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    notifier = Notifier()
    notifier.alive()
    assert notifier.due is None


def script(folder: Path, text: str) -> str:
    path = folder / "hook"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def finished(hook: Hook) -> None:
    until = time.monotonic() + 10
    while hook.busy and time.monotonic() < until:
        hook.turn()
        time.sleep(0.01)
    assert not hook.busy


def test_the_program_gets_every_event_on_stdin(tmp_path: Path) -> None:
    hook = Hook(script(tmp_path, f"cat >> {tmp_path}/got"))
    for number in range(6):
        hook.give(json.dumps({"number": number}))
    finished(hook)
    lines = (tmp_path / "got").read_text().splitlines()
    assert sorted(json.loads(line)["number"] for line in lines) == [*range(6)]
    assert (hook.dropped, hook.trouble) == (0, "")


def test_the_failure_of_one_of_two_runs_is_reported_as_what_it_was(tmp_path: Path) -> None:
    hook = Hook(script(tmp_path, "exit $(cat)"), seconds=0.3)
    for code in ("3", "0"):
        hook.give(code)
    time.sleep(0.6)  # longer than a run may take: both ended by themselves
    hook.turn()
    assert hook.trouble.endswith(": exit 3")


def test_a_program_that_hangs_is_killed_and_what_waits_too_long_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("dgxcheck.watch.hook.time", SimpleNamespace(monotonic=lambda: now, sleep=time.sleep))
    hook = Hook(script(tmp_path, "sleep 60"), seconds=30.0)
    for _ in range(2 * MOST_WAITING):
        hook.give("{}")
    assert hook.dropped == MOST_WAITING - MOST_RUNNING
    now, until = 30.0, time.monotonic() + SPARE
    while not hook.trouble and time.monotonic() < until:
        hook.turn()
    assert hook.trouble.endswith("not done within 30 s")
    hook.finish(0.0)


def test_the_last_events_are_still_given_as_the_watch_ends(tmp_path: Path) -> None:
    hook = Hook(script(tmp_path, f"sleep 0.2; cat >> {tmp_path}/got"))
    for _ in range(MOST_RUNNING + 1):
        hook.give("{}")
    hook.finish(20.0)
    assert (tmp_path / "got").read_text().split() == ["{}"] * (MOST_RUNNING + 1)


def test_a_program_that_cannot_be_started_is_said(tmp_path: Path) -> None:
    hook = Hook(str(tmp_path / "nothing"))
    hook.give("{}")
    assert "cannot be started" in hook.trouble
    assert hook.dropped == 1
