"""``dgxcheck profiles``: the reference machines, and a new one from a box that is known to be good."""

from __future__ import annotations

import re
import time

import click

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.registry import PROBES
from dgxcheck.cli.live import Live
from dgxcheck.cli.options import emit, reading, writing
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.output import profile_text
from dgxcheck.profiles import library
from dgxcheck.score.new_profile import profile_of
from dgxcheck.survey import survey
from dgxcheck.topology.build import build

NAME = re.compile("[a-z0-9][a-z0-9._-]*")


@click.command("profiles")
@click.argument("name", required=False)
@click.option("--new", metavar="NAME", help="Write the profile of this box, or of the one given with --from, as TOML.")
@reading
@writing
@click.pass_context
def command(
    ctx: click.Context, name: str | None, new: str | None, spec: str | None, deadline: float, output: str | None,
    color: str,
) -> int:  # fmt: skip
    """List the reference machines of dgxcheck health; with NAME, print all numbers of one with their sources.

    With --new, write the values of a known-good box as a profile for identical boxes: health --profile FILE.toml.
    """
    if new is None:
        if spec is not None:
            raise BadInput("--from requires --new NAME, which makes a profile of that box")
        if name is None:
            emit(profile_text.listed(map(library.by_name, library.names())), output, color)
        else:
            found = library.by_name(name)
            emit(profile_text.shown(found, library.boards_for(None) | dict(found.own_boards)), output, color)
        return 0
    if name is not None:
        raise BadInput("give a profile to show or --new NAME, not both")
    if not NAME.fullmatch(new):
        raise BadInput(f"--new {new!r}: a name may contain only lower-case letters, digits, '.', '-' and '_'")
    live: Live = ctx.obj
    source = live.source(spec, "HEALTH", deadline)
    facts = survey(source, PROBES)
    topology = build(facts.pci, facts.infiniband, facts.gpu, facts.nvlink, facts.gpu_pairs, facts.numa)
    if not any(gpu.index is not None for gpu in topology.gpus):
        raise BadInput("--new: NVML lists no GPU, so no profile can be made")
    host = facts.host
    product = host.dmi.product_name if isinstance(host, Host) else host
    said = "" if isinstance(product, Missing) else product.strip()
    date = source.origin.recorded_at[:10] or time.strftime("%Y-%m-%d", time.gmtime())
    read = f"read from {source.origin.name or 'the box'} on {date}"
    box = Box(snapshot=facts, topology=topology, gpus=topology.gpus, boards=library.boards_for(None))
    made = profile_of(box, new, said or new, said, read)
    emit(profile_text.toml(made, {"box": read}), output, color, "toml")
    return 0
