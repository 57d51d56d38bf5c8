"""Whether the driver lets two GPUs reach each other's memory."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing

CAPABILITIES = ("read", "write", "nvlink", "atomics", "prop")
"""By ``nvmlGpuP2PCapsIndex_t``."""

STATUSES = ("OK", "CNS", "GNS", "TNS", "DR", "NS", "U")
"""By ``nvmlGpuP2PStatus_t``, as nvidia-smi words it: ok, chipset not supported, GPU not supported, topology not
supported, disabled by registry key, not supported, unknown."""


class P2pStatus(Record):
    """``nvmlDeviceGetP2PStatus`` of an ordered pair, one of ``STATUSES`` per capability."""

    a: str
    b: str
    read: str | Missing
    write: str | Missing
    nvlink: str | Missing
    atomics: str | Missing
    prop: str | Missing
