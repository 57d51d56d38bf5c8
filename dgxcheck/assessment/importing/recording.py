"""Texts with the output of other tools as a recording, or as a machine that can be asked at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import process_time

from dgxcheck import __version__
from dgxcheck.assessment.importing.bundle import Opened, provenance
from dgxcheck.assessment.importing.onto import REPORT, BaseBox, Moments, is_gap, stated
from dgxcheck.assessment.importing.texts import SHOWN, InputText, of_host, texts
from dgxcheck.assessment.importing.unread import beside, nearest
from dgxcheck.checks.engine.finding import counted, first_of
from dgxcheck.facts.missing import BadInput, Json, items_of
from dgxcheck.facts.record import Record
from dgxcheck.readers.alarming import alarming
from dgxcheck.readers.any_text import outputs, unread
from dgxcheck.readers.combine import Combined, Part, combine
from dgxcheck.readers.derived import completed
from dgxcheck.readers.listing import OF_LIST, printed_bdfs, with_numbers
from dgxcheck.readers.listing import handles as numbered
from dgxcheck.readers.model import has_faults
from dgxcheck.readers.onto import mismatch, rebase_indexes
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.keys import GroupedFacts, flatten, grouped, insert
from dgxcheck.source.recording.load import SCHEMA
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.save import written
from dgxcheck.source.recording.site_key import site_key

LOG = "kmsg"
"""The line of a recording that holds the kernel log."""


class TextsRead(Record):
    """What was understood of some texts, and of the bug report or archive among them."""

    bundle: Opened | None = None
    texts: tuple[InputText, ...]
    parts: tuple[Part, ...]
    """The outputs of tools that they hold."""
    combined: Combined
    unread: Mapping[str, tuple[int, ...]]
    """Numbers from 0 of the lines that no reader understood, by name of the text."""

    def of_others(self, name: str) -> dict[str, int]:
        """Lines of a text that nobody read, by the host that a prompt names, where no part is of that host."""
        hosts = next(text.layout.hosts for text in self.texts if text.name == name)
        read_of = {part.host for part in self.parts}
        return dict(Counter(hosts[at] for at in self.unread[name] if hosts[at] and hosts[at] not in read_of))

    def beside(self, name: str) -> frozenset[int]:
        """The unread lines of a text that are part of no known output."""
        lines = next(text.layout.lines for text in self.texts if text.name == name)
        return beside(lines, self.unread[name], (part.found.understood for part in self.parts if part.file == name))

    @property
    def used(self) -> list[Part]:
        """The outputs whose facts count."""
        left_out = {id(part) for part in (*self.combined.refused, *self.combined.again)}
        return [part for part in self.parts if id(part) not in left_out]


def read(
    texts: Sequence[InputText], bundle: Opened | None = None, host: str = "",
    begin: Callable[[str], None] = lambda _: None,
) -> TextsRead:  # fmt: skip
    """Every text by every reader; of several hosts those of ``host``. BadInput where it is not said which.

    ``begin`` is called with the name of each text before it is read.
    """
    found: list[Part] = []
    for text in texts:
        begin(text.name)
        found += [Part(text.name, output, output.host or owner) for owner, output in outputs(text.layout, text.time)]
    parts = of_host(found, host, faulty={part.host for part in found if part.host and has_faults(part.found.facts)})
    names = {text.name: _published(number) for number, text in enumerate(texts)}
    return TextsRead(
        bundle=bundle, texts=tuple(texts), parts=tuple(parts), combined=combine(parts, names),
        unread={text.name: _unread(text, found, host) for text in texts},
    )  # fmt: skip


def recording(reading: TextsRead, base: BaseBox | None) -> tuple[str, int, dict[str, int]]:
    """The text of a recording, and how many facts were imported into it.

    ``base`` is the box whose GPUs the indexes are. BadInput where the facts do not fit it.
    """
    try:
        facts = facts_of(reading.combined, base)
    except BadInput as error:
        onto = "" if base is None else base.spec
        names = first_of([text.name for text in reading.texts], 3)
        raise BadInput(f"{names} onto {onto}: {error}; no file was written") from None
    hosts = {host for text in reading.texts for host in text.layout.hosts if host}
    head, lines, later = _recording(facts, base, sorted(hosts))
    head["provenance"] = _provenance(reading, base)
    left = _left(facts, base)
    count = len(facts) - sum(left.values()) + (0 if reading.bundle is None else len(reading.bundle.facts))
    return written(head, lines, later), count, left


def _left(facts: Mapping[str, Json], base: BaseBox | None) -> dict[str, int]:
    """How many facts are not taken, because the box has another value of its own, by their function or file."""
    own = {} if base is None else flatten(base.lines)
    left = (
        name for name, fact in facts.items()
        if not name.startswith(("measure ", "stated ", f"{LOG} ")) and not is_gap(own.get(name)) and own[name] != fact
    )  # fmt: skip
    return dict(Counter(_what(name) for name in left).most_common())


def _what(name: str) -> str:
    kind, _, rest = name.partition(" ")
    return rest.partition(" ")[0].removeprefix("nvmlDeviceGet") if kind == "nvml" else rest.rpartition("/")[2]


def _published(number: int) -> str:
    """What a recording calls a text: the names of files may tell whose machine it is."""
    return f"text {number + 1}"


def _unread(text: InputText, found: Sequence[Part], host: str) -> tuple[int, ...]:
    return unread(text.lines, text.layout, [part.found for part in found if part.file == text.name], host)


def facts_of(found: Combined, base: BaseBox | None) -> dict[str, Json]:
    """By key; on the GPUs of the base, or on those that the texts name by bus id or number."""
    facts = _on_gpus(found, base)
    return completed(facts) if base is None else facts


def _on_gpus(found: Combined, base: BaseBox | None) -> dict[str, Json]:
    if base is not None:
        if not found.facts:
            return {}
        if not base.gpus:
            raise BadInput("NVML lists no GPU of the box, so GPU numbers cannot be assigned")
        of_box = {key: fact for key, fact in found.facts.items() if not key.startswith(OF_LIST)}
        return rebase_indexes(of_box, dict(enumerate(base.gpus)))
    facts = with_numbers(found.facts)
    gpus = numbered(facts) or printed_bdfs(facts)
    if gpus and not mismatch(facts, gpus, whole=False):
        own = {key: fact for key, fact in facts.items() if key.startswith(("nvml ", *OF_LIST))}
        return rebase_indexes(facts, gpus, whole=False) | own
    return facts


def _recording(
    facts: dict[str, Json], base: BaseBox | None, hosts: Sequence[str]
) -> tuple[dict[str, Json], GroupedFacts, Moments]:
    """Head, lines and later moments; identities of either side leave as pseudonyms of one key."""
    key = site_key()
    new, _ = anonymized(grouped(facts), (), key, hosts)
    head: dict[str, Json] = {"schema": SCHEMA, "tool_version": __version__, "identities": "pseudonyms"}
    if base is None:
        return head, new, []
    lines, later = base.with_identities_hidden(key, hosts)
    if LOG in new and (base.kind != REPORT or LOG not in lines):  # one or the other: times of one do not fit the other
        lines[LOG] = new[LOG]
    own = flatten(lines)
    differing = stated(flatten(new), own) if base.kind != REPORT else {}
    for name, fact in (flatten(new) | differing).items():
        if name.startswith(("measure ", "stated ")) or (is_gap(own.get(name)) and not name.startswith(f"{LOG} ")):
            insert(lines, name, fact)
    identities = base.head.get("identities")
    names = ("recorded_at", *(("machine",) if identities in ("pseudonyms", "made up") else ()))  # else it may hold some
    inherited: dict[str, Json] = {name: base.head[name] for name in names if name in base.head}
    return {**head, **inherited, "identities": "made up" if identities == "made up" else "pseudonyms"}, lines, later


def _provenance(reading: TextsRead, base: BaseBox | None) -> Json:
    files: list[Json] = []
    if reading.bundle is not None:
        files += items_of(provenance(reading.bundle)["files"])
    for number, text in enumerate(reading.texts):
        tools: list[Json] = [*dict.fromkeys(part.found.tool for part in reading.used if part.file == text.name)]
        files.append({"file": _published(number), "tools": tools, "unread": len(reading.unread[text.name])})
    return {"kind": "imported", "files": files, **({} if base is None else base.provenance())}


def open_text(path: str, host: str = "", clock: Callable[[], float] = process_time) -> RecordedSource | None:
    """The machine that a text describes, possibly without any facts; None if it holds no tool's output.

    BadInput where it holds several hosts and ``host`` names none of them, and where it looks like a tool's output.
    """
    given = texts((path,), clock)
    reading = read(given, host=host)
    selection = [text.selection for text in given if text.selection]
    if not reading.parts:
        alarms = sum(len(alarming(text.lines, reading.unread[text.name])) for text in given)
        why = [like for text in given if (like := nearest(text.layout.lines))] + selection
        why += [counted(alarms, "line mentions an error", "lines mention errors")] if alarms else []
        if why:
            raise BadInput(f"{path}: no output of a known tool; {'; '.join(why)}: see dgxcheck import --show")
        return None
    lines = grouped(facts_of(reading.combined, None))
    left = sum(map(len, reading.unread.values()))
    others = {host for text in reading.texts for host in reading.of_others(text.name)}
    whose = f", some of another host ({', '.join(sorted(others)[:SHOWN])})" if others else ""
    refused = len(reading.combined.refused)
    cut = any(text.time.exceeded for text in given)
    notes = [*([] if cut else selection), *([f"{counted(left, 'line')} not recognised{whose}"] if left else [])]
    notes += [f"{counted(refused, 'output')} left out because of contradictions"] if refused else []
    unread = f"{', '.join(notes)}: see dgxcheck import --show" if notes else ""
    alarms = sum(len(alarming(text.lines, reading.unread[text.name])) for text in reading.texts)
    note = "; ".join(selection) if cut else ""
    origin = Origin("report", path, provenance="imported", note=note, unread=unread, alarms=alarms)
    return RecordedSource(lines, origin, head={"provenance": {"kind": "imported"}}, unheard="not in the text")
