"""GPUDirect RDMA: whether programs can open the verbs devices."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.checks.engine.precondition import Precondition, needs_facts
from dgxcheck.checks.engine.visibility import in_container
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.gpudirect.preconditions import of_host
from dgxcheck.facts.missing import Gap, Missing, need

_OF_OLD_KERNELS = ("2.2-1", "3.0-1", "5.0-0")
"""``DRIVER_VERSION`` in Linux drivers/infiniband/hw/mlx5/main.c, which has none any more."""


@needs_facts
def stack(box: Box) -> Precondition:
    """Can programs open the verbs devices?"""
    verbs = need(box.snapshot.device_nodes).verbs
    listed = () if isinstance(verbs, Missing) and verbs.gap is Gap.ABSENT else need(verbs)
    if not listed:
        if in_container(box):
            return Precondition("no", skip("not-visible", "this container has no /dev/infiniband/uverbs*"))
        message = "no /dev/infiniband/uverbs*; to use RDMA, run modprobe ib_uverbs"
        return Precondition("no", skip("not-configured", message))
    closed = [node for node in listed if node.opens is not True]
    for node in closed:
        if isinstance(node.opens, Missing) and node.opens.gap is not Gap.DENIED:
            need(node.opens)
    names = ", ".join(node.path for node in closed)
    if closed and in_container(box):
        return Precondition("no", skip("not-visible", f"this container may not open {names}"))
    if closed:
        evidence = tuple(Evidence(node.path, False) for node in closed)
        message = f"this user cannot open {names}"
        return Precondition("no", Judgement(Status.WARN, message, evidence=evidence, fault=Fault.VERBS))
    hcas = box.snapshot.infiniband
    devices = counted(len(listed), "verbs device")
    if not isinstance(hcas, Missing) and len(listed) < len(hcas):
        message = f"{devices} for {len(hcas)} HCAs: it is not visible which HCAs have none"
        return Precondition("?", skip("not-visible", message))
    evidence = (Evidence("/dev/infiniband", len(listed)),)
    return Precondition("ready", Judgement(Status.PASS, f"{devices} can be opened; {_origin(box)}", evidence=evidence))


def _origin(box: Box) -> str:
    """MLNX_OFED's modules have versions of their own, those of current kernels have none."""
    modules = box.snapshot.modules
    listed = () if isinstance(modules, Missing) else modules.modules
    version = next((module.version for module in listed if module.name == "mlx5_ib"), None)
    if not isinstance(version, str):
        return "inbox drivers"
    return f"drivers {version}, as in old kernels" if version in _OF_OLD_KERNELS else "drivers of MLNX_OFED or DOCA"


CHECKS = (
    Check(
        id="gdr.stack",
        rule="Warns if an HCA has a verbs device that this user cannot open. A machine without verbs devices is not set"
        " up for RDMA and not judged.",
        source="open of /dev/infiniband/uverbs*",
        remedy="set mode 0666 on /dev/infiniband/uverbs* with a udev rule, as rdma-core does",
        judge=of_host(stack),
        blames=host("verbs device nodes"),
    ),
)
