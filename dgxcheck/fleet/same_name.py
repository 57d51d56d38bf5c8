"""Results of one host name: which names are those of one host, and which machines share a name."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from time import strptime

from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.node import EXCHANGE_S, VERDICTS, Node, Result, node_of
from dgxcheck.source.state_file import DATE

_DAY_S = 86400
"""Before the newest result of a name: who shared it earlier has got a name of its own since."""


def same_node(a: str, b: str) -> bool:
    """With or without their domain, in capitals or not."""
    a, b = a.lower(), b.lower()
    return a == b or (a.partition(".")[0] == b.partition(".")[0] and ("." in a) != ("." in b))


def one_name(found: Iterable[str], expected: Collection[str]) -> Mapping[str, str]:
    """Other names of a host that is called with its domain here and without it there, or in capitals: the expected one,
    else the short one, else that in small letters.
    """
    named = {name.lower() for name in expected}
    of_host = gathered((name.lower().partition(".")[0], name) for name in sorted({*found, *expected}))
    return {
        name: one
        for host, names in of_host.items()
        for alike in _alike(host, names, named)
        for one in [min(alike, key=lambda name: (name not in expected, "." in name, name != name.lower(), name))]
        for name in alike
        if name != one
    }


def _alike(host: str, names: Sequence[str], named: Collection[str]) -> Iterable[list[str]]:
    """Names of one host each: with several domains, or expected under both names, they are several hosts."""
    spelled = gathered((name.lower(), name) for name in names)
    apart = len(spelled) > 2 or host not in spelled or all(name in named for name in spelled)
    return spelled.values() if apart else [[*names]]


def node_by_machine(results: Sequence[Result], oldest: str = "") -> Node:
    """The state of a node as ``node_of`` has it; of machines that share its name the worst, and at least unknown.

    What one of them found, another does not prove right, nor does a result without a serial number.
    """
    machines = sharing(results)
    if not machines:
        return node_of(results, oldest)
    nodes = [node_of(own, oldest) for own in _by_machine(results, machines)]
    newest = max(nodes, key=lambda node: node.newest.generated_at)
    words = {"unknown", *(node.verdict for node in nodes)}
    faults = [fault for node in nodes for fault in node.faults]
    return replace(
        newest,
        faults=tuple(sorted(faults, key=lambda each: VERDICTS.index(each.fault.status))),
        verdict=next(word for word in VERDICTS if word in words),
        machines=tuple(machines),
    )


def sharing(results: Sequence[Result]) -> list[str]:
    """Serial numbers of machines that share a host name: of one that was exchanged no later result is to be expected,
    nor one of its successor within an hour.
    """
    dated = sorted((each.generated_at, each.machine) for each in results if each.machine)
    if len({machine for _, machine in dated}) < 2:
        return []
    seconds = [(timegm(strptime(date, DATE)), machine) for date, machine in dated]
    recent = [each for each in seconds if each[0] > seconds[-1][0] - _DAY_S]
    turns = [(serial, [at for at, _ in those]) for serial, those in groupby(recent, key=lambda each: each[1])]
    serials = {serial for serial, _ in turns}
    soon = any(later[0] - earlier[-1] < EXCHANGE_S for (_, earlier), (_, later) in pairwise(turns))
    return sorted(serials) if soon or len(turns) > len(serials) else []


def _by_machine(results: Iterable[Result], machines: Collection[str]) -> list[list[Result]]:
    """Of each machine, after those of its predecessors; results without a serial number are a machine of their own."""
    found = gathered((each.machine, each) for each in results)
    before = [each for machine, those in found.items() if machine and machine not in machines for each in those]
    return [[*before, *found[machine]] for machine in (*machines, "") if machine in found]
