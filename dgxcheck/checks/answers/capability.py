"""What every board of an architecture answers, by NVML's documentation, whatever its siblings do.

A row of ``capability.tsv`` holds for the boards of ``profiles/boards.toml`` on bare metal outside of MIG mode, and for
GeForce RTX where it names them; what only some answer is not here. Source: "Supported on" of each function in
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html, the dumps that ``boards.toml`` names, for
remapped rows https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/supported-gpus.html, of GeForce ``nvidia-smi -q``
of an RTX 5090, driver 570.124.06 (thamada/nvidia-smi).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dgxcheck.components.device_facts import architecture_named
from dgxcheck.package_files import table

_ARCHITECTURES = {"kepler": 2, "pascal": 4, "volta": 5, "ampere": 7, "hopper": 9, "blackwell": 10}
"""``nvmlDeviceArchitecture_t``"""
GEFORCE = ("GeForce RTX",)
_BOARDS: Mapping[str, tuple[str, ...]] = {
    "": ("",),
    "geforce": GEFORCE,
    "coherent": ("GH200", "GB200", "GB300"),
    # those with HBM; what those with GDDR answer is less on record
    "stacked": ("P100", "V100", "A100", "A800", "A30", "H100", "H200", "H800", "H20", "B100", "B200", "B300"),
}
"""Words of which the name of a model has one."""


@cache  # the GPUs of a box are silent about the same
def is_answered(path: str, model: str, branch: int, ecc: bool) -> bool:
    """Does every board of this model answer this, with such a driver? False for a model of no known architecture."""
    return any(path.startswith(paths) and path.endswith(names) for names, paths in _answered(model, branch, ecc))


@cache
def _answered(model: str, branch: int, ecc: bool) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Ends and beginnings of the paths of all rows that hold for a model."""
    architecture = architecture_named(model)
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for row in table("checks/answers/capability.tsv"):
        since, until = (_ARCHITECTURES[row[end]] for end in ("since", "until"))
        if (
            (row["boards"] == "geforce" if architecture is None else since <= architecture <= until)
            and int(row["branch"] or 0) <= branch <= int(row["last_branch"] or branch)
            and (ecc or not row["ecc"])
            and any(word in model for word in _BOARDS[row["boards"]])
            and not any(word in model for word in row["without"].split())
        ):
            ends = tuple(row["ends"].split()) or ("",)
            found[ends] = found.get(ends, ()) + tuple(row["paths"].split())
    return tuple(found.items())
