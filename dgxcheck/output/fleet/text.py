"""A fleet as text: how many nodes are how, what is wrong where, who differs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.device_counts import CountDifference
from dgxcheck.fleet.judge import Fleet, KindOfFault, VersionDifference
from dgxcheck.fleet.judged_less import JudgedLess
from dgxcheck.fleet.node import VERDICTS, Node, OpenFault
from dgxcheck.fleet.node_names import folded
from dgxcheck.fleet.outliers import NodeOutliers, by_node_and_check
from dgxcheck.output.fleet import nvlink_racks
from dgxcheck.output.plain_text import at_most, lines, visible
from dgxcheck.output.report import FleetReport

_COMMON = "so many nodes have one reason: look at image, driver, settings and profile first"
_SHARED = ("so many nodes have one reason: look first at the switches, power and air that they share, then at image,"
           " driver and settings")  # fmt: skip


def counts(fleet: Fleet) -> str:
    """``16 nodes: 1 fail, 15 pass; 1 with another number of devices; 2 off the median``."""
    found = [(len(fleet.with_verdict(word)), word) for word in VERDICTS]
    lines = [f"{count} {word}" for count, word in found if count]
    lines += [f"{len(fleet.silent)} without a result"] if fleet.silent else []
    odd = (
        ({name for difference in fleet.device_counts for name in difference.rare}, "with another number of devices"),
        ({name for difference in fleet.differences for name in difference.rare},
         "with a version or setting that few have"),
        (fleet.apart, "in an NVLink clique that few have"),
        ({outlier.node for outlier in fleet.outliers}, "off the median"),
        ({less.node for less in fleet.judged_less}, "judged by less"),
    )
    also = "".join(f"; {len(nodes)} {what}" for nodes, what in odd if nodes)
    return f"{counted(len(fleet.nodes) + len(fleet.silent), 'node')}: {', '.join(lines) or 'no result'}{also}"


def example(kind: KindOfFault) -> str:
    """What is wrong at the first of its nodes; whether it is at the same place of each."""
    faults = [found.fault for found in kind.nodes.values()]
    words = f"{faults[0].subject}: {faults[0].message}" if faults[0].subject else faults[0].message
    if len(faults) == 1:
        return words
    return f"{'on each node,' if len({fault.subject for fault in faults}) == 1 else 'for example'} {words}"


def first_action(kind: KindOfFault) -> str:
    """At the first of its nodes; empty where none is known, and where the nodes have one reason that is no setting."""
    fault = BY_WORD.get(kind.word)
    own = not kind.common or (fault is not None and fault.category == "setting")
    return next(iter(kind.nodes.values())).fault.action if own else ""


def common(kind: KindOfFault) -> str:
    """Where to look for the reason; empty where so few nodes have the fault that each has its own."""
    fault = BY_WORD.get(kind.word)
    outside = fault is not None and fault.category in ("hardware", "environment")
    if kind.version and kind.having > len(kind.nodes):
        return f"only nodes with {kind.version} have it, {len(kind.nodes)} of {kind.having}: look at this first"
    if kind.version:
        return f"all nodes with {kind.version} have it, and no other alike: look at this first"
    return (_SHARED if outside else _COMMON) if kind.common else ""


def unproven(fleet: Fleet) -> Iterator[tuple[Node, OpenFault]]:
    """Faults that the newest result of a node neither reports nor shows to be gone."""
    return ((node, fault) for node in fleet.nodes.values() for fault in node.unproven)


def judged_less(fleet: Fleet) -> list[str]:
    """``dgx004: coverage 20 % (most: 100 %); not judged there: ecc.volatile``, a row per node."""
    rows = gathered((less.node, less_text(less)) for less in fleet.judged_less)
    return [f"{node}: {'; '.join(texts)}" for node, texts in rows.items()]


def less_text(less: JudgedLess) -> str:
    """``coverage 20 % (most: 100 %)``"""
    if less.aspect == "checks":
        return f"not judged there: {less.value}"
    return f"{less.aspect} {less.value or 'none'} (most: {less.usual or 'none'})"


def off(found: NodeOutliers, gpus_at: Collection[str]) -> str:
    """One figure with its value, or how many GPUs or figures there are, and how far they are from the median."""
    first, *more = found.figures
    note = " (another driver)" if any(each.another_driver for each in found.figures) else ""
    if not more:
        value, middle = number(first.value), number(first.median)
        return f"{first.node} {first.key}: {value}, median {middle} of {first.nodes} nodes ({percent(first.off)}){note}"
    shares = sorted((each.off for each in found.figures), key=abs, reverse=True)
    span = " to ".join(dict.fromkeys(f"{100 * share:+.0f}" for share in (shares[0], shares[-1])))
    of_gpus = all(each.key.partition("/")[2] in gpus_at for each in found.figures)
    what = counted(len(found.figures), "GPU" if of_gpus else "figure")
    return f"{found.node} {found.check}, {what}, {span} %{note}"


def percent(share: float) -> str:
    """``-20 %``"""
    return f"{100 * share:+.0f} %"


def number(value: float) -> str:
    """Four digits that count, and all before the point."""
    return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def lowest_scores(fleet: Fleet) -> list[tuple[float, Node]]:
    """Below 100, the lowest first."""
    scored = [(node.newest.score, name, node) for name, node in fleet.nodes.items()
              if node.newest.score is not None and node.newest.score < 100]  # fmt: skip
    return [(score, node) for score, _, node in sorted(scored, key=lambda each: each[:2])]


_MOST = 10
"""Rows of a section without -v."""


def render(report: FleetReport) -> str:
    """The summary line first; sections that have nothing to say are left out."""
    fleet = report.fleet
    most = None if report.verbose else _MOST
    stale = sorted((node.newest.generated_at, name) for name, node in fleet.nodes.items() if node.stale)
    recorded = [name for name, node in fleet.nodes.items() if not node.newest.live]
    return lines([
        f"{fleet.verdict.upper()}: {counts(fleet)}",
        *_verdicts(fleet),
        *section("Faults", [_kind(kind) for kind in fleet.kinds], most),
        *section("Too old to prove anything; the newest results of these nodes",
                  [f"{name}: {generated_at}" for generated_at, name in stale], most),
        *section("Of a recording or text, which proves nothing of the machine as it is now",
                  [folded(recorded)] if recorded else [], most),
        *section("Found earlier, and not shown to be gone since",
                  [_unproven(*each) for each in unproven(fleet)], most),
        *section("Judged by less than most nodes alike", judged_less(fleet), most),
        *section("Off the median of the fleet (measure again: dgxcheck health -e; then clocks, power limit, air)",
                  [off(row, fleet.nodes[row.node].newest.gpus_at) for row in by_node_and_check(fleet.outliers)], most),
        *section("NVLink domains", nvlink_racks.section(report), most),
        *section("Counts that differ",
                  [f"{counted_devices(each)}: {by_value(each.nodes)}" for each in fleet.device_counts], None),
        *section("Versions and settings that differ", map(_difference, fleet.differences), None),
        *section("Lowest scores", [
            f"{folded(names)}: {score:g} of 100 against {profile}" for (score, profile), names in gathered(
                ((score, node.newest.group.profile), node.name) for score, node in lowest_scores(fleet)).items()
        ], 5),
        *section("Not read", [f"{unreadable.where}: {unreadable.why}" for unreadable in fleet.unread], most),
    ])  # fmt: skip


def _verdicts(fleet: Fleet) -> Iterator[str]:
    for word in VERDICTS:
        if names := fleet.with_verdict(word):
            yield visible(f"{word:<10}{len(names):>6}  {folded(names)}")
    if fleet.silent:
        yield visible(f"{'no result':<10}{len(fleet.silent):>6}  {folded(fleet.silent)}")


def section(title: str, rows: Iterable[str], most: int | None) -> Iterator[str]:
    """At most so many rows; nothing where there are none."""
    rows = [*rows]
    if not rows:
        return
    yield ""
    yield f"{title}:"
    yield from (visible(f"  {row}") for row in at_most(rows, most))


def _kind(kind: KindOfFault) -> str:
    action = first_action(kind)
    do = f"{f'; {common(kind)}' if kind.common else ''}{f'; do: {action}' if action else ''}"
    return f"{kind.status} {kind.check} {folded(kind.nodes)} ({len(kind.nodes)}): {example(kind)}{do}"


def _unproven(node: Node, found: OpenFault) -> str:
    newest = node.newest
    return (
        f"{node.name}: {found.fault.key}, level {found.level}, {found.found_at}; the newest result is of level"
        f" {newest.level}, {newest.generated_at}"
    )


def _difference(difference: VersionDifference) -> str:
    return f"{difference.name}: {by_value(difference.nodes)}"


def by_value(nodes: Mapping[str, Sequence[str]] | Mapping[int, Sequence[str]]) -> str:
    """``4: ws[001-020] (20); 3: ws021 (1)``."""
    found = ((str(value), names) for value, names in nodes.items())
    return "; ".join(f"{value or 'none'}: {folded(names)} ({len(names)})" for value, names in found)


def counted_devices(difference: CountDifference) -> str:
    """What is counted, on which machines."""
    return f"{difference.kind}s of nodes with {difference.model}"
