"""What every board of an architecture answers, by NVML's documentation, whatever its siblings do.

A row holds for the boards of ``profiles/boards.toml`` on bare metal outside of MIG mode, and for GeForce RTX where it
names them; what only some answer is not here. Source: "Supported on" of each function in
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html, the dumps that ``boards.toml`` names, for
remapped rows https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/supported-gpus.html, of GeForce ``nvidia-smi -q``
of an RTX 5090, driver 570.124.06 (thamada/nvidia-smi).
"""

from __future__ import annotations

from functools import cache

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.xid.table import architecture_of

KEPLER, PASCAL, VOLTA, AMPERE, HOPPER, BLACKWELL = 2, 4, 5, 7, 9, 10
"""``nvmlDeviceArchitecture_t``"""


_STACKED = ("P100", "V100", "A100", "A800", "A30", "H100", "H200", "H800", "H20", "B100", "B200", "B300")
"""Boards with HBM; what those with GDDR answer is less on record."""
_COHERENT = ("GH200", "GB200", "GB300")
GEFORCE = ("GeForce RTX",)


class Row(Record, kw_only=False):
    """Facts by the beginning of their paths, and the architectures and driver branches that have them."""

    paths: tuple[str, ...]
    since: int = KEPLER
    until: int = BLACKWELL
    branch: int = 0
    """The first driver branch."""
    last_branch: int = 9999
    ecc: bool = False
    """Only while ECC is on."""
    boards: tuple[str, ...] = ()
    """Only models whose name has one of these words."""
    names: tuple[str, ...] = ("",)
    """The ends of the paths."""
    without: tuple[str, ...] = ()
    """Not of models whose name has one of these words."""


ROWS = (
    Row(("gpu.name", "gpu.uuid", "gpu.serial", "gpu.minor", "gpu.vbios")),
    Row(("gpu_board.pci_device_id", "gpu_board.inforom_image")),
    Row(("gpu_pcie.link_gen", "gpu_pcie.link_width", "gpu_pcie.max_link_gen", "gpu_pcie.max_link_width")),
    Row(("gpu_pcie.link_gen", "gpu_pcie.link_width", "gpu_clocks.reasons", "gpu_clocks.performance_state",
         "gpu_thermal.gpu_c", "gpu_processes.gpu_percent"), boards=GEFORCE),
    Row(("gpu_board.c2c",), branch=560, boards=_COHERENT),
    Row(("gpu_processes.gpu_percent",)),
    Row(("gpu_pcie.bar1_total", "gpu_pcie.bar1_free"), without=("GH200",)),  # its memory is that of NUMA nodes
    Row(("gpu_memory.total", "gpu_memory.used", "gpu_memory.ecc")),
    Row(("gpu_memory.row_histogram.",), since=AMPERE, branch=450, boards=_STACKED),
    Row(("gpu_clocks.current.", "gpu_clocks.max.", "gpu_clocks.reasons", "gpu_clocks.performance_state")),
    Row(("gpu_clocks.application.", "gpu_clocks.default_application."), last_branch=579),
    Row(("gpu_clocks.auto_boost",), until=KEPLER),
    Row(("gpu_power.usage_mw", "gpu_power.enforced_limit_mw", "gpu_power.default_limit_mw")),
    Row(("gpu_thermal.gpu_c",)),
    Row(("gpu_thermal.shutdown_c", "gpu_thermal.slowdown_c"), until=AMPERE),
    Row(("gpu_thermal.memory_c",), since=VOLTA, branch=418, boards=_STACKED),
    Row(("gpu_modes.persistence", "gpu_modes.compute_mode")),
    Row(("gpu_modes.recovery_action",), since=AMPERE, until=HOPPER, branch=570),
    Row(("gpu_counters.pcie_replays", "gpu_counters.reasons_mask")),
    Row(tuple(f"gpu_ecc.{period}_{error}.total" for period in ("volatile", "aggregate")
              for error in ("corrected", "uncorrected")), until=HOPPER, ecc=True),
    Row(("gpu_ecc.retired_", "gpu_ecc.retirement_pending"), until=VOLTA, ecc=True),
    Row(("gpu_ecc.remapped_", "gpu_ecc.remap_"), since=AMPERE, branch=450, boards=_STACKED),
    Row(("gpu_ecc.remapped_", "gpu_ecc.remap_"), since=AMPERE, branch=450, ecc=True),
    Row(("gpu_ecc.channel_repair_pending", "gpu_ecc.tpc_repair_pending"), since=HOPPER, branch=580, boards=_STACKED),
    Row(("gpu_ecc.sram_exceeded",), since=AMPERE, branch=570, ecc=True, boards=_STACKED),
    Row(("gpu_modes.mig",), since=AMPERE, branch=450, boards=_STACKED),
    Row(("nvlink.",), since=PASCAL, boards=_STACKED, names=(".generation",)),
    Row(("nvlink.",), since=PASCAL, until=HOPPER, boards=_STACKED, names=(".remote_bdf",)),  # of links that are up
    Row(("nvlink_errors.",), since=PASCAL, until=AMPERE, boards=_STACKED, names=(".replay", ".recovery", ".crc_flit")),
)  # fmt: skip


@cache  # the GPUs of a box are silent about the same
def is_answered(path: str, model: str, branch: int, ecc: bool) -> bool:
    """Does every board of this model answer this, with such a driver? False for a model of no known architecture."""
    return any(path.startswith(paths) and path.endswith(names) for names, paths in _answered(model, branch, ecc))


@cache
def _answered(model: str, branch: int, ecc: bool) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Ends and beginnings of the paths of all rows that hold for a model."""
    try:
        architecture = architecture_of(model)[1]
    except BadInput:
        architecture = None
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for row in ROWS:
        if (
            (row.boards == GEFORCE if architecture is None else row.since <= architecture <= row.until)
            and row.branch <= branch <= row.last_branch
            and (ecc or not row.ecc)
            and (not row.boards or any(word in model for word in row.boards))
            and not any(word in model for word in row.without)
        ):
            found[row.names] = found.get(row.names, ()) + row.paths
    return tuple(found.items())
