"""A pattern that waits for its literal matches what the expression matches, and is compiled for nothing else."""

from __future__ import annotations

import re

import pytest

from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern, caseless_pattern
from dgxcheck.readers.host import schedulers
from dgxcheck.readers.network import logs

EXPRESSION = r"Xid \(PCI:(?P<bdf>[0-9a-f:]{10,16})\): (?P<number>\d{1,3})"
TEXT = "Xid (PCI:0000:06:00): 79, pid=1; Xid (PCI:0000:07:00): 48"


def is_compiled(pattern: LazyPattern) -> bool:
    try:
        object.__getattribute__(pattern, "compiled")
    except AttributeError:
        return False
    return True


def test_nothing_is_compiled_for_a_text_without_the_literal() -> None:
    pattern = LazyPattern("(broken", "Xid", "SXid")
    for text in ("", "usb 1-1: new device"):
        assert pattern.match(text) is pattern.fullmatch(text) is pattern.search(text) is None
        assert [*pattern.finditer(text)] == []
        assert pattern.sub("x", text) == text
    assert not is_compiled(pattern)
    with pytest.raises(re.error):
        pattern.match("an Xid")


@pytest.mark.parametrize("literals", [(), ("Xid",), ("SXid", "Xid (")])
def test_it_matches_as_the_expression_does(literals: tuple[str, ...]) -> None:
    pattern, plain = LazyPattern(EXPRESSION, *literals), re.compile(EXPRESSION)
    assert not is_compiled(pattern)
    assert [each.groupdict() for each in pattern.finditer(TEXT)] == [each.groupdict() for each in plain.finditer(TEXT)]
    assert is_compiled(pattern)
    for text in (TEXT, f"x{TEXT}", TEXT[:24]):
        for ours, theirs in zip(
            (pattern.match(text), pattern.fullmatch(text), pattern.search(text)),
            (plain.match(text), plain.fullmatch(text), plain.search(text)),
            strict=True,
        ):
            assert (ours and ours.span()) == (theirs and theirs.span())
        assert pattern.sub("-", text) == plain.sub("-", text)


@pytest.mark.parametrize(("expression", "literals"), [
    (EXPRESSION, ("Xid (PCI:",)),
    (r"(?:.{0,80} )?(?:FATAL|ERROR): Module (?P<name>\w+) not found", (" not found",)),
    (r"lost|(?:gone )?away|dead\.", ("lost", "away", "dead.")),
    (r"abc?d|x{0,3}efg{2}", ()), (r"(?=seen)\w+", ()), (r"(?i:xid)\d", ()), (r"one|two|.*", ()), (r"ab", ()),
    (r"(?i)xid \d", ()), (r"(?mx) xid \d", ()), (r"(?ms)xid", ("xid",)), (r"(?P<a>\d)(?P=a)(?#note)(?-i:xid)", ()),
    (r"(\d)?(?(1)gone)!", ()), (r"(\d)\10 MB", (" MB",)), (r"x{}{0}", ()),
])  # fmt: skip
def test_literals_follow_from_the_expression(expression: str, literals: tuple[str, ...]) -> None:
    assert LazyPattern(expression).literals == (literals or ("",))


@pytest.mark.parametrize("pattern", [schedulers._DETECTED, *(each.words for each in schedulers._OFFERED), logs._UCX])
def test_patterns_of_every_line_wait_for_a_literal(pattern: LazyPattern) -> None:
    assert pattern.literals != ("",)


def test_flags_are_kept() -> None:
    assert LazyPattern("xid", flags=re.IGNORECASE).search("XID")
    assert not LazyPattern("xid").search("XID")
    assert LazyPattern("xid", flags=re.IGNORECASE).literals == ("",)


def test_which_letters_a_pattern_knows() -> None:
    assert LazyPattern(r"GPU \d").fullmatch("GPU \u0663")
    assert not ascii_pattern(r"GPU \d").fullmatch("GPU \u0663")
    assert ascii_pattern(r"GPU \d", "GPU").literals == ("GPU",)
    assert caseless_pattern(r"GPU \d").fullmatch("gpu 3")
    assert caseless_pattern(r"GPU \d").literals == ("",)
