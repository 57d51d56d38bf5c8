"""Error counters that have grown: lifetime counters, and those that restart at each boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.difference.fabric import ports
from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Difference, Side, arrow, same_boot
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.record import Record

PORT = {
    "symbol_error": False, "link_error_recovery": False, "link_downed": True, "port_rcv_errors": False,
    "local_link_integrity_errors": False, "excessive_buffer_overrun_errors": False,
}  # fmt: skip
"""Counters of an HCA's port (``/sys/class/infiniband/*/ports/*/counters``); is growth worse?"""


class Counter(Record, kw_only=False):
    """One reading of a counter."""

    count: int
    grave: bool
    """Is growth worse? Not for corrected errors, whose rate the checks judge."""
    of_life: bool
    """Does it survive a reboot?"""
    bdf: str | None


CounterKey = tuple[str, str]
"""Device name on the new side, and name of the counter."""


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """Counters of devices on both sides; one that fell was reset, and is neutral."""
    pairs = [pair for pair in devices.devices if pair.same]
    before = _counters(old, {pair.old.name: pair.either.name for pair in pairs if pair.old},
                       {pair.old.bdf: pair.either.bdf for pair in pairs if pair.old})  # fmt: skip
    after = _counters(new, {pair.either.name: pair.either.name for pair in pairs},
                      {pair.either.bdf: pair.either.bdf for pair in pairs})  # fmt: skip
    continues = same_boot(old, new)
    for key, now in after.items():
        if (reading := before.get(key)) is not None:
            yield from _grown(key, reading.count, now, continues or now.of_life)


def _grown(key: CounterKey, was: int, now: Counter, continues: bool) -> Iterator[Difference]:
    device, what = key
    base = was if continues else 0
    if now.count == was and (continues or not now.count):
        return
    reset = now.count < base or (not continues and not now.count)
    events = now.count - base
    since = f"{events} since OLD" if continues else f"{events} since the reboot"
    change = f"{what}: {arrow(was, now.count)}"
    yield Difference(
        kind="worse" if now.grave and not reset else "neutral", area="counter", change="reset" if reset else "grown",
        device=device, bdf=now.bdf, what=what, old=was, new=now.count,
        message=f"{change} (counter was reset)" if reset else f"{change} ({since})",
    )  # fmt: skip


def _counters(side: Side, names: Mapping[str, str], bdfs: Mapping[str | None, str | None]) -> dict[CounterKey, Counter]:
    """Readings by device name and counter; ``names`` are device names to those of the new side, others are left out."""
    counters: dict[CounterKey, Counter] = {}
    device_names = {bdf: device.name for device in side.topology.devices if (bdf := device.bdf)}

    def add(bdf: str, what: str, count: int | Missing, grave: bool, of_life: bool = False, link: str = "") -> None:
        name = names.get(device_names[bdf]) if bdf in device_names else bdf
        if name is not None and not isinstance(count, Missing):
            counters[f"{name}{link}", what] = Counter(count, grave, of_life, bdfs.get(bdf, bdf) if ":" in bdf else None)

    facts = side.snapshot
    for ecc in rows(facts.gpu_ecc):
        add(ecc.bdf, "ecc-volatile-uncorrected", ecc.volatile_uncorrected.total, True)
        add(ecc.bdf, "ecc-volatile-corrected", ecc.volatile_corrected.total, False)
        add(ecc.bdf, "ecc-aggregate-uncorrected", ecc.aggregate_uncorrected.total, True, True)
        add(ecc.bdf, "ecc-aggregate-corrected", ecc.aggregate_corrected.total, False, True)
    for gpu in rows(facts.gpu_counters):
        add(gpu.bdf, "pcie-replays", gpu.pcie_replays, False)
    for row in rows(facts.nvlink_errors):
        for what, grave in (("replay", False), ("recovery", True), ("crc_flit", False), ("crc_data", False)):
            add(row.bdf, f"nvlink-{what.replace('_', '-')}", getattr(row, what), grave, link=f" link {row.link}")
    for device in rows(facts.aer):
        for severity in ("correctable", "nonfatal", "fatal"):
            errors = getattr(device, severity)
            if not isinstance(errors, Missing):
                add(device.bdf, f"aer-{severity}", errors.total, severity != "correctable")
    for controller in rows(facts.edac):
        add(controller.name, "edac-corrected", controller.corrected, False)
        add(controller.name, "edac-uncorrected", controller.uncorrected, True)
    return counters | _of_ports(side, names, bdfs)


def _of_ports(side: Side, names: Mapping[str, str], bdfs: Mapping[str | None, str | None]) -> dict[CounterKey, Counter]:
    readings: dict[CounterKey, Counter] = {}
    for device in side.topology.devices:
        if device.kind != "nic" or device.name not in names:
            continue
        for number, port in ports(side, device.name).items():
            counters = {} if isinstance(port.counters, Missing) else port.counters
            for what, grave in PORT.items():
                count = counters.get(what)
                if isinstance(count, int):
                    key = f"{names[device.name]}/{number}", what.replace("_", "-")
                    readings[key] = Counter(count, grave, False, bdfs.get(device.bdf, device.bdf))
    return readings
