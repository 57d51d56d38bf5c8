"""GPUs that the reference machine has and this box does not list: missing, or hidden from dgxcheck."""

from __future__ import annotations

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.gpu.presence import unlisted
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.model import Device

_UNUSED = (None, "nouveau")


def usable(box: Box) -> list[Device]:
    """GPUs that NVML lists; all where NVML is not available."""
    return [gpu for gpu in box.topology.gpus if gpu.index is not None or isinstance(box.nvml, Missing)]


def absent_gpus(box: Box) -> list[int | Missing]:
    """One entry per expected GPU that is not usable: 0 if it is missing, Missing with the reason if it is hidden."""
    number = box.choice.number("gpu.count") if box.choice else None
    present = usable(box)
    missing = 0 if number is None else max(0, int(number.value) - len(present))
    unlisted_gpus = [_unlisted(box, gpu) for gpu in box.topology.gpus if gpu not in present][:missing]
    return unlisted_gpus + [_not_on_pci(box)] * (missing - len(unlisted_gpus))


def gpus_uncertain(box: Box) -> bool:
    """Is the machine known by its GPUs alone, while it shows another number of them than the reference machine has?"""
    number = box.choice.number("gpu.count") if box.choice is not None and box.choice.how == "gpus" else None
    return number is not None and len(box.topology.gpus) != number.value


def hidden_gpus(box: Box) -> Missing | None:
    """The reason why GPUs may be hidden at the far end of an NVLink; None if no GPU is hidden."""
    return next((gpu for gpu in absent_gpus(box) if isinstance(gpu, Missing)), None)


def _unlisted(box: Box, gpu: Device) -> int | Missing:
    """0 or Missing for a GPU on the PCI tree that NVML does not list, consistent with gpu.lost and gpu.count."""
    if unlisted(box, gpu).status is Status.FAIL:
        return 0
    hidden = _not_on_pci(box)
    if not isinstance(hidden, Missing) and bound(gpu) not in _UNUSED:
        return Missing(Gap.ABSENT, str(gpu.bdf), "NVML does not list it: see gpu.lost")
    return hidden


def _not_on_pci(box: Box) -> int | Missing:
    if isinstance(box.snapshot.pci, Missing):
        return box.snapshot.pci
    if why := visibility.gpus_hidden(box):
        return Missing(Gap.ABSENT, "/sys/bus/pci/devices", why)
    if box.choice is not None and box.choice.how == "gpus":
        return Missing(Gap.ABSENT, "/sys/bus/pci/devices", "this machine may have been built with fewer GPUs")
    return 0
