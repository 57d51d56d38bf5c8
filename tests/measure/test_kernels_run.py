"""What the kernels do, by an interpreter: patterns, wrong words, copies, pointer chains, ping-pong, time-outs."""

from __future__ import annotations

import random

import pytest
from checkout import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_arithmetic import bits, number
from ptx_interpreter import Launch, Machine
from ptx_text import kernels

TEXT = (ROOT / "dgxcheck" / "cuda" / "kernels.ptx").read_text(encoding="ascii")
KERNELS = kernels(TEXT)
HERE, THERE, RESULT, RESULT_2, FLAG, FLAG_2 = (0x7F00_FFFF_FF00 + k * 0x1_0000_0000_0000 for k in range(6))
"""Addresses of buffers: what lies 256 bytes further needs a carry into the upper half."""
GRIDS = [(1, 1), (1, 32), (3, 5), (4, 7), (2, 64)]
SIZES = [0, 1, 7, 64, 101, 333]
NONE_WRONG = [0, 0xFFFFFFFF]
FOR_EVER = 1 << 62


def p(i: int, seed: int) -> int:
    """The word that belongs at i."""
    x = (i * 2654435761 + seed) % (1 << 32)
    return x ^ (x >> 15)


def pattern(words: int, seed: int) -> list[int]:
    return [p(i, seed) for i in range(words)]


@pytest.mark.parametrize(("blocks", "threads"), GRIDS)
@pytest.mark.parametrize("words", SIZES)
def test_fill_writes_the_pattern_and_no_word_more(blocks: int, threads: int, words: int) -> None:
    machine = Machine()
    dst = machine.room(HERE, words + 9)
    machine.run(Launch(KERNELS["dgx_fill"], (dst, words, 0xFFFFFFF0), blocks, threads))
    assert machine.words(dst, words + 9) == [*pattern(words, 0xFFFFFFF0), *[None] * 9]


@pytest.mark.parametrize(("blocks", "threads"), GRIDS)
@pytest.mark.parametrize("words", SIZES)
def test_check_finds_nothing_wrong_in_the_pattern(blocks: int, threads: int, words: int) -> None:
    machine = Machine()
    src, result = machine.room(HERE, words, pattern(words, 5)), machine.room(RESULT, 2, NONE_WRONG)
    machine.run(Launch(KERNELS["dgx_check"], (src, words, 5, result), blocks, threads))
    assert machine.words(result, 2) == NONE_WRONG


@settings(max_examples=30)
@given(st.sets(st.integers(0, 199), min_size=1), st.integers(0, 31), st.sampled_from(GRIDS))
def test_check_counts_wrong_words_and_tells_the_first(wrong: set[int], bit: int, grid: tuple[int, int]) -> None:
    machine = Machine()
    words = [p(i, 9) ^ (i in wrong) << bit for i in range(200)]
    src, result = machine.room(HERE, 200, words), machine.room(RESULT, 2, NONE_WRONG)
    machine.run(Launch(KERNELS["dgx_check"], (src, 200, 9, result), *grid))
    assert machine.words(result, 2) == [len(wrong), min(wrong)]


@pytest.mark.parametrize(("block", "first"), [(3, 3 * 1024), (4_194_303, 0xFFFFFC00), (4_194_304, 0xFFFFFFFF)])
def test_indexes_have_64_bits(block: int, first: int) -> None:
    """Of a grid of 8,388,608 blocks of 1024 threads over 32 GiB one block runs: its words are found in their place."""
    machine = Machine()
    blocks, index, at = 8_388_608, block * 1024, HERE + 4 * 1024 * block
    machine.room(at, 1024)
    dst, quads, result = HERE, blocks * 1024, machine.room(RESULT, 2, NONE_WRONG)
    machine.run(Launch(KERNELS["dgx_fill"], (dst, quads, 1), blocks, 1024, [block]))
    assert machine.words(at, 1024) == [p(index + i, 1) for i in range(1024)]
    machine.run(Launch(KERNELS["dgx_check"], (dst, quads, 2, result), blocks, 1024, [block]))
    assert machine.words(result, 2) == [1024, first]


@pytest.mark.parametrize(("blocks", "threads"), GRIDS)
@pytest.mark.parametrize("quads", [0, 1, 3, 4, 59, 60, 61, 257])
def test_copy_moves_every_quad_and_no_byte_more(blocks: int, threads: int, quads: int) -> None:
    machine = Machine()
    src, dst = machine.room(HERE, 4 * quads, pattern(4 * quads, 3)), machine.room(THERE, 4 * quads + 8)
    machine.run(Launch(KERNELS["dgx_copy"], (dst, src, quads), blocks, threads))
    assert machine.words(dst, 4 * quads + 8) == [*pattern(4 * quads, 3), *[None] * 8]
    assert machine.done["ld"] - 3 * blocks * threads == machine.done["st"] == quads


def test_copy_moves_four_quads_at_a_time_as_long_as_it_can() -> None:
    machine = Machine()
    src, dst = machine.room(HERE, 480, pattern(480, 3)), machine.room(THERE, 480)
    machine.run(Launch(KERNELS["dgx_copy"], (dst, src, 120), 3, 5))
    assert machine.done["setp"] == 15 * (2 + 1 + 1)  # each thread: two rounds of four, the end of those, the end


@pytest.mark.parametrize("block", [5, 1_048_579])
def test_copy_finds_quads_beyond_4_gib(block: int) -> None:
    machine = Machine()
    blocks, offset = 2_097_152, 16 * 256 * block
    machine.room(HERE + offset, 1024, pattern(1024, 8))
    machine.room(THERE + offset, 1024)
    machine.run(Launch(KERNELS["dgx_copy"], (THERE, HERE, blocks * 256), blocks, 256, [block]))
    assert machine.words(THERE + offset, 1024) == pattern(1024, 8)


@pytest.mark.parametrize("loads", [0, 1, 2, 50, 333])
def test_chase_follows_the_pointers_and_tells_its_clocks(loads: int) -> None:
    order = random.Random(4).sample(range(50), 50)
    ring = {HERE + 8 * a: HERE + 8 * b for a, b in zip(order, order[1:] + order[:1], strict=True)}
    machine = Machine()
    machine.room(HERE, 100, [part for _, to in sorted(ring.items()) for part in (to & 0xFFFFFFFF, to >> 32)])
    out, place = machine.room(RESULT, 4), HERE
    for _ in range(loads):
        place = ring[place]
    machine.run(Launch(KERNELS["dgx_chase"], (HERE, loads, out)))
    low, high, clocks, zero = machine.words(out, 4)
    assert (low, high, zero) == (place & 0xFFFFFFFF, place >> 32, 0)
    assert clocks is not None
    assert loads < clocks <= machine.steps


def test_spin_ends_when_the_host_sets_the_flag() -> None:
    machine = Machine()
    flag = machine.room(FLAG, 1, [0])
    host = Launch(KERNELS["dgx_fill"], (flag, 1, 77), 1, 1)
    machine.run(Launch(KERNELS["dgx_spin"], (flag, FOR_EVER)), host)
    assert machine.words(flag, 1) == [p(0, 77)]


def test_spin_ends_at_the_time_out_and_not_before() -> None:
    machine = Machine()
    machine.run(Launch(KERNELS["dgx_spin"], (machine.room(FLAG, 1, [0]), 5000)))
    assert 5000 <= machine.steps < 5100
    with pytest.raises(TimeoutError):
        machine.run(Launch(KERNELS["dgx_spin"], (FLAG, FOR_EVER)), limit=20_000)


def box(seed: int = 0, words: int = 70) -> Machine:
    """Two GPUs' data, flags and results."""
    machine = Machine(seed)
    for data, flag, result in ((HERE, FLAG, RESULT), (THERE, FLAG_2, RESULT_2)):
        machine.room(data, words, [0xDEAD] * words)
        machine.room(flag, 1, [0])
        machine.room(result, 2, [0, 0])
    return machine


def pair(
    words: int, rounds: int, timeout: int = FOR_EVER, threads: int = 32, text: str = TEXT
) -> tuple[Launch, Launch]:
    """The launches on GPU A, which is first, and on GPU B."""
    kernel = kernels(text)["dgx_pingpong"]
    a = (FLAG, FLAG_2, HERE, THERE, words, rounds, 1, timeout, RESULT)
    b = (FLAG_2, FLAG, THERE, HERE, words, rounds, 0, timeout, RESULT_2)
    return Launch(kernel, a, 1, threads), Launch(kernel, b, 1, threads)


@pytest.mark.parametrize(("words", "rounds", "threads"), [(70, 3, 32), (1, 9, 32), (31, 2, 7), (0, 2, 32), (5, 0, 32)])
@pytest.mark.parametrize("seed", range(3))
def test_ping_pong_passes_in_any_order_of_events(words: int, rounds: int, threads: int, seed: int) -> None:
    machine = box(seed)
    machine.run(*pair(words, rounds, threads=threads))
    assert machine.words(RESULT, 2) == machine.words(RESULT_2, 2) == [0, rounds]
    if rounds:
        assert machine.words(HERE, words) == pattern(words, rounds)
        assert machine.words(THERE, words) == pattern(words, rounds + 0x10000)
        assert machine.words(FLAG, 1) == machine.words(FLAG_2, 1) == [rounds]


@pytest.mark.parametrize("barrier", ["membar.sys", "bar.sync 0"])
def test_the_interpreter_sees_a_barrier_that_is_missing(barrier: str) -> None:
    """The control: without it data comes after its flag, in some order of events."""
    found = []
    for seed in range(10):
        machine = box(seed)
        machine.run(*pair(70, 2, text=TEXT.replace(f"{barrier};", "")))
        found.append([machine.words(result, 1) for result in (RESULT, RESULT_2)])
    assert any(words != [[0], [0]] for words in found)


def test_ping_pong_counts_what_never_came() -> None:
    """Data of A's kernel vanishes on the way to B, its flags do not."""
    machine = box()
    machine.arrives = lambda address, word: None if address in range(THERE, THERE + 280) else word
    machine.run(*pair(70, 3))
    assert machine.words(RESULT, 2) == [0, 3]
    assert machine.words(RESULT_2, 2) == [3 * 70, 3]


def test_ping_pong_counts_a_wrong_word_each_round() -> None:
    machine = box()
    machine.arrives = lambda address, word: word ^ 0x400 if address == HERE + 4 * 69 else word
    machine.run(*pair(70, 3))
    assert machine.words(RESULT, 2) == [3, 3]
    assert machine.words(RESULT_2, 2) == [0, 3]


@pytest.mark.parametrize(("lost", "rounds"), [(FLAG, (0, 1)), (FLAG_2, (0, 0))])
def test_ping_pong_leaves_at_the_time_out_when_flags_never_come(lost: int, rounds: tuple[int, int]) -> None:
    machine = box()
    machine.arrives = lambda address, word: None if address == lost else word
    machine.run(*pair(5, 3, timeout=20_000))
    assert (machine.words(RESULT, 2), machine.words(RESULT_2, 2)) == ([0, rounds[0]], [0, rounds[1]])
    assert 20_000 <= machine.steps < 40_000


def test_ping_pong_leaves_at_the_time_out_when_the_peer_is_dead() -> None:
    """The peer got as far as its second round, and its data was wrong."""
    machine = box()
    machine.room(FLAG, 1, [2])
    machine.run(pair(70, 9, timeout=20_000)[0])
    assert machine.words(RESULT, 2) == [140, 2]
    assert machine.words(FLAG_2, 1) == [3]


@pytest.mark.parametrize("iterations", [0, 1, 5])
def test_fma_does_128_per_thread_and_iteration_and_stores_the_sums(iterations: int) -> None:
    machine = Machine()
    out = machine.room(RESULT, 8)
    machine.run(Launch(KERNELS["dgx_fma"], (out, iterations), 2, 3))
    assert machine.done["fma"] == 6 * 128 * iterations
    sums = [None if word is None else number(word) for word in machine.words(out, 8)]
    starts = [0.0009 * thread * 0.93**k for _ in range(2) for thread in range(3) for k in range(8)]
    # 16 swings, an even number, bring each sum back to nearly where it started
    expected = [sum(starts[8 * i : 8 * i + 8]) for i in range(6)]
    assert sums[6:] == [None, None]
    assert sums[:6] == pytest.approx(expected, abs=1e-3)
    assert number(bits(0.1)) != 0.1
