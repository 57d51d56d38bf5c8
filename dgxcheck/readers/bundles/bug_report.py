"""The sections of a bug report, one after the other: a line of underscores, a title, what it is about.

The script writes each section as a gzip member of its own, in an order and with words that differ by version; titles
are a command with its path, ``*** PATH`` for a file, or words. Of some sections only the first title has underscores
above it (``nvidia-smi``, files of NUMA nodes, the boots of the journal).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from dgxcheck.facts.limits import SECTION_BYTES
from dgxcheck.readers.bundles.section import Section

HEAD = "Start of NVIDIA bug report log file."
FOOT = "End of NVIDIA bug report log file."
_LINE_BYTES = 64 << 10
_UNDERSCORES = re.compile(rb"_{40,60}\r?\n?")
_LS = re.compile(r"\*\*\* ls: (?P<mode>[-dlcbps])\S{9}\S? +\d+ +(?P<owner>\S+) +\S+ +(?P<size>\d+) .*")
_COMMAND = re.compile(r"(?:/usr)?(?:/local)?/s?bin/[\w.+-]{1,60}(?: \S.{0,300})?")
_BOOT = re.compile(r"  journalctl -b -\d{1,2}:|  /var/log/[\w./+-]{1,80}:")
_OTHER = re.compile(r"Running InfiniBand commands for device: \S+|Starting \S.{0,60} dump.{0,80}")
"""Titles within sections that are neither a command nor a file."""
_ABSENT = " does not exist"
_FILE = "*** "


def sections(rows: Iterable[bytes], wanted: Callable[[str], bool]) -> Iterator[Section]:
    """Every section; the lines of those alone whose title is ``wanted``."""
    open_: _Open | None = None
    titled = True
    blank = True
    number = -1
    for number, row in enumerate(rows):
        if open_ is not None and open_.skipped(row):
            continue
        if _UNDERSCORES.fullmatch(row):
            if open_ is not None:
                yield open_.section()
            open_, titled, blank = None, False, True
            continue
        text = row[:_LINE_BYTES].decode("utf-8", "replace").rstrip("\r\n")
        if not text.strip():
            blank = True
        elif not titled or _is_title(text, blank, open_):
            if open_ is not None:
                yield open_.section()
            open_, titled, blank = _Open(text, number, wanted), True, False
            continue
        else:
            blank = False
        if open_ is not None:
            open_.add(text)
    if open_ is not None:
        yield open_.section()


def _is_title(text: str, blank: bool, open_: _Open | None) -> bool:
    """Within a section, a further one begins after a blank line alone; ``*** ls:`` and the like belong to a title."""
    if text.startswith("  "):
        return open_ is not None and open_.boots and _BOOT.fullmatch(text) is not None
    if not blank or open_ is None or not (open_.wanted or open_.titles):
        return False
    if text.startswith("*** /"):
        return True
    return _COMMAND.fullmatch(text) is not None or _OTHER.fullmatch(text) is not None


class _Open:
    """The section that is being read."""

    def __init__(self, title: str, number: int, wanted: Callable[[str], bool]) -> None:
        path = title.removeprefix(_FILE)
        self.is_file = path != title
        self.absent = self.is_file and path.endswith(_ABSENT)
        self.title = path.removesuffix(_ABSENT) if self.absent else path
        self.number = number
        self.wanted = wanted(self.title)
        self.boots = title.startswith("Scanning kernel log files") or _BOOT.fullmatch(title) is not None
        self.titles = _COMMAND.fullmatch(title) is not None or _OTHER.fullmatch(title) is not None
        self.count = 0
        self._lines: list[str] = []
        self._bytes = 0
        self._foreign = 0
        """Bytes still to come of a file that another user than root has written."""

    def skipped(self, row: bytes) -> bool:
        """Is the row part of a file in which any user may write what looks like a section?"""
        if self._foreign <= 0:
            return False
        self._foreign -= len(row)
        self.count += 1
        return True

    def add(self, text: str) -> None:
        self.count += 1
        if self.count == 1 and text.startswith("*** ls: "):
            if (ls := _LS.match(text)) and ls["mode"] == "-" and ls["owner"] not in ("root", "syslog"):
                self._foreign = min(int(ls["size"]), SECTION_BYTES)
            return
        self._bytes += len(text) + 1
        if self.wanted and self._bytes <= SECTION_BYTES:
            self._lines.append(text)

    def section(self) -> Section:
        lines = self._lines
        while lines and not lines[-1].strip():
            lines.pop()
        return Section(
            title=self.title, first=self.number, lines=tuple(lines), size=self.count, is_file=self.is_file,
            absent=self.absent, cut=self.wanted and self._bytes > SECTION_BYTES,
        )  # fmt: skip
