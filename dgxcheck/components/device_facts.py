"""What is known of one device, whatever record it is in: a view of a GPU and its architecture; every fact by its path,
so that those of a new probe are compared without a change here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dgxcheck.facts.missing import BadInput, Gap, Missing
from dgxcheck.facts.nature import rows_of
from dgxcheck.facts.nvml.gpu import GpuBoard, Nvml
from dgxcheck.facts.record import Record, fields, remembered, values
from dgxcheck.facts.values import held
from dgxcheck.survey import NO_DEVICES, Snapshot
from dgxcheck.topology.model import Surveyed
from dgxcheck.xid.table import NAMES, architecture_of

if TYPE_CHECKING:
    from dgxcheck.facts.nvml.gpu import Gpu, GpuActivity, GpuModes
    from dgxcheck.facts.nvml.readings import GpuClocks, GpuCounters, GpuEcc, GpuMemory, GpuPcie, GpuPower, GpuThermal


class _Row(Protocol):
    @property
    def bdf(self) -> str: ...


R = TypeVar("R", bound=_Row)


def row_of(rows: tuple[R, ...] | Missing, bdf: str | None) -> R | Missing:
    """One GPU's record among those of all GPUs; the gap where there is none."""
    if isinstance(rows, Missing):
        return rows
    return next((row for row in rows if row.bdf == bdf), Missing(Gap.UNRECORDED, str(bdf), "no facts of this GPU"))


def _record(field: str) -> Any:
    """The GPU's record in that field of the snapshot."""
    return property(lambda view: row_of(getattr(view._snapshot, field), view.bdf))


class GpuView:
    """Each member is the GPU's record, or the gap that stands for it: of the whole field, else ``unrecorded``."""

    __slots__ = ("_snapshot", "bdf")

    def __init__(self, snapshot: Snapshot, bdf: str | None) -> None:
        self.bdf = bdf
        self._snapshot = snapshot

    @property
    def listed(self) -> Gpu | Missing:
        """The GPU in NVML's list."""
        nvml = self._snapshot.gpu
        return row_of(nvml.gpus if isinstance(nvml, Nvml) else nvml, self.bdf)

    board: GpuBoard | Missing = _record("gpu_board")
    pcie: GpuPcie | Missing = _record("gpu_pcie")
    memory: GpuMemory | Missing = _record("gpu_memory")
    ecc: GpuEcc | Missing = _record("gpu_ecc")
    counters: GpuCounters | Missing = _record("gpu_counters")
    clocks: GpuClocks | Missing = _record("gpu_clocks")
    power: GpuPower | Missing = _record("gpu_power")
    thermal: GpuThermal | Missing = _record("gpu_thermal")
    modes: GpuModes | Missing = _record("gpu_modes")
    processes: GpuActivity | Missing = _record("gpu_processes")


_BY_CAPABILITY: Mapping[int, str] = {3: "kepler", 5: "maxwell", 6: "pascal", 9: "hopper", 10: "blackwell"}
"""Major numbers that belong to one architecture; 7 and 8 depend on the minor one."""


def architecture(machine: Surveyed, bdf: str) -> int | None:
    """``nvmlDeviceArchitecture_t``; None if unknown."""
    view = GpuView(machine.snapshot, bdf)
    if isinstance(board := view.board, GpuBoard):
        if isinstance(board.architecture, int):
            return board.architecture
        if isinstance(board.compute_capability, tuple):
            return _of_capability(*board.compute_capability)
    return None if isinstance(view.listed, Missing) else architecture_named(view.listed.name)


def _of_capability(major: int, minor: int) -> int:
    if major == 7:
        return NAMES["turing" if minor >= 5 else "volta"]
    if major == 8:
        return NAMES["ada" if minor == 9 else "ampere"]
    return NAMES[_BY_CAPABILITY.get(major, "blackwell" if major > 10 else "kepler")]


def architecture_named(name: object) -> int | None:
    """The same of a model; None for a name of none."""
    try:
        return architecture_of(name)[1] if isinstance(name, str) else None
    except BadInput:
        return None


_OWNERS = ("bdf", "device", "name")
"""The fields by which a record says which device it is of."""
_KEYS = {"ports": "port", "supported": "memory"}
"""Sequences whose rows are compared one by one, and what tells the rows apart."""
_SCALARS = frozenset((bool, int, float, str, type(None), Missing))


@remembered(128)  # GPUs and HCAs of a machine at three readings
def facts_of(snapshot: Snapshot, device: str, name: str = "", only: tuple[str, ...] = ()) -> Mapping[str, object]:
    """Values and gaps of a device by their path, ``gpu_ecc.volatile_corrected.total`` or ``nvlink.3.up``.

    ``device`` is its bdf, ``name`` that in ``/sys/class``, ``only`` the fields of the snapshot that are wanted. Other
    sequences than those with a key are one value.
    """
    by_owner = _by_owner(snapshot)
    listed = (*by_owner.get(device, ()), *(by_owner.get(name, ()) if name else ()))
    return _flat([each for each in listed if each[0] in only] if only else listed)


def _flat(listed: Iterable[tuple[str, Record]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for field, row in listed:
        _flatten(found, field, row)
    return found


def changed_facts(old: Snapshot, new: Snapshot, device: str) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """The facts of a device in two snapshots, of the fields of the first, without records that are equal in both."""
    before, after = (_by_owner(snapshot).get(device, []) for snapshot in (old, new))
    asked = {field for field, _ in before}
    after = [each for each in after if each[0] in asked]
    if len(before) == len(after):
        changed = [both for both in zip(before, after, strict=True) if both[0] != both[1]]
        before, after = [one for one, _ in changed], [other for _, other in changed]
    return _flat(before), _flat(after)


def records_of(snapshot: Snapshot, device: str) -> Iterator[Record]:
    """Those of one device, by its bdf or name."""
    return (record for _, record in _by_owner(snapshot).get(device, ()))


Owned = tuple[tuple[str, ...], Record]
"""A record with the keys that say of which device it is, empty for the host. A BAR has those of its device too."""


@remembered(1)
def records(facts: Snapshot) -> tuple[Owned, ...]:
    """Those of the fields, and those in the tuples that they hold; a record in a field is part of its holder."""
    listed = (getattr(facts, name) for name in fields(facts) if name not in NO_DEVICES)
    return tuple((tuple(keys.values()), record) for field in listed for keys, record in held(field))


@remembered()
def _by_owner(snapshot: Snapshot) -> dict[str, list[tuple[str, Record]]]:
    """The records of each device, with the field of the snapshot that holds them."""
    found: dict[str, list[tuple[str, Record]]] = {}
    for field in fields(snapshot):
        rows = getattr(snapshot, field)
        rows = rows.gpus if isinstance(rows, Nvml) else rows
        listed: tuple[object, ...] = rows if isinstance(rows, tuple) else ()
        for row in (each for each in listed if isinstance(each, Record)):
            for name in _owners(type(row)):
                if isinstance(owner := getattr(row, name), str):
                    found.setdefault(owner, []).append((field, row))
    return found


@cache
def _owners(kind: type[Record]) -> tuple[str, ...]:
    return tuple(name for name in _OWNERS if name in fields(kind))


def _flatten(found: dict[str, object], path: str, fact: Any) -> None:
    """A record or mapping as a whole too: where it is missing it has one gap in place of its members."""
    found[path] = fact
    members: Iterable[tuple[str, object]] = ()
    if isinstance(fact, dict):
        members = ((f"{path}.{name}", value) for name, value in fact.items())
    elif isinstance(fact, tuple):
        if (key := _KEYS.get(path.rpartition(".")[2])) is not None:
            members = [(f"{path}.{getattr(row, key)}", row) for row in fact]
    elif isinstance(fact, Record):
        link = getattr(fact, "link", None)
        paths, held = _paths(type(fact), path if link is None else f"{path}.{link}"), values(fact)
        if _SCALARS.issuperset(map(type, held)):
            found.update(zip(paths, held, strict=True))
            return
        members = zip(paths, held, strict=True)
    for name, value in members:
        if type(value) in _SCALARS:
            found[name] = value
        else:
            _flatten(found, name, value)


@lru_cache(maxsize=4096)
def _paths(kind: type[Record], at: str) -> tuple[str, ...]:
    return tuple(f"{at}.{name}" for name in fields(kind))


_OF_STATE = frozenset(("setting", "state", "gauge", "counter", "load"))


def is_only_named(snapshot: Snapshot, device: str) -> bool:
    """Does a text tell which device there is, and nothing of how it is?"""
    unrecorded = False
    for record in records_of(snapshot, device):
        for fact in _states(record):
            if not isinstance(fact, Missing):
                return False
            unrecorded = unrecorded or fact.gap is Gap.UNRECORDED
    return unrecorded


def _states(record: Record) -> Iterator[object]:
    """What a record holds of the state of its device, gaps too."""
    for name, row in rows_of(type(record)).items():
        fact = getattr(record, name)
        for member in fact if isinstance(fact, tuple) else (fact,):
            if isinstance(member, Record):
                yield from _states(member)
            elif row.nature in _OF_STATE and member is not None:
                yield member
