"""What is expected of the machine around the GPUs: NVLink graph, HCAs and their ports, CPUs, memory, data, Ethernet.

The measures are the checks' own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.host import cpu, disks, ethernet, memory
from dgxcheck.checks.network import hcas, ports
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.profiles.model import Choice
from dgxcheck.score.absent import hidden_gpus
from dgxcheck.score.expectation import Area, Expectation
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.reference import matches

Measured = int | float | Missing


def _below(_: Box, measured: float, due: float) -> bool:
    return measured < due


def _all_seen(_: Box) -> str:
    return ""


class _Due(Record, kw_only=False):
    """One expectation of the machine: the key of its number, what measures it, and what the check has of too little."""

    area: Area
    key: str
    unit: str
    measure: Callable[[Box], Measured]
    short: Callable[[Box, float, float], bool] = _below
    unseen: Callable[[Box], str] = _all_seen
    """Why there may be more than is seen here."""


def _less_data(box: Box, tb: float, due: float) -> bool:
    return tb < disks.smallest_data_volume(box, due)


OF_THE_HOST = (
    _Due("network", "network.hcas", "HCAs", hcas.count),
    _Due("host", "host.sockets", "sockets", cpu.sockets, unseen=visibility.cpus_hidden),
    _Due("host", "host.cores", "cores", cpu.cores, unseen=visibility.cpus_hidden),
    _Due("host", "host.memory", "GiB", memory.total_memory, memory.is_short, visibility.cpus_hidden),
    _Due("host", "host.data", "TB", disks.data_volume, _less_data, disks.possible_pool),
)


def expected(box: Box, choice: Choice) -> Iterator[Expectation]:
    """Everything but what each GPU has of its own."""
    if choice.profile.nvlink_graph and (choice.how != "gpus" or choice.number("nvlink.links")):
        yield Expectation(
            area="nvlink", id="nvlink.graph", subject="host", measured=_graph(box, choice), expected=1, unit="",
            source=choice.profile.nvlink_graph,
        )  # fmt: skip
    for due in OF_THE_HOST:
        if number := choice.number(due.key):
            measured, short = due.measure(box), False
            if not isinstance(measured, Missing):
                short = due.short(box, measured, number.value)
                if short and (why := due.unseen(box)):
                    measured = Missing(Gap.ABSENT, due.key, why)
            yield Expectation(
                area=due.area, id=due.key, subject="host", measured=measured, expected=number.value, unit=due.unit,
                source=number.source, enough=not short,
            )  # fmt: skip
    if number := choice.number("host.ethernet"):
        name, speed = fastest_ethernet(box)
        yield Expectation(
            area="host", id="host.ethernet", subject=name, measured=speed, expected=number.value, unit="Gbit/s",
            source=number.source,
        )  # fmt: skip
    if number := choice.number("network.rate"):
        for port in ports.of_the_profile(box):
            yield Expectation(
                area="network", id="network.rate", subject=ports.name_of(port), measured=ports.gbit_per_s(port),
                expected=number.value, unit="Gbit/s", source=number.source,
            )  # fmt: skip


def fastest_ethernet(box: Box) -> tuple[str, float | Missing]:
    """The fastest interface with a cable, and its Gbit/s."""
    found = ethernet.connected(box)
    if isinstance(found, Missing):
        return "host", found
    speeds = {each.name: ethernet.gbit_per_s(each) for each in found}
    known = {name: speed for name, speed in speeds.items() if not isinstance(speed, Missing)}
    if not known:
        return next(iter(speeds.items()), ("host", Missing(Gap.ABSENT, "/sys/class/net", ethernet.NO_CARRIER)))
    fastest = max(known, key=lambda name: known[name])
    return fastest, known[fastest]


def _graph(box: Box, choice: Choice) -> int | Missing:
    graph = nvlink_graph(box.topology)
    if isinstance(graph, Missing):
        return graph
    found = matches(graph, nvlink_generation(box.topology))
    if choice.profile.nvlink_graph in [reference.name for reference in found]:
        return 1
    unseen = hidden_gpus(box)
    return 0 if unseen is None else unseen
