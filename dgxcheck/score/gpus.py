"""Expectations of each GPU: model, clocks, power, memory, links, and memory without errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.gpu.inventory import count, short
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.profiles.library import board_id
from dgxcheck.profiles.model import OF_THE_GPUS, Board, SelectedProfile
from dgxcheck.score.absent import absent_gpus, usable
from dgxcheck.score.expectation import Area, Expectation
from dgxcheck.score.gpu_measures import (
    MIB,
    Measure,
    fact,
    links,
    narrowest,
    no_uncorrected_errors,
    not_throttled,
    nvlink_generation,
    pages_left,
    rows_left,
    slowest,
)
from dgxcheck.topology.model import Device


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
    GpuQuantity("gpu", "gpu.power-limit", "power_limit", "W", fact("power", "enforced_limit_mw", per=1000)),
    GpuQuantity("gpu", "gpu.not-slowed", "max_graphics_clock", "", not_throttled, yes_or_no=True),
    GpuQuantity("memory", "memory.size", "memory", "MiB", fact("memory", "total", per=MIB), short=short),
    GpuQuantity("memory", "memory.ecc", "ecc", "", fact("memory", "ecc"), yes_or_no=True),
    GpuQuantity("pcie", "pcie.bar1", "bar1", "MiB", fact("pcie", "bar1_total", per=MIB)),
    GpuQuantity("integrity", "integrity.retired-pages", "retired_pages", "", pages_left, yes_or_no=True),
    GpuQuantity("integrity", "integrity.spare-rows", "spare_rows", "", rows_left, yes_or_no=True),
)
OF_THE_BOX = (
    GpuQuantity("pcie", "pcie.link-width", "pcie.link_width", "lanes", narrowest),
    GpuQuantity("pcie", "pcie.link-generation", "pcie.link_gen", "generation", slowest),
    GpuQuantity("nvlink", "nvlink.links", "nvlink.links", "links", links),
    GpuQuantity("nvlink", "nvlink.generation", "nvlink.generation", "generation", nvlink_generation),
)
NO_ERRORS = GpuQuantity("integrity", "integrity.no-uncorrected-error", "", "", no_uncorrected_errors, yes_or_no=True)
MODEL = "gpu.model"


def expected(box: Box, choice: SelectedProfile) -> Iterator[Expectation]:
    """All expectations of each GPU, including missing and hidden ones."""
    present = usable(box)
    default_board = next((box.boards[id] for id in choice.profile.boards if id in box.boards), None)
    for gpu in present:
        yield replace(_model(gpu.name, choice), measured=_model_matches(gpu, choice))
        for quantity, expectation in _expectations(choice, gpu.name, box.board(gpu) or default_board):
            yield _measured(box, quantity, expectation, _zero_if_lost(quantity.measure(box, gpu)))
    number = None if choice.how == "gpus" else choice.number("gpu.count")
    if number is None:
        return
    yield Expectation(
        area="gpu", id="gpu.count", subject="host", measured=count(box), expected=number.value, unit="GPUs",
        source=number.source,
    )  # fmt: skip
    absent = absent_gpus(box)
    for place, absence in enumerate(absent, 1):
        which = f" {place} of {len(absent)}" if len(absent) > 1 else ""  # not its index, which nobody knows
        name = f"{'hidden' if isinstance(absence, Missing) else 'missing'} GPU{which}"
        yield replace(_model(name, choice), measured=absence)
        for _, expectation in _expectations(choice, name, default_board):
            yield replace(expectation, measured=absence)


def _expectations(choice: SelectedProfile, name: str, board: Board | None) -> Iterator[tuple[GpuQuantity, Expectation]]:
    """The expectations of one GPU, ``measured`` 0."""
    for quantity in OF_THE_BOARD:
        if board is not None and (number := board.numbers.get(quantity.key)) and _area_applies(quantity.area, choice):
            yield quantity, _expectation(quantity, name, number.value, number.source)
    for quantity in OF_THE_BOX:
        if number := choice.number(quantity.key):
            yield quantity, _expectation(quantity, name, number.value, number.source)
    if _area_applies("integrity", choice):
        yield NO_ERRORS, _expectation(NO_ERRORS, name, 1, "nvmlDeviceGetTotalEccErrors")


def _zero_if_lost(measured: int | float | Missing) -> int | float | Missing:
    """0 for a GPU that stopped answering."""
    return 0 if isinstance(measured, Missing) and measured.gap is Gap.LOST else measured


def _measured(
    box: Box, quantity: GpuQuantity, expectation: Expectation, measured: int | float | Missing
) -> Expectation:
    if quantity.short is None or isinstance(measured, Missing):
        return replace(expectation, measured=measured)
    return replace(expectation, measured=measured, enough=not quantity.short(box, measured, expectation.expected))


def _area_applies(area: Area, choice: SelectedProfile) -> bool:
    return choice.how != "gpus" or area in OF_THE_GPUS


def _expectation(quantity: GpuQuantity, name: str, value: int | float, source: str) -> Expectation:
    return Expectation(
        area=quantity.area, id=quantity.id, subject=name, measured=0, expected=1 if quantity.yes_or_no else value,
        unit=quantity.unit, source=source,
    )  # fmt: skip


def _model(name: str, choice: SelectedProfile) -> Expectation:
    return Expectation(
        area="gpu", id=MODEL, subject=name, measured=0, expected=1, unit="", source=f"{choice.profile.name}.toml"
    )


def _model_matches(gpu: Device, choice: SelectedProfile) -> int | Missing:
    id = board_id(gpu)
    return (
        int(id in choice.profile.boards) if id else Missing(Gap.ABSENT, str(gpu.bdf), "PCI vendor or device id unknown")
    )
