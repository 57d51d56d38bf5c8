"""Results of many machines, judged together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import comb
from time import gmtime, strftime, time

from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.device_counts import CountDifference, count_differences, rare
from dgxcheck.fleet.document import Figures, NotAResult, SharedStrings, result_of
from dgxcheck.fleet.judged_less import JudgedLess, judged_less
from dgxcheck.fleet.node import VERDICTS, Node, NodeVerdict, OpenFault, Result, worst
from dgxcheck.fleet.nvlink_racks import apart
from dgxcheck.fleet.outliers import FigureColumns, FleetFigure, Outlier, farthest
from dgxcheck.fleet.reading import Unread, documents
from dgxcheck.fleet.same_name import node_by_machine, one_machine, one_name, same_node
from dgxcheck.source.state_file import DATE

MAX_AGE_S = 86400.0
"""A result that is older proves nothing: what broke since is not in it."""
_CLOCK_SKEW_S = 300
"""By which clocks of hosts may differ."""
COMMON_SHARE = 0.1
"""A fault on more than a tenth of the nodes has a common reason: a profile, an image, a driver, a fabric."""
_COMMON_LEAST = 3
_CHANCE = 0.001
"""Below which it is no chance that all nodes with a fault have a version that others alike do not have."""
_NEARLY_ALL = 0.8
"""Of the nodes with a version have the fault, where it separates these from others."""


_FEW_VALUES = 4
"""So many are listed on few nodes too."""
_LONG = 40
"""Characters: a command line, and no version."""


class KindOfFault(Record, kw_only=False):
    """One kind of fault, and where it is."""

    check: str
    word: str
    """The fault; empty for what could not be read."""
    status: NodeVerdict
    nodes: Mapping[str, OpenFault]
    """The worst of each node."""
    common: bool
    """On so many nodes that it has one reason."""
    version: str = ""
    """``driver 570.172.08``, ``NVLink domain ..``, where all of these nodes have it and nearly all that have it have
    the fault; empty without a common fault."""
    having: int = 0
    """Nodes that have this version."""


class VersionDifference(Record, kw_only=False):
    """A version or setting that not all machines with the same GPUs have."""

    is_setting: bool
    name: str
    gpus: str
    nodes: Mapping[str, tuple[str, ...]]
    """By value, the most common first."""

    @property
    def rare(self) -> tuple[str, ...]:
        """Nodes with one that few have."""
        return rare(self.nodes)


class Fleet(Record):
    """What is known of a fleet."""

    nodes: Mapping[str, Node]
    """By name."""
    silent: tuple[str, ...]
    """Expected nodes without a result."""
    kinds: tuple[KindOfFault, ...]
    """The worst first, then the most frequent."""
    figures: tuple[FleetFigure, ...]
    """Those in which nodes are off the median of the fleet, the farthest off first."""
    differences: tuple[VersionDifference, ...]
    unread: tuple[Unread, ...]
    results: int
    """How many were read: a node can have several."""
    device_counts: tuple[CountDifference, ...] = ()
    """Numbers of GPUs and HCAs that few of the nodes alike have."""
    judged_less: tuple[JudgedLess, ...] = ()
    """By node."""

    @property
    def verdict(self) -> NodeVerdict:
        """The worst of all nodes; at least unknown where a node or a file has no result, and warn where counts of
        devices differ, few have a version, setting or NVLink clique, figures are off, or nodes were judged by less than
        others.
        """
        few = self.apart or any(each.rare for each in self.differences)
        odd = few or self.device_counts or self.figures or self.judged_less
        least: NodeVerdict = "unknown" if self.silent or self.unread or not self.nodes else "warn" if odd else "pass"
        return worst(least, *(node.verdict for node in self.nodes.values()))

    @property
    def apart(self) -> frozenset[str]:
        """Nodes in an NVLink clique that few of their cluster have."""
        return apart(self.nodes)

    @property
    def outliers(self) -> tuple[Outlier, ...]:
        """Of all figures, the farthest off first."""
        return farthest(self.figures)

    def with_verdict(self, verdict: NodeVerdict) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(name for name, node in self.nodes.items() if node.verdict == verdict)


def judge(
    specs: Iterable[str], expected: Sequence[str] = (), max_age_s: float = MAX_AGE_S, now_s: float | None = None
) -> Fleet:
    """Read results from files, folders or ``-`` and judge them together; ``expected`` nodes have to be among them.

    A result is a claim: one that is dated in the future does not count, for it would outlive every newer one, nor does
    one of another node in a file that is called after an expected node.
    """
    wanted = frozenset(name.lower() for name in expected)
    now_s = time() if now_s is None else now_s
    shared, columns = SharedStrings(), FigureColumns()
    results: list[Result] = []
    unread: list[Unread] = []
    for where, _, result, figures in results_of(documents(specs), unread, now_s, shared):
        if wanted and (owner := _called_after(where, wanted)) and not same_node(owner, result.node):
            unread.append(Unread(where, f"a result of {result.node} in a file of {owner}"))
            continue
        columns.add(len(results), result.group, figures)
        results.append(result)
    return fleet_of(results, columns, unread, expected, dated(now_s - max_age_s))


def results_of(
    found: Iterable[tuple[str, Json] | Unread], unread: list[Unread], now_s: float, shared: SharedStrings | None = None
) -> Iterator[tuple[str, Json, Result, Figures]]:
    """Where it stands, the document, its result and figures; ``unread`` is given what holds none, or one of the future.
    Results share their strings where ``shared`` keeps these.
    """
    for each in found:
        if isinstance(each, Unread):
            unread.append(each)
            continue
        try:
            result, figures = result_of(each[1], shared or SharedStrings())
            refuse_future(result, now_s)
        except NotAResult as error:
            unread.append(Unread(each[0], str(error)))
            continue
        yield *each, result, figures


@lru_cache(maxsize=8)
def dated(at_s: float) -> str:
    """As results have it."""
    return strftime(DATE, gmtime(max(0, at_s)))


def refuse_future(result: Result, now_s: float) -> None:
    """Raises NotAResult for one that cannot have been made yet."""
    if result.generated_at > dated(now_s + _CLOCK_SKEW_S):
        raise NotAResult(f"{result.node}: {result.generated_at} is in the future; check its clock")


def _called_after(where: str, nodes: Collection[str]) -> str:
    """The node after which a file is called: ``dgx001-0.json``; empty where it is none of these, in small letters."""
    name = where.rpartition("/")[2].lower()
    while name and name not in nodes:
        name = name[: max(name.rfind("-"), name.rfind("."), 0)]
    return name


def fleet_of(
    results: Sequence[Result], columns: FigureColumns, unread: Sequence[Unread], expected: Sequence[str] = (),
    oldest: str = "",
) -> Fleet:  # fmt: skip
    """Judge results that were read; ``columns`` holds their figures by their number in ``results``.

    Beside a result of the machine itself none of a recording counts; those from before ``oldest`` are stale.
    """
    names = one_name({result.node for result in results}, expected)
    results = [replace(each, node=names[each.node]) if each.node in names else each for each in results]
    of_node = gathered((result.node, number) for number, result in enumerate(results))
    left_out: list[Unread] = []
    for name, numbers in of_node.items():
        live = [number for number in numbers if results[number].live]
        if live and len(live) < len(numbers):
            recorded = counted(len(numbers) - len(live), "result")
            left_out.append(Unread(name, f"{recorded} of recordings not counted beside those of the machine itself"))
            of_node[name] = live
    nodes = {name: node_by_machine([results[number] for number in of_node[name]], oldest) for name in sorted(of_node)}
    left_out += [Unread(name, f"{node.shared}; give each a host name of its own")
                 for name, node in nodes.items() if node.shared]  # fmt: skip
    for name, other in one_machine(nodes).items():
        nodes[name] = replace(nodes[name], same_as=other, verdict=worst("unknown", nodes[name].verdict))
        left_out.append(Unread(name, f"the same machine as {other}, by boot ID or serial numbers; look which it is"))
    # of each node those of the newest that measured, else of the newest
    current = {
        max(numbers, key=lambda number: (results[number].level == "extended", results[number].generated_at)): name
        for name, numbers in of_node.items()
    }
    differences = _differences(nodes.values())
    domains = gathered((domain, name) for name, node in nodes.items() for domain in node.newest.nvlink_domains)
    return Fleet(
        nodes=nodes,
        silent=tuple(name for name in expected if names.get(name, name) not in nodes),
        kinds=tuple(_with_version(kind, differences, domains) if kind.common else kind for kind in _kinds(nodes)),
        figures=columns.figures(current),
        differences=differences,
        unread=(*unread, *left_out),
        results=len(results),
        device_counts=count_differences(nodes.values()),
        judged_less=judged_less(nodes.values()),
    )


def _kinds(nodes: Mapping[str, Node]) -> tuple[KindOfFault, ...]:
    found: dict[tuple[str, str], dict[str, OpenFault]] = {}
    for name, node in nodes.items():
        for open_fault in node.faults:
            found.setdefault((open_fault.fault.check, open_fault.fault.word), {}).setdefault(name, open_fault)
    least = max(_COMMON_LEAST, COMMON_SHARE * len(nodes))
    kinds = []
    for (check, word), faults in found.items():
        status = worst(*(each.fault.status for each in faults.values()))
        kinds.append(KindOfFault(check, word, status, faults, len(faults) > least))
    return tuple(sorted(kinds, key=lambda kind: (VERDICTS.index(kind.status), -len(kind.nodes), kind.check)))


def _with_version(
    kind: KindOfFault, differences: Iterable[VersionDifference], domains: Mapping[str, Sequence[str]]
) -> KindOfFault:  # fmt: skip
    """What separates the nodes with the fault from the others: a version, or one NVLink domain of several."""
    own, count = {*kind.nodes}, len(kind.nodes)
    values: list[tuple[str, Mapping[str, Sequence[str]]]] = [
        (each.name, each.nodes) for each in differences if not each.is_setting
    ]
    found: dict[int, list[str]] = {}
    for name, nodes in [*values, *([("NVLink domain", domains)] if len(domains) > 1 else [])]:
        total = sum(map(len, nodes.values()))
        for value, those in nodes.items():
            chance = comb(len(those), count) / comb(total, count) if own <= {*those} else 1
            if own == {*those} or (chance < _CHANCE and count >= _NEARLY_ALL * len(those)):
                found.setdefault(len(those), []).append(f"{name} {value or 'none'}")
    having, names = min(found.items(), default=(0, []))
    return replace(kind, version=", ".join(names), having=having)


def _differences(nodes: Iterable[Node]) -> tuple[VersionDifference, ...]:
    """Versions and settings with more than one value among machines with the same GPUs, and not one for nearly each of
    them; first those that few have.
    """
    found: dict[tuple[int, str, str], dict[str, list[str]]] = {}
    for node in nodes:
        for is_setting, named in enumerate((node.newest.versions, node.newest.settings)):
            for name, values in named.items():
                key = is_setting, name, node.newest.group.gpus
                found.setdefault(key, {}).setdefault(", ".join(values), []).append(node.name)
    differences = (
        VersionDifference(bool(is_setting), name, gpus, {
            shown: tuple(values[value])
            for value, shown in sorted(_apart(values).items(), key=lambda each: -len(values[each[0]]))
        })
        for (is_setting, name, gpus), values in sorted(found.items())
        if 1 < len(values) <= max(_FEW_VALUES, sum(map(len, values.values())) / 2)
    )  # fmt: skip
    return tuple(sorted(differences, key=lambda difference: not difference.rare))


def _apart(values: Iterable[str]) -> dict[str, str]:
    """What is shown by value: of long ones the words that not all of them have."""
    words = {value: value.split() for value in values}
    common = set.intersection(*map(set, words.values())) if any(len(value) > _LONG for value in words) else set()
    shown = {value: " ".join(word for word in own if word not in common) for value, own in words.items()}
    return shown if len({*shown.values()}) == len(shown) else {value: value for value in shown}
