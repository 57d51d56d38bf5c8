"""What is expected of each GPU: its model, clocks, power, memory, PCI link and sound memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.gpu.inventory import count, short
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.profiles.library import board_id
from dgxcheck.profiles.model import OF_THE_GPUS, Board, Choice
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


class _Due(Record, kw_only=False):
    """One expectation of every GPU: the number of its board or of the profile, and what measures it."""

    area: Area
    id: str
    key: str
    unit: str
    measure: Measure
    yes_or_no: bool = False
    short: Callable[[Box, float, float], bool] | None = None
    """The check's, for what may be less than expected without being missed."""


OF_THE_BOARD = (
    _Due("gpu", "gpu.max-graphics-clock", "max_graphics_clock", "MHz", fact("clocks", "max", "graphics")),
    _Due("gpu", "gpu.max-memory-clock", "max_memory_clock", "MHz", fact("clocks", "max", "memory")),
    _Due("gpu", "gpu.power-limit", "power_limit", "W", fact("power", "enforced_limit_mw", per=1000)),
    _Due("gpu", "gpu.not-slowed", "max_graphics_clock", "", not_throttled, yes_or_no=True),
    _Due("memory", "memory.size", "memory", "MiB", fact("memory", "total", per=MIB), short=short),
    _Due("memory", "memory.ecc", "ecc", "", fact("memory", "ecc"), yes_or_no=True),
    _Due("pcie", "pcie.bar1", "bar1", "MiB", fact("pcie", "bar1_total", per=MIB)),
    _Due("integrity", "integrity.retired-pages", "retired_pages", "", pages_left, yes_or_no=True),
    _Due("integrity", "integrity.spare-rows", "spare_rows", "", rows_left, yes_or_no=True),
)
OF_THE_BOX = (
    _Due("pcie", "pcie.link-width", "pcie.link_width", "lanes", narrowest),
    _Due("pcie", "pcie.link-generation", "pcie.link_gen", "generation", slowest),
    _Due("nvlink", "nvlink.links", "nvlink.links", "links", links),
    _Due("nvlink", "nvlink.generation", "nvlink.generation", "generation", nvlink_generation),
)
NO_ERRORS = _Due("integrity", "integrity.no-uncorrected-error", "", "", no_uncorrected_errors, yes_or_no=True)
MODEL = "gpu.model"


def expected(box: Box, choice: Choice) -> Iterator[Expectation]:
    """Everything that is expected of each GPU, of those that are not there too."""
    here = usable(box)
    usual = next((box.boards[id] for id in choice.profile.boards if id in box.boards), None)
    for gpu in here:
        yield replace(_model(gpu.name, choice), measured=_is_of(gpu, choice))
        for due, each in _all(choice, gpu.name, box.board(gpu) or usual):
            yield _measured(box, due, each, _here(due.measure(box, gpu)))
    number = None if choice.how == "gpus" else choice.number("gpu.count")
    if number is None:
        return
    yield Expectation(
        area="gpu", id="gpu.count", subject="host", measured=count(box), expected=number.value, unit="GPUs",
        source=number.source,
    )  # fmt: skip
    for place, measured in enumerate(absent_gpus(box), len(here) + 1):
        name = f"{'hidden' if isinstance(measured, Missing) else 'missing'} GPU {place}"
        yield replace(_model(name, choice), measured=measured)
        yield from (replace(each, measured=measured) for _, each in _all(choice, name, usual))


def _all(choice: Choice, name: str, board: Board | None) -> Iterator[tuple[_Due, Expectation]]:
    """What is expected of one GPU, with nothing of it there yet."""
    for due in OF_THE_BOARD:
        if board is not None and (number := board.numbers.get(due.key)) and _counts(due.area, choice):
            yield due, _due(due, name, number.value, number.source)
    for due in OF_THE_BOX:
        if number := choice.number(due.key):
            yield due, _due(due, name, number.value, number.source)
    if _counts("integrity", choice):
        yield NO_ERRORS, _due(NO_ERRORS, name, 1, "nvmlDeviceGetTotalEccErrors")


def _here(measured: int | float | Missing) -> int | float | Missing:
    """A GPU that stopped answering is as good as none."""
    return 0 if isinstance(measured, Missing) and measured.gap is Gap.LOST else measured


def _measured(box: Box, due: _Due, each: Expectation, measured: int | float | Missing) -> Expectation:
    if due.short is None or isinstance(measured, Missing):
        return replace(each, measured=measured)
    return replace(each, measured=measured, enough=not due.short(box, measured, each.expected))


def _counts(area: Area, choice: Choice) -> bool:
    return choice.how != "gpus" or area in OF_THE_GPUS


def _due(due: _Due, name: str, value: int | float, source: str) -> Expectation:
    return Expectation(
        area=due.area, id=due.id, subject=name, measured=0, expected=1 if due.yes_or_no else value, unit=due.unit,
        source=source,
    )  # fmt: skip


def _model(name: str, choice: Choice) -> Expectation:
    return Expectation(
        area="gpu", id=MODEL, subject=name, measured=0, expected=1, unit="", source=f"{choice.profile.name}.toml"
    )


def _is_of(gpu: Device, choice: Choice) -> int | Missing:
    id = board_id(gpu)
    return int(id in choice.profile.boards) if id else Missing(Gap.ABSENT, str(gpu.bdf), "no PCI id is known")
