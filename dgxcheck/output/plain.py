"""Plain text: what is hostile made visible, columns aligned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dgxcheck.reading import Missing

# C0, DEL, C1, and what turns or hides text: soft hyphen, zero-width and bidirectional controls, line separators
_HIDDEN = (
    *range(0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
    *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080), *range(0xD800, 0xE000),
)  # fmt: skip
_REPLACED = dict.fromkeys(_HIDDEN, "\N{REPLACEMENT CHARACTER}")


def visible(text: str) -> str:
    """Text with every control, invisible or direction-turning character replaced; one line."""
    return text if text.isascii() and text.isprintable() else text.translate(_REPLACED)


def shown(value: object) -> str:
    """A fact for a reader: ``?`` where it is missing, ``N/A`` where there is none to have."""
    if isinstance(value, Missing):
        return "?"
    return "N/A" if value is None else visible(str(value))


def columns(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Rows as lines with aligned columns, no blanks at their ends."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def lines(parts: Iterable[str]) -> str:
    """Lines as one text with a newline at its end."""
    return "".join(f"{part}\n" for part in parts)
