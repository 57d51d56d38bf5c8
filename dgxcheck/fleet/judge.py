"""All results of a fleet judged together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.facts.record import Record
from dgxcheck.fleet.document import NotAResult, Shared, result_of
from dgxcheck.fleet.node import Node, OpenFault, node_of
from dgxcheck.fleet.outliers import Columns, Figure, Outlier, farthest
from dgxcheck.fleet.reading import Unread, documents
from dgxcheck.fleet.result import VERDICTS, Result, Verdict

COMMON_SHARE = 0.1
"""A fault on more than a tenth of the nodes has a common reason: a profile, an image, a driver, a fabric."""
_COMMON_LEAST = 3


class Kind(Record, kw_only=False):
    """One kind of fault, and where it is."""

    check: str
    word: str
    """The fault; empty for what could not be read."""
    status: Verdict
    nodes: Mapping[str, OpenFault]
    """The worst of each node."""
    common: bool
    """On so many nodes that it has one reason."""


class Difference(Record, kw_only=False):
    """A version that not all machines with the same GPUs have."""

    name: str
    gpus: str
    nodes: Mapping[str, tuple[str, ...]]
    """By value, the most common first."""


class Fleet(Record):
    """What is known of a fleet."""

    nodes: Mapping[str, Node]
    """By name."""
    silent: tuple[str, ...]
    """Expected nodes without a result."""
    kinds: tuple[Kind, ...]
    """The worst first, then the most frequent."""
    figures: tuple[Figure, ...]
    """Those in which nodes are off the median of the fleet, the farthest off first."""
    differences: tuple[Difference, ...]
    unread: tuple[Unread, ...]
    results: int
    """How many were read: a node can have several."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all nodes; at least unknown where a node or a file has no result."""
        words = {node.verdict for node in self.nodes.values()}
        words |= {"unknown"} if self.silent or self.unread or not self.nodes else set()
        return next(word for word in VERDICTS if word in words)

    @property
    def outliers(self) -> tuple[Outlier, ...]:
        """Of all figures, the farthest off first."""
        return farthest(self.figures)

    def with_verdict(self, verdict: Verdict) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(name for name, node in self.nodes.items() if node.verdict == verdict)


def judge(specs: Iterable[str], expected: Sequence[str] = ()) -> Fleet:
    """Read results from files, folders or ``-`` and judge them together; ``expected`` nodes have to be among them."""
    shared, columns = Shared(), Columns()
    results: list[Result] = []
    unread: list[Unread] = []
    for each in documents(specs):
        if isinstance(each, Unread):
            unread.append(each)
            continue
        where, document = each
        try:
            result, figures = result_of(document, shared)
        except NotAResult as error:
            unread.append(Unread(where, str(error)))
            continue
        columns.add(len(results), result.group, figures)
        results.append(result)
    return fleet_of(results, columns, unread, expected)


def fleet_of(
    results: Sequence[Result], columns: Columns, unread: Sequence[Unread], expected: Sequence[str] = ()
) -> Fleet:
    """Judge results that were read; ``columns`` holds their figures by their number in ``results``."""
    of_node: dict[str, list[int]] = {}
    for number, result in enumerate(results):
        of_node.setdefault(result.node, []).append(number)
    nodes = {name: node_of([results[number] for number in of_node[name]]) for name in sorted(of_node)}
    current = {_figures_of(numbers, results): name for name, numbers in of_node.items()}
    return Fleet(
        nodes=nodes,
        silent=tuple(name for name in expected if name not in nodes),
        kinds=_kinds(nodes),
        figures=columns.figures(current),
        differences=_differences(nodes.values()),
        unread=tuple(unread),
        results=len(results),
    )


def _figures_of(numbers: Sequence[int], results: Sequence[Result]) -> int:
    """The result whose figures count: the newest that measured, else the newest."""
    return max(numbers, key=lambda each: (results[each].level == "extended", results[each].generated_at))


def _kinds(nodes: Mapping[str, Node]) -> tuple[Kind, ...]:
    found: dict[tuple[str, str], dict[str, OpenFault]] = {}
    for name, node in nodes.items():
        for each in node.faults:
            found.setdefault((each.fault.check, each.fault.word), {}).setdefault(name, each)
    least = max(_COMMON_LEAST, COMMON_SHARE * len(nodes))
    kinds = (
        Kind(check, word, _worst(faults.values()), faults, len(faults) > least)
        for (check, word), faults in found.items()
    )
    return tuple(sorted(kinds, key=lambda kind: (VERDICTS.index(kind.status), -len(kind.nodes), kind.check)))


def _worst(faults: Iterable[OpenFault]) -> Verdict:
    return min((each.fault.status for each in faults), key=VERDICTS.index)


def _differences(nodes: Iterable[Node]) -> tuple[Difference, ...]:
    """Versions with more than one value among machines with the same GPUs."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for node in nodes:
        for name, values in node.newest.versions.items():
            text = ", ".join(values)
            found.setdefault((name, node.newest.group.gpus), {}).setdefault(text, []).append(node.name)
    return tuple(
        Difference(name, gpus, {value: tuple(values[value]) for value in _most_common(values)})
        for (name, gpus), values in sorted(found.items())
        if len(values) > 1
    )


def _most_common(values: Mapping[str, Sequence[str]]) -> list[str]:
    counted = Counter({value: len(nodes) for value, nodes in values.items()})
    return [value for value, _ in counted.most_common()]
