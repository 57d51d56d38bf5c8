"""A machine of a fleet: its results, and the faults that none of them shows to be gone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from dgxcheck.facts.record import Record
from dgxcheck.source.state_file import seconds_of

Level = Literal["quick", "default", "extended"]
LEVELS: tuple[Level, ...] = ("quick", "default", "extended")
"""Each runs all checks of the one before."""
NodeVerdict = Literal["pass", "warn", "unknown", "fail"]
VERDICTS: tuple[NodeVerdict, ...] = ("fail", "unknown", "warn", "pass")
"""The worst first."""


def worst(*words: NodeVerdict) -> NodeVerdict:
    """The worst of some, at least one."""
    return min(words, key=VERDICTS.index)


COMPARED = ("GB/s", "Gb/s", "us", "TFLOP/s", "W", "MHz", "MiB")
"""Units of what machines alike have alike; temperatures depend on the load, and counters on the age."""
EXCHANGE_S = 3600
"""In which no machine is exchanged for another."""
INVENTORY = "host.inventory"
"""The check that compares with the last run on the node itself."""


class NodeFault(Record, kw_only=False):
    """A finding that did not pass, and that the site has not acknowledged."""

    key: str
    check: str
    status: NodeVerdict
    word: str
    """The fault; empty for what could not be read."""
    message: str
    subject: str
    action: str
    figure: str = ""
    """``x8 of x16``; empty for a fault without a figure."""
    cause: str = ""
    """Id of the component that is to blame; empty where none is."""
    step: str = ""
    """The first step that can help, of the catalogue of actions."""


class LikeMachines(Record, kw_only=False):
    """What machines have to have in common before their figures are compared."""

    profile: str
    """Empty without a reference machine."""
    gpus: str
    """``8 x Tesla V100-SXM2-16GB``."""
    driver: str

    @property
    def model(self) -> str:
        """``Tesla V100-SXM2-16GB``, however many."""
        return ", ".join(each.partition(" x ")[2] for each in self.gpus.split(", "))


class GpuLinks(Record, kw_only=False):
    """NVLinks of one GPU of a machine that shares its NVLink domain."""

    wired: int
    down: tuple[int, ...] = ()

    @property
    def up(self) -> int:
        return self.wired - len(self.down)


class Identity(Record, kw_only=False):
    """What tells a machine from others; what is not known is empty."""

    machine: str = ""
    """Its serial number, which only root reads."""
    boots: frozenset[str] = frozenset()
    """Ids that the kernel made when it started."""
    gpus: frozenset[str] = frozenset()
    """Their serial numbers."""
    parts: frozenset[str] = frozenset()
    """Serial numbers of all parts, the GPUs among them."""


class Result(Record):
    """What is kept of one result; figures are kept apart, by key."""

    node: str
    live: bool
    """Asked of the machine itself; a recording or a text proves nothing about a machine as it is now."""
    generated_at: str
    """UTC, ``2026-11-20T12:00:00Z``: sorts as text."""
    level: Level
    verdict: NodeVerdict
    score: float | None
    group: LikeMachines
    versions: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, tuple[str, ...]]
    """Empty in results of older releases."""
    nvlink_domains: tuple[str, ...]
    """``CLUSTER_UUID.CLIQUE`` of domains that join several machines."""
    nvlinks: Mapping[str, GpuLinks]
    """By GPU; empty where there is no such domain, and in results of older releases."""
    faults: tuple[NodeFault, ...]
    passed: Collection[str]
    """Keys of the findings that passed: one object for all machines that pass the same."""
    skipped: frozenset[str]
    """Ids of the checks that did not judge every subject."""
    devices: Mapping[str, int] = {}
    """GPUs and HCAs, without those that could not be counted."""
    accepted: frozenset[str] = frozenset()
    """Keys of findings that the site acknowledges."""
    machine: str = ""
    """Its serial number, else one of a part; empty where none is known."""
    identity: Identity = Identity()
    tool_version: str = ""
    """Of dgxcheck."""
    coverage: float | None = None
    """Part of the score that could be read; None without a reference machine."""
    unread: frozenset[str] = frozenset()
    """Ids of the checks that did not judge every subject for lack of rights or in a container."""
    gpus_at: frozenset[str] = frozenset()
    """Bus ids of the GPUs that have a serial number."""


class OpenFault(Record, kw_only=False):
    """A fault, and where it was last found."""

    fault: NodeFault
    level: Level
    found_at: str
    machine: str = ""
    """The serial number of the machine that has it; empty where it is not known."""


class Node(Record, kw_only=False):
    """One machine of the fleet."""

    name: str
    newest: Result
    faults: tuple[OpenFault, ...]
    """Those that no newer result has proven right, the worst first."""
    verdict: NodeVerdict
    """The worst of the newest result and of what is still open; at least unknown where that result is stale."""
    stale: bool
    """Its newest result is too old to prove anything."""
    machines: tuple[str, ...] = ()
    """Serial numbers of the machines that share its name; empty for a name of one machine."""
    same_as: str = ""
    """Another node whose results are of the same machine; empty where there is none."""

    @property
    def shared(self) -> str:
        """Which machines share its name; empty for a name of one machine."""
        numbers = ", ".join(self.machines)
        return f"results of {len(self.machines)} machines, serial numbers {numbers}" if numbers else ""

    @property
    def current(self) -> bool:
        """Is the newest result one of the machine as it is now?"""
        return self.newest.live and not self.stale

    @property
    def unproven(self) -> tuple[OpenFault, ...]:
        """Faults that the newest result does not report, and has not proven right either."""
        return tuple(fault for fault in self.faults if fault.found_at < self.newest.generated_at)


def in_order(result: Result) -> tuple[str, int, int]:
    """By date; at one date those of a higher level last, and of one level the worst."""
    return result.generated_at, LEVELS.index(result.level), -VERDICTS.index(result.verdict)


def node_of(results: Sequence[Result], oldest: str = "") -> Node:
    """The state of a machine after all its results, at least one; a newest one from before ``oldest`` is stale."""
    ordered = sorted(results, key=in_order)
    found: dict[str, OpenFault] = {}
    most: dict[str, tuple[int, str]] = {}
    for result in ordered:
        found = {key: each for key, each in found.items() if not proven(each, result)}
        for fault in result.faults:
            found[fault.key] = open_after(result, fault, found.get(fault.key))
        _count(result, most, found)
    newest = ordered[-1]
    faults = sorted(found.values(), key=lambda each: VERDICTS.index(each.fault.status))
    stale = newest.generated_at < oldest
    verdict = worst(newest.verdict, "unknown" if stale else "pass", *(each.fault.status for each in faults))
    return Node(newest.node, newest, tuple(faults), verdict, stale)


def open_after(result: Result, fault: NodeFault, before: OpenFault | None = None) -> OpenFault:
    """A fault of a result; one that was open ``before`` still takes a result of its own level to be proven gone."""
    level = result.level if before is None else max(before.level, result.level, key=LEVELS.index)
    return OpenFault(fault, level, result.generated_at, result.machine)


def _count(result: Result, most: dict[str, tuple[int, str]], found: dict[str, OpenFault]) -> None:
    """Fewer devices than in an earlier result are a fault, also on a machine that was reinstalled and forgot them."""
    own = {fault.key for fault in result.faults}
    for kind, number in result.devices.items():
        key, (before, date) = f"{INVENTORY}/{kind}", most.get(kind, (0, ""))
        if number >= before or key in result.accepted:
            most[kind] = number, result.generated_at
            if key not in own:
                found.pop(key, None)
        elif key not in own:
            lost = NodeFault(
                key=key, check=INVENTORY, status="fail", word=f"{kind.lower()}-missing", subject="host",
                message=f"{number} {kind}{'s' * (number != 1)}, was {before} on {date[:10]}",
                action="look for the missing device in the kernel log of the node; if it was removed on purpose,"
                f" acknowledge {INVENTORY} there",
            )  # fmt: skip
            found[key] = open_after(result, lost)


def proven(found: OpenFault, result: Result) -> bool:
    """Does a newer result prove that the fault is gone?

    It has to come from the level that found the fault, or a higher one, and the check has to have judged there: the
    same finding passes, or the check judged everything and reports this no more (a line of the kernel log, a device
    that was exchanged for another at the same place). Another machine of that name proves nothing before it can have
    been put in the place of the one that has the fault.
    """
    if found.machine and result.machine not in ("", found.machine):
        found_s, result_s = map(seconds_of, (found.found_at, result.generated_at))
        if result_s - found_s < EXCHANGE_S:
            return False
    if LEVELS.index(result.level) < LEVELS.index(found.level):
        return False
    if found.fault.key in result.passed:
        return True
    seen_again = any(fault.check == found.fault.check for fault in result.faults)
    ran = any(key.partition("/")[0] == found.fault.check for key in result.passed)
    return ran and not seen_again and found.fault.check not in result.skipped
