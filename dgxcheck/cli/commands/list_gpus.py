"""``dgxcheck list``: every GPU by all its names."""

from __future__ import annotations

import click

from dgxcheck.assessment.gpu_list import gpu_list
from dgxcheck.assessment.machine import LiveMachine
from dgxcheck.cli.options import options
from dgxcheck.cli.results import emit, width
from dgxcheck.output import gpu_list as renderer
from dgxcheck.output.origin import source_line


@click.command("list")
@options("list")
@click.pass_context
def command(ctx: click.Context, form: str, spec: str | None, deadline: float, output: str | None, color: str) -> int:
    """List the GPUs: index, bus id, name, UUID, serial number, slot, VBIOS.

    GPUs that appear only on the PCI bus come last, without an index. Exit code 0: the list is complete; 3: something is
    unknown, or the command could not run.
    """
    machine: LiveMachine = ctx.obj
    gpus = gpu_list(machine.source(spec, "IDENTITY", deadline))
    notes = [*gpus.topology.notes, *(f"{gap.where}: {gap}" for gap in gpus.gaps)]
    if form == "json":
        text = renderer.as_json(gpus.rows, notes, gpus.origin)
    else:
        text = renderer.text(gpus.rows, [*notes, *source_line(gpus.origin)], width(output))
    emit(text, output, color, form)
    return 0 if gpus.complete else 3
