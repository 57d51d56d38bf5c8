"""Ports that need ACS bits of their own, with a ConnectX-8 beside a GPU and on Grace: the rules of ``rdma_topo``.

https://github.com/linux-rdma/rdma-core kernel-boot/rdma_topo, compute_acs(); bits from the right: source validation,
translation blocking, request redirect, completion redirect, upstream forwarding, egress control, direct translated P2P.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.ids import DATA_DIRECT, MELLANOX, NVIDIA
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record
from dgxcheck.topology.paths import shared_bridges

_SWITCHES = (0x1979, 0x197B, 0x197C)
_ADAPTERS = (0x1021, 0x1023, 0x1025)
_GRACE, _VERA = (0x22B1, 0x22B2, 0x22B8), (0x2F95, 0x2F96)


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


def acs_rules(box: Box) -> Mapping[str, AcsRule]:
    """By the bdf of the port, which may lack the capability; empty for a machine without rules of its own."""
    adapters, dma = _of(box, MELLANOX, _ADAPTERS), _of(box, MELLANOX, (DATA_DIRECT,))
    of_cpu, switches = _of(box, NVIDIA, (*_GRACE, *_VERA)), _of(box, MELLANOX, _SWITCHES)
    gpus = {gpu.bdf: gpu.path for gpu in box.topology.gpus if gpu.bdf is not None and isinstance(gpu.path, tuple)}
    others, to_end, to_gpu, top = _ISOLATED, _TO_DMA, _TO_GPU, _DMA_ROOT
    forks = [*_forks(gpus, dma or adapters, switches)]
    if not dma and any(path[-2:-1] and path[-2] in of_cpu for path in gpus.values()):
        forks = []
    elif not forks:
        return {}
    elif not dma:
        spaces = rows(box.snapshot.config_space)
        translated = any(row.ats is True for row in spaces if row.bdf in adapters)
        others = _ISOLATED if translated else _DIRECT
        to_end, to_gpu, top = _TRANSLATED if translated else _DIRECT, others, others
    found = dict.fromkeys((*switches, *of_cpu), others)
    if dma:  # which bits fit a GPU whose DMA function is missing is not known
        alone = [path[1:-1] for path in gpus.values() if path[1:2] and path[1] not in {root for root, _, _ in forks}]
        found = {port: rule for port, rule in found.items() if not any(port in above for above in alone)}
    for root, end, gpu in forks:
        found |= {root: top, end: to_end, gpu: to_gpu}
    vera = [bdf for bdf, function in of_cpu.items() if function.device in _VERA and found[bdf] is _ISOLATED]
    return found | dict.fromkeys(vera, _VERA_ISOLATED)


def _forks(
    gpus: Mapping[str, tuple[str, ...]], ends: Mapping[str, PciFunction], switches: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Root port and the ports of one switch towards the end and towards a GPU."""
    for end in ends.values():
        for gpu in gpus.values():
            path = end.path
            if isinstance(path, Missing) or path[0] != gpu[0]:
                continue
            shared = shared_bridges(path, gpu)
            if path[shared] in switches:
                yield path[1], path[1 + shared], gpu[1 + shared]


def _of(box: Box, vendor: int, devices: Collection[int]) -> Mapping[str, PciFunction]:
    functions = box.topology.functions.values()
    return {each.bdf: each for each in functions if each.vendor == vendor and each.device in devices}
