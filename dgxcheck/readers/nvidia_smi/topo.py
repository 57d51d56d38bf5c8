"""``nvidia-smi topo -m`` and ``-mp`` of every era, as ``stated`` facts of devices that it names.

Labels: SOC until 2017, SYS and NODE since (R387 or R390). A matrix without any NV# may be one of PCI paths alone,
unless its legend knows NV# or is older than NVLink.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.matrix import TopoMatrix, TopoRow, matrices

_LABEL = re.compile(r"PIX|PXB|PHB|NODE|SOC|SYS|NV[1-9]\d{0,2}", re.ASCII)
_BEFORE_NVLINK = "Path traverses"
"""Words of the legend of 2015 and 2016 (352)."""
_CPUS = re.compile(r"[\d,-]{1,4096}|N/A", re.ASCII)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every matrix of labels in a text."""
    return tuple(_imported(matrix) for matrix in matrices(lines) if _is_labels(matrix))


def _is_labels(matrix: TopoMatrix) -> bool:
    labels = matrix.words - {"X"}
    by_command = matrix.option.startswith("-m") or (not matrix.option and len(matrix.columns) == 1)
    return any(map(_LABEL.fullmatch, labels)) or (not labels and (by_command or bool(matrix.titles)))


def _imported(matrix: TopoMatrix) -> Imported:
    kind = "label" if _shows_nvlinks(matrix) else "label-pci"
    facts: dict[str, Json] = {}
    understood = set(matrix.lines)
    for row in matrix.rows:
        complete = len(row.cells) == len(matrix.columns) and row.name in matrix.columns
        cells = row.cells if len(row.cells) == len(matrix.columns) else row.cells[:-1]  # NV1 may be half of NV12
        for column, cell in zip(matrix.columns, cells, strict=False):
            valid = cell == "X" if column == row.name else _LABEL.fullmatch(cell) is not None
            fact: Json = cell if valid else {"missing": "garbled", "detail": cell[:40]}
            complete = facts.setdefault(f"stated {kind} {row.name} {column}", fact) == fact and valid and complete
        facts |= dict(_affinities(row, matrix.titles))
        if complete:
            understood |= {row.line, *row.more}
    facts |= {f"stated nic-name {name}": nic_name for name, nic_name in matrix.nics.items() if name in matrix.columns}
    tool = f"nvidia-smi topo {'-m' if kind == 'label' else matrix.option}".strip()
    return Imported(tool=tool, facts=facts, understood=frozenset(understood))


def _shows_nvlinks(matrix: TopoMatrix) -> bool:
    if any(word.startswith("NV") for word in matrix.words):
        return True
    if matrix.option:
        return not matrix.option.startswith(("-mp", "--matrix_pci"))
    return "NV#" in matrix.legend or _BEFORE_NVLINK in matrix.legend


def _affinities(row: TopoRow, titles: tuple[str, ...]) -> Iterator[tuple[str, Json]]:
    """What stands under the titles; rows of NICs end before them, and too few or many words tell nothing."""
    if len(row.rest) == len(titles):
        for kind, text in zip(titles, row.rest, strict=True):
            if _CPUS.fullmatch(text) and not text.endswith((",", "-")):  # where the text is cut
                yield f"stated {kind} {row.name}", text
