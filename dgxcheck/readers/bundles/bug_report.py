"""The sections of nvidia-bug-report.log, and whose they are.

The sections of a bug report, one after the other: a line of underscores, a title, what it is about.

The script writes each section as a gzip member of its own, in an order and with words that differ by version; titles
are a command with its path, ``*** PATH`` for a file, or words. Of some sections only the first title has underscores
above it (``nvidia-smi``, files of NUMA nodes, the boots of the journal).

Whose output each file of a bundle is, where it holds that of several hosts, or of one host at several times.

Folders and the names of files tell it, where the same output stands in the bundle more than once: ``node01/dmesg``
beside ``node02/dmesg``, ``dmesg-node01`` beside ``dmesg-node02``. Of several bug reports each is a machine of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from dgxcheck.facts.missing import text_of
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.limits import SECTION_BYTES
from dgxcheck.readers.bundles.sections import OpenSection, Section, decoded, reader_of
from dgxcheck.readers.host import system
from dgxcheck.readers.wording import any_of, words_of

HEAD = "Start of NVIDIA bug report log file."
FOOT = "End of NVIDIA bug report log file."
_UNDERSCORES = re.compile(rb"_{40,60}\r?\n?")
_NO_TITLE = frozenset(range(ord("!"), 0x7F)) - frozenset(b"_*/RS")
"""First characters of rows that are neither blank, nor a line of underscores, nor the title of a section."""
_LS = LazyPattern(r"\*\*\* ls: (?P<mode>[-dlcbps])\S{9}\S? +\d+ +(?P<owner>\S+) +\S+ +(?P<size>\d+) .*")
_COMMAND = LazyPattern(r"(?:/usr)?(?:/local)?/s?bin/[\w.+-]{1,60}(?: \S.{0,300})?")
_BOOT = LazyPattern(r"  journalctl -b -\d{1,2}:|  /var/log/[\w./+-]{1,80}:")
_OTHER = LazyPattern(r"Running InfiniBand commands for device: \S+|Starting \S.{0,60} dump.{0,80}")
"""Titles within sections that are neither a command nor a file."""
_ABSENT = " does not exist"
_FILE = "*** "


def sections(rows: Iterable[bytes], wanted: Callable[[str], bool]) -> Iterator[Section]:
    """Every section; the lines of those alone whose title is ``wanted``."""
    open_: _Open | None = None
    titled = True
    blank = True
    for number, row in enumerate(rows):
        if open_ is not None and (row[0] in _NO_TITLE or open_.foreign > 0):
            blank = False
            open_.add(row)
            continue
        text = decoded(row)
        is_end = _UNDERSCORES.fullmatch(row) is not None
        is_begin = bool(text.strip()) and not is_end and (not titled or _is_title(text, blank, open_))
        if open_ is not None and (is_end or is_begin):
            yield open_.section()
        if is_end or is_begin:
            open_, titled = (_Open(text, number, wanted) if is_begin else None), is_begin
        elif open_ is not None:
            open_.add(row)
        blank = is_end or not text.strip()
    if open_ is not None:
        yield open_.section()


def _is_title(text: str, blank: bool, open_: _Open | None) -> bool:
    """Within a section, a further one begins after a blank line alone; ``*** ls:`` and the like belong to a title."""
    if text.startswith("  "):
        return open_ is not None and open_.boots and _BOOT.fullmatch(text) is not None
    if not blank or open_ is None or not (open_.wanted or open_.titles):
        return False
    return text.startswith("*** /") or _COMMAND.fullmatch(text) is not None or _OTHER.fullmatch(text) is not None


class _Open(OpenSection):
    """The section that is being read."""

    def __init__(self, title: str, number: int, wanted: Callable[[str], bool]) -> None:
        path = title.removeprefix(_FILE)
        absent = path != title and path.endswith(_ABSENT)
        name = path.removesuffix(_ABSENT) if absent else path
        super().__init__(name, number, wanted(name), is_file=path != title, absent=absent)
        self.boots = title.startswith("Scanning kernel log files") or _BOOT.fullmatch(title) is not None
        self.titles = _COMMAND.fullmatch(title) is not None or _OTHER.fullmatch(title) is not None
        self.foreign = 0
        """Bytes still to come of a file that another user than root has written: what looks like a section is none."""

    def add(self, row: bytes) -> None:
        if self.foreign > 0:
            self.foreign -= len(row)
            self.count += 1
        elif self.count == 0 and row.startswith(b"*** ls: "):
            self.count = 1
            if (ls := _LS.match(decoded(row))) and ls["mode"] == "-" and ls["owner"] not in ("root", "syslog"):
                self.foreign = min(int(ls["size"]), SECTION_BYTES)
        else:
            super().add(row)


_ENDINGS = frozenset(("txt", "log", "out", "csv", "json", "xml", "old", "gz", "xz", "bz2", "tgz", "txz", "tar", "zip"))
_NAME = LazyPattern(r"(?=.*[A-Za-z]{2})(?=.*\d)[A-Za-z0-9][A-Za-z0-9.-]{1,62}")
"""Hosts of clusters are numbered; a word without a digit is more often part of what a file holds."""
_NO_HOST = caseless_pattern(any_of("bundles/lines", "no host"))
"""Devices, times, levels, sizes and formats of numbers are numbered too."""
_OPTION = LazyPattern(r"[A-Za-z]\d|-.*")
_SUBJECTS = frozenset(words_of("bundles/lines", "what a tool is asked for"))
"""What a tool is asked for."""
_OF_ONE = ("sos_commands", "sos_reports", "commands", "var", "log", "logs")
"""Folders beside each other in the archive of one host."""
_APART = LazyPattern(r"[-_.]")
_REPORT = "nvidia-bug-report"


def with_hosts(sections: Sequence[Section]) -> tuple[Section, ...]:
    """Each section with its host; without any where all are of one machine."""
    outputs = {section.file: _what(section) for section in sections
               if section.file and not section.is_file and (section.lines or section.loose)}  # fmt: skip
    owners = _reports(sections) | _names(outputs) | _folders(outputs, sections)
    if len(set(owners.values())) < 2:
        return tuple(sections)
    return tuple(
        replace(section, host=host) if (host := owners.get(section.file, "")) else section for section in sections
    )


def _what(section: Section) -> str:
    return _REPORT if section.title.startswith(HEAD) else _stem(section.file.rpartition("/")[2])


def _stem(name: str) -> str:
    """A file's name without the endings that say in which format it is."""
    words = name.split(".")
    while len(words) > 1 and words[-1].lower() in _ENDINGS:
        words.pop()
    return ".".join(words)


def _reports(sections: Sequence[Section]) -> dict[str, str]:
    """Of several bug reports: the host that each names, or its file where two name the same."""
    named = {section.file: system.read_uname(section.lines).get("text /proc/sys/kernel/hostname")
             for section in sections if section.title.startswith(HEAD)}  # fmt: skip
    hosts = {file: text_of(name).strip().partition(".")[0] for file, name in named.items()}
    counted = Counter(hosts.values())
    alone = len(hosts) < 2
    return {} if alone else {file: host if host and counted[host] == 1 else file for file, host in hosts.items()}


def _folders(outputs: Mapping[str, str], sections: Sequence[Section]) -> dict[str, str]:
    """The first folder in which the paths of files of one name differ; all that is below it has the same owner."""
    alike: dict[tuple[int, str], list[list[str]]] = {}
    for file in outputs:
        *folders, base = file.split("/")
        alike.setdefault((len(folders), base), []).append(folders)
    places: dict[int, set[str]] = {}
    for paths in alike.values():
        at = next((at for at, words in enumerate(zip(*paths, strict=True)) if len(set(words)) > 1), None)
        if at is not None and not any(_NO_HOST.fullmatch(path[at]) or path[at] in _OF_ONE for path in paths):
            places.setdefault(at, set()).update(path[at] for path in paths)
    if not places:
        return {}
    at = min(places)
    own = places[at]
    every = {section.file: section.file.split("/") for section in sections}
    return {file: _stem(path[at]) for file, path in every.items() if path[at + 1 :] and path[at] in own}


def _names(outputs: Mapping[str, str]) -> dict[str, str]:
    """The part of a file's name that stands beside several names of outputs, or beside that of a tool that is known."""
    splits = {file: [*_splits(what)] for file, what in outputs.items()}
    rests = gathered(pair for pairs in splits.values() for pair in pairs)
    counted = Counter(name for pairs in splits.values() for name in {name for _, name in pairs})
    shared = {name for pairs in splits.values() for rest, name in pairs
            if len({*rests[rest]}) > 1 and (_is_tool(rest) or counted[name] > 1)}  # fmt: skip
    own = {file: [name for _, name in pairs if name in shared] for file, pairs in splits.items()}
    return {file: max(names, key=lambda name: (counted[name], len(name))) for file, names in own.items() if names}


def _splits(what: str) -> Iterator[tuple[str, str]]:
    """What is left of a file's name, and what may be that of a host before or after it."""
    for match in _APART.finditer(what):
        before, after = what[: match.start()], what[match.end() :]
        for rest, name in ((before, after), (after, before)):
            if rest and rest[-1] not in "-_." and _NAME.fullmatch(name) and not _of_tool(name):
                yield rest, name


def _of_tool(name: str) -> bool:
    words = _APART.split(name)
    return (_NO_HOST.fullmatch(name) or _OPTION.fullmatch(words[-1])) is not None or not _SUBJECTS.isdisjoint(words)


def _is_tool(rest: str) -> bool:
    return rest == _REPORT or reader_of(rest.replace("_", " ")) != ""
