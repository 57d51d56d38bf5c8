"""``dgxcheck fabric``: how the fabric between the machines is cabled."""

from __future__ import annotations

import click

from dgxcheck.checks.engine.finding import Status, first_of
from dgxcheck.cli import INCOMPLETE
from dgxcheck.cli.options import given, options
from dgxcheck.cli.results import emit, exit_code, formats, renderer
from dgxcheck.fabric import reading
from dgxcheck.fabric.judge import Judged, judge
from dgxcheck.fabric.model import fabric_of
from dgxcheck.facts.missing import BadInput
from dgxcheck.output.report import FabricReport


@click.command("fabric")
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path())
@options("fabric")
@click.pass_context
def command(
    ctx: click.Context, files: tuple[str, ...], plan: str | None, boxes: tuple[str, ...], timeout: float, verbose: bool,
    fail_on: str, form: str, output: str | None, color: str,
) -> int:  # fmt: skip
    """Judge how the fabric between the machines is cabled, and say which plugs to move.

    FILE is the output of ibnetdiscover (-p or full), iblinkinfo, ibdiagnet (db_csv or net_dump), lldpctl -f json of one
    machine, ibqueryerrors or perfquery, or - for stdin; gzip is unpacked. All files are read together. Without FILE,
    ibnetdiscover runs on this host. Without --plan, what most machines do is taken for the plan.
    Exit code 0: pass; 1: warn; 2: fail; 3: unknown, also if a file holds nothing of a fabric.
    """
    if files and given(ctx, "timeout"):
        raise click.UsageError("--timeout is for ibnetdiscover, which runs without FILE", ctx)
    cables = None if plan is None else reading.plan(plan)
    found = reading.outputs(files) if files else reading.live(timeout)
    judged = judge(fabric_of(found.texts), cables, found.unread, found.cut)
    if form.startswith("slurm") and (found.unread or not judged.places):
        why = first_of(found.unread, 1) or "none is on a switch"
        raise BadInput(f"no topology, as systems would be left out: {why}")
    if form == "nccl-xml":
        return _nccl_xml(ctx, judged, boxes, output)
    if boxes:
        from dgxcheck.fabric.boxes import boxes_of, joined

        judged = joined(judged, boxes_of(boxes))
    code = exit_code(Status[judged.verdict.upper()], fail_on)
    report = FabricReport(judged=judged, exit_code=code, verbose=verbose)
    emit(renderer(formats("fabric")[form])(report), output, color, form, again=True)
    return report.exit_code


def _nccl_xml(ctx: click.Context, judged: Judged, boxes: tuple[str, ...], output: str | None) -> int:
    """The topology file of one machine, with rails and planes."""
    if len(boxes) != 1:
        raise click.UsageError("--format nccl-xml is of one machine; name its recording with --boxes", ctx)
    from dgxcheck.assessment.machine import LAUNCH, examine
    from dgxcheck.fabric.boxes import rails, seats
    from dgxcheck.launch import placements
    from dgxcheck.output import nccl_xml

    box = examine(boxes[0], LAUNCH)
    found = rails(judged, seats(box))
    placed = placements(box.snapshot, box.topology)
    emit(nccl_xml.render(box.snapshot, box.topology, placed, found), output, form="nccl-xml")
    return 0 if found else INCOMPLETE
