"""One output within a bug report or archive: its section, who reads it, and guesses where its name does not tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.limits import SECTION_BYTES
from dgxcheck.readers.wording import any_of, rows, words_of


class Section(Record):
    """A title, and the lines below it."""

    title: str
    """The path of a file, else the command line or words by which the output is known."""
    first: int = 0
    """Number of its line in the report, from 0."""
    lines: tuple[str, ...] = ()
    size: int = 0
    """Lines below the title, those too that were not kept."""
    is_file: bool = False
    absent: bool = False
    """The bundle says that there is no such file."""
    cut: bool = False
    """Longer than what is kept of one section."""
    file: str = ""
    """Path of the file in the bundle that holds it; empty where the bundle is one file."""
    host: str = ""
    """Whose output it is, where the bundle holds that of several."""
    loose: bool = False
    """A whole file that its name does not identify: every reader tries it."""


_FILES = LazyPattern(any_of("bundles/lines", "files of a machine"))
_PROGRAM = LazyPattern(r"(?:/[\w.+/-]{0,80}/)?(?P<name>[\w.+-]{1,40}?)(?::|\s.*)?")
PROGRAMS = tuple(words_of("bundles/lines", "programs"))
KERNEL_LOG = "kernel log"
BY_TITLE = ("uname", "files")
"""What is read only where a title says what it is."""
_LOGS = LazyPattern(r"Scanning kernel log files.*|  journalctl -b -\d{1,2}:|  /var/log/[\w./+-]{1,80}:"
                   r"|(?:.*/)?dmesg(?::|\s.*)?|/var/log/(?:kern\.log|dmesg|messages)")  # fmt: skip
_OF_KERNEL = LazyPattern(r"(?:.*/)?journalctl\b(?=.*(?: -k\b| --dmesg\b| --boot\b| -b\b))(?!.*_COMM=).*")


def reader_of(title: str) -> str:
    """``lspci`` .., ``kernel log``, ``files`` for a file of the machine, or empty where nothing is read of it."""
    if title.startswith("/") and _FILES.fullmatch(without_dots(title)):
        return "lsmod" if title == "/proc/modules" else "files"
    if _LOGS.fullmatch(title) or _OF_KERNEL.fullmatch(title):
        return KERNEL_LOG
    match = _PROGRAM.fullmatch(title)
    return match["name"] if match is not None and match["name"] in PROGRAMS else ""


def without_dots(path: str) -> str:
    """``/proc/driver/nvidia/./gpus`` without the dot that the script's find puts in."""
    return path.replace("/./", "/")


_LOOKED_AT = 200
_FORMS = tuple((row["title"], LazyPattern(row["words"]), int(row["least"])) for row in rows("bundles/guesses"))
"""Title, form of a line, and how many lines of it there must be."""


def guessed(lines: Sequence[str]) -> str:
    """The title under which such an output is read; empty where it is not known."""
    first = lines[:_LOOKED_AT]
    return next((title for title, form, least in _FORMS if sum(map(bool, map(form.fullmatch, first))) >= least), "")


_OF_MACHINE = LazyPattern(r"(?:[^/]+/){0,7}?(?P<path>(?:proc|sys|etc|run)/.*)")
_OUTPUT = LazyPattern(r"(?P<name>[\w.+-]{1,200}?)(?:\.(?:txt|log|out))?")
_OUTPUTS = LazyPattern(r"(?:^|/)(?:sos_commands|commands)/")
"""Where a program has named the files after its commands."""
_PASTED = 1 << 20
"""Longer outputs are not pasted by hand; those are identified by their names alone."""
_SHORT = 32 << 10
"""Bytes; a text so short is tried with every reader whatever its words."""
_TELLING = caseless_pattern(any_of("bundles/lines", "words of readers"))
"""No reader recognises a long text without any of these words."""


def one_file(name: str, rows: Iterator[bytes]) -> Section:
    """Without lines where nothing is read of it."""
    by_program = _OUTPUTS.search(name) is not None
    machine = None if by_program else _OF_MACHINE.fullmatch(name)
    base = name.rpartition("/")[2]
    named = _OUTPUT.fullmatch(base)
    title = f"/{machine['path']}" if machine else _title(named["name"] if named else base)
    lines: list[str] = []
    size = 0
    for row in rows:
        size += len(row)
        if size > SECTION_BYTES:
            break
        lines.append(row.decode("utf-8", "replace").rstrip("\r\n"))
    if not reader_of(title):
        title = guessed(lines) or title
    known = reader_of(title) != ""
    by_name = known and (by_program or size > _PASTED or reader_of(title) in BY_TITLE)
    short = size <= _SHORT and not by_program
    loose = machine is None and not by_name and any(map(str.strip, lines)) and (
        known or short or any(map(_TELLING.search, lines))
    )
    return Section(
        title=title, lines=tuple(lines) if known or loose else (), size=len(lines), is_file=machine is not None,
        cut=known and size > SECTION_BYTES, loose=loose,
    )  # fmt: skip


def _title(name: str) -> str:
    """``ibv_devinfo -v`` of ``ibv_devinfo_-v``: blanks are underscores in a file's name, and so are underscores."""
    program = next((program for program in PROGRAMS if re.match(rf"{re.escape(program)}(?:_|$)", name)), "")
    return program + name[len(program) :].replace("_", " ")


_HEAD = LazyPattern(r"#==\[ (?P<kind>[\w -]{1,40}) \]=+#")


def supportconfig_sections(rows: Iterable[bytes], wanted: Callable[[str], bool]) -> Iterator[Section]:
    """Every command and file; the lines of those alone whose title is ``wanted``."""
    kind = ""
    open_: OpenSection | None = None
    for number, row in enumerate(rows):
        text = decoded(row)
        if match := _HEAD.fullmatch(text):
            if open_ is not None:
                yield open_.section()
            kind, open_ = match["kind"], None
        elif open_ is not None:
            open_.add(row)
        elif kind and text.startswith("# "):
            title = text[2:].strip()
            open_ = OpenSection(title.split(" - ")[0], number, wanted(title), is_file="File" in kind)
    if open_ is not None:
        yield open_.section()


_LINE_BYTES = 64 << 10


def decoded(row: bytes) -> str:
    """The text of a line, cut where it is very long."""
    return row[:_LINE_BYTES].decode("utf-8", "replace").rstrip("\r\n")


class OpenSection:
    """The section that is being read; its lines are kept where it is ``wanted``."""

    def __init__(self, title: str, number: int, wanted: bool, is_file: bool, absent: bool = False) -> None:
        self._title = title
        self._number = number
        self._is_file = is_file
        self._absent = absent
        self.wanted = wanted
        self.count = 0
        self._lines: list[str] = []
        self._bytes = 0

    def add(self, row: bytes) -> None:
        self.count += 1
        if self.wanted:
            self._bytes += len(row)
            if self._bytes <= SECTION_BYTES:
                self._lines.append(decoded(row))

    def section(self) -> Section:
        lines = self._lines
        while lines and not lines[-1].strip():
            lines.pop()
        return Section(
            title=self._title, first=self._number, lines=tuple(lines), size=self.count, is_file=self._is_file,
            absent=self._absent, cut=self._bytes > SECTION_BYTES,
        )  # fmt: skip
