"""GPUDirect RDMA: what user space is given for it, verbs devices and memory that may be locked."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.check import HOST, Box, Check
from dgxcheck.checks.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.gdr import Said, no_rdma, unsaid, wanted
from dgxcheck.checks.hidden import in_container
from dgxcheck.reading import Gap, Missing

Judged = Iterator[tuple[Subject, Judgement]]
_LIMITS = "/proc/self/limits"
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


def memlock(box: Box) -> Said:
    """May a process lock the memory that it registers? No limit holds root."""
    limit = box.snapshot.memlock
    if isinstance(limit, Missing):
        return unsaid(limit)
    if isinstance(limit.soft, Missing):
        return unsaid(limit.soft)
    if limit.soft is None:
        return Said(
            "ready", Judgement(Status.PASS, "no limit on locked memory", evidence=(Evidence(_LIMITS, "unlimited"),))
        )
    least = _memory(box)
    evidence = Evidence(_LIMITS, limit.soft)
    message = f"this session may lock {limit.soft >> 10} KiB of memory"
    if least is not None and limit.soft >= least:
        return Said("ready", Judgement(Status.PASS, f"{message}, more than a GPU has", evidence=(evidence,)))
    if _is_root(box):
        message = f"{message}, which does not hold root; jobs have the limit of their own session or daemon"
        return Said("ready", skip("not-configured", message, evidence))
    if not wanted(box):
        return Said("no", skip("not-configured", message, evidence))
    return Said("no", Judgement(Status.WARN, message, limit.soft, "unlimited", "bytes", (evidence,)))


def _memory(box: Box) -> int | None:
    rows = box.snapshot.gpu_memory
    totals = [] if isinstance(rows, Missing) else [row.total for row in rows if not isinstance(row.total, Missing)]
    return max(totals, default=None)


def _is_root(box: Box) -> bool:
    """Configuration space beyond its header is for root alone."""
    rows = box.snapshot.config_space
    return not isinstance(rows, Missing) and any(not isinstance(row.express, Missing) for row in rows)


def _stack(box: Box) -> Judged:
    yield HOST, no_rdma(box) or stack(box).judgement


def _memlock(box: Box) -> Judged:
    yield HOST, no_rdma(box) or memlock(box).judgement


CHECKS = (
    Check(
        id="gdr.stack",
        rule="Warns where a verbs device of an HCA is there and this user cannot open it. A box without verbs devices"
        " was not set up for RDMA and is not judged.",
        source="open of /dev/infiniband/uverbs*",
        remedy="set mode 0666 on /dev/infiniband/uverbs* by a udev rule, as rdma-core does",
        judge=_stack,
    ),
    Check(
        id="gdr.memlock",
        rule="Warns where the user who runs this may lock less memory than a GPU has, and a peer-memory module is"
        " loaded. Root's limit is not judged: it does not hold root, and jobs have another.",
        source="Max locked memory in /proc/self/limits; ib_umem_get in Linux drivers/infiniband/core/umem.c",
        remedy="set memlock unlimited in /etc/security/limits.d, LimitMEMLOCK=infinity in the units that start jobs,"
        " --ulimit memlock=-1 for containers",
        judge=_memlock,
    ),
)
