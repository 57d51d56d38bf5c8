"""``dgxcheck bind``: run a program next to its GPU."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping

import click

from dgxcheck.assessment.machine import LAUNCH, LiveMachine, examine
from dgxcheck.cli.options import options
from dgxcheck.facts.missing import BadInput
from dgxcheck.launch import LOCAL_RANK, VISIBLE, divided, doubt, local_rank, near_cpus, of_rank, placements, unlike
from dgxcheck.output.launch import nccl_ib_hca
from dgxcheck.output.plain_text import visible


@click.command("bind", context_settings={"allow_interspersed_args": False})
@options("bind")
@click.argument("program", nargs=-1, required=True)
@click.pass_context
def command(
    ctx: click.Context, gpu: int | None, dry_run: bool, best_effort: bool, spec: str | None, deadline: float,
    program: tuple[str, ...],
) -> int:  # fmt: skip
    """Run PROGRAM on the cores of the NUMA node of its GPU, with the HCA next to it.

    The GPU is that of the process's local rank, among those of CUDA_VISIBLE_DEVICES. Sets the CPU affinity (memory
    follows: Linux allocates it on the node of the CPU that first touches it), CUDA_DEVICE_ORDER, NCCL_IB_HCA and
    UCX_NET_DEVICES; a variable that is set already is kept. Then it is replaced by PROGRAM. If there are more ranks
    than GPUs, they take turns.
    """
    if spec is not None and not dry_run:
        raise click.UsageError("--from is another machine; add --dry-run", ctx)
    rank = gpu if gpu is not None else local_rank(os.environ)
    if rank is None:
        raise click.UsageError(f"no local rank: none of {', '.join(LOCAL_RANK)} is set; give -i RANK", ctx)
    live: LiveMachine = ctx.obj
    machine = examine(live.source(spec, "EVERYTHING", deadline), LAUNCH)
    placed = placements(machine.snapshot, machine.topology)
    seen = os.environ.get(VISIBLE)
    reason = doubt(machine.snapshot) or _other_order(os.environ) or divided(machine.snapshot, placed, seen)
    if reason and not best_effort:
        raise BadInput(f"{reason}: ranks could get each other's GPUs; see dgxcheck health, or add --best-effort")
    own = of_rank(placed, rank, seen)
    if reason:
        click.echo(f"dgxcheck: {reason}; rank {rank} is bound to {own.gpu.shown} all the same", err=True)
    if seen is None and (note := unlike(placed, own)):
        click.echo(f"dgxcheck: {note}", err=True)
    wanted = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_IB_HCA": nccl_ib_hca(placed), "UCX_NET_DEVICES": own.port}
    new = {name: value for name, value in wanted.items() if value and name not in os.environ}
    if dry_run:
        near = own.cpulist if isinstance(own.cpulist, str) else "unknown, affinity unchanged"
        click.echo(visible(f"# {own.gpu.shown}, CPUs {near}"))
        click.echo(visible(" ".join([*(f"{name}={value}" for name, value in new.items()), shlex.join(program)])))
        return 0
    if cpus := near_cpus(own, os.sched_getaffinity(0)):
        os.sched_setaffinity(0, cpus)
    else:
        click.echo(f"dgxcheck: CPUs near {own.gpu.name} are unknown or not allowed here; affinity unchanged", err=True)
    live.close()
    sys.stdout.flush()
    try:
        os.execvpe(program[0], program, {**os.environ, **new})
    except OSError as error:
        raise BadInput(f"{program[0]}: cannot be run: {error.strerror}") from None


def _other_order(environment: Mapping[str, str]) -> str:
    """Why CUDA numbers the GPUs otherwise than the bus does; empty where it does not."""
    order = environment.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    return "" if order == "PCI_BUS_ID" else "CUDA_DEVICE_ORDER is not PCI_BUS_ID, in which ranks are counted"
