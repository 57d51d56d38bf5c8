"""Fabric Manager and IMEX: whether they run, and the state of the fabric that GPUs report."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box, guest, mig_enabled, nvml_unavailable
from dgxcheck.checks.engine.check import (
    Check,
    component_of,
    driver,
    own_remedy,
    per_listed_gpu,
    remedy_of,
    ruled,
)
from dgxcheck.checks.engine.expected import is_coherent, siblings
from dgxcheck.checks.engine.finding import (
    Evidence,
    Judged,
    Judgement,
    Status,
    Subject,
    answered,
    as_evidence,
    counted,
    judged,
    skip,
    unless,
)
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.components.component import FABRIC_MANAGER, Component
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.components.locate import has_nvswitches, lost_nvswitches, missing_nvswitch, nvlinks_disabled
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import HcaTrouble
from dgxcheck.facts.missing import Gap, Json, Missing, known, need, or_none, rows
from dgxcheck.facts.nvml import gpu as nvml
from dgxcheck.facts.nvml.gpu import FABRIC_STATUSES, REGISTERED, Fabric, GpuModes
from dgxcheck.facts.nvml.nvlink import NvLink
from dgxcheck.facts.typical import odd_one
from dgxcheck.topology.model import Device
from dgxcheck.topology.nvlinks import SWITCH, nvswitches

_STATES = ("not supported", "not started", "in progress", "completed")  # nvmlGpuFabricState_t


def _fabric(box: Box) -> Judged:
    """Fails if a GPU behind NVSwitches is not registered with the NVSwitch fabric, or reports none where most others of
    its model do. Before Hopper, where GPUs report no fabric state, fails if there are NVSwitches and not one NVLink is
    up.

    Source: nvmlGpuFabricInfo_t; https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
    """
    unless(nvml_unavailable(box))
    registrations = [
        (gpu, ruled(_registration, modes))
        for gpu in box.gpus
        if isinstance(modes := box.gpu(gpu).modes, GpuModes) and _has_fabric(modes)
    ]
    if not registrations:
        modes_of = box.snapshot.gpu_modes
        yield HOST, unjudged(modes_of) if isinstance(modes_of, Missing) else ruled(_before_hopper, box)
        return
    failed = [judgement for _, judgement in registrations if judgement.status is Status.FAIL]
    if len(failed) == len(registrations) and (len(failed) > 1 or len(box.topology.gpus) == 1):
        state, evidence = failed[0].measured, tuple(fact for judgement in failed for fact in judgement.evidence)
        shown = FABRIC_STATUSES.get(state, f"NVML error {state}") if isinstance(state, int) else state
        message = f"no GPU is registered with the NVSwitch fabric (first GPU: {shown})"
        yield HOST, judged(Fault.FABRIC_MANAGER_DOWN, message, state, "completed", evidence=evidence, fails=True)
        return
    yield from ((box.subject(gpu), judgement) for gpu, judgement in registrations)
    yield from ((box.subject(gpu), alone) for gpu in box.gpus if (alone := _left_out(box, gpu)) is not None)


def _has_fabric(modes: GpuModes | Missing) -> bool:
    """Does the driver report a fabric state? Without a fabric it is 0, or not supported."""
    return isinstance(modes, GpuModes) and isinstance(modes.fabric, Fabric) and modes.fabric.state != 0


def _left_out(box: Box, gpu: Device) -> Judgement | None:
    """Of a GPU without a fabric, where more than half of the GPUs of its model have one; None for any other."""
    modes = box.gpu(gpu).modes
    if not isinstance(modes, GpuModes) or not isinstance(modes.fabric, Fabric) or _has_fabric(modes):
        return None
    others = [box.gpu(other).modes for other in siblings(box, gpu)]
    with_fabric = sum(map(_has_fabric, others))
    if 2 * with_fabric <= len(others) + 1:
        return None
    evidence = answered({"state": 0}, "nvmlDeviceGetGpuFabricInfo", modes.bdf)
    message = "no NVSwitch fabric; most others of its model have one"
    return Judgement(Status.FAIL, message, _STATES[0], "completed", evidence=(evidence,), fault=Fault.FABRIC_FAILED)


def _registration(modes: GpuModes) -> Judgement | Missing:
    fabric = need(modes.fabric)
    number = need(fabric.state)
    answer: Json = {"state": number, "status": as_evidence(fabric.status)}
    evidence = (answered(answer, "nvmlDeviceGetGpuFabricInfo", modes.bdf),)
    if number not in range(len(_STATES)):
        return Missing(Gap.GARBLED, evidence[0].where, f"unknown fabric state {number}")
    state = _STATES[number]
    if state == "completed" and (error := need(fabric.status)):
        words = f"{FABRIC_STATUSES[error]} (NVML error {error})" if error in FABRIC_STATUSES else f"NVML error {error}"
        message = f"registration with the NVSwitch fabric failed: {words}"
        return Judgement(Status.FAIL, message, error, 0, evidence=evidence, fault=Fault.FABRIC_FAILED)
    done = state == "completed"
    message = "registered with the NVSwitch fabric" if done else f"registration with the NVSwitch fabric: {state}"
    return judged(Fault.FABRIC_FAILED, message, state, "completed", evidence=evidence, fails=not done)


def needed(box: Box) -> bool:
    """Are there NVSwitches, or does a GPU report a fabric?"""
    return bool(nvswitches(box.topology)) or any(map(_has_fabric, rows(box.snapshot.gpu_modes)))


def reported(box: Box) -> bool:
    """Does driver.fabric report that the fabric is not initialised?"""
    return any(judgement.status is Status.FAIL for _, judgement in _fabric(box))


def down(box: Box) -> bool:
    """Are there NVSwitches, of this machine or of its host, and not one NVLink up, and does driver.fabric report it? It
    cannot where GPUs are registered and lost their links since.
    """
    with_state = _with_state(box, rows(box.snapshot.nvlink))
    switched = has_nvswitches(box) or guest(box) is not None
    return switched and bool(with_state) and not any(link.up for link in with_state) and reported(box)


def _with_state(box: Box, links: tuple[NvLink, ...]) -> list[NvLink]:
    """Those of a GPU in MIG mode are off on purpose."""
    mig = {bdf for bdf in {link.bdf for link in links} if mig_enabled(box, bdf)}
    return [link for link in links if isinstance(link.up, bool) and link.bdf not in mig]


def _before_hopper(box: Box) -> Judgement:
    """V100 and A100 report no fabric state; fabric manager trains their NVLinks, so that none is up without it."""
    switches = len(nvswitches(box.topology))
    if not switches:
        return skip("not-supported", "no NVSwitch is present, and no GPU reports a fabric")
    links = _with_state(box, need(box.snapshot.nvlink))
    if not links:
        return skip("not-supported", "the GPUs report neither a fabric state nor NVLinks outside of MIG mode")
    up = sum(link.up is True for link in links)
    if not up and nvlinks_disabled(box):
        return skip("dependency-failed", "the driver was told to leave the NVLinks off: see nvlink.state")
    first = [link for link in links if link.link == 0]
    evidence = tuple(answered(int(link.up is True), "nvmlDeviceGetNvLinkState", link.bdf, link.link) for link in first)
    message = f"{up} of {counted(len(links), 'NVLink')} up ({counted(switches, 'NVSwitch', 'NVSwitches')})"
    return judged(Fault.FABRIC_MANAGER_DOWN, message, up, len(links), "links", evidence, fails=not up)


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """What one GPU reports is about its place in the fabric, which it loses with its NVLinks; what all report, about
    fabric manager and driver, or about an NVSwitch that fell off the bus or is not on PCI, or an adapter in front of
    NVSwitches that stopped.
    """
    if subject.kind == "gpu":
        yield from _of_one(box, subject, judgement)
    if judgement.fault is Fault.FABRIC_MANAGER_DOWN:
        yield FABRIC_MANAGER
        yield from lost_nvswitches(box)
        yield missing_nvswitch(box)
        stopped = {event.bdf for event in box.log.hcas if event.trouble in _STOPPED and not event.past}
        yield from (component_of(box, box.subject_at(device.bdf or "")) for device in box.topology.devices
                    if device.kind == "nvswitch-bridge" and device.bdf in stopped)  # fmt: skip
    else:
        yield from driver(box, subject, judgement)


_STOPPED: tuple[HcaTrouble, ...] = ("not started", "off bus", "firmware")


def _of_one(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Its NVLinks where one is down, else its place in the fabric, or an NVSwitch with a fatal error since."""
    if any(link.bdf == subject.bdf and link.up is False for link in rows(box.snapshot.nvlink)):
        yield component_of(box, subject, "NVLink")
    yield component_of(box, subject, "fabric")
    fatal = (sxid.bdf for sxid in box.log.sxids if sxid.fatal and not sxid.past)
    yield from (Component(kind="nvswitch", name=bdf, bdf=bdf) for bdf in dict.fromkeys(fatal))


_WARNINGS = {
    "degraded_bandwidth": "bandwidth is degraded", "route_recovery": "a route recovery is in progress",
    "access_timeout_recovery": "a recovery from an access timeout is in progress",
}  # fmt: skip


def _of_gpu(box: Box, gpu: Device) -> Judgement:
    """Fails if the driver reports the routes of a registered GPU through the fabric as unhealthy, its fabric as
    unhealthy, or its configuration as incorrect. Warns about degraded bandwidth, limited capacity, a recovery in
    progress, a disconnected fabric manager, and about a GPU that is in another cluster or clique than all others of the
    machine, or in none although its NVLinks end at the NVSwitches of a rack.

    Source: nvmlGpuFabricInfo_v2_t's healthMask, nvmlGpuFabricInfo_v3_t's healthSummary
    """
    fabric = need(need(box.gpu(gpu).modes).fabric)
    mask, summary = known(fabric.health_mask), known(fabric.health_summary)
    if fabric.state == 0:
        return skip("not-supported", "the driver reports no fabric for this GPU")
    if fabric.state != REGISTERED:
        return skip("dependency-failed", "not registered with a fabric (driver.fabric)")
    answer: Json = {"healthMask": as_evidence(fabric.health_mask), "healthSummary": as_evidence(fabric.health_summary)}
    evidence = answered(answer, "nvmlDeviceGetGpuFabricInfo", gpu.bdf or "")
    if mask is None and summary is None:
        need(fabric.health_mask)
    unless(_health(mask or 0, summary or 0, evidence) or _membership(box, gpu, fabric, evidence))
    if not mask and not summary:
        return skip("not-supported", "the driver reports no health of the fabric", evidence)
    return Judgement(Status.PASS, "the driver reports no fabric fault", evidence=(evidence,))


def _health(mask: int, summary: int, evidence: Evidence) -> Judgement | None:
    """The worst that mask and summary tell; None where it is nothing."""
    facts = (evidence,)
    reason = nvml.fabric_configuration(mask)
    by_route = nvml.fabric_flag(mask, "route_unhealthy")
    if by_route or (summary == nvml.FABRIC_UNHEALTHY and reason in nvml.FABRIC_CONFIGURED):
        what = "its routes are unhealthy" if by_route else "unhealthy"
        return Judgement(Status.FAIL, f"fabric: {what}", evidence=facts, fault=Fault.FABRIC_UNHEALTHY)
    if reason not in nvml.FABRIC_CONFIGURED:
        word = nvml.FABRIC_CONFIGURATIONS.get(reason, f"reason {reason}")
        message, remedy = f"fabric: incorrect configuration: {word}", own_remedy("driver.fabric-health", f"{reason}")
        return judged(Fault.FABRIC_MISCONFIGURED, message, evidence=facts, fails=True, remedy=remedy)
    reduced = [words for name, words in _WARNINGS.items() if nvml.fabric_flag(mask, name)]
    if nvml.fabric_disconnected(mask):
        reduced.append("its fabric manager is disconnected")
    if summary == nvml.FABRIC_LIMITED and not reduced:
        reduced.append("limited capacity")
    if reduced:
        message = f"fabric: {', '.join(reduced)}"
        return Judgement(Status.WARN, message, evidence=facts, fault=Fault.FABRIC_DEGRADED)
    return None


def _membership(box: Box, gpu: Device, fabric: Fabric, evidence: Evidence) -> Judgement | None:
    """Cluster and clique against those of the other registered GPUs: one alone is in the wrong one; None where none."""
    if _registered(box, gpu) is None:
        return skip("dependency-failed", "its registration ended with an error (driver.fabric)")
    registered = {each.name: found for each in box.topology.gpus if (found := _registered(box, each)) is not None}
    for name, field in (("cluster", "cluster_uuid"), ("clique", "clique_id")):
        read = {at: value for at, each in registered.items() if not isinstance(value := getattr(each, field), Missing)}
        for own, usual in ((own, usual) for at, own, usual in odd_one(read, fewest=2) if at == gpu.name):
            message = f"{name} {own} of the fabric, {usual} on all other GPUs"
            return Judgement(Status.WARN, message, own, usual, evidence=(evidence,), fault=Fault.FABRIC_MISCONFIGURED)
    if not fabric.domain and isinstance(fabric.cluster_uuid, str) and _ends_in_another_machine(box, gpu):
        message = "registered, and in no NVLink domain of the rack: its cluster is all zeros"
        remedy = remedy_of("driver.fabric-health", "no domain")
        return judged(Fault.FABRIC_MISCONFIGURED, message, evidence=(evidence,), warns=True, remedy=remedy)
    return None


def _ends_in_another_machine(box: Box, gpu: Device) -> bool:
    """Do NVLinks of a Grace machine end at NVSwitches, which are those of a rack?"""
    ends = [link.remote_type for link in rows(box.snapshot.nvlink) if link.bdf == gpu.bdf and link.up is True]
    return is_coherent(box) and SWITCH in ends and not nvswitches(box.topology)


@or_none
def _registered(box: Box, gpu: Device) -> Fabric | None:
    """What it reports, unless the registration ended with an error, as with ``Status: Insufficient Resources``."""
    fabric = need(need(box.gpu(gpu).modes).fabric)
    return fabric if fabric.state == REGISTERED and not known(fabric.status) else None


CHECKS = (
    Check("driver.fabric", _fabric, _blames),
    Check("driver.fabric-health", per_listed_gpu(_of_gpu), _of_one, lambda box, subject, judgement: NVSWITCHES),
)  # fmt: skip
