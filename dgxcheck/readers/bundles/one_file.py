"""A file of an archive or directory that is one output: known by its path, by its name, or by what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.facts.limits import IMPORT_BYTES
from dgxcheck.readers.bundles.guess import guessed
from dgxcheck.readers.bundles.section import Section
from dgxcheck.readers.bundles.wanted import BY_TITLE, PROGRAMS, reader_of

_OF_MACHINE = re.compile(r"(?:[^/]+/){0,7}?(?P<path>(?:proc|sys|etc|run)/.*)")
_OUTPUT = re.compile(r"(?P<name>[\w.+-]{1,200}?)(?:\.(?:txt|log|out))?")
_OUTPUTS = re.compile(r"(?:^|/)(?:sos_commands|commands)/")
"""Where a program has named the files after its commands."""
_PASTED = 1 << 20
"""Longer outputs are not pasted by hand; those are identified by their names alone."""
_SHORT = 32 << 10
"""Bytes; a text so short is tried with every reader whatever its words."""
_TELLING = re.compile(
    r"nvidia|nvrm|nvlink|nvswitch|nccl|\bgpu|\bxid\b|\bhca\b|mlx[45]_|infiniband|\blnk(?:cap|sta)|\[10de:|\bdcgm|"
    r"\bedac\b|\bmce:|pcieport|\bnode [01] cpus|numa node|dmidecode|\bca '|mst devices|\bib_(?:write|read|send)|"
    r"link_layer|\bp2p\b|healthmon|\bnhc\b|<topology|<system version|ib[0-9]|hardware error|bandwidth|\[06\d\d\]",
    re.IGNORECASE,
)
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
        if size > IMPORT_BYTES:
            break
        lines.append(row.decode("utf-8", "replace").rstrip("\r\n"))
    if not reader_of(title):
        title = guessed(lines) or title
    known = reader_of(title) != ""
    by_name = known and (by_program or size > _PASTED or reader_of(title) in BY_TITLE)
    short = size <= _SHORT and not by_program
    loose = machine is None and not by_name and any(map(str.strip, lines)) and (known or short or _is_telling(lines))
    return Section(
        title=title, lines=tuple(lines) if known or loose else (), size=len(lines), is_file=machine is not None,
        cut=known and size > IMPORT_BYTES, loose=loose,
    )  # fmt: skip


def _title(name: str) -> str:
    """``ibv_devinfo -v`` of ``ibv_devinfo_-v``: blanks are underscores in a file's name, and so are underscores."""
    program = next((program for program in PROGRAMS if re.match(rf"{re.escape(program)}(?:_|$)", name)), "")
    return program + name[len(program) :].replace("_", " ")


def _is_telling(lines: Sequence[str]) -> bool:
    return any(map(_TELLING.search, lines))
