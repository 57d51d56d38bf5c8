"""A profile made from a box that is known to be good: what it has is what the next ones are to have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.measurement.expectations import profile_key
from dgxcheck.checks.measurement.lookup import P2P
from dgxcheck.checks.network.ports import gbit_per_s, of_the_profile
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Missing
from dgxcheck.profiles.library import board_id
from dgxcheck.profiles.model import MEASURED_KEYS, Board, Number, Profile, Wiring
from dgxcheck.score.gpus import OF_THE_BOARD, OF_THE_BOX
from dgxcheck.score.machine import OF_THE_HOST, fastest_ethernet
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.model import PciClass
from dgxcheck.topology.reference import matches


def profile_of(box: Box, name: str, title: str, product: str, source: str) -> Profile:
    """Every number that could be read, the least of all GPUs; what could not be is left out."""
    gpus = [gpu for gpu in box.topology.gpus if gpu.index is not None]
    numbers = {"gpu.count": Number(len(gpus), source)}
    for due in OF_THE_BOX:
        _put(numbers, due.key, (due.measure(box, gpu) for gpu in gpus), source)
    for part in OF_THE_HOST:
        _put(numbers, part.key, [part.measure(box)], source)
    _put(numbers, "host.ethernet", [fastest_ethernet(box)[1]], source)
    _put(numbers, "network.rate", map(gbit_per_s, of_the_profile(box)), source)
    for key, figures in _measured(box).items():
        _put(numbers, key, figures, source)
    boards: dict[str, Board] = {}
    for id in sorted({board_id(gpu) for gpu in gpus} - {""}):
        alike = [gpu for gpu in gpus if board_id(gpu) == id]
        of_board: dict[str, Number] = {}
        for due in OF_THE_BOARD:
            if not due.yes_or_no or due.key == "ecc":
                _put(of_board, due.key, (due.measure(box, gpu) for gpu in alike), source)
        _put(of_board, "device_copy", _copies(box, [gpu.bdf for gpu in alike]), source)
        boards[id] = Board(id=id, name=_name(box, alike[0].bdf), numbers=of_board)
    return Profile(
        name=name, title=title, products=(product,) if product else (), boards=tuple(boards), own_boards=boards,
        numbers=numbers, nvlink_graph=_graph(box), wiring=_wiring(box), wiring_source=source,
    )  # fmt: skip


def _taken(box: Box) -> list[Measurement]:
    """Measurements with a figure; what is simulated is none of this box."""
    rows = box.snapshot.measurement
    taken = () if isinstance(rows, Missing) else rows
    return [row for row in taken if row.how != "simulated" and row.number is not None]


def _measured(box: Box) -> dict[str, list[float]]:
    """Figures by the profile's key; those of pairs that the driver offers no access are of another kind."""
    found: dict[str, list[float]] = {}
    taken = _taken(box)
    denied = {frozenset((row.a, row.b)) for row in taken if row.kind == "access" and row.value is False}
    for row in taken:
        key = profile_key(box, row)
        if key in MEASURED_KEYS and not (row.kind in P2P and frozenset((row.a, row.b)) in denied):
            found.setdefault(key, []).append(row.number or 0.0)
    return found


def _copies(box: Box, bdfs: list[str | None]) -> list[float]:
    return [row.number or 0.0 for row in _taken(box) if row.kind == "device-copy" and row.a in bdfs]


def _put(numbers: dict[str, Number], key: str, values: Iterable[int | float | Missing], source: str) -> None:
    """The least, where all are known and it is more than nothing."""
    found = [*values]
    known = [value for value in found if not isinstance(value, Missing)]
    if known and len(known) == len(found) and min(known) > 0:
        least = min(known)
        numbers[key] = Number(int(least) if least == int(least) else round(least, 3), source)


def _name(box: Box, bdf: str | None) -> str:
    gpus = () if isinstance(box.nvml, Missing) else box.nvml.gpus
    name = next((gpu.name for gpu in gpus if gpu.bdf == bdf), "")
    return "GPU" if isinstance(name, Missing) or not name.strip() else name


def _graph(box: Box) -> str:
    graph = nvlink_graph(box.topology)
    found = () if isinstance(graph, Missing) else matches(graph, nvlink_generation(box.topology))
    return found[0].name if found else ""


def _wiring(box: Box) -> tuple[Wiring, ...]:
    """GPUs that reach the others alike, together; nothing where a class of a pair is not known."""
    matrix = box.topology.matrix()
    rows: Counter[tuple[tuple[tuple[PciClass, int], ...], tuple[tuple[PciClass, int], ...]]] = Counter()
    for gpu in box.topology.gpus:
        others = [device for device in box.topology.devices if device is not gpu and device.is_vf is not True]
        reached: dict[str, list[PciClass]] = {"gpu": [], "nic": []}
        for other in others:
            pci = matrix[gpu.name, other.name].pci
            if pci is None:
                return ()
            reached[other.kind].append(pci)
        rows[_counted(reached["gpu"]), _counted(reached["nic"])] += 1
    return tuple(Wiring(gpus=count, to_gpus=dict(gpus), to_hcas=dict(hcas)) for (gpus, hcas), count in rows.items())


def _counted(classes: Iterable[PciClass]) -> tuple[tuple[PciClass, int], ...]:
    seen: Mapping[PciClass, int] = Counter(classes)
    return tuple(sorted(seen.items()))
