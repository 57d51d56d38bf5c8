"""What to save before anything is done: a reset, a reboot or a reseat destroys it, and a vendor asks for it.

NVIDIA's tools as its RMA page (https://docs.nvidia.com/deploy/rma-process/index.html: right after the event, before a
reboot), its NVSM guide, nvidia-smi(1) and mlxlink(1) have them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.component import Component
from dgxcheck.components.containment import BOARDS
from dgxcheck.components.locate import has_nvswitches, is_nvidia_adapter
from dgxcheck.diagnosis.form_factor import is_dgx, may_have_bmc
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import OFF_BUS
from dgxcheck.facts.missing import rows
from dgxcheck.facts.record import Record
from dgxcheck.facts.tool_outputs import ON_WINDOWS

_GPU_SIDE = ("gpu", "gpus", "board", "link", "switch", "nvlink", "nvswitch", "path", "slot", "driver")
_OF_NVLINKS = ("NVLink", "NVSwitches", "missing NVSwitch", "Fabric Manager")
_FABRIC = ("hca", "port", "fabric", "subnet-manager")
_BMC_PARTS = (
    "memory", "memory modules", "CPUs", "cooling", "power supply", "missing socket", "missing GPU", "missing HCA",
    "missing PCIe switch", "empty PCIe switch", *BOARDS,
)  # fmt: skip
_BMC_KINDS = ("socket", "host-bridge", "socket-interconnect")
_BUG_REPORT_HANGS = frozenset({Fault.GPU_LOST, Fault.DRIVER_UNRESPONSIVE, Fault.DRIVER_STUCK})
"""nvidia-bug-report.sh asks the driver: ``--safe-mode`` leaves out what can hang, and may still take long."""
_GPU_HANGS = (62, OFF_BUS, 119, 120)
"""Xids after which a GPU does not answer: its microcontroller halted, it fell off the bus, its GSP timed out."""


class Preserve(Record, kw_only=False):
    """One command that saves evidence."""

    command: tuple[str, ...]
    output: str = ""
    """The file that takes its standard output; empty where it writes files of its own."""


def preserve_evidence(box: Box, component: Component, faults: Collection[FaultKind]) -> tuple[Preserve, ...]:
    """Commands for this machine and component, in the order in which they are run."""
    found = dict.fromkeys(_commands(box, component, faults))
    windows = any(report.topic == ON_WINDOWS for report in rows(box.snapshot.tool_reports))
    return tuple(each for each in found if not windows or each.command[0] == "nvidia-smi")


def together(commands: Iterable[Preserve]) -> list[Preserve]:
    """Of several causes, each once: where one asks for more of the same program (``--safe-mode``), that is run."""
    every = [*dict.fromkeys(commands)]
    longer = {other.command[:size] for other in every for size in range(1, len(other.command))}
    return [preserve for preserve in every if preserve.command not in longer]


def _commands(box: Box, component: Component, faults: Collection[FaultKind]) -> Iterator[Preserve]:
    yield Preserve(("dgxcheck", "record", "before.json"))
    yield Preserve(("dmesg",), "dmesg.txt")
    nvlinks = component.kind in ("nvlink", "nvswitch") or component.part.startswith(_OF_NVLINKS)
    of_any_gpu = any(xid.number in _GPU_HANGS and not xid.past for xid in box.log.xids)  # the report asks them all
    hangs = bool(_BUG_REPORT_HANGS & {*faults}) or of_any_gpu
    if nvlinks or hangs or (component.kind in _GPU_SIDE and component.part != "missing HCA"):
        safe = ("--safe-mode", "--extra-system-data") if hangs else ()
        yield Preserve(("nvidia-bug-report.sh", *safe))
    if component.kind == "gpu" and component.part == "memory":
        yield Preserve(("nvidia-smi", "-q"), "nvidia-smi.txt")  # older drivers refuse -d ROW_REMAPPER
    if nvlinks:
        yield Preserve(("nvidia-smi", "nvlink", "-e"), "nvlink.txt")
        if has_nvswitches(box):
            yield Preserve(("cp", "/var/log/fabricmanager.log", "fabricmanager.log"))
    if component.kind in _FABRIC:
        yield Preserve(("ibstat",), "ibstat.txt")
    if component.kind in ("hca", "port") and component.bdf and is_nvidia_adapter(box, component.bdf, component.name):
        yield Preserve(("mlxlink", "-d", component.bdf, "-m", "-c"), f"mlxlink-{component.bdf}.txt")
    if component.kind == "interface":
        yield Preserve(("ethtool", component.name), f"ethtool-{component.name}.txt")
    if component.kind == "disk":
        yield Preserve(("cat", "/proc/mdstat"), "mdstat.txt")
    of_bmc = component.kind in _BMC_KINDS or (component.part in _BMC_PARTS and component.kind != "gpu")
    if of_bmc and may_have_bmc(box):
        yield Preserve(("ipmitool", "sel", "elist"), "sel.txt")
    if is_dgx(box) and component.kind not in ("disk", "interface"):
        yield Preserve(("nvsm", "dump", "health"))
