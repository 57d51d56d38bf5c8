"""Whatever is pasted: no reader breaks, takes a line that is not there, or states a fact that is none."""

from __future__ import annotations

import random
import time

import pytest
import test_readers_dcgm
import test_readers_kernel_log
import test_readers_monitors
import test_readers_nccl_log
import test_readers_nccl_topology
import test_readers_network
from hypothesis import given, settings
from hypothesis import strategies as st
from sample import swept

from dgxcheck.limits import LINE_CHARACTERS
from dgxcheck.readers.any_text import READERS
from dgxcheck.readers.model import Imported
from dgxcheck.source.recording.keys import place

TEXTS = (
    test_readers_network.STATUS,
    test_readers_network.DEVINFO,
    test_readers_network.LINK,
    test_readers_network.DEVICES,
    test_readers_nccl_topology.TEXT,
    test_readers_nccl_log.INFO,
    test_readers_dcgm.TABLE,
    test_readers_dcgm.FOUR,
    test_readers_monitors.DMON,
    test_readers_monitors.DCGMI,
    test_readers_monitors.METRICS,
    f"[ 1.000001] {test_readers_kernel_log.XID}\n[ 2.000001] {test_readers_kernel_log.SXID}\n",
)
PIECES = sorted(
    {word for text in TEXTS for word in text.split()} | {"|", "+---+", "\t", "  ", "{", '"', "<pci", "9" * 40}
)


def every(text: str) -> tuple[Imported, ...]:
    """What all readers find, each held to what every part must be."""
    lines = tuple(text.splitlines())
    found = tuple(part for read in READERS for part in read(lines))
    for part in found:
        assert part.facts or part.understood
        assert part.tool
        assert all(0 <= number < len(lines) for number in part.understood)
        assert all(place(key) is not None for key in part.facts), part.facts
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join), max_size=12).map("\n".join))
def test_words_of_all_tools_in_any_order(text: str) -> None:
    every(text)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TEXTS), st.integers(0, 4000), st.integers(0, 4000), st.randoms(use_true_random=False))
def test_a_text_cut_and_garbled(text: str, start: int, end: int, chance: random.Random) -> None:
    part = [*text[start % len(text) : end]]
    for _ in range(min(6, len(part))):
        part[chance.randrange(len(part))] = chance.choice("|:.<>[]x0 9\t-\u202e")
    every("".join(part))


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_alike_between_prose(text: str) -> None:
    alone = {key for part in every(text) for key in part.facts}
    among = {key for part in every(f"It fails since Monday.\n\n{text}\n\nAny idea?\n") for key in part.facts}
    assert alone == among


@pytest.mark.parametrize(
    "unit", swept(["| a |", "[", "<pci ", "NCCL WARN ", "00:00.0 ", "-[", "node 0 cpus: 1 ", "| | |", "gpuId 0: U "], 3)
)
def test_long_lines_take_no_time(unit: str) -> None:
    line = unit * (LINE_CHARACTERS // len(unit))
    began = time.process_time()
    every(f"{line}\n" * 3)
    assert time.process_time() - began < 5
