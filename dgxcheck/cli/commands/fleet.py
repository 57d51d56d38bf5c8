"""``dgxcheck fleet``: the results of many machines, judged together."""

from __future__ import annotations

from importlib import import_module

import click

from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.engine.run import EXIT_CODES
from dgxcheck.cli.health.options import FAILING
from dgxcheck.cli.options import emit, writing
from dgxcheck.fleet.judge import Fleet, judge
from dgxcheck.fleet.node_names import unfolded
from dgxcheck.output.fleet.report import Report

RENDERERS = {"text": "text", "json": "as_json", "prometheus": "prometheus"}
"""Module below ``dgxcheck.output.fleet`` of each format, imported when it is asked for."""
HELD = 2


@click.command("fleet")
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, type=click.Path())
@click.option("-n", "--nodes", metavar="NODES",
              help="Nodes that must have a result: dgx[001-016,020]. With --gate: the nodes to return, or all.")
@click.option("--gate", is_flag=True,
              help="May repaired nodes return to service? Exit code 0 if what was wrong is proven right, else 2.")
@click.option("-v", "--verbose", is_flag=True, help="List every row of every section.")
@click.option("--fail-on", type=click.Choice([*FAILING]), default="warn", show_default=True,
              help="Lowest severity that gives a non-zero exit code; unknown ranks between warn and fail.")
@click.option("--format", "form", type=click.Choice(list(RENDERERS)), default="text", show_default=True)
@writing
@click.pass_context
def command(
    ctx: click.Context, results: tuple[str, ...], nodes: str | None, gate: bool, verbose: bool, fail_on: str,
    form: str, output: str | None, color: str,
) -> int:  # fmt: skip
    """Judge the results of many machines together.

    RESULT is a file, a folder or - for stdin, with the output of dgxcheck health --format jsonl or json, one or many;
    gzip is unpacked. A node is judged by all its results: a fault stays until a newer result of the same level or a
    higher one proves it right. Exit code 0: pass; 1: warn; 2: fail; 3: unknown, also if a node has no result.
    """
    if gate and form != "text":
        raise click.UsageError("--gate has one format, text", ctx)
    fleet = judge(results, () if nodes is None else unfolded(nodes))
    if gate:
        return _gate(fleet, nodes, output, color)
    verdict = Status(fleet.verdict)
    report = Report(fleet, EXIT_CODES[verdict] if verdict in FAILING[fail_on] else 0, verbose)
    emit(import_module(f"dgxcheck.output.fleet.{RENDERERS[form]}").render(report), output, color, form)
    return report.exit_code


def _gate(fleet: Fleet, nodes: str | None, output: str | None, color: str) -> int:
    from dgxcheck.facts.record import replace
    from dgxcheck.output.fleet import gate

    if nodes is not None:
        wanted = unfolded(nodes)
        fleet = replace(fleet, nodes={name: fleet.nodes[name] for name in wanted if name in fleet.nodes}, unread=())
    code = 0 if gate.may_return(fleet) else HELD
    emit(gate.render(Report(fleet, code)), output, color)
    return code
