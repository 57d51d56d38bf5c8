"""What else the live machine was doing: programs on its GPUs, and the host while the GPUs were under load."""

from __future__ import annotations

from dgxcheck.assessment.result import Assessment
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.output.json_values import either, members
from dgxcheck.output.plain_text import columns, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.assessment.host_use import HostLoad, Program

MOST = 16
_LONGEST = 60
_MIB, _GIB = 1 << 20, 1 << 30


def as_text(assessment: Assessment, verbose: bool) -> list[str]:
    """Programs where a GPU was too busy to be loaded, or with ``verbose``; the host's load where there was one."""
    busy = any(finding.judgement.reason == "busy" for finding in assessment.findings)
    listed = assessment.programs if busy or verbose else ()
    lines = ["Programs on GPUs:", *columns([_cells(row) for row in listed[:MOST]])] if listed else []
    if len(listed) > MOST:
        lines.append(f"  and {len(listed) - MOST} more")
    if assessment.host_load is not None:
        lines.append(_host(assessment.host_load))
    return [*lines, ""] if lines else []


def as_json(assessment: Assessment) -> dict[str, Json]:
    """``programs`` and ``host_load``."""
    load = assessment.host_load
    load_members = either("host_load", load) if isinstance(load, Missing) else {"host_load": _load(load)}
    programs: list[Json] = [
        members(each, "gpu bdf pid") | either("gpu_memory_bytes", each.gpu_memory) | members(each, "name user command")
        for each in assessment.programs
    ]  # fmt: skip
    return {"programs": programs, **load_members}


def _cells(program: Program) -> list[str]:
    command = program.name if isinstance(program.command, Missing) else program.command
    return [
        f"  {program.gpu}",
        program.bdf,
        f"pid {program.pid}",
        f"user {'?' if isinstance(program.user, Missing) else visible(program.user)}",
        "? MiB" if isinstance(program.gpu_memory, Missing) else f"{program.gpu_memory // _MIB} MiB",
        "?" if isinstance(command, Missing) else visible(command[:_LONGEST]),
    ]


def _host(load: HostLoad | Missing) -> str:
    if isinstance(load, Missing):
        return f"Host under load: not watched: {load}"
    return (
        f"Host under load: CPUs up to {load.cpu_percent_max:.0f} % busy (load average {load.load_before:.1f} on"
        f" {load.cpus} CPUs before), at least {load.memory_available_min / _GIB:.1f} of"
        f" {load.memory_total / _GIB:.1f} GiB memory available"
    )


def _load(load: HostLoad | None) -> Json:
    if load is None:
        return None
    return members(load, "cpus load_average_before=load_before cpu_percent_max memory_total_bytes=memory_total"
                   " memory_available_min_bytes=memory_available_min")  # fmt: skip
