"""Whatever is pasted: no reader breaks, and no number that hardware cannot reach becomes a fact."""

from __future__ import annotations

import random
import re

import pytest
import test_readers_bandwidth
import test_readers_nccl
import test_readers_nvbandwidth
import test_readers_p2p
import test_readers_perftest
from hypothesis import given
from hypothesis import strategies as st
from readers_text import numbers as all_of
from readers_text import sane

from dgxcheck.readers.any_text import BENCHMARKS as READERS
from dgxcheck.readers.combine import merge_runs
from dgxcheck.readers.model import Imported

TEXTS = (
    test_readers_p2p.TODAY,
    test_readers_p2p.OLD,
    test_readers_bandwidth.OLD,
    test_readers_bandwidth.P2P,
    test_readers_nvbandwidth.TEXT,
    test_readers_nvbandwidth.JSON,
    test_readers_nccl.TODAY,
    test_readers_nccl.OLD,
    test_readers_nccl.FIRST,
    test_readers_nccl.SWEEP,
    test_readers_nccl.CSV,
    test_readers_perftest.WRITE,
)
HOSTILE = (
    "nan",
    "-nan",
    "inf",
    "-1",
    "N/A",
    "1e308",
    "9" * 400,
    "0x1f",
    "",
    "\x1b[31m",
    "\u202e",
    "١٢",
    "\x00",
    "-0.0",
)
KEY = re.compile(r"measure [a-z0-9-]{1,40}( [A-Za-z0-9_.-]{1,64}){1,2}")


def every(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """What all readers find; each is held to what every fact must be."""
    found = tuple(part for read in READERS for part in read(lines))
    for part in found:
        assert sane(part), part
        assert part.facts or part.understood
        assert all(0 <= number < len(lines) and lines[number].strip() for number in part.understood)
        for key, fact in part.facts.items():
            assert KEY.fullmatch(key), key
            assert isinstance(fact, dict)
            assert fact["how"] == "imported"
            assert re.fullmatch(r"line \d+", str(fact["from"]))
            assert ("value" in fact) + ("failed" in fact) + ("skipped" in fact) == 1
            assert isinstance(fact["method" if "value" in fact else "detail"], str)
    return found


@given(st.text())
def test_any_text(text: str) -> None:
    assert every(tuple(text.splitlines())) == every(tuple(text.splitlines()))


@given(st.sampled_from(TEXTS), st.integers(0, 5000), st.integers(0, 5000))
def test_a_text_cut_at_both_ends(text: str, start: int, length: int) -> None:
    every(tuple(text[start : start + length].splitlines()))


@given(st.sampled_from(TEXTS), st.integers(0, 5000))
def test_a_text_that_lost_its_end_says_no_figure_that_the_whole_does_not(text: str, length: int) -> None:
    whole = {
        number for part in every(tuple(text.splitlines())) for fact in part.facts.values() for number in all_of(fact)
    }
    for part in every(tuple(text[:length].splitlines())):
        for key, fact in part.facts.items():
            assert isinstance(fact, dict)
            assert set(all_of(fact.get("value"))) <= whole, (key, fact)


@given(st.sampled_from(TEXTS), st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_lines_swapped_between_two_outputs(one: str, two: str, chance: random.Random) -> None:
    lines = [*one.splitlines(), *two.splitlines()]
    for _ in range(8):
        first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
    assert every(tuple(lines)) == every(tuple(lines))


@given(st.sampled_from(TEXTS), st.sampled_from(HOSTILE), st.randoms(use_true_random=False))
def test_words_replaced_by_what_is_no_number(text: str, word: str, chance: random.Random) -> None:
    every(tuple(re.sub(r"[0-9.]+", lambda found: word if chance.random() < 0.2 else found[0], text).splitlines()))


@given(st.sampled_from(TEXTS), st.integers(0, 10**30), st.randoms(use_true_random=False))
def test_numbers_replaced_by_any_other(text: str, number: int, chance: random.Random) -> None:
    every(tuple(re.sub(r"\d+", lambda found: str(number) if chance.random() < 0.2 else found[0], text).splitlines()))


@given(st.lists(st.sampled_from([line for text in TEXTS for line in text.splitlines()]), max_size=40))
def test_lines_of_all_tools_in_any_order(lines: list[str]) -> None:
    every(tuple(lines))


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_by_one_reader(text: str) -> None:
    lines = tuple(text.splitlines())
    assert sum(bool(read(lines)) for read in READERS) == (text != test_readers_nccl.OLD)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_read_alone_is_read_between_others(text: str) -> None:
    alone = merge_runs(fact for part in every(tuple(text.splitlines())) for fact in part.facts.items())
    prose = "We ran this on Monday:\n```\n"
    among = every(tuple((prose + text + "\n```\nIs that good? 8.41 GB/s\n").splitlines()))
    assert set(merge_runs(fact for part in among for fact in part.facts.items())) == set(alone)


@pytest.mark.parametrize("one", TEXTS)
@pytest.mark.parametrize("two", TEXTS)
def test_two_outputs_in_a_file_say_what_each_says_alone(one: str, two: str) -> None:
    def kinds(text: str) -> set[tuple[str, str]]:
        return {(part.tool, key) for part in every(tuple(text.splitlines())) for key in part.facts}

    if one != two and test_readers_p2p.OLD not in (one, two):  # its era shows in what stands beside it
        assert kinds(f"{one}\n{two}") == kinds(one) | kinds(two)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("before", ["> ", "    ", "\t"])
def test_a_quoted_text_reads_the_same(text: str, before: str) -> None:
    lines = text.splitlines()
    if text == test_readers_nvbandwidth.JSON and before == "> ":
        pytest.skip("a quoted JSON is none")
    quoted = every(tuple(before + line if line.strip() else line for line in lines))
    plain = every(tuple(lines))
    assert [part.facts for part in quoted] == [part.facts for part in plain]
    assert [part.understood for part in quoted] == [part.understood for part in plain]


def test_a_line_too_long_is_nobodys() -> None:
    text = test_readers_p2p.OLD.replace("D\\D     0      1", "D\\D     0      1" + " " * (1 << 20))
    assert every(tuple(text.splitlines())) == ()


def test_a_box_of_more_gpus_than_any_is_no_table() -> None:
    heading = "   D\\D " + " ".join(str(index) for index in range(80))
    rows = [f"{index} " + "1.00 " * 80 for index in range(80)]
    assert every(("P2P=Disabled Latency Matrix (us)", heading, *rows)) == ()
