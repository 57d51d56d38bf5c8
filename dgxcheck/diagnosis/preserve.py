"""What to save before anything is done: a reset, a reboot or a new seat destroys it, and a vendor asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.component import Component
from dgxcheck.components.locate import has_nvswitches
from dgxcheck.facts.host import Host

_OF_GPUS = ("gpu", "link", "switch", "nvlink", "path", "slot", "driver")
_OF_FABRIC = ("hca", "port", "fabric", "subnet-manager")
_OF_BOARD = ("memory", "cooling", "power supply", "missing GPU", "missing HCA", "missing PCIe switch")


Preserve = str


def preserve_evidence(box: Box, component: Component) -> tuple[Preserve, ...]:
    """Commands; NVIDIA's tools as its RMA page, NVSM guide, nvidia-smi(1) and MFT's mlxlink(1) have them.

    https://docs.nvidia.com/deploy/rma-process: right after the event, before a reboot.
    """
    return tuple(dict.fromkeys(_commands(box, component)))


def _commands(box: Box, component: Component) -> Iterator[str]:
    yield "dgxcheck record BOX.json"
    yield "dmesg > dmesg.txt"
    nvlinks = component.kind == "nvlink" or component.part.startswith(("NVLink", "NVSwitches"))
    if nvlinks or (component.kind in _OF_GPUS and component.part != "missing HCA"):
        yield "nvidia-bug-report.sh"
    if component.kind == "gpu" and component.part == "memory":
        yield "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER > ecc.txt"
    if nvlinks:
        yield "nvidia-smi nvlink -e > nvlink.txt"
        if has_nvswitches(box):
            yield "cp /var/log/fabricmanager.log ."
    if component.kind in _OF_FABRIC:
        yield "ibstat > ibstat.txt"
    if component.kind in ("hca", "port") and component.bdf:
        yield f"mlxlink -d {component.bdf} -m -c > mlxlink-{component.bdf}.txt"
    if component.kind == "interface":
        yield f"ethtool {component.name} > ethtool-{component.name}.txt"
    if component.kind == "disk":
        yield "cat /proc/mdstat > mdstat.txt"
    if component.part in _OF_BOARD and component.kind != "gpu":
        yield "ipmitool sel elist > sel.txt"
    if _is_dgx(box) and component.kind not in ("disk", "interface"):
        yield "nvsm dump health"


def _is_dgx(box: Box) -> bool:
    host = box.snapshot.host
    name = host.dmi.product_name if isinstance(host, Host) else None
    return isinstance(name, str) and "DGX" in name
