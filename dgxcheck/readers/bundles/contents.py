"""What is in a bundle: a bug report, a support archive, or a directory of outputs, read once and within limits."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from itertools import chain

from dgxcheck.facts.limits import ARCHIVE_MEMBERS, BUNDLE_BYTES, IMPORT_BYTES, REPORT_BYTES, SECTION_BYTES
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.input_file import too_large
from dgxcheck.readers.bundles import bug_report, supportconfig, tar
from dgxcheck.readers.bundles.guess import guessed
from dgxcheck.readers.bundles.section import Section
from dgxcheck.readers.bundles.sniff import is_report, is_supportconfig
from dgxcheck.readers.bundles.streams import PACKED, Budget, Stream, rows
from dgxcheck.readers.bundles.wanted import reader_of

_DEPTH = 3
"""An archive in an archive, with a packed report in it."""
_HEAD = 8 << 10
_LINE_COST = 128
"""What a line takes beside its characters, in bytes of memory and in time."""
_OF_MACHINE = re.compile(r"(?:[^/]+/){0,3}?(?P<path>(?:proc|sys|etc|run)/.*)")
_OUTPUT = re.compile(r"(?P<name>[\w.+-]{1,200}?)(?:\.(?:txt|log|out))?")
_OUTPUTS = re.compile(r"(?:^|/)(?:sos_commands|commands)/")


class Bundle(Record):
    """All sections of a bundle, and what is wrong with it."""

    name: str
    kind: str
    """bug report, archive or directory"""
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    """For people: cut, damaged .."""


def load(path: str) -> Bundle:
    """BadInput with one line for what cannot be read or is beyond a limit."""
    name = os.path.basename(path.rstrip("/")).encode(errors="replace").decode()
    reader = _Reader(name)
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

    def __init__(self, name: str) -> None:
        self.kind = "bug report"
        self.sections: list[Section] = []
        self.notes: list[str] = []
        self._budget = Budget(name)
        self._kept = 0

    def directory(self, path: str) -> None:
        """Its regular files, by name; links are not followed."""
        count = 0
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
                        self._member(os.path.relpath(full, path), opened.read, 0)

    def file(self, path: str) -> None:
        """A report or an archive."""
        if os.stat(path).st_size > REPORT_BYTES:
            raise too_large(os.path.basename(path), REPORT_BYTES)
        with open(path, "rb") as file:
            self._member(os.path.basename(path), file.read, 0)

    def _member(self, name: str, read: Callable[[int], bytes], depth: int) -> None:
        stream = Stream(read, self._budget)
        chunks = stream.chunks()
        head = b""
        while len(head) < _HEAD and (chunk := next(chunks, None)) is not None:
            head += chunk
        if head.startswith(PACKED) and depth < _DEPTH:  # packed twice
            whole = tar.Blocks(chain([head], chunks))
            self._member(name, whole.read, depth + 1)
        elif tar.is_tar(head) and depth < _DEPTH:
            self.kind = "archive" if self.kind == "bug report" else self.kind
            self._archive(tar.Blocks(chain([head], chunks)), depth + 1)
        else:
            self._text(name, head, chain([head], chunks))
        for wrong, what in ((stream.cut, "is cut off"), (stream.damaged, "is damaged: a part of it was left out")):
            if wrong:
                self.notes.append(f"{name} {what}")

    def _archive(self, blocks: tar.Blocks, depth: int) -> None:
        for member in tar.members(blocks):
            if isinstance(member, tar.Member):
                self._member(member.name, member.read, depth)
                if member.cut:
                    self.notes.append(f"{member.name} is cut off")

    def _text(self, name: str, head: bytes, chunks: Iterator[bytes]) -> None:
        lines = rows(chunks)
        if is_report(head):
            before = len(self.sections)
            self._keep(bug_report.sections(lines, _wanted))
            titles = {section.title for section in self.sections[before:]}
            if bug_report.FOOT not in titles:
                self.notes.append(f"{name} is cut off: its end is missing")
        elif is_supportconfig(head):
            self._keep(supportconfig.sections(lines, _wanted))
        elif b"\0" not in head:
            self._keep(iter([_single(name, lines)]))

    def _keep(self, sections: Iterator[Section]) -> None:
        for section in sections:
            self._kept += sum(map(len, section.lines)) + _LINE_COST * len(section.lines)
            if self._kept > BUNDLE_BYTES * 3:
                raise BadInput(f"more than {BUNDLE_BYTES >> 20} MiB of outputs")
            if section.cut:
                self.notes.append(f"{section.title}: longer than {SECTION_BYTES >> 20} MiB, so cut off")
            self.sections.append(section)


def _wanted(title: str) -> bool:
    return reader_of(title) != "" or title.startswith(bug_report.HEAD)


def _single(name: str, text: Iterator[bytes]) -> Section:
    """A file that is one output: known by its path in the machine, by its name, or by what is in it."""
    machine = None if _OUTPUTS.search(name) else _OF_MACHINE.fullmatch(name)
    base = name.rpartition("/")[2]
    named = _OUTPUT.fullmatch(base)
    title = f"/{machine['path']}" if machine else (named["name"] if named else base).replace("_", " ")
    lines: list[str] = []
    size = 0
    for row in text:
        size += len(row)
        if size > IMPORT_BYTES:
            break
        lines.append(row.decode("utf-8", "replace").rstrip("\r\n"))
    if not reader_of(title):
        title = guessed(lines) or title
    known = reader_of(title) != ""
    return Section(title=title, lines=tuple(lines) if known else (), size=len(lines), is_file=machine is not None,
                   cut=known and size > IMPORT_BYTES)  # fmt: skip
