"""The score of a box against its reference machine: what is there, what of it can be used, what was measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache

from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import Box, mig_enabled
from dgxcheck.checks.engine.finding import Finding, Judgement, Status
from dgxcheck.checks.host import cpu, disks, ethernet, memory
from dgxcheck.checks.network import hcas, port_state, ports
from dgxcheck.checks.network.port_link import expected_rate
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.faults import DEVICE_ABSENT, GPU_DEAD, Fault
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, rows
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.package_files import table
from dgxcheck.profiles.model import SelectedProfile
from dgxcheck.score import gpus
from dgxcheck.score.expectation import WEIGHTS, Area, Expectation, Score, of_number, score
from dgxcheck.score.gpus import gpus_uncertain, hidden_gpus
from dgxcheck.topology.nvlinks import nvlink_generation, nvlink_graph, nvswitches
from dgxcheck.topology.reference import THROUGH_SWITCHES, matches

ALL: tuple[Area, ...] = tuple(WEIGHTS)
_OF_SOME = ("cooling", "power supply", "physical host")
"""Of the GPUs that show it alone."""
_EVERYWHERE = ("driver", "gpus", "host", "nvswitch", "slot", "socket-interconnect")
"""What all GPUs are served by."""
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
    by_key = {finding.key: finding.judgement for finding in findings} if causes else {}
    for cause in causes:
        unanswered = Fault.DRIVER_UNRESPONSIVE in cause.faults and cause.component.kind != "gpu"
        if unanswered or {*cause.faults} <= DEVICE_ABSENT:
            continue
        served = dict(_served(box, cause))
        judged = [by_key[key] for key in cause.explains] if served else []
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
    peers, switches = len(box.reference_gpus) - 1, len(nvswitches(box.topology))
    alike = {"nvlink": peers, "path": peers, "nvswitch": switches, "slot": switches + 1}
    return max(1, alike.get(component.kind, 1))


@cache
def _carried() -> Mapping[tuple[str, str], tuple[Area, ...]]:
    """By kind and part of a component, ``-`` for any other part: what does not work without it."""
    return {
        (row["kind"], row["part"]): tuple(area for area in ALL if area in row["areas"].split() or row["areas"] == "all")
        for row in table("score/carried.tsv")
    }


def _served(box: Box, cause: Cause) -> Iterator[tuple[str, tuple[Area, ...]]]:
    """GPUs and ports that the component is, is a part of, or carries the traffic of, and what it carries of them."""
    component = cause.component
    kind = {"gpus": "gpu", "slot": "host"}.get(component.kind, component.kind)
    of_any = _carried().get((kind, "-"), () if kind == "host" else ALL)
    areas = _carried().get((kind, component.part), of_any)
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


Measured = int | float | Missing


class HostQuantity(Record, kw_only=False):
    """A quantity expected of the machine: the key of its number, its measure, and the check's own comparison."""

    area: Area
    key: str
    unit: str
    measure: Callable[[Box], Measured]
    short: Callable[[Box, float, float], bool] = lambda _, measured, expected: measured < expected
    hidden: Callable[[Box], str] = lambda _: ""
    """Why some of it may be hidden; empty if not."""


OF_THE_HOST = (
    HostQuantity("network", "network.hcas", "HCAs", hcas.count),
    HostQuantity("host", "host.sockets", "sockets", cpu.sockets, hidden=host_limits.cpus_hidden),
    HostQuantity("host", "host.cores", "cores", cpu.cores, hidden=host_limits.cpus_hidden),
    HostQuantity("host", "host.memory", "GiB", memory.total_memory, memory.is_low, host_limits.cpus_hidden),
    HostQuantity("host", "host.data", "TB", disks.data_volume,
                 lambda box, tb, expected: tb < disks.smallest_data_volume(box, expected), disks.possible_pool),
)  # fmt: skip


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
            made = of_number(number, quantity.area, quantity.key, "host", measured, quantity.unit)
            yield replace(made, enough=not short)
    if number := choice.number("host.ethernet"):
        name, speed = fastest_ethernet(box)
        yield of_number(number, "host", "host.ethernet", name, speed, "Gbit/s")
    number, first = choice.number("network.rate"), port_state.of_the_profile(box)
    listed = [] if choice.how == "gpus" else ports.listed_ports(box)
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


@or_gap
def _graph(box: Box, choice: SelectedProfile) -> int | Missing:
    graph = need(nvlink_graph(box.topology))
    references = matches(graph, nvlink_generation(box.topology))
    if choice.profile.nvlink_graph in [reference.name for reference in references]:
        return 1
    if mig_enabled(box, *(gpu.bdf for gpu in box.gpus)):
        return Missing(Gap.UNSUPPORTED, "nvlink", "MIG mode is on")
    if graph.pairs and not graph.switched and choice.how == "gpus" and choice.profile.nvlink_graph in THROUGH_SWITCHES:
        return Missing(Gap.UNSUPPORTED, "nvlink", "another board: its NVLinks join the GPUs without NVSwitches")
    hidden = hidden_gpus(box)
    return 0 if hidden is None else hidden


def score_of(box: Box, causes: Sequence[Cause] = (), findings: Sequence[Finding] = ()) -> Score | None:
    """The score of a box against its reference machine: what can be used of it now; None without a profile.

    A box of which some GPUs cannot be used scores no more than the share of those that can.
    """
    if box.choice is None:
        return None
    choice = box.choice
    measured = (*gpus.expected(box, choice), *expected(box, choice))
    if not isinstance(box.snapshot.measurement, Missing):
        from dgxcheck.score.figures import expected_figures

        measured = (*measured, *expected_figures(box, choice))
    usable = left(box, causes, findings)
    expectations = tuple(_usable(each, usable.get(each.subject, {}).get(each.area, 1.0)) for each in measured)
    found = score(expectations, gpus_uncertain(box), _usable_gpus(box, usable))
    scored = gathered((each.subject, each.area) for each in expectations)
    failing = [(number, cause) for number, cause in enumerate(causes, 1) if cause.severity is Status.FAIL]
    beside = tuple(number for number, cause in failing if not takes_of(box, cause, scored))
    return replace(found, measured=score(measured, gpus_uncertain(box)).total, uncounted=beside)


def _usable(each: Expectation, share: float) -> Expectation:
    """At most this share of what is expected."""
    if share == 1 or (share > 0 and isinstance(each.measured, Missing)):
        return each
    most = share * each.expected
    had = most if isinstance(each.measured, Missing) or each.enough else min(each.measured, most)
    return replace(each, measured=had, enough=False)


def _usable_gpus(box: Box, usable: Mapping[str, Mapping[Area, float]]) -> float:
    """The share of the machine's GPUs that can be used; 1 where it is not known how many it has."""
    present = gpus.usable(box)
    absent = gpus.absent_gpus(box)
    running = sum(any(usable.get(gpu.name, {}).get(area, 1.0) for area in WEIGHTS) for gpu in present)
    running += sum(isinstance(each, Missing) for each in absent)
    everyone = len(present) + len(absent)
    return running / everyone if everyone else 1.0
