"""The fabric of a GPU in a dump of nvidia-smi, as NVML answers it."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts import fabric_health as health
from dgxcheck.facts.missing import Json
from dgxcheck.readers.nvidia_smi.fields import WORDS, number

_PREFIX = "fabric/health/"
_BEFORE = (1, 2)
"""NVML_GPU_FABRIC_STATE_NOT_STARTED and _IN_PROGRESS."""
_CODES = {words: code for code, words in health.STATUSES.items()}
_FLAGS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "degraded_bandwidth": ("bandwidth", {"Degraded": 1, "Full": 2}),
    "route_recovery": ("route recovery in progress", {"True": 1, "False": 2}),
    "route_unhealthy": ("route unhealthy", {"True": 1, "False": 2}),
    "access_timeout_recovery": ("access timeout recovery", {"True": 1, "False": 2}),
}
_SUMMARIES = {"N/A": 0, "Healthy": 1, "Unhealthy": 2, "Limited Capacity": 3}
_CONFIGURATIONS = (
    ("guid", 2), ("chassis", 3), ("no partition", 4), ("insufficient", 5), ("firmware", 6), ("location", 7),
    ("state", 8), ("none", 1), ("n/a", 0),
)  # fmt: skip
"""By a word of ``incorrect configuration``: "Incorrect SystemGUID", "Insufficient Nvlinks" ..."""


def fabric(fields: Mapping[str, str]) -> dict[str, Json] | None:
    """``nvmlGpuFabricInfo``, with the health where the dump has it; None without state or status that is known.

    The status is that of the registration (nvml.h): before it is completed there is none, which a dump says as N/A.
    """
    state, status = WORDS.get(fields.get("fabric/state", "")), fields.get("fabric/status", "")
    code = _CODES.get(status.lower(), 0 if state in _BEFORE else WORDS.get(status))
    if state is None or code is None:
        return None
    answer: dict[str, Json] = {
        "state": state, "status": code, "cliqueId": number(fields.get("fabric/cliqueid", "")),
        "clusterUuid": fields.get("fabric/clusteruuid", "").removesuffix("N/A"),
    }  # fmt: skip
    if any(path.startswith(_PREFIX) for path in fields):
        answer["healthMask"] = _mask(fields)
    summary = fields.get(f"{_PREFIX}summary")
    return answer if summary is None else answer | {"healthSummary": _SUMMARIES.get(summary)}


def _mask(fields: Mapping[str, str]) -> int:
    """What is N/A, or in words that are not known, counts as not supported."""
    mask = _configuration(fields.get(f"{_PREFIX}incorrect configuration", "n/a")) << health.CONFIGURATION
    for flag, (name, words) in _FLAGS.items():
        mask |= words.get(fields.get(_PREFIX + name, ""), 0) << health.FLAGS[flag]
    return mask


def _configuration(text: str) -> int:
    return next((code for word, code in _CONFIGURATIONS if word in text.lower()), 0)
