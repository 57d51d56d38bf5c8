"""The facts of one machine out of all outputs of a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.readers.bundles.outputs import NO_NVLINKS, Output
from dgxcheck.readers.combine import Part, combine
from dgxcheck.readers.derived import completed
from dgxcheck.readers.listing import OF_LIST, with_numbers, without_unplaced
from dgxcheck.readers.onto import mismatch, nvml_gpus, printed_bdfs, rebase_indexes

_INVALID: Json = {"missing": "unsupported", "detail": "nvidia-smi lists no such link", "code": 2}
_NO_NVLINK: Json = {"missing": "unsupported", "detail": "nvidia-smi lists no NVLink of this GPU"}
_STATE = "nvml nvmlDeviceGetNvLinkState"
_MOST_LINKS = 36


def machine_facts(found: Sequence[Output]) -> tuple[dict[str, Json], tuple[str, ...]]:
    """Facts by key, and the titles of outputs that were left out because they contradict an earlier one.

    What names GPUs by their index belongs to those of nvidia-smi's dump.
    """
    combined = combine([Part(output.title, output.found) for output in found], one_box=True)
    facts = combined.facts
    facts = without_unplaced(facts) if f"names {PCI_DEVICES}" in facts else with_numbers(facts)
    gpus = nvml_gpus(facts) or printed_bdfs(facts)
    if gpus and not mismatch(facts, gpus):
        own = {key: fact for key, fact in facts.items() if key.startswith(("nvml ", *OF_LIST))}
        facts = rebase_indexes(facts, gpus) | own
        facts |= _ends_of_links(facts, nvml_gpus(facts))
    refused = tuple(part.file for part in combined.refused)
    return {key: fact for key, fact in completed(facts).items() if not key.startswith(NO_NVLINKS)}, refused


def _ends_of_links(facts: Mapping[str, Json], gpus: Sequence[str]) -> dict[str, Json]:
    """``nvlink --status`` lists all links of the GPUs that have any: the number after the last one is no link."""
    ends: dict[str, Json] = {}
    if NO_NVLINKS in facts:
        return {f"{_STATE} {bdf} 0": _NO_NVLINK for bdf in gpus}
    status = any(key.startswith(f"{_STATE} ") for key in facts)
    for bdf in gpus:
        listed = [link for link in range(_MOST_LINKS) if f"{_STATE} {bdf} {link}" in facts]
        if not listed and status:
            ends[f"{_STATE} {bdf} 0"] = _NO_NVLINK
        if listed and listed[-1] == len(listed) - 1 and len(listed) < _MOST_LINKS:
            ends[f"{_STATE} {bdf} {len(listed)}"] = _INVALID
    return ends
