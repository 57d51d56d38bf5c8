"""The results of other tools that were imported: dcgmi, NCCL, fabric manager."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from dgxcheck.checks.driver.fabric_manager import needed
from dgxcheck.checks.engine.blame import component_of, own_link
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.nvlink.links import only_switches_join
from dgxcheck.components.component import DRIVER, FABRIC_MANAGER, SUBNET_MANAGER, Component, host_part
from dgxcheck.facts.bdf import gpu_at
from dgxcheck.facts.missing import rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.tool_report import CONFIGURED, NOT_STARTED, OF_SERVICE, ToolReport

_FAULTS = {fault.value: fault for fault in Fault}
_PARTS = {
    Fault.ECC_UNCORRECTED: "memory", Fault.ECC_CORRECTED: "memory", Fault.REMAP_PENDING: "memory",
    Fault.RETIREMENT_PENDING: "memory", Fault.REMAP_FAILED: "memory", Fault.THERMAL_SLOWDOWN: "cooling",
    Fault.OVERHEATING: "cooling", Fault.POWER_VIOLATION: "power supply", Fault.INFOROM: "InfoROM",
    Fault.NVLINK_DOWN: "NVLink", Fault.NVLINK_REPORTED: "NVLink", Fault.NVLINK_ERRORS: "NVLink",
    Fault.FABRIC_FAILED: "fabric", Fault.PERSISTENCE_OFF: "persistence mode",
    Fault.ECC_OFF: "ECC mode", Fault.XID_CONTAINED: "memory",
}  # fmt: skip
"""What of a GPU such a result is about."""
_OF_HOST = {
    Fault.GDR_UNUSED: "peer memory module", Fault.TCP_FALLBACK: "network of NCCL", Fault.P2P_BLOCKED: "P2P setting",
    Fault.NO_CONNECTION: "transfers to other hosts",
    Fault.TRANSFER_FAILED: "transfers to other hosts", Fault.TRANSFER_UNANSWERED: "path to other hosts",
    Fault.RDMA_ACCESS: "GPUDirect RDMA", Fault.TOOL_ERROR: "results of NCCL",
    Fault.PROGRAM_ERROR: "results of NCCL", Fault.COLLECTIVE_TIMEOUT: "results of NCCL", Fault.MEMLOCK: "memlock limit",
    Fault.TEST_FAILED: "results of diagnostics", Fault.NVSWITCH_FATAL: "NVSwitches",
    Fault.NVSWITCH_NOTICE: "NVSwitches", Fault.NVSWITCH_WATCHED: "NVSwitches", Fault.DIMM_SPEED: "memory",
    Fault.MEMORY_MISSING: "memory", Fault.CONTAINER_RUNTIME: "container runtime", Fault.PROGRAM_CRASHED: "programs",
}  # fmt: skip
_REMEDIES = {
    Fault.NO_CONNECTION: "check that the program still runs at that address, then the interface that it chose"
    " (NCCL_SOCKET_IFNAME), routes and firewalls between the two hosts",
    Fault.TRANSFER_FAILED: "look for the first error of all hosts in their logs: the others follow from it; in"
    " a test of two ends give both the same options",
    Fault.TRANSFER_UNANSWERED: "check at both ends the state of the ports (ibstat), their error counters (perfquery"
    " -x), cables and transceivers (mlxlink -m), then the switch ports between them; with RoCE also GID index, MTU and"
    " flow control; then measure the path with ib_write_bw",
    Fault.RDMA_ACCESS: "repeat the transfer with host memory: where that works, load nvidia-peermem at both ends, and"
    " look for ACS and an IOMMU in the way with dgxcheck health; else check the limit of locked memory",
    Fault.TCP_FALLBACK: "check the state of the HCAs' ports, NCCL_IB_DISABLE, NCCL_IB_HCA and NCCL_NET",
    Fault.GDR_UNUSED: "load nvidia-peermem (or use a kernel with DMA-BUF) and start the job again; then compare"
    " NCCL_NET_GDR_LEVEL with the distance of GPUs and HCAs: dgxcheck topo",
    Fault.NVLINK_REPORTED: "confirm it with nvidia-smi nvlink -s: DCGM before 2.4.7 also reports boards without"
    " NVLinks",
    Fault.PORT_SLOW: "ask both ends for the speeds and widths that they support and enable (ibportstate LID PORT"
    " query), then clean, reseat or replace the cable",
    Fault.HCA_NOT_STARTED: "compare lspci, ibstat and ls /sys/class/infiniband on the host: a container sees HCAs of"
    " its host that it was not given; where it is missing there too, modprobe mlx5_ib and read what mlx5_core logged",
    Fault.FABRIC_MANAGER_DOWN: "compare nv-fabricmanager --version with the driver's",
    Fault.FABRIC_MANAGER_ERROR: "read the lines around it in /var/log/fabricmanager.log, and the kernel log of the same"
    " time (SXid)",
    Fault.CONTAINER_RUNTIME: "install nvidia-container-toolkit, run nvidia-ctk runtime configure and restart the"
    " container runtime; then check the output of nvidia-container-cli -k -d /dev/tty info",
    Fault.PORT_ERRORS: "reseat or replace the cable or transceiver (mlxlink -m shows it), then look at its error"
    " counters and at the port at the other end",
    Fault.PROGRAM_CRASHED: "check the program (compute-sanitizer, CUDA_LAUNCH_BLOCKING=1) and that it was built for"
    " these GPUs; suspect a GPU only if several programs fail on it, and then by its Xids",
    Fault.DRIVER_MISMATCH: "compare the versions of driver, its library and CUDA (nvidia-smi, cat"
    " /proc/driver/nvidia/version), in containers those inside too; then reload the driver or update the older one",
    Fault.NOT_READY: "check whether CUDA_VISIBLE_DEVICES or the container hides the GPUs, and whether nvidia-smi lists"
    " them; else read the kernel log",
    Fault.DIMM_SPEED: "compare the DIMMs and their slots with the board's manual, and the memory speed in the firmware"
    " setup: dmidecode -t memory",
    Fault.MEMORY_MISSING: "look at that channel's slots (the BMC's event log), then reseat or replace the DIMM",
    Fault.PROGRAM_ERROR: "check the program, its ranks and its NCCL_ variables; run all_reduce_perf of nccl-tests on"
    " the same GPUs: if that works, the machine is not at fault",
    Fault.COLLECTIVE_TIMEOUT: "on the host of the rank that is missing or behind check for Xids, a lost GPU, ports that"
    " are down and a program that ended (dgxcheck health), and where that rank hangs (py-spy dump); then run"
    " all_reduce_perf over the same hosts",
    Fault.TOOL_ERROR: "read the lines around it in the log, and the kernel log of the same time",
}
_OF_NETWORK = (
    "confirm it with ibstat and mlxlink for this port alone; then compare perfquery -x and the kernel log of that time"
)
"""What no tool of the GPUs tells."""
_ASK_NVSWITCHES = (
    "see whether the machine has NVSwitches (lspci -d 10de::0680): without them disable nvidia-fabricmanager; with them"
    " read why it does not run (journalctl -u nvidia-fabricmanager)"
)
_NO_NVLINKS = "NVLinks reported as down of a GPU that has none: DCGM before 2.4.7 did so"
_ORDER = (Status.FAIL, Status.WARN, Status.UNKNOWN, Status.PASS)
_STATUSES = {"pass": Status.PASS, "warn": Status.WARN, "fail": Status.FAIL, "unknown": Status.UNKNOWN}


def _reports(box: Box) -> Judged:
    """One judgement for each subject, tool and fault; of what passed one for each tool."""
    for (subject, tool), of_one in groupby(sorted(_all_reports(box), key=_group), key=_group):
        results = [*of_one]
        bad = [result for result in results if result.outcome in ("warn", "fail", "unknown")]
        for note in (result for result in results if result.outcome == "note"):
            yield _subject(box, subject, note.topic), skip("no-history", f"{tool}: {note.text}"[:280], _evidence(note))
        for fault in dict.fromkeys(result.fault for result in bad):
            of_fault = [result for result in bad if result.fault == fault]
            refuted = fault == Fault.NVLINK_REPORTED and _has_no_nvlinks(box, subject)
            judgement = skip("not-supported", _NO_NVLINKS, *map(_evidence, of_fault)) if refuted else _bad(of_fault)
            if fault == Fault.FABRIC_MANAGER_DOWN and any(result.topic in OF_SERVICE for result in of_fault):
                judgement = _of_service(box, of_fault, judgement)
            about = _subject(box, subject, fault)
            of_network = about.kind in ("hca", "port") and not (refuted or judgement.remedy)
            yield about, replace(judgement, remedy=_OF_NETWORK) if of_network else judgement
        good = [result for result in results if result.outcome == "pass"]
        if good and not bad:
            message = f"{tool}: {counted(len(good), 'result')} without a fault"
            evidence = tuple(map(_evidence, good))
            yield _subject(box, subject, tool), Judgement(Status.PASS, message, evidence=evidence)


def _of_service(box: Box, results: list[ToolReport], judgement: Judgement) -> Judgement:
    """Without NVSwitches Fabric Manager ends at once, which systemd calls a failure. One that was stopped may be meant
    so, behind NVSwitches too.
    """
    behind = needed(box) or only_switches_join(box)
    if behind and any(result.topic == NOT_STARTED for result in results):
        down = Fault.FABRIC_MANAGER_DOWN
        return replace(judgement, status=Status.FAIL, fault=down, remedy=_REMEDIES[down])
    shown = bool(box.gpus) and not any(result.topic == CONFIGURED for result in _all_reports(box))
    if shown and not behind and all(result.topic in OF_SERVICE for result in results):
        return replace(judgement, status=Status.UNKNOWN, fault=None, remedy=_ASK_NVSWITCHES)
    return judgement


def _all_reports(box: Box) -> tuple[ToolReport, ...]:
    reports = box.snapshot.tool_reports
    return rows(reports)


def _has_no_nvlinks(box: Box, name: str) -> bool:
    device = box.topology.device(name)
    return device is not None and device.nvlink_positions == 0


def _group(report: ToolReport) -> tuple[str, str]:
    return report.subject, report.tool


def _bad(results: list[ToolReport]) -> Judgement:
    """Of results with one fault."""
    worst = min((_STATUSES[result.outcome] for result in results), key=_ORDER.index)
    first = next(result for result in results if _STATUSES[result.outcome] is worst)
    more = len({result.text for result in results}) - 1
    times = sum(result.count for result in results if result.text == first.text)
    again = f" ({counted(times, 'time')})" if times > 1 else ""
    text = f"{first.tool}: {first.text}{again}" + (f", and {counted(more, 'other result')}" if more else "")
    fault = None if worst is Status.UNKNOWN else _FAULTS.get(first.fault, Fault.TEST_FAILED)
    remedy = _REMEDIES.get(fault, "") if fault else ""
    return Judgement(worst, text[:280], evidence=tuple(map(_evidence, results)), fault=fault, remedy=remedy)


def _evidence(report: ToolReport) -> Evidence:
    return Evidence(f"{report.tool}: {report.topic}", report.text or report.outcome)


def _subject(box: Box, name: str, part: str) -> Subject:
    device = box.topology.device(name)
    if device is not None and device.kind == "gpu":
        found = box.subject(device)
    elif device is not None:
        found = Subject(kind="hca", name=device.name, bdf=device.bdf)
    elif "/" in name:
        hca = box.topology.device(name.partition("/")[0])
        found = Subject(kind="port", name=name, bdf=None if hca is None else hca.bdf)
    elif name.startswith("GPU"):
        found = Subject(kind="gpu", name=name, bdf=None)
    elif ":" in name:
        found = Subject(kind="gpu", name=gpu_at(name), bdf=name)
    else:
        found = HOST if name == HOST.name else Subject(kind="hca", name=name, bdf=None)
    return replace(found, part=part)


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The part of the device that the fault is of; of the host its setting, driver or fabric."""
    fault = judgement.fault or Fault.TEST_FAILED
    if subject.kind == "gpu" and fault in (Fault.LINK_NARROW, Fault.LINK_DEGRADED, Fault.PCIE_REPLAYS):
        yield from own_link(box, subject, judgement)
    elif fault in (Fault.FABRIC_MANAGER_DOWN, Fault.FABRIC_MANAGER_ERROR):
        yield FABRIC_MANAGER
    elif fault is Fault.NO_SUBNET_MANAGER:
        yield SUBNET_MANAGER
    elif subject.kind == "host":
        yield DRIVER if fault not in _OF_HOST else host_part(_OF_HOST[fault])
    else:
        yield component_of(box, subject, _PARTS.get(fault, ""))


CHECKS = (
    Check(
        id="tools.reports",
        rule="Fails or warns as a tool did whose output was imported: tests of dcgmi diag and dcgmi health that failed,"
        " errors that NCCL or fabric manager logged. Warns if dmidecode shows DIMMs at different speeds, or the only"
        " channel without one. Other machines have no such finding.",
        source="imported outputs of dcgmi, NCCL (NCCL_DEBUG=INFO), fabric manager, nvidia-smi, lspci and dmidecode",
        remedy="confirm it with that tool for this device alone; then compare nvidia-smi -q and the kernel log of that"
        " time",
        judge=_reports,
        blames=_blames,
    ),
)
