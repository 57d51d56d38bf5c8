"""Texts and what stands in them: UTF-8 or UTF-16, JSON objects among other lines, tags of XML, samples of Prometheus.

Samples in the text format of Prometheus: ``NAME{LABEL="VALUE",..} NUMBER [TIMESTAMP]``.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.values import bounded

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


MOST_CHARACTERS = 1 << 22
_MOST_TRIES = 64
_WINDOWS = (64, 1024, 16_384, MOST_CHARACTERS)
"""Lines of a document that are tried, the next more where these break off in the middle of it."""
_BLANK = 8
"""Lines in which the first member begins."""
Document = dict[str, Json]


def documents(lines: tuple[str, ...], wanted: Callable[[Document], bool]) -> Iterator[tuple[Document, list[int]]]:
    """The objects that begin a line and are ``wanted``, each with its lines that are not blank.

    What is within a wanted one is no document of its own; within others it may be.
    """
    beyond = tries = 0
    for start, line in enumerate(lines):
        if start < beyond or not line.lstrip().startswith("{") or tries >= _MOST_TRIES or not _opens(lines, start):
            continue
        tries += 1
        found, end = document(lines, start)
        if wanted(found):
            beyond = end
            yield found, [number for number in range(start, end) if lines[number].strip()]


def _opens(lines: tuple[str, ...], start: int) -> bool:
    """Does what stands behind the brace begin a member, or end the object? Source code has braces too."""
    behind = lines[start].lstrip()[1:].lstrip()
    behind = behind or next((text for line in lines[start + 1 : start + _BLANK] if (text := line.lstrip())), "")
    return behind[:1] in ('"', "}")


def document(lines: tuple[str, ...], start: int) -> tuple[Document, int]:
    """The object that a brace in a line begins and the number of the line after it; ({}, start) where there is none."""
    for count in _WINDOWS:
        window = _bounded(lines, start, count)
        text = "\n".join(window) + "\n"
        begin = len(text) - len(text.lstrip())
        try:
            found, length = json.JSONDecoder().raw_decode(text, begin)
        except json.JSONDecodeError as error:
            shown = text.rstrip()
            if len(window) < count or error.pos < len(shown) - len(shown.rpartition("\n")[2]):
                return {}, start
        except (ValueError, RecursionError):
            return {}, start
        else:
            return found, start + text.count("\n", 0, length) + 1
    return {}, start


def _bounded(lines: tuple[str, ...], start: int, count: int) -> list[str]:
    """At most ``count`` lines from ``start`` on, with at most MOST_CHARACTERS in all."""
    room, taken = MOST_CHARACTERS, []
    for line in lines[start : start + count]:
        room -= len(line)
        if room < 0:
            break
        taken.append(line)
    return taken


_ATTRIBUTE = LazyPattern(r"""([a-z_]{1,24})\s{0,4}=\s{0,4}["']([^"'<>]{0,600})["']""")
DEEPEST = 64
Tag = tuple[str, dict[str, str]]
"""Name and members; without a name the end of another one."""


def tags(lines: tuple[str, ...], form: LazyPattern) -> Iterator[tuple[int, Tag, list[Tag]]]:
    """Each tag of XML that may be cut, with the number of its line, and those around it that are open.

    ``form`` has the groups ``end``, ``name``, ``members`` and ``leaf``.
    """
    around: list[Tag] = []
    for number, line in enumerate(bounded(lines)):
        for match in form.finditer(line) if "<" in line else ():
            tag = ("" if match["end"] else match["name"]), dict(_ATTRIBUTE.findall(match["members"]))
            yield number, tag, around
            if match["end"]:
                while around and around.pop()[0] != match["name"]:
                    pass
            elif not match["leaf"] and len(around) < DEEPEST:
                around.append(tag)


_SAMPLE = LazyPattern(r"(?P<name>[A-Za-z]\w{2,90})(?:\{(?P<labels>[^{}]{0,4000})\})? (?P<value>\S{1,40})(?: \d{1,16})?")
_LABEL = LazyPattern(r"(?P<name>\w{1,64})=\"(?P<value>(?:[^\"\\]|\\.){0,400})\"")
_COMMENT = LazyPattern(r"# (?:HELP|TYPE) (?P<name>\w{2,90}) .{1,400}")


class Sample(Record, kw_only=False):
    """One metric with its labels; ``value`` as it is written."""

    name: str
    labels: Mapping[str, str]
    value: str


def sample(line: str) -> Sample | None:
    """The sample in a line; None for any other line."""
    match = _SAMPLE.fullmatch(line)
    if match is None:
        return None
    labels = {label["name"]: label["value"] for label in _LABEL.finditer(match["labels"] or "")}
    return Sample(match["name"], labels, match["value"])


def commented(line: str) -> str:
    """The metric that a line of HELP or TYPE describes; empty for any other line."""
    match = _COMMENT.fullmatch(line)
    return match["name"] if match is not None else ""
