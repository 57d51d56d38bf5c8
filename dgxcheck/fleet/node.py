"""One node, from all its results: what is still wrong, because nothing newer has proven it right."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.record import Record
from dgxcheck.fleet.result import LEVELS, VERDICTS, Fault, Level, Result, Verdict


class OpenFault(Record, kw_only=False):
    """A fault, and where it was last found."""

    fault: Fault
    level: Level
    found_at: str


class Node(Record, kw_only=False):
    """One machine of the fleet."""

    name: str
    newest: Result
    faults: tuple[OpenFault, ...]
    """Those that no newer result has proven right, the worst first."""

    @property
    def verdict(self) -> Verdict:
        """The worst of the newest result and of what is still open."""
        words = {self.newest.verdict, *(each.fault.status for each in self.faults)}
        return next(word for word in VERDICTS if word in words)

    @property
    def unproven(self) -> tuple[OpenFault, ...]:
        """Faults that the newest result does not report, and has not proven right either."""
        told = {fault.key for fault in self.newest.faults}
        return tuple(each for each in self.faults if each.fault.key not in told)


def node_of(results: Sequence[Result]) -> Node:
    """The state of a machine after all its results; at least one."""
    ordered = sorted(results, key=lambda result: (result.generated_at, LEVELS.index(result.level)))
    found: dict[str, OpenFault] = {}
    for result in ordered:
        found = {key: each for key, each in found.items() if not proven(each, result)}
        for fault in result.faults:
            before = found.get(fault.key)
            level = result.level if before is None else max(before.level, result.level, key=LEVELS.index)
            found[fault.key] = OpenFault(fault, level, result.generated_at)
    newest = ordered[-1]
    worst = sorted(found.values(), key=lambda each: VERDICTS.index(each.fault.status))
    return Node(newest.node, newest, tuple(worst))


def proven(found: OpenFault, result: Result) -> bool:
    """Does a newer result prove that the fault is gone?

    It has to come from the level that found the fault, or a higher one, and the check has to have judged there: the
    same finding passes, or the check judged everything and reports this no more (a line of the kernel log, a device
    that was exchanged for another at the same place).
    """
    if LEVELS.index(result.level) < LEVELS.index(found.level):
        return False
    if found.fault.key in result.passed:
        return True
    told = any(fault.check == found.fault.check for fault in result.faults)
    ran = any(key.partition("/")[0] == found.fault.check for key in result.passed)
    return ran and not told and found.fault.check not in result.skipped
