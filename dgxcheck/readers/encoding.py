"""Texts as they were saved: UTF-8, or UTF-16 as PowerShell redirects outputs."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import chain

_HEAD_OF_TEXT = 512
_FEWEST_PAIRS = 8
_ZEROS = 0.9
"""Of the high bytes of a text in English."""


def utf8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces of a text in UTF-8 without its mark; PowerShell redirects outputs as UTF-16."""
    first = next(chunks, b"")
    name = utf16(first)
    if not name:
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(name)("replace")
    for chunk in chain([first], chunks):
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def utf16(head: bytes) -> str:
    """The codec of a text in UTF-16: with its mark, or with every other byte of its beginning zero; else empty."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    begin = head[:_HEAD_OF_TEXT]
    pairs = len(begin) // 2
    for name, zeros, others in (("utf-16-le", begin[1::2], begin[::2]), ("utf-16-be", begin[::2], begin[1::2])):
        if pairs > _FEWEST_PAIRS and zeros.count(0) > _ZEROS * pairs and not others.count(0):
            return name
    return ""
