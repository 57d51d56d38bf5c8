"""Hardware that is gone, new, moved or replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Change, Difference, Kind, Pair, Side
from dgxcheck.difference.numbers import Quantity, compared
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.host import BlockDevice, Storage
from dgxcheck.facts.ids import NVIDIA, OTHER_BRIDGE
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.topology.slots import slot_of

_CLASSES = {0x01: "storage controller", 0x02: "network adapter", 0x03: "display controller"}
"""PCI base classes whose functions are followed beside GPUs and HCAs."""


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    for pair in devices.devices:
        yield from _device(old, new, pair)
    yield from _functions(old, new)
    yield from _disks(old, new)


def _device(old: Side, new: Side, pair: Pair) -> Iterator[Difference]:
    before, after = pair.old, pair.new
    if before is None or after is None:
        side = new if before is None else old
        came = before is None
        still = "" if came or pair.either.bdf not in new.topology.functions else "; its PCI function is still there"
        message = f"{'new' if came else 'gone'}: {_described(side, pair)}{still}"
        yield _difference("better" if came else "worse", "new" if came else "gone", pair, "device", message)
    elif pair.replaced:
        yield _difference("neutral", "replaced", pair, "identity", f"replaced by another: {_described(new, pair)}")
    elif before.bdf and after.bdf and before.bdf != after.bdf:
        message = f"moved: was at {before.bdf}{_slot(old, pair)}, is at {after.bdf}{_slot(new, pair)}"
        yield _difference("neutral", "moved", pair, "bdf", message)
    elif isinstance(before.path, tuple) and isinstance(after.path, tuple) and before.path != after.path:
        first = 2 if before.path[:2] != after.path[:2] else -1
        message = f"moved: was below {' '.join(before.path[:first])}, is below {' '.join(after.path[:first])}"
        yield _difference("neutral", "moved", pair, "path", message)
    if before is not None and after is not None and before.function and after.function:
        node = Quantity("hardware", "numa-node", lambda function: function.numa_node)
        yield from compared(before.function, after.function, node, after.name, after.bdf)


def _difference(kind: Kind, change: Change, pair: Pair, what: str, message: str) -> Difference:
    before, after = ((device.bdf or device.name) if device else None for device in (pair.old, pair.new))
    return Difference(kind=kind, area="hardware", change=change, device=pair.either.name, bdf=pair.either.bdf,
                      what=what, old=before, new=after, message=message)  # fmt: skip


def _described(side: Side, pair: Pair) -> str:
    """Model, slot and serial number, as far as they are known."""
    device = pair.new if pair.replaced or pair.old is None else pair.old
    assert device is not None
    nvml, hcas = side.snapshot.gpu, side.snapshot.infiniband
    words: list[object] = []
    if device.kind == "gpu" and isinstance(nvml, Nvml):
        for gpu in nvml.gpus:
            if gpu.bdf == device.bdf:
                words += [gpu.name, gpu.serial if isinstance(gpu.serial, Missing) else f"serial {gpu.serial}"]
    if device.kind == "nic" and not isinstance(hcas, Missing):
        words += [hca.hca_type for hca in hcas if hca.name == device.name]
    said = ", ".join(str(word).strip() for word in words if not isinstance(word, Missing))
    return (said or {"gpu": "a GPU", "nic": "an adapter"}[device.kind]) + _slot(side, pair)


def _slot(side: Side, pair: Pair) -> str:
    devices = [device for device in (pair.new, pair.old) if device is not None and device in side.topology.devices]
    slot = slot_of(devices[0], side.snapshot.slots) if devices else ""
    return f", slot {slot}" if isinstance(slot, str) and slot else ""


def _functions(old: Side, new: Side) -> Iterator[Difference]:
    """NVSwitches, disk controllers and other network adapters, which have no identity: by place, then by ids."""
    known = {device.bdf for side in (old, new) for device in side.topology.devices}
    lists = [side.snapshot.pci for side in (old, new)]
    if any(isinstance(each, Missing) for each in lists):
        return
    before, after = (
        {each.bdf: each for each in rows if each.bdf not in known and _called(each)}
        for rows in lists if not isinstance(rows, Missing)
    )  # fmt: skip
    gone = [row for bdf, row in before.items() if bdf not in after or _ids(after[bdf]) != _ids(row)]
    came = [row for bdf, row in after.items() if bdf not in before or _ids(before[bdf]) != _ids(row)]
    for row in tuple(gone):
        if (same := next((each for each in came if _ids(each) == _ids(row)), None)) is not None:
            gone.remove(row)
            came.remove(same)
            yield _function("neutral", "moved", same, row.bdf, same.bdf, f"was at {row.bdf}, is at {same.bdf}")
    for row in gone:
        yield _function("worse", "gone", row, row.bdf, None, "gone")
    for row in came:
        yield _function("better", "new", row, None, row.bdf, "new")


def _function(kind: Kind, change: Change, row: PciFunction, old: str | None, new: str | None, words: str) -> Difference:
    return Difference(kind=kind, area="hardware", change=change, device=row.bdf, bdf=row.bdf, what="pci-function",
                      old=old, new=new, message=f"{_called(row)} {words}")  # fmt: skip


def _ids(row: PciFunction) -> tuple[object, object]:
    return row.vendor, row.device


def _called(row: PciFunction) -> str:
    """What the function is; empty for bridges and all else that is not followed."""
    if isinstance(row.class_code, Missing):
        return ""
    if row.class_code >> 8 == OTHER_BRIDGE and row.vendor == NVIDIA:
        return "NVSwitch"
    return _CLASSES.get(row.class_code >> 16, "")


def _disks(old: Side, new: Side) -> Iterator[Difference]:
    """By model and size, for their names follow the order in which they are found."""
    sides = [_of(side) for side in (old, new)]
    if sides[0] is None or sides[1] is None:
        return
    before, after = sides[0], sides[1]
    for key in sorted({*before, *after}, key=str):
        was, now = before.get(key, []), after.get(key, [])
        yield from (_disk("worse", "gone", name, key) for name in _surplus(was, now))
        yield from (_disk("better", "new", name, key) for name in _surplus(now, was))


def _disk(kind: Kind, change: Change, name: str, key: tuple[str, str]) -> Difference:
    told = " ".join(filter(None, key))
    return Difference(kind=kind, area="hardware", change=change, device=name, bdf=None, what="disk",
                      old=name if change == "gone" else None, new=name if change == "new" else None,
                      message=f"disk {change}: {told}")  # fmt: skip


def _surplus(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """The names that one side has more, those first that the other lacks."""
    more = len(names) - len(others)
    return sorted(names, key=lambda name: (name in others, name))[:more] if more > 0 else []


def _of(side: Side) -> dict[tuple[str, str], list[str]] | None:
    storage = side.snapshot.storage
    if not isinstance(storage, Storage) or isinstance(storage.disks, Missing):
        return None
    found: dict[tuple[str, str], list[str]] = {}
    for disk in storage.disks:
        if disk.removable is not True and not disk.name.startswith(("md", "dm-")):
            found.setdefault(_kind_of(disk), []).append(disk.name)
    return found


def _kind_of(disk: BlockDevice) -> tuple[str, str]:
    model = "" if isinstance(disk.model, Missing) else disk.model.strip()
    size = "" if isinstance(disk.size_bytes, Missing) else f"{disk.size_bytes / 1e9:.0f} GB"
    return model, size
