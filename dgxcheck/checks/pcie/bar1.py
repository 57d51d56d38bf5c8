"""The size of each GPU's BAR1."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, host_if_all, part, remedy_of, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, answered, judged, skip
from dgxcheck.components.device_facts import row_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MIB, VGA
from dgxcheck.facts.missing import Gap, Missing, need, or_none, rows
from dgxcheck.facts.pci import Bar, PciBars
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device


def bars_of(box: Box, gpu: Device) -> PciBars | Missing:
    """The BARs of a GPU."""
    return row_of(box.snapshot.bars, gpu.bdf)


@or_none
def memory_of(box: Box, gpu: Device) -> int | None:
    """Bytes of memory of a GPU."""
    return need(need(box.gpu(gpu).memory).total)


def expected_bar1_mib(box: Box, gpu: Device) -> float | None:
    """MiB of BAR1 that the GPU's model has; None where it is not on record."""
    number = box.board_number(gpu, "bar1")
    return None if number is None else number.value


_WITH_MODES = frozenset((0x2230, 0x2235, 0x26B1, 0x26B5, 0x26B9, 0x26BA, 0x2BB5))
"""Device ids of RTX A6000, A40, RTX 6000 Ada, L40, L40S, L20 and RTX PRO 6000 Server, whose displays can be switched
off (NVIDIA vGPU software user guide, display modes).
"""


def has_displays(box: Box, gpu: Device) -> bool:
    """Is it of a model that can do without displays, and has them enabled beside a BAR1? Its class is that of a VGA
    controller."""
    row = bars_of(box, gpu)
    assigned = not isinstance(row, Missing) and _bytes(row) > _BAR3_MIB * MIB
    return assigned and _model(gpu) in _WITH_MODES and box.subclass(gpu.bdf) == VGA


def largest_bar1(box: Box) -> Mapping[int | Missing | None, int]:
    """The size in bytes of the largest BAR1 by PCI device id; a model of which no GPU has one is left out."""
    sizes = {row.bdf: _bytes(row) for row in rows(box.snapshot.bars)}
    largest: dict[int | Missing | None, int] = {}
    for gpu in box.topology.gpus:
        model, size = _model(gpu), sizes.get(gpu.bdf or "", 0)
        if size > largest.get(model, 0):
            largest[model] = size
    return largest


def others_have_bar1(box: Box, gpu: Device, largest: Mapping[int | Missing | None, int]) -> bool:
    """Has another GPU of the same PCI device id a larger BAR1? Then Above 4G Decoding is on."""
    row = bars_of(box, gpu)
    return largest.get(_model(gpu), 0) > (0 if isinstance(row, Missing) else _bytes(row))


def _model(gpu: Device) -> int | Missing | None:
    return None if gpu.function is None else gpu.function.device


def _bytes(row: PciBars) -> int:
    """0 where it is not assigned or not known."""
    size = 0 if isinstance(row.bar1, Missing) or not row.bar1.assigned else row.bar1.size
    return size if isinstance(size, int) else 0


_BAR3_MIB = 32
"""Of every GPU since Kepler, whose BAR1 has 64 MiB or more. The kernel leaves only zeros of a BAR that it found no room
for (drivers/pci/setup-bus.c, reset_resource), so that BAR3 is the largest that is left.
"""


def _is_other_bar(bar: Bar, expected: float | None) -> bool:
    """Is it BAR3, because the line of BAR1 is empty?"""
    return isinstance(bar.size, int) and bar.size <= _BAR3_MIB * MIB and expected is not None and expected > _BAR3_MIB


def _bar1(box: Box) -> Judged:
    """Fails if BAR1 is unassigned, or has no more than {pcie.bar1-small} on a model that has at least
    {pcie.bar1-large}; warns if it is otherwise smaller than the model's, as with displays enabled, or than that of
    another GPU of the same model of which no size is on record, or if NVML and the PCI bus report different sizes.

    Source: resource of /sys/bus/pci/devices, nvmlDeviceGetBAR1MemoryInfo; GPUDirect RDMA guide on large BARs
    """
    largest = largest_bar1(box)
    yield from ((box.subject(gpu), ruled(_size, box, gpu, largest)) for gpu in box.gpus)


def _size(box: Box, gpu: Device, largest: Mapping[int | Missing | None, int]) -> Judgement:
    shown, pcie = bars_of(box, gpu), box.gpu(gpu).pcie
    total = pcie if isinstance(pcie, Missing) else pcie.bar1_total
    if isinstance(shown, Missing) and shown.gap is Gap.UNRECORDED and isinstance(total, int):
        return _of_nvml(box, gpu, total)
    row = need(shown)
    resource = pci_file(gpu.bdf, "resource")
    shows = has_displays(box, gpu)
    by_displays = remedy_of("pcie.bar1", "displays") if shows else ""
    alone = (by_displays or remedy_of("pcie.bar1", "alone")) if others_have_bar1(box, gpu, largest) else ""
    bar = None if row.bars == () else need(row.bar1)
    expected = expected_bar1_mib(box, gpu)
    if bar is None or not bar.assigned or _is_other_bar(bar, expected):
        message, start = ("no BAR is assigned", 0) if bar is None else ("BAR1 is unassigned", bar.start)
        facts = (Evidence(resource, start),)
        return judged(Fault.BAR1_SMALL, message, 0, None, "MiB", facts, fails=True, remedy=alone)
    size = need(bar.size)
    mib = size // MIB
    evidence: tuple[Evidence, ...] = (Evidence(resource, size),)
    if not isinstance(total, Missing):
        evidence = (*evidence, answered(total, "nvmlDeviceGetBAR1MemoryInfo", gpu.bdf or ""))
    if expected is not None and mib < expected:
        small = mib <= box.settings.limit("pcie.bar1-small") and expected >= box.settings.limit("pcie.bar1-large")
        memory = memory_of(box, gpu)
        of = f" with {memory // MIB} MiB of memory" if memory is not None else ""
        message = f"BAR1 has {mib} MiB, expected {expected:g} MiB; as on this model{of}"
        figures, fails, remedy = (mib, expected, "MiB", evidence), small and not shows, by_displays or alone
        return judged(Fault.BAR1_SMALL, message, *figures, warns=True, fails=fails, remedy=remedy)
    if expected is None and alone:
        most = largest[_model(gpu)] // MIB
        message = f"BAR1 has {mib} MiB, {most} MiB of another of its model"
        return judged(Fault.BAR1_SMALL, message, mib, most, "MiB", evidence, warns=True, remedy=alone)
    if not isinstance(total, Missing) and total != size:
        message = f"BAR1 has {mib} MiB on the PCI bus, {total // MIB} MiB in NVML"
        return Judgement(Status.WARN, message, total // MIB, mib, "MiB", evidence, fault=Fault.BAR1_MISMATCH)
    unknown = "" if expected is not None else ", no size is on record for this model"
    return Judgement(Status.PASS, f"BAR1 has {mib} MiB{unknown}", mib, expected, "MiB", evidence)


def _of_nvml(box: Box, gpu: Device, total: int) -> Judgement:
    """Of a text that does not show the PCI bus; not of models whose displays may be the reason."""
    expected, board = expected_bar1_mib(box, gpu), box.board(gpu)
    if expected is None or board is None or int(board.id.rpartition(":")[2], 16) in _WITH_MODES:
        return skip("no-reference", "no size of BAR1 is on record for this model")
    message = f"BAR1 has {total // MIB} MiB, expected {expected:g} MiB"
    evidence = (answered(total, "nvmlDeviceGetBAR1MemoryInfo", gpu.bdf or ""),)
    small = total // MIB < expected
    return judged(Fault.BAR1_SMALL, message, total // MIB, expected, "MiB", evidence, warns=small)


CHECKS = (Check("pcie.bar1", _bar1, part("BAR1"), host_if_all("large BARs")),)
