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
from dgxcheck.topology.model import Topology

_ANSWERS = {
    **{kind: ("whole_box", kind) for kind in ("matrix", "matrix_pci", "p2p", "tree", "rings", "path", "rdma", "peers")},
    "cpu": ("one_gpu", "gpus_of_cpu"),
    "level": ("one_gpu", "nearest"),
    "gpu_path": ("one_gpu", "gpu_path"),
    "numa_cpu": ("one_gpu", "near_cpus"),
    "numa_memory": ("one_gpu", "near_memory"),
    "gpu_numa": ("one_gpu", "own_memory"),
}
"""Module below ``dgxcheck.cli.topo`` and its function that answer each question; imported when it is asked."""
_PROBES = {
    "matrix": (*WIRING, "gpu_modes"),
    "p2p": (*WIRING, "p2p"), "tree": (*WIRING, "pci_names"), "numa_memory": (*WIRING, "numa_memory"), "rdma": RDMA,
    "peers": PEERS, "path": (*WIRING, "config_space", "host"),
}  # fmt: skip
"""Fields of the snapshot that a question needs, if those of the wiring are not enough."""
_PLANS = {"p2p": "P2P", "peers": "PEERS", "rdma": "RDMA"}
"""What NVML is asked for these questions, by name in ``workers/nvml/plan.py``; else ``TOPOLOGY``."""
_PICTURES = ("svg", "dot")
_LAUNCH = ("env", "gres", "rankfile", "nccl-xml", "nfd")
"""Formats for launchers and schedulers, of the whole box."""
_DRAWN = {"matrix": "picture", "tree": "picture", "path": "picture_of_path"}
"""The questions that a picture answers, and how."""
_AS_NVIDIA_SMI = ("matrix", "matrix_pci", "p2p")
_LABELLED = ("matrix", "matrix_pci", "gpu_path", "path", "peers")
"""The questions that are answered with labels of paths."""
_ABOUT_GPUS = ("level", "gpu_path", "numa_cpu", "numa_memory", "gpu_numa")
_SPELT = {
    "matrix": "-m", "matrix_pci": "-mp", "p2p": "-p2p", "cpu": "-c", "level": "-n", "gpu_path": "-p",
    "numa_cpu": "-C", "numa_memory": "-M", "gpu_numa": "-gnid", "tree": "--tree", "rings": "--rings", "path": "--path",
    "rdma": "--rdma", "peers": "--peers",
}  # fmt: skip


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
    plan = "EVERYTHING" if given["form"] in _LAUNCH else _PLANS.get(kind, "TOPOLOGY")
    source = live.source(given["spec"], plan, given["deadline"])
    machine = examine(source, LAUNCH if given["form"] in _LAUNCH else _PROBES.get(kind, WIRING))
    asked = Question(machine, given[kind], ",".join(given["ids"]), given["form"], given["labels"] or "soc",
                  width(given["output"]), given["nvme"])  # fmt: skip
    module, name = _ANSWERS[kind]
    if asked.form in _PICTURES:
        module, name = "whole_box", _DRAWN[kind]
    elif asked.form in _LAUNCH:
        module, name = "launch", "whole"
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


def _spelt(kinds: Iterable[str]) -> str:
    return ", ".join(_SPELT[kind] for kind in kinds)


def _asked(given: dict[str, Any]) -> str:
    """Which one of the questions was put; a usage error where they contradict each other."""
    kinds = [kind for kind in _SPELT if given[kind] is not None and given[kind] is not False]
    if len(kinds) > 1:
        raise click.UsageError(f"{' and '.join(_SPELT[kind] for kind in kinds)} cannot be combined; choose one")
    kind = kinds[0] if kinds else "matrix"
    if kind in _ABOUT_GPUS and not given["ids"]:
        raise click.UsageError(f"{_SPELT[kind]} needs -i ID{',ID' if kind == 'gpu_path' else ''}")
    if given["ids"] and kind not in _ABOUT_GPUS:
        raise click.UsageError(f"-i is valid only with {_spelt(_ABOUT_GPUS)}")
    if given["form"] == "nvidia-smi" and kind not in _AS_NVIDIA_SMI:
        raise click.UsageError(f"--format nvidia-smi is valid only with {_spelt(_AS_NVIDIA_SMI)}")
    if given["form"] in _PICTURES and kind not in _DRAWN:
        raise click.UsageError(f"--format {given['form']} is valid only with {_spelt(_DRAWN)}")
    if given["form"] in _LAUNCH and kind != "matrix":
        raise click.UsageError(f"--format {given['form']} is about the whole box; leave out {_SPELT[kind]}")
    drawn_path = kind == "path" and given["form"] in _PICTURES
    if given["labels"] and not drawn_path and (given["form"] != "text" or kind not in _LABELLED):
        raise click.UsageError(f"--labels is valid only for the text of {_spelt(_LABELLED)}")
    if given["nvme"] and given["form"] not in _PICTURES:
        raise click.UsageError(f"--nvme is valid only with --format {' or '.join(_PICTURES)}")
    return kind
