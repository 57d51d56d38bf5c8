"""GPUDirect RDMA: what user space is given for it, verbs devices and memory that may be locked."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.checks.engine.precondition import Said, unsaid
from dgxcheck.checks.engine.visibility import in_container
from dgxcheck.checks.gpudirect.preconditions import of_box
from dgxcheck.facts.missing import Gap, Missing

_OF_OLD_KERNELS = ("2.2-1", "3.0-1", "5.0-0")
"""``DRIVER_VERSION`` in Linux drivers/infiniband/hw/mlx5/main.c, which has none any more."""


def stack(box: Box) -> Said:
    """Can programs open the verbs devices?"""
    nodes = box.snapshot.device_nodes
    verbs = nodes if isinstance(nodes, Missing) else nodes.verbs
    if isinstance(verbs, Missing) and verbs.gap is not Gap.ABSENT:
        return unsaid(verbs)
    listed = () if isinstance(verbs, Missing) else verbs
    if not listed:
        if in_container(box):
            return Said("no", skip("not-visible", "this container was not given /dev/infiniband/uverbs*"))
        message = "there is no /dev/infiniband/uverbs*; where RDMA is wanted, run modprobe ib_uverbs"
        return Said("no", skip("not-configured", message))
    shut = [each for each in listed if each.opens is not True]
    odd = next(
        (each.opens for each in shut if isinstance(each.opens, Missing) and each.opens.gap is not Gap.DENIED), None
    )
    if odd is not None:
        return unsaid(odd)
    hcas = box.snapshot.infiniband
    if not shut and not isinstance(hcas, Missing) and len(listed) < len(hcas):
        message = f"{len(listed)} verbs devices for {len(hcas)} HCAs: whose are missing cannot be seen"
        return Said("?", skip("not-visible", message))
    if not shut:
        message = f"the {len(listed)} verbs devices can be opened; {_origin(box)}"
        return Said("ready", Judgement(Status.PASS, message, evidence=(Evidence("/dev/infiniband", len(listed)),)))
    names = ", ".join(each.path for each in shut)
    if in_container(box):
        return Said("no", skip("not-visible", f"this container may not open {names}"))
    evidence = tuple(Evidence(each.path, False) for each in shut)
    return Said("no", Judgement(Status.WARN, f"this user cannot open {names}", evidence=evidence))


def _origin(box: Box) -> str:
    """MLNX_OFED's modules have versions of their own, those of today's kernels have none."""
    modules = box.snapshot.modules
    listed = () if isinstance(modules, Missing) else modules.modules
    version = next((each.version for each in listed if each.name == "mlx5_ib"), None)
    if not isinstance(version, str):
        return "drivers of the kernel"
    return f"drivers {version}, as in old kernels" if version in _OF_OLD_KERNELS else "drivers of MLNX_OFED or DOCA"


CHECKS = (
    Check(
        id="gdr.stack",
        rule="Warns where a verbs device of an HCA is there and this user cannot open it. A box without verbs devices"
        " was not set up for RDMA and is not judged.",
        source="open of /dev/infiniband/uverbs*",
        remedy="set mode 0666 on /dev/infiniband/uverbs* by a udev rule, as rdma-core does",
        judge=of_box(stack),
    ),
)
