"""What NCCL logs of a GPU's NVLink fabric at start: NVML's answer, as ``nvmlGpuFabricInfo_v2_t`` has it.

``MNNVL busId 0x901000 fabric UUID 3143b15b.28cc9b54 cliqueId 0x7ffe state 3 healthMask 0xaa``, from 2.21 on
(https://github.com/NVIDIA/nccl/blob/master/src/init.cc).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dgxcheck.facts.missing import Json
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.listing import WITHOUT_NUMBER, gpu_function
from dgxcheck.readers.nccl.warnings import bdf_of

_LINE = LazyPattern(
    r"MNNVL busId (?:0x)?(?P<bus>[0-9a-f]{3,13}) fabric UUID (?P<low>[0-9a-f]{1,16})\.(?P<high>[0-9a-f]{1,16}) "
    r"cliqueId (?:0x)?(?P<clique>[0-9a-f]{1,8}) state (?P<state>\d{1,2}) healthMask (?:0x)?(?P<mask>[0-9a-f]{1,8})",
    "MNNVL busId ",
)
_OVERRIDES = {"NCCL_MNNVL_UUID", "NCCL_MNNVL_CLIQUE_ID"}
"""Settings with which NCCL logs its own numbers in place of NVML's."""


class Fabrics:
    """The answers of one host's GPUs, by bus id: the last one logged."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Json]] = {}

    def take(self, text: str) -> bool:
        """Is it such a line?"""
        match = _LINE.fullmatch(text)
        bdf = bdf_of(match["bus"]) if match else None
        if match is None or bdf is None:
            return False
        # NCCL prints the UUID's sixteen bytes as two little-endian numbers without leading zeros.
        raw = b"".join(int(match[half], 16).to_bytes(8, "little") for half in ("low", "high")).hex()
        self._answers[bdf] = {
            "state": int(match["state"]), "healthMask": int(match["mask"], 16), "cliqueId": int(match["clique"], 16),
            "clusterUuid": "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:])),
        }  # fmt: skip
        return True

    def facts(self, settings: Collection[str]) -> Iterator[tuple[str, Json]]:
        """NVML's, without cluster and clique where one of the log's settings replaced them; the log has no status."""
        hidden = {"cliqueId", "clusterUuid"} if _OVERRIDES.intersection(settings) else set()
        for bdf, answer in self._answers.items():
            yield f"{WITHOUT_NUMBER} {bdf}", True
            yield from gpu_function(bdf).items()
            kept: Json = {name: fact for name, fact in answer.items() if name not in hidden}
            yield f"nvml nvmlDeviceGetGpuFabricInfo {bdf}", kept
