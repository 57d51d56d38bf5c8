"""What is in a bundle: a bug report, a support archive, or a directory of outputs, read once and within limits."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeAlias

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record, replace
from dgxcheck.input_file import CpuTime, too_large
from dgxcheck.limits import (
    ARCHIVE_MEMBERS,
    BUNDLE_BYTES,
    LOG_ROWS,
    LOOSE_BYTES,
    READ_LINES,
    REPORT_BYTES,
    SECTION_BYTES,
)
from dgxcheck.readers.bundles import archives, bug_report, sections
from dgxcheck.readers.bundles.sections import KERNEL_LOG, Section, one_file, reader_of
from dgxcheck.readers.bundles.sniff import ZIP, is_report, is_supportconfig
from dgxcheck.readers.bundles.streams import PACKED, Budget, Stream, Unsupported, rows
from dgxcheck.readers.formats import utf8

_DEPTH = 3
"""An archive in an archive, with a packed report in it."""
_HEAD = 8 << 10
_LINE_COST = 128
"""What a line takes beside its characters, in bytes of memory and in time."""

Inside: TypeAlias = "archives.TarMember | archives.Unreadable"


class Bundle(Record):
    """All sections of a bundle, and what is wrong with it."""

    name: str
    kind: str
    """bug report, archive or directory"""
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    """For people: cut, damaged .."""


def load(path: str, time: CpuTime) -> Bundle:
    """BadInput with one line for what cannot be read or is beyond a limit."""
    name = os.path.basename(path.rstrip("/")).encode(errors="replace").decode()
    reader = _Reader(time)
    try:
        if os.path.isdir(path):
            reader.kind = "directory"
            reader.directory(path)
        else:
            reader.file(path)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    notes = tuple(dict.fromkeys(reader.notes))
    return Bundle(name=name, kind=reader.kind, sections=tuple(reader.sections), notes=notes)


class _Reader:
    """Goes through files, archives in files, and outputs in archives."""

    def __init__(self, time: CpuTime) -> None:
        self.kind = "bug report"
        self.sections: list[Section] = []
        self.notes: list[str] = []
        self._budget = Budget()
        self._time = time
        self._kept = 0
        self._loose = 0
        self._log_rows = LOG_ROWS // 2
        self._among = False
        """Is the archive that is read one of several files?"""

    def directory(self, path: str) -> None:
        """Its regular files, by name; links are not followed."""
        count = 0
        self._among = True
        for folder, folders, files in os.walk(path):
            folders.sort()
            for file in sorted(files):
                full = os.path.join(folder, file)
                count += 1
                if count > ARCHIVE_MEMBERS:
                    raise BadInput(f"more than {ARCHIVE_MEMBERS} files")
                status = os.lstat(full)
                if stat.S_ISREG(status.st_mode) and status.st_size <= REPORT_BYTES:
                    with open(full, "rb") as opened:
                        self._inner(os.path.relpath(full, path), opened.read, 0)

    def file(self, path: str) -> None:
        """A report or an archive."""
        if os.stat(path).st_size > REPORT_BYTES:
            raise too_large(os.path.basename(path), REPORT_BYTES)
        with open(path, "rb") as file:
            self._member(os.path.basename(path), file.read, 0)

    def _member(self, name: str, read: Callable[[int], bytes], depth: int) -> None:
        stream = Stream(read, self._budget)
        chunks = self._time.within(stream.chunks())
        head = b""
        while len(head) < _HEAD and (chunk := next(chunks, None)) is not None:
            head += chunk
        inner = head if depth < _DEPTH else b""
        if inner.startswith(PACKED):  # packed twice
            self._member(name, archives.Blocks(chain([head], chunks)).read, depth + 1)
        elif inner.startswith(ZIP):
            self._archive(name, archives.zip_members(archives.Blocks(chain([head], chunks))), depth + 1)
        elif archives.is_tar(inner):
            self._archive(name, archives.tar_members(archives.Blocks(chain([head], chunks))), depth + 1)
        else:
            text = utf8(chain([head], chunks))
            head = next(text, b"")
            self._text(name, head, chain([head], text))
        for wrong, what in ((stream.cut, "is cut off"), (stream.damaged, "is damaged: a part of it was left out")):
            if wrong:
                self.notes.append(f"{name} {what}")

    def _inner(self, name: str, read: Callable[[int], bytes], depth: int) -> None:
        """A file among others; where it cannot be unpacked the others are read all the same."""
        try:
            self._member(name, read, depth)
        except Unsupported as error:
            self.notes.append(f"{name}: {error}")

    def _archive(self, name: str, members: Iterable[Inside], depth: int) -> None:
        inside = f"{name}/" if self._among or depth > 1 else ""
        self.kind = "archive" if self.kind == "bug report" else self.kind
        for member in members:
            if isinstance(member, archives.Unreadable):
                self.notes.append(f"{member.name} {member.why}")
            else:
                self._inner(f"{inside}{member.name.removeprefix('./')}", member.read, depth)
                if member.cut:
                    self.notes.append(f"{member.name} is cut off")

    def _text(self, name: str, head: bytes, chunks: Iterator[bytes]) -> None:
        lines = rows(chunks)
        if is_report(head):
            before = len(self.sections)
            self._keep(name, bug_report.sections(lines, _wanted))
            if all(section.title != bug_report.FOOT for section in self.sections[before:]):
                self.notes.append(f"{name} is cut off: its end is missing")
        elif is_supportconfig(head):
            self._keep(name, sections.supportconfig_sections(lines, _wanted))
        elif b"\0" not in head:
            self._keep(name, iter([self._bounded(one_file(name, lines))]))
        else:
            self.sections.append(Section(title=name.rpartition("/")[2], size=1, file=name))

    def _bounded(self, section: Section) -> Section:
        """What every reader looks at has a limit of its own; a file beyond it is read by its name alone."""
        if not section.loose:
            return section
        size = _cost(section)
        if self._loose + size > LOOSE_BYTES:
            return replace(section, loose=False, lines=section.lines if reader_of(section.title) else ())
        self._loose += size
        return section

    def _keep(self, file: str, sections: Iterator[Section]) -> None:
        for section in sections:
            self._kept += _cost(section)
            if self._kept > BUNDLE_BYTES * 3:
                raise BadInput(f"more than {BUNDLE_BYTES >> 20} MiB of outputs")
            if section.cut:
                self.notes.append(f"{section.title}: longer than {SECTION_BYTES >> 20} MiB, so cut off")
            self.sections.append(replace(self._with_rows(section), file=file))
            if len(self.sections) > ARCHIVE_MEMBERS:
                raise BadInput(f"more than {ARCHIVE_MEMBERS} outputs")

    def _with_rows(self, section: Section) -> Section:
        """As many rows as are read of an output: of a log the last, of those of tools the first; of lspci all."""
        reader, rows = reader_of(section.title), len(section.lines)
        most = {KERNEL_LOG: self._log_rows, "lspci": rows}.get(reader, READ_LINES)
        if reader == KERNEL_LOG:
            self._log_rows -= min(rows, most)
        if section.loose or rows <= most:
            return section
        self.notes.append(f"{section.title}: {most} of {rows} lines were read")
        first = rows - most if reader == KERNEL_LOG else 0
        return replace(section, first=section.first + first, lines=section.lines[first : first + most])


def _cost(section: Section) -> int:
    return sum(map(len, section.lines)) + _LINE_COST * len(section.lines)


def _wanted(title: str) -> bool:
    return reader_of(title) != "" or title.startswith(bug_report.HEAD)
