"""The components of one machine: devices, links, switches and what joins two GPUs, found in its topology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from dgxcheck.components.component import EVERY_GPU, Component, Kind, host_part
from dgxcheck.facts.ids import MELLANOX
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.facts.nvml.nvlink import NvLink
from dgxcheck.facts.record import remembered, replace
from dgxcheck.facts.typical import multimode
from dgxcheck.topology.model import Device, Surveyed, Topology, slot_of
from dgxcheck.topology.nvlinks import SWITCH, is_nvswitch, nvswitches
from dgxcheck.topology.paths import Hop, hops_above, sharers


def device_part(machine: Surveyed, device: Device, part: str = "") -> Component:
    """A GPU or HCA, or a part of it, with its slot and serial number where they are known."""
    kind: Kind = "gpu" if device.kind == "gpu" else "hca"
    slot = slot_of(device, machine.snapshot.slots)
    return Component(
        kind=kind, name=device.name, bdf=device.bdf, part=part, slot=None if isinstance(slot, Missing) else slot,
        serial=serial_of(machine, device.bdf) if kind == "gpu" else None,
    )  # fmt: skip


def serial_of(machine: Surveyed, bdf: str | None) -> str | None:
    """The board serial number of a GPU, as NVML has it; both GPUs of a K80 board have the same."""
    nvml = machine.snapshot.gpu
    serial = _serials(nvml).get(bdf) if isinstance(nvml, Nvml) and bdf is not None else None
    return serial if isinstance(serial, str) else None


@remembered()
def _serials(nvml: Nvml) -> dict[str, str | Missing]:
    return {row.bdf: row.serial for row in reversed(nvml.gpus)}


def fallen(machine: Surveyed) -> Mapping[str, str]:
    """GPUs that fell off the bus in this boot by their bdf, with the serial number that the driver logged then."""
    log = machine.snapshot.kernel_log
    events = () if isinstance(log, Missing) else log.off_bus
    now = sorted((each for each in events if not each.past), key=lambda each: bool(each.serial))
    return {each.bdf: each.serial for each in now}


_OF_OTHERS = ("bnxt_re", "cxgb4_", "efa_", "erdma_", "hfi1_", "irdma", "mana_", "qedr")
"""Begin the names of adapters of other vendors: ``ib_register_device`` in Linux drivers/infiniband/hw."""


def is_nvidia_adapter(machine: Surveyed, bdf: str | Missing | None, name: str) -> bool:
    """Do NVIDIA's tools (MFT) know an adapter? By its vendor, or else by what its driver calls it or has logged."""
    function = machine.topology.functions.get(bdf) if isinstance(bdf, str) else None
    if function is not None and isinstance(function.vendor, int):
        return function.vendor == MELLANOX
    log = machine.snapshot.kernel_log
    errors = () if isinstance(log, Missing) else log.driver_errors
    logged = any(error.bdf == bdf and not error.driver.startswith("mlx") for error in errors)
    return not (logged or name.startswith(_OF_OTHERS))


def all_gpus(machine: Surveyed, part: str) -> Component:
    """A setting that all GPUs of the machine have wrong."""
    return Component(kind="gpus", name=EVERY_GPU, part=part, shared_by=tuple(gpu.name for gpu in machine.topology.gpus))


def link_of(machine: Surveyed, hop: Hop) -> Component:
    """A physical PCIe link, named by the device at its lower end."""
    return Component(kind="link", name=str(hop), bdf=hop.device, shared_by=sharers(hop, machine.topology))


def links_above(machine: Surveyed, device: Device) -> Iterator[Component]:
    """The PCIe links of a device: its own first, then up to the root port."""
    if not isinstance(device.path, Missing):
        hops = hops_above(device.path, machine.topology.functions)
        yield from (link_of(machine, hop) for hop in reversed(hops) if not hop.skip_reason)


def links_at(machine: Surveyed, bdf: str) -> Iterator[Component]:
    """The PCIe links of which a bridge or device is one end, each once."""
    yield from (link_of(machine, hop) for hop in _hops(machine, bdf) if bdf in (hop.device, hop.port))


def links_below(machine: Surveyed, bdf: str) -> Iterator[Component]:
    """The PCIe links below a bridge that do not end at it, each once."""
    yield from (link_of(machine, hop) for hop in _hops(machine, bdf) if bdf not in (hop.device, hop.port))


def _hops(machine: Surveyed, bdf: str) -> Iterator[Hop]:
    """The links at and below a function of PCI, from the top down, as the paths of all functions show them."""
    functions = machine.topology.functions
    paths = (each.path for each in functions.values() if isinstance(each.path, tuple) and bdf in each.path)
    found: dict[tuple[str, str], Hop] = {}
    for path in paths:
        hops = hops_above(path, functions)
        at = next((number for number, hop in enumerate(hops) if bdf in (hop.port, hop.device)), len(hops))
        found |= {(hop.port, hop.device): hop for hop in hops[at:]}
    yield from found.values()


def switch_at(machine: Surveyed, upstream: str) -> Component:
    """The PCIe switch of an upstream port."""
    below = tuple(device.name for device in machine.topology.below(upstream))
    return Component(kind="switch", name=upstream, bdf=upstream, shared_by=below)


def switches_at(machine: Surveyed, end: Component) -> Iterator[Component]:
    """The PCIe switch of which a link or bridge port is the upstream end, or to which a port leads."""
    functions = machine.topology.functions if end.bdf is not None and end.kind in ("bridge", "link") else {}
    yield from (switch_at(machine, bdf) for bdf, each in functions.items() if end.bdf in rows(each.path)[-2:])


def switch_setting(machine: Surveyed, port: str | None, part: str) -> Component | None:
    """Of the PCIe switch that has this downstream port, with all levels of one chip; None where it is no such port.

    A path alternates: host bridge, root port, upstream port, downstream port, upstream port ..
    """
    function = machine.topology.functions.get(port or "")
    path = () if function is None else rows(function.path)
    hops = hops_above(path, machine.topology.functions) if len(path) % 2 == 0 else ()
    top = next((hop for hop in reversed(hops) if not hop.skip_reason), next(iter(hops), None))
    return None if top is None else replace(switch_at(machine, top.device), part=part)


def is_below(device: Device, bridge: str) -> bool:
    """Is the bridge or host bridge on the device's path to memory?"""
    return not isinstance(device.path, Missing) and bridge in device.path


def nvlinks_between(machine: Surveyed, a: Device, b: Device) -> Component:
    """The NVLinks that join two GPUs, the same in either order."""
    one, other = sorted((a, b), key=machine.topology.devices.index)
    return _pair("nvlink", one, other)


def peer_path(a: Device, b: Device) -> Component:
    """Peer access of one GPU to the memory of another."""
    return _pair("path", a, b)


def _pair(kind: Kind, a: Device, b: Device) -> Component:
    return Component(kind=kind, name=f"{a.name} - {b.name}", bdf=a.bdf, peer_bdf=b.bdf, shared_by=(a.name, b.name))


def bridge_setting(bdf: str) -> Component:
    """ACS of one bridge port."""
    return Component(kind="bridge", name=bdf, bdf=bdf, part="ACS setting")


def all_nvlinks(machine: Surveyed) -> Component:
    """What keeps the NVLinks of every GPU down or slow: the NVSwitches, else the driver's setting.

    That setting (``NVreg_NvLinkDisable``) also where it is in effect, or NVML calls every NVLink unsupported: no fabric
    is asked for then. It leaves no link up, so it is not to blame where some are, for which their rate stands; nor
    where the driver says that it is not in effect, and no hypervisor hides links: then the NVLinks of the GPUs are.
    """
    links = rows(machine.snapshot.nvlink)
    reached = has_nvswitches(machine) or any(row.up is True and row.remote_type == SWITCH for row in links)
    if reached and machine.snapshot.nvlink != () and not nvlinks_disabled(machine):
        return host_part("NVSwitches")
    if any(row.up is True for row in links):
        return host_part("NVLink rate")
    of_a_host = machine.snapshot.known_host.vm is None
    not_off = of_a_host and _nvlink_setting(machine) == _IN_USE
    return all_gpus(machine, "NVLink") if not_off and links else host_part("NVLink setting")


_IN_USE, _LEFT_OFF = "0", "1"


def nvlinks_disabled(machine: Surveyed) -> bool:
    """Was the driver told to leave the NVLinks off?"""
    return _nvlink_setting(machine) == _LEFT_OFF


def _nvlink_setting(machine: Surveyed) -> str | None:
    """NvLinkDisable as ``/proc/driver/nvidia/params`` has it."""
    modules = machine.snapshot.modules
    params = modules if isinstance(modules, Missing) else modules.driver_params
    return None if isinstance(params, Missing) else params.get("NvLinkDisable")


def has_nvswitches(machine: Surveyed) -> bool:
    """Are the GPUs joined through NVSwitches, which the fabric manager of this machine sets up? They are on PCI, or
    behind adapters of this machine.
    """
    return _has_nvswitches(machine.topology)


@remembered()
def _has_nvswitches(topology: Topology) -> bool:
    behind = any(device.kind == "nvswitch-bridge" for device in topology.devices)
    return behind or bool(nvswitches(topology))


def far_ends(machine: Surveyed, gpu: Device) -> Mapping[int, str]:
    """By link position the bus id of the device at the other end: as NVML has it, else the only one that lacks a link.

    A peer lacks one where it reports more links to this GPU than this GPU reports to it; an NVSwitch, where this GPU
    has fewer links to it than most GPUs have, or no GPU has any.
    """
    links = rows(machine.snapshot.nvlink)
    own = [row for row in links if row.bdf == gpu.bdf]
    remotes = {row.link: row.remote_bdf for row in own if isinstance(row.remote_bdf, str)}
    unknown = [row.link for row in own if row.link not in remotes and row.up is False]
    lacking = _lacking(machine, links, gpu, Counter(remotes.values())) if unknown else []
    return remotes | (dict.fromkeys(unknown, lacking[0]) if len(lacking) == 1 else {})


@remembered()
def off_the_bus(machine: Surveyed) -> Mapping[str, Missing]:
    """Functions of PCI by their bdf whose config space reads all ones, with that gap."""
    gaps = ((row.bdf, row.control) for row in rows(machine.snapshot.config_space))
    return {bdf: gap for bdf, gap in gaps if isinstance(gap, Missing) and gap.gap is Gap.LOST}


def lost_nvswitches(machine: Surveyed) -> Iterator[Component]:
    """Those on PCI that fell off the bus."""
    for bdf in off_the_bus(machine):
        function = machine.topology.functions.get(bdf)
        if function is not None and is_nvswitch(function):
            yield Component(kind="nvswitch", name=bdf, bdf=bdf)


def missing_nvswitch(machine: Surveyed) -> Component:
    """The NVSwitch that is not on PCI, by its bus id where NVLinks lead to it."""
    lost = missing_nvswitches(machine)
    if len(lost) == 1:
        return Component(kind="nvswitch", name=lost[0], bdf=lost[0])
    return Component(kind="slot", name="", part="missing NVSwitch")


def missing_nvswitches(machine: Surveyed) -> tuple[str, ...]:
    """Bus ids of NVSwitches to which NVLinks lead and that are not on PCI; empty where no NVSwitch is on PCI.

    NVSwitches that another host manages, or from Blackwell on, are never on PCI; a CPU can be the peer of a link too,
    and drivers before R470 do not tell the kind of a link's peer.
    """
    present = {gpu.bdf for gpu in machine.topology.gpus} | {*machine.topology.functions}
    ends = set()
    for row in rows(machine.snapshot.nvlink):
        kind = row.remote_type
        may_be_switch = kind.gap is Gap.UNSUPPORTED if isinstance(kind, Missing) else kind == SWITCH
        if row.up is True and isinstance(row.remote_bdf, str) and may_be_switch:
            ends.add(row.remote_bdf)
    return tuple(sorted(ends - present)) if has_nvswitches(machine) else ()


def link_positions(machine: Surveyed, gpu: Device) -> tuple[int, ...]:
    """The NVLink positions of a GPU that NVML reports; empty where it reports none."""
    return tuple(row.link for row in rows(machine.snapshot.nvlink) if row.bdf == gpu.bdf)


def nvlinks_of(machine: Surveyed, gpu: Device, links: Collection[int] | None = None) -> Iterator[Component]:
    """What these links of a GPU, or all of them, have at their far ends: the NVLinks of the pair, or the NVSwitch.

    An NVSwitch is among them only where all of these links lead to it.
    """
    ends = {end for link, end in far_ends(machine, gpu).items() if links is None or link in links}
    yield from (nvlinks_between(machine, gpu, peer) for peer in machine.topology.gpus if peer.bdf in ends)
    if links and len(ends) == 1:
        function = machine.topology.functions.get(bdf := ends.pop())
        if (function is not None and is_nvswitch(function)) or bdf in missing_nvswitches(machine):
            yield Component(kind="nvswitch", name=bdf, bdf=bdf)


def _lacking(machine: Surveyed, rows: Collection[NvLink], gpu: Device, own: Counter[str]) -> list[str]:
    to_each = {bdf: Counter(row.remote_bdf for row in rows if row.bdf == bdf and isinstance(row.remote_bdf, str))
               for bdf in (other.bdf for other in machine.topology.gpus) if bdf != gpu.bdf}
    reached = {end for counts in to_each.values() for end in counts}
    # each half of a DGX-2 has NVSwitches of its own: GPUs that share one with this GPU say what is usual
    near = {bdf: counts for bdf, counts in to_each.items() if counts.keys() & own.keys()}
    to_switch = near or to_each
    ends = {end for counts in to_switch.values() for end in counts} - {each.bdf for each in machine.topology.gpus}
    usual = {end: max(multimode(counts[end] for counts in to_switch.values())) for end in ends}
    theirs = Counter(row.bdf for row in rows if row.remote_bdf == gpu.bdf)
    lacking = sorted(end for end, links in {**usual, **theirs}.items() if links > own[end])
    reached |= own.keys()
    switches = {function.bdf for function in nvswitches(machine.topology)}
    # else those to which no NVLink leads while NVLinks lead to others: all of their links are down
    return lacking or (sorted(switches - reached) if switches & reached else [])
