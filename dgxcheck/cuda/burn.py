"""The load of a burn-in on one GPU: power, memory patterns, host traffic and peer traffic in turn, cycle by cycle.

Every turn has its place in time, so that the GPUs of a box meet in the same way in every cycle: what they share is
shared alike at the beginning and at the end, and only what has become slower shows as slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack

from dgxcheck.cuda import compute, copies, integrity
from dgxcheck.cuda.copies import Size
from dgxcheck.cuda.device import LEFT_FREE, MIB, CudaGpu, Full
from dgxcheck.cuda.figures import Fact
from dgxcheck.cuda.timing import Clock, Flow

TURNS = (("power", 3), ("memory", 2), ("host", 1), ("peer", 1))
"""In order, with their share of a cycle in units."""
MOST_CHUNK, LEAST_CHUNK, CHUNKS = 1024 * MIB, 16 * MIB, 8
FOR_OTHERS = 1024 * MIB
"""Bytes left to the peer's context and buffers, beyond ``LEFT_FREE``."""
COPIED = Size(bytes=32 * MIB, repeats=8, samples=1)
LAUNCHES = 5
_SEEDS = (0x00000000, 0x9E3779B9, 0x55555555, 0xAAAAAAAA, 0xFFFFFFFF, 0x13579BDF)
Over = Callable[[], bool]
"""Is the turn's time over?"""


class Chunk:
    """Part of the memory that is filled and checked."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.seed: int | None = None
        """Of the pattern that it holds; None before the first."""


class IntegrityTotal:
    """Result of the checks of a turn."""

    def __init__(self) -> None:
        self._wrong = self._checked = 0
        self._first: int | None = None

    def add(self, wrong: int, first: int | None, checked: int) -> None:
        """Add wrong words, byte offset of the first, bytes checked."""
        self._wrong += wrong
        self._checked += checked
        self._first = first if self._first is None else self._first

    def fact(self) -> Fact:
        return {"wrong": self._wrong, "checked": self._checked, "first": self._first}


class Burn:
    """One GPU under load, and its peer if it has one."""

    def __init__(self, gpu: CudaGpu, peer: CudaGpu | None, clock: Clock) -> None:
        self._gpu, self._peer, self._clock = gpu, peer, clock
        self._stream = gpu.stream()
        self._checker = integrity.Checker(gpu, self._stream) if gpu.has_kernel() else None
        self._chunk_bytes = _chunk_bytes(gpu)
        self.chunks = _chunks(gpu, self._chunk_bytes) if self._checker is not None else []
        self._next = 0
        self._turns: Mapping[str, Callable[[Over], Fact]] = {
            "power": self._power, "memory": self._memory, "host": self._host, "peer": self._to_peer,
        }  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The turns that this GPU can take."""
        able = {"power": self._checker, "memory": self.chunks, "host": self._gpu, "peer": self._peer}
        return tuple(name for name, _ in TURNS if able[name])

    @property
    def bytes(self) -> int:
        """Bytes of memory that are filled and checked."""
        return len(self.chunks) * self._chunk_bytes

    def turn(self, name: str, over: Over) -> Fact:
        """One turn, until its time is over: rates by kind, and ``wrong`` words if it checks data."""
        with ExitStack() as stack:
            for gpu in filter(None, (self._gpu, self._peer)):
                stack.enter_context(gpu.passing())
            return self._turns[name](over)

    def _power(self, over: Over) -> Fact:
        load = compute.heaviest(self._gpu, self._clock)
        rates, total = [], IntegrityTotal()
        for _ in _until(over):
            rates.append(LAUNCHES * load.flop / self._clock.seconds([load.flow], LAUNCHES)[0] / 1e12)
            wrong, checked = load.differing()
            total.add(wrong, None, checked)
        return {"compute": _mean(rates), **total.fact()}

    def _memory(self, over: Over) -> Fact:
        """Check each chunk as it was left a cycle ago, then refill and check it again."""
        total = IntegrityTotal()
        for _ in _until(over):
            at = self._next % len(self.chunks)
            chunk = self.chunks[at]
            if chunk.seed is not None:
                self._look(chunk, at, total)
            chunk.seed = (_SEEDS[self._next % len(_SEEDS)] + self._next) & 0xFFFFFFFF
            integrity.fill(self._gpu, self._stream, chunk.address, self._chunk_bytes, chunk.seed)
            self._look(chunk, at, total)
            self._next += 1
        return total.fact()

    def _look(self, chunk: Chunk, at: int, total: IntegrityTotal) -> None:
        if self._checker is not None and chunk.seed is not None:
            bad, where = self._checker.look(chunk.address, self._chunk_bytes, chunk.seed)
            total.add(bad, None if where is None else at * self._chunk_bytes + where, self._chunk_bytes)

    def _host(self, over: Over) -> Fact:
        flows = copies.down(self._gpu, COPIED), copies.up(self._gpu, COPIED)
        rates = [_both_rates(self._clock, flows) for _ in _until(over)]
        return {"host-to-device": _mean([a for a, _ in rates]), "device-to-host": _mean([b for _, b in rates])}

    def _to_peer(self, over: Over) -> Fact:
        """Check data sent in both ways once, then keep both directions busy."""
        gpu, peer = self._gpu, self._peer
        assert peer is not None
        flows = (copies.peer_flow(gpu, peer, COPIED), copies.peer_flow(peer, gpu, COPIED))
        origin, target = gpu.memory(integrity.PEER_BYTES), peer.memory(integrity.PEER_BYTES)
        total = IntegrityTotal()
        for by_kernel in (False, True) if self._checker is not None else ():
            bad, where = integrity.sent(gpu, peer, origin, target, 3 + by_kernel, by_kernel)
            total.add(bad, where, integrity.PEER_BYTES)
        rates = [_both_rates(self._clock, flows) for _ in _until(over)]
        return {"p2p": _mean([there for there, _ in rates]), "p2p-back": _mean([back for _, back in rates]),
                **total.fact()}  # fmt: skip


def turns(names: Collection[str], begun: float, unit: float) -> Iterator[tuple[int, str, float]]:
    """For ever: cycle, turn, and until when it lasts (monotonic), the same for every GPU that began at ``begun``.

    One that is late leaves out cycles, so that GPUs that share a link meet in the same turns to the end.
    """
    at, cycle = begun, 0
    whole = unit * sum(units for _, units in TURNS)
    while True:
        for name, units in TURNS:
            at += units * unit
            if name in names:
                yield cycle, name, at
        while at + TURNS[0][1] * unit <= time.monotonic():
            at += whole
        cycle += 1


def _until(over: Over) -> Iterator[None]:
    """Once, and again until the time is over."""
    yield
    while not over():
        yield


def _both_rates(clock: Clock, flows: tuple[Flow, Flow]) -> tuple[float, float]:
    """GB/s of two flows that run at once."""
    seconds = clock.seconds(flows, COPIED.repeats)
    there, back = (flow.bytes_each * COPIED.repeats / s / 1e9 for flow, s in zip(flows, seconds, strict=True))
    return there, back


def _mean(rates: list[float]) -> float:
    return round(sum(rates) / len(rates), 3)


def _chunk_bytes(gpu: CudaGpu) -> int:
    share = max(0, gpu.free() - LEFT_FREE) // 2 // CHUNKS // MIB * MIB
    return max(LEAST_CHUNK, min(MOST_CHUNK, share))


def _chunks(gpu: CudaGpu, size: int) -> list[Chunk]:
    """As many chunks as fit beside the memory left to others."""
    spare = max(0, gpu.free() - LEFT_FREE)
    room = spare - min(FOR_OTHERS, spare // 2)
    chunks: list[Chunk] = []
    while (len(chunks) + 1) * size <= room:
        try:
            chunks.append(Chunk(gpu.memory(size)))
        except Full:
            break
    return chunks
