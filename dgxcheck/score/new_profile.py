"""A profile from a known-good box, to compare others with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.expected import is_for_display
from dgxcheck.checks.measurement.expectations import profile_key
from dgxcheck.checks.measurement.lookup import P2P
from dgxcheck.checks.network import companions
from dgxcheck.checks.network.port_state import of_the_profile
from dgxcheck.checks.network.ports import gbit_per_s
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Missing, need, or_gap, rows, text_of
from dgxcheck.facts.record import replace
from dgxcheck.profiles.library import board_id
from dgxcheck.profiles.model import MEASURED_KEYS, Board, Number, Profile, SelectedProfile, Wiring
from dgxcheck.score.box import OF_THE_HOST, fastest_ethernet
from dgxcheck.score.gpus import OF_THE_BOARD, OF_THE_BOX
from dgxcheck.topology.model import PciClass
from dgxcheck.topology.nvlinks import nvlink_generation, nvlink_graph, nvswitches
from dgxcheck.topology.reference import matches


def profile_of(box: Box, name: str, title: str, product: str, source: str) -> Profile:
    """A profile with every number that could be read, the lowest of all GPUs, without one for a display; other numbers
    are left out.
    """
    listed = [gpu for gpu in box.topology.gpus if gpu.index is not None and board_id(gpu)]
    models = {board_id(gpu) for gpu in listed}
    computing = {board_id(gpu) for gpu in listed if not is_for_display(box, gpu.bdf)} or models
    profile = Profile(
        name=name, title=title, products=(product,) if product else (), boards=tuple(sorted(computing)), numbers={},
        beside=tuple(sorted(models - computing)), nvlink_graph=_graph(box), wiring=(), wiring_source=source,
    )  # fmt: skip
    box = replace(box, choice=SelectedProfile(profile=profile, how="named"))
    gpus = [gpu for gpu in box.reference_gpus if gpu.index is not None]
    companions_found = {key: or_gap(found)(box) for key, found in companions.FOUND.items()}
    of_box: dict[str, Iterable[int | float | Missing]] = {
        **{quantity.key: [quantity.measure(box, gpu) for gpu in gpus] for quantity in OF_THE_BOX},
        **{quantity.key: [quantity.measure(box)] for quantity in OF_THE_HOST},
        "nvlink.switches": [len(nvswitches(box.topology))],
        **{key: [there if isinstance(there, Missing) else len(there)] for key, there in companions_found.items()},
        "host.ethernet": [fastest_ethernet(box)[1]],
        "network.rate": map(gbit_per_s, of_the_profile(box)),
        **_measured(box),
    }
    numbers = {"gpu.count": Number(len(gpus), source), **_lowest(of_box, source)}
    boards: dict[str, Board] = {}
    for id in profile.boards:
        alike = [gpu for gpu in gpus if board_id(gpu) == id]
        bdfs = [gpu.bdf for gpu in alike]
        of_board: dict[str, Iterable[int | float | Missing]] = {
            quantity.key: [quantity.measure(box, gpu) for gpu in alike]
            for quantity in OF_THE_BOARD if not quantity.yes_or_no or quantity.key == "ecc"
        }  # fmt: skip
        copies = [row.number or 0.0 for row in _measurements(box) if row.kind == "device-copy" and row.a in bdfs]
        own = _lowest({**of_board, "device_copy": copies}, source)
        boards[id] = Board(id=id, name=_name(box, alike[0].bdf), numbers=own)
    return replace(profile, own_boards=boards, numbers=numbers, wiring=_wiring(box))


def _measurements(box: Box) -> list[Measurement]:
    """Measurements with a figure, without simulated ones."""
    measurements = rows(box.snapshot.measurement)
    return [row for row in measurements if row.how != "simulated" and row.number is not None]


def _measured(box: Box) -> dict[str, list[float]]:
    """Figures by profile key, without pairs of GPUs that have no peer access."""
    numbers: dict[str, list[float]] = {}
    measurements = _measurements(box)
    denied = {frozenset((row.a, row.b)) for row in measurements if row.kind == "access" and row.value is False}
    for row in measurements:
        key = profile_key(box, row)
        if key in MEASURED_KEYS and not (row.kind in P2P and frozenset((row.a, row.b)) in denied):
            numbers.setdefault(key, []).append(row.number or 0.0)
    return numbers


def _lowest(found: Mapping[str, Iterable[int | float | Missing]], source: str) -> dict[str, Number]:
    """The lowest value of each, if all are known and it is positive."""
    numbers = {}
    for key, values in found.items():
        least = or_gap(lambda values: min(map(need, values), default=0))(values)
        if not isinstance(least, Missing) and least > 0:
            numbers[key] = Number(int(least) if least == int(least) else round(least, 3), source)
    return numbers


def _name(box: Box, bdf: str | None) -> str:
    listed = box.gpu(bdf).listed
    name = "" if isinstance(listed, Missing) else text_of(listed.name)
    return name if name.strip() else "GPU"


def _graph(box: Box) -> str:
    graph = nvlink_graph(box.topology)
    references = () if isinstance(graph, Missing) else matches(graph, nvlink_generation(box.topology))
    return references[0].name if references else ""


def _wiring(box: Box) -> tuple[Wiring, ...]:
    """How many GPUs reach how many others by each PCI class; empty if the class of any pair is unknown."""
    matrix = box.topology.links
    rows: Counter[tuple[tuple[tuple[PciClass, int], ...], tuple[tuple[PciClass, int], ...]]] = Counter()
    for gpu in box.reference_gpus:
        others = [device for device in (*box.reference_gpus, *box.topology.adapters) if device is not gpu]
        reached: dict[str, list[PciClass]] = {"gpu": [], "nic": []}
        for other in others:
            if (pci := matrix[gpu.name, other.name].pci) is None:
                return ()
            reached[other.kind].append(pci)
        rows[_counted(reached["gpu"]), _counted(reached["nic"])] += 1
    return tuple(Wiring(gpus=count, to_gpus=dict(gpus), to_hcas=dict(nics)) for (gpus, nics), count in rows.items())


def _counted(classes: Iterable[PciClass]) -> tuple[tuple[PciClass, int], ...]:
    counts: Mapping[PciClass, int] = Counter(classes)
    return tuple(sorted(counts.items()))
