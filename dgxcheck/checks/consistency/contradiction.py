"""Readings of a GPU that exclude each other: its load, what it wrote down for good, and who it is by NVML, the PCI bus,
its name and its VBIOS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.checks.gpu.beside_siblings import LOW_STATE, kept_slow
from dgxcheck.components.device_facts import architecture_named, row_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing, is_number, question, rows
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.nvml.gpu import vgpus
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.facts.typical import majority
from dgxcheck.facts.values import where
from dgxcheck.topology.model import Device
from dgxcheck.topology.nvlinks import is_nvswitch

Facts = Mapping[str, object]
"""Of one device by path, as ``components/device_facts.py`` gives them."""
NOTHING_TO_COMPARE = skip("not-recorded", "nothing was read that could be compared")
_MOST = 3


class Contradiction(Record, kw_only=False):
    """What excludes what, in a few words, and the readings."""

    text: str
    evidence: tuple[Evidence, ...]


ReadingRule = Callable[[Box, Device, Facts], Iterable[Contradiction]]
"""The contradictions of one GPU; what was not read contradicts nothing."""


def number(facts: Facts, path: str) -> float | None:
    """A fact as a number; None for a gap and for all else."""
    value = facts.get(path)
    return value if is_number(value) else None


def reading(box: Box, gpu: Device, path: str) -> Evidence:
    """Where a fact was read, and its value: ``gpu_clocks.current.sm``."""
    field, *names = path.split(".")
    held: Any = getattr(box.snapshot, field)
    record = value = next(row for row in (held.gpus if field == "gpu" else held) if row.bdf == gpu.bdf)
    of: list[Fact] = []
    for name in names:
        of.append(rows_of(type(value))[name])
        value = getattr(value, name)
    return Evidence(where(record, tuple(of)), value if isinstance(value, int | float | str | bool) else str(value))


def judged(found: Sequence[Contradiction], status: Status = Status.UNKNOWN) -> Judgement:
    """One judgement of all that was found; a warning has the fault ``contradiction``."""
    if not found:
        return Judgement(Status.PASS, "the readings agree", 0, 0, "contradictions")
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    message = "; ".join(contradiction.text for contradiction in found[:_MOST]) + more
    evidence = tuple({fact.where: fact for contradiction in found for fact in contradiction.evidence}.values())
    fault = Fault.CONTRADICTION if status is Status.WARN else None
    return Judgement(status, message, len(found), 0, "contradictions", evidence, fault=fault)


_BUSY = "gpu_processes.gpu_percent"
_FULLY = 99
"""Percent; of less a part of the second may have been idle, and the other readings be of it."""
_STATE, _CLOCK, _HIGHEST = "gpu_clocks.performance_state", "gpu_clocks.current.sm", "gpu_clocks.max.sm"
_REASONS, _POWER, _LIMIT = "gpu_counters.reasons_mask", "gpu_power.usage_mw", "gpu_power.enforced_limit_mw"
_IDLE_SHARE = 0.03
"""Of the power limit: no board draws so little, not even idle (V100: 25 of 300 W)."""


def at_load(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """Fully utilised, and idle by its performance state, clocks or power; where its siblings decide, clock.throttle
    does. Utilisation is of the second that has passed (nvml.h): the clocks may be down already because a program ended.
    """
    busy = number(facts, _BUSY)
    if busy is None or busy < _FULLY or kept_slow(box, gpu.bdf or "") is not None:
        return
    state, clock, highest = number(facts, _STATE), number(facts, _CLOCK), number(facts, _HIGHEST)
    power, limit, reasons = number(facts, _POWER), number(facts, _LIMIT), number(facts, _REASONS)
    if state is not None and state >= LOW_STATE:
        yield _while_busy(f"performance state P{state:g}", box, gpu, facts, _STATE)
    if clock is not None and highest is not None and reasons == 0 and clock < highest / 3 and (state or 0) < LOW_STATE:
        yield _while_busy(f"SM clock {clock:g} of {highest:g} MHz without a reason", box, gpu, facts, _CLOCK)
    if power is not None and limit is not None and 0 < power < limit * _IDLE_SHARE:
        yield _while_busy(f"power draw {power / 1000:g} W", box, gpu, facts, _POWER)


def _while_busy(text: str, box: Box, gpu: Device, facts: Facts, path: str) -> Contradiction:
    evidence = (reading(box, gpu, path), reading(box, gpu, _BUSY))
    return Contradiction(f"{text} at {number(facts, _BUSY):g} % utilisation", evidence)


PERMANENT = ("retired_single_bit", "retired_double_bit", "remapped_corrected", "remapped_uncorrected", "remap_failed")
"""Pages and rows are given up for the life of the board; nvidia-smi resets error counters alone."""


def fallen(box: Box, gpu: Device, _: Facts) -> Iterator[Contradiction]:
    """Fewer at the second reading than at the first."""
    if not isinstance(box.growth, Growth):
        return
    old, new = (row_of(facts.gpu_ecc, gpu.bdf) for facts in (box.growth.old, box.growth.new))
    for name in PERMANENT:
        before, after = _count(getattr(old, name, None)), _count(getattr(new, name, None))
        if before is not None and after is not None and after < before:
            words = name.replace("_", " ")
            text = f"{words}: {after} {box.growth.how}, {before} before"
            yield Contradiction(text, (Evidence(f"{gpu.bdf} {words}", [before, after]),))


def _count(fact: object) -> int | None:
    return len(fact) if isinstance(fact, tuple) else fact if isinstance(fact, int) else None


VBIOS = {
    2: ("80",), 3: ("82", "84"), 4: ("86",), 5: ("88",), 6: ("90",), 7: ("92", "94"), 8: ("95",), 9: ("96",),
    10: ("96", "97", "98"),
}  # fmt: skip
"""The first part of a board's VBIOS version by ``nvmlDeviceArchitecture_t``, as the dumps of ``boards.toml`` have it:
80.21.. of a K80, 86.00.. of a P100, 88.00.. of a V100, 92.00.. of an A100, 96.00.. of an H100, 97.00.. of a B200."""
CAPABILITY = {2: (3,), 3: (5,), 4: (6,), 5: (7,), 6: (7,), 7: (8,), 8: (8,), 9: (9,), 10: (10, 12)}
"""Major compute capability by architecture: https://developer.nvidia.com/cuda-gpus"""
_GPU_END, _SWITCH_END, _UNKNOWN_END = 0, 2, 255  # nvmlIntNvLinkDeviceType_t
_IDS = (
    ("gpu_board.pci_device_id", "pci.device", "pci.vendor", "device id"),
    ("gpu_board.pci_subsystem_id", "pci.subsystem_device", "pci.subsystem_vendor", "subsystem id"),
)


def is_compared(box: Box, gpu: Device) -> bool:
    """Were its ids or its architecture read?"""
    board = box.gpu(gpu).board
    ids = () if isinstance(board, Missing) else (board.pci_device_id, board.architecture)
    return any(isinstance(each, int) for each in ids)


def pci_ids(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """Device and subsystem id of NVML (device in the upper half, vendor in the lower) and of the bus."""
    for path, device_path, vendor_path, words in _IDS:
        own, device, vendor = (number(facts, each) for each in (path, device_path, vendor_path))
        if own is not None and device is not None and vendor is not None and own != int(device) << 16 | int(vendor):
            text = f"{words} {int(own):#010x} in NVML, {int(device) << 16 | int(vendor):#010x} on the PCI bus"
            yield Contradiction(text, tuple(reading(box, gpu, each) for each in (path, device_path)))


def model(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """The architecture by name against the board of the PCI id, the VBIOS and the compute capability."""
    name = facts.get("gpu.name")
    named = architecture_named(name)
    if named is None or gpu.bdf in vgpus(box.snapshot.gpu, box.snapshot.gpu_board):
        return
    own = reading(box, gpu, "gpu.name")
    board = box.board(gpu)
    if board is not None and architecture_named(board.name) not in (None, named):
        id_ = Evidence(pci_file(gpu.bdf, "device"), board.id)
        yield Contradiction(f"NVML names it {name}, its PCI id is that of {board.name}", (own, id_))
    architecture = number(facts, "gpu_board.architecture")
    if architecture is not None and architecture in VBIOS and architecture != named:
        text = f"NVML names it {name}, and its architecture is {architecture:g}, not {named}"
        yield Contradiction(text, (own, reading(box, gpu, "gpu_board.architecture")))
    vbios = facts.get("gpu.vbios")
    if isinstance(vbios, str) and vbios.partition(".")[0] not in VBIOS[named]:
        text = f"VBIOS {vbios} on a {name}, whose versions begin with {' or '.join(VBIOS[named])}"
        yield Contradiction(text, (own, reading(box, gpu, "gpu.vbios")))
    capability = facts.get("gpu_board.compute_capability")
    if isinstance(capability, tuple) and capability[0] not in CAPABILITY[named]:
        text = f"compute capability {capability[0]}.{capability[1]} of a {name}"
        yield Contradiction(text, (own, reading(box, gpu, "gpu_board.compute_capability")))


def names(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """The name against that of most others with the same device and subsystem id, as "Graphics Device" where the driver
    does not know a board. vGPUs of one board have names of their own.
    """
    own = facts.get("gpu.name")
    if not isinstance(own, str) or gpu.bdf in vgpus(box.snapshot.gpu, box.snapshot.gpu_board):
        return
    boards = {row.bdf: (row.pci_device_id, row.pci_subsystem_id) for row in rows(box.snapshot.gpu_board)}
    ids = boards.get(gpu.bdf or "", ())
    names = [each.name for each in box.snapshot.listed_gpus if boards.get(each.bdf) == ids]
    usual = majority(names)
    if all(isinstance(each, int) for each in ids) and isinstance(usual, str) and usual != own:
        text = f"NVML names it {own}, {names.count(usual)} others with the same PCI ids {usual}"
        yield Contradiction(text, tuple(reading(box, gpu, each) for each in ("gpu.name", "gpu_board.pci_device_id")))


def far_ends(box: Box, gpu: Device, _: Facts) -> Iterator[Contradiction]:
    """What an NVLink says of its far end, against the device of that address."""
    gpus = {each.bdf for each in box.topology.gpus}
    for link in [link for link in rows(box.snapshot.nvlink) if link.bdf == gpu.bdf]:
        function = box.topology.functions.get(link.remote_bdf) if isinstance(link.remote_bdf, str) else None
        if function is not None and isinstance(link.remote_type, int) and link.remote_type != _UNKNOWN_END:
            wanted = _GPU_END if function.bdf in gpus else _SWITCH_END if is_nvswitch(function) else link.remote_type
            if link.remote_type != wanted:
                asked = question("nvmlDeviceGetNvLinkRemoteDeviceType", link.bdf, link.link)
                text = f"NVLink {link.link} leads to {function.bdf}, of type {wanted}, and calls it {link.remote_type}"
                yield Contradiction(text, (Evidence(asked, link.remote_type),))
