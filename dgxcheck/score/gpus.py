"""Expectations of each GPU: model, clocks, power, memory, links, and memory without errors; GPUs that are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import Box, mig_enabled
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.gpu.clocks import slowdown
from dgxcheck.checks.gpu.count import count, expected_count
from dgxcheck.checks.gpu.inventory import short
from dgxcheck.checks.gpu.presence import unlisted
from dgxcheck.facts.ids import MIB, OF_THE_KERNEL
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.nvml.nvlink import NvLink
from dgxcheck.facts.record import Record, replace
from dgxcheck.profiles.model import OF_THE_GPUS, Board, Number, SelectedProfile
from dgxcheck.score.expectation import Area, Expectation, of_number
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import hops_above

_UNUSED = (None, *OF_THE_KERNEL)


def usable(box: Box) -> list[Device]:
    """GPUs that NVML lists; all where NVML is not available."""
    return [gpu for gpu in box.reference_gpus if gpu.index is not None or isinstance(box.nvml, Missing)]


def absent_gpus(box: Box) -> list[int | Missing]:
    """One entry per expected GPU that is not usable: 0 if it is missing, Missing with the reason if it is hidden."""
    number = box.number("gpu.count")
    present = usable(box)
    missing = 0 if number is None else max(0, int(number.value) - len(present))
    unlisted_gpus = [_unlisted(box, gpu) for gpu in box.reference_gpus if gpu not in present][:missing]
    return unlisted_gpus + [_not_on_pci(box)] * (missing - len(unlisted_gpus))


def gpus_uncertain(box: Box) -> bool:
    """Is the machine known by its GPUs alone, while it shows another number of them than the reference machine has?"""
    number = box.number("gpu.count") if box.guessed else None
    return number is not None and expected_count(box) is None and len(box.reference_gpus) != number.value


def hidden_gpus(box: Box) -> Missing | None:
    """The reason why GPUs may be hidden at the far end of an NVLink; None if no GPU is hidden."""
    return next((gpu for gpu in absent_gpus(box) if isinstance(gpu, Missing)), None)


def _unlisted(box: Box, gpu: Device) -> int | Missing:
    """0 or Missing for a GPU on the PCI tree that NVML does not list, consistent with gpu.lost, gpu.count and
    kernel.gpu-start.
    """
    if unlisted(box, gpu).status is Status.FAIL or (_did_not_start(box, gpu) and not host_limits.gpus_hidden(box)):
        return 0
    hidden = _not_on_pci(box)
    if not isinstance(hidden, Missing) and bound(gpu) not in _UNUSED:
        return Missing(Gap.ABSENT, str(gpu.bdf), "NVML does not list it: see gpu.lost")
    return hidden


def _did_not_start(box: Box, gpu: Device) -> bool:
    """Does the log of this boot say that the driver gave up on it, which no other driver holds?"""
    failed = any(event.bdf == gpu.bdf and not event.past for event in box.log.not_started)
    return failed and bound(gpu) in (None, "nvidia")


def _not_on_pci(box: Box) -> int | Missing:
    if isinstance(box.snapshot.pci, Missing):
        return box.snapshot.pci
    if why := host_limits.gpus_hidden(box):
        return Missing(Gap.ABSENT, "/sys/bus/pci/devices", why)
    if box.guessed:
        return Missing(Gap.ABSENT, "/sys/bus/pci/devices", "this machine may have been built with fewer GPUs")
    return 0


Measure = Callable[[Box, Device], "int | float | Missing"]


def fact(*names: str, as_number: Callable[[Any], int | float] = float) -> Measure:
    """A measure: a field of the GPU's records (``power``, ``enforced_limit_mw``) as the number that is expected."""

    def measured(box: Box, gpu: Device) -> int | float | Missing:
        value: Any = box.gpu(gpu)
        for name in names:
            value = value if isinstance(value, Missing) else getattr(value, name)
        return value if isinstance(value, Missing) else as_number(value)

    return measured


def _mib(size: int) -> float:
    return size / MIB


@or_gap
def pages_left(box: Box, gpu: Device) -> int | Missing:
    """1 if the table of retired pages has room, else 0."""
    ecc = need(box.gpu(gpu).ecc)
    pages = (ecc.retired_single_bit, ecc.retired_double_bit)
    retired = sum(len(addresses) for addresses in pages if not isinstance(addresses, Missing))
    if retired >= box.settings.limit("ecc.retired-pages-fail"):
        return 0
    return next((addresses for addresses in pages if isinstance(addresses, Missing)), 1)


@or_gap
def least(box: Box, gpu: Device, member: str) -> int | Missing:
    """The lowest of the links up to the root bus."""
    hops = hops_above(need(gpu.path), box.topology.functions)
    values: list[int] = [need(getattr(hop, member)) for hop in hops if not hop.skip_reason]
    return min(values, default=Missing(Gap.ABSENT, str(gpu.bdf), "no bridge visible above the GPU"))


@or_gap
def links(box: Box, gpu: Device) -> int | Missing:
    """NVLinks that are up; Missing if fewer than expected and some GPUs are hidden."""
    up = sum(need(row.up) for row in need(_links_of(box, gpu)))
    expected = box.number("nvlink.links")
    hidden = hidden_gpus(box) if expected is not None and up < expected.value else None
    return up if hidden is None else hidden


@or_gap
def nvlink_generation(box: Box, gpu: Device) -> int | Missing:
    """The lowest generation among the NVLinks that are up; 0 if none is up and no GPU is hidden."""
    rows = need(_links_of(box, gpu))
    if generations := [need(row.generation) for row in rows if row.up is True]:
        return min(generations)
    need(next((row.up for row in rows if isinstance(row.up, Missing)), False))
    hidden = hidden_gpus(box)
    return 0 if hidden is None else hidden


@or_gap
def _links_of(box: Box, gpu: Device) -> tuple[NvLink, ...] | Missing:
    own = tuple(row for row in need(box.snapshot.nvlink) if row.bdf == gpu.bdf)
    if mig_enabled(box, gpu.bdf) and not any(row.up is True for row in own):
        return Missing(Gap.UNSUPPORTED, f"nvmlDeviceGetNvLinkState {gpu.bdf}", "MIG mode is on")
    return own


def known_model(box: Box, gpu: Device) -> int | Missing:
    """1 if it is a model of the reference machine, else 0."""
    if not (id := box.board_id(gpu)):
        return Missing(Gap.ABSENT, str(gpu.bdf), "PCI vendor or device id unknown")
    return int(box.choice is not None and id in box.choice.profile.boards)


class GpuQuantity(Record, kw_only=False):
    """A quantity expected of every GPU: the key of its number in the board or profile, and its measure."""

    area: Area
    id: str
    key: str
    unit: str
    measure: Measure
    yes_or_no: bool = False
    short: Callable[[Box, float, float], bool] | None = None
    """The check's own comparison, for quantities that may fall slightly short."""


OF_THE_BOARD = (
    GpuQuantity("gpu", "gpu.max-graphics-clock", "max_graphics_clock", "MHz", fact("clocks", "max", "graphics")),
    GpuQuantity("gpu", "gpu.max-memory-clock", "max_memory_clock", "MHz", fact("clocks", "max", "memory")),
    GpuQuantity("gpu", "gpu.power-limit", "power_limit", "W",
                fact("power", "enforced_limit_mw", as_number=lambda mw: round(mw / 1000))),
    GpuQuantity("gpu", "gpu.not-slowed", "max_graphics_clock", "",
                fact("clocks", "reasons", "mask", as_number=lambda mask: int(not slowdown(mask))), yes_or_no=True),
    GpuQuantity("memory", "memory.size", "memory", "MiB", fact("memory", "total", as_number=_mib), short=short),
    GpuQuantity("memory", "memory.ecc", "ecc", "", fact("memory", "ecc"), yes_or_no=True),
    GpuQuantity("pcie", "pcie.bar1", "bar1", "MiB", fact("pcie", "bar1_total", as_number=_mib)),
    GpuQuantity("integrity", "integrity.retired-pages", "retired_pages", "", pages_left, yes_or_no=True),
    GpuQuantity("integrity", "integrity.spare-rows", "spare_rows", "",
                fact("ecc", "remap_failed", as_number=lambda failed: int(not failed)), yes_or_no=True),
)  # fmt: skip
OF_THE_BOX = (
    GpuQuantity("pcie", "pcie.link-width", "pcie.link_width", "lanes", lambda box, gpu: least(box, gpu, "width")),
    GpuQuantity("pcie", "pcie.link-generation", "pcie.link_gen", "generation",
                lambda box, gpu: least(box, gpu, "max_gen")),
    GpuQuantity("nvlink", "nvlink.links", "nvlink.links", "links", links),
    GpuQuantity("nvlink", "nvlink.generation", "nvlink.generation", "generation", nvlink_generation),
)  # fmt: skip
NO_ERRORS = GpuQuantity(
    "integrity", "integrity.no-uncorrected-error", "", "",
    fact("ecc", "volatile_uncorrected", "total", as_number=lambda errors: int(errors == 0)), yes_or_no=True,
)  # fmt: skip
MODEL = GpuQuantity("gpu", "gpu.model", "", "", known_model, yes_or_no=True)


def expected(box: Box, choice: SelectedProfile) -> Iterator[Expectation]:
    """All expectations of each GPU, including missing and hidden ones."""
    present = usable(box)
    default_board = next((box.boards[id] for id in choice.profile.boards if id in box.boards), None)
    for gpu in present:
        for quantity, each in _expectations(choice, gpu.name, box.board(gpu) or default_board):
            if isinstance(measured := quantity.measure(box, gpu), Missing):
                yield replace(each, measured=0 if measured.gap is Gap.LOST else measured)
            else:
                enough = quantity.short is not None and not quantity.short(box, measured, each.expected)
                yield replace(each, measured=measured, enough=enough)
    number = None if choice.how == "gpus" else choice.number("gpu.count")
    if number is None:
        return
    yield of_number(number, "gpu", "gpu.count", "host", count(box), "GPUs")
    absent = absent_gpus(box)
    for place, absence in enumerate(absent, 1):
        which = f" {place} of {len(absent)}" if len(absent) > 1 else ""  # not its index, which nobody knows
        name = f"{'hidden' if isinstance(absence, Missing) else 'missing'} GPU{which}"
        for _, each in _expectations(choice, name, default_board):
            yield replace(each, measured=absence)


def _expectations(choice: SelectedProfile, name: str, board: Board | None) -> Iterator[tuple[GpuQuantity, Expectation]]:
    """The expectations of one GPU, ``measured`` 0."""
    of_board = {} if board is None else board.numbers
    numbers: list[tuple[GpuQuantity, Number | None]] = [(MODEL, Number(1, f"{choice.profile.name}.toml"))]
    numbers += [(each, of_board.get(each.key)) for each in OF_THE_BOARD if area_applies(each.area, choice)]
    numbers += [(each, choice.number(each.key)) for each in OF_THE_BOX]
    if area_applies("integrity", choice):
        numbers.append((NO_ERRORS, Number(1, "nvmlDeviceGetTotalEccErrors")))
    for each, number in numbers:
        if number is not None:
            wanted = replace(number, value=1) if each.yes_or_no else number
            yield each, of_number(wanted, each.area, each.id, name, 0, each.unit)


def area_applies(area: Area, choice: SelectedProfile) -> bool:
    """Is it scored of a machine that is known by its GPUs alone, too?"""
    return choice.how != "gpus" or area in OF_THE_GPUS
