"""What NVML says of the health of a GPU's fabric: the fields of ``healthMask`` (``NVML_GPU_FABRIC_HEALTH_MASK_*``)."""

from __future__ import annotations

from collections.abc import Mapping

FLAGS: Mapping[str, int] = {
    "degraded_bandwidth": 0, "route_recovery": 2, "route_unhealthy": 4, "access_timeout_recovery": 6,
}  # fmt: skip
"""Fields of two bits by their shift: 0 not supported, 1 true, 2 false."""
STATUSES: Mapping[int, str] = {
    3: "not supported", 10: "timeout", 19: "in use", 23: "insufficient resources", 26: "invalid state",
    999: "unknown error",
}  # fmt: skip
"""What the status of a registration can be, ``nvmlReturn_t``, in the words of nvmlErrorString."""
CONFIGURATION, MANAGER = 8, 14
"""Shifts of the configuration (four bits) and of the fabric manager's state (two bits)."""
TRUE = 1
CONFIGURED = (0, 1)
"""Values of the configuration that are no fault: not supported, and none of these."""
CONFIGURATIONS: Mapping[int, str] = {
    2: "wrong system GUID", 3: "wrong chassis serial number", 4: "no partition", 5: "too few NVLinks",
    6: "incompatible GPU firmware", 7: "invalid location", 8: "invalid GPU state",
}  # fmt: skip
DISCONNECTED = 2
UNHEALTHY, LIMITED = 2, 3
"""Of ``healthSummary``; 0 is not supported, 1 healthy."""


def flag(mask: int, name: str) -> bool:
    """Is this flag known to be true?"""
    return mask >> FLAGS[name] & 3 == TRUE


def configuration(mask: int) -> int:
    """Why the configuration is incorrect, one of ``CONFIGURATIONS``, or one of ``CONFIGURED``."""
    return mask >> CONFIGURATION & 0xF


def disconnected(mask: int) -> bool:
    """Does the GPU say that its fabric manager is disconnected?"""
    return mask >> MANAGER & 3 == DISCONNECTED
