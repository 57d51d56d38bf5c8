"""Measurements of nodes in pairs: the script that runs them, and what they show, as text and JSON."""

from __future__ import annotations

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

_MOST = 20
_ON = {
    "slurm": 'on() { local node=$1; shift; srun --overlap -N1 -n1 -w "$node" "$@"; }',
    "clush": 'on() { local node=$1; shift; clush -n -N -w "$node" "$*"; }',
}
_BOTH = {
    "slurm": 'both() { local a=$1 b=$2; shift 2; srun --overlap -N2 -n2 --ntasks-per-node=1 -w "$a,$b" "$@"; }',
    "clush": 'both() { local a=$1 b=$2; shift 2; mpirun -np 2 -H "$a:1,$b:1" "$@"; }',
}
_IB_WRITE_BW = """\
pair() {  # ROUND SERVER CLIENT
  local adapter server
  for adapter in ADAPTERS; do
    on "$2" timeout LIMIT ib_write_bw -d "$adapter" -F --report_gbits -D 5 > /dev/null 2>&1 &
    server=$!
    sleep 3
    on "$3" timeout LIMIT ib_write_bw -d "$adapter" -F --report_gbits -D 5 "$2" > "$out/$1,$2,$3,$adapter.txt" 2>&1
    wait "$server"
  done
}
"""
_NCCL_TESTS = """\
pair() {  # ROUND NODE NODE
  local adapter
  for adapter in ADAPTERS; do
    both "$2" "$3" env NCCL_IB_HCA="=$adapter" timeout LIMIT all_reduce_perf -b 1G -e 1G -g "${GPUS:-8}" \\
      > "$out/$1,$2,$3,$adapter.txt" 2>&1
  done
}
"""
_NCCL_ALL = """\
pair() {  # ROUND NODE NODE
  both "$2" "$3" timeout LIMIT all_reduce_perf -b 1G -e 1G -g "${GPUS:-8}" > "$out/$1,$2,$3,-.txt" 2>&1
}
"""
_NVBANDWIDTH = """\
pair() {  # ROUND NODE NODE
  both "$2" "$3" timeout LIMIT nvbandwidth -p multinode_device_to_device_memcpy > "$out/$1,$2,$3,-.txt" 2>&1
}
"""


def script(plan: Plan) -> str:
    """For bash; all pairs of a round at once, the rounds one after the other."""
    nodes = sorted({*chain.from_iterable(chain.from_iterable(plan.rounds))})
    whole = plan.adapters == (ALL,)
    pair = {"ib_write_bw": _IB_WRITE_BW, "nccl-tests": _NCCL_ALL if whole else _NCCL_TESTS,
            "nvbandwidth": _NVBANDWIDTH}[plan.test]  # fmt: skip
    how = _ON if plan.test == "ib_write_bw" else _BOTH
    minutes = len(plan.rounds) * len(plan.adapters) * (plan.seconds + 5) // 60 + 1
    return lines([
        "#!/bin/bash",
        *([f"#SBATCH --job-name=dgxcheck-pairs --nodes={len(nodes)} --nodelist={folded(nodes)}",
           f"#SBATCH --ntasks-per-node=1 --exclusive --time={minutes}"] if plan.launcher == "slurm" else []),
        f"# {counted(len(nodes), 'node')}, {counted(len(plan.rounds), 'round')} of {plan.test}; then: dgxcheck fleet"
        " pairs DIR",
        'out=${1:-pairs-$(date +%F)}',
        'mkdir -p "$out" || exit',
        how[plan.launcher],
        pair.replace("ADAPTERS", " ".join(plan.adapters)).replace("LIMIT", str(plan.seconds)).rstrip(),
        *_rounds(plan),
    ])  # fmt: skip


def _rounds(plan: Plan) -> Iterator[str]:
    for turn, pairs in enumerate(plan.rounds, 1):
        yield from (f"pair {turn} {a} {b} &" for a, b in pairs)
        yield "wait"


_NOUNS = {
    "node": ("bad node",), "adapter": ("bad adapter",), "leaf": ("bad leaf", "bad leaves"),
    "uplinks": ("leaf with bad uplinks", "leaves with bad uplinks"), "suspect": ("suspect",), "path": ("slow path",),
    "rate": ("adapter slow at most nodes", "adapters slow at most nodes"),
}  # fmt: skip
_TITLES = wording("pairs")
_SWITCH = "; so many may have a switch in common: --fabric FILE shows it"


def text(report: PairsReport) -> str:
    """The summary line first."""
    judged = report.judged
    counts = Counter(each.what for each in judged.blamed)
    found = ", ".join(counted(counts[what], *nouns) for what, nouns in _NOUNS.items() if counts[what]) or "all alike"
    medians = ", ".join(f"{'' if adapter == ALL else f'{adapter} '}{number(value)} GB/s"
                        for adapter, value in sorted(judged.medians.items()))  # fmt: skip
    titles = {**_TITLES, "path": f"{_TITLES['path']}{_SWITCH if counts['path'] > _MOST else ''}"}
    return lines([
        f"{report.verdict.upper()}: {counted(judged.nodes, 'node')}, {counted(judged.tests, 'measurement')} in"
        f" {counted(judged.rounds, 'round')}: {found}",
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
