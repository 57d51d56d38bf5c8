"""A text of any origin: every output that a reader recognises in it, and the lines that none understands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dgxcheck.readers.catalogue import READERS
from dgxcheck.readers.layout.model import Layout
from dgxcheck.readers.model import Imported


def outputs(layout: Layout) -> Iterator[tuple[str, Imported]]:
    """Host and output of everything recognised; the lines of each host are read separately."""
    for owner, lines in by_host(layout):
        yield from ((owner, output) for reader in READERS for output in reader(lines))


def by_host(layout: Layout) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The text once for each host that a prefix, a heading or a prompt names, with the lines of others empty."""
    hosts = [*dict.fromkeys(layout.hosts)]
    for owner in hosts:
        yield owner, layout.lines if len(hosts) == 1 else tuple(
            line if whose == owner else "" for line, whose in zip(layout.lines, layout.hosts, strict=True)
        )  # fmt: skip


def unread(lines: Sequence[str], layout: Layout, found: Iterable[Imported], host: str = "") -> tuple[int, ...]:
    """Numbers from 0 of the lines that none of the outputs accounts for, those of other hosts left out."""
    accounted = layout.accounted(frozenset(number for each in found for number in each.understood))
    return tuple(
        number for number, line in enumerate(lines)
        if line.strip() and number not in accounted and (not host or layout.hosts[number] in ("", host))
    )  # fmt: skip
