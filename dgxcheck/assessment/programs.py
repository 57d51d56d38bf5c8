"""The programs that use GPUs: pids come from NVML, user and command from psutil, on the live machine only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dgxcheck.facts.gpu import GpuActivity
    from dgxcheck.topology.model import Device

_INIT_PID_NAMESPACE = "pid:[4026531836]"
"""PROC_PID_INIT_INO of the kernel. NVML gives pids of this namespace; in a container they name other processes."""


class Program(Record):
    """One process with a context on a GPU."""

    gpu: str
    """As the matrix names it: ``GPU3``."""
    bdf: str
    pid: int
    gpu_memory: int | Missing
    """Bytes."""
    name: str | Missing
    """The executable, from NVML."""
    user: str | Missing
    command: str | Missing
    """The command line, arguments joined by blanks."""


def programs(
    gpus: Sequence[Device], activity: tuple[GpuActivity, ...] | Missing, asked_at: float
) -> tuple[Program, ...]:
    """The processes that NVML listed at ``asked_at`` (``time.time``), by GPU; none where it lists none or fails."""
    names = {gpu.bdf: gpu.name for gpu in gpus}
    found = []
    for row in rows(activity):
        listed = [part for part in (row.compute, row.graphics) if not isinstance(part, Missing)]
        for process in {each.pid: each for part in listed for each in part}.values() if row.bdf in names else ():
            user, command = _user_and_command(process.pid, asked_at)
            found.append(
                Program(
                    gpu=names[row.bdf], bdf=row.bdf, pid=process.pid, gpu_memory=process.used_memory,
                    name=process.name, user=user, command=command,
                )
            )  # fmt: skip
    return tuple(found)


def _user_and_command(pid: int, asked_at: float) -> tuple[str | Missing, str | Missing]:
    where = f"/proc/{pid}"
    try:
        same_pids = os.readlink("/proc/self/ns/pid") == _INIT_PID_NAMESPACE
    except OSError:
        same_pids = False
    if not same_pids:
        gap = Missing(Gap.UNSUPPORTED, where, "NVML's pids are those of the host, which this container does not see")
        return gap, gap
    try:
        import psutil
    except ImportError:  # the single file holds no compiled module
        gap = Missing(Gap.UNSUPPORTED, where, "psutil is not installed")
        return gap, gap
    try:
        process = psutil.Process(pid)
        if process.create_time() > asked_at:
            raise psutil.NoSuchProcess(pid)
        return process.username(), " ".join(process.cmdline()) or process.name()
    except psutil.NoSuchProcess:
        gap = Missing(Gap.ABSENT, where, "the process has ended")
    except psutil.AccessDenied:
        gap = Missing(Gap.DENIED, where)
    return gap, gap
