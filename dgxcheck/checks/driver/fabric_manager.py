"""Is the NVSwitch fabric of the GPUs initialised?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.blame import component_of, driver
from dgxcheck.checks.engine.box import HOST, Box, nvml_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.checks.engine.siblings import siblings
from dgxcheck.checks.engine.wording import counted
from dgxcheck.components.component import FABRIC_MANAGER, Component
from dgxcheck.components.locate import is_nvswitch
from dgxcheck.facts.fabric_health import STATUSES
from dgxcheck.facts.gpu import Fabric, GpuModes
from dgxcheck.facts.missing import Gap, Json, Missing, need
from dgxcheck.facts.nvlink import NvLink
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
_STATES = ("not supported", "not started", "in progress", "completed")  # nvmlGpuFabricState_t


def _fabric(box: Box) -> Judged:
    if (unavailable := nvml_unavailable(box)) is not None:
        yield HOST, unavailable
        return
    registrations = [
        (gpu, ruled(_registration, modes))
        for gpu in box.gpus
        if isinstance(modes := box.gpu(gpu).modes, GpuModes) and _has_fabric(modes)
    ]
    if not registrations:
        rows = box.snapshot.gpu_modes
        yield HOST, unjudged(rows) if isinstance(rows, Missing) else ruled(_before_hopper, box)
        return
    failed = [judgement for _, judgement in registrations if judgement.status is Status.FAIL]
    if len(registrations) > 1 and len(failed) == len(registrations):
        state, evidence = failed[0].measured, tuple(fact for judgement in failed for fact in judgement.evidence)
        message = f"no GPU is registered with the NVSwitch fabric (first GPU: {state})"
        fault = Fault.FABRIC_MANAGER_DOWN
        yield HOST, Judgement(Status.FAIL, message, state, "completed", evidence=evidence, fault=fault)
        return
    for gpu, judgement in registrations:
        yield box.subject(gpu), judgement
    for gpu in box.gpus:
        if (alone := _left_out(box, gpu)) is not None:
            yield box.subject(gpu), alone


def _has_fabric(modes: GpuModes) -> bool:
    """Does the driver report a fabric state? Without a fabric it is 0, or not supported."""
    return isinstance(modes.fabric, Fabric) and modes.fabric.state != 0


def _left_out(box: Box, gpu: Device) -> Judgement | None:
    """Of a GPU without a fabric, where more than half of the GPUs of its model have one; None for any other."""
    modes = box.gpu(gpu).modes
    if not isinstance(modes, GpuModes) or not isinstance(modes.fabric, Fabric) or modes.fabric.state != 0:
        return None
    others = [box.gpu(other).modes for other in siblings(box, gpu)]
    with_fabric = sum(isinstance(other, GpuModes) and _has_fabric(other) for other in others)
    if 2 * with_fabric <= len(others) + 1:
        return None
    evidence = answered({"state": 0}, "nvmlDeviceGetGpuFabricInfo", modes.bdf)
    message = "no NVSwitch fabric on this GPU, unlike most others of its model"
    return Judgement(Status.FAIL, message, _STATES[0], "completed", evidence=(evidence,), fault=Fault.FABRIC_FAILED)


def _registration(modes: GpuModes) -> Judgement | Missing:
    fabric = need(modes.fabric)
    number = need(fabric.state)
    status: Json = fabric.status.reason if isinstance(fabric.status, Missing) else fabric.status
    evidence = (answered({"state": number, "status": status}, "nvmlDeviceGetGpuFabricInfo", modes.bdf),)
    if number not in range(len(_STATES)):
        return Missing(Gap.GARBLED, evidence[0].where, f"unknown fabric state {number}")
    state = _STATES[number]
    judgement = Judgement(Status.PASS, "registered with the NVSwitch fabric", state, "completed", evidence=evidence)
    if state != "completed":
        message = f"registration with the NVSwitch fabric: {state}"
        return replace(judgement, status=Status.FAIL, message=message, fault=Fault.FABRIC_FAILED)
    if error := need(fabric.status):
        words = f"{STATUSES[error]} (NVML error {error})" if error in STATUSES else f"NVML error {error}"
        message = f"registration with the NVSwitch fabric failed: {words}"
        return Judgement(Status.FAIL, message, error, 0, evidence=evidence, fault=Fault.FABRIC_FAILED)
    return judgement


def needed(box: Box) -> bool:
    """Are there NVSwitches, or does a GPU report a fabric?"""
    rows = box.snapshot.gpu_modes
    return bool(_nvswitches(box)) or (not isinstance(rows, Missing) and any(map(_has_fabric, rows)))


def reported(box: Box) -> bool:
    """Does driver.fabric report that the fabric is not initialised?"""
    return any(judgement.status is Status.FAIL for _, judgement in _fabric(box))


def down(box: Box) -> bool:
    """Are there NVSwitches and not one NVLink up? Then driver.fabric alone reports it."""
    links = box.snapshot.nvlink
    known = () if isinstance(links, Missing) else _with_state(links)
    return bool(_nvswitches(box)) and bool(known) and not any(link.up for link in known)


def _nvswitches(box: Box) -> int:
    return sum(map(is_nvswitch, box.topology.functions.values()))


def _with_state(links: tuple[NvLink, ...]) -> list[NvLink]:
    return [link for link in links if isinstance(link.up, bool)]


def _before_hopper(box: Box) -> Judgement:
    """V100 and A100 report no fabric state; fabric manager trains their NVLinks, so that none is up without it."""
    switches = _nvswitches(box)
    if not switches:
        return skip("not-supported", "no NVSwitch is present, and no GPU reports a fabric")
    links = _with_state(need(box.snapshot.nvlink))
    if not links:
        return skip("not-supported", "the GPUs report neither a fabric state nor the state of their NVLinks")
    up = sum(link.up is True for link in links)
    evidence = tuple(
        answered(int(link.up is True), "nvmlDeviceGetNvLinkState", link.bdf, link.link)
        for link in links
        if link.link == 0
    )
    message = f"{up} of {counted(len(links), 'NVLink')} up ({counted(switches, 'NVSwitch', 'NVSwitches')})"
    status, fault = (Status.PASS, None) if up else (Status.FAIL, Fault.FABRIC_MANAGER_DOWN)
    return Judgement(status, message, up, len(links), "links", evidence, fault=fault)


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """What one GPU reports is about its own place in the fabric; what all report, about fabric manager and driver."""
    if subject.kind == "gpu":
        yield component_of(box, subject, "fabric")
    if judgement.fault is Fault.FABRIC_MANAGER_DOWN:
        yield FABRIC_MANAGER
    else:
        yield from driver(box, subject, judgement)


CHECKS = (
    Check(
        id="driver.fabric",
        rule="Fails if a GPU behind NVSwitches is not registered with the NVSwitch fabric, or reports none where most"
        " others of its model do. Before Hopper, where GPUs"
        " report no fabric state, fails if there are NVSwitches and not one NVLink is up.",
        source="nvmlGpuFabricInfo_t; https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html",
        remedy="read why it does not run (journalctl -u nvidia-fabricmanager); its version must be the driver's own;"
        " start it: systemctl enable --now nvidia-fabricmanager",
        judge=_fabric,
        blames=_blames,
    ),
)
