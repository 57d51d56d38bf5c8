"""What the host does beside the check: programs on its GPUs, and its load while they are under load."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dgxcheck.assessment.progress import HostNow, Progress
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dgxcheck.facts.nvml.gpu import GpuActivity
    from dgxcheck.topology.model import Device


EVERY_S = 1.0


class HostLoad(Record):
    """The host before and during the load."""

    cpus: int
    """Logical CPUs that are online."""
    load_before: float
    """Load average of the minute before."""
    cpu_percent_max: float
    """Of all CPUs together, 0 to 100, the most over any second."""
    memory_total: int
    """Bytes, as the next."""
    memory_available_min: int


class HostWatch:
    """Looks at the host while its GPUs are under load."""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self.progress, self._clock = progress, clock
        self._due = 0.0
        self.load: HostLoad | Missing | None = None
        """None until the first look; Missing without psutil."""

    def look(self) -> None:
        """Read CPU and memory, at most once a second, and show them."""
        now = self._clock()
        if isinstance(self.load, Missing) or (self.load is not None and now < self._due):
            return
        try:
            import psutil
        except ImportError:  # the single file holds no compiled module
            self.load = Missing(Gap.UNSUPPORTED, "host load", "psutil is not installed")
            return
        self._due = now + EVERY_S
        percent, memory = psutil.cpu_percent(), psutil.virtual_memory()  # psutil: percent since the call before
        average = psutil.getloadavg()[0]
        before = self.load
        self.load = HostLoad(
            cpus=psutil.cpu_count() or 1,
            load_before=average if before is None else before.load_before,
            cpu_percent_max=0.0 if before is None else max(before.cpu_percent_max, percent),
            memory_total=memory.total,
            memory_available_min=min(memory.available, before.memory_available_min if before else memory.available),
        )
        self.progress.host(
            HostNow(cpu_percent=percent, load=average, memory_available=memory.available, memory_total=memory.total)
        )


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
            found.append(Program(
                gpu=names[row.bdf], bdf=row.bdf, pid=process.pid, gpu_memory=process.used_memory, name=process.name,
                user=user, command=command,
            ))  # fmt: skip
    return tuple(found)


def _user_and_command(pid: int, asked_at: float) -> tuple[str | Missing, str | Missing]:
    where = f"/proc/{pid}"
    try:
        same_pids = os.readlink("/proc/self/ns/pid") == _INIT_PID_NAMESPACE
    except OSError:
        same_pids = False
    if not same_pids:
        other = "NVML's pids are those of the host, which this container does not see"
        return (Missing(Gap.UNSUPPORTED, where, other),) * 2
    try:
        import psutil
    except ImportError:  # the single file holds no compiled module
        return (Missing(Gap.UNSUPPORTED, where, "psutil is not installed"),) * 2
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
