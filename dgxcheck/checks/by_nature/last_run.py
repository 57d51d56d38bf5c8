"""Is the machine what it was in earlier runs? Numbers of devices; identities, inventory, versions, capabilities and
settings of the host: nothing else tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dgxcheck.checks.by_nature.records import subject as subject_of
from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, host, part
from dgxcheck.checks.engine.finding import (
    BAD,
    Evidence,
    Instead,
    Judged,
    Judgement,
    Status,
    Subject,
    counted,
    first_of,
    skip,
)
from dgxcheck.checks.placement.missing import missing
from dgxcheck.checks.siblings.compare import is_reported
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.device_facts import records
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.host import BlockDevice, MdArray, NetInterface
from dgxcheck.facts.ids import DISPLAY, NETWORK
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Json, Missing, items_of, rows
from dgxcheck.facts.nature import Fact
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.values import Leaf, as_json, described, held, is_inside, is_same, label, leaves, text, where
from dgxcheck.survey import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.facts.inventory import Kept

CHECK, INVENTORY = "host.last-run", "host.inventory"
STATE_FILE = "state file"
_NATURES = ("identity", "inventory", "version", "capability")
_MOST, _MANY = 3, 4
"""Facts of one device that a message names; devices with the same change of which each is named."""
_Change = tuple[Record, Leaf, Json]
_ASSIGNED = skip("not-visible", "a container or virtual machine sees what is assigned to it")


def _without_earlier(box: Box) -> Judgement:
    if box.present:
        return skip("no-history", "no earlier run on this host")
    return skip("not-recorded", "only the live machine is compared with earlier runs")


def kept(facts: Snapshot) -> dict[str, dict[str, Json]]:
    """What the next run is compared with: values by record and key, ``Gpu 0000:06:00.0``, then by name."""
    found: dict[str, dict[str, Json]] = {}
    for owner, _, _, leaf in _kept_leaves(facts):
        found.setdefault(owner, {})[leaf[0]] = _value(leaf)
    disks: list[Json] = [*sorted(_disks(facts))]
    return found | ({"BlockDevice": {"disks": disks}} if disks else {})


def _value(leaf: Leaf) -> Json:
    """An identity as its digest: anyone may read the state file, and some are for root alone."""
    value = as_json(leaf[2])
    if leaf[1][-1].nature != "identity":
        return value
    from hashlib import sha256

    lasting = str(value)[-leaf[1][-1].more.get("lasts", 0) :]
    return f"sha256:{sha256(lasting.encode()).hexdigest()[:16]}"


def _disks(facts: Snapshot) -> Iterator[str]:
    """Disks and arrays without removable ones, in words that tell them apart; their names change from boot to boot."""
    listed = [record for _, record in held(facts.storage)]
    arrays = {row.name for row in listed if isinstance(row, MdArray)}
    for row in listed:
        if isinstance(row, BlockDevice) and row.removable is not True:
            model = row.model if isinstance(row.model, str) else "array" if row.name in arrays else None
            if model is not None:
                values = (model, row.size_bytes, row.rotational, row.vendor)
                yield " ".join(str(value) for value in values if not isinstance(value, Missing))


def _kept_leaves(facts: Snapshot) -> Iterator[tuple[str, tuple[str, ...], Record, Leaf]]:
    """Values with the record that has them, by its key. Adapters and interfaces are numbered as they are found, another
    way in another boot: the one of a PCI function goes by that."""
    places = Counter(f"{type(each).__name__} {each.bdf}" for _, each in records(facts)
                     if isinstance(each, IbDevice | NetInterface) and isinstance(each.bdf, str))  # fmt: skip
    shared = Counter(each.mac for each in rows(facts.network) if isinstance(each.bdf, str))
    for keys, record in records(facts):
        if not isinstance(record, BlockDevice):
            kind = type(record).__name__
            at = f"{kind} {getattr(record, 'bdf', '')}"
            owner = at if places[at] == 1 else " ".join((kind, *keys))
            found = (leaf for leaf in leaves(record, _is_kept) if leaf[1][-1].nature != "holder")
            made_up = _is_made_up(record, shared)
            own = (leaf for leaf in found if not made_up or leaf[1][-1].nature != "identity")
            yield from ((owner, keys, record, leaf) for leaf in own)


def _is_made_up(record: Record, shared: Counter[str | Missing]) -> bool:
    """Is it a virtual interface or function, whose identity is another after each boot, or one of a bond?"""
    if isinstance(record, NetInterface):
        return isinstance(record.bdf, Missing) or shared[record.mac] > 1
    return isinstance(record, IbDevice) and record.is_vf is True


def _is_kept(row: Fact) -> bool:
    return is_inside(row) or (row.nature in _NATURES and "any" not in row.more) or "kept" in row.more


def _last_run(box: Box) -> Judged:
    """Warns for a day if identity, inventory, versions, capabilities or place of a device, or settings of the host, are
    not those of an earlier run on this host, and if a PCI function or disk is gone; then what there is counts as the
    last run. Sizes within the tolerances of the other checks are equal. Not judged in containers and virtual machines.
    An acknowledgement of this check accepts a change at once. What another check reports is left to that one; so
    are states of a device that has other findings.

    Source: the state file of earlier runs; every fact of the natures identity, inventory, version and capability
    """
    before = box.kept
    if box.state_trouble:
        yield replace(HOST, part=STATE_FILE), skip("no-history", box.state_trouble, Evidence(STATE_FILE, None))
    if before is None:
        raise Instead(_without_earlier(box))
    if host_limits.is_assigned(box):
        raise Instead(_ASSIGNED)
    changes: dict[Subject, list[_Change]] = {}
    by_name: dict[str, list[tuple[Subject, _Change]]] = {}
    troubled = {each.subject.bdf for each in box.found if each.status in BAD} - {None}
    for owner, keys, record, leaf in _kept_leaves(box.snapshot):
        was, now = before.values.get(owner, {}).get(leaf[0]), _value(leaf)
        if was is None or not _is_comparable(now, was) or is_same(leaf[1], now, was, box.settings.limit):
            continue
        bdf = getattr(record, "bdf", None)
        if not is_reported(box, bdf, leaf, record) and not (leaf[1][-1].nature == "state" and bdf in troubled):
            by_name.setdefault(leaf[0], []).append((subject_of(box, keys, record), (record, leaf, was)))
    for those in by_name.values():
        for subject, change in those[:1] if len(those) > _MANY else those:
            everywhere = replace(HOST, part=f"{label(change[1][1])} of {counted(len(those), 'device')}")
            changes.setdefault(everywhere if len(those) > _MANY else subject, []).append(change)
    for subject, own in changes.items():
        yield subject, _changed(subject.part if subject.kind == "host" else "", own, before.date)
    gone = [*_gone(box, before.values)]
    if gone:
        message = f"{counted(len(gone), 'device')} of the run of {before.date} gone: {first_of(gone)}"
        evidence = (Evidence(f"state file, {before.date}", [*gone]),)
        yield replace(HOST, part="devices"), Judgement(Status.WARN, message, evidence=evidence, fault=Fault.DRIFT)
    if not changes and not gone:
        yield HOST, Judgement(Status.PASS, f"identities, inventory, versions and settings are those of {before.date}")


def _is_comparable(now: Json, was: Json) -> bool:
    """Is it a value of the same type? Any other is damage, and no change of the machine."""
    if isinstance(now, list) and isinstance(was, list):
        return len({*map(_kind, now), *map(_kind, was)}) <= 1
    return _kind(now) == _kind(was)


def _kind(value: Json) -> type:
    return float if type(value) is int else type(value)


def _changed(where_: str, those: list[_Change], date: str) -> Judgement:
    shown = [_words(leaf, was) for _, leaf, was in those[:_MOST]]
    more = [f"and {counted(len(those) - _MOST, 'other fact')}"] if len(those) > _MOST else []
    evidence = tuple(Evidence(where(record, leaf[1]), [was, as_json(leaf[2])]) for record, leaf, was in those)
    prefix = f"{where_}: " if where_ else ""
    message = f"{prefix}{'; '.join((*shown, *more))} in the run of {date}"
    return Judgement(Status.WARN, message, evidence=evidence, fault=Fault.DRIFT)


def _words(leaf: Leaf, was: Json) -> str:
    """Of lists, and of texts that are cut before they differ, what is different alone."""
    _, of, now = leaf
    if isinstance(now, str) and isinstance(was, str) and text(of, now) == text(of, was):
        now, was = tuple(now.split()), [*was.split()]
    if isinstance(now, tuple) and isinstance(was, list):
        old, new = [*map(str, was)], [*map(str, now)]
        less, more = [each for each in old if each not in new], [each for each in new if each not in old]
        return f"{label(of)} {' '.join(more) or 'less'}, was {' '.join(less) or 'less'}"
    if of[-1].nature == "identity":
        return f"{described(of, now)}, was another"
    return f"{described(of, now)}, was {text(of, was) if isinstance(was, int | float | str | None) else was}"


def _gone(box: Box, before: Kept) -> Iterator[str]:
    """PCI functions, without GPUs and adapters, which host.inventory counts; and disks of another model or size."""
    now = kept(box.snapshot)
    if not isinstance(box.snapshot.pci, Missing):
        for owner, values in before.items():
            code = values.get("PciFunction.class_code")
            is_other = isinstance(code, int) and code >> 16 not in (DISPLAY, NETWORK)
            if is_other and owner.startswith("PciFunction ") and owner not in now:
                yield owner.partition(" ")[2]
    old, new = (items_of(each.get("BlockDevice", {}).get("disks")) for each in (before, now))
    if len(old) == len(new):
        yield from (f"disk {element}" for element in (Counter(map(str, old)) - Counter(map(str, new))).elements())


_OF_HOST, _OF_DEVICE = host("changes since the last run"), part("versions and settings")


class _Counted(Record, kw_only=False):
    name: str
    unit: str
    key: str
    """What a profile says of it, which another check judges."""
    status: Status
    fault: FaultKind


_KINDS = (
    _Counted("GPU", "GPUs", "gpu.count", Status.FAIL, Fault.GPU_MISSING),
    _Counted("HCA", "HCAs", "network.hcas", Status.FAIL, Fault.HCA_MISSING),
    _Counted("memory", "GiB", "host.memory", Status.WARN, Fault.MEMORY_MISSING),
    _Counted("disk", "disks", "host.data", Status.WARN, Fault.DISK),
)


def _inventory(box: Box) -> Judged:
    """Fails if the host has fewer GPUs or HCAs than in an earlier run, and warns if it has less memory (by more than
    {host.memory-missing}) or fewer disks. Compared on the live machine with the highest numbers that the state file
    holds of this host. Not judged in containers and virtual machines. A removal on purpose is accepted with an
    acknowledgement of this check: the next run expects what there is then.

    Source: the state file of earlier runs
    """
    if not box.inventory:
        raise Instead(_without_earlier(box))
    yield from ((replace(HOST, part=kind.name), _of_kind(box, kind)) for kind in _KINDS if kind.name in box.inventory)


def _of_kind(box: Box, kind: _Counted) -> Judgement:
    was, now = box.inventory[kind.name], box.present.get(kind.name)
    if now is None:
        return skip("not-recorded", f"{kind.unit} were not counted in this run")
    if host_limits.is_assigned(box):
        return _ASSIGNED
    evidence = (Evidence(f"state file, {was.date}", was.number), Evidence("this run", now))
    # of memory the kernel and the firmware reserve now more, now less
    tolerance = box.settings.limit("host.memory-missing") / 100 if kind.name == "memory" else 0
    if now >= was.number - was.number * tolerance:
        return Judgement(Status.PASS, f"{_many(kind, now)} as on {was.date}", now, was.number, kind.unit, evidence)
    reference = None if box.guessed else box.number(kind.key)
    if reference is not None and kind.name in ("GPU", "HCA") and now < reference.value:
        return skip("dependency-failed", f"fewer {kind.unit} than the reference machine: see {kind.key}", *evidence)
    message = f"{_many(kind, now)}, was {was.number} on {was.date}"
    return Judgement(kind.status, message, now, was.number, kind.unit, evidence, fault=kind.fault)


def _many(kind: _Counted, number: int) -> str:
    return f"{number} GiB of memory" if kind.name == "memory" else counted(number, kind.name)


def _blame_missing(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    if subject.part in ("GPU", "HCA"):
        yield missing(box, "GPU" if subject.part == "GPU" else "HCA")
    else:
        yield host_part("memory" if subject.part == "memory" else "disks")


CHECKS = (
    Check(CHECK, _last_run,
        lambda box, at, judgement: (_OF_HOST if at.kind == "host" else _OF_DEVICE)(box, at, judgement), last=True),
    Check(INVENTORY, _inventory, _blame_missing),
)  # fmt: skip
