"""The wiring of a machine as a picture: SVG, or the language of graphviz."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.assessment.machine import Machine
from dgxcheck.bandwidth.expected import between
from dgxcheck.checks.engine.wording import counted
from dgxcheck.output import provenance
from dgxcheck.output.picture import dot, layout, svg
from dgxcheck.output.picture.marks import Mark
from dgxcheck.output.plain_text import visible
from dgxcheck.output.topo import bandwidth
from dgxcheck.output.topo.matrix import cell
from dgxcheck.output.topo.wiring_marks import path_mark
from dgxcheck.topology.model import Device, Topology


def render(machine: Machine, form: str, marks: Sequence[Mark], nvme: bool) -> str:
    """``form`` is ``svg`` or ``dot``; ``nvme``: NVMe disks too."""
    title = title_of(machine.topology, provenance.describe(machine.origin))
    topology, numa = machine.topology, machine.snapshot.numa
    if form == "dot":
        return dot.render(topology, numa, title, marks, nvme)
    return svg.render([layout.drawn(topology, numa, title, marks, topology.notes, nvme)])


def title_of(topology: Topology, where: str) -> str:
    """``8 GPUs, 4 HCAs: this machine``"""
    nics = len(topology.devices) - len(topology.gpus)
    return f"{counted(len(topology.gpus), 'GPU')}, {counted(nics, 'HCA')}: {where}"


def path_mark_of(machine: Machine, a: Device, b: Device, labels: str) -> Mark:
    """The way between two devices, with its label and its expected bandwidth."""
    label = cell(machine.topology.link(a, b), False, labels)
    expected = bandwidth.text(between(machine, a, b))
    words = f"{visible(a.name)} - {visible(b.name)}: {label}. {expected[0] if expected else ''}".rstrip(". ")
    return path_mark(machine.topology, a, b, words)
