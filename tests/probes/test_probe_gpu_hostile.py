"""Whatever a recording claims that NVML said, a probe gives facts or gaps."""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

from fake_nvml_source import FakeNvml
from hypothesis import given
from hypothesis import strategies as st
from nvml_boards import A100, K80, V100
from nvml_probes import PROBES

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, fields
from dgxcheck.facts.sysfs import cpulist, runs_of
from dgxcheck.source.protocol import Json
from probes.gpu.answers import as_bdf
from probes.gpu.identity import members_of

NAMES = ("busId", "busIdLegacy", "total", "pid", "usedGpuMemory", "address", "timestamp", "state", "gpu")
numbers = st.integers() | st.sampled_from([-1, 0, 1, 2, 2**32 - 1, 2**64 - 1, 2**64])
texts = st.text(max_size=12) | st.sampled_from(["0000:06:00.0", "00000000:00:00.0", "FFFFFFFF:FF:1F.7", "\x1b[0m"])
leaves = st.none() | st.booleans() | numbers | st.floats() | texts
answers: st.SearchStrategy[Json] = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.sampled_from(NAMES) | texts, inner, max_size=4),
    max_leaves=8,
)
gaps = st.builds(Missing, st.sampled_from(Gap), st.just("where"), st.sampled_from(["", "NVML 2: invalid argument"]))
pools = st.lists(answers | gaps, min_size=1, max_size=6)


def check(value: object) -> None:
    """Facts hold numbers, text and flags, tuples of facts, and gaps."""
    if isinstance(value, tuple):
        for item in value:
            check(item)
    elif isinstance(value, Record) and not isinstance(value, Missing):
        for field in fields(value):
            check(getattr(value, field))
    else:
        assert isinstance(value, (bool, int, float, str, Missing))
        assert value != ""


def pick(pool: list[Json | Missing], *key: object) -> Json | Missing:
    return pool[crc32(repr(key).encode()) % len(pool)]


@given(pool=pools)
def test_answers_of_any_form(pool: list[Json | Missing]) -> None:
    listed: dict[str, Json] = {"nvmlInit": True, "nvmlDeviceGetCount": 2}

    def answer(function: str, subject: str, args: tuple[int, ...]) -> Json | Missing:
        if function == "nvmlDeviceGetHandleByIndex":
            return "0000:06:00.0" if args == (0,) else pick(pool, function, args)
        return listed[function] if function in listed else pick(pool, function, subject, args)

    for probe in PROBES:
        check(probe(FakeNvml(answer)))


@given(pool=pools, share=st.integers(2, 9), board=st.sampled_from([K80, V100, A100]))
def test_a_board_with_some_garbled_answers(pool: list[Json | Missing], share: int, board: dict[str, Json]) -> None:
    def answer(function: str, subject: str, args: tuple[int, ...]) -> Json | Missing:
        key = " ".join((function, *map(str, args)))
        if function == "nvmlDeviceGetHandleByIndex":
            return f"0000:0{args[0]}:00.0"
        if key in board and crc32(key.encode()) % share:
            return board[key]
        return {"nvmlInit": True, "nvmlDeviceGetCount": 3}.get(function) or pick(pool, function, subject, args)

    for probe in PROBES:
        check(probe(FakeNvml(answer)))


@given(first=answers | gaps, count=answers | gaps)
def test_a_start_of_any_form(first: Json | Missing, count: Json | Missing) -> None:
    def answer(function: str, subject: str, args: tuple[int, ...]) -> Json | Missing:
        if function == "nvmlInit":
            return first
        return count if function == "nvmlDeviceGetCount" else Missing(Gap.LOST, function)

    for probe in PROBES:
        check(probe(FakeNvml(answer)))


@given(text=texts)
def test_a_bdf_stays_as_it_is(text: str) -> None:
    bdf = as_bdf(text)
    assert bdf is None or (as_bdf(bdf) == bdf and bdf == bdf.lower() and len(bdf) >= 12)


@given(cpus=st.sets(st.integers(0, 300)))
def test_a_cpulist_holds_the_bits_that_are_set(cpus: set[int]) -> None:
    words = tuple(sum(1 << bit for bit in range(64) if 64 * place + bit in cpus) for place in range(5))
    assert members_of(words) == tuple(sorted(cpus))
    ends = [part.split("-") for part in cpulist(runs_of(members_of(words))).split(",") if part]
    assert {cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)} == cpus
    assert all(int(b[0]) > int(a[-1]) + 1 for a, b in pairwise(ends))
