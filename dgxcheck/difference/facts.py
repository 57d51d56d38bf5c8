"""Every fact of every device that is on both sides, compared by what its row says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Area, Change, Difference, Side, Trend, arrow, judged, same_boot
from dgxcheck.facts.host import BlockDevice, DeviceNode, Memlock, NetInterface
from dgxcheck.facts.infiniband import IbPort, IbRate, PortState
from dgxcheck.facts.missing import rows
from dgxcheck.facts.nature import COMPARED, Fact
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.facts.nvml.nvlink import NvLink
from dgxcheck.facts.nvml.readings import GpuMemory, GpuPcie
from dgxcheck.facts.pci import PciBars, PciFunction
from dgxcheck.facts.record import Record
from dgxcheck.facts.values import Rows, Value, held, is_inside, is_of, label, leaves, option, text_of_change
from dgxcheck.survey import NO_DEVICES, Snapshot
from dgxcheck.topology.model import Topology

RESERVE = 0.03
"""Share of the memory that another driver or kernel reserves: up to 1.6 % of a V100's."""
_BY_HAND = frozenset((
    PciFunction.link_gen, PciFunction.link_width, PciFunction.max_link_gen, PciFunction.max_link_width,
    GpuPcie.link_width, GpuPcie.max_link_gen, GpuPcie.max_link_width, NvLink.up, Nvml.count,
))  # fmt: skip
"""What ``links`` and ``hardware`` compare from both ends."""
_OF_THE_ASKER = frozenset((DeviceNode.opens, Memlock.own))
_TWICE = frozenset((PciBars.bar1,))
"""Also in the list of the others."""
_AREAS: Mapping[str, Area] = {"version": "firmware", "setting": "setting", "counter": "counter"}
_AREAS_OF: Mapping[str, Area] = {
    "host": "host", "infiniband": "network", "nvlink": "nvlink", "NetInterface": "network", "GpuEcc": "memory",
}  # fmt: skip
"""By the module of the record, or the record."""
_INFINIBAND = 32
"""``ARPHRD_INFINIBAND``"""
_JOINTS = {"link": " link ", "port": "/", "line": " BAR ", "b": " -> ", "node": "node "}
"""Before the second key of a record, by its name."""
_COUNTED = {"NumaNode": "NUMA nodes", "MemoryController": "memory controllers"}
_Key = tuple[str, ...]
_Found = tuple[_Key, Mapping[str, str], Record]


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """Facts of devices and parts on both sides; boards that were replaced have no history."""
    renamed, continues = _renamed(old, new, devices), same_boot(old, new)
    moved = {pair.either.bdf for pair in devices.devices if pair.moved}
    for keys, was, now in pairs(old.snapshot, new.snapshot, renamed):
        has_moved = not moved.isdisjoint((*keys.values(), getattr(now, "remote_bdf", None)))
        if not (has_moved and "b" in keys):  # what two GPUs are to one another follows from their places
            name, bdf = device_name(new.topology, keys), _bdf(new.topology, now, keys)
            yield from _of_record(was, now, name, bdf, continues, has_moved)
            if isinstance(was, NetInterface) and isinstance(now, NetInterface):
                yield from _of_interface(was, now, bdf, {each.mac for each in rows(new.snapshot.network)})
    yield from _parts(_records(old.snapshot, renamed), _records(new.snapshot, {}))


def _of_interface(
    was: NetInterface, now: NetInterface, bdf: str | None, macs: Container[object]
) -> Iterator[Difference]:
    """Its name, and its address, another where the card was replaced; interfaces of a bond lend each other theirs."""
    changed = {"name": (was.name, now.name, f"was {was.name}")} if was.name != now.name else {}
    of_card = isinstance(now.bdf, str) and now.type != _INFINIBAND and was.mac not in macs
    if of_card and isinstance(was.mac, str) and isinstance(now.mac, str):
        changed["mac-address"] = was.mac, now.mac, f"MAC address: {was.mac} -> {now.mac}"
    for what, (old, new, message) in changed.items():
        yield Difference(kind="neutral", area="network", change="changed", device=now.name, bdf=bdf, what=what, old=old,
                         new=new, message=message)  # fmt: skip


def pairs(
    old: Snapshot, new: Snapshot, renamed: Mapping[str, str | None]
) -> Iterator[tuple[Mapping[str, str], Record, Record]]:
    """The records of one device or part on both sides, with its keys on the new one; ``renamed`` are those that the old
    one calls otherwise, or has another device at."""
    before = {key: record for key, _, record in _records(old, renamed)}
    after = {key: (keys, record) for key, keys, record in _records(new, {})}
    yield from ((keys, before[key], record) for key, (keys, record) in after.items() if key in before)


def _records(facts: Snapshot, renamed: Mapping[str, str | None]) -> Iterator[_Found]:
    """Records by their kind and keys, those of devices as the new side calls them. The names of disks change from
    boot to boot."""
    for field in [field for field in type(facts).__slots__ if field not in NO_DEVICES]:
        for keys, record in held(getattr(facts, field)):
            names = [renamed.get(key, key) for key in keys.values()]
            if None not in names and not isinstance(record, BlockDevice):
                yield (type(record).__name__, *map(str, names)), keys, record


def _renamed(old: Side, new: Side, devices: Matched) -> Mapping[str, str | None]:
    """Names and bus ids of the old side to those of the new one; None for what is not the same device there."""
    found: dict[str, str | None] = {}
    for bdf, function in old.topology.functions.items():
        now = new.topology.functions.get(bdf)
        same = now and (now.vendor, now.device, now.path) == (function.vendor, function.device, function.path)
        found[bdf] = bdf if same else None
    for pair in devices.devices:
        if pair.old is not None:
            now_bdf, now_name = (pair.new.bdf, pair.new.name) if pair.new and pair.same else (None, None)
            found[pair.old.bdf or pair.old.name] = now_bdf
            if pair.old.kind != "gpu":
                found[pair.old.name] = now_name
    interfaces = _interfaces(new)
    for bdf, name in _interfaces(old).items():
        if (now_name := interfaces.get(found.get(bdf) or "", name)) != name:
            found[name] = now_name
    return found


def _interfaces(side: Side) -> Mapping[str, str]:
    """By PCI function, of those that have one."""
    listed = [(each.bdf, each.name) for each in rows(side.snapshot.network) if isinstance(each.bdf, str)]
    number = Counter(bdf for bdf, _ in listed)
    return {bdf: name for bdf, name in listed if number[bdf] == 1}


def device_name(topology: Topology, keys: Mapping[str, str]) -> str:
    """``GPU0 link 3``, ``mlx5_0/1``, ``node 1``, ``host``"""
    if "name" in keys:
        return keys["name"]
    devices = {key: topology.device(of) for key, of in keys.items()}
    names = {key: device.name if (device := devices[key]) else of for key, of in keys.items()}
    return "".join(_JOINTS.get(key, " ") + name for key, name in names.items()).strip() or "host"


def _bdf(topology: Topology, record: Record, keys: Mapping[str, str]) -> str | None:
    if isinstance(own := getattr(record, "bdf", None), str):
        return own
    device = next((device for of in keys.values() if (device := topology.device(of)) is not None), None)
    return device.bdf if device else None


def _is_compared(row: Fact) -> bool:
    return is_inside(row) or row.nature in COMPARED or row.nature == "counter" or "kept" in row.more


def _of_record(
    old: Record, new: Record, device: str, bdf: str | None, continues: bool, has_moved: bool
) -> Iterator[Difference]:
    before = {name: value for name, _, value in leaves(old, _is_compared)}
    for name, of, now in leaves(new, _is_compared):
        if name not in before or _is_left_out(of, old, new) or (has_moved and of[-1].nature == "place"):
            continue
        was = before[name]
        if of[-1].nature == "counter":
            yield from _counter(of, was, now, device, bdf, continues)
        elif not _is_same(of, was, now):
            yield Difference(
                kind=_trend(of, was, now), area=_area(of), change="changed", device=device, bdf=bdf, what=_what(of),
                old=_plain(was), new=_plain(now), unit=of[-1].unit,
                message=f"{label(of)}: {text_of_change(of, was, now)}",
            )  # fmt: skip


def _is_left_out(of: Rows, old: Record, new: Record) -> bool:
    """Is it compared elsewhere, or does it follow from what has changed?"""
    if is_of(of, _BY_HAND | _OF_THE_ASKER | _TWICE) or (of[-1].nature == "holder"):
        return True
    if isinstance(old, IbPort) and isinstance(new, IbPort) and of[-1].record is IbRate:
        return not old.state == new.state == PortState.ACTIVE  # the ``rate`` file of a port that is down means nothing
    if isinstance(new, NetInterface) and of[-1].nature == "state":  # IP over InfiniBand is compared as a port
        return new.type == _INFINIBAND or not isinstance(new.bdf, str)
    return isinstance(old, GpuMemory) and isinstance(new, GpuMemory) and old.ecc != new.ecc and _is_size(of)


def _is_size(of: Rows) -> bool:
    return "tolerance" in of[-1].more


def _is_same(of: Rows, was: Value, now: Value) -> bool:
    if isinstance(was, str) and isinstance(now, str):
        return was.strip() == now.strip()
    if _is_size(of) and isinstance(was, int | float) and isinstance(now, int | float):
        return abs(now - was) <= RESERVE * max(abs(was), abs(now))
    return was == now


def _trend(of: Rows, was: Value, now: Value) -> Trend:
    """Neutral for what is neither good nor bad and has no order."""
    better, good = option(of, "better"), option(of, "good")
    rises = was is None if was is None or now is None else None
    if isinstance(was, int | float) and isinstance(now, int | float):
        rises = now > was
    if better is not None and rises is not None:
        return "better" if rises == (better == "more") else "worse"
    if isinstance(good, tuple) and (was in good) != (now in good):
        return "better" if now in good else "worse"
    return "neutral"


def _counter(of: Rows, was: Value, now: Value, device: str, bdf: str | None, continues: bool) -> Iterator[Difference]:
    """One that fell was reset, which is neutral. Growth that has an allowance is judged by its rate, in ``health``."""
    of_life = option(of, "of_life") is True
    was, now = (0 if value == () else value for value in (was, now))
    # harmless however much it grows, a share of time, or a part of a total
    uncounted = of[-1].unit == "ns" or option(of, "most") is not None or (option(of, "any") is not None and not of_life)
    if uncounted or not isinstance(was, int) or not isinstance(now, int):
        return
    lasts = continues or of_life
    base = was if lasts else 0
    if (now == was and (lasts or not now)) or (not lasts and 0 < now <= of[-1].more.get("at_boot", 0)):
        return
    reset = now < base or not now
    grave = option(of, "limit") == 0 or option(of, "better") == "less"
    change: Change = "reset" if reset else "grown"
    since = "counter was reset" if reset else f"{now - base} since {'OLD' if lasts else 'the reboot'}"
    yield Difference(
        kind="worse" if grave and not reset else "neutral", area="counter", change=change, device=device, bdf=bdf,
        what=_what(of), old=was, new=now, message=f"{label(of)}: {arrow(was, now)} ({since})",
    )  # fmt: skip


def _area(of: Rows) -> Area:
    record = of[0].record
    module = _AREAS_OF.get(record.__module__.rpartition(".")[2], "hardware")
    return _AREAS.get(of[-1].nature) or _AREAS_OF.get(record.__name__, module)


def _what(of: Rows) -> str:
    """``power-limit``: the label, which stays."""
    return label(of).lower().replace(" ", "-")


def _plain(value: Value) -> bool | int | float | str | None:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


def _parts(old: Iterator[_Found], new: Iterator[_Found]) -> Iterator[Difference]:
    """NUMA nodes and memory controllers that one side alone has, where the other has some."""
    was_there, is_there = ({key for key, *_ in found} for found in (old, new))
    for kind, words in _COUNTED.items():
        before, after = ({key[-1] for key in keys if key[0] == kind} for keys in (was_there, is_there))
        if before and after and before != after:
            was, now = len(before), len(after)
            yield Difference(
                kind="neutral" if was == now else judged(was, now, more_is_better=True), area="host", change="changed",
                device="host", bdf=None, what=words.lower().replace(" ", "-"), old=was, new=now,
                message=f"{words}: {arrow(was, now)}",
            )  # fmt: skip
