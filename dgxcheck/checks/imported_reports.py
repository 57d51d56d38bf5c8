"""The results of other tools that were imported: dcgmi, NCCL, fabric manager."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.driver.fabric_manager import needed
from dgxcheck.checks.engine.box import HOST, Box, pci_subject, unlisted_gpu
from dgxcheck.checks.engine.check import Check, component_of, own_link, remedy_of
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, counted, skip
from dgxcheck.checks.engine.growth import INTERRUPTED
from dgxcheck.checks.host.disks import by_disk, disk_of
from dgxcheck.checks.kernel_log.storage import blame_disk
from dgxcheck.checks.network.ports import LEAST, UP, listed_ports, name_of
from dgxcheck.checks.nvlink.links import only_switches_join
from dgxcheck.checks.placement.missing import missing
from dgxcheck.components.component import (
    DRIVER,
    FABRIC_MANAGER,
    INFINIBAND_FABRIC,
    SUBNET_MANAGER,
    Component,
    host_part,
)
from dgxcheck.facts.bdf import is_bdf, nameless
from dgxcheck.facts.faults import MODULES_REFUSED, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.tool_outputs import (
    CONFIGURED,
    DISK,
    NOT_STARTED,
    OF_INTERFACES,
    OF_SERVICE,
    OF_VGPU_SERVICES,
    OVER_TCP,
    ToolReport,
)
from dgxcheck.facts.typical import gathered

_SERVICES = {"fabric-manager": FABRIC_MANAGER, "subnet-manager": SUBNET_MANAGER}
_OF_VGPU = ("dmesg -T", "journalctl -b -u nvidia-vgpu-mgr -u nvidia-vgpud")
"""Its services log to the journal, not to the kernel log (NVIDIA vGPU software user guide)."""
_NO_NVLINKS = "NVLinks reported as down of a GPU that has none, as DCGM does"
_IS_LOADED = "a module was refused in a container, or of another kernel: the driver is loaded"
_OF_CHASSIS = ("cooling", "power supply")
"""Parts that both GPUs and the host have."""
_OF_PORTS = (Fault.PORT_DOWN, Fault.PORT_SLOW, Fault.PORT_ERRORS, Fault.PORT_MODULE)
"""Where a tool says it of all ports together, as ibdiagnet does, none of them is of this host."""
_FAR = {Fault.PORT_DOWN: INFINIBAND_FABRIC, Fault.TRANSFER_UNANSWERED: host_part(Fault.TRANSFER_UNANSWERED.about[1])}
"""What is to blame instead where at least three ports have it."""
_SHOWN = "another output shows the states of the ports"
_ORDER = (Status.FAIL, Status.WARN, Status.UNKNOWN, Status.PASS)


def _reports(box: Box) -> Judged:
    """Fails or warns as a tool did whose output was imported: tests of dcgmi diag and dcgmi health that failed, errors
    that NCCL or fabric manager logged, records of a BMC, disks, services, nodes of Slurm and Kubernetes. Warns if
    dmidecode shows DIMMs at different speeds, or the only channel without one. Other machines have no such finding.

    Source: imported outputs of dcgmi, NCCL (NCCL_DEBUG=INFO), fabric manager, nvidia-smi, lspci, dmidecode, BMC tools,
    smartctl, nvme, systemctl, Slurm and kubectl

    One judgement for each subject, tool and fault; of what passed one for each tool.
    """
    reports = gathered(((report.subject, report.tool), report) for report in rows(box.snapshot.tool_reports))
    for (subject, tool), results in sorted(reports.items()):
        bad = [result for result in results if result.outcome in ("warn", "fail", "unknown")]
        for note in (result for result in results if result.outcome == "note"):
            if note.topic == OVER_TCP and (port := next(_active(box), None)) is not None:
                message = f"{tool}: {note.text}, and {name_of(port)} is ACTIVE"
                at = _subject(box, subject, Fault.TCP_FALLBACK.word)
                yield at, Judgement(Status.WARN, message, evidence=(_evidence(note),), fault=Fault.TCP_FALLBACK)
                continue
            yield _subject(box, subject, note.topic), skip("no-history", f"{tool}: {note.text}"[:280], _evidence(note))
        for fault in dict.fromkeys(result.fault for result in bad):
            of_fault = [result for result in bad if result.fault is fault]
            device = box.topology.device(subject)
            refuted = fault is Fault.NVLINK_REPORTED and device is not None and device.nvlink_positions == 0
            judgement = skip("not-supported", _NO_NVLINKS, *map(_evidence, of_fault)) if refuted else _bad(of_fault)
            if fault in MODULES_REFUSED and not isinstance(box.nvml, Missing):
                refuted, judgement = True, skip("no-history", _IS_LOADED, *map(_evidence, of_fault))
            if of_fault[0].topic in OF_INTERFACES and fault is Fault.PORT_DOWN and _states(box, subject):
                refuted, judgement = True, skip("no-history", _SHOWN, *map(_evidence, of_fault))
            if fault is Fault.FABRIC_MANAGER_DOWN and any(result.topic in OF_SERVICE for result in of_fault):
                judgement = _of_service(box, of_fault, judgement)
            if fault is Fault.DRIVER_ERROR and OF_VGPU_SERVICES.issuperset(result.topic for result in of_fault):
                judgement = replace(judgement, remedy=Fault.DRIVER_ERROR.remedy.replace(*_OF_VGPU))
            about = _subject(box, _whose(subject, fault), fault.word if fault else "")
            has_remedy = judgement.remedy or (fault is not None and fault.remedy)
            if not (refuted or has_remedy):
                judgement = replace(judgement, remedy=_remedy(about, fault))
            yield about, judgement
        good = [result for result in results if result.outcome == "pass"]
        if good and not bad:
            message = f"{tool}: {counted(len(good), 'result')} without a fault"
            evidence = tuple(map(_evidence, good))
            yield _subject(box, subject, tool), Judgement(Status.PASS, message, evidence=evidence)


def _active(box: Box) -> Iterator[IbPort]:
    """Ports of InfiniBand that NCCL could use."""
    return (port for _, port in listed_ports(box) if port.link_layer == "InfiniBand" and port.state in UP)


def _states(box: Box, subject: str) -> bool:
    """Is it known whether the port is up, or any that may be this one?"""
    bdf, _, own = subject.partition("/") if is_bdf(subject.partition("/")[0]) else ("", "", subject)
    if named := [port.state for _, port in listed_ports(box) if name_of(port) == own]:
        return not isinstance(named[0], Missing)
    if "/" in own:  # the port of an RDMA device, of which nothing else says anything
        return False
    known = (device.bdf for device, port in listed_ports(box) if not isinstance(port.state, Missing))
    return any(isinstance(each, Missing) or each == bdf or not bdf for each in known)


def _whose(subject: str, fault: FaultKind | None) -> str:
    """Of the host a fault that only a GPU can have is of one that is not named."""
    whose, part = fault.about if fault is not None else ("", "")
    return nameless(0) if subject == HOST.name and whose == "gpu" and part not in _OF_CHASSIS else subject


def _remedy(about: Subject, fault: FaultKind | None) -> str:
    """Where that of the check, which is for GPUs, does not help."""
    if about.kind == "disk" or fault is Fault.DISK:
        return remedy_of("tools.reports", "disk")
    if about.kind in ("hca", "port"):
        return remedy_of("tools.reports", "module" if fault is Fault.PORT_MODULE else "port")
    if fault is Fault.ACS:
        return remedy_of("tools.reports", "ACS")
    if fault is Fault.SLOW and about.kind == "gpu":
        return remedy_of("tools.reports", "slow")
    if about.kind == "pci" and fault is not None and fault.about[0] == "link":
        return remedy_of("tools.reports", "link")
    of_part = about.kind == "host" and fault is not None and fault.about[0] in ("host", "link")
    return remedy_of("tools.reports", "host") if of_part and fault is not Fault.TEST_FAILED else ""


def _of_service(box: Box, results: list[ToolReport], judgement: Judgement) -> Judgement:
    """Without NVSwitches Fabric Manager ends at once, which systemd calls a failure. One that was stopped may be meant
    so, behind NVSwitches too.
    """
    behind = needed(box) or only_switches_join(box)
    if behind and any(result.topic == NOT_STARTED for result in results):
        return replace(judgement, status=Status.FAIL, fault=Fault.FABRIC_MANAGER_DOWN)
    shown = bool(box.gpus) and not any(result.topic == CONFIGURED for result in rows(box.snapshot.tool_reports))
    if shown and not behind and all(result.topic in OF_SERVICE for result in results):
        remedy = remedy_of("tools.reports", "fabric manager")
        return replace(judgement, status=Status.UNKNOWN, fault=None, remedy=remedy)
    return judgement


def _bad(results: list[ToolReport]) -> Judgement:
    """Of results with one fault."""
    first = min(results, key=lambda result: _ORDER.index(Status(result.outcome)))
    worst = Status(first.outcome)
    more = len({result.text for result in results}) - 1
    times = sum(result.count for result in results if result.text == first.text)
    again = f" ({counted(times, 'time')})" if times > 1 else ""
    text = f"{first.tool}: {first.text}{again}" + (f", and {counted(more, 'other result')}" if more else "")
    fault = None if worst is Status.UNKNOWN else (first.fault or Fault.TEST_FAILED)
    remedy = "" if fault is not None or first.fault is None else first.fault.remedy
    return Judgement(worst, text[:280], evidence=tuple(map(_evidence, results)), fault=fault, remedy=remedy)


def _evidence(report: ToolReport) -> Evidence:
    return Evidence(f"{report.tool}: {report.topic}", report.text or report.outcome)


def _subject(box: Box, name: str, part: str) -> Subject:
    adapter = name.replace(".", ":", 2)  # with dots, as colons stand for a GPU
    device = box.topology.device(name) or box.topology.device(adapter)
    if device is not None:
        found = box.subject(device)
    elif is_bdf(adapter):
        found = Subject(kind="port" if part.startswith("port-") else "hca", name=adapter, bdf=adapter)
    elif name.startswith(DISK):
        found = Subject(kind="disk", name=name.removeprefix(DISK), bdf=None)
    elif is_bdf(at := name.partition("/")[0]) and "/" in name:  # an NVSwitch, and its port; any device on PCI
        of_function = name.partition("/")[2]
        if part.startswith("port-"):  # an interface
            return Subject(kind="port", name=of_function, bdf=at, part=part)
        found, part = pci_subject(at), f"{part}/{of_function}"
        found = found if (device := box.topology.device(at)) is None else box.subject(device)
    elif "/" in name:
        hca = box.topology.device(at) or box.topology.device(at := adapter.partition("/")[0])
        found = Subject(kind="port", name=name, bdf=hca.bdf if hca is not None else at if is_bdf(at) else None)
    elif name.startswith("GPU") or ":" in name:
        found = unlisted_gpu(name)
    else:
        of_port = part.startswith("port-")  # an interface, or an adapter that the text does not name: its cable
        found = HOST if name == HOST.name else Subject(kind="port" if of_port else "hca", name=name, bdf=None)
    return replace(found, part=part)


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The part of the device that the fault is of; of the host its setting, driver or fabric."""
    fault = judgement.fault or Fault.TEST_FAILED
    whose, part = fault.about
    if subject.kind == "pci" and whose != "link":
        yield Component(kind="nvswitch", name=subject.name, bdf=subject.bdf, position=subject.part.partition("/")[2])
        return
    if whose == "link" and subject.kind in ("gpu", "hca", "pci"):
        yield from own_link(box, subject, judgement)
    elif whose in _SERVICES:
        yield _SERVICES[whose]
    elif subject.kind == "host" and judgement.fault in _OF_PORTS:
        yield INFINIBAND_FABRIC
    elif subject.kind == "host" and fault is Fault.GPU_MISSING:
        yield missing(box, "GPU")
    elif subject.kind == "host":
        named = part or ("PCIe links" if whose == "link" else "")
        if whose in ("host", "link") or part in _OF_CHASSIS:
            yield host_part(named)
        else:
            yield DRIVER if fault.category in ("software", "program") else host_part(Fault.TEST_FAILED.about[1])
    elif subject.kind == "disk":
        name = disk_of(subject.name, (disk for disk, _ in by_disk(box, box.log)))
        yield from blame_disk(box, replace(subject, name=name), judgement)
    elif whose == "host" and subject.kind == "gpu" and fault is not Fault.TEST_FAILED:
        yield host_part(part)
    else:
        yield component_of(box, subject, part if whose == "gpu" else "")
        ports = {each.subject for each in rows(box.snapshot.tool_reports) if each.fault is fault}
        if subject.kind == "port" and fault in _FAR and len(ports) >= LEAST:
            yield _FAR[fault]


def _complete(box: Box) -> Judged:
    """Unknown if the bug report, archive or directory that is examined is cut off, damaged or contradicts itself, or if
    its CPU time, or that of a text or saved kernel log, was spent: what was not read may hold the fault. Of another
    source unknown alone if the window between two readings was interrupted.

    Source: the end of nvidia-bug-report.log, the last member of a gzip, xz, bzip2 or tar file
    """
    if box.growth is INTERRUPTED:
        remedy = remedy_of("report.complete", "interrupted")
        yield HOST, Judgement(Status.UNKNOWN, "interrupted before the counters were read again", remedy=remedy)
    if box.cut:
        yield HOST, Judgement(Status.UNKNOWN, f"not all of it was read, and the rest is not judged: {box.cut}")


CHECKS = (
    Check("tools.reports", _reports, _blames),
    Check("report.complete", _complete),
)  # fmt: skip
