"""HTML elements as text: what is put into one is escaped, unless it is an element itself."""

from __future__ import annotations

from html import escape

from dgxcheck.output.plain_text import visible

_VOID = ("meta", "br")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *inside: str, **attributes: str | None) -> Markup:
    """``element("td", "5 < 6", class_="fail")``; an attribute that is None or empty is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(value))}"' for key, value in attributes.items() if value
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(*inside)}</{name}>")


def joined(*parts: str) -> Markup:
    """Parts after each other."""
    return Markup("".join(part if isinstance(part, Markup) else escape(visible(part), quote=False) for part in parts))
