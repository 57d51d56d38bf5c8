"""What is fuzzed: functions of bytes that end with a value or with BadInput in one line, whatever the bytes are.

What is read of a file is also shown, written again and read again.
"""

from __future__ import annotations

import json
import os
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from dgxcheck.assessment.importing.recording import read
from dgxcheck.assessment.importing.texts import lines, text_of
from dgxcheck.assessment.machine import LAUNCH, examine, open_source
from dgxcheck.assessment.selection import of_site
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli.results import formats, renderer
from dgxcheck.fabric.judge import judge as judge_fabric
from dgxcheck.fabric.model import fabric_of
from dgxcheck.fabric.reading import outputs, plan
from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.facts.node_lists import unfolded
from dgxcheck.facts.record import replace
from dgxcheck.fleet.history import read as history_of_results
from dgxcheck.fleet.judge import judge
from dgxcheck.fleet.lemons import lemons
from dgxcheck.fleet.node_names import folded, racks_of
from dgxcheck.fleet.part_history import followed
from dgxcheck.launch import LOCAL_RANK, Placement, local_rank, of_rank, placements
from dgxcheck.output import watch
from dgxcheck.output.fleet import schedulers
from dgxcheck.output.plain_text import visible
from dgxcheck.output.report import FabricReport, FleetReport, HistoryReport
from dgxcheck.output.watch import json_line, text_line
from dgxcheck.profiles import library
from dgxcheck.settings import Settings
from dgxcheck.source import state_file
from dgxcheck.source.kernel_log import saved
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.config_space import publishable
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import log_facts, survey
from dgxcheck.watch import memory as watch_memory
from dgxcheck.watch.log_events import log_events
from dgxcheck.watch.log_follower import Kmsg
from dgxcheck.watch.memory import compared
from probes.pci.config_space import acs, control, express

Target = Callable[[bytes], object]


@cache
def _folder() -> str:
    return tempfile.mkdtemp(prefix="dgxcheck-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


@contextmanager
def _file(data: bytes, name: str) -> Iterator[str]:
    path = f"{_folder()}/{os.getpid()}-{name}"
    with open(path, "wb") as file:
        file.write(data)
    yield path


def recording(data: bytes) -> object:
    """A recording or overlay: what it holds can be read, and anonymized."""
    with _file(data, "box.json") as path:
        source = open_source(path)
    assert isinstance(source, RecordedSource)
    survey(source, ("pci", "gpu", "infiniband", "kernel_log"))
    return anonymized(source.lines, source.moments, b"key")


def bug_report(data: bytes) -> object:
    """A report or an archive."""
    with _file(data, "nvidia-bug-report.log.gz") as path:
        return survey(open_source(path), ("pci", "gpu", "kernel_log", "host"))


def text(data: bytes) -> object:
    """The output of another tool."""
    reading = read([text_of("text", lines(data, "text"))])
    assert all(0 <= number < len(reading.texts[0].lines) for number in reading.unread["text"])
    return reading


def kernel_log(data: bytes) -> object:
    """dmesg, journalctl or /dev/kmsg, as a probe reads it."""
    times = saved.times(data)
    if times is None:
        return None
    rows = {str(number): line for number, line in enumerate(relevant_lines(times))}
    return survey(RecordedSource({"kmsg": {**rows}}, Origin("recording")), ("kernel_log",))


def configuration(data: bytes) -> object:
    """The site's configuration."""
    with _file(data, "config.toml") as path:
        return of_site(path, [check.id for check in CHECKS])


def profile(data: bytes) -> object:
    """A reference machine."""
    with _file(data, "profile.toml") as path:
        return library.by_name(path)


def config_space(data: bytes) -> object:
    """A PCI configuration space."""
    kept = publishable(data)
    assert len(kept) == len(data)
    for part in (express, acs, control):
        assert part(kept, "x") == part(data, "x"), part.__name__
    return kept


def shown(data: bytes) -> object:
    """Any text on a terminal: nothing that controls it, nothing that hides."""
    out = visible(data.decode("utf-8", "surrogateescape"))
    assert "\n" not in out
    return _printable(out)


def results(data: bytes) -> object:
    """Results of a fleet, one or many, judged and in every format."""
    with _file(data, "results.jsonl") as path:
        fleet = judge([path], ("a", "b"))
    report = FleetReport(fleet, 0, True, racks_of(fleet.nodes, Settings()))
    shown = {form: renderer(place)(report)
             for form, place in formats("fleet").items()}  # fmt: skip
    for text in (*shown.values(), schedulers.gate(report)):
        _printable(text.replace("\t", " "))
    assert json.loads(shown["json"], parse_constant=_no_number)["nodes"] is not None
    return shown


def history(data: bytes) -> object:
    """Results of many days, in both formats."""
    with _file(data, "history.jsonl") as path:
        read_of = history_of_results([path])
    if not read_of.nodes:
        return None  # the command refuses it
    report = HistoryReport(read_of, lemons(read_of), followed(read_of.parts), "unknown", 3, True)
    shown = {form: _printable(renderer(place)(report)) for form, place in formats("fleet history").items()}
    return json.loads(shown["json"], parse_constant=_no_number)


def fabric(data: bytes) -> object:
    """An output about a fabric, and as a plan; judged and in every format."""
    with _file(data, "fabric.txt") as path:
        found = outputs([path])
        judged = judge_fabric(fabric_of(found.texts), None, found.unread)
        report = FabricReport(judged=judged, exit_code=0, verbose=True)
        shown = {form: _printable(renderer(place)(report)) for form, place in formats("fabric").items() if place}
        json.loads(shown["json"], parse_constant=_no_number)
        return judge_fabric(fabric_of(found.texts), plan(path), ())


def node_names(data: bytes) -> object:
    """Names of nodes, folded; at most 999, for a few bytes name 100,000, which takes a minute under instrumentation."""
    names = unfolded(data.decode("utf-8", "replace"), 999)
    assert set(unfolded(folded(names))) == set(names) or any("[" in name or "]" in name for name in names)
    return names


def counters(data: bytes) -> object:
    """The state file of ``health``; what was read of it can be written."""
    with _file(data, "counters.json") as path:
        read = state_file.read(path)
        assert read is not None
        state_file.recent(read.xids, "2026-11-22T10:00:00Z")
        state_file.write(path, read)
        assert state_file.read(path) == replace(read, damaged=0)
    return read


def watch_state(data: bytes) -> object:
    """That of ``watch``: shown, gone on with, written and read again."""
    with _file(data, "watch.json") as path:
        memory = watch_memory.load(path)
        assert memory is not None
        assert not compared(memory.judged, {"unjudged": [*memory.judged.findings], "findings": {}, "passed": [],
                                            "verdict": memory.judged.verdict})[1]  # fmt: skip
        again = [replace(tally.event, count=1) for tally in memory.ledger.tallies.values()]
        for told in [*memory.ledger.take(again, 1e6, "2026-11-22T10:00:00Z")]:
            _printable(text_line(told)), json_line(told)
        memory.of_boot("another boot")
        for told in [*memory.ledger.repeated(1e6, "2026-11-22T10:00:00Z")]:
            _printable(text_line(told)), json_line(told)
        _printable(watch.table(memory, "2026-11-22T10:00:00Z", 80, 24))
        watch.metrics(memory)
        memory.of_gpus({"0000:06:00.0": "GPU-b"})
        news = {"unjudged": [], "findings": {}, "passed": [*memory.judged.findings], "acknowledged": [],
                "verdict": "pass"}  # fmt: skip
        compared(memory.judged, news)
        watch_memory.save(path, memory)
        assert watch_memory.load(path) is not None
    return memory


def watch_records(data: bytes) -> object:
    """Records of ``/dev/kmsg`` as they come, as events."""
    rows = iter(data.split(b"\n\n"))
    records = Kmsg(lambda size: next(rows, b"")[:size]).records()
    facts = log_facts(records.lines)
    return [] if isinstance(facts, Missing) else [*log_events(facts, lambda bdf, code: 0)]


def rank(data: bytes) -> object:
    """What launchers put into the environment."""
    first, _, second = data.decode("utf-8", "replace").partition("\n")
    number = local_rank(dict.fromkeys(LOCAL_RANK, first))
    return of_rank(_placed(), number or 0, second or None)


@cache
def _placed() -> tuple[Placement, ...]:
    box = examine(open_source("dgx-1-v100"), LAUNCH)
    return tuple(placements(box.snapshot, box.topology))


def _no_number(word: str) -> None:
    raise AssertionError(f"{word} in JSON")


def _printable(text: str) -> str:
    """What is shown, without what controls a terminal."""
    wrong = [char for char in {*text} if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert not wrong, ascii(wrong)
    return text


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        recording, bug_report, text, kernel_log, configuration, profile, config_space, shown, results, node_names,
        counters, watch_state, watch_records, rank, history, fabric,
    )
}  # fmt: skip


def tried(target: Target, data: bytes) -> None:
    """One input; an AssertionError, or whatever the target raises, is a fault."""
    try:
        target(data)
    except BadInput as error:
        said = str(error)
        assert said, "a refusal without words"
        assert "\n" not in said, ascii(said)
