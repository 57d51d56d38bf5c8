"""Line rates of PCIe links and NVLinks, per direction."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Missing

GIGATRANSFERS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
ENCODING = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256}
"""Share of the transfers that carries data; generation 6 gives 14 of 256 bytes of a flit to error correction."""

NVLINK_GBS = {1: 20.0, 2: 25.0, 3: 25.0, 4: 25.0, 5: 50.0}
"""GB/s (1e9) per link and direction, rounded as in NVIDIA's white papers (NVML: 25.781 on V100, 26.562 on H100)."""


def pcie_gbs(gen: int | Missing, width: int | Missing) -> float | Missing:
    """GB/s (1e9) per direction of a PCIe link before packet overhead: 15.75 for generation 3 x16."""
    if isinstance(gen, Missing):
        return gen
    if isinstance(width, Missing):
        return width
    if gen not in GIGATRANSFERS or width <= 0:
        return Missing(Gap.GARBLED, "PCIe link", f"generation {gen} x{width}")
    return GIGATRANSFERS[gen] * ENCODING[gen] * width / 8


def nvlink_gbs(generation: int | None) -> float | Missing:
    """GB/s (1e9) per NVLink and direction."""
    if generation not in NVLINK_GBS:
        why = f"no line rate listed for NVLink generation {generation}" if generation else "NVLink generation unknown"
        return Missing(Gap.UNSUPPORTED, "nvmlDeviceGetNvLinkVersion", why)
    return NVLINK_GBS[generation]
