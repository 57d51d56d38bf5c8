"""A question put to ``dgxcheck topo``, with everything that its answer is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dgxcheck.frozen import Record
from dgxcheck.output.plain import lines, visible
from dgxcheck.reading import Json
from dgxcheck.source.protocol import Source
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Topology

Known = tuple[str, bool]
"""An answer, and whether all of it is known."""


class Asked(Record, kw_only=False):
    """The machine, the option that asks, and how the answer is to look."""

    topology: Topology
    box: Snapshot
    source: Source
    value: Any
    """The value of the option that asks."""
    ids: str
    form: str
    labels: str
    width: int | None

    def either(self, text: Callable[[], str], members: Callable[[], dict[str, Json]]) -> str:
        """The text, or the JSON document with ``members``; only what is wanted is made."""
        if self.form == "json":
            from dgxcheck.output import topo_json

            return topo_json.document(self.topology, self.source.origin, members())
        return text()

    def origin(self) -> list[str]:
        """A line about the source: a recording that was not taken from hardware says so wherever it is shown."""
        origin = self.source.origin
        if origin.kind == "live":
            return []
        made = {"reconstructed": ", reconstructed from published facts", "overlay": ", an overlay: not a real machine"}
        return [f"Source: {origin.kind} {visible(origin.name)}{made.get(origin.provenance, '')}."]

    def notes(self) -> str:
        """What the matrix says below its legend, for the questions that show no matrix."""
        said = [*([self.topology.headline] if self.topology.headline else []), *self.topology.notes]
        return lines(["", *map(visible, said)]) if said else ""
