"""GPUs that the reference machine has and this box does not show: gone, or hidden from here."""

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
    """GPUs that NVML lists; all where it tells nothing."""
    return [gpu for gpu in box.topology.gpus if gpu.index is not None or isinstance(box.nvml, Missing)]


def absent_gpus(box: Box) -> list[int | Missing]:
    """One per GPU that is expected beside the usable ones: 0 for one that is gone, Missing for one that is hidden."""
    number = box.choice.number("gpu.count") if box.choice else None
    here = usable(box)
    due = 0 if number is None else max(0, int(number.value) - len(here))
    on_pci = [_absent(box, gpu) for gpu in box.topology.gpus if gpu not in here][:due]
    return on_pci + [_elsewhere(box)] * (due - len(on_pci))


def hidden_gpus(box: Box) -> Missing | None:
    """Why GPUs may be at the other end of an NVLink without being seen; None where all expected ones are known."""
    return next((each for each in absent_gpus(box) if isinstance(each, Missing)), None)


def _absent(box: Box, gpu: Device) -> int | Missing:
    """A GPU on the PCI tree that NVML does not list, as gpu.lost and gpu.count have it."""
    said = unlisted(box, gpu)
    if said.status is Status.FAIL:
        return 0
    away = _elsewhere(box)
    if not isinstance(away, Missing) and bound(gpu) not in _UNUSED:
        return Missing(Gap.ABSENT, str(gpu.bdf), said.message)
    return away


def _elsewhere(box: Box) -> int | Missing:
    if isinstance(box.snapshot.pci, Missing):
        return box.snapshot.pci  # nobody has looked for them
    if why := visibility.gpus_hidden(box):
        return Missing(Gap.ABSENT, "/sys/bus/pci/devices", why)
    if box.choice is not None and box.choice.how == "gpus":
        return Missing(Gap.ABSENT, "/sys/bus/pci/devices", "the machine may have been made with fewer GPUs")
    return 0
