"""Facts of GPUDirect RDMA that tests change, and the verdict of one pair."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.readiness.gpudirect import Readiness, readiness
from dgxcheck.source.recording.keys import to_rows
from dgxcheck.source.recording.load import open_source

PCI = "/sys/bus/pci/devices"
MODULE = "/sys/module"


def pair(of: Box, gpu: str, hca: str) -> Readiness:
    a, b = of.topology.device(gpu), of.topology.device(hca)
    assert a is not None
    assert b is not None
    return readiness(of, a, b)


def modules(*gone: str, base: str = "dgx-1-v100") -> dict[str, Json]:
    names = open_source(base).names(MODULE)
    assert not isinstance(names, Missing)
    return {
        f"names {MODULE}": [name for name in names if name not in gone],
        f"names {MODULE}/ib_core/holders": ["ib_uverbs", "mlx5_ib"],
        "names /sys/kernel/mm/memory_peers": {"missing": "absent"},
    }


def acs(bdf: str, control: int, base: str = "dgx-1-v100") -> dict[str, Json]:
    data = open_source(base).data(f"{PCI}/{bdf}/config")
    assert not isinstance(data, Missing)
    space = bytearray(data)
    at = space.index(b"\x0d\x00\x01\x00", 0x100)
    space[at + 6] = control
    return {f"data {PCI}/{bdf}/config": to_rows(bytes(space))}
