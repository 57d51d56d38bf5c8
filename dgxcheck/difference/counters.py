"""Error counters that have grown: those of a GPU's life, and those that begin anew with each boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.difference.fabric import ports
from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Difference, Side, arrow, same_boot
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record

PORT = {
    "symbol_error": False, "link_error_recovery": False, "link_downed": True, "port_rcv_errors": False,
    "local_link_integrity_errors": False, "excessive_buffer_overrun_errors": False,
}  # fmt: skip
"""Counters of an HCA's port (``/sys/class/infiniband/*/ports/*/counters``); is their growth worse?"""


class Counter(Record, kw_only=False):
    """One reading."""

    count: int
    grave: bool
    """Is growth worse? Corrected errors come and go; checks judge their rate."""
    of_life: bool
    """Does it go on through boots?"""
    bdf: str | None


Key = tuple[str, str]
"""Device as the new side names it, and the counter."""


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """A counter that fell was reset, and that is all that is known of it."""
    pairs = [pair for pair in devices.devices if pair.same]
    before = _counters(old, {pair.old.name: pair.either.name for pair in pairs if pair.old},
                       {pair.old.bdf: pair.either.bdf for pair in pairs if pair.old})  # fmt: skip
    after = _counters(new, {pair.either.name: pair.either.name for pair in pairs},
                      {pair.either.bdf: pair.either.bdf for pair in pairs})  # fmt: skip
    going_on = same_boot(old, new)
    for key, now in after.items():
        if (was := before.get(key)) is not None:
            yield from _grown(key, was.count, now, going_on or now.of_life)


def _grown(key: Key, was: int, now: Counter, going_on: bool) -> Iterator[Difference]:
    device, what = key
    base = was if going_on else 0
    if now.count == was and (going_on or not now.count):
        return
    reset = now.count < base or (not going_on and not now.count)
    events = now.count - base
    since = f"{events} since then" if going_on else f"{events} since the machine was started again"
    words = f"{what}: {arrow(was, now.count)}"
    yield Difference(
        kind="worse" if now.grave and not reset else "neutral", area="counter", change="reset" if reset else "grown",
        device=device, bdf=now.bdf, what=what, old=was, new=now.count,
        message=f"{words}, which is a reset" if reset else f"{words}, {since}",
    )  # fmt: skip


def _counters(side: Side, names: Mapping[str, str], places: Mapping[str | None, str | None]) -> dict[Key, Counter]:
    """A board that the other side has not has no history."""
    found: dict[Key, Counter] = {}
    called = {bdf: device.name for device in side.topology.devices if (bdf := device.bdf)}

    def put(bdf: str, what: str, count: int | Missing, grave: bool, of_life: bool = False, link: str = "") -> None:
        name = names.get(called[bdf]) if bdf in called else bdf
        if name is not None and not isinstance(count, Missing):
            found[f"{name}{link}", what] = Counter(count, grave, of_life, places.get(bdf, bdf) if ":" in bdf else None)

    facts = side.snapshot
    for ecc in () if isinstance(facts.gpu_ecc, Missing) else facts.gpu_ecc:
        put(ecc.bdf, "ecc-volatile-uncorrected", ecc.volatile_uncorrected.total, True)
        put(ecc.bdf, "ecc-volatile-corrected", ecc.volatile_corrected.total, False)
        put(ecc.bdf, "ecc-aggregate-uncorrected", ecc.aggregate_uncorrected.total, True, True)
        put(ecc.bdf, "ecc-aggregate-corrected", ecc.aggregate_corrected.total, False, True)
    for gpu in () if isinstance(facts.gpu_counters, Missing) else facts.gpu_counters:
        put(gpu.bdf, "pcie-replays", gpu.pcie_replays, False)
    for row in () if isinstance(facts.nvlink_errors, Missing) else facts.nvlink_errors:
        for what, grave in (("replay", False), ("recovery", True), ("crc_flit", False), ("crc_data", False)):
            put(row.bdf, f"nvlink-{what.replace('_', '-')}", getattr(row, what), grave, link=f" link {row.link}")
    for device in () if isinstance(facts.aer, Missing) else facts.aer:
        for severity in ("correctable", "nonfatal", "fatal"):
            errors = getattr(device, severity)
            if not isinstance(errors, Missing):
                put(device.bdf, f"aer-{severity}", errors.total, severity != "correctable")
    for controller in () if isinstance(facts.edac, Missing) else facts.edac:
        put(controller.name, "edac-corrected", controller.corrected, False)
        put(controller.name, "edac-uncorrected", controller.uncorrected, True)
    return found | _of_ports(side, names, places)


def _of_ports(side: Side, names: Mapping[str, str], places: Mapping[str | None, str | None]) -> dict[Key, Counter]:
    found: dict[Key, Counter] = {}
    for device in side.topology.devices:
        if device.kind != "nic" or device.name not in names:
            continue
        for number, port in ports(side, device.name).items():
            counters = {} if isinstance(port.counters, Missing) else port.counters
            for what, grave in PORT.items():
                count = counters.get(what)
                if isinstance(count, int):
                    key = f"{names[device.name]}/{number}", what.replace("_", "-")
                    found[key] = Counter(count, grave, False, places.get(device.bdf, device.bdf))
    return found
