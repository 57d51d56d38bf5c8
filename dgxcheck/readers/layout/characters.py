"""Characters that terminals, browsers and chat programs put into a line: escapes, entities, blanks of other kinds."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)"  # title of a window
    r"|\x1b\[[0-9;?]{0,20}[ -/]?[@-~]|\x1b[()][A-Za-z0-9]|\x1b[=>78cM]"
)
_SPELLED = re.compile(r"(?:\^\[|\\033|\\e|\\x1b|\\u001b|\u241b)?\[\d{1,3}(?:;\d{1,3}){0,6}m")
"""Colours and underlines whose ESC was lost on the way or spelled out: ``[4mGPU0 .. [0m``."""
_BLANKS = {ord(blank): " " for blank in "\xa0\u2002\u2003\u2007\u2009\u202f\u3000"} | {
    ord(nothing): None for nothing in "\u200b\u200c\u200d\u2060\ufeff\xad\u200e\u200f"
}
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'", "&nbsp;": " "}
_ENTITY = re.compile("|".join(_ENTITIES))
_ARROW = re.compile(r"(?<=\S)\s+(?:<={1,40}|<-{2,40}|<{2,40}|[\u2190\u21d0\u25c4]).{0,200}$")
"""What people write behind a row: ``<=== here``."""
SHORT = 3
"""Characters behind a carriage return that do not overwrite the line."""
_PLAIN = re.compile(r"[ -%'-;=-Z\\^-~\t]*")
"""A line without any of these characters; most lines are such."""


def plain(line: str) -> str:
    """A line as the tool wrote it, without what people pointed at it with."""
    if _PLAIN.fullmatch(line):
        return line
    if "\x1b" in line or "[" in line:
        line = _SPELLED.sub("", _ESCAPE.sub("", line))
    if not line.isascii():
        line = line.translate(_BLANKS)
    if "&" in line and not line.lstrip().startswith("<"):
        line = _ENTITY.sub(lambda match: _ENTITIES[match[0]], line)
    if "\r" in line:
        before, _, last = line.rstrip("\r").rpartition("\r")
        line = last if len(last) > SHORT else before + last
    return _ARROW.sub("", line) if "<" in line or not line.isascii() else line
