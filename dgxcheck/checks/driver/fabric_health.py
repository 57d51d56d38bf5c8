"""What the driver says of each GPU's fabric: health, configuration, and the clique that it is in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dgxcheck.checks.engine.blame import part
from dgxcheck.checks.engine.box import Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.components.locate import all_nvlinks
from dgxcheck.facts import fabric_health as health
from dgxcheck.facts.gpu import Fabric, GpuModes
from dgxcheck.facts.missing import Json, Missing, need
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
COMPLETED = 3
"""``nvmlGpuFabricState_t``"""
_WARNINGS = {
    "degraded_bandwidth": "bandwidth is degraded", "route_recovery": "a route recovery is in progress",
    "access_timeout_recovery": "a recovery from an access timeout is in progress",
}  # fmt: skip
_LOG = "check the log of the fabric manager (journalctl -u nvidia-fabricmanager; on rack systems that of NMX-C)"
_REMEDIES = {
    2: "compare the system GUIDs of the trays (nvidia-smi -q) and call the vendor",
    3: "compare the chassis serial numbers of the trays and call the vendor",
    4: "assign the GPU to a partition in the fabric manager or NMX-C",
    5: "check its NVLinks (nvidia-smi nvlink -s -i BDF) and the cables or the switch tray",
    6: "bring the GPU's firmware to the version of the others",
    7: "check that the tray is in its slot of the rack, then call the vendor",
    8: "drain the GPU and reset it",
}
"""By ``healthMask``'s incorrect configuration."""


def _judge(box: Box) -> Judged:
    for gpu in box.gpus:
        yield box.subject(gpu), gpu_unavailable(box, gpu) or ruled(_of_gpu, box, gpu)


def _of_gpu(box: Box, gpu: Device) -> Judgement:
    fabric = need(need(box.gpu(gpu).modes).fabric)
    mask = fabric.health_mask if isinstance(fabric.health_mask, int) else None
    summary = fabric.health_summary if isinstance(fabric.health_summary, int) else None
    if fabric.state != COMPLETED:
        return skip("dependency-failed", "not registered with a fabric (driver.fabric)")
    evidence = _evidence(fabric, gpu)
    if mask is None and summary is None:
        need(fabric.health_mask)
    bad = _health(mask or 0, summary or 0, evidence)
    return bad or _membership(box, gpu, fabric, evidence)


def _health(mask: int, summary: int, evidence: Evidence) -> Judgement | None:
    """The worst that mask and summary tell; None where it is nothing."""
    facts = (evidence,)
    reason = health.configuration(mask)
    if health.flag(mask, "route_unhealthy") or (summary == health.UNHEALTHY and reason in health.CONFIGURED):
        what = "its routes are unhealthy" if health.flag(mask, "route_unhealthy") else "unhealthy"
        return Judgement(Status.FAIL, f"fabric: {what}", evidence=facts, fault=Fault.FABRIC_UNHEALTHY)
    if reason not in health.CONFIGURED:
        word = health.CONFIGURATIONS.get(reason, f"reason {reason}")
        return Judgement(
            Status.FAIL, f"fabric: incorrect configuration: {word}", evidence=facts, fault=Fault.FABRIC_MISCONFIGURED,
            remedy=_REMEDIES.get(reason, ""),
        )  # fmt: skip
    reduced = [words for name, words in _WARNINGS.items() if health.flag(mask, name)]
    if health.disconnected(mask):
        reduced.append("its fabric manager is disconnected")
    if summary == health.LIMITED and not reduced:
        reduced.append("limited capacity")
    if reduced:
        message = f"fabric: {', '.join(reduced)}"
        return Judgement(Status.WARN, message, evidence=facts, fault=Fault.FABRIC_DEGRADED)
    return None


def _membership(box: Box, gpu: Device, fabric: Fabric, evidence: Evidence) -> Judgement:
    """Cluster and clique against those of the other registered GPUs: one alone is in the wrong one."""
    others = [each for other in box.topology.gpus if other is not gpu and (each := _registered(box, other)) is not None]
    for name, own, theirs in (
        ("cluster", fabric.cluster_uuid, [each.cluster_uuid for each in others]),
        ("clique", fabric.clique_id, [each.clique_id for each in others]),
    ):
        known = Counter(each for each in theirs if not isinstance(each, Missing))
        if len(known) == 1 and known.total() > 1 and not isinstance(own, Missing) and own not in known:
            usual = next(iter(known))
            message = f"{name} {own} of the fabric, {usual} on all other GPUs"
            return Judgement(Status.WARN, message, own, usual, evidence=(evidence,), fault=Fault.FABRIC_MISCONFIGURED)
    if not any(isinstance(each, int) and each for each in (fabric.health_mask, fabric.health_summary)):
        return skip("not-supported", "the driver reports no health of the fabric", evidence)
    return Judgement(Status.PASS, "the driver reports no fabric fault", evidence=(evidence,))


def _registered(box: Box, gpu: Device) -> Fabric | None:
    modes = box.gpu(gpu).modes
    fabric = modes.fabric if isinstance(modes, GpuModes) else None
    return fabric if isinstance(fabric, Fabric) and fabric.state == COMPLETED else None


def _evidence(fabric: Fabric, gpu: Device) -> Evidence:
    answer: dict[str, Json] = {
        name: value.reason if isinstance(value, Missing) else value
        for name, value in (("healthMask", fabric.health_mask), ("healthSummary", fabric.health_summary))
    }
    return answered(answer, "nvmlDeviceGetGpuFabricInfo", gpu.bdf or "")


CHECKS = (
    Check(
        id="driver.fabric-health",
        rule="Fails if the driver reports the routes of a registered GPU through the fabric as unhealthy, its fabric as"
        " unhealthy, or its configuration as incorrect. Warns about degraded bandwidth, limited capacity, a recovery"
        " in progress, a disconnected fabric manager, and about a GPU that is in another cluster or clique than all"
        " others of the machine.",
        source="nvmlGpuFabricInfo_v2_t's healthMask, nvmlGpuFabricInfo_v3_t's healthSummary",
        remedy=f"{_LOG}, and the state of the NVLinks (nvidia-smi nvlink -s); what only recovers needs no action unless"
        " it lasts",
        judge=_judge,
        blames=part("fabric"),
        shared=lambda box, subject, judgement: all_nvlinks(box),
    ),
)
