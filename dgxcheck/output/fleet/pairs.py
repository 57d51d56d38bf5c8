"""Measurements of nodes in pairs: the script that runs them, and what they show, as text and JSON."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from dgxcheck.checks.engine.finding import counted, first_of
from dgxcheck.fleet.node_names import folded
from dgxcheck.fleet.pairs import ALL, LEAST_SHARE, Blamed, Plan
from dgxcheck.output.fleet.text import number, section
from dgxcheck.output.json_values import compact, head, members
from dgxcheck.output.plain_text import lines, wording
from dgxcheck.output.report import PairsReport
from dgxcheck.package_files import FOLDER, read

_MOST = 20


def script(plan: Plan) -> str:
    """For bash; all pairs of a round at once, the rounds one after the other."""
    nodes = sorted({*chain.from_iterable(chain.from_iterable(plan.rounds))})
    launcher = f"{plan.launcher} {'on' if plan.test == 'ib_write_bw' else 'both'}"
    pair = f"{plan.test} of all" if plan.test == "nccl-tests" and plan.adapters == (ALL,) else plan.test
    functions = _functions()
    minutes = len(plan.rounds) * len(plan.adapters) * (plan.seconds + 5) // 60 + 1
    return lines([
        "#!/bin/bash",
        *([f"#SBATCH --job-name=dgxcheck-pairs --nodes={len(nodes)} --nodelist={folded(nodes)}",
           f"#SBATCH --ntasks-per-node=1 --exclusive --time={minutes}"] if plan.launcher == "slurm" else []),
        f"# {counted(len(nodes), 'node')}, {counted(len(plan.rounds), 'round')} of {plan.test}; then: dgxcheck fleet"
        " pairs DIR",
        'out=${1:-pairs-$(date +%F)}',
        'mkdir -p "$out" || exit',
        functions[launcher],
        functions[pair].replace("ADAPTERS", " ".join(plan.adapters)).replace("LIMIT", str(plan.seconds)),
        *_rounds(plan),
    ])  # fmt: skip


def _functions() -> dict[str, str]:
    text = read(os.path.join(FOLDER, "output", "fleet", "pairs.sh")).decode("ascii")
    named = (part.rstrip().partition("\n") for part in text.split("#: ")[1:])
    return {name: function for name, _, function in named}


def _rounds(plan: Plan) -> Iterator[str]:
    for turn, pairs in enumerate(plan.rounds, 1):
        yield from (f"pair {turn} {a} {b} &" for a, b in pairs)
        yield "wait"


_NOUNS = wording("pairs counted")
_TITLES = wording("pairs")
_SWITCH = "; so many may have a switch in common: --fabric FILE shows it"


def text(report: PairsReport) -> str:
    """The summary line first."""
    judged = report.judged
    counts = Counter(each.what for each in judged.blamed)
    found = [counted(counts[what], *nouns.split(", ")) for what, nouns in _NOUNS.items() if counts[what]]
    medians = ", ".join(f"{'' if adapter == ALL else f'{adapter} '}{number(value)} GB/s"
                        for adapter, value in sorted(judged.medians.items()))  # fmt: skip
    titles = {**_TITLES, "path": f"{_TITLES['path']}{_SWITCH if counts['path'] > _MOST else ''}"}
    return lines([
        f"{report.verdict.upper()}: {counted(judged.nodes, 'node')}, {counted(judged.tests, 'measurement')} in"
        f" {counted(judged.rounds, 'round')}: {', '.join(found) or 'all alike'}",
        f"median of the nodes' best: {medians}; slow is below {100 * LEAST_SHARE:.0f} %",
        *chain.from_iterable(section(title, [_row(each) for each in judged.blamed if each.what == what],
                                     None if report.verbose else _MOST) for what, title in titles.items()),
        *section("Not read", [f"{unreadable.where}: {unreadable.why}" for unreadable in judged.unread],
                 None if report.verbose else _MOST),
    ])  # fmt: skip


def _row(each: Blamed) -> str:
    adapters = "" if each.adapters in ((), (ALL,)) else f" {', '.join(each.adapters)}"
    rate = f"{100 * each.share:.0f} % of the median" if each.share else "no figure"
    rate += f" (one output ends with: {each.last})" if each.last else ""
    note = f"; {each.note}" if each.note else ""
    if each.what in ("leaf", "uplinks"):
        do = "its cables to the spines" if each.what == "uplinks" else "the switch, its firmware, temperature and power"
        return f"{each.name}: {each.note}, at best {rate}; do: check {do}"
    if each.what == "path":
        do = "measure again; if the fault persists, check the links between them"
        return f"{each.name}{adapters}: {rate}{note}; do: {do}"
    if each.what == "rate":
        return (
            f"{each.name}: the median is {100 * each.share:.0f} % of the {each.note}; do: measure pairs"
            " below one leaf; if these are fast, check the uplinks of its leaves, else PCIe and settings (dgxcheck"
            " health)"
        )
    times = f"at best {rate} in {counted(each.rounds, 'round')}"
    if each.what == "suspect":
        chance = "less than 0.1 %" if each.chance < 1e-3 else f"{100 * each.chance:.1f} %"
        return (
            f"{each.name}{adapters}: {times}; an innocent one shows this with a chance of {chance}; do:"
            f" measure it again with another partner{note}"
        )
    do = "run dgxcheck health on it"
    if each.what == "adapter":
        port = f"{do}; if that passes, exchange its cable, then look at the port of the leaf"
        do = "reseat or replace its cable" if each.note else port
    return f"{each.name}{adapters}: {times}, with {first_of(each.partners)}; do: {do}{note}"


def as_json(report: PairsReport) -> str:
    judged = report.judged
    return compact({
        **head("dgxcheck/pairs/1"),
        **members(report, "verdict exit_code"),
        **members(judged, "nodes measurements=tests rounds"),
        "medians": {**judged.medians},
        "blamed": [{
            "what": each.what, "name": each.name, "adapters": [*each.adapters], "share": round(each.share, 4),
            "rounds": each.rounds, "fast_partners": [*each.partners], "chance": each.chance, "note": each.note or None,
        } for each in judged.blamed],
        "unread": [members(unreadable, "where why") for unreadable in judged.unread],
    })  # fmt: skip
