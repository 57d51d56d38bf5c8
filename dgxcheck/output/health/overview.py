"""The devices at a glance: a row for each GPU and each HCA, and a line for the host, with their state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import BAD, WORST_FIRST, Status, Subject, counted
from dgxcheck.checks.placement.placement import is_reference_machine
from dgxcheck.components.component import Component
from dgxcheck.components.device_facts import GpuView, is_only_named
from dgxcheck.facts.bdf import shown
from dgxcheck.facts.infiniband import IbPort, PortState
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, rows, text_of
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.output.plain_text import fit_columns, hidden_columns, visible, wrapped
from dgxcheck.profiles.library import board_id, boards_for
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import NEAR

_WORDS = {Status.FAIL: "FAIL", Status.UNKNOWN: "?", Status.WARN: "WARN"}
_OF_DEVICES = ("gpu", "gpus", "hca", "port", "link", "board", "nvlink", "path")
_SILENT = (Gap.UNASKED, Gap.UNRECORDED, Gap.UNSUPPORTED)
DeviceColumn = tuple[str, Callable[[Assessment, Device], str | Missing]]


def glance(assessment: Assessment) -> list[list[list[str]]]:
    """A table for the GPUs and one for the HCAs, by columns with their heads: name, bus id, state, then the facts."""
    return [[*fixed, *facts] for fixed, facts in _by_kind(assessment, _states(assessment))]


def tables(assessment: Assessment, width: int | None) -> list[str]:
    """All tables, with an empty line below each; a column that nothing is known of is left out."""
    states = _states(assessment)
    lines = [wrapped(line, width, 2) for line in (machine(assessment),) if line]
    for (names, *fixed), facts in _by_kind(assessment, states):
        table, hidden = fit_columns(names, fixed, facts, width)
        lines += [*table, *(wrapped(line, width, 2) for line in hidden_columns(hidden)), ""]
    host = states.get(None)
    return [*lines, *([f"Host: {_WORDS[host]}", ""] if host in BAD else [])]


def _by_kind(
    assessment: Assessment, states: Mapping[str | None, Status]
) -> Iterator[tuple[list[list[str]], list[list[str]]]]:  # fmt: skip
    """Of GPUs and of HCAs the columns of names, bus ids and states, and those of facts, each with its head."""
    for head, kind, readers in (("GPU", "gpu", _GPU), ("HCA", "nic", _HCA)):
        if devices := [each for each in assessment.topology.devices if each.kind == kind]:
            # a GPU that NVML does not list has its bus id in its name too
            names = [head, *(visible(device.name.removesuffix(f"@{device.bdf}")) for device in devices)]
            places = ["Bus id", *(shown(device.bdf) or "-" for device in devices)]
            state = ["State", *(_state(assessment, device, states) for device in devices)]
            cells = {title: [or_gap(read)(assessment, device) for device in devices] for title, read in readers}
            facts = [[title, *map(_cell, values)] for title, values in cells.items() if not _unknown(values)]
            yield [names, places, state], facts


def _states(assessment: Assessment) -> Mapping[str | None, Status]:
    """The worst status by bus id, or by name where that is not known; None for the host. PASS: judged, and good.

    What a cause explains counts at the devices that it is about, wherever it was seen: at both ends of NVLinks, at
    those behind a switch, not at a neighbour that saw it; what lies between the two of a pair and is no part of either
    (the interconnect of the sockets, a host bridge, the setting of a port) is the host's.
    """
    worst: dict[str | None, Status] = {}
    devices = {device.name: device.bdf or device.name for device in assessment.topology.devices}
    suspects = {key: (cause, _meant(cause.component, devices)) for cause in assessment.causes for key in cause.explains}
    for finding in assessment.findings:
        bad = finding.counts
        if not bad and finding.status is Status.SKIP:
            continue
        places = blamed = {_place(end) for end in (finding.subject, finding.subject.peer) if end is not None}
        if finding.key in suspects and not places.isdisjoint(devices.values()):
            cause, meant = suspects[finding.key]
            blamed = meant if cause.component.kind in ("nvlink", "path") else places & meant or meant
            if finding.subject.peer is not None and cause.component.kind not in _OF_DEVICES:
                blamed = {None}
        for place in blamed or places:
            before, status = worst.get(place, Status.PASS), finding.status if bad else Status.PASS
            worst[place] = min(before, status, key=WORST_FIRST.index)
    return worst


def _meant(component: Component, devices: Mapping[str, str]) -> set[str | None]:
    """The GPUs and HCAs that a component is, joins or carries the traffic of."""
    below = {devices.get(name) for name in component.shared_by}
    return ({component.bdf, component.peer_bdf} | below) & {*devices.values()}


def _place(end: Subject) -> str | None:
    """Disks and interfaces without a bus id are the host's; ``mlx5_0/1`` is a port of ``mlx5_0``."""
    if end.kind in ("gpu", "hca", "port"):
        return end.bdf or end.name.rpartition("/")[0] or end.name
    return None if end.kind == "host" else end.bdf


def verdicts(assessment: Assessment) -> Iterator[tuple[Device, Status]]:
    """Of every GPU and HCA what the column State shows."""
    states, status = _states(assessment), {word: status for status, word in _WORDS.items()}
    for device in assessment.topology.devices:
        if device.kind in ("gpu", "nic"):
            yield device, status.get(_state(assessment, device, states), Status.PASS)


def _state(assessment: Assessment, device: Device, states: Mapping[str | None, Status]) -> str:
    """``ok`` only where the driver answered for the device, more than its name, and a check of an HCA passed."""
    worst = states.get(device.bdf or device.name)
    if worst in BAD:
        return _WORDS[worst]
    facts, bdf = assessment.snapshot, device.bdf or ""
    silent = device.kind == "gpu" and (isinstance(GpuView(facts, bdf).listed, Missing) or is_only_named(facts, bdf))
    idle = device.kind == "nic" and (worst is None or _is_down(assessment, device))
    return "?" if silent or idle else "ok"


def _is_down(assessment: Assessment, device: Device) -> bool:
    """Is none of an adapter's ports known to be active, by intent or not?"""
    ports = [other.ports for other in rows(assessment.snapshot.ib_ports) if other.device == device.name]
    states = [port.state for one in ports for port in rows(one)]
    return bool(ports) and PortState.ACTIVE not in states


def _unknown(values: Sequence[str | Missing]) -> bool:
    """Nothing was asked, or no device of the kind has it."""
    return all(isinstance(value, Missing) and value.gap in _SILENT for value in values)


def _cell(value: str | Missing) -> str:
    if isinstance(value, Missing):
        return "-" if value.gap is Gap.UNSUPPORTED else "?"
    return visible(value)


def host_name(assessment: Assessment) -> str:
    """Empty where it is not known."""
    return visible(text_of(assessment.host.get("host", "")))


def machine(assessment: Assessment) -> str:
    """``NVIDIA DGX-1 with eight V100: 8 x Tesla V100-SXM2-16GB, driver 550.127.05``

    The title of the reference machine only where the box is one; of others the models that NVML names, else those of
    the PCI ids by which the reference was chosen.
    """
    nvml, choice = assessment.snapshot.gpu, assessment.choice
    title, names = "", [gpu.name for gpu in assessment.snapshot.listed_gpus if isinstance(gpu.name, str)]
    if choice is not None and is_reference_machine(assessment, choice):
        title = visible(choice.profile.title)
    elif choice is not None and not names:
        boards = boards_for(choice)
        names = [boards[id].name for gpu in assessment.topology.gpus if (id := board_id(gpu)) in boards]
    parts = [f"{count} x {visible(name)}" for name, count in Counter(names).items()]
    if isinstance(nvml, Nvml):
        unnamed = len(nvml.gpus) - len(names) if names else 0
        parts += [f"{counted(unnamed, 'GPU')} without a name"] if unnamed > 0 else []
        if any(isinstance(gpu.index, Missing) for gpu in nvml.gpus) and nvml.count != len(nvml.gpus):
            parts.append(f"{len(nvml.gpus)} of {nvml.count} GPUs shown")  # in the text that says how many there are
        parts += [f"driver {visible(nvml.driver_version)}"] if isinstance(nvml.driver_version, str) else []
    return ": ".join(filter(None, (title, ", ".join(parts))))


def _temperature(assessment: Assessment, device: Device) -> str:
    return f"{need(need(GpuView(assessment.snapshot, device.bdf).thermal).gpu_c)} °C"


def _power(assessment: Assessment, device: Device) -> str:
    """``45/300 W``: used, and the limit in force, else the one that is set."""
    power = need(GpuView(assessment.snapshot, device.bdf).power)
    limit = power.limit_mw if isinstance(power.enforced_limit_mw, Missing) else power.enforced_limit_mw
    return f"{need(power.usage_mw) / 1000:.0f}/{'?' if isinstance(limit, Missing) else f'{limit / 1000:.0f}'} W"


def _memory_errors(assessment: Assessment, device: Device) -> str | Missing:
    """Uncorrected and corrected since the driver was loaded: ``0/12``."""
    ecc = need(GpuView(assessment.snapshot, device.bdf).ecc)
    pair = (ecc.volatile_uncorrected.total, ecc.volatile_corrected.total)
    if all(isinstance(count, Missing) for count in pair):
        need(pair[0])
    return "/".join("?" if isinstance(count, Missing) else str(count) for count in pair)


def _pcie(_: Assessment, device: Device) -> str | Missing:
    function = device.function
    if function is None:
        return Missing(Gap.UNSUPPORTED, device.name, "no PCI function")
    return f"gen{need(function.link_gen)} x{need(function.link_width)}"


def _nvlinks(assessment: Assessment, device: Device) -> str | Missing:
    """``6/6``: links up, and links that the GPU has."""
    own = [link.up for link in need(assessment.snapshot.nvlink) if link.bdf == device.bdf]
    states = [need(up) for up in own if not isinstance(up, Missing) or up.gap is not Gap.UNSUPPORTED]
    if not states:
        return Missing(Gap.UNSUPPORTED, device.name, "no NVLinks")
    return f"{sum(state is True for state in states)}/{len(states)}"


def _nearest(assessment: Assessment, device: Device) -> str | Missing:
    """Devices of the other kind below the same PCIe switch."""
    links = assessment.topology.links
    others = [other for other in assessment.topology.devices if other.kind != device.kind]
    near = [other.name for other in others if links[device.name, other.name].pci in NEAR]
    return ", ".join(near) if near else Missing(Gap.UNSUPPORTED, device.name, "none below the same switch")


def _port(assessment: Assessment, device: Device) -> str | Missing:
    """``ACTIVE 100 Gbit/s 4X EDR``, port by port."""
    devices = need(assessment.snapshot.ib_ports)
    ports = next((other.ports for other in devices if other.device == device.name), None)
    if ports is None:
        return Missing(Gap.UNSUPPORTED, device.name, "not an InfiniBand device")
    return "; ".join(map(_one_port, need(ports)))


def _one_port(port: IbPort) -> str:
    state = "?" if isinstance(port.state, Missing) else port.state.name
    if port.state is not PortState.ACTIVE or isinstance(port.rate, Missing):
        return state
    layer = " Ethernet" if port.link_layer == "Ethernet" else ""
    return f"{state} {port.rate.gbit_per_s:g} Gbit/s{layer}"


_GPU: tuple[DeviceColumn, ...] = (
    ("Temp", _temperature), ("Power", _power), ("UE/CE", _memory_errors), ("PCIe", _pcie), ("NVLink", _nvlinks),
    ("HCA", _nearest),
)  # fmt: skip
"""UE/CE: uncorrected and corrected memory errors."""
_HCA: tuple[DeviceColumn, ...] = (("PCIe", _pcie), ("Port", _port), ("GPUs", _nearest))
