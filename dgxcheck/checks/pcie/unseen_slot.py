"""The width of a GPU's PCIe link where what is above it is not shown: by itself, and by other GPUs of its model."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import asked
from dgxcheck.checks.engine.expected import is_on_package, siblings
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, judged
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import CONTROLLER_3D
from dgxcheck.facts.missing import Missing, need, or_none
from dgxcheck.facts.pci import FEW_LANES
from dgxcheck.topology.model import Device

FEWEST = 2
"""Other links of a kind that say what is usual."""
_UNSEEN = "link at x{}, the GPU supports x{}; what its slot supports is not shown"


def without_slot(box: Box, gpu: Device) -> Judgement | None:
    """The judgement of such a GPU; None where its lanes give no reason for one."""
    return _by_nvml(box, gpu) or _by_itself(box, gpu) or _unseen(box, gpu)


@or_none
def _fewer_lanes(box: Box, gpu: Device) -> tuple[int, int, tuple[Evidence, ...]] | None:
    """Lanes of a GPU that has fewer than it or its model supports, by NVML, and those that these support."""
    pcie, of_model = need(box.gpu(gpu).pcie), box.board_number(gpu, "link_width")
    width, supported = need(pcie.link_width), need(pcie.max_link_width)
    most = max(supported, 0 if of_model is None else int(of_model.value))
    fewer = width < most and not is_on_package(box, gpu)
    return (width, most, asked(pcie, "link_width", "max_link_width")) if fewer else None


def _by_nvml(box: Box, gpu: Device) -> Judgement | None:
    """Where the PCI tree is not visible: a GPU with fewer lanes than it supports and most of its model have."""
    others = [box.gpu(other).pcie for other in siblings(box, gpu)]
    widths = [pcie.link_width for pcie in others if not isinstance(pcie, Missing)]
    if (fewer := _fewer_lanes(box, gpu)) is None or len(widths) < FEWEST:
        return None
    width, most, evidence = fewer
    if 2 * sum(isinstance(each, int) and each > width for each in widths) <= len(widths) + 1:
        return None  # of all, itself too: many servers have as many slots of x8 as of x16
    message = f"link at x{width}, GPU and slot support x{most}, as most other GPUs have"
    return Judgement(Status.FAIL, message, width, most, "lanes", evidence, fault=Fault.LINK_NARROW)


@or_none
def _unseen(box: Box, gpu: Device) -> Judgement | None:
    """Such a GPU of a text without most of its model to compare with: the slot may have no more lanes. Of a guest that
    sees no port above it one with a quarter of its lanes or fewer.

    A module (SXM) has as many as its server gives it before A100: two beside a POWER9, which it reaches over NVLinks.
    """
    name, fewer = need(need(box.gpu(gpu).listed).name), _fewer_lanes(box, gpu)
    is_set = box.board_number(gpu, "link_width") is not None
    if fewer is None or not name or ("SXM" in name and not is_set):
        return None
    few = _few(*fewer, is_set=is_set and isinstance(gpu.path, Missing))
    return few if isinstance(gpu.path, Missing) or few.fault else None


@or_none
def _by_itself(box: Box, gpu: Device) -> Judgement | None:
    """Of a text that does not show what is above the GPU: fewer lanes than the GPU supports; None for any other.

    The slots of servers for data-center GPUs, which have no display (class 3D controller), are alike.
    """
    function = gpu.function
    if function is None or not isinstance(gpu.path, Missing):
        return None
    width, most = need(function.link_width), need(function.max_link_width)
    if width >= most:
        return None
    evidence = asked(function, "link_width", "max_link_width")
    message = f"link at x{width}, the GPU supports x{most}"
    others = [other.function for other in box.topology.gpus if other.bdf != gpu.bdf and other.function is not None]
    kind = (CONTROLLER_3D << 8, most)
    alike = [other.link_width for other in others
             if (other.class_code, other.max_link_width) == kind == (function.class_code, most)]  # fmt: skip
    if len(alike) >= FEWEST and 2 * sum(each == most for each in alike) > len(alike) + 1:
        message = f"{message}, as most other GPUs have"
        return judged(Fault.LINK_NARROW, message, width, most, "lanes", evidence, warns=True)
    return _few(width, most, evidence, is_set=box.board_number(gpu, "link_width") is not None)


def _few(width: int, most: int, evidence: tuple[Evidence, ...], is_set: bool) -> Judgement:
    """Half of the lanes can be all that a slot has; a quarter is to be looked at, and fewer than a model ``is_set``
    to have in any server."""
    looked_at = width * FEW_LANES <= most or is_set
    status, fault = (Status.WARN, Fault.LINK_UNSEEN) if looked_at else (Status.UNKNOWN, None)
    return Judgement(status, _UNSEEN.format(width, most), width, most, "lanes", evidence, fault=fault)
