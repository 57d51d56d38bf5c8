"""The score of a box against its reference machine: what is there, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import Box, mig_enabled
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.host import cpu, disks, ethernet, memory
from dgxcheck.checks.network import hcas, port_state, ports
from dgxcheck.checks.network.port_link import expected_rate
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.profiles.model import SelectedProfile
from dgxcheck.score import gpus
from dgxcheck.score.expectation import WEIGHTS, Area, Expectation, Score, score
from dgxcheck.score.gpus import gpus_uncertain, hidden_gpus
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.reference import matches

Measured = int | float | Missing


def _below(_: Box, measured: float, expected: float) -> bool:
    return measured < expected


def _nothing_hidden(_: Box) -> str:
    return ""


class HostQuantity(Record, kw_only=False):
    """A quantity expected of the machine: the key of its number, its measure, and the check's own comparison."""

    area: Area
    key: str
    unit: str
    measure: Callable[[Box], Measured]
    short: Callable[[Box, float, float], bool] = _below
    hidden: Callable[[Box], str] = _nothing_hidden
    """Why some of it may be hidden; empty if not."""


def _less_data(box: Box, tb: float, expected: float) -> bool:
    return tb < disks.smallest_data_volume(box, expected)


OF_THE_HOST = (
    HostQuantity("network", "network.hcas", "HCAs", hcas.count),
    HostQuantity("host", "host.sockets", "sockets", cpu.sockets, hidden=host_limits.cpus_hidden),
    HostQuantity("host", "host.cores", "cores", cpu.cores, hidden=host_limits.cpus_hidden),
    HostQuantity("host", "host.memory", "GiB", memory.total_memory, memory.is_short, host_limits.cpus_hidden),
    HostQuantity("host", "host.data", "TB", disks.data_volume, _less_data, disks.possible_pool),
)


def expected(box: Box, choice: SelectedProfile) -> Iterator[Expectation]:
    """All expectations but those of each GPU."""
    if choice.profile.nvlink_graph and (choice.how != "gpus" or choice.number("nvlink.links")):
        yield Expectation(
            area="nvlink", id="nvlink.graph", subject="host", measured=_graph(box, choice), expected=1, unit="",
            source=choice.profile.nvlink_graph,
        )  # fmt: skip
    for quantity in OF_THE_HOST:
        if number := choice.number(quantity.key):
            measured, short = quantity.measure(box), False
            if not isinstance(measured, Missing):
                short = quantity.short(box, measured, number.value)
                if short and (why := quantity.hidden(box)):
                    measured = Missing(Gap.ABSENT, quantity.key, why)
            yield Expectation(
                area=quantity.area, id=quantity.key, subject="host", measured=measured, expected=number.value,
                unit=quantity.unit, source=number.source, enough=not short,
            )  # fmt: skip
    if number := choice.number("host.ethernet"):
        name, speed = fastest_ethernet(box)
        yield Expectation(
            area="host", id="host.ethernet", subject=name, measured=speed, expected=number.value, unit="Gbit/s",
            source=number.source,
        )  # fmt: skip
    number, first = choice.number("network.rate"), port_state.of_the_profile(box)
    every = ports.ports(box)
    listed = [] if isinstance(every, Judgement) or choice.how == "gpus" else every
    for device, port in listed:
        if port in first:
            rate, whose = expected_rate(box, device, port, listed)
            yield Expectation(
                area="network", id="network.rate", subject=ports.name_of(port), measured=ports.gbit_per_s(port),
                expected=rate or 1, unit="Gbit/s", source=number.source if number else whose.strip(" ()"),
            )  # fmt: skip


def fastest_ethernet(box: Box) -> tuple[str, float | Missing]:
    """The fastest Ethernet interface with a carrier, and its Gbit/s."""
    interfaces = ethernet.connected(box)
    if isinstance(interfaces, Missing):
        return "host", interfaces
    speeds = {interface.name: ethernet.gbit_per_s(interface) for interface in interfaces}
    known_speeds = {name: speed for name, speed in speeds.items() if not isinstance(speed, Missing)}
    if not known_speeds:
        return next(iter(speeds.items()), ("host", Missing(Gap.ABSENT, "/sys/class/net", ethernet.NO_CARRIER)))
    fastest = max(known_speeds, key=lambda name: known_speeds[name])
    return fastest, known_speeds[fastest]


def _graph(box: Box, choice: SelectedProfile) -> int | Missing:
    graph = nvlink_graph(box.topology)
    if isinstance(graph, Missing):
        return graph
    references = matches(graph, nvlink_generation(box.topology))
    if choice.profile.nvlink_graph in [reference.name for reference in references]:
        return 1
    if mig_enabled(box, *(gpu.bdf for gpu in box.gpus)):
        return Missing(Gap.UNSUPPORTED, "nvlink", "MIG mode is on")
    hidden = hidden_gpus(box)
    return 0 if hidden is None else hidden


CAPS: Mapping[Status, int] = {Status.FAIL: 95, Status.UNKNOWN: 97, Status.WARN: 99}
"""The highest score with this verdict: a machine with a fault is not whole, however little of it is missing."""


def score_of(box: Box, verdict: Status = Status.PASS, causes: Sequence[Cause] = ()) -> Score | None:
    """The score of a box against its reference machine: what can be used of it now; None without a profile.

    What carries a failing cause counts as 0; the verdict caps the score. A box of which some GPUs cannot be used scores
    no more than the share of those that can.
    """
    if box.choice is None:
        return None
    choice = box.choice
    measured = (*gpus.expected(box, choice), *expected(box, choice))
    if not isinstance(box.snapshot.measurement, Missing):
        from dgxcheck.score.figures import expected_figures

        measured = (*measured, *expected_figures(box, choice))
    unusable = out_of_use(box, causes)
    expectations = tuple(
        replace(each, measured=0, enough=False) if each.area in unusable.get(each.subject, ()) else each
        for each in measured
    )
    found = score(expectations, CAPS.get(verdict), gpus_uncertain(box), _usable_gpus(box, unusable))
    return replace(found, measured=score(measured, None, gpus_uncertain(box)).total)


_ALL: tuple[Area, ...] = tuple(WEIGHTS)
_OF_A_GPU: Mapping[str, tuple[Area, ...]] = {
    "NVLink": ("nvlink",), "fabric": ("nvlink",), "cooling": ("gpu",), "power supply": ("gpu",),
    "clock setting": ("gpu",), "power limit": ("gpu",), "MaxPayload": ("pcie",), "versions and settings": (),
}  # fmt: skip
"""What a part carries; every other part, as the memory, and the device as a whole, carries all."""
_OF_THE_HOST: Mapping[str, tuple[Area, ...]] = {
    "Fabric Manager": _ALL, "container runtime": _ALL, "NVSwitches": ("nvlink",), "cooling": ("gpu",),
    "power supply": ("gpu",),
}  # fmt: skip
"""Parts of the host that GPUs cannot do without. While no Fabric Manager runs, CUDA does not start."""
_OF_SOME = ("cooling", "power supply")
"""Of the GPUs that show it alone."""
_AROUND = ("driver", "switch", "host-bridge", "board", "socket")
"""What nothing behind it works without."""


def out_of_use(box: Box, causes: Sequence[Cause]) -> Mapping[str, frozenset[Area]]:
    """By name of a GPU or port: the areas in which it cannot be used now, because of a cause that fails.

    A driver that does not answer one question may still run programs; where compute mode forbids it none does, though
    that may be meant and only warns.
    """
    found: dict[str, frozenset[Area]] = {}
    for cause in causes:
        unusable = cause.severity is Status.FAIL or Fault.COMPUTE_PROHIBITED in cause.faults
        if unusable and Fault.DRIVER_UNRESPONSIVE not in cause.faults:
            for name in _names(box, cause):
                found[name] = found.get(name, frozenset()) | frozenset(_carried(cause.component))
    return found


def _carried(component: Component) -> tuple[Area, ...]:
    if component.kind == "host":
        return _OF_THE_HOST.get(component.part, ())
    if component.kind in ("gpu", "gpus"):
        return _OF_A_GPU.get(component.part, _ALL)
    if component.kind == "link":
        return ("pcie",)
    return _ALL if component.kind in (*_AROUND, "hca", "port") else ()


def _names(box: Box, cause: Cause) -> Iterator[str]:
    """Of the GPUs and ports that the component is, is a part of, or carries the traffic of."""
    component = cause.component
    if component.kind == "host" and component.part in _OF_SOME:
        found = {place for key in cause.explains for place in key.split("/")}
        yield from (gpu.name for gpu in box.topology.gpus if gpu.bdf in found)
        return
    everything = component.kind in ("driver", "gpus", "host")
    names = {component.name, *component.shared_by}
    for gpu in box.topology.gpus:
        if everything or gpu.name in names or (gpu.bdf is not None and gpu.bdf == component.bdf):
            yield gpu.name
    for port in () if everything else port_state.of_the_profile(box):
        name = ports.name_of(port)
        if {name, name.partition("/")[0]} & names:
            yield name


def _usable_gpus(box: Box, unusable: Mapping[str, frozenset[Area]]) -> float:
    """The share of the machine's GPUs that can be used; 1 where it is not known how many it has."""
    present = gpus.usable(box)
    absent = gpus.absent_gpus(box)
    usable = sum(unusable.get(gpu.name, frozenset()) != frozenset(_ALL) for gpu in present)
    usable += sum(isinstance(each, Missing) for each in absent)
    everyone = len(present) + len(absent)
    return usable / everyone if everyone else 1.0
