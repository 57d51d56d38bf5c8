"""``dgxcheck fleet``: the results of many machines, judged together."""

from __future__ import annotations

import sys

import click

from dgxcheck.checks.engine.finding import Status, counted
from dgxcheck.cli.options import given, options
from dgxcheck.cli.results import emit, exit_code, formats, renderer
from dgxcheck.facts.missing import BadInput
from dgxcheck.fleet.judge import Fleet, judge
from dgxcheck.fleet.node import NodeVerdict, worst
from dgxcheck.fleet.node_names import Racks, members
from dgxcheck.fleet.remote import RemoteRun
from dgxcheck.output.report import FleetReport

HELD = 2
OF_WHERE = ("worker", "program", "fanout", "timeout")


@click.command("fleet")
@click.argument("results", metavar="RESULT...", nargs=-1)
@options("fleet")
@click.pass_context
def command(
    ctx: click.Context, results: tuple[str, ...], where: str | None, worker: str, program: str, fanout: int,
    timeout: float, nodes: str | None, gate: bool, max_age: float, history: str | None, config: str | None,
    verbose: bool, fail_on: str, form: str, output: str | None, color: str,
) -> int:  # fmt: skip
    """Judge the results of many machines together.

    RESULT is a file, a folder or - for stdin, with the output of dgxcheck health --format jsonl or json, one or
    many; gzip is unpacked. With -w, dgxcheck health runs on the nodes instead, over ClusterShell. A node is judged
    by all its results: a fault stays until a newer result of the same level or a higher one shows that it is gone.
    Results from the future do not count, those older than --max-age prove nothing.
    Exit code 0: pass; 1: warn; 2: fail; 3: unknown, also if a node has no result.
    """
    if history is not None:
        others, allowed = given(ctx, *OF_WHERE, "where", "nodes", "gate", "max_age", "config"), formats("fleet history")
        if results or others or form not in allowed:
            wrong = results[0] if results else f"--{others[0].replace('_', '-')}" if others else f"--format {form}"
            raise click.UsageError(f"{wrong}: --history takes -v, --fail-on, -o and --format {', '.join(allowed)}", ctx)
        return _history(history, verbose, fail_on, form, output, color)
    if gate and form != "text":
        raise click.UsageError("--gate has one format, text", ctx)
    if config is not None and form != "html":
        raise click.UsageError("--config names racks, for --format html", ctx)
    if where is not None and nodes is not None and not gate:
        raise click.UsageError("-n is for results that are there; with -w every node must have one", ctx)
    if where is not None and given(ctx, "max_age"):
        raise click.UsageError("--max-age is for results that are there; with -w every node is asked now", ctx)
    if where is None and (idle := given(ctx, *OF_WHERE)):
        raise click.UsageError(f"--{idle[0]} is valid only with -w", ctx)
    if where is not None:
        if results and not results[0].startswith("-"):
            raise click.UsageError(f"{results[0]}: with -w only options of health are allowed, after --", ctx)
        fleet = _run_on_nodes(RemoteRun(where, results, program, worker, fanout, timeout))
    elif results:
        fleet = judge(results, () if nodes is None else wanted(nodes), max_age)
        if fleet.unread and not fleet.nodes:
            more = f" ({counted(len(fleet.unread) - 1, 'more file or line', 'more files or lines')})"
            first = fleet.unread[0]
            raise BadInput(f"{first.where}: {first.why}{more if fleet.unread[1:] else ''}")
        if not fleet.nodes and not fleet.silent:
            why = "no results; in a folder, files named *.json, *.jsonl, *.ndjson, or these with .gz, are read"
            if form == "topology":
                raise BadInput(why)
            click.echo(f"dgxcheck: {why}", err=True)
    else:
        raise click.UsageError("give files or folders with results, - for stdin, or -w NODES", ctx)
    if gate:
        return _gate(fleet, nodes, output, color)
    racks = _racks(fleet, config) if form == "html" else {}
    report = FleetReport(fleet, exit_code(Status(fleet.verdict), fail_on), verbose, racks)
    emit(renderer(formats("fleet")[form])(report), output, color, form, again=True)
    return report.exit_code


def _history(folder: str, verbose: bool, fail_on: str, form: str, output: str | None, color: str) -> int:
    from dgxcheck.fleet.history import read
    from dgxcheck.fleet.lemons import lemons
    from dgxcheck.fleet.part_history import followed
    from dgxcheck.output.report import HistoryReport

    history = read([folder])
    if not history.nodes:
        why = f": {history.unread[0].where}: {history.unread[0].why}" if history.unread else ""
        raise BadInput(f"{folder}: no result of a machine itself{why}")
    bad, moved = lemons(history), followed(history.parts)
    found = moved or history.trends or not all(lemon.mended for lemon in bad)
    least: NodeVerdict = "unknown" if history.unread else "warn" if found else "pass"
    verdict = worst(least, *(node.verdict for node in history.nodes.values()))
    code = exit_code(Status(verdict), fail_on)
    report = HistoryReport(history, bad, moved, verdict, code, verbose)
    emit(renderer(formats("fleet history")[form])(report), output, color, form)
    return code


def wanted(nodes: str, option: str = "-n") -> tuple[str, ...]:
    """The machines of an option."""
    found = members(nodes)
    if not found:
        raise BadInput(f"{option}: the list of nodes is empty")
    return found


def _run_on_nodes(run: RemoteRun) -> Fleet:
    """With a bar on a terminal; SIGTERM and SIGHUP are as Ctrl-C."""
    from threading import Event

    from dgxcheck.assessment.progress import interruptible
    from dgxcheck.fleet.remote import judge_nodes, node_set

    stopped = Event()
    if not sys.stderr.isatty():
        with interruptible(stopped.set):
            return judge_nodes(run, stopped.is_set)
    length = len(node_set(run.nodes))
    with click.progressbar(length=length, label=run.nodes[:40], show_pos=True, file=sys.stderr) as bar:

        def progress(done: int, nodes: int) -> None:
            bar.length = nodes
            bar.update(done - bar.pos)

        with interruptible(stopped.set):
            return judge_nodes(run, stopped.is_set, progress)


def _racks(fleet: Fleet, config: str | None) -> Racks:
    from dgxcheck.assessment.selection import site_settings
    from dgxcheck.fleet.node_names import racks_of

    return racks_of((*fleet.nodes, *fleet.silent), site_settings(config))


def _gate(fleet: Fleet, nodes: str | None, output: str | None, color: str) -> int:
    from dgxcheck.facts.record import replace
    from dgxcheck.output.fleet import schedulers

    if nodes is not None:
        names = wanted(nodes)
        own = {name: fleet.nodes[name] for name in names if name in fleet.nodes}
        unread = tuple(each for each in fleet.unread if each.where not in fleet.nodes or each.where in own)
        fleet = replace(fleet, nodes=own, unread=unread, silent=tuple(name for name in names if name not in own))
    code = 0 if schedulers.may_return(fleet) else HELD
    emit(schedulers.gate(FleetReport(fleet, code)), output, color)
    return code
