"""The score of a box against its reference machine: what is there, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.host import cpu, disks, ethernet, memory
from dgxcheck.checks.measurement.expectations import reference
from dgxcheck.checks.measurement.failures import has_failed, is_withheld, measured_figures
from dgxcheck.checks.measurement.lookup import Figures, device, gpu_name, pairs
from dgxcheck.checks.network import hcas, port_state, ports
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.causes import Cause
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.measurement import Measurement, NotMeasured
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.profiles.model import OF_THE_GPUS, SelectedProfile
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
    HostQuantity("host", "host.sockets", "sockets", cpu.sockets, hidden=visibility.cpus_hidden),
    HostQuantity("host", "host.cores", "cores", cpu.cores, hidden=visibility.cpus_hidden),
    HostQuantity("host", "host.memory", "GiB", memory.total_memory, memory.is_short, visibility.cpus_hidden),
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


INTACT = "no wrong words"


def expected_figures(box: Box, choice: SelectedProfile) -> Iterator[Expectation]:
    """One expectation per GPU and direction, and per pair of GPUs whose path has a reference."""
    box = replace(box, gpus=box.topology.gpus)
    figures = measured_figures(box, "")
    if isinstance(figures, Judgement):
        yield from _unmeasured(box)
        return
    for kind, area in _AREAS.items():
        for row in figures.of_kinds(kind):
            number = reference(box, row)
            if number is not None and row.how != "simulated" and device(box, row.a) is not None:
                yield _expectation(box, area, kind, gpu_name(box, row.a), [row], number.value, row.unit, number.source)
    for a, b in pairs(box, figures, ("p2p",)):
        rows = figures.each_way("p2p", a, b)
        number = reference(box, rows[0])
        if number is not None and not figures.access_refused(a, b) and all(row.how != "simulated" for row in rows):
            area = "nvlink" if _by_nvlink(figures, a, b) else "pcie"
            yield _expectation(box, area, "p2p", _pair(box, a, b), rows, number.value, rows[0].unit, number.source)
    if choice.how != "gpus" or "integrity" in OF_THE_GPUS:
        yield from _integrity(box, figures)


_AREAS: dict[str, Area] = {"host-to-device": "pcie", "device-to-host": "pcie", "device-copy": "memory"}


def _unmeasured(box: Box) -> Iterator[Expectation]:
    """What measuring would have given of each GPU, where it was tried and nothing could be measured."""
    if isinstance(box.snapshot.measurement, Missing):
        return
    why = NotMeasured(reason="dependency-failed", detail="nothing was measured")
    for kind, area in _AREAS.items():
        for gpu in box.gpus:
            row = Measurement(
                kind=kind, a=gpu.bdf or "", b="", value=why, unit="GB/s", method="", tool="", how="measured",
                samples=(), runs=(), more={},
            )  # fmt: skip
            if (number := reference(box, row)) is not None:
                yield _expectation(box, area, kind, gpu.name, [row], number.value, row.unit, number.source)


def _by_nvlink(figures: Figures, a: str, b: str) -> bool:
    pair_class = figures.classes.get((a, b)) or figures.classes.get((b, a))
    return pair_class is not None and pair_class[0].startswith("NV")


def _integrity(box: Box, figures: Figures) -> Iterator[Expectation]:
    """Expectations of intact data: 1 where no word was wrong."""
    for row in figures.of_kinds("memory-integrity"):
        if row.how != "simulated" and device(box, row.a) is not None:
            yield _expectation(box, "integrity", "memory", gpu_name(box, row.a), [row], 1, "", INTACT, _intact)
    for a, b in pairs(box, figures, ("p2p-integrity",)):
        rows = figures.each_way("p2p-integrity", a, b)
        if all(row.how != "simulated" for row in rows) and device(box, a) is not None:
            yield _expectation(box, "integrity", "p2p", _pair(box, a, b), rows, 1, "", INTACT, _intact)


def _pair(box: Box, a: str, b: str) -> str:
    return f"{gpu_name(box, a)}-{gpu_name(box, b)}"


def _figure(row: Measurement) -> float:
    return row.number or 0.0


def _intact(row: Measurement) -> float:
    return float(not row.number and row.more.get("timed_out") is not True)


def _expectation(
    box: Box,
    area: Area,
    what: str,
    subject: str,
    rows: list[Measurement],
    value: float,
    unit: str,
    source: str,
    figure: Callable[[Measurement], float] = _figure,
) -> Expectation:
    """An expectation of the lowest row; a figure above the check's warning threshold counts in full."""
    figures = [_figure_or_gap(row, figure) for row in rows]
    gaps = [reading for reading in figures if isinstance(reading, Missing)]
    least = min((reading for reading in figures if not isinstance(reading, Missing)), default=0.0)
    covered = not gaps or (least == 0 and len(gaps) < len(figures))
    measured = least if covered else gaps[0]
    enough = not isinstance(measured, Missing) and measured >= value * box.settings.limit("measure.warn") / 100
    return Expectation(
        area=area, id=f"{area}.measured-{what}", subject=subject, measured=measured, expected=value, unit=unit,
        source=source, enough=enough,
    )  # fmt: skip


def _figure_or_gap(row: Measurement, figure: Callable[[Measurement], float]) -> float | Missing:
    """The figure of a measurement; 0 if it failed, timed out or moved wrong data, Missing if it was not tried."""
    value = row.value
    if isinstance(value, Missing):
        return 0.0 if value.gap is Gap.TIMEOUT else value
    if isinstance(value, NotMeasured):
        failed = has_failed(row) or (value.reason == "failed" and is_withheld(value))
        return 0.0 if failed else Missing(Gap.UNASKED, f"measure {row.kind}", str(value))
    return figure(row)


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
    measured = (*gpus.expected(box, choice), *expected(box, choice), *expected_figures(box, choice))
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
_OF_THE_HOST: Mapping[str, tuple[Area, ...]] = {"Fabric Manager": _ALL, "NVSwitches": ("nvlink",)}
"""Parts of the host that GPUs cannot do without. While no Fabric Manager runs, CUDA does not start."""
_AROUND = ("driver", "switch", "host-bridge", "board", "socket")
"""What nothing behind it works without."""


def out_of_use(box: Box, causes: Sequence[Cause]) -> Mapping[str, frozenset[Area]]:
    """By name of a GPU or port: the areas in which it cannot be used now, because of a cause that fails.

    A driver that does not answer one question may still run programs.
    """
    found: dict[str, frozenset[Area]] = {}
    for cause in causes:
        if cause.severity is Status.FAIL and Fault.DRIVER_UNRESPONSIVE not in cause.faults:
            for name in _names(box, cause.component):
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


def _names(box: Box, component: Component) -> Iterator[str]:
    """Of the GPUs and ports that the component is, is a part of, or carries the traffic of."""
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
