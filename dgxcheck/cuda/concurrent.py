"""Concurrent traffic: pairs that share a link, and rings as in a collective."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.cuda.copies import Size, peer_flow
from dgxcheck.cuda.device import MIB, CudaGpu
from dgxcheck.cuda.figures import Fact, figure
from dgxcheck.cuda.timing import Clock
from dgxcheck.facts.typical import median

Peers = tuple[CudaGpu, CudaGpu]


def shared(pairs: Sequence[Peers], clock: Clock, size: Size) -> Fact:
    """GB/s of the first pair's copies while those of the others run too."""
    flows = [peer_flow(a, b, size) for a, b in pairs]
    for other in flows[1:]:
        other.times = 2  # they are still at work when the first is through
    rates = [clock.rates(flows, size.repeats)[0] for _ in range(size.samples)]
    return figure(rates, "GB/s", f"ce, {size.bytes // MIB} MiB x {size.repeats}, {len(pairs)} pairs at once")


def ring(order: Sequence[CudaGpu], others: Sequence[Sequence[CudaGpu]], clock: Clock, size: Size) -> Fact:
    """Bus bandwidth of ring traffic: every GPU sends to both its neighbours at once, the other rings run meanwhile.

    A ring is as fast as its slowest hop, in each of its two directions.
    """
    flows = [peer_flow(a, b, size) for gpus in (order, *others) for a, b in _both_ways(gpus)]
    half = len(order)
    samples, hops = [], []
    for _ in range(size.samples):
        rates = clock.rates(flows, size.repeats)[: 2 * half]
        samples.append(min(rates[:half]) + min(rates[half:]))
        hops.append(rates)
    method = f"ce, {size.bytes // MIB} MiB x {size.repeats}, both ways round, {1 + len(others)} rings at once"
    return figure(samples, "GB/s", method, hops=[round(median(rates), 3) for rates in zip(*hops, strict=True)])


def _both_ways(order: Sequence[CudaGpu]) -> list[Peers]:
    return [*_round(order), *_round(order[::-1])]


def _round(order: Sequence[CudaGpu]) -> list[Peers]:
    return list(zip(order, (*order[1:], order[0]), strict=True))
