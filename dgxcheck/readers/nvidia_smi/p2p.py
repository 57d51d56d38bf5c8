"""``nvidia-smi topo -p2p r|w|n|a|p``: which GPUs may reach each other's memory.

The output does not say which of the five was asked; a command line pasted above it does.
"""

from __future__ import annotations

from dgxcheck.facts.missing import Json
from dgxcheck.facts.nvlink import CAPABILITIES, STATUSES
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.matrix import TopoMatrix, matrices

_OPTIONS = {name[0]: name for name in CAPABILITIES}


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every matrix of status words in a text."""
    return tuple(_imported(matrix) for matrix in matrices(lines) if matrix.words & set(STATUSES))


def _imported(matrix: TopoMatrix) -> Imported:
    option = matrix.option.partition(" ")[2]
    capability = _OPTIONS.get(option, "") if "p2p" in matrix.option else ""
    kind = f"p2p-{capability}" if capability else "p2p"
    facts: dict[str, Json] = {}
    understood = set(matrix.lines)
    for row in matrix.rows:
        complete = row.name in matrix.columns and len(row.cells) == len(matrix.columns)
        cells = row.cells if len(row.cells) == len(matrix.columns) else row.cells[:-1]  # N may be half of NS
        for column, cell in zip(matrix.columns, cells, strict=False):
            valid = cell == "X" if column == row.name else cell in STATUSES
            fact: Json = cell if valid else {"missing": "garbled", "detail": cell[:40]}
            complete = facts.setdefault(f"stated {kind} {row.name} {column}", fact) == fact and valid and complete
        if complete:
            understood |= {row.line, *row.more}
    return Imported(tool=f"nvidia-smi topo -p2p {option}".strip(), facts=facts, understood=frozenset(understood))
