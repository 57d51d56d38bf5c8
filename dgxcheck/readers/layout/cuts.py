"""Marks of what somebody left out of an output: ``[...]``, ``[snip]``, ``<cut>``, ``...``, ``--- snip ---``."""

from __future__ import annotations

import re

_WORD = (
    r"(?:\.{2,6}|\u2026{1,2}|snip(?:ped)?|cut|truncated|omitted|skipped|output (?:omitted|truncated|cut)|\u7701\u7565)"
)
_CUT = re.compile(
    rf"[\[(<{{] ?{_WORD}(?: (?:omitted|snip|cut|more))? ?[\])>}}]|\.{{3,6}}|\u2026{{1,2}}"
    rf"|[-=~*#._]{{2,20}} ?(?:snip|cut|cut here|\u2026) ?[-=~*#._]{{2,20}}|\d{{1,6}} more lines?",
    re.IGNORECASE,
)


def is_cut(line: str) -> bool:
    """Does a line only say that others were left out?"""
    return _CUT.fullmatch(line.strip()) is not None
