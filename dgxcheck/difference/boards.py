"""GPUs: model, firmware, settings, retired pages and remapped rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Difference, Side, in_container
from dgxcheck.difference.numbers import ComparedQuantity, of_gpus, row_of
from dgxcheck.facts.ids import COMPUTE_MODES
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device

DRIVER_RESERVE = 0.03
"""Share of the memory that the driver version reserves: up to 1.6 % of a V100's total."""

MODES = dict(enumerate(COMPUTE_MODES))
SWITCH = {0: "off", 1: "on"}
RECOVERY = {0: "none", 1: "reset", 2: "reboot", 3: "drain P2P", 4: "drain and reset"}
"""``NVML_FI_DEV_GET_GPU_RECOVERY_ACTION``"""


def _many(pages: Any) -> Any:
    return pages if isinstance(pages, Missing) else len(pages)


TABLE = (
    ("gpu", ComparedQuantity("hardware", "model", lambda row: row.name)),
    ("gpu_memory", ComparedQuantity("hardware", "memory", lambda row: row.total, "more", "bytes", DRIVER_RESERVE)),
    ("gpu_pcie", ComparedQuantity("hardware", "bar1", lambda row: row.bar1_total, "more", "bytes")),
    (
        "gpu_ecc",
        ComparedQuantity("memory", "retired-pages-single-bit", lambda row: _many(row.retired_single_bit), "less"),
    ),
    (
        "gpu_ecc",
        ComparedQuantity("memory", "retired-pages-double-bit", lambda row: _many(row.retired_double_bit), "less"),
    ),
    ("gpu_ecc", ComparedQuantity("memory", "retirement-pending", lambda row: row.retirement_pending, "less")),
    ("gpu_ecc", ComparedQuantity("memory", "remapped-rows-corrected", lambda row: row.remapped_corrected, "less")),
    ("gpu_ecc", ComparedQuantity("memory", "remapped-rows-uncorrected", lambda row: row.remapped_uncorrected, "less")),
    ("gpu_ecc", ComparedQuantity("memory", "remap-pending", lambda row: row.remap_pending, "less")),
    ("gpu_ecc", ComparedQuantity("memory", "remap-failed", lambda row: row.remap_failed, "less")),
    (
        "gpu_modes",
        ComparedQuantity("memory", "recovery-action", lambda row: row.recovery_action, "less", words=RECOVERY),
    ),
    ("gpu", ComparedQuantity("firmware", "vbios", lambda row: row.vbios)),
    ("gpu_board", ComparedQuantity("firmware", "inforom-image", lambda row: row.inforom_image)),
    ("gpu_board", ComparedQuantity("firmware", "inforom-oem", lambda row: row.inforom_oem)),
    ("gpu_board", ComparedQuantity("firmware", "inforom-ecc", lambda row: row.inforom_ecc)),
    ("gpu_board", ComparedQuantity("firmware", "inforom-power", lambda row: row.inforom_power)),
    ("gpu_memory", ComparedQuantity("setting", "ecc", lambda row: row.ecc, words=SWITCH)),
    ("gpu_memory", ComparedQuantity("setting", "ecc-pending", lambda row: row.ecc_pending, words=SWITCH)),
    ("gpu_modes", ComparedQuantity("setting", "persistence", lambda row: row.persistence, words=SWITCH)),
    ("gpu_modes", ComparedQuantity("setting", "compute-mode", lambda row: row.compute_mode, words=MODES)),
    ("gpu_modes", ComparedQuantity("setting", "mig", lambda row: row.mig, words=SWITCH)),
    ("gpu_modes", ComparedQuantity("setting", "mig-pending", lambda row: row.mig_pending, words=SWITCH)),
    ("gpu_power", ComparedQuantity("setting", "power-limit", lambda row: row.limit_mw, "neither", "mW")),
    (
        "gpu_clocks",
        ComparedQuantity("setting", "application-clock", lambda row: row.application.graphics, "neither", "MHz"),
    ),
)
"""Field of the snapshot, and the quantity in its record per GPU."""


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    ecc_changed = {pair.either.bdf for pair in devices.gpus if _ecc(old, pair.old) != _ecc(new, pair.new)}
    for difference in of_gpus(old, new, devices, TABLE):
        if difference.what != "memory" or difference.bdf not in ecc_changed:  # ECC takes an eighth of a K80's memory
            yield difference
    yield from _listed(old, new, devices)
    yield from _bound(old, new, devices)


def _ecc(side: Side, device: Device | None) -> Any:
    row = row_of(side, "gpu_memory", device)
    return row.ecc if row is not None else None


def _listed(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """GPUs that NVML lists on one side only; neutral in a container, which may hide GPUs on purpose."""
    if not all(any(device.index is not None for device in side.topology.gpus) for side in (old, new)):
        return
    container = in_container(old) or in_container(new)
    for pair in devices.gpus:
        if pair.old is None or pair.new is None or (pair.old.index is None) == (pair.new.index is None):
            continue
        listed_now = pair.new.index is not None
        yield Difference(
            kind="neutral" if container else "better" if listed_now else "worse", area="hardware", change="changed",
            device=pair.old.name if pair.new.index is None else pair.new.name, bdf=pair.either.bdf, what="nvml-listed",
            old=not listed_now, new=listed_now,
            message="listed by NVML again" if listed_now else "no longer listed by NVML",
        )  # fmt: skip


def _bound(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """Devices bound to another kernel driver than before."""
    for pair in devices.devices:
        if not pair.old or not pair.new or not pair.old.function or not pair.new.function:
            continue
        was, now = pair.old.function.driver, pair.new.function.driver
        if isinstance(was, Missing) or isinstance(now, Missing) or was == now:
            continue
        yield Difference(
            kind="worse" if now is None else "better" if was is None else "neutral", area="setting", change="changed",
            device=pair.either.name, bdf=pair.either.bdf, what="kernel-driver", old=was, new=now,
            message=f"kernel driver: {was or 'none'} -> {now or 'none'}",
        )  # fmt: skip
