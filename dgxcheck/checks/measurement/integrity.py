"""Does data arrive intact? In each GPU's memory, and from each GPU in the memory of each other."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import part
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, skip
from dgxcheck.checks.engine.wording import counted, extended
from dgxcheck.checks.measurement import paths
from dgxcheck.checks.measurement.failures import measured_figures, unless_reported, without_figure
from dgxcheck.checks.measurement.host_copies import combined, per_gpu
from dgxcheck.checks.measurement.lookup import (
    ALL,
    Figures,
    device,
    evidence,
    gpu_name,
    label,
    link_between,
    pair_subject,
    pairs,
)
from dgxcheck.checks.peer_access.cuda import DISABLE_BOTH, blocker
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MIB
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace

_UNUSED = (
    "results of jobs that used P2P between them are suspect; end such jobs, or set NCCL_P2P_DISABLE=1, until this is"
    " done and dgxcheck health -e finds no wrong words"
)
_BY_NVLINK = "check for Xid 74 and CRC errors of their NVLinks"
_BY_PCIE = "check the kernel log for DMAR faults and PCIe errors of the ports between them"
_METHODS = {"ce": "copy engine", "sm": "stores of a kernel", "ping-pong": "two kernels that wait for each other"}


def judge_integrity(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """Patterns in a GPU's memory, or data from one GPU in the memory of another, read back by the owner."""
    if (failure := without_figure(box, row)) is not None:
        return failure
    wrong = row.number
    if wrong is None:
        return skip("not-recorded", f"{label(box, row)}: no figure", evidence(row))
    route = _route(box, row)
    checked = _checked(row)
    if not wrong and row.more.get("timed_out") is not True:
        message = f"{route}no wrong words{checked and f' in {checked}'}"
        return Judgement(Status.PASS, message, 0, 0, "words", (evidence(row),))
    if wrong:
        where = f"{checked and f' in {checked}'}{_methods(row)}{_first(row)}"
        message = f"{route}{counted(int(wrong), 'wrong word')}{where}"
    else:
        message = f"{route}handshake of two kernels timed out{checked and f' after {checked}'}"
    return Judgement(Status.FAIL, message, wrong, 0, "words", (evidence(row),), fault=Fault.WRONG_DATA)


def _route(box: Box, row: Measurement) -> str:
    """``GPU0 to GPU1: ``; empty for one GPU, which the finding names."""
    if row.b:
        return f"{gpu_name(box, row.a)} to {gpu_name(box, row.b)}: "
    return f"{gpu_name(box, ALL)}: " if row.a == ALL else ""


def _methods(row: Measurement) -> str:
    """The ways of copying by which words arrived wrong."""
    by = row.more.get("by")
    if not isinstance(by, dict):
        return ""
    bad = [f"{count} by {_METHODS.get(method, method)}" for method, count in by.items() if _is_positive(count)]
    return f" ({', '.join(bad)})" if bad else ""


def _is_positive(count: Json) -> bool:
    return isinstance(count, int | float) and not isinstance(count, bool) and count > 0


def _first(row: Measurement) -> str:
    first = row.more.get("first")
    return f", first at byte {first}" if isinstance(first, int) and not isinstance(first, bool) else ""


def _checked(row: Measurement) -> str:
    """``64 MiB``; empty where it is not known."""
    checked = row.more.get("checked")
    known = isinstance(checked, int) and not isinstance(checked, bool) and 0 < checked < 1 << 60
    return f"{checked / MIB:g} MiB" if known and isinstance(checked, int) else ""


def _memory(box: Box) -> Judged:
    rules = {"memory-integrity": judge_integrity}
    yield from per_gpu(box, "measure.memory-integrity", rules, "no GPU memory was tested with patterns")


def _p2p(box: Box) -> Judged:
    id = "measure.p2p-integrity"
    figures = measured_figures(box, id)
    if isinstance(figures, Judgement):
        yield HOST, figures
        return
    tried = pairs(box, figures, ("p2p-integrity",))
    unnamed = figures.get("p2p-integrity", ALL)
    if unnamed is not None:  # nvbandwidth stops at the first wrong pattern and does not say between which GPUs
        yield HOST, judge_integrity(box, figures, unnamed)
    for a, b in tried:
        rows = figures.each_way("p2p-integrity", a, b)
        judgement = combined(box, [(row, judge_integrity(box, figures, row)) for row in rows])
        if judgement.status is Status.PASS and len(rows) > 1:
            checked = _checked(rows[0])
            judgement = replace(judgement, message=f"no wrong words either way{checked and f' in {checked}'}")
        yield pair_subject(box, a, b), unless_reported(figures, id, _with_blocker(box, judgement, a, b), a, b)
    if not tried and unnamed is None:
        yield HOST, skip("not-recorded", "no data between GPUs was checked")


def _with_blocker(box: Box, judgement: Judgement, a: str, b: str) -> Judgement:
    """With the remedy for what joins the pair; over PCIe with the setting that blocks peer access."""
    one, other, link = device(box, a), device(box, b), link_between(box, a, b)
    if judgement.status is not Status.FAIL or one is None or other is None or link is None:
        return judgement
    if link.nvlinks:
        return replace(judgement, remedy=f"{_UNUSED}: {_BY_NVLINK}")
    blocking = blocker(box, one, other)
    if not blocking.setting:
        return replace(judgement, remedy=f"{_UNUSED}: {blocking.remedy}; {_BY_PCIE}")
    return replace(extended(judgement, f"; blocked by {blocking.setting}"), remedy=f"{_UNUSED}: {blocking.remedy}")


CHECKS = (
    Check(
        id="measure.memory-integrity",
        rule="Fails where words of the patterns written into a GPU's memory read back wrong.",
        source="kernels that fill and check 1 GiB of the memory, with --long all free memory but 512 MiB",
        remedy="check the GPU's ECC counters and Xids 48, 63 and 64; reset it and run a field diagnostic (dcgmi diag"
        " -r 3); if it fails again, have it replaced",
        judge=_memory,
        blames=part("memory"),
        witness="measurement",
    ),
    Check(
        id="measure.p2p-integrity",
        rule="Fails where data that one GPU sends into another's memory, by copy engine, by stores of a kernel or"
        " between two kernels that wait for each other, is not what the owner of that memory reads, and where the"
        " handshake of the two kernels times out. A pair with a GPU whose own memory is wrong is reported by"
        " measure.memory-integrity. Between GPUs joined by PCIe the message names an IOMMU that translates, or the"
        " ports whose ACS redirects.",
        source="patterns checked on the owner's side; cuMemcpyDtoDAsync with peer access on; NVIDIA/nccl issue 2335 on"
        " copies that report success and move nothing",
        remedy=f"{_UNUSED}: {DISABLE_BOTH}; {_BY_PCIE}; over NVLink {_BY_NVLINK}",
        judge=_p2p,
        blames=paths.pair_or_setting,
        witness="measurement",
    ),
)
