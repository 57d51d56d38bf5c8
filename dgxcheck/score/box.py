"""The score of a box against its reference machine: what is there, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.host import cpu, disks, ethernet, memory
from dgxcheck.checks.network import hcas, port_state, ports
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.profiles.model import SelectedProfile
from dgxcheck.score import gpus
from dgxcheck.score.expectation import Area, Expectation, Score, score
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
    if number := choice.number("network.rate"):
        for port in port_state.of_the_profile(box):
            yield Expectation(
                area="network", id="network.rate", subject=ports.name_of(port), measured=ports.gbit_per_s(port),
                expected=number.value, unit="Gbit/s", source=number.source,
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
    hidden = hidden_gpus(box)
    return 0 if hidden is None else hidden


CAPS: Mapping[Status, int] = {Status.FAIL: 79, Status.UNKNOWN: 89}
"""The highest score with this verdict: a machine with a fault is not whole, however little of it is missing."""


def score_of(box: Box, verdict: Status = Status.PASS) -> Score | None:
    """The score of a box against its reference machine, capped by the verdict; None without a profile."""
    if box.choice is None:
        return None
    choice = box.choice
    expectations = (*gpus.expected(box, choice), *expected(box, choice))
    if not isinstance(box.snapshot.measurement, Missing):
        from dgxcheck.score.figures import expected_figures

        expectations = (*expectations, *expected_figures(box, choice))
    return score(expectations, CAPS.get(verdict), gpus_uncertain(box))
