"""The generation and the rate at which NVLinks run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, host_if_all, of_listed_gpus
from dgxcheck.checks.engine.expected import model_family
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, answered, counted, judged, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.nvlink.links import nvlinks
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import NVLINK_SPEED
from dgxcheck.facts.missing import Missing, need, or_gap
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import majority
from dgxcheck.profiles.model import Number
from dgxcheck.topology.model import Device

Values = Mapping[tuple[str, int], "int | Missing"]
"""By bdf and link position, of links that are up."""
TOLERANCE = 0.98
"""Rates are printed in whole MB/s, some of them rounded."""
_OF_DATA = 16 / 17
"""A link of 53.125 GB/s is printed as 50 GB/s too (https://github.com/NVIDIA/nvbandwidth/issues/44): without what the
error correction of its lanes adds.
"""


class _Quantity(Record, kw_only=False):
    """What is compared: in words, by NVML function, and whose number is expected (in the profile or of the board)."""

    values: Callable[[Box], Values | Missing]
    reference: Callable[[Box, Device], Number | None]
    text: Callable[[float], str]
    function: str
    args: tuple[int, ...]
    unit: str
    least: float = 1.0
    """Share of the reference that is as good as all of it."""


@or_gap
def generations(box: Box) -> Values:
    """``nvmlDeviceGetNvLinkVersion`` as a generation."""
    return {(row.bdf, row.link): row.generation for row in need(box.snapshot.nvlink) if row.up is True}


@or_gap
def rates(box: Box) -> Values:
    """MB/s per direction."""
    return {(row.bdf, row.link): row.speed_mbs for row in need(box.snapshot.nvlink_rate)}


_GENERATION = _Quantity(
    generations, lambda box, gpu: box.number("nvlink.generation", gpu), lambda value: f"generation {value:g}",
    "nvmlDeviceGetNvLinkVersion", (), "generation",
)  # fmt: skip
_RATE = _Quantity(
    rates, lambda box, gpu: box.board_number(gpu, "nvlink_rate"), lambda value: f"{value / 1000:g} GB/s",
    "nvmlDeviceGetFieldValues", (NVLINK_SPEED,), "MB/s", _OF_DATA,
)  # fmt: skip


def _by_links(box: Box, quantity: _Quantity) -> Judged:
    return of_listed_gpus(box, partial(_of_gpu, box, quantity, quantity.values(box)))


def _of_gpu(box: Box, quantity: _Quantity, values: Values | Missing, gpu: Device, subject: Subject) -> Judged:
    """One finding for the GPU; where only some of its links are below, one for each of these."""
    if isinstance(values, Missing):
        yield subject, unjudged(values)
        return
    own = {link: value for (bdf, link), value in values.items() if bdf == gpu.bdf}
    own_rates = {link: value for link, value in own.items() if isinstance(value, int)}
    if not own_rates:
        gap = next((value for value in own.values() if isinstance(value, Missing)), None)
        yield subject, skip("not-supported", "this GPU has no NVLink up") if gap is None else unjudged(gap)
        return
    expected, usual = quantity.reference(box, gpu), _usual(box, gpu, values)
    target = max(0 if expected is None else expected.value, usual or 0)
    least = TOLERANCE * max(0 if expected is None else quantity.least * expected.value, usual or 0)
    below = {link: value for link, value in own_rates.items() if value < least}
    one = next(iter(own_rates))
    good = f"{counted(len(own_rates), 'NVLink')} at {quantity.text(own_rates[one])}"
    if not below:
        if expected is None and usual is None:
            yield subject, skip("no-reference", f"{good}: none is on record for this model")
            return
        evidence = _evidence(quantity, gpu, {one: own_rates[one]})
        yield subject, Judgement(Status.PASS, good, own_rates[one], target, quantity.unit, evidence)
        return
    whole = len(below) == len(own_rates)
    for link, value in [*below.items()][: 1 if whole else None]:
        named = "all NVLinks" if whole and len(own_rates) > 1 else f"link {link}"
        alone = usual is not None and value < TOLERANCE * usual
        whose = "for this machine" if quantity is _GENERATION else "for this model"
        wanted = f"{quantity.text(target)} on the other links" if alone else f"{quantity.text(target)} expected {whose}"
        message = f"{named} at {quantity.text(value)}, {wanted}"
        facts = (value, target, quantity.unit, _evidence(quantity, gpu, below if whole else {link: value}))
        judgement = judged(Fault.NVLINK_SLOW, message, *facts, warns=True, fails=alone or box.is_known)
        yield subject if whole else replace(subject, part=str(link)), judgement


def _usual(box: Box, gpu: Device, values: Values) -> int | None:
    """The value of more than half of the links of all GPUs of the model; None where there is none."""
    family = model_family(box, gpu)
    alike = {other.bdf for other in box.topology.gpus if other is gpu or model_family(box, other) == family}
    readable = [value for (bdf, _), value in values.items() if bdf in alike and isinstance(value, int)]
    return majority(readable) if len(readable) > 1 else None


def _evidence(quantity: _Quantity, gpu: Device, links: Mapping[int, int]) -> tuple[Evidence, ...]:
    asked = (quantity.function, gpu.bdf or "")
    return tuple(answered(value, *asked, link, *quantity.args) for link, value in links.items())


def _generation(box: Box) -> Judged:
    """Fails if an NVLink that is up runs at a lower generation than the profile's, or than most links of the GPUs of
    its model; for the profile's it only warns where the machine is known by its GPUs alone.

    Source: nvmlDeviceGetNvLinkVersion against the profile's nvlink.generation and the other links
    """
    return _by_links(box, _GENERATION)


def _rate(box: Box) -> Judged:
    """Fails if an NVLink that is up runs more than 2 % slower than most links of the GPUs of its model, or than the
    model's links do; for the latter it only warns where the machine is known by its GPUs alone, or not at all.

    Source: NVML_FI_DEV_NVLINK_GET_SPEED against the board's nvlink_rate and the other links
    """
    return _by_links(box, _RATE)


CHECKS = (
    Check("nvlink.generation", _generation, nvlinks, host_if_all("NVLink rate")),
    Check("nvlink.rate", _rate, nvlinks, host_if_all("NVLink rate")),
)  # fmt: skip
