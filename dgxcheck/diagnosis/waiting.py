"""What waits for something that failed: clients of the driver, services of devices, jobs of several hosts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.components.component import DRIVER, Component, Kind, host_part
from dgxcheck.diagnosis.action import PREPARATORY, Action, Instruction
from dgxcheck.facts.faults import DEVICE_DEAD, GPU_DEAD, SILENT, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import is_near
from dgxcheck.facts.missing import rows
from dgxcheck.facts.typical import gathered

_UNSTARTED = GPU_DEAD | {Fault.BAR1_SMALL}
"""A GPU that did not start, or the reason of that."""
_LEADING = GPU_DEAD | {
    Fault.LIBRARY_MISSING, Fault.LIBRARY_BROKEN, Fault.DRIVER_NOT_LOADED, Fault.DRIVER_MISMATCH, Fault.NOUVEAU,
}  # fmt: skip
"""What clients of NVML and CUDA cannot start without."""
_DRIVER = frozenset({Fault.DRIVER_FAILED, Fault.DRIVER_UNRESPONSIVE, Fault.DRIVER_STUCK})
_NOT_WITHOUT_DRIVER = frozenset({Fault.DRIVER_NOT_LOADED, Fault.FABRIC_MANAGER_DOWN, Fault.GPUS_NOT_OFFERED})
"""What is not there either while no driver is."""
_OF: Mapping[FaultKind | None, Kind] = {Fault.GPUS_NOT_OFFERED: "gpu", Fault.FABRIC_MANAGER_DOWN: "nvswitch"}
"""What services report for a device of this kind that fails."""
_WITHHELD = frozenset({Fault.XID, Fault.XID_CONTAINED, Fault.ECC_UNCORRECTED})
"""Of a GPU that runs: for these NVIDIA's device plugin offers it no more (k8s-device-plugin, internal/rm/health.go)."""
_WAITS = frozenset({Fault.DRIVER_UNRESPONSIVE, Fault.DRIVER_STUCK})
OF_JOBS = frozenset({Fault.COLLECTIVE_TIMEOUT, Fault.TRANSFER_UNANSWERED})
"""What a program of several hosts reports when one of them no longer answers."""
_ENDS_JOBS = SILENT | {
    Fault.PORT_DOWN, Fault.NO_SUBNET_MANAGER, Fault.HCA_FATAL, Fault.NVSWITCH_FATAL, Fault.XID, Fault.XID_CONTAINED,
    Fault.XID_PEER, Fault.XID_SIGNAL,
}  # fmt: skip


def refused_clients(
    box: Box, bad: Mapping[str, Finding], blamed: Mapping[str, Sequence[Component]]
) -> Mapping[str, tuple[Component, ...]]:
    """By key of a finding of the host: the dead GPUs and the driver that it follows from.

    A client of NVML or CUDA enumerates all GPUs when it starts: one that fell off the bus makes it fail or time out,
    and nothing can be started while no driver is there (https://docs.nvidia.com/deploy/xid-errors/, Xid 79). The
    driver can crash on what it reads of such a GPU. Its module does not stay loaded if it can start no GPU ("None of
    the NVIDIA devices were initialized").
    """
    failed = [key for key, components in blamed.items() if components and bad[key].status is Status.FAIL]
    unstarted = {bad[key].subject.bdf for key in failed if bad[key].judgement.fault in _UNSTARTED}
    none_starts = bool(unstarted) and unstarted >= {gpu.bdf for gpu in box.topology.gpus}
    leading = [key for key in failed if bad[key].judgement.fault in (_UNSTARTED if none_starts else _LEADING)]
    shared = [each for each in blamed[leading[0]] if all(each in blamed[key] for key in leading)] if leading else []
    components = tuple(dict.fromkeys((*(blamed[key][0] for key in leading), *shared)))
    others = [key for key in blamed if key not in leading] if components else []
    hung = tuple(dict.fromkeys(blamed[key][0] for key in failed if _hangs(bad[key])))
    waiting = {key: hung for key in blamed if hung and bad[key].judgement.fault in _WAITS}
    failing = gathered((blamed[key][0].kind, each) for key in failed for each in blamed[key])
    if _offers_fewer(box):
        withheld = [key for key in blamed if bad[key].judgement.fault in _WITHHELD and bad[key].subject.kind == "gpu"]
        if withheld:
            failing.setdefault("gpu", [each for key in withheld for each in blamed[key]])
    waiting |= {key: tuple(dict.fromkeys(failing[_OF[fault]])) for key in blamed
                if (fault := bad[key].judgement.fault) in _OF and _OF[fault] in failing}  # fmt: skip
    driver = none_starts or GPU_DEAD.isdisjoint(bad[key].judgement.fault for key in leading)
    more = _NOT_WITHOUT_DRIVER if driver else frozenset()
    return waiting | {key: components for key in others if _is_of_client(bad[key], more)}


def in_its_moment(
    bad: Mapping[str, Finding], blamed: Mapping[str, Sequence[Component]]
) -> Mapping[str, tuple[Component, ...]]:
    """By key of what the kernel logged of programs, tasks and the driver: the devices that failed at that time, where
    the first of it is as near to an Xid or to a device that stopped as it can come of that. What crashes in code of
    NVIDIA comes of its devices; a task can wait for any, where nothing else is known that it waits for."""
    stopped = {key: [event.seconds for event in bad[key].judgement.events if event.number or event.kind == "device"]
               for key, components in blamed.items() if components}  # fmt: skip
    found = {}
    for key in blamed:
        fault, times = bad[key].judgement.fault, [event.seconds for event in bad[key].judgement.events]
        if times and fault in _COMES_WITHIN_S and (fault is not Fault.TASKS_HUNG or blamed[key][0] == _KERNEL):
            near = [each for each, when in stopped.items() if is_near(min(times), when, _COMES_WITHIN_S[fault])
                    and (fault is Fault.TASKS_HUNG or bad[each].subject.kind in ("gpu", "pci"))]  # fmt: skip
            found[key] = tuple(dict.fromkeys(chain(*(blamed[each] for each in near))))
    return found


_KERNEL = host_part("kernel")
_COMES_WITHIN_S: Mapping[FaultKind | None, float] = {
    Fault.PROGRAM_CRASHED: 60.0, Fault.SERVICE_KILLED: 60.0, Fault.KERNEL_PANIC: 60.0, Fault.TASKS_HUNG: 300.0,
    Fault.DRIVER_STUCK: 300.0,
}  # fmt: skip
"""A task is reported after two minutes in which it waited (``kernel.hung_task_timeout_secs``)."""


def ended_jobs(
    bad: Mapping[str, Finding], blamed: Mapping[str, Sequence[Component]]
) -> Mapping[str, tuple[Component, ...]]:
    """By key of what a program of several hosts reports: what failed on this one and ends such a program."""
    jobs = [key for key in blamed if bad[key].judgement.fault in OF_JOBS]
    failed = (components for key, components in blamed.items() if bad[key].judgement.fault in _ENDS_JOBS)
    return dict.fromkeys(jobs, tuple(dict.fromkeys(chain(*failed))))


def _offers_fewer(box: Box) -> bool:
    """Does a device plugin of Kubernetes withhold GPUs? Slurm counts those that it finds."""
    reports = (each for each in rows(box.snapshot.tool_reports) if each.fault is Fault.GPUS_NOT_OFFERED)
    return any(each.tool != "Slurm" for each in reports)


def given_back(
    box: Box, component: Component, planned: Sequence[Action], explained: Sequence[Finding]
) -> list[Action]:  # fmt: skip
    """With the look at the scheduler that withholds a GPU which runs, after what cures the GPU first: its device plugin
    may not offer it again by itself (k8s-device-plugin, issues 234 and 1014).
    """
    withheld = [finding.key for finding in explained if finding.judgement.fault is Fault.GPUS_NOT_OFFERED]
    alive = DEVICE_DEAD.isdisjoint(finding.judgement.fault for finding in explained)
    if component.kind != "gpu" or not withheld or not alive or not _offers_fewer(box):
        return [*planned]
    cures = (n for n, action in enumerate(planned, 1) if action.step not in ("inspect", *PREPARATORY))
    at = next(cures, len(planned))
    look = Action(step="inspect", instruction=Instruction(code="finding-remedy"), remedy_of=withheld[0], goes_on=True)
    return [*planned[:at], look, *planned[at:]]


def _hangs(finding: Finding) -> bool:
    """Does a GPU alone not respond, or did its firmware time out? Tasks and queries to the driver wait for it then."""
    silent = finding.judgement.fault is Fault.DRIVER_UNRESPONSIVE and finding.subject.kind == "gpu"
    return silent or any(event.number in _GSP_TIMEOUTS for event in finding.judgement.events)


_GSP_TIMEOUTS = (119, 120)
"""Xids: https://docs.nvidia.com/deploy/xid-errors/"""


def _is_of_client(finding: Finding, more: Collection[FaultKind]) -> bool:
    """Of a container runtime only the errors that it got: that it does not know NVIDIA's GPUs fails by itself."""
    fault = finding.judgement.fault
    crashed = fault is Fault.KERNEL_PANIC and DRIVER in finding.blames
    refused = fault is Fault.CONTAINER_ERROR and finding.status is Status.WARN
    return finding.subject.kind == "host" and (fault in _DRIVER or fault in more or refused or crashed)
