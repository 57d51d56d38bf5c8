"""``dgxcheck topo``: how the box is wired."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import click

from dgxcheck.assessment.machine import LAUNCH, PEERS, RDMA, WIRING, LiveMachine, examine
from dgxcheck.cli.options import LightCommand, options
from dgxcheck.cli.results import emit, width
from dgxcheck.cli.topo.question import Question
from dgxcheck.output.plain_text import visible
from dgxcheck.package_files import table
from dgxcheck.topology.model import Topology

_QUESTIONS = {row["kind"]: row for row in table("cli/topo/questions.tsv")}
"""By the name of the option's parameter."""
_OF_DEVICES = {"rdma": RDMA, "peers": PEERS}
"""Fields of the snapshot of questions that are answered by checks."""
_PICTURES = ("svg", "dot")
_LAUNCH = ("env", "gres", "rankfile", "nccl-xml", "nfd")
"""Formats for launchers and schedulers, of the whole box."""


@click.command("topo", cls=LightCommand)
@options("topo")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Show the PCIe path, or the number of NVLinks, between each pair of GPUs and NICs.

    Works with the driver down, without root and on a recording. The labels are those of nvidia-smi topo.
    Exit code 0: the output is complete; 3: something is unknown, or the command could not run.
    """
    kind = _asked(given)
    live: LiveMachine = ctx.obj
    row = _QUESTIONS[kind]
    plan, fields = row["plan"], _OF_DEVICES.get(kind, (*WIRING, *row["facts"].split()))
    if given["form"] in _LAUNCH:
        plan, fields = "EVERYTHING", LAUNCH
    machine = examine(live.source(given["spec"], plan, given["deadline"]), fields)
    asked = Question(machine, given[kind], ",".join(given["ids"]), given["form"], given["labels"] or "soc",
                  width(given["output"]), given["nvme"])  # fmt: skip
    answer = row["picture"] if asked.form in _PICTURES else "launch.whole" if asked.form in _LAUNCH else row["answer"]
    module, _, name = answer.partition(".")
    text, complete = getattr(import_module(f"dgxcheck.cli.topo.{module}"), name)(asked)
    if asked.form == "nvidia-smi" and kind == "matrix" and asked.topology.headline:
        click.echo(f"dgxcheck: {visible(asked.topology.headline)}", err=True)
    emit(text, given["output"], given["color"], asked.form)
    if asked.form in _LAUNCH and not complete:
        click.echo(f"dgxcheck: {asked.form} is incomplete: {visible(_lacking(asked.topology))}", err=True)
    return 0 if complete else 3


def _lacking(topology: Topology) -> str:
    """Why what a launcher reads is not whole."""
    if not topology.gpus:
        return "no GPU was found"
    return topology.headline or "not everything is known of every GPU; see dgxcheck topo"


def _with(column: str, word: str = "") -> list[str]:
    """The questions whose cell of a column has a word, or anything."""
    return [kind for kind, row in _QUESTIONS.items() if (word in row[column].split() if word else row[column])]


def _asked(given: dict[str, Any]) -> str:
    """Which one of the questions was put; a usage error where they contradict each other."""

    def spelt(kinds: Iterable[str], between: str = ", ") -> str:
        return between.join(_QUESTIONS[kind]["option"] for kind in kinds)

    kinds = [kind for kind in _QUESTIONS if given[kind] is not None and given[kind] is not False]
    if len(kinds) > 1:
        raise click.UsageError(f"{spelt(kinds, ' and ')} cannot be combined; choose one")
    kind = kinds[0] if kinds else "matrix"
    of_gpus, drawn, labelled, as_smi = (
        _with("traits", "gpus"), _with("picture"), _with("traits", "labels"), _with("traits", "smi"),
    )  # fmt: skip
    if kind in of_gpus and not given["ids"]:
        raise click.UsageError(f"{spelt([kind])} needs -i ID{',ID' if kind == 'gpu_path' else ''}")
    if given["ids"] and kind not in of_gpus:
        raise click.UsageError(f"-i is valid only with {spelt(of_gpus)}")
    if given["form"] == "nvidia-smi" and kind not in as_smi:
        raise click.UsageError(f"--format nvidia-smi is valid only with {spelt(as_smi)}")
    if given["form"] in _PICTURES and kind not in drawn:
        raise click.UsageError(f"--format {given['form']} is valid only with {spelt(drawn)}")
    if given["form"] in _LAUNCH and kind != "matrix":
        raise click.UsageError(f"--format {given['form']} is about the whole box; leave out {spelt([kind])}")
    drawn_path = kind == "path" and given["form"] in _PICTURES
    if given["labels"] and not drawn_path and (given["form"] != "text" or kind not in labelled):
        raise click.UsageError(f"--labels is valid only for the text of {spelt(labelled)}")
    if given["nvme"] and given["form"] not in _PICTURES:
        raise click.UsageError(f"--nvme is valid only with --format {' or '.join(_PICTURES)}")
    return kind
