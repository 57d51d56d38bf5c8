"""How much memory a process may lock, which RDMA does with all that it registers."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class Limit(Record):
    """``Max locked memory`` of ``/proc/<pid>/limits``, in bytes; None where it is unlimited."""

    soft: int | Missing | None
    hard: int | Missing | None


class JobDaemon(Record):
    """A daemon that starts jobs, which can lock no more than its hard limit."""

    name: str
    unit: str
    """Of systemd, such as ``slurmd.service``."""
    limit: Limit | Missing


class Setting(Record):
    """A line that sets the limit: of ``limits.conf(5)``, ``LimitMEMLOCK=`` of a unit or ``DefaultLimitMEMLOCK=``."""

    path: str
    line: int
    """Counted from 1."""
    text: str
    limits: tuple[int | None, ...]
    """Soft and hard one that it sets, or one of both, in bytes; None is unlimited."""


class Memlock(Record):
    """Limits, and the lines of configuration that they may come from."""

    own: Limit | Missing
    """Of the process that asks, and of what it starts."""
    daemons: tuple[JobDaemon, ...]
    settings: tuple[Setting, ...]
