"""Commands that put a setting right: nvidia-smi(1), nvidia-modprobe(1), mlxlink(1), setpci(8), ldconfig(8).

nvidia-modprobe's ``-c`` is a GPU's minor number, 255 for /dev/nvidiactl, with ``-u`` for /dev/nvidia-uvm.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.host_limits import hypervisor
from dgxcheck.checks.gpu.clocks import can_lock_clocks, held_memory_clock
from dgxcheck.checks.pcie.acs_rules import acs_rules
from dgxcheck.checks.pcie.isolation import reason_to_keep_acs
from dgxcheck.components.component import EVERY_GPU, PEER_TRAFFIC, Component
from dgxcheck.components.locate import is_nvidia_adapter
from dgxcheck.diagnosis.action import Commands, Instruction, Value
from dgxcheck.diagnosis.clients import minors
from dgxcheck.diagnosis.reset_domain import can_reset, gpus_of, is_since, nvlinks_of_path, reset_domain
from dgxcheck.diagnosis.steps import reset
from dgxcheck.facts.bdf import for_smi
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Modules, NvidiaDriver
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvml.gpu import GpuModes
from dgxcheck.facts.nvml.readings import GpuClocks, GpuMemory, GpuPower
from dgxcheck.facts.typical import gathered
from dgxcheck.topology.model import Device

Setting = tuple[Commands, Instruction]
_BY_HAND: Mapping[str, str] = {
    "large BARs": "large-bars", "BAR1": "large-bars", "PCIe setting": "pcie-setting",
    "settings of NCCL": "nccl-settings", "NVLink setting": "nvlink-setting", "memory bandwidth": "memory-channels",
    PEER_TRAFFIC: "peer-through-root",
}  # fmt: skip
_DEFERRED = "-rmcd"
_COMMAND = Instruction(code="command")
_BY_ITS_REMEDY = frozenset({Fault.CLOCKS_LIMITED})
"""Not mended by the command for their component: a ceiling is the VBIOS's."""


def setting(
    box: Box, component: Component, explained: Collection[Finding], dead: Collection[str | None]
) -> Setting | None:
    """What to type or to set; None where the finding's own remedy says it. ``dead``: bus ids of GPUs which no reset
    touches, None for one of which nothing says which it is.
    """
    faults = {finding.judgement.fault for finding in explained}
    if Fault.PORT_DISABLED in faults and component.bdf is not None:
        if not is_nvidia_adapter(box, component.bdf, component.name):
            return None
        return (("mlxlink", "-d", component.bdf, "--port_state", "UP"),), Instruction(code="enable-port")
    if Fault.LIBRARY_MISSING in faults:
        loaded = _driver_version(box)
        library = (("ldconfig",),), Instruction(code="driver-library", values={"version": loaded})
        return library if loaded else None
    if faults & _BY_ITS_REMEDY:
        return None
    if component.kind in ("bridge", "switch") and component.part == "ACS setting":
        return _acs(box, component, explained)
    if component.kind == "socket-interconnect":
        return (), Instruction(code="socket-links")
    if component.kind == "path" and Fault.SLOW in faults and nvlinks_of_path(box, component) == 0:
        return (), Instruction(code="peer-traffic", values={"guest": guest(box) or ""})
    if component.part in _BY_HAND:
        return (), _by_hand(box, _BY_HAND[component.part])
    return _of_gpus(box, component, dead)


def _by_hand(box: Box, code: str) -> Instruction:
    """A guest's window for BARs is its hypervisor's; where nothing says whether this is one, both are named."""
    if code != "large-bars":
        return Instruction(code=code)
    if guest(box) is not None:
        return Instruction(code="large-bars-in-guest")
    known = not isinstance(box.snapshot.known_host.vm, Missing)
    return Instruction(code=code, values={} if known else {"or_guest": 1})


def changed_by(box: Box, component: Component) -> tuple[bool, bool]:
    """Is there a mode to set, and does it need a reset to take effect? an ECC mode that was changed and not yet applied
    can be taken back without one."""
    memory = [box.gpu(gpu).memory for gpu in gpus_of(box, component)] if component.part == "ECC mode" else []
    readable = [row for row in memory if isinstance(row, GpuMemory)]
    to_set = any(row.ecc_pending is not True for row in readable) or not readable
    return to_set, any(row.ecc is not True for row in readable) or not readable


def _of_gpus(box: Box, component: Component, dead: Collection[str | None]) -> Setting | None:
    several = component.kind == "gpus" and component.name != EVERY_GPU
    chosen = ",".join(for_smi(gpu.bdf) for gpu in gpus_of(box, component)) if several else for_smi(component.bdf)
    ids = ("-i", chosen) if chosen else ()
    options: Mapping[str, tuple[str, ...]] = {"ECC mode": ("-e", "1"), "compute mode": ("-c", "0")}
    if component.part in options:
        code = "if-unintended" if changed_by(box, component)[1] else "take-back-or-reset"
        reset_values = _reset(box, component, dead) if code == "take-back-or-reset" else {}
        return (("nvidia-smi", *ids, *options[component.part]),), Instruction(code=code, values=reset_values)
    if component.part == "clock setting":
        option = _clock_option(box, gpus_of(box, component))
        values: Mapping[str, Value] = {"deferred": 1} if option == _DEFERRED else {}
        return (("nvidia-smi", *ids, option),), Instruction(code="if-unintended", values=values)
    if component.part == "persistence mode":
        return (("nvidia-smi", *ids, "-pm", "1"),), Instruction(code="persistence")
    if component.part == "MIG mode":
        return _mig(box, component, dead)
    if component.part == "power limit":
        return _power_limit(box, gpus_of(box, component))
    if component.part == "device node":
        commands = tuple(("nvidia-modprobe", "-c", str(minor)) for minor in minors(box, gpus_of(box, component)))
        return (commands, _COMMAND) if commands else None
    return (_shared_nodes(box), _COMMAND) if component.part == "device nodes" else None


def _clock_option(box: Box, gpus: Collection[Device]) -> str:
    """``-rac`` takes application clocks back; where these are at their default, ``-rgc`` locked ones, from Volta on, or
    ``-rmc`` those of memory, of Hopper ``-rmcd``.
    """
    rows = [row for gpu in gpus if isinstance(row := box.gpu(gpu).clocks, GpuClocks)]
    if any(held_memory_clock(box, row) is not None for row in rows):
        return _DEFERRED if is_since("hopper", box, gpus) and not is_since("blackwell", box, gpus) else "-rmc"
    at_default = bool(rows) and all(row.application == row.default_application for row in rows)
    return "-rgc" if at_default and all(can_lock_clocks(box, row.bdf) for row in rows) else "-rac"


def _reset(box: Box, component: Component, dead: Collection[str | None]) -> Mapping[str, Value]:
    """What applies a pending mode: the reset of all GPUs that it takes along, else a reboot."""
    resettable = can_reset(box, component, dead)
    commands = reset(box, reset_domain(box, component), False).commands if resettable else ()
    return {"reset": "; ".join(map(shlex.join, commands)) or "reboot"}


def _mig(box: Box, component: Component, dead: Collection[str | None]) -> Setting | None:
    """Nobody but who asked for the change knows whether it is meant: the mode in use is set again if it is not."""
    rows = [row for gpu in gpus_of(box, component) if isinstance(row := box.gpu(gpu).modes, GpuModes)]
    modes = [(for_smi(row.bdf), mig) for row in rows if isinstance(mig := row.mig, bool)]
    command = "; ".join(f"nvidia-smi -i {bdf} -mig {mig:d}" for bdf, mig in modes)
    values = {"command": command, **_reset(box, component, dead)}
    return ((), Instruction(code="mig-pending", values=values)) if modes else None


def _power_limit(box: Box, gpus: Collection[Device]) -> Setting | None:
    """The default limit, in W, of every GPU that has another one; None where all have it."""
    rows = [row for gpu in gpus if isinstance(row := box.gpu(gpu).power, GpuPower)]
    defaults = [(row, default) for row in rows if isinstance(default := row.default_limit_mw, int)]
    if not defaults:
        return (), Instruction(code="default-power-limit")
    by_limit = gathered((default, for_smi(row.bdf)) for row, default in defaults if row.limit_mw != default)
    chosen = {mw: ("-i", ",".join(ids)) if len(ids) < len(box.topology.gpus) else () for mw, ids in by_limit.items()}
    commands = tuple(("nvidia-smi", *ids, "-pl", f"{mw / 1000:g}") for mw, ids in chosen.items())
    return (commands, Instruction(code="lower-limit")) if commands else None


def _shared_nodes(box: Box) -> Commands:
    """That of the shared nodes which is missing; both where neither is known to be there."""
    nodes = box.snapshot.device_nodes
    open_by = {} if isinstance(nodes, Missing) else {"control": nodes.control.opens, "uvm": nodes.uvm.opens}
    control = () if open_by.get("control") is True else (("nvidia-modprobe", "-c", "255"),)
    return control if open_by.get("uvm") is True else (*control, ("nvidia-modprobe", "-u", "-c", "0"))


def _acs(box: Box, component: Component, explained: Collection[Finding]) -> Setting | None:
    """Clear the redirect bits of a port, or of those ports of a switch that were found; no command where virtual
    machines or an IOMMU may need them."""
    if component.bdf is None or hypervisor(box) or acs_rules(box) or reason_to_keep_acs(box):
        return None
    found = sorted({finding.subject.bdf or "" for finding in explained if finding.subject.kind == "pci"})
    ports = [component.bdf] if component.kind == "bridge" else found
    return tuple(("setpci", "-s", port, "ECAP_ACS+0x6.w=0:3c") for port in ports), Instruction(code="disable-acs")


def _driver_version(box: Box) -> str:
    modules = box.snapshot.modules
    driver = modules.driver if isinstance(modules, Modules) else None
    return driver.version if isinstance(driver, NvidiaDriver) else ""
