"""Hardware that is missing, new, moved or replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Change, Counterparts, Difference, Side, Trend, Value, in_container
from dgxcheck.facts.bdf import shown
from dgxcheck.facts.memory import Dimm
from dgxcheck.facts.missing import Missing, rows, text_of
from dgxcheck.facts.pci import PciFunction
from dgxcheck.topology.model import Device, is_printed, slot_of
from dgxcheck.topology.nvlinks import is_nvswitch

_CLASSES = {0x01: "storage controller", 0x02: "network adapter", 0x03: "display controller"}
"""PCI base classes compared besides GPUs and HCAs."""
_TRENDS: Mapping[Change, Trend] = {"gone": "worse", "new": "better"}
"""What was moved, replaced or renamed is neither."""


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    for pair in devices.devices:
        yield from _device(old, new, pair)
    yield from _listed(old, new, devices)
    yield from _functions(old, new)
    yield from _disks(old, new)
    yield from _dimms(old, new, devices.comparable is True)


def _device(old: Side, new: Side, pair: Counterparts) -> Iterator[Difference]:
    """A site makes as many virtual functions as it needs."""
    before, after = pair.old, pair.new
    if before is None:
        yield _of_pair("new", pair, "device", f"new: {_described(new, pair)}")
    elif after is None:
        was, now = (each.topology.functions.get(pair.either.bdf or "") for each in (old, new))
        stays = now is not None and (was is None or _ids(was) == _ids(now))
        remainder = "; its PCI function is still present" if stays else ""
        yield _of_pair("gone", pair, "device", f"missing: {_described(old, pair)}{remainder}")
    elif pair.replaced:
        yield _of_pair("replaced", pair, "identity", f"replaced by {_described(new, pair)}")
    elif (was_at := shown(before.bdf)) and (now_at := shown(after.bdf)) and was_at != now_at:
        message = f"moved from {was_at}{_slot(old, pair)} to {now_at}{_slot(new, pair)}"
        yield _of_pair("moved", pair, "bdf", message)
    elif isinstance(before.path, tuple) and isinstance(after.path, tuple) and before.path != after.path:
        first = 2 if before.path[:2] != after.path[:2] else -1
        message = f"moved from below {' '.join(before.path[:first])} to below {' '.join(after.path[:first])}"
        yield _of_pair("moved", pair, "path", message)
    elif before.name != after.name and all(map(_is_named, (before, after))):
        yield _of_pair("changed", pair, "name", f"was {before.name}")


def _is_named(device: Device) -> bool:
    """By NVML or the kernel?"""
    return isinstance(device.index, int) if device.kind == "gpu" else not is_printed(device.name)


def _of_pair(change: Change, pair: Counterparts, what: str, message: str) -> Difference:
    named, device = what == "name", pair.either
    before, after = ((not named and each.bdf) or each.name if each else None for each in (pair.old, pair.new))
    kind: Trend | None = "neutral" if device.is_vf is True else None
    return _difference(change, device.name, device.bdf, what, before, after, message, kind)


def _difference(
    change: Change, device: str, bdf: str | None, what: str, old: Value, new: Value, message: str,
    kind: Trend | None = None,
) -> Difference:  # fmt: skip
    return Difference(kind=kind or _TRENDS.get(change, "neutral"), area="hardware", change=change, device=device,
                      bdf=bdf, what=what, old=old, new=new, message=message)  # fmt: skip


def _described(side: Side, pair: Counterparts) -> str:
    """Model, slot and serial number, as far as they are known."""
    device = pair.new if pair.replaced or pair.old is None else pair.old
    assert device is not None
    words: list[object] = []
    for gpu in side.snapshot.listed_gpus:
        if gpu.bdf == device.bdf:
            words += [gpu.name, gpu.serial if isinstance(gpu.serial, Missing) else f"serial {gpu.serial}"]
    words += [hca.hca_type for hca in rows(side.snapshot.infiniband) if hca.name == device.name]
    description = ", ".join(str(word).strip() for word in words if not isinstance(word, Missing))
    return (description or ("a GPU" if device.kind == "gpu" else "an adapter")) + _slot(side, pair)


def _slot(side: Side, pair: Counterparts) -> str:
    devices = [device for device in (pair.new, pair.old) if device is not None and device in side.topology.devices]
    slot = slot_of(devices[0], side.snapshot.slots) if devices else ""
    return f" (slot {slot})" if isinstance(slot, str) and slot else ""


def _listed(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """GPUs that NVML lists on one side only; neutral in a container, which may hide GPUs on purpose."""
    if not all(any(device.index is not None for device in side.topology.gpus) for side in (old, new)):
        return
    container = in_container(old) or in_container(new)
    for pair in devices.gpus:
        if pair.old is None or pair.new is None or (pair.old.index is None) == (pair.new.index is None):
            continue
        listed_now = pair.new.index is not None
        kind: Trend = "neutral" if container else "better" if listed_now else "worse"
        name, message = (pair.new.name, "listed by NVML again") if listed_now else (
            pair.old.name, "no longer listed by NVML"
        )  # fmt: skip
        yield _difference("changed", name, pair.either.bdf, "nvml-listed", not listed_now, listed_now, message, kind)


def _functions(old: Side, new: Side) -> Iterator[Difference]:
    """NVSwitches, storage controllers and other network adapters, matched by bdf, then by vendor and device id."""
    devices = {(device.bdf, _ids(function)) for side in (old, new) for device in side.topology.devices
               if (function := side.topology.functions.get(device.bdf or ""))}  # fmt: skip
    lists = [side.snapshot.pci for side in (old, new)]
    if any(isinstance(listed, Missing) for listed in lists):
        return
    before, after = ({row.bdf: row for row in rows(listed) if (row.bdf, _ids(row)) not in devices and _description(row)}
                     for listed in lists)  # fmt: skip
    old_rows = [row for bdf, row in before.items() if bdf not in after or _ids(after[bdf]) != _ids(row)]
    new_rows = [row for bdf, row in after.items() if bdf not in before or _ids(before[bdf]) != _ids(row)]
    for row, match in _matched(old_rows, new_rows, _ids):
        yield _function("moved", match, row.bdf, match.bdf, f"moved from {row.bdf} to {match.bdf}")
    for row, match in _matched(old_rows, new_rows, lambda row: (row.bdf, _description(row))):
        yield _function("replaced", match, row.ids, match.ids, f"replaced by {match.ids}")
    yield from (_function("gone", row, row.bdf, None, "missing") for row in old_rows)
    yield from (_function("new", row, None, row.bdf, "new") for row in new_rows)


def _matched(
    old: list[PciFunction], new: list[PciFunction], key: Callable[[PciFunction], object]
) -> Iterator[tuple[PciFunction, PciFunction]]:
    """Those that are alike, which are taken out of both lists."""
    for row in tuple(old):
        if (match := next((each for each in new if key(each) == key(row)), None)) is not None:
            old.remove(row)
            new.remove(match)
            yield row, match


def _function(change: Change, row: PciFunction, old: str | None, new: str | None, words: str) -> Difference:
    return _difference(change, row.bdf, row.bdf, "pci-function", old, new, f"{_description(row)} {words}")


def _ids(row: PciFunction) -> tuple[object, object]:
    return row.vendor, row.device


def _description(row: PciFunction) -> str:
    """Kind of a function; empty for bridges and others that are not compared."""
    if is_nvswitch(row):
        return "NVSwitch"
    return _CLASSES.get(row.subclass >> 8, "")


def _disks(old: Side, new: Side) -> Iterator[Difference]:
    """Disks by model and size: their names depend on the order of detection. One of another model and the same size is
    a replacement."""
    before, after = (_disks_by_kind(side) for side in (old, new))
    if before is None or after is None:
        return
    for size in sorted({size for size, _ in (*before, *after)}):
        gone, come = (
            [(name, " ".join(filter(None, key[::-1]))) for key in sorted(was) if key[0] == size
             for name in _surplus(was[key], now.get(key, []))]
            for was, now in ((before, after), (after, before))
        )  # fmt: skip
        yield from (_part("disk", was, now) for was, now in zip_longest(gone, come))


def _dimms(old: Side, new: Side, comparable: bool) -> Iterator[Difference]:
    """Memory modules by slot and serial number; where no slot has its old name, firmware has renamed them."""
    before, after = ({dimm.slot: dimm for dimm in rows(side.snapshot.dimms)} for side in (old, new))
    was, now = ({slot: side.pseudonym(dimm.serial) if comparable and isinstance(dimm.serial, str) else ""
                 for slot, dimm in dimms.items()} for side, dimms in ((old, before), (new, after)))  # fmt: skip
    stay = {slot for slot in was.keys() & now.keys() if was[slot] == now[slot] or not (was[slot] and now[slot])}
    if not was or not now or not (stay or any(was.values())):
        return
    gone, come = (sorted(slots.keys() - stay) for slots in (was, now))
    for slot in tuple(gone):
        if (place := next((each for each in come if was[slot] and now[each] == was[slot]), None)) is not None:
            gone.remove(slot)
            come.remove(place)
            words = f"DIMM {_contents(after[place])} moved from {slot} to {place}"
            yield _difference("moved", place, None, "dimm", slot, place, words)
    for slot in sorted({*gone, *come}):
        held = [(slot, _contents(dimms[slot])) if slot in left else None
                for left, dimms in ((gone, before), (come, after))]  # fmt: skip
        yield _part("DIMM", *held)


def _contents(dimm: Dimm) -> str:
    size = "" if isinstance(dimm.size_mib, Missing) else f"{dimm.size_mib / 1024:g} GiB"
    return " ".join(filter(None, (size, text_of(dimm.maker), text_of(dimm.model))))


def _part(what: str, old: tuple[str, str] | None, new: tuple[str, str] | None) -> Difference:
    """``old`` and ``new`` are the name or slot, and what is there."""
    name, contents = new or old or ("", "")
    change: Change = "replaced" if old and new else "new" if new else "gone"
    words = f"{old[1]} replaced by".lstrip() if old and new else f"{'new' if new else 'missing'}:"
    message = f"{what} {words} {contents}".rstrip()
    return _difference(change, name, None, what.lower(), old and old[0], new and new[0], message)


def _surplus(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """The surplus of ``names`` over ``others``, names that ``others`` lacks first."""
    more = len(names) - len(others)
    return sorted(names, key=lambda name: (name in others, name))[:more] if more > 0 else []


def _disks_by_kind(side: Side) -> dict[tuple[str, str], list[str]] | None:
    if isinstance(listed := side.snapshot.disks, Missing):
        return None
    disks: dict[tuple[str, str], list[str]] = {}
    for disk in listed:
        if disk.removable is not True and not disk.name.startswith(("md", "dm-")):
            model = text_of(disk.model).strip()
            size = "" if isinstance(disk.size_bytes, Missing) else f"{disk.size_bytes / 1e9:.0f} GB"
            disks.setdefault((size, model), []).append(disk.name)
    return disks
