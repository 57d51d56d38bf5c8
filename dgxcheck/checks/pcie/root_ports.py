"""Error messages that root ports received from below and that no device there accounts for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import AerDevice, AerErrors
from dgxcheck.topology.model import Topology

_WORST_FIRST = ("fatal", "nonfatal", "correctable")


def messages_from(
    topology: Topology,
    rows: Collection[AerDevice],
    earlier: Collection[AerDevice] = (),
    kinds: Sequence[str] = _WORST_FIRST,
) -> Iterator[tuple[str, tuple[str, int]]]:
    """By bus id of each root port the worst kind of error and how many messages of it; new ones where ``earlier``
    counted some already.

    A device sends a message per error, or one for several that it counts: what port and devices below count explains
    as many messages. Where a device below is not read at all its counters are not known, and its messages stand here.
    """
    old = {row.bdf: row for row in earlier}
    for row in rows:
        if row.root_port is None:
            continue
        before = old.get(row.bdf)
        for kind in kinds:
            now = getattr(row.root_port, kind)
            was = 0 if before is None or before.root_port is None else getattr(before.root_port, kind)
            if isinstance(now, Missing) or isinstance(was, Missing) or (earlier and before is None) or now <= was:
                continue
            own = [each for each in rows if _is_below(topology, each.bdf, row.bdf)]
            counted = sum(total(getattr(each, kind)) for each in own)
            counted -= sum(total(getattr(old[each.bdf], kind)) for each in own if each.bdf in old)
            if now - was > max(counted, 0):
                yield row.bdf, (kind, now - was - max(counted, 0))
                break


def _is_below(topology: Topology, bdf: str, port: str) -> bool:
    """Is it the port itself, or a function below it?"""
    function = topology.functions.get(bdf)
    path = None if function is None else function.path
    return bdf == port or (isinstance(path, tuple) and port in path)


def total(errors: AerErrors | Missing) -> int:
    """All errors of one kind; 0 where they are not counted."""
    if isinstance(errors, Missing):
        return 0
    return max(sum(errors.counts.values()), errors.total if isinstance(errors.total, int) else 0)
