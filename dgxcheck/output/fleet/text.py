"""A fleet as text: how many nodes are how, what is wrong where, who differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from dgxcheck.fleet.judge import Difference, Fleet, Kind
from dgxcheck.fleet.node_names import folded
from dgxcheck.fleet.outliers import Outlier
from dgxcheck.fleet.result import VERDICTS
from dgxcheck.output.fleet.report import Report
from dgxcheck.output.plain_text import lines, visible

COLUMNS = 80
_MOST = 10
"""Rows of a section without -v."""


def render(report: Report) -> str:
    """The summary line first; sections that have nothing to say are left out."""
    fleet = report.fleet
    most = None if report.verbose else _MOST
    return lines([
        _summary(fleet),
        *_verdicts(fleet),
        *_section("Faults", [_kind(kind) for kind in fleet.kinds], most),
        *_section("Found earlier, and not shown to be gone since", list(_unproven(fleet)), most),
        *_section("Off the median of the fleet", [_outlier(each) for each in fleet.outliers], most),
        *_section("Versions that differ", [_difference(each) for each in fleet.differences], None),
        *_section("Lowest scores", list(_scores(fleet)), 5),
        *_section("Not read", [f"{each.where}: {each.why}" for each in fleet.unread], most),
    ])  # fmt: skip


def _summary(fleet: Fleet) -> str:
    counts = [(len(fleet.with_verdict(word)), word) for word in VERDICTS]
    told = [f"{count} {word}" for count, word in counts if count]
    told += [f"{len(fleet.silent)} without a result"] if fleet.silent else []
    total = len(fleet.nodes) + len(fleet.silent)
    return f"{fleet.verdict.upper()}: {total} node{'s' * (total != 1)}: {', '.join(told) or 'no result'}"


def _verdicts(fleet: Fleet) -> Iterator[str]:
    for word in VERDICTS:
        names = fleet.with_verdict(word)
        if names:
            yield _wrapped(f"{word:<10}{len(names):>6}  {folded(names)}", 18)
    if fleet.silent:
        yield _wrapped(f"{'no result':<10}{len(fleet.silent):>6}  {folded(fleet.silent)}", 18)


def _section(title: str, rows: Sequence[str], most: int | None) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f"{title}:"
    for row in rows[:most]:
        yield _wrapped(f"  {row}", 6)
    if most is not None and len(rows) > most:
        yield f"  and {len(rows) - most} more; list them with -v"


def _kind(kind: Kind) -> str:
    first = next(iter(kind.nodes.values())).fault
    one = len(kind.nodes) == 1
    what = f"{first.subject}: {first.message}" if first.subject else first.message
    told = what if one else f"for example {what}"
    shared = "; so many nodes have one reason: look at image, driver, settings and profile first" if kind.common else ""
    action = f"; do: {first.action}" if first.action and not shared else ""
    return f"{kind.status} {kind.check} {folded(kind.nodes)} ({len(kind.nodes)}): {told}{shared or action}"


def _unproven(fleet: Fleet) -> Iterator[str]:
    for name, node in fleet.nodes.items():
        for each in node.unproven:
            newest = node.newest
            yield (
                f"{name}: {each.fault.key}, level {each.level}, {each.found_at}; the newest result is of level"
                f" {newest.level}, {newest.generated_at}"
            )


def _outlier(outlier: Outlier) -> str:
    return (
        f"{outlier.node} {outlier.key}: {outlier.value:.4g}, median {outlier.median:.4g} of {outlier.nodes} nodes"
        f" ({100 * outlier.off:+.0f} %)"
    )


def _difference(difference: Difference) -> str:
    told = [f"{value or 'none'}: {folded(nodes)} ({len(nodes)})" for value, nodes in difference.nodes.items()]
    return f"{difference.name}: {'; '.join(told)}"


def _scores(fleet: Fleet) -> Iterator[str]:
    scored = [(node.newest.score, name, node.newest.group.profile) for name, node in fleet.nodes.items()
              if node.newest.score is not None and node.newest.score < 100]  # fmt: skip
    return (f"{name}: {score:g} of 100 against {profile}" for score, name, profile in sorted(scored))


def _wrapped(text: str, hanging: int) -> str:
    return fill(visible(text), COLUMNS, subsequent_indent=" " * hanging, break_long_words=False,
                break_on_hyphens=False)  # fmt: skip
