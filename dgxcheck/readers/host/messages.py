"""Single lines in which programs around the driver say why they failed: vGPU Manager and licences, QEMU, mig-parted,
gdscheck, clients of DCGM, the validator of the GPU operator; whether the results of HPL and STREAM are right.

Messages: https://docs.nvidia.com/vgpu/latest/grid-vgpu-user-guide, troubleshooting; QEMU hw/vfio/container.c;
https://github.com/NVIDIA/mig-parted; https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide;
https://github.com/NVIDIA/DCGM; https://github.com/NVIDIA/dcgm-exporter; https://github.com/NVIDIA/gpu-operator,
validator; HPL_pdtest.c of https://www.netlib.org/benchmark/hpl; https://www.cs.virginia.edu/stream; rights for MIG:
https://docs.nvidia.com/datacenter/tesla/mig-user-guide.
"""

from __future__ import annotations

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import Wording, wordings

_ROWS = wordings("host/messages")


def read_messages(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One result for each topic of each program: of its lines the first since the last good one."""
    parts: dict[str, ToolPart] = {}
    found: dict[tuple[str, str], tuple[Wording, str]] = {}
    for number, text in numbered(lines):
        for row in _ROWS:
            if (match := row.words.search(text)) is None:
                continue
            parts.setdefault(row.tool, ToolPart(row.tool)).lines.add(number)
            before = found.get((row.tool, row.topic))
            if before is None or "pass" in (row.outcome, before[0].outcome):
                said = (match.groupdict().get("said") or "").strip()
                found[row.tool, row.topic] = row, (row.text or "{said}").format(said=as_bdf(said) or said)
            break
    for (tool, topic), (row, text) in found.items():
        parts[tool].add(HOST, topic, row.outcome, row.fault, "" if row.outcome == "pass" else text)
    return tuple(each for part in parts.values() for each in part.imported())
