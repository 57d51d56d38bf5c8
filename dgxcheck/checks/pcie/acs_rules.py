"""Ports that need ACS bits of their own, with a ConnectX-8 beside a GPU and on Grace: the rules of ``rdma_topo``.

https://github.com/linux-rdma/rdma-core kernel-boot/rdma_topo, compute_acs(); bits from the right: source validation,
translation blocking, request redirect, completion redirect, upstream forwarding, egress control, direct translated P2P.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.ids import DATA_DIRECT, MELLANOX, NVIDIA
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record, remembered
from dgxcheck.topology.paths import shared_bridges

_SWITCHES = (0x1979, 0x197B, 0x197C)
_ADAPTERS = (0x1021, 0x1023, 0x1025)
_VERA = (0x2F95, 0x2F96)
_CPUS = (0x22B1, 0x22B2, 0x22B8, *_VERA)
"""Root ports of Grace and Vera."""


class AcsRule(Record):
    """Bits as the kernel parameter ``config_acs`` has them: 1 on, 0 off, x as it is; and what they let happen."""

    bits: str
    reason: str

    @property
    def is_off(self) -> bool:
        """Does it only switch bits off?"""
        return "1" not in self.bits

    @property
    def is_kernels(self) -> bool:
        """Is it what the kernel sets where an IOMMU isolates (rdma_topo, kernel_acs_isolated())?"""
        return self.reason == _ISOLATED.reason

    def applied(self, control: int) -> int:
        """The control word with these bits."""
        for place, bit in enumerate(reversed(self.bits)):
            control = control & ~(1 << place) if bit == "0" else control | (bit == "1") << place
        return control


_ISOLATED = AcsRule(bits="xx111x1", reason="the IOMMU isolate what is below")
_VERA_ISOLATED = AcsRule(bits="xx101x1", reason=_ISOLATED.reason)
_DIRECT = AcsRule(bits="xx000x0", reason="the GPU and its adapter reach each other within their switch")
_TO_DMA = AcsRule(bits="xx110x1", reason="requests of the DMA function turn to its GPU within the switch")
_TO_GPU = AcsRule(bits="xx101x1", reason="completions of the GPU turn to the DMA function within the switch")
_DMA_ROOT = AcsRule(bits="xx111x0", reason="the kernel put GPU and DMA function into one IOMMU group")
_TRANSLATED = AcsRule(bits="1x111x1", reason="requests with translated addresses reach the GPU within the switch")
_RULES = {
    "direct": (_ISOLATED, _TO_DMA, _TO_GPU, _DMA_ROOT), "inline": (_DIRECT, _DIRECT, _DIRECT, _DIRECT),
    "translated": (_ISOLATED, _TRANSLATED, _ISOLATED, _ISOLATED), "apart": (_ISOLATED, _TO_DMA, _TO_GPU, _DMA_ROOT),
}  # fmt: skip
"""Of the other ports, the port towards the adapter or its DMA function, that towards the GPU, the root port."""


class Fork(Record, kw_only=False):
    """A GPU and an adapter, or its DMA function, below one switch."""

    root: str
    to_end: str
    to_gpu: str
    """Root port and the ports of that switch, by bdf."""
    end: str
    gpu: str


class Pairing(Record):
    """How GPUs meet adapters on a machine with rules of its own."""

    kind: Literal["direct", "inline", "translated", "apart"]
    """By a DMA function; below one switch; there with address translation (ATS) on; each below a root port of Grace."""
    forks: tuple[Fork, ...]


@remembered()
def pairing(box: Box) -> Pairing | None:
    """None for a machine without rules of its own."""
    adapters, dma = _of(box, MELLANOX, _ADAPTERS), _of(box, MELLANOX, (DATA_DIRECT,))
    gpus = {gpu.bdf: gpu.path for gpu in box.topology.gpus if gpu.bdf is not None and isinstance(gpu.path, tuple)}
    forks = (*_forks(gpus, dma or adapters, _of(box, MELLANOX, _SWITCHES)),)
    if not dma and any(path[-2:-1] and path[-2] in _of(box, NVIDIA, _CPUS) for path in gpus.values()):
        return Pairing(kind="apart", forks=())
    if dma or not forks:
        return Pairing(kind="direct", forks=forks) if forks else None
    translated = {fork.end for fork in forks} <= {*_translating(box)} and _isolates(box)
    return Pairing(kind="translated" if translated else "inline", forks=forks)


def _translating(box: Box) -> list[str]:
    adapters = _of(box, MELLANOX, _ADAPTERS)
    return [row.bdf for row in rows(box.snapshot.config_space) if row.ats is True and row.bdf in adapters]


def _isolates(box: Box) -> bool:
    """Does an IOMMU group any device, or is that not known? Without one nothing answers what an adapter asks by ATS."""
    functions = () if isinstance(box.snapshot.iommu, Missing) else rows(box.snapshot.iommu.functions)
    return not functions or any(each.group is not None for each in functions)


def needless_ats(box: Box) -> list[str]:
    """Adapters that translate addresses (ATS) where their GPUs must reach them without, as ``__check_ats()`` has it."""
    here = pairing(box)
    return _translating(box) if here is not None and here.kind in ("inline", "apart") else []


def acs_rules(box: Box) -> Mapping[str, AcsRule]:
    """By the bdf of the port, which may lack the capability; empty for a machine without rules of its own."""
    if (here := pairing(box)) is None:
        return {}
    of_cpu, dma = _of(box, NVIDIA, _CPUS), _of(box, MELLANOX, (DATA_DIRECT,))
    others, to_end, to_gpu, top = _RULES[here.kind]
    found = dict.fromkeys((*_of(box, MELLANOX, _SWITCHES), *of_cpu), others)
    if here.kind == "direct":  # which bits fit a GPU or a DMA function where the other is missing is not known
        roots = {fork.root for fork in here.forks}
        ends = [*(gpu.path for gpu in box.topology.gpus), *(end.path for end in dma.values())]
        paths = [*map(rows, ends)]
        alone = [path[1:-1] for path in paths if path[1:2] and path[1] not in roots]
        found = {port: rule for port, rule in found.items() if not any(port in above for above in alone)}
    for fork in here.forks:
        found |= {fork.root: top, fork.to_end: to_end, fork.to_gpu: to_gpu}
    vera = [bdf for bdf, function in of_cpu.items() if function.device in _VERA and found[bdf] is _ISOLATED]
    return found | dict.fromkeys(vera, _VERA_ISOLATED)


def _forks(
    gpus: Mapping[str, tuple[str, ...]], ends: Mapping[str, PciFunction], switches: Collection[str]
) -> Iterator[Fork]:
    for end in ends.values():
        for gpu, above in gpus.items():
            path = rows(end.path)
            if path[:1] != above[:1]:
                continue
            shared = shared_bridges(path, above)
            if path[shared] in switches:
                yield Fork(path[1], path[1 + shared], above[1 + shared], end.bdf, gpu)


def _of(box: Box, vendor: int, devices: Collection[int]) -> Mapping[str, PciFunction]:
    functions = box.topology.functions.values()
    return {each.bdf: each for each in functions if each.vendor == vendor and each.device in devices}
