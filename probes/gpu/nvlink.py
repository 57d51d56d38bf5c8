"""NVLinks as each GPU sees them: state, generation and peer; what NVML says of pairs of GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

from dgxcheck.facts.ids import NVLINK5_BER, NVLINK5_ERRORS, NVLINK_MAX_LINKS
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, question
from dgxcheck.facts.nvml.nvlink import (
    CAPABILITIES,
    STATUSES,
    GpuPair,
    NvLink,
    NvLinkCapability,
    NvLinkErrors,
    NvLinkRate,
    P2pStatus,
)
from dgxcheck.facts.nvml.quantities import LINK_ERRORS
from dgxcheck.source.protocol import Source
from probes.ask import mapped
from probes.gpu.answers import as_bdf, facts_of_link, fields, garbled, is_on, links, number, per_link, present

GENERATION = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6}
"""NVML_NVLINK_VERSION_1_0, 2_0, 2_2, 3_0, 3_1, 4_0, 5_0, 6_0."""
_INVALID = 0xFF
_COUNTED = (*LINK_ERRORS, *NVLINK5_ERRORS, *NVLINK5_BER)
_NO_ERRORS = (15, 255)


def nvlink(source: Source) -> tuple[NvLink, ...] | Missing:
    """Every link position of every GPU (``nvmlDeviceGetNvLinkState``); a GPU without NVLink has none."""
    return per_link(source, _link)


def _link(source: Source, bdf: str, link: int, state: int | Missing) -> NvLink:
    where = question("nvmlDeviceGetNvLinkState", bdf, link)
    if (up := is_on(state, where)) is True:
        generation = _generation(source, bdf, link)
        remote_bdf = _remote(source, bdf, link)
        remote_type = number(source, "nvmlDeviceGetNvLinkRemoteDeviceType", bdf, link, high=255)
    else:
        gap = up if isinstance(up, Missing) else Missing(Gap.UNASKED, where, "the link is down")
        generation = remote_bdf = remote_type = gap
    return NvLink(bdf=bdf, link=link, up=up, generation=generation, remote_bdf=remote_bdf, remote_type=remote_type)


def _generation(source: Source, bdf: str, link: int) -> int | Missing:
    if isinstance(version := number(source, "nvmlDeviceGetNvLinkVersion", bdf, link), Missing):
        return version
    where = question("nvmlDeviceGetNvLinkVersion", bdf, link)
    if max(GENERATION) < version < _INVALID:
        return Missing(Gap.UNSUPPORTED, where, f"version {version} is newer than this dgxcheck")
    return GENERATION.get(version) or garbled(where, version)


def _remote(source: Source, bdf: str, link: int) -> str | Missing:
    """The peer's ``busId``; the 52-byte struct of old drivers leaves it unreadable and fills ``busIdLegacy``."""
    if isinstance(info := fields(source, "nvmlDeviceGetNvLinkRemotePciInfo", bdf, link), Missing):
        return info
    where = question("nvmlDeviceGetNvLinkRemotePciInfo", bdf, link)
    seen = [far for name in ("busId", "busIdLegacy") if (far := as_bdf(info.get(name))) is not None]
    if not seen:
        return garbled(f"{where} busId", info.get("busId"))
    # zeros: the driver knows that something is there, not what (a peer outside of this virtual machine)
    peer = next((far for far in seen if far != "0000:00:00.0"), None)
    return peer or Missing(Gap.UNSUPPORTED, where, "the driver names no peer")


def nvlink_capability(source: Source) -> tuple[NvLinkCapability, ...] | Missing:
    """``nvmlDeviceGetNvLinkCapability`` of every link position that has a state."""
    return per_link(source, _capability)


def _capability(source: Source, bdf: str, link: int, state: int | Missing) -> NvLinkCapability:
    return NvLinkCapability(bdf=bdf, link=link, **facts_of_link(source, "nvlink capability", bdf, link, state))


@or_gap
def nvlink_rate(source: Source) -> tuple[NvLinkRate, ...]:
    """``NVML_FI_DEV_NVLINK_GET_SPEED`` of every NVLink that is up."""
    return tuple(NvLinkRate(bdf=bdf, link=link, **facts_of_link(source, "nvlink rate", bdf, link, state))
                 for bdf in need(present(source)) for link, state in links(source, bdf) if state == 1)  # fmt: skip


@or_gap
def nvlink_errors(source: Source) -> tuple[NvLinkErrors, ...]:
    """``nvmlDeviceGetNvLinkErrorCounter`` of every link position that has a state, or of whose state nobody was asked:
    ``nvidia-smi nvlink -e`` prints the counters alone."""
    return tuple(row for bdf in need(present(source)) for row in _errors_of_gpu(source, bdf))


def _errors_of_gpu(source: Source, bdf: str) -> Iterator[NvLinkErrors]:
    for link, state in links(source, bdf):
        if not (isinstance(state, Missing) and state.gap is Gap.UNRECORDED):
            yield _errors(source, bdf, link, state)
            continue
        for position in range(link, NVLINK_MAX_LINKS):
            row = _errors(source, bdf, position, 1)
            counted = any(isinstance(getattr(row, name), int | float) for name in _COUNTED)
            yield from [row] if counted else [_errors(source, bdf, position, state)] if position == link else []


def _errors(source: Source, bdf: str, link: int, state: int | Missing) -> NvLinkErrors:
    facts = facts_of_link(source, "nvlink errors", bdf, link, state)
    return NvLinkErrors(bdf=bdf, link=link, **facts | {name: _ber(facts[name]) for name in NVLINK5_BER})


@or_gap
def _ber(packed: int | Missing) -> float:
    """A rate, ``NVML_NVLINK_ERROR_COUNTER_BER_GET``; 0 where nothing was counted."""
    mantissa, exponent = need(packed) >> 8, need(packed) & 0xFF
    return 0.0 if (mantissa, exponent) == _NO_ERRORS else mantissa * 10.0**-exponent


LEVELS = (0, 10, 20, 30, 40, 50)
"""``nvmlGpuTopologyLevel_t``."""


def gpu_pairs(source: Source) -> tuple[GpuPair, ...] | Missing:
    """``nvmlDeviceGetTopologyCommonAncestor`` of every unordered pair, in NVML's order."""
    gpus = present(source)
    pairs = gpus if isinstance(gpus, Missing) else combinations(gpus, 2)
    return mapped(pairs, lambda pair: GpuPair(a=pair[0], b=pair[1], common_ancestor=_ancestor(source, " ".join(pair))))


def _ancestor(source: Source, pair: str) -> int | Missing:
    level = number(source, "nvmlDeviceGetTopologyCommonAncestor", pair)
    if isinstance(level, Missing) or level in LEVELS:
        return level
    return garbled(question("nvmlDeviceGetTopologyCommonAncestor", pair), level)


def p2p(source: Source) -> tuple[P2pStatus, ...] | Missing:
    """``nvmlDeviceGetP2PStatus`` of every ordered pair and capability."""
    gpus = present(source)
    return gpus if isinstance(gpus, Missing) else tuple(_pair(source, a, b) for a, b in permutations(gpus, 2))


def _pair(source: Source, a: str, b: str) -> P2pStatus:
    read, write, nvlink, atomics, prop = (_status(source, f"{a} {b}", index) for index in range(len(CAPABILITIES)))
    return P2pStatus(a=a, b=b, read=read, write=write, nvlink=nvlink, atomics=atomics, prop=prop)


def _status(source: Source, pair: str, capability: int) -> str | Missing:
    status = number(source, "nvmlDeviceGetP2PStatus", pair, capability, high=len(STATUSES) - 1)
    return status if isinstance(status, Missing) else STATUSES[status]
