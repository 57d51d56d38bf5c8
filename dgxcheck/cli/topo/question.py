"""A question put to ``dgxcheck topo``, with everything that its answer is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from dgxcheck.assessment.machine import Machine
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.output.origin import source_line
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology

Answer = tuple[str, bool]
"""An answer, and whether all of it is known."""


class Question(Record, kw_only=False):
    """The machine, the option that asks, and how the answer is to look."""

    machine: Machine
    value: Any
    """The value of the option that asks."""
    ids: str
    form: str
    labels: str
    width: int | None
    nvme: bool = False
    """Are NVMe disks to be drawn too?"""

    @property
    def snapshot(self) -> Snapshot:
        return self.machine.snapshot

    @property
    def topology(self) -> Topology:
        return self.machine.topology

    def answer(
        self, complete: bool, text: Callable[[], str], members: Callable[[], dict[str, Json]], notes: bool = True
    ) -> Answer:
        """The text with its ``notes``, or the JSON document with ``members``; only what is wanted is made."""
        if self.form == "json":
            from dgxcheck.output.topo import as_json as topo_json

            return topo_json.document(self.topology, self.machine.origin, members()), complete
        return text() + (self.notes() if notes else ""), complete

    def notes(self) -> str:
        """What the matrix says below its legend, for the questions that show no matrix."""
        headline = [self.topology.headline] if self.topology.headline else []
        remarks = [*map(visible, (*headline, *self.topology.notes)), *source_line(self.machine.origin)]
        return lines(["", *remarks]) if remarks else ""


def exactly(topology: Topology, ids: str, count: int, option: str) -> tuple[Device, ...]:
    """Exactly ``count`` different GPUs; a usage error otherwise."""
    from dgxcheck.assessment.gpu_list import gpus as gpus_of

    gpus = tuple(gpus_of(topology, ids))
    number = "one GPU" if count == 1 else f"{('two', 'three')[count - 2]} GPUs"
    if len(gpus) != count:
        raise click.UsageError(f"{option} takes {number}: -i {','.join(['ID'] * count)}, not -i {ids}")
    return _different(gpus, f"{option} takes {number}")


def two_devices(topology: Topology, ids: tuple[str, str]) -> tuple[Device, ...]:
    """Two different GPUs or NICs; a usage error where they are one."""
    from dgxcheck.assessment.gpu_list import devices

    return _different(tuple(devices(topology, ids)), "--path takes two devices")


def _different(devices: tuple[Device, ...], needs: str) -> tuple[Device, ...]:
    if len({device.name for device in devices}) != len(devices):
        raise click.UsageError(f"{needs}, not {devices[0].name} twice")
    return devices
