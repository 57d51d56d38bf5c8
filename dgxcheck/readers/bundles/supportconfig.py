"""The texts of SUSE's supportconfig: ``#==[ Command ]==..#``, then ``# /sbin/lspci -b``, then the output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from dgxcheck.facts.limits import SECTION_BYTES
from dgxcheck.readers.bundles.section import Section

_HEAD = re.compile(r"#==\[ (?P<kind>[\w -]{1,40}) \]=+#")


def sections(rows: Iterable[bytes], wanted: Callable[[str], bool]) -> Iterator[Section]:
    """Every command and file; the lines of those alone whose title is ``wanted``."""
    kind = title = ""
    first = size = kept = 0
    lines: list[str] = []
    for number, row in enumerate(rows):
        text = row.decode("utf-8", "replace").rstrip("\r\n")
        if match := _HEAD.fullmatch(text):
            if title:
                yield _section(title, kind, first, lines, size, kept)
            kind, title, lines, size, kept = match["kind"], "", [], 0, 0
        elif kind and not title and text.startswith("# "):
            title, first = text[2:].strip(), number
        elif title:
            size += 1
            if wanted(title):
                kept += len(text) + 1
                lines += [text] if kept <= SECTION_BYTES else []
    if title:
        yield _section(title, kind, first, lines, size, kept)


def _section(title: str, kind: str, first: int, lines: list[str], size: int, kept: int) -> Section:
    return Section(title=title.split(" - ")[0], first=first, lines=tuple(lines), size=size,
                   is_file="File" in kind, cut=kept > SECTION_BYTES)  # fmt: skip
