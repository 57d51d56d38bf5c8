"""What a person looks at, reseats or replaces, or leaves to the vendor, by form factor."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.expected import is_coherent
from dgxcheck.checks.pcie.acs_rules import acs_rules
from dgxcheck.checks.pcie.bar1 import has_displays, largest_bar1, others_have_bar1
from dgxcheck.components.component import FABRIC_MANAGER, Component
from dgxcheck.components.containment import BOARDS, NVSWITCHES, is_k80
from dgxcheck.components.locate import is_nvidia_adapter
from dgxcheck.diagnosis.action import COMMANDS, Commands, Instruction, Value
from dgxcheck.diagnosis.escalation import OF_PARTS
from dgxcheck.diagnosis.form_factor import (
    VENDOR_ONLY,
    FormFactor,
    form_factor,
    gpu_model,
    has_fabric_elsewhere,
    has_no_diagnostic,
    is_boot_mirror,
    is_on_network_board,
    is_power_of_a_card,
    is_power_of_a_module,
    is_station,
    is_tray_of_a_rack,
    may_have_bmc,
)
from dgxcheck.diagnosis.reset_domain import gpus_of, is_vgpu, nvlinks_of_path
from dgxcheck.diagnosis.steps import has_own_fabric
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import RMA_STEPS, FaultKind, Step
from dgxcheck.facts.ids import NETWORK, NVME
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device, slot_of
from dgxcheck.topology.nvlinks import is_nvswitch

_INSPECT: Mapping[tuple[str, str], str] = {
    place: row["inspect"] for place, row in OF_PARTS.items() if row["inspect"] != "-"
}
_VENDOR: Mapping[FormFactor, str] = {"sxm": "vendor-gpu-tray", "water-cooled": "vendor-water-cooled"}
_CARRIERS = ("link", "switch", "bridge")
"""Above one card they end at it; above several they are on a board or riser."""
_PCIE_ERRORS = frozenset({Fault.AER_UNCORRECTABLE, Fault.AER_LOGGED, Fault.XID_PCIE})
_OF_CABLES = frozenset({Fault.PORT_DOWN, Fault.PORT_SLOW, Fault.PORT_ERRORS, Fault.PORT_MODULE})
_BY_ITS_REMEDY = frozenset({Fault.LEAK, Fault.GPU_UNPOWERED})
"""What is looked at before air, coolant level and supplies of the host: as with a GPU that is hot among cool ones, a
socket alone, and cables of another machine, the finding's remedy says it."""
_TO_REPORT = frozenset({Fault.XID_SOFTWARE, Fault.XID_NOTICE, Fault.DRIVER_ERROR})
_DEVICES_MISSING = frozenset({Fault.GPU_MISSING, Fault.HCA_MISSING})
_NO_LABEL = re.compile(r"(?:mc|socket |node )\d+")
"""Where several DIMMs are: a memory controller of EDAC, a socket, a NUMA node."""
_CABLED = ("port", "interface", "fabric")
_OF_THE_HOST: tuple[Step, ...] = ("power-cycle", "reseat", "replace", "contact-vendor")
"""What no virtual machine does."""
_PARTS_OF_THE_HOST = ("cooling", "power supply", "memory", "memory modules", "CPUs", "physical host", *BOARDS)
_OF_THE_BOARD = ("ECC mode", "MIG mode", "power limit", "clock setting")
"""What no share of a board sets."""
_OF_THE_GPUS = (
    "missing GPU", "missing PCIe switch", "empty PCIe switch", "missing NVSwitch", "NVSwitches", "placement of GPUs",
    *BOARDS,
)  # fmt: skip


def has_gpus(box: Box, component: Component) -> bool:
    """Is it a GPU, a part of one, what joins or carries GPUs, or where one is missing?"""
    function = box.topology.functions.get(component.bdf or "") if component.kind == "link" else None
    if function is not None and is_nvswitch(function):
        return True
    return bool(gpus_of(box, component)) or component.kind in ("gpu", "nvswitch") or component.part in _OF_THE_GPUS


def feasible(box: Box, component: Component, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps that apply: a GPU's diagnostic for GPUs alone, and the vendor in place of what only a vendor does."""
    if not has_gpus(box, component):
        steps = tuple(step for step in steps if step != "field-diagnostic")
    if (component.kind, component.part) == ("host", "memory") and is_coherent(box):  # LPDDR5X soldered beside a Grace
        return ("inspect", "contact-vendor")
    if is_power_of_a_card(box, component):
        steps = ("inspect", "reseat", *RMA_STEPS) if "replace" in steps else ("inspect", "reseat", "field-diagnostic")
    if component.part != "power supply" and (
        (has_gpus(box, component) and form_factor(box, component) in VENDOR_ONLY)
        or is_on_network_board(box, component)
        or (component.kind in _CARRIERS and is_tray_of_a_rack(box))
        or (component.kind == "disk" and is_boot_mirror(box, component.name))
    ):
        steps = tuple("contact-vendor" if step == "replace" else step for step in steps if step != "reseat")
    elif component.part == "power supply" and (is_tray_of_a_rack(box) or is_power_of_a_module(box, component)):
        steps = tuple(step for step in steps if step != "replace")
    blames_the_tray = not {"replace", "contact-vendor"}.isdisjoint(steps)
    if blames_the_tray and "inspect" not in steps and _leads_to_a_rack(box, component):
        steps = ("inspect", *steps) if component != NVSWITCHES else ("inspect", "contact-vendor")
    if steps[-1:] == ("change-setting",) and component.part == "ACS setting" and acs_rules(box):
        steps = (*steps, "reboot")
    if "restart-service" in steps and _is_of_a_rack(box, component):
        steps = ("inspect", *(step for step in steps if step not in ("inspect", "restart-service")))
    if "change-setting" in steps[:1] and _by_nvlink(box, component):
        steps = ("inspect", *steps[1:])
    if steps == ("change-setting", "reboot") and component.part in ("BAR1", "large BARs"):
        gpus, largest = gpus_of(box, component), largest_bar1(box)
        if all(has_displays(box, gpu) for gpu in gpus or box.gpus):
            steps = ("inspect",)
        elif gpus and all(others_have_bar1(box, gpu, largest) for gpu in gpus):
            steps = ("inspect", "reboot", "power-cycle", "contact-vendor")
    return _in_a_guest(box, component, steps) if guest(box) is not None else steps or ("contact-vendor",)


def _in_a_guest(box: Box, component: Component, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps of a virtual machine, and its host's administrator for the others.

    DCGM runs with full GPU passthrough alone (https://docs.nvidia.com/datacenter/dcgm/latest/installation.html).
    """
    if component.part in _PARTS_OF_THE_HOST and (component.kind, component.part) != ("gpu", "memory"):
        return ("contact-host",)
    if component.part in _OF_THE_BOARD and is_vgpu(box, component):
        return ("contact-host",)
    if not has_own_fabric(box) and component in (FABRIC_MANAGER, NVSWITCHES):  # run where the NVSwitches are
        return ("contact-host",)
    beyond = ("power-cycle",) if component.kind == "driver" else _OF_THE_HOST
    if not has_own_fabric(box) and component.part == "fabric":
        beyond = (*beyond, "restart-service")
    if is_vgpu(box, component) or component.kind in _CARRIERS:  # of a link a diagnostic says no more than its registers
        beyond = (*beyond, "field-diagnostic")
    own = tuple(step for step in steps if step not in beyond)
    done = own == steps or component.kind == "driver"
    return own if own and done else (*own, "contact-host")


def _is_of_a_rack(box: Box, component: Component) -> bool:
    """Is this a fabric whose manager runs on the switch trays of the rack?"""
    return (component == FABRIC_MANAGER or component.part == "fabric") and has_fabric_elsewhere(box)


def _leads_to_a_rack(box: Box, component: Component) -> bool:
    """Is it the NVSwitches on the switch trays of the rack, or NVLinks of a GPU that end there?"""
    here = component.kind == "nvlink" or component.part in ("NVLink", NVSWITCHES.part)
    return here and has_fabric_elsewhere(box)


def _by_nvlink(box: Box, path: Component) -> bool:
    """Is it peer access of two GPUs that NVLinks join? No setting of PCIe keeps them from each other."""
    return path.kind == "path" and bool(nvlinks_of_path(box, path))


def inspection(
    box: Box, component: Component, faults: Collection[FaultKind | None] = ()
) -> tuple[Commands, Instruction | None]:
    """Commands and instruction of the step ``inspect``; None where the finding's remedy says what to look at."""
    code = _INSPECT.get((component.kind, component.part))
    own = [fault for fault in faults if fault is not None and fault.steps[:1] == ("inspect",)]
    if component.kind == "gpu" and code == "inspect-airflow" and _has_fans(box, component):
        return (), Instruction(code="inspect-own-fans")
    sole = [{Fault.FABRIC_ERRORS}, *([] if is_tray_of_a_rack(box) else [{Fault.CPU_THROTTLED}])]
    heat_sink = component.kind == "gpu" and Fault.HEAT_SINK in faults
    if heat_sink or not _BY_ITS_REMEDY.isdisjoint(faults) or {*faults} in sole:
        return (), None
    if is_power_of_a_card(box, component):
        return (), Instruction(code="inspect-card-power")
    if Fault.DRIVER_MISMATCH in faults:
        code = "inspect-driver-versions"
    elif component.part == "missing PCIe switch" and not _DEVICES_MISSING.isdisjoint(faults):
        code = "inspect-missing"  # of the switch alone its check knows more
    elif code == "inspect-dimms" and is_coherent(box):
        code = "inspect-soldered-memory"
    elif _leads_to_a_rack(box, component) and not own:
        code = "inspect-rack-links"
    elif code == "inspect-port":
        adapter = component.bdf or _kernel_name(component)
        has_tool = adapter and is_nvidia_adapter(box, component.bdf, component.name)
        links = (("mlxlink", "-d", adapter, "-m", "-c"),) if has_tool else ()
        code = "inspect-module" if {*faults} == {Fault.PORT_MODULE} else code
        return (links, Instruction(code=code)) if _OF_CABLES & {*faults} and not own else ((), None)
    if code == "inspect-airflow" and Fault.FAN not in faults:
        code = "inspect-water-cooling" if is_station(box) else "inspect-coolant" if is_tray_of_a_rack(box) else code
    elif code == "inspect-power" and is_tray_of_a_rack(box):
        code = "inspect-power-shelves"
    elif is_power_of_a_module(box, component):
        code = "inspect-baseboard"
    if _by_nvlink(box, component):
        return (("nvidia-smi", "nvlink", "-s"), ("nvidia-smi", "topo", "-p2p", "r")), None
    if _is_of_a_rack(box, component):
        return (("systemctl", "status", "nvidia-imex"),), Instruction(code="inspect-rack-fabric")
    if component == FABRIC_MANAGER:
        unit = "nvidia-fabricmanager"
        return (("systemctl", "status", unit), ("journalctl", "-b", "-u", unit)), None
    if component.kind == "link" and {*faults} <= _PCIE_ERRORS and component.bdf is not None:
        return (("lspci", "-vvv", "-s", component.bdf),), Instruction(code="inspect-link")
    if component.kind == "disk" and _is_array(box, component.name):
        return (("cat", "/proc/mdstat"), ("mdadm", "--detail", f"/dev/{component.name}")), None
    commands = COMMANDS.get(code, ()) if code is not None else ()
    asked = tuple(each for each in commands if each[0] != "ipmitool" or may_have_bmc(box))
    return asked, Instruction(code=code) if code is not None else None


def _has_fans(box: Box, gpu: Component) -> bool:
    """A board that the chassis cools reports no fan speed."""
    thermal = box.gpu(gpu.bdf).thermal
    return not isinstance(thermal, Missing) and isinstance(thermal.fan_percent, int)


def reseating(box: Box, component: Component, faults: Collection[FaultKind | None]) -> Instruction:
    """What to take out and put back, or to move; of an array that does not run, how its disk comes back."""
    moved: dict[tuple[str, str], str] = {("host", "placement of GPUs"): "move-cards", ("hca", "slot"): "move-adapter"}
    code = moved.get((component.kind, component.part))
    if Fault.ARRAY_FAILED in faults and _is_array(box, component.name):
        return Instruction(code="reassemble-array", values={"array": component.name})
    return Instruction(code=code) if code is not None else _hardware(box, component, "reseat")


def replacing(box: Box, component: Component, faults: Collection[FaultKind | None]) -> Instruction:
    """What to replace. Data on an array without redundancy can be saved until a disk of it is lost."""
    bare = any(row.name == component.name and row.level in ("raid0", "linear") for row in box.snapshot.arrays)  # md(4)
    if component.kind == "disk" and bare:
        if {*faults} <= {Fault.DISK_ERRORS, Fault.TASKS_HUNG}:
            return Instruction(code="replace-one-disk", values={"name": component.name, "members": ()})
        return Instruction(code="restore-array", values={"array": component.name})
    if component.part == "power supply" and not is_power_of_a_card(box, component):
        return Instruction(code="replace-supply")
    return _hardware(box, component, "replace")


def vendor(box: Box, component: Component, faults: Collection[FaultKind | None]) -> Instruction:
    """What to have the vendor repair; of what software can have caused no board is repaired before it was examined."""
    if component.kind == "gpu" and _TO_REPORT.issuperset(faults):
        return Instruction(code="vendor-report")
    if component.kind == "disk" and _is_array(box, component.name):
        return Instruction(code="vendor-disk", values={"name": component.name, "members": ()})
    of_gpus = has_gpus(box, component) and component.kind not in ("host-bridge", "socket")
    code = _VENDOR.get(form_factor(box, component)) if of_gpus else None
    if component.part == "power supply" and not is_power_of_a_module(box, component):
        code = "vendor-power"
    elif is_on_network_board(box, component):
        code = "vendor-network-board"
    others: Mapping[str, str] = {"slot": "vendor-missing-device", "driver": "vendor-driver"}
    return Instruction(code=code or others.get(component.kind, "vendor-board"))


def _hardware(box: Box, component: Component, verb: str) -> Instruction:
    """Code and values of ``reseat`` and ``replace``, which have the same kinds of parts."""
    what, values = _part(box, component)
    code = f"{verb}-{what}"
    if code == "replace-card" and has_no_diagnostic(box, component):
        code = "replace-retail-card"
    return Instruction(code="replace-one-disk" if code == "replace-drive" else code, values=values)


def _kernel_name(component: Component) -> str:
    """``mlx5_0``, of its port too; empty where the text alone has a word for it: HCA, NIC0, a node of the fabric. A
    device of mst has no path in the name of what a tool reports."""
    name = component.name.partition("/")[0]
    name = f"/dev/mst/{name}" if "_pci" in name else name
    return name if re.match(r"mlx\d_|ib(?:[opsP]\d|x[\da-f])|roce|/dev/mst/", name) else ""


def _part(box: Box, component: Component) -> tuple[str, dict[str, Value]]:
    gpus = gpus_of(box, component)
    slots = [*{slot_of(gpu, box.snapshot.slots) for gpu in gpus}]
    shared = slots[0] if len(slots) == 1 and isinstance(slots[0], str) else ""
    slot: dict[str, Value] = {"slot": component.slot or shared}
    name: dict[str, Value] = {"name": component.name}
    if component.kind in _CABLED:
        return "cable", {"name": component.name if component.kind != "fabric" and component.name.islower() else ""}
    below = box.subclass(component.bdf) if component.kind == "link" else -1
    if below == NVME >> 8:
        return "drive", {"name": component.bdf or ""}
    if component.kind == "disk":
        return ("disk", {**name, "members": ()}) if _is_array(box, component.name) else ("drive", name)
    if (component.kind, component.part) == ("host", "memory"):
        return "dimms", {"position": "" if _NO_LABEL.fullmatch(component.position) else component.position}
    if component.kind == "hca" or component.part == "missing HCA" or below >> 8 == NETWORK:
        return "adapter", slot
    if gpus and all(is_k80(gpu) and _on_one_board(box, gpus[0], gpu) for gpu in gpus):
        boards = {other.name for gpu in gpus for other in box.topology.gpus if _on_one_board(box, gpu, other)}
        return "dual-gpu-card", {**slot, "gpus": tuple(gpu.name for gpu in box.topology.gpus if gpu.name in boards)}
    if has_gpus(box, component) and not (component.kind in _CARRIERS and len(component.shared_by) > 1):
        more: dict[str, Value] = {} if gpu_model(box, component) else {"unknown": 1}
        if "nvlink" in (component.kind, component.part.lower()) and any(gpu.nvlink_positions != 0 for gpu in gpus):
            more["bridges"] = 1
        return "card", {**slot, "gpus": tuple(gpu.name for gpu in gpus), **more}
    if component.kind in _CARRIERS:
        return "carrier", {"devices": component.shared_by or (component.name,)}
    return "part", {}


def _on_one_board(box: Box, one: Device, other: Device) -> bool:
    return one is other or box.topology.link(one, other).pci == "PIX"


def _is_array(box: Box, name: str) -> bool:
    """Is it no disk by itself? An array that is not there any more has its name only (``md0``)."""
    return name.startswith("md") or any(row.name == name for row in box.snapshot.arrays)
