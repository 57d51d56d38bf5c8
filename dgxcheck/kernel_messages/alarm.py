"""Words by which a line tells of an error, whoever wrote it."""

from __future__ import annotations

import re

from dgxcheck.lazy_pattern import LazyPattern

ALARM = LazyPattern(
    r"\b(?:errors?|err!|fail(?:ed|ing|ure|ures|s)?|fatal|critical|panic|uncorrect(?:ed|able)|corrupt(?:ed|ion)?"
    r"|fallen off|is lost|unhealthy|degraded|timed ?out|abort(?:ed|ing)?|unable to|denied|not responding"
    r"|unresponsive)\b"
    r"|Fehler|错误|失败|故障|에러|오류|エラー",
    flags=re.IGNORECASE,
)
_NONE = LazyPattern(
    r"(?<!gpu )(?<!device )(?<!port )(?<!link )(?<!\.)\b(?:no|0|zero|without(?: any)?|free of)"
    r" (?:[\w-]{1,20} ){0,2}(?:errors?|failures?|failed)\b"
    r"|\b(?:errors?|failures?|failed|corrected|uncorrect(?:ed|able)|timeouts?)\b[\w .()/-]{0,30}?[:=|\t]\s{0,40}"
    r"(?:0x)?(?:0+|n/?a|none|no|disabled|supported|not supported|pass(?:ed)?)\b"
    r"|\b(?:errors?|failures?) {1,8}0\b"
    r"|\bpass(?:ed)?\b.{0,60}\b(?:failed|failures?)\W{1,3}0\b",
    flags=re.IGNORECASE,
)
"""Counts of zero."""


def mentions_error(line: str) -> bool:
    """Does it, other than as a count of zero?"""
    return ALARM.search(line) is not None and ALARM.search(_NONE.sub("", line)) is not None
