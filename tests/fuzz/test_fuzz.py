"""The targets of ``make fuzz`` on seeds, on what was kept, and on both with pieces cut, doubled and exchanged."""

from __future__ import annotations

import time

import pytest
from checkout import ROOT
from clock import SPARE
from hypothesis import given
from hypothesis import strategies as st
from sample import swept

from fuzz.seeds import seeds
from fuzz.targets import TARGETS, tried

PUMPED = (b" ", b"\t", b"\n", b"0", b"a", b"<", b"[", b"{", b"(", b"=", b":", b"-", b"a.", b"|", b'"', b"\\", b"\xff")
PUMPED_BYTES, MOST_S = 1 << 16, 2.0


def test_make_fuzz_runs_every_target() -> None:
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    assert next(line for line in text.splitlines() if line.startswith("TARGETS ?=")).split()[2:] == [*TARGETS]


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_what_was_kept(name: str) -> None:
    for seed in (b"", *seeds(name)):
        tried(TARGETS[name], seed)


@pytest.mark.parametrize("name", TARGETS)
@given(st.data())
def test_mutated_seeds(name: str, data: st.DataObject) -> None:
    mutated = bytearray(data.draw(st.sampled_from(seeds(name))))
    for _ in range(data.draw(st.integers(1, 4))):
        at, size = data.draw(st.integers(0, len(mutated))), data.draw(st.integers(0, 40))
        piece = data.draw(st.one_of(st.binary(max_size=12), st.sampled_from(PUMPED).map(lambda byte: byte * 300)))
        mutated[at : at + size] = piece
    tried(TARGETS[name], bytes(mutated))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("piece", swept(PUMPED, 2))
def test_pumped_repeats_take_no_time(name: str, piece: bytes) -> None:
    seed = seeds(name)[0]
    half = len(seed) // 2
    since = time.process_time()
    tried(TARGETS[name], seed[:half] + piece * (PUMPED_BYTES // len(piece)) + seed[half:])
    assert time.process_time() - since < MOST_S + SPARE
