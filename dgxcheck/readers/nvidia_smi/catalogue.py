"""The readers of nvidia-smi's outputs, and those of its commands that change something."""

from __future__ import annotations

from dgxcheck.facts.bdf import as_bdf, unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.model import HOST, Imported, Reader, ToolPart
from dgxcheck.readers.nvidia_smi import dmon, failures, nvlink, query, query_csv, query_documents, table, topo
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of

_BUS_ID = any_of("nvidia_smi/lines", "{BUSID}")
_DRAINED = LazyPattern(
    rf"(?:The current drain state of GPU (?P<of>{_BUS_ID}) is|Successfully set GPU (?P<now>{_BUS_ID}) drain state to): "
    r"(?P<state>[\w ]{4,20})\.?"
)


def read_drain(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``nvidia-smi drain``: a GPU that is kept from new programs, which only a person does."""
    part = ToolPart("nvidia-smi drain")
    rows = part.matches(_DRAINED, numbered(lines))
    states = {as_bdf(row["of"] or row["now"]) or HOST: row["state"] == "draining" for row in rows}
    for subject, drains in states.items():
        text = "draining: no new program may use it until drain -m 0" if drains else ""
        part.add(subject, "state", "note" if drains else "pass", None, text)
    return part.imported()


_EXCLUDED = LazyPattern(
    rf"Excluded GPU \d{{1,2}}: (?P<listed>{_BUS_ID}) \(UUID: .{{1,80}}\)|No excluded devices found\."
    r"|Bus Location:\s{1,12}(?P<at>[0-9a-fA-F:.]{10,16})|(?:GPU Excluded|Blacklisted):\s{1,12}(?P<word>Yes|No)"
)


def read_excluded(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``nvidia-smi -B`` and ``/proc/driver/nvidia/gpus/*/information``: GPUs that the driver leaves out."""
    part, at = ToolPart("NVIDIA driver"), ""
    for match in part.matches(_EXCLUDED, numbered(lines)):
        at = match["at"] or match["listed"] or at
        if match["listed"] or match["word"] == "Yes":
            part.add(as_bdf(at) or HOST, "excluded", "warn", Fault.GPU_EXCLUDED, "a GPU is excluded, and has no device")
    return part.imported()


_HELD = caseless_pattern(any_of("nvidia_smi/lines", "in use"))
_FREED = LazyPattern(rf"GPU (?P<bus>{_BUS_ID}) was successfully reset\.")
_ASIDE = caseless_pattern(any_of("nvidia_smi/lines", "nvidia-smi -r"))
_ENDS = "All done."
"""Of many of its commands."""


def read_reset(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``nvidia-smi -r``, ``-mig`` and ``mig -dci``: GPUs that programs keep from a reset or from another MIG mode.

    The MIG manager logs all of its lines in one, with ``\\n`` between them.
    """
    part = ToolPart("nvidia-smi -r")
    held: dict[str, str] = {}
    for number, text in ((at, each.strip()) for at, line in numbered(lines) for each in line.split("\\n")):
        if match := _HELD.fullmatch(text):
            held[as_bdf(match["bus"] or "") or (unplaced(int(match["gpu"])) if match["gpu"] else HOST)] = text
        elif match := _FREED.fullmatch(text):
            held.pop(as_bdf(match["bus"]) or "", None)
        elif text == _ENDS:
            part.beside.add(number)
            continue
        elif not _ASIDE.fullmatch(text):
            continue
        part.lines.add(number)
    for subject, text in held.items():
        part.add(subject, "in-use", "warn", Fault.GPU_IN_USE, text)
    return part.imported()


READERS: tuple[Reader, ...] = (
    failures.read_failure, topo.read_labels, topo.read_p2p, nvlink.read_nvlink, nvlink.read_errors, nvlink.read_c2c,
    nvlink.read_pci, query.read_text, query_documents.read_xml, query_documents.read_json, table.read_table,
    query_csv.read_csv, query_csv.read_pages, nvlink.read_list, dmon.read_dmon, read_drain, read_excluded, read_reset,
)  # fmt: skip
"""Errors first, and those with more fields before the plain table."""
