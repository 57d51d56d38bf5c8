"""Every regular expression takes time linear in its text, whatever is pumped into each of its repeats.

They are found by themselves: in the objects of all modules, and in the source, where a function uses one directly.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

import pytest
from checkout import ROOT
from sample import swept
from together import holds_for_each

import dgxcheck
import probes
from dgxcheck.facts.record import Record, fields
from dgxcheck.kernel_messages.forms import FORMS
from dgxcheck.lazy_pattern import LazyPattern

try:
    op, parser = importlib.import_module("re._constants"), importlib.import_module("re._parser")
except ImportError:  # before Python 3.11
    op, parser = importlib.import_module("sre_constants"), importlib.import_module("sre_parse")

SIZE = 1 << 14
SHORT = 24, 48
"""Texts that are tried first: what is exponential takes too long with these, and would not end with more."""
SECONDS = 0.1
"""What is quadratic takes twice that on 16 KiB where it steps fastest, what is linear a hundredth."""
EIGHTH, EIGHTH_SECONDS = SIZE // 8, SECONDS / 8**2
"""What is quadratic takes longer on an eighth of the text, too; what does not is not tried with the whole."""
TAILS = ("", "\0", "!", " !", "a", "<", ")")


ANYWHERE = ("search", "finditer", "findall", "sub", "subn", "split")
Expression = re.Pattern[str] | LazyPattern
Found = dict[str, Expression]
GAP = "\0"
"""Stands for what a literal cannot be read from."""
MOST_TEXTS = 4096


@cache
def patterns() -> Found:
    """The expressions in all modules, by module and name."""
    found: Found = {}
    for package in (dgxcheck, probes):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not info.name.endswith("__main__"):
                module = importlib.import_module(info.name)
                for name, value in vars(module).items():
                    found |= {f"{info.name}.{label}": each for label, each in within(name, value)}
    return found


def within(name: str, value: object, depth: int = 4) -> Iterator[tuple[str, Expression]]:
    """Expressions in a module's constant, in tuples, tables, records and classes too; of bytes as if they were text."""
    if isinstance(value, LazyPattern):
        yield name, value
    elif isinstance(value, re.Pattern):
        yield name, value if isinstance(value.pattern, str) else of_bytes(value)
    elif isinstance(value, Record) and depth:
        for label in fields(value):
            yield from within(f"{name}[{label!r}]", getattr(value, label), depth - 1)
    elif isinstance(value, type) and value.__module__ == name.rpartition(".")[0] and depth:
        for label, each in vars(value).items():
            yield from within(f"{name}[{label!r}]", each, depth - 1)
    elif isinstance(value, tuple | list | set | frozenset) and depth:
        for number, each in enumerate(value):
            yield from within(f"{name}[{number}]", each, depth - 1)
    elif isinstance(value, dict) and depth:
        for number, (key, each) in enumerate(value.items()):
            yield from within(f"{name}[key {number}]", key, depth - 1)
            yield from within(f"{name}[{key!r}]" if isinstance(key, str) else f"{name}[{number}]", each, depth - 1)


def of_bytes(pattern: re.Pattern[bytes]) -> re.Pattern[str]:
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags & ~re.LOCALE)


def _literals() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    """Expressions that stand in a call of ``re`` in the source: place, function, expression."""
    for path in sorted([*(ROOT / "dgxcheck").rglob("*.py"), *(ROOT / "probes").rglob("*.py")]):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if re.search(r"\bre\b|[pP]attern\b", source) else ():
            if isinstance(node, ast.Call) and (use := used(node.func)) and node.args:
                text = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
                if isinstance(text, str | bytes):
                    compiled = re.compile(text, flags_of(node))
                    each = compiled if isinstance(text, str) else of_bytes(compiled)  # type: ignore[arg-type]
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", use, each  # type: ignore[misc]


@cache
def literals() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    return tuple(_literals())


def used(function: ast.expr) -> str:
    """``match`` of ``re.match``, ``compile`` of ``LazyPattern``; empty for what is no function of ``re``."""
    if isinstance(function, ast.Name) and function.id in ("LazyPattern", "ascii_pattern", "caseless_pattern"):
        return "compile"
    of_re = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"
    return function.attr if of_re and isinstance(function, ast.Attribute) else ""


def flags_of(call: ast.Call) -> int:
    """``re.VERBOSE | re.MULTILINE``, given last or by name."""
    given = [each.value for each in call.keywords if each.arg == "flags"] + call.args[1:]
    names = {each.attr for value in given for each in ast.walk(value) if isinstance(each, ast.Attribute)}
    return sum(getattr(re, name) for name in names if name in re.RegexFlag.__members__)


def samples(tree: Sequence[Any]) -> str:
    """A text that an expression, or a part of one, matches; lookarounds are left out."""
    return "".join(sample(kind, what) for kind, what in tree)


def sample(kind: Any, what: Any) -> str:
    if kind is op.LITERAL:
        return chr(what)
    if kind is op.NOT_LITERAL:
        return "b" if what == ord("a") else "a"
    if kind is op.ANY:
        return "a"
    if kind is op.IN:
        return one_of(what)
    if kind is op.BRANCH:
        return samples(what[1][0])
    if kind is op.SUBPATTERN:
        return samples(what[3])
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        times: int = max(what[0], 1 if what[1] > 1 else 0)
        return samples(what[2]) * times
    return ""


def one_of(members: Any) -> str:
    """A character of a class."""
    negated = members[0][0] is op.NEGATE
    for char in " a0A<:x.-=\t'\",_#@[]()|/+;&!%":
        hit = any(
            (kind is op.LITERAL and ord(char) == what)
            or (kind is op.RANGE and what[0] <= ord(char) <= what[1])
            or (kind is op.CATEGORY and re.match(CATEGORIES[str(what)], char))
            for kind, what in members
        )
        if hit != negated:
            return char
    return "a"


CATEGORIES = {
    "CATEGORY_SPACE": r"\s", "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_DIGIT": r"\d", "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_WORD": r"\w", "CATEGORY_NOT_WORD": r"\W",
}  # fmt: skip


def begun(body: Sequence[Any]) -> tuple[str, ...]:
    """What a repeated part matches, once for each of the few characters with which it may begin."""
    kind, what = body[0]
    few = kind is op.IN and len(what) <= 4 and all(member is op.LITERAL for member, _ in what)
    firsts = [chr(char) for _, char in what] if few else [sample(kind, what)]
    return tuple(first + samples(body[1:]) for first in firsts)


def pumps(tree: Sequence[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """What stands before each repeat of an expression, and what the repeat repeats."""
    for kind, what in tree:
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            if what[1] > 8:
                for unit in begun(what[2]):
                    yield before, unit
                yield before, " "
            yield from pumps(what[2], before)
        elif kind is op.BRANCH:
            for branch in what[1]:
                yield from pumps(branch, before)
        elif kind is op.SUBPATTERN:
            yield from pumps(what[3], before)
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            yield from pumps(what[1], before)
        before += sample(kind, what)


def searched(name: str) -> bool:
    """Is an expression looked for anywhere in a text? In a table of some it counts as such."""
    module, _, label = name.rpartition(".") if "[" not in name else (*name.partition("[")[0].rpartition("."),)
    source = inspect.getsource(sys.modules[module])
    use = rf"\.(?:{'|'.join(ANYWHERE)})\b"
    return re.search(use if "[" in name else rf"\b{label}{use}", source) is not None


@cache
def slowest(pattern: re.Pattern[str], anywhere: bool) -> tuple[float, str]:
    """Seconds and text of the slowest pumped text; all short ones first, as a long one may take for ever."""
    worst = (0.0, "")
    units = {*pumps(parser.parse(pattern.pattern, pattern.flags)), ("", " ")}
    pumped = [*product(sorted(units), TAILS)]
    for size in (*SHORT, EIGHTH, SIZE):
        slow = []
        for (before, unit), tail in pumped:
            text = f"{before}{unit * (size // max(1, len(unit)))}{tail}"
            seconds = taken(pattern, text, anywhere)
            worst = max(worst, (seconds, f"{before!r} + {unit!r} * n + {tail!r}"))
            if worst[0] > SECONDS:
                return worst
            if size != EIGHTH or seconds > EIGHTH_SECONDS:
                slow.append(((before, unit), tail))
        pumped = slow
    return worst


def taken(pattern: re.Pattern[str], text: str, anywhere: bool) -> float:
    """Seconds of the expression on this text, or of its first uses that take too long."""
    uses: tuple[Callable[[str], object], ...] = (pattern.match, pattern.fullmatch, partial(pattern.subn, ""))
    start = time.process_time()
    for use in uses[: None if anywhere else 2]:
        use(text)
        if (seconds := time.process_time() - start) > SECONDS:
            break
    return seconds


def texts(tree: Sequence[Any]) -> tuple[str, ...]:
    """What an expression matches, one text for each choice that it leaves, with gaps for what is not literal."""
    found: tuple[str, ...] = ("",)
    for kind, what in tree:
        more = literal_texts(kind, what)
        found = tuple(dict.fromkeys(before + after for before in found for after in more))
        if len(found) > MOST_TEXTS:
            return (GAP,)
    return found


def literal_texts(kind: Any, what: Any) -> tuple[str, ...]:
    if kind is op.LITERAL:
        return (chr(what),)
    if kind is op.IN and len(what) <= 4 and all(member is op.LITERAL for member, _ in what):
        return tuple(chr(char) for _, char in what)
    if kind is op.BRANCH:
        return tuple(text for branch in what[1] for text in texts(branch))
    if kind is op.SUBPATTERN:
        return texts(what[3])
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        least, most, body = what
        once = texts(body)
        if (least, most) == (0, 1):
            return ("", *once)
        return (GAP,) if not least else once if most == 1 else tuple(f"{text}{GAP}" for text in once)
    return ("",) if kind in (op.AT, op.ASSERT, op.ASSERT_NOT) else (GAP,)


def compiled(each: Expression) -> re.Pattern[str]:
    return each.compiled if isinstance(each, LazyPattern) else each


def lazy() -> dict[str, LazyPattern]:
    return {name: each for name, each in patterns().items() if isinstance(each, LazyPattern)}


@pytest.mark.in_ci
@pytest.mark.parametrize("part", swept(range(4), 4))
def test_linear(part: int) -> None:
    def linear(name: str) -> None:
        seconds, text = slowest(compiled(patterns()[name]), searched(name))
        assert seconds <= SECONDS, text

    holds_for_each(sorted(patterns())[part::4], linear)


@pytest.mark.parametrize(("name", "text"), [
    ("host.imex._ROW", f"1  {'1' * 24}x"), ("dcgm.devices._CHATTER", f"{'1:111' * 20}x"),
    ("known._FORMS[", f"{'111111base' * 15}a !"),
])  # fmt: skip
def test_cells_that_need_a_blank_between_them(name: str, text: str) -> None:
    named = [pattern for each, pattern in patterns().items() if each.startswith(f"dgxcheck.readers.{name}")]
    assert named
    assert all(taken(compiled(pattern), text, False) <= SECONDS for pattern in named)


@pytest.mark.in_ci
def test_linear_where_it_stands() -> None:
    used_directly = {place: (use, each) for place, use, each in literals() if use != "compile"}

    def linear(place: str) -> None:
        use, pattern = used_directly[place]
        seconds, text = slowest(pattern, use in ANYWHERE)
        assert seconds <= SECONDS, text

    holds_for_each(sorted(used_directly), linear)


def test_no_expression_is_overlooked() -> None:
    """Each that is compiled from a text in the source was found in its module."""
    found = {compiled(each).pattern for each in patterns().values()}
    assert [place for place, use, each in literals() if use == "compile" and each.pattern not in found] == []


@pytest.mark.in_ci
def test_a_quadratic_expression_is_seen() -> None:
    for text, anywhere in ((r"a*a*b", False), (r"\s+$", True), (r"[a-z]*[a-z0-9]*=", False)):
        assert slowest(re.compile(text), anywhere)[0] > SECONDS


@pytest.mark.parametrize(("text", "units"), swept([
    (r"x(?:[a-z]{1,12} {0,12}){1,32}", "a"), (r"nvlink(?:[._]\w+)*", "_a"), (r"x(?=(?:[a-z]+)+=)", "a"),
], 3, first=2))  # fmt: skip
def test_an_exponential_expression_is_seen_and_ends(text: str, units: str) -> None:
    seconds, pumped = slowest(re.compile(text), False)
    assert seconds > SECONDS
    assert f"{units!r} * n" in pumped


def test_every_match_holds_a_literal() -> None:
    """Without one of them a lazy pattern is never tried, so that a wrong one hides what it should find."""
    wrong = {
        name: text
        for name, each in lazy().items()
        for text in texts(parser.parse(each.expression, each.flags))
        if not any(literal in text for literal in each.literals)
    }
    assert wrong == {}


def test_the_case_of_a_literal_matters() -> None:
    """A lazy pattern that ignores case has literals without letters."""
    ignoring = [each for each in lazy().values() if each.compiled.flags & re.IGNORECASE]
    assert [
        each.expression for each in ignoring if any(literal.upper() != literal.lower() for literal in each.literals)
    ] == []


def test_a_literal_that_a_match_may_lack_is_seen() -> None:
    for expression, literal in (
        (r"a(?:bc)?d", "bc"),
        (r"ab*c", "b"),
        (r"abc|abd", "abc"),
        (r"[ab]cd", "acd"),
        (r".*", "a"),
    ):
        assert any(literal not in text for text in texts(parser.parse(expression)))
    for expression, literal in ((r"x{0,3}a(?:bc)+d", "abc"), (r"abc|abd", "ab"), (r"(?<!z)(?P<n>ab)c", "abc")):
        assert all(literal in text for text in texts(parser.parse(expression)))


def test_a_line_of_the_kernel_is_held_against_the_forms_of_its_first_character() -> None:
    """Of more than a hundred forms; a form that may begin with another character than its own is none of these."""
    for form in FORMS:
        assert form.starts == "" or parser.parse(form.expression)[0] == (op.LITERAL, ord(form.starts))
    assert 4 * len([form for form in FORMS if not form.starts]) < len(FORMS)
