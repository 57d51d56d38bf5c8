"""The texts that ``dgxcheck import`` reads: files and stdin, within limits; of several hosts those of one."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Callable, Collection, Sequence
from time import process_time
from typing import AnyStr, Protocol, TypeVar

from dgxcheck.checks.engine.finding import first_of
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.input_file import PACKED, CpuTime, read_input, read_stdin, unzipped
from dgxcheck.limits import IMPORT_BYTES, IMPORT_LINES
from dgxcheck.readers.formats import utf16
from dgxcheck.readers.layout.undo import Layout, undone

KNOWN = (
    "the output of nvidia-smi, dmesg, lspci, dcgmi, NCCL, ibstat, p2pBandwidthLatencyTest, bandwidthTest, simpleP2P,"
    " nvbandwidth, nccl-tests, perftest and others: see dgxcheck-import(1)"
)
_OUTPUT = re.compile(
    rb'(?P<key>"(?:stdout|stderr|output|msg|text|content)"\s{0,20}:\s{0,20})"(?P<text>(?:[^"\\\n]|\\.){1,1048576})"'
)
"""A member of JSON as programs that run others have it: Ansible, agents."""
_OF_DMESG = b'"pri"'
"""In ``dmesg -J`` a message is one, whatever lines a program put into it."""
_EMPTY = re.compile(rb"\n[ \t\n]{3,}\n")
INSTEAD = "give the files with the tools' output, or pipe it to -"


class InputText(Record, kw_only=False):
    """A text by lines, and its name: that of the file without folders, which may name people."""

    name: str
    lines: tuple[str, ...]
    """As they stand in the file."""
    layout: Layout
    """As tools printed them."""
    time: CpuTime

    @property
    def selection(self) -> str:
        """How many of the lines of a long text are read, and which, and whether time was short; empty where all are."""
        read, there = len(self.layout.kept), len(self.lines)
        some = "" if read == there else f"{read} of {there} lines were read, first those that name devices and errors"
        return "; ".join(filter(None, (some, self.time.exceeded)))


def texts(files: tuple[str, ...], clock: Callable[[], float] = process_time) -> list[InputText]:
    """The files in the order given; the same name from two folders gets a number."""
    found: list[InputText] = []
    for file in files:
        raw = read_stdin(IMPORT_BYTES) if file == "-" else read_input(file, IMPORT_BYTES, INSTEAD)
        raw = unzipped(raw, file, IMPORT_BYTES) if raw[:2] == PACKED else raw
        name = "stdin" if file == "-" else os.path.basename(file).encode(errors="replace").decode()
        again = sum(text.name == name or text.name.startswith(f"{name} (") for text in found)
        found.append(text_of(f"{name} ({again + 1})" if again else name, lines(raw, file), CpuTime(clock)))
    return found


def text_of(name: str, lines: tuple[str, ...], time: CpuTime | None = None) -> InputText:
    """A text, and its lines without what stands around outputs."""
    time = time or CpuTime()
    return InputText(name, lines, time.whole(name, lambda: undone(lines)), time)


def lines(raw: bytes, file: str) -> tuple[str, ...]:
    """Lines of UTF-8, or of UTF-16 as PowerShell writes it; what is no text of either becomes U+FFFD."""
    if codec := utf16(raw):
        raw = raw.decode(codec, "replace").encode("utf-8", "replace")
    elif b"\0" in raw:
        raise BadInput(f"{file}: contains NUL bytes, so it is not text; give the text output of a tool")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    raw = (raw if _OF_DMESG in raw else _OUTPUT.sub(_unfolded, raw)).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if raw.count(b"\n") >= IMPORT_LINES:
        raw = _EMPTY.sub(b"\n\n\n", raw)
    if raw.isascii():
        return _ends(raw.decode("ascii"), "\n")
    return tuple(line.decode("utf-8", "replace") for line in _ends(raw, b"\n"))  # as one text four times as large


def _ends(text: AnyStr, newline: AnyStr) -> tuple[AnyStr, ...]:
    """The lines of a text; of too many those at its beginning and end, around an empty one."""
    begin: list[AnyStr] = text.split(newline, IMPORT_LINES // 2)
    end: list[AnyStr] = begin.pop().rsplit(newline, IMPORT_LINES // 2) if len(begin) > IMPORT_LINES // 2 else []
    if len(end) > IMPORT_LINES // 2:
        end[0] = newline[:0]
    return tuple(begin + end)


def _unfolded(member: re.Match[bytes]) -> bytes:
    """An output that JSON holds in one string, as lines of its own."""
    try:
        text: str = json.loads(b'"' + member["text"] + b'"')
    except ValueError:
        return member[0]
    return member["key"] + b"\n" + text.encode("utf-8", "replace") + b"\n" if "\n" in text.strip() else member[0]


SHOWN = 8


class Owned(Protocol):
    """Something of one host."""

    @property
    def host(self) -> str: ...


T = TypeVar("T", bound=Owned)


def of_host(parts: Sequence[T], host: str, others: Collection[str] = (), faulty: Collection[str] = ()) -> list[T]:
    """The outputs of one host, and those of unknown origin; BadInput if several hosts remain.

    ``others`` are hosts that were named elsewhere, ``faulty`` those in whose outputs a tool found a fault.
    """
    hosts = sorted({part.host for part in parts} - {""})
    if host and host not in hosts and host not in others:
        raise BadInput(f"--host {host}: {_have(hosts)}")
    if len(hosts) > 1 and not host:
        found = f" (their tools found faults at {first_of(sorted(faulty), SHOWN)})" if faulty else ""
        raise BadInput(f"{_have(hosts)}; choose one with --host NAME{found}")
    return [part for part in parts if part.host in ("", host or part.host)]


def _have(hosts: Sequence[str]) -> str:
    if not hosts:
        return "no prefix, heading or prompt in the texts names a host"
    if len(hosts) == 1:
        return f"the texts come from host {hosts[0]}"
    return f"the texts come from several hosts: {first_of(hosts, SHOWN)}"
