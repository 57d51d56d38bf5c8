"""How wide a text is in the fonts that a viewer may have: those of DejaVu Sans and Verdana, the widest of the usual."""

from __future__ import annotations

FONTS = "'DejaVu Sans', Verdana, Arial, sans-serif"
LINE = 1.3
"""Height of a line, in em."""
_EM = {
    **dict.fromkeys("ijl.,:;'|!I", 0.37),
    **dict.fromkeys(" ftr()[]/-", 0.43),
    **dict.fromkeys("mwMW@%_+", 0.97),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ=&", 0.77),
}
_OTHER, _BOLD = 0.645, 1.12


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Pixels, rather too many than too few; a wide character (CJK) takes one em and more."""
    ems = sum(_EM.get(char, _OTHER if char.isascii() else 1.05) for char in text)
    return ems * size * (_BOLD if bold else 1)


def shortened(text: str, width: float, size: float, bold: bool = False) -> str:
    """The text, or as much of its start as fits, with an ellipsis."""
    if text_width(text, size, bold) <= width:
        return text
    end = len(text)
    while end > 1 and text_width(text[:end] + "…", size, bold) > width:
        end -= 1
    return f"{text[:end].rstrip()}…"


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Lines that fit, broken between words; a longer word stands alone and shortened."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(shortened(word, width, size))
    return lines
