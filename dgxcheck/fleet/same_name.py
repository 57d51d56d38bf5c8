"""Names and machines: which names are those of one host, which machines share a name, which names a machine."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.node import EXCHANGE_S, VERDICTS, Identity, Node, Result, in_order, node_of, worst
from dgxcheck.fleet.node_names import counted_order
from dgxcheck.source.state_file import seconds_of

_DAY_S = 86400
"""Before the newest result of a name: who shared it earlier has got a name of its own since."""


def same_node(a: str, b: str) -> bool:
    """With or without their domain, in capitals or not."""
    a, b = a.lower(), b.lower()
    return a == b or (a.partition(".")[0] == b.partition(".")[0] and ("." in a) != ("." in b))


def another_of_series(a: str, b: str) -> bool:
    """``dgx007`` and ``dgx008``: names that differ in a number alone."""
    one, other = (counted_order(name.lower().partition(".")[0]) for name in (a, b))
    return one != other and [text for _, text in one] == [text for _, text in other]


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
    results = _told_apart(results)
    machines = sharing(results)
    if not machines:
        return node_of(results, oldest)
    nodes = [node_of(own, oldest) for own in _by_machine(results, machines)]
    newest = max(nodes, key=lambda node: node.newest.generated_at)
    faults = [fault for node in nodes for fault in node.faults]
    return replace(
        newest,
        faults=tuple(sorted(faults, key=lambda each: VERDICTS.index(each.fault.status))),
        verdict=worst("unknown", *(node.verdict for node in nodes)),
        machines=tuple(machines),
    )


def _same(a: Identity, b: Identity) -> bool | None:
    """Are two results of one name of one machine? None where that is open: a single part can be exchanged in minutes,
    not all of several.
    """
    if a.boots & b.boots:
        return True
    if a.machine and b.machine:
        return a.machine == b.machine
    if a.parts & b.parts:
        return True
    return False if min(len(a.parts), len(b.parts)) > 1 else None


def _told_apart(results: Sequence[Result]) -> Sequence[Result]:
    """The results of one name, each with its machine: by serial number, or where only root could read it by parts."""
    if len(results) < 2:
        return results
    machines: list[Identity] = []
    owner: list[int | None] = []
    ordered = sorted(results, key=in_order)
    for mine in (result.identity for result in ordered):
        same = [_same(its, mine) for its in machines]
        found = next((number for number, yes in enumerate(same) if yes), None)
        if found is not None:
            its = machines[found]
            machines[found] = Identity(
                its.machine or mine.machine, its.boots | mine.boots, its.gpus | mine.gpus, its.parts | mine.parts
            )
        elif None not in same and (mine.machine or mine.parts):
            found = len(machines)
            machines.append(mine)
        owner.append(found)
    names = [its.machine or min(its.gpus or its.parts) for its in machines]
    return [replace(result, machine="" if number is None else names[number])
            for result, number in zip(ordered, owner, strict=True)]  # fmt: skip


def one_machine(nodes: Mapping[str, Node]) -> Mapping[str, str]:
    """Nodes whose newest results are of the machine of another one, and that one: by boot, by serial numbers.

    A machine that got another name has that of its newest result, once the time has passed that an exchange takes.
    """
    live = [(name, node.newest) for name, node in nodes.items() if node.newest.live]
    alike = gathered((mark, name) for name, newest in live for mark in _marks(newest.identity))
    found: dict[str, str] = {}
    for names in alike.values():
        if len(names) < 2:
            continue
        dates = {name: seconds_of(nodes[name].newest.generated_at) for name in names}
        last, other, *_ = sorted(names, key=lambda name: (-dates[name], name))
        found.update({name: last for name in names if name != last})
        if dates[last] - dates[other] < EXCHANGE_S:
            found.setdefault(last, other)
    return found


def _marks(identity: Identity) -> Iterator[Hashable]:
    """No two machines have one of these in common: virtual ones can have the serial number of their host, and GPUs of
    one board.
    """
    yield from identity.boots
    if len(identity.gpus) > 1:
        yield identity.gpus
    if identity.machine:
        yield identity.machine, identity.gpus


def sharing(results: Sequence[Result]) -> list[str]:
    """Serial numbers of machines that share a host name: of one that was exchanged no later result is to be expected,
    nor one of its successor within an hour.
    """
    dated = sorted((each.generated_at, each.machine) for each in results if each.machine)
    if len({machine for _, machine in dated}) < 2:
        return []
    seconds = [(seconds_of(date), machine) for date, machine in dated]
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
