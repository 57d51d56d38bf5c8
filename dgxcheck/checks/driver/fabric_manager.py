"""Is the NVSwitch fabric of the GPUs up?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.gpu import Fabric, GpuModes
from dgxcheck.facts.ids import NVIDIA, OTHER_BRIDGE
from dgxcheck.facts.missing import Gap, Json, Missing

Judged = Iterator[tuple[Subject, Judgement]]
_STATES = ("not supported", "not started", "in progress", "completed")  # nvmlGpuFabricState_t


def _fabric(box: Box) -> Judged:
    if isinstance(box.nvml, Missing):
        missing = box.nvml.gap is Gap.UNRECORDED
        yield HOST, unjudged(box.nvml) if missing else skip("dependency-failed", "NVML tells nothing")
        return
    rows = box.snapshot.gpu_modes
    known = {} if isinstance(rows, Missing) else {row.bdf: row for row in rows}
    gpus = [(gpu, row) for gpu in box.gpus if (row := known.get(gpu.bdf or "")) is not None and _takes_part(row)]
    if not gpus:
        yield HOST, unjudged(rows) if isinstance(rows, Missing) else _before_hopper(box)
        return
    said = [(gpu, _registered(row)) for gpu, row in gpus]
    bad = [each for _, each in said if each.status is Status.FAIL]
    if len(gpus) > 1 and len(bad) == len(gpus):
        message = f"no GPU is registered with the fabric manager: {bad[0].message}"
        evidence = tuple(fact for each in bad for fact in each.evidence)
        yield HOST, Judgement(Status.FAIL, message, bad[0].measured, "completed", evidence=evidence)
        return
    for gpu, each in said:
        yield box.subject(gpu), each


def _takes_part(row: GpuModes) -> bool:
    """Does the driver tell of a fabric here? Where there is none it says 0, or that it is not supported."""
    fabric = row.fabric
    return isinstance(fabric, Fabric) and fabric.state != 0


def _registered(row: GpuModes) -> Judgement:
    fabric = row.fabric
    assert isinstance(fabric, Fabric)
    if isinstance(fabric.state, Missing):
        return unjudged(fabric.state)
    status: Json = fabric.status.reason if isinstance(fabric.status, Missing) else fabric.status
    evidence = (answered({"state": fabric.state, "status": status}, "nvmlDeviceGetGpuFabricInfo", row.bdf),)
    if fabric.state not in range(len(_STATES)):
        where = evidence[0].where
        return unjudged(Missing(Gap.GARBLED, where, f"no fabric state has the number {fabric.state}"))
    state = _STATES[fabric.state]
    if state != "completed":
        return Judgement(Status.FAIL, f"registration is {state}", state, "completed", evidence=evidence)
    if isinstance(fabric.status, Missing):
        return unjudged(fabric.status)
    if fabric.status != 0:
        message = f"registration ended with NVML error {fabric.status}"
        return Judgement(Status.FAIL, message, fabric.status, 0, evidence=evidence)
    return Judgement(Status.PASS, "registered with the fabric manager", state, "completed", evidence=evidence)


def down(box: Box) -> bool:
    """Are there NVSwitches, and not one NVLink that is up? Then driver.fabric tells it, and nobody else."""
    links = box.snapshot.nvlink
    told = [] if isinstance(links, Missing) else [link for link in links if isinstance(link.up, bool)]
    return bool(_switches(box)) and bool(told) and not any(link.up for link in told)


def _switches(box: Box) -> list[str]:
    return [each.bdf for each in box.topology.functions.values() if _is_nvswitch(each.class_code, each.vendor)]


def _before_hopper(box: Box) -> Judgement:
    """V100 and A100 behind NVSwitches tell no state; the fabric manager trains their links, so none is up before."""
    switches = _switches(box)
    if not switches:
        return skip("not-supported", "no NVSwitch is here, and no GPU tells of a fabric")
    links = box.snapshot.nvlink
    if isinstance(links, Missing):
        return unjudged(links)
    told = [link for link in links if isinstance(link.up, bool)]
    if not told:
        return skip("not-supported", "the GPUs tell neither a fabric state nor the state of their NVLinks")
    up = sum(link.up is True for link in told)
    evidence = tuple(
        answered(int(link.up is True), "nvmlDeviceGetNvLinkState", link.bdf, link.link)
        for link in told
        if link.link == 0
    )
    message = f"NVLinks up on {len(switches)} NVSwitches: {up} of {len(told)}"
    return Judgement(Status.PASS if up else Status.FAIL, message, up, len(told), "links", evidence)


def _is_nvswitch(class_code: int | Missing, vendor: int | Missing) -> bool:
    return not isinstance(class_code, Missing) and class_code >> 8 == OTHER_BRIDGE and vendor == NVIDIA


CHECKS = (
    Check(
        id="driver.fabric",
        rule="Fails where a GPU behind NVSwitches is not registered with the fabric manager; before Hopper, which tells"
        " no state, where there are NVSwitches and not one NVLink is up.",
        source="nvmlGpuFabricInfo_t; https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html",
        remedy="start the service nvidia-fabricmanager of the driver's own version and read its log",
        judge=_fabric,
    ),
)
