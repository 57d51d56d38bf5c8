"""Link state and error counters of one moment as flat names and numbers, and what changed between two of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from dgxcheck.checks.engine.finding import Status, counted
from dgxcheck.facts.bdf import is_bdf
from dgxcheck.facts.ids import DISPLAY, NVIDIA, OTHER_BRIDGE
from dgxcheck.facts.infiniband import DOWNED, PortState, blaming, counter_row
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.pci import AerDevice, AerErrors
from dgxcheck.survey import Snapshot
from dgxcheck.watch.event import Event

PROBES = ("pci", "aer", "infiniband", "ib_ports", "edac")
"""What is read: files of sysfs alone, so that no GPU is woken up."""
MOST = 4096
"""Of a large box about 1500."""
_MOST_FUNCTIONS = 2048
"""Of more none is listed: one that is cut off would be one that is gone."""
_WIDEST = 32
"""Lanes; the state of a port is a smaller number."""
_AER = ("correctable", "nonfatal", "fatal")
_LOGGED = {"correctable": "corrected", "nonfatal": "nonfatal", "fatal": "fatal"}
"""How the kernel log calls them."""
_BAD = {"fatal": Status.FAIL, "uncorrected": Status.FAIL, "nonfatal": Status.WARN, DOWNED: Status.WARN}
"""Counters whose growth is no mere information."""
Readings = dict[str, int]
"""``function 0000:06:00.0`` (1: the kernel lists it), ``aer fatal 0000:06:00.0``, ``width 0000:06:00.0``,
``port state mlx5_0/1 0000:05:00.0``, ``port symbol_error mlx5_0/1 0000:05:00.0``, ``edac corrected mc0``.
What could not be read is not in it."""


Logged = Mapping[tuple[str, str], int]
"""By device and severity how many PCIe errors the kernel log reported since the counters were read."""


def is_reading(name: str, value: int) -> bool:
    """Can it be one? A name that never comes again would be kept for good."""
    match name.split(" "):
        case ["function" | "width", bdf]:
            return is_bdf(bdf) and value <= _WIDEST
        case ["aer", severity, bdf]:
            return is_bdf(bdf) and severity in _AER
        case ["port", "state", _, *bdf]:
            return value <= _WIDEST and all(map(is_bdf, bdf))
        case ["port", counter, _, *bdf]:
            return counter in blaming("cable") and all(map(is_bdf, bdf))
        case ["edac", kind, _]:
            return kind in ("corrected", "uncorrected")
    return False


def readings(facts: Snapshot) -> Readings:
    """All numbers of a survey."""
    functions = rows(facts.pci)
    listed = ((f"function {row.bdf}", 1) for row in functions if len(functions) <= _MOST_FUNCTIONS)
    found = dict([*_links(facts), *_memory(facts), *listed, *_aer(facts.aer), *_ports(facts)][:MOST])
    return {name: value for name, value in found.items() if isinstance(value, int)}


def watched(found: Mapping[str, int]) -> set[str]:
    """Bus ids of the GPUs, NVSwitches and adapters of a reading."""
    return {name.partition(" ")[2] for name in found if name.startswith("width ")}


def _links(facts: Snapshot) -> Iterator[tuple[str, int | Missing]]:
    """Of GPUs, NVSwitches and adapters; a width of 0 is a link that is down."""
    adapters = {device.bdf for device in rows(facts.infiniband) if device.is_vf is False}
    for row in rows(facts.pci):
        own = row.vendor == NVIDIA and (row.subclass >> 8 == DISPLAY or row.subclass == OTHER_BRIDGE)
        if own or row.bdf in adapters:
            yield f"width {row.bdf}", row.link_width


def _aer(listed: tuple[AerDevice, ...] | Missing) -> Iterator[tuple[str, int | Missing]]:
    for row in rows(listed):
        for severity in _AER:
            errors: AerErrors | Missing = getattr(row, severity)
            if not isinstance(errors, Missing):
                yield f"aer {severity} {row.bdf}", errors.total


def _ports(facts: Snapshot) -> Iterator[tuple[str, int | Missing]]:
    bdfs = {device.name: device.bdf for device in rows(facts.infiniband)}
    for device in rows(facts.ib_ports):
        for port in rows(device.ports):
            bdf = bdfs.get(port.device)
            where = f"{port.device}/{port.port} {bdf if isinstance(bdf, str) else ''}".strip()
            yield f"port state {where}", port.state
            counters = {} if isinstance(port.counters, Missing) else port.counters
            yield from ((f"port {name} {where}", counters[name]) for name in blaming("cable") if name in counters)


def _memory(facts: Snapshot) -> Iterator[tuple[str, int | Missing]]:
    for controller in rows(facts.edac):
        yield f"edac corrected {controller.name}", controller.corrected
        yield f"edac uncorrected {controller.name}", controller.uncorrected


def is_blind(old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    """Is nothing read, where something was?"""
    return bool(old) and not new


def _listed(found: Mapping[str, int]) -> set[str]:
    return {name.partition(" ")[2] for name in found if name.startswith("function ")}


def gone(old: Mapping[str, int], new: Mapping[str, int]) -> set[str]:
    """Bus ids of GPUs, NVSwitches and adapters that the kernel no longer lists, whether it sent an event or not."""
    listed = _listed(new)
    return (watched(old) & _listed(old)) - listed if listed else set()


def merged(old: Mapping[str, int], new: Mapping[str, int]) -> Readings:
    """The new ones, and the old ones of what could not be read now."""
    return dict([*({**new} | {name: value for name, value in old.items() if name not in new}).items()][:MOST])


def unlisted(found: Mapping[str, int], bdfs: Collection[str]) -> Readings:
    """Once these devices are known to be gone; how wide their links were is compared with if they come back."""
    removed = {f"function {bdf}" for bdf in bdfs}
    return {name: value for name, value in found.items() if name not in removed}


def changes(old: Mapping[str, int], new: Mapping[str, int], logged: Logged | None = None) -> list[Event]:
    """What grew or changed, without growth by no more than what was ``logged``.

    A counter that fell was reset, and one that was not read before has no growth. Whether growth is a fault is
    judged by ``health``: here it is news.
    """
    differing = ((name, value) for name, value in new.items() if old.get(name, value) != value)
    found = (_change(name, old[name], value, logged or {}) for name, value in differing)
    return [event for event in found if event is not None]


def _change(name: str, old: int, new: int, logged: Logged) -> Event | None:
    group, what, *where = name.split(" ")
    if group == "width":
        status = Status.WARN if new < old else Status.PASS
        now, before = (f"x{width}" if width else "down" for width in (new, old))
        return Event(kind="link", status=status, bdf=what, code="width", text=f"PCIe link {now}, was {before}")
    if group == "port" and what == "state":
        return _port(where, old, new)
    if new <= old:
        return None
    more = new - old
    bdf = where[-1] if ":" in where[-1] else ""
    if group == "aer":
        if more <= logged.get((bdf, _LOGGED[what]), 0):  # of a flood the kernel logs a few
            return None
        text = counted(new, f"{what} PCIe error")
    elif group == "edac":
        text = f"{counted(new, f'{what} memory error')} at {where[0]}"
    else:
        saturated = " (saturated)" if new == counter_row(what).more.get("ceiling") else ""
        text = f"{where[0]}: {what} {new}{saturated}"
    code = f"{group} {what}" if bdf and group == "aer" else f"{group} {what} {where[0]}"
    return Event(kind="counter", status=_BAD.get(what, Status.PASS), bdf=bdf, code=code, text=text, count=more)


def _port(where: list[str], old: int, new: int) -> Event:
    status = Status.PASS if new == PortState.ACTIVE or old < new < PortState.ACTIVE else Status.WARN
    bdf = where[1] if len(where) > 1 else ""
    text = f"port {where[0]} {_state(new)}, was {_state(old)}"
    return Event(kind="port", status=status, bdf=bdf, code=where[0], text=text)


def _state(number: int) -> str:
    try:
        return PortState(number).name
    except ValueError:
        return str(number)
