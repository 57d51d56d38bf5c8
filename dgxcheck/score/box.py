"""The score of a box against its reference machine: what is there, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import Box, mig_enabled
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.host import cpu, disks, ethernet, memory
from dgxcheck.checks.network import hcas, port_state, ports
from dgxcheck.checks.network.port_link import expected_rate
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.profiles.model import SelectedProfile
from dgxcheck.score import gpus
from dgxcheck.score.expectation import WEIGHTS, Area, Expectation, Score, score
from dgxcheck.score.gpus import gpus_uncertain, hidden_gpus
from dgxcheck.score.in_use import left, takes_of
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.reference import matches

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
    HostQuantity("host", "host.memory", "GiB", memory.total_memory, memory.is_short, host_limits.cpus_hidden),
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
    references = matches(need(nvlink_graph(box.topology)), nvlink_generation(box.topology))
    if choice.profile.nvlink_graph in [reference.name for reference in references]:
        return 1
    if mig_enabled(box, *(gpu.bdf for gpu in box.gpus)):
        return Missing(Gap.UNSUPPORTED, "nvlink", "MIG mode is on")
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
