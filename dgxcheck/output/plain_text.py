"""Plain text: hostile characters replaced, columns aligned, lines wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from dgxcheck.facts.missing import Missing
from dgxcheck.lazy_pattern import LazyPattern

_LAST_COLUMN = 0.75
"""Share of the width: a last column that begins farther right is not wrapped."""
_TREE = "│├└─ "

def visible(text: str) -> str:
    """Text with every control, invisible or direction-turning character replaced; one line."""
    return text if text.isascii() and text.isprintable() else text.translate(_replaced())


@cache
def _replaced() -> dict[int, str]:
    """By code point; made when a text first needs it."""
    # C0, DEL, C1, line separators, surrogates, and what Unicode calls format characters (Cf) or ignorable by default:
    # soft hyphen, joiners, bidirectional controls, fillers, variation selectors, tags; noncharacters, which XML forbids
    hidden = (
        *range(0x20), *range(0x7F, 0xA0), 0xAD, 0x34F, *range(0x600, 0x606), 0x61C, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2,
        0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x2028, 0x202F),
        *range(0x2060, 0x2070), 0x3164, *range(0xD800, 0xE000), *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0,
        *range(0xFFF0, 0xFFFC), 0x110BD, 0x110CD, *range(0x13430, 0x13440), *range(0x1BCA0, 0x1BCA4),
        *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE0200),
        *(plane << 16 | last for plane in range(17) for last in (0xFFFE, 0xFFFF)),
    )  # fmt: skip
    return dict.fromkeys(hidden, "\N{REPLACEMENT CHARACTER}")


def wording(kind: str) -> dict[Any, str]:
    """What ``words.tsv`` has of one kind: texts by word, in the order in which they are shown."""
    from dgxcheck.package_files import table

    return {row["word"]: row["text"] for row in table("output/words.tsv", kind)}


def shown(value: object) -> str:
    """A fact as text: ``?`` for Missing, ``N/A`` for None (not applicable)."""
    return "?" if isinstance(value, Missing) else "N/A" if value is None else visible(str(value))


def percent(share: float) -> str:
    """A share of 1 in per cent: ``99.7 %``."""
    return f"{100 * share:.4g} %"


def room_of(text: str) -> int:
    """Columns of a terminal: two for a wide character (CJK), of which there are none below U+0300."""
    if text.isascii() or max(text) < "\u0300":
        return len(text)
    from unicodedata import east_asian_width

    return len(text) + sum(east_asian_width(char) in "WF" for char in text)


def columns(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Rows as lines with aligned columns, without trailing blanks."""
    widths = [max(map(room_of, column)) for column in zip(*rows, strict=True)]
    return [gap.join(cell + " " * (width - room_of(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows]  # fmt: skip


def fit_columns(
    head: list[str], body: list[list[str]], optional: list[list[str]], width: int | None, seam: int = 0
) -> tuple[list[str], list[str]]:
    """A table by columns fitted to ``width``: narrower gaps, without optional columns, then all in blocks of columns.

    Returns its lines and the heads of the hidden columns. ``head`` is the column of row names, repeated in each block;
    cells are never cut. A block ends before column ``seam``, unless that makes more blocks. ``width`` None: no limit.
    """
    if width is None:
        return _rows([head, *body, *optional], "  "), []
    for shown_columns in range(len(optional), -1, -1):
        for gap in ("  ", " "):
            table = _rows([head, *body, *optional[:shown_columns]], gap)
            if max(map(room_of, table)) <= width:
                return table, [column[0] for column in optional[shown_columns:]]

    def room(parts: list[tuple[int, int]]) -> int:
        """How many of the optional columns the last block takes."""
        more = len(optional)
        while more and max(map(room_of, _rows([head, *body[parts[-1][0] :], *optional[:more]], " "))) > width:
            more -= 1
        return more

    ways = [_parted(head, body, width, seam), _parted(head, body, width, 0)]
    parts = min((way for way in ways if way), key=lambda way: (len(way), -room(way)), default=[(0, 0)])
    blocks: list[str] = []
    for start, end in parts:
        last = optional[: room(parts)] if end == len(body) else []
        blocks += ([""] if blocks else []) + _rows([head, *body[start:end], *last], " ")
    return blocks, [column[0] for column in optional[room(parts) :]]


def _parted(head: list[str], body: list[list[str]], width: int, seam: int) -> list[tuple[int, int]]:
    """Where blocks that fit begin and end."""
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(body):
        end = seam if start < seam else len(body)
        while end > start + 1 and max(map(room_of, _rows([head, *body[start:end]], " "))) > width:
            end -= 1
        found.append((start, end))
        start = end
    return found


def fitted(texts: Iterable[str], width: int) -> list[str]:
    """Lines cut to the width of the terminal."""
    return [line if room_of(line) <= width else f"{_begun(line, width - 1)}…" for line in texts]


def _begun(line: str, width: int) -> str:
    """As much of a line as fits."""
    return next((line[:end] for end in range(width, 0, -1) if room_of(line[:end]) <= width), "")


def at_most(rows: Sequence[str], most: int | None, more: str = "and {} more; list them with -v") -> list[str]:
    """The first rows, and how many there are beside; ``most`` None: all."""
    left = 0 if most is None else len(rows) - most
    return [*rows[:most], *([more.format(left)] if left > 0 else [])]


def hidden_columns(heads: Sequence[str]) -> list[str]:
    """A line that names the columns hidden to fit; empty without any."""
    return [f"Columns hidden to fit: {', '.join(heads)} (complete in a pipe or with -o FILE)"] if heads else []


def wrapped(text: str, width: int | None, hanging: int) -> str:
    """A sentence in lines of at most ``width``, those after the first indented; words are not broken."""
    if width is None or len(text) <= width:
        return text
    indent = text[: len(text) - len(text.lstrip())]
    return _filled(text.strip(), width, indent, " " * min(hanging, width // 4))


_UNIT = LazyPattern(r"(?<=\d) (?=(?:%|°C|[GMKT]i?B(?:/s)?|Gbit/s|GT/s|[MG]Hz|W|µs)(?:\W|$))", " ")


def _filled(text: str, width: int, first: str = "", later: str = "") -> str:
    """Lines that are indented; words are not broken, and a number stays with its unit."""
    from textwrap import fill

    kept = _UNIT.sub(_BOND, text)
    return fill(kept, width, initial_indent=first, subsequent_indent=later, break_long_words=False,
                break_on_hyphens=False).replace(_BOND, " ")  # fmt: skip


_BOND = "\x00"
"""Stands for a blank at which no line ends; no text that is shown has it."""


def wrap_sentences(text: str, width: int) -> str:
    """The text with sentences wrapped to ``width``, entries of trees below themselves, and the last column of a table
    where it begins left enough.

    Other tables and long words stay as they are.
    """
    return "".join(_folded(line, width) for line in text.splitlines(keepends=True))


def _folded(line: str, width: int) -> str:
    body = line.strip()
    if len(line.rstrip("\n")) <= width:
        return line
    if body[:1] in "├└│":
        entry = line.lstrip(_TREE)
        drawn = line[: len(line) - len(entry)]
        below = drawn.replace("├─", "│ ").replace("└─", "  ") + "  "
        if len(drawn) > width * _LAST_COLUMN or not {*"├└"}.isdisjoint(below):
            return line
        return _filled(entry.strip(), width, drawn, below) + "\n"
    if "  " in body:
        last = line.rstrip().rindex("  ") + 2
        if last > width * _LAST_COLUMN:
            return line
        text = _filled(line[last:].strip(), width - last)
        return line[:last] + text.replace("\n", f"\n{' ' * last}") + "\n"
    indent = line[: len(line) - len(line.lstrip())]
    return _filled(body, width, indent, f"{indent}  ") + "\n"


def _rows(table: list[list[str]], gap: str) -> list[str]:
    return columns(list(zip(*table, strict=True)), gap)


def lines(parts: Iterable[str]) -> str:
    """Lines as one text with a newline at its end."""
    return "".join(f"{part}\n" for part in parts)
