"""How much memory a process may lock, which RDMA does with all that it registers."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class Memlock(Record):
    """``Max locked memory`` of ``/proc/self/limits``: of the process that asks, and of what it starts."""

    soft: int | Missing | None
    """Bytes; None where it is unlimited."""
    hard: int | Missing | None
