"""A fabric as text: what is wrong, how it is cabled, what each leaf carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.finding import counted, first_of
from dgxcheck.fabric.capacity import CODED, Leaf, bisection_gbs, leaves_of
from dgxcheck.fabric.intent import Scheme
from dgxcheck.fabric.judge import Judged
from dgxcheck.fabric.model import Fabric
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.node_names import folded
from dgxcheck.output.plain_text import columns, lines, visible
from dgxcheck.output.report import FabricReport

_TIERS = (("leaf", "leaves"), ("spine",), ("core switch", "core switches"))
_MOST = 20
"""Findings without -v."""
_WIDE = 33
"""Columns for the names of leaves: with the others of the table 80."""


def render(report: FabricReport) -> str:
    """The verdict first; what has nothing to say is left out."""
    judged = report.judged
    leaves = leaves_of(judged)
    most = None if report.verbose else _MOST
    found = [(f"  {finding.status} {finding.fault.word}: {finding.message}", f"    do: {finding.action}",
              *([f"    interrupts: {first_of(finding.disturbs)}"] if finding.disturbs else []),
              *(f"    {seat}" for seat in finding.seats)) for finding in judged.findings]  # fmt: skip
    return lines([
        f"{judged.verdict.upper()}: {sizes(judged)}: {fault_counts(judged)}",
        *(visible(line) for line in schemes(judged)),
        *bandwidth(leaves),
        *(visible(line) for line in rates(judged.fabric)),
        *(["", "Findings:"] if found else []),
        *(visible(row) for rows in found[:most] for row in rows),
        *([f"  and {len(found) - _MOST} more; list them with -v"] if most and len(found) > most else []),
        *([""] if leaves else []),
        *table(leaves, report.verbose),
        *(["", "Not read:"] if judged.unread else []),
        *(visible(f"  {row}") for row in judged.unread),
    ])  # fmt: skip


def sizes(judged: Judged) -> str:
    """``124 systems, 496 adapters, 31 leaves, 16 spines``"""
    tiers = Counter(judged.tiers.of.values())
    names = [counted(tiers[number], *nouns) for number, nouns in enumerate(_TIERS) if tiers[number]]
    systems = len({adapter.host for adapter in judged.fabric.adapters.values() if adapter.host})
    return ", ".join([counted(systems, "system"), counted(len(judged.fabric.adapters), "adapter"), *names])


def fault_counts(judged: Judged) -> str:
    """``2 cable-swapped, 1 port-slow``"""
    words = Counter(finding.fault.word for finding in judged.findings)
    return ", ".join(f"{count} {word}" for word, count in words.items()) or "nothing found"


def schemes(judged: Judged) -> Iterator[str]:
    """What was compared with what, and what could not be."""
    doubled = {adapter.guid for adapters in judged.fabric.doubled.values() for adapter in adapters}
    if nameless := [adapter for adapter in judged.fabric.nameless if adapter.guid not in doubled]:
        names = first_of([*dict.fromkeys(adapter.description for adapter in nameless)])
        yield (f"{counted(len(nameless), 'adapter')} without a host's name, not judged: {names}; rdma-ndd sets node"
               " descriptions")  # fmt: skip
    if judged.intent.planned:
        yield f"compared with the plan: {counted(len(judged.intent.homes), 'adapter')}"
        return
    for scheme in judged.intent.schemes:
        systems = folded(scheme.systems)
        if len(scheme.adapters) < 2 or not scheme.blocks:
            why = "one adapter each" if len(scheme.adapters) < 2 else _no_rule(scheme, judged)
            yield f"{systems}: {why}, so the place of an adapter is judged by a plan alone (--plan)"
        else:
            yield f"{systems}: {pattern(scheme.blocks)}"


def _no_rule(scheme: Scheme, judged: Judged) -> str:
    disputed = {host for each in judged.intent.disputes for hosts in each.ways for host in hosts}
    return "no two alike" if disputed.isdisjoint(scheme.systems) else "cabled in different ways"


def pattern(blocks: Sequence[Sequence[str]]) -> str:
    """What most systems do."""
    if len(blocks) == 1:
        return f"all {len(blocks[0])} adapters of a system on one leaf"
    if all(len(block) == 1 for block in blocks):
        return f"{len(blocks)} rails, each adapter of a system on a leaf of its own"
    return f"{len(blocks)} groups of adapters, each on a leaf: {' | '.join(' '.join(block) for block in blocks)}"


def bandwidth(leaves: Sequence[Leaf]) -> Iterator[str]:
    """Both directions, and as the papers count."""
    if gbs := bisection_gbs(leaves):
        yield f"bisection {gbs:,.0f} GB/s, both directions; {gbs * CODED:,.0f} GB/s of payload at 64/66"


def rates(fabric: Fabric) -> Iterator[str]:
    """``rates: adapters 224 at 4x NDR, 32 at 4x HDR (mlx5_5); between switches 256 at 4x NDR``"""
    kinds: dict[str, dict[str, list[str]]] = {}
    for cable in fabric.cables:
        own = fabric.adapter_of(cable)
        if cable.gbit:
            kind = "between switches" if own is None else "adapters"
            kinds.setdefault(kind, {}).setdefault(cable.rate, []).append(own.name if own is not None else "")
    said = []
    for kind, found in sorted(kinds.items()):
        seen = Counter(name for names in found.values() for name in {*names})
        ordered = sorted(found.items(), key=lambda pair: -len(pair[1]))
        said.append(f"{kind} " + ", ".join(
            f"{len(names)} at {rate}" + (f" ({first_of(own)})" if number and own else "")
            for number, (rate, names) in enumerate(ordered)
            for own in [sorted({name for name in names if name and seen[name] == 1})]
        ))  # fmt: skip
    if said:
        yield f"rates: {'; '.join(said)}"


def table(leaves: Sequence[Leaf], verbose: bool) -> list[str]:
    """A row per leaf; without -v one for all that are alike."""
    if not leaves:
        return []
    keys = ((str(len(leaf.systems)), str(leaf.adapters), str(leaf.uplinks), ratio(leaf)) for leaf in leaves)
    rows = gathered(((leaf.name, *key) if verbose else key, leaf) for leaf, key in zip(leaves, keys, strict=True))
    head = ("Leaf", "Systems", "Adapters", "Uplinks", "Over-subscription")
    return columns([
        head,
        *((visible(_leaves([leaf.name for leaf in alike])),
           visible(folded(alike[0].systems)) if verbose else key[-4], *key[-3:]) for key, alike in rows.items()),
    ])  # fmt: skip


def _leaves(names: Sequence[str]) -> str:
    """``leaf[00-14]``; of names that are too long so ``leaf00-r0 and 119 more``."""
    every = folded(names)
    return every if len(every) <= _WIDE or len(names) == 1 else first_of(names, 1)


def ratio(leaf: Leaf) -> str:
    """``1:1``; ``-`` for a leaf that is all there is, ``?`` where rates are not known."""
    return "-" if not leaf.uplinks else "?" if leaf.ratio is None else f"{leaf.ratio:.3g}:1"
