"""Sentences, comments and headings around outputs, which no tool has printed."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['\u2019-]){0,30}[.,:;!?)]{0,4}")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_COLUMNS = re.compile(r"\t|  |\S\s+:\s+\S|[|=]")
"""What lines of tools have and sentences do not."""
_TECHNICAL = re.compile(
    r"gpu|nic\d|mlx\d|nvlink|nvml|nvrm|xid|ecc|pcie?\b|\bbus\b|device|driver|error|fail|warn|unable|lost|fault|corrupt"
    r"|\b\w\w:\w\w\.\d|inactive|down\b|\d\.\d",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"#{1,6} (?=[A-Za-z])|\*\*(?=\S)|- (?=[A-Z])")
_URL = re.compile(r"https?://\S{4}")
FEWEST = 4
"""Words of a sentence."""


def is_prose(line: str) -> bool:
    """Is a line a comment or a heading, or a sentence that speaks of no device or fault, in any script?"""
    text = line.strip()
    if len(text) > 2000 or line[:1] == "\t" or line[:2] == "  " or _COLUMNS.search(text):
        return False
    comment = _COMMENT.match(text)
    words = text.lstrip("#*->! ").split()
    known = sum(_WORD.fullmatch(word.lstrip("(\"'*_`")) is not None for word in words)
    sentence = known >= FEWEST and 10 * known >= (5 if comment else 6) * len(words)
    if (comment and sentence) or _URL.search(text) or (text.endswith(":") and words and ":" not in text[:-1]):
        return True
    return not _TECHNICAL.search(text) and (sentence or len(_CJK.findall(text)) >= FEWEST)
