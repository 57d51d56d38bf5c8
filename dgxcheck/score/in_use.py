"""What causes leave of each GPU, port and the host that can be used now, by area of the score."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, Judgement, Status
from dgxcheck.checks.network import port_state, ports
from dgxcheck.checks.nvlink.nvswitches import nvswitches
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.faults import DEVICE_ABSENT, GPU_DEAD, Fault
from dgxcheck.facts.missing import rows
from dgxcheck.score.expectation import WEIGHTS, Area

ALL: tuple[Area, ...] = tuple(WEIGHTS)
_OF_A_GPU: Mapping[str, tuple[Area, ...]] = {
    "NVLink": ("nvlink",), "fabric": ("nvlink",), "cooling": ("gpu",), "power supply": ("gpu",),
    "clock setting": ("gpu",), "power limit": ("gpu",), "MaxPayload": ("pcie",), "BAR1": ("pcie",),
    "versions and settings": ("gpu",), "persistence mode": ("gpu",), "ECC mode": ("memory",),
}  # fmt: skip
"""What a part carries; every other part, as the memory, and the device as a whole, carries all."""
_OF_THE_HOST: Mapping[str, tuple[Area, ...]] = {
    "Fabric Manager": ALL, "container runtime": ALL, "NVSwitches": ("nvlink",), "NVLink rate": ("nvlink",),
    "NVLink setting": ("nvlink",), "settings of NCCL": ("nvlink",), "IMEX": ("nvlink",), "cooling": ("gpu",),
    "power supply": ("gpu",), "ACS setting": ("pcie",), "IOMMU setting": ("pcie",), "P2P setting": ("pcie",),
    "physical host": ALL, "missing NVSwitch": ("nvlink",), "missing NVSwitch bridge": ("nvlink",),
}  # fmt: skip
"""Parts of the host, and empty slots, that GPUs cannot do without; CUDA does not start without a Fabric Manager."""
_OF_SOME = ("cooling", "power supply", "physical host")
"""Of the GPUs that show it alone."""
_EVERYWHERE = ("driver", "gpus", "host", "nvswitch", "slot", "socket-interconnect")
"""What all GPUs are served by."""
_OF_A_KIND: Mapping[str, tuple[Area, ...]] = {
    "link": ("pcie",), "bridge": ("pcie",), "function": ("pcie",), "path": ("pcie",), "socket-interconnect": ("pcie",),
    "nvlink": ("nvlink",), "nvswitch": ("nvlink",),
}  # fmt: skip
"""Of other components; behind a switch, a board or a socket nothing works without it."""
_CAPABILITIES = (
    "lanes", "generation", "GB/s", "MB/s", "Gbit/s", "TFLOP/s", "MHz", "W", "GiB", "TB", "cores", "links",
)  # fmt: skip
"""Units of figures of which more is better: the share that is left is measured / expected."""
_WARNED = 0.95
"""Share left where a warning has no such figure: the part works, but not as it should. Chosen, not measured."""


def left(box: Box, causes: Sequence[Cause], findings: Sequence[Finding]) -> Mapping[str, Mapping[Area, float]]:
    """By name of a GPU or port, or ``host``: the share of each area that can be used.

    What is absent the expectations count. A driver that does not answer one question may still run programs; where
    compute mode forbids it none does, though that may be meant and only warns. A GPU that is to be reset runs none
    either, whatever it is to be reset for.
    """
    found: dict[str, dict[Area, float]] = {}
    by_key = {finding.key: finding.judgement for finding in findings}
    for cause in causes:
        unanswered = Fault.DRIVER_UNRESPONSIVE in cause.faults and cause.component.kind != "gpu"
        if unanswered or {*cause.faults} <= DEVICE_ABSENT:
            continue
        served = dict(_served(box, cause))
        judged = [by_key[key] for key in cause.explains if key in by_key] if served else []
        share = 1 - (1 - _share(cause, judged)) / _alike(box, cause.component)
        for name, areas in served.items() or (("host", ("host",)),):
            own = found.setdefault(name, {})
            own.update({area: min(own.get(area, 1.0), share) for area in areas})
    for finding in findings:
        state = finding.witness == "state" and not finding.acknowledged
        if state and finding.judgement.fault in _TO_BE_RESET and finding.status is Status.FAIL:
            found[finding.subject.name] = dict.fromkeys(ALL, 0.0)
    return found


def takes_of(box: Box, cause: Cause, scored: Mapping[str, Collection[Area]]) -> bool:
    """Does it take of what is scored, by subject? Absent devices and GPUs that do not run the expectations count."""
    served = dict(_served(box, cause)) or {"host": ("host",)}
    absent = {*cause.faults} <= DEVICE_ABSENT or not GPU_DEAD.isdisjoint(cause.faults)
    absent |= cause.component.kind == "gpu" and cause.component.name not in scored
    return absent or any(not {*areas}.isdisjoint(scored.get(name, ())) for name, areas in served.items())


_TO_BE_RESET = frozenset({Fault.RESET_REQUIRED, Fault.REBOOT_REQUIRED, Fault.DRAIN_AND_RESET})


def _share(cause: Cause, judged: Sequence[Judgement]) -> float:
    """What is left of what the component carries."""
    if Fault.COMPUTE_PROHIBITED in cause.faults:
        return 0.0
    shares = [
        each.measured / each.expected
        for each in judged
        if each.unit in _CAPABILITIES and isinstance(each.measured, int | float)
        and isinstance(each.expected, int | float) and 0 <= each.measured < each.expected
    ]  # fmt: skip
    return min(shares, default=0.0 if cause.severity is Status.FAIL else _WARNED)


def _alike(box: Box, component: Component) -> int:
    """How many carry the same as this one does: a pair is one of those of its GPUs."""
    peers, switches = len(box.reference_gpus) - 1, len(nvswitches(box))
    alike = {"nvlink": peers, "path": peers, "nvswitch": switches, "slot": switches + 1}
    return max(1, alike.get(component.kind, 1))


def _served(box: Box, cause: Cause) -> Iterator[tuple[str, tuple[Area, ...]]]:
    """GPUs and ports that the component is, is a part of, or carries the traffic of, and what it carries of them."""
    component = cause.component
    areas = _OF_A_KIND.get(component.kind, ALL)
    if component.kind in ("gpu", "gpus"):
        areas = _OF_A_GPU.get(component.part, ALL)
    elif component.kind in ("host", "slot"):
        areas = _OF_THE_HOST.get(component.part, ())
    places = {component.bdf, component.name}
    if component.kind == "host" and component.part in _OF_SOME:
        places = {place for key in cause.explains for place in key.split("/")}
    everything = bool(areas) and component.kind in _EVERYWHERE and component.part not in _OF_SOME
    names = {component.name, *component.name.split(" - "), *component.shared_by}
    for device in box.topology.devices:
        if everything or device.name in names or places & {device.bdf, *rows(device.path)}:
            names.add(device.name)
            if device.kind == "gpu":
                yield device.name, areas
    for port in port_state.of_the_profile(box):
        name = ports.name_of(port)
        if not everything and {name, name.partition("/")[0]} & names:
            yield name, ("network",)
