"""What holds the clocks of a GPU down, by two readings: lack of power, heat, and whether it lasts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_box import grown
from test_checks_gpu import said, word
from test_health_checks import GPU2, NVML, box, changed

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.gpu.beside_siblings import POWER_CAP
from dgxcheck.checks.gpu.clocks import can_lock_clocks
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace


def later(folder: Path, first: dict[str, Json], second: dict[str, Json]) -> Box:
    """A DGX-1 with these answers of GPU2, and those a hundred seconds later."""
    path = Path(changed(folder, {f"{NVML}{key.format(GPU2)}": value for key, value in first.items()}))
    document = json.loads(path.read_text(encoding="utf-8"))
    asked = {key: key.partition(" {}") for key in second}
    facts = {f"{NVML}{name} {GPU2}": {args.strip(): second[key]} for key, (name, _, args) in asked.items()}
    path.write_text(json.dumps(document | {"later": [{"at_s": 100, "facts": facts}]}), encoding="utf-8")
    return grown(str(path))


def violation(seconds: float) -> Json:
    return {"violationTime": int(seconds * 1e9), "referenceTime": 0}


POWER, THERMAL, ENERGY = "ViolationStatus {} 0", "ViolationStatus {} 1", "TotalEnergyConsumption {}"
REASONS, BRAKED = "CurrentClocksEventReasons {}", "FieldValues {} 271"


@pytest.mark.parametrize(("architecture", "capability", "due"), [
    (5, [6, 0], True), (4, [7, 0], False), (None, [7, 0], True), (None, [6, 1], False), (None, None, True),
])  # fmt: skip
def test_clocks_can_be_locked_from_volta_on(
    architecture: int | None, capability: Json, due: bool, tmp_path: Path
) -> None:
    none: Json = {"missing": "unsupported"}
    answers = {"Architecture": architecture, "CudaComputeCapability": capability}
    facts: dict[str, Json] = {f"{NVML}{name} {GPU2}": none if each is None else each for name, each in answers.items()}
    machine = box(changed(tmp_path, facts))
    assert can_lock_clocks(machine, GPU2) is due


def test_clocks_of_a_gpu_that_is_not_there_can_be_locked() -> None:
    assert can_lock_clocks(box("dgx-1-v100"), "0000:ff:00.0")


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [
        (0, 0, "pass"), (7, 12, "pass"), (7, 12.2, "warn"), (900, 3, "skip no-history"),
    ],
)  # fmt: skip
def test_power_violation(before: float, after: float, due: str, tmp_path: Path) -> None:
    whole = later(tmp_path, {POWER: violation(before)}, {POWER: violation(after), REASONS: POWER_CAP})
    assert word(said(whole, "power.violation")) == due


@pytest.mark.parametrize(
    ("held_s", "joules", "due"),
    [(90, 25_650, "pass"), (90, 25_649, "warn"), (30, 9000, "pass"), (30, 8000, "warn"), (4, 100, "pass")],
)
def test_the_energy_says_whether_a_gpu_was_at_its_limit(held_s: float, joules: int, due: str, tmp_path: Path) -> None:
    """A load that reached the power limit (300 W, 100 s between the readings) is over at the second reading."""
    first: dict[str, Json] = {POWER: violation(0), ENERGY: 7_000_000}
    whole = later(tmp_path, first, {POWER: violation(held_s), ENERGY: 7_000_000 + 1000 * joules})
    assert word(said(whole, "power.violation")) == due


@pytest.mark.parametrize(
    ("second", "due"),
    [
        ({"PowerUsage {}": 299_000, ENERGY: 16_000_000}, "warn"),  # what it draws now says nothing of the time before
        ({REASONS: 0x88, ENERGY: 37_000_000}, "warn"),  # the power brake, whatever was drawn
        ({BRAKED: 6 * 10**9, ENERGY: 37_000_000}, "warn"), ({BRAKED: 5 * 10**9, ENERGY: 37_000_000}, "pass"),
        ({ENERGY: 100}, "skip no-history"),  # the driver was reloaded
    ],
)
def test_the_energy_counts_before_the_draw_of_the_moment(second: dict[str, Json], due: str, tmp_path: Path) -> None:
    whole = later(tmp_path, {POWER: violation(0), ENERGY: 7_000_000, BRAKED: 0}, {POWER: violation(90), **second})
    assert word(said(whole, "power.violation")) == due


def test_what_a_gpu_drew_before_is_not_known_without_its_energy(tmp_path: Path) -> None:
    whole = later(tmp_path, {POWER: violation(0)}, {POWER: violation(90)})
    assert word(said(whole, "power.violation")) == "skip no-history"


@pytest.mark.parametrize(
    ("mask", "before", "after", "due"),
    [
        (0x20, 0, 90, "fail"), (0x48, 0, 90, "fail"), (0x20, 0, 5, "warn"), (0x20, 90, 0, "warn"),
        (0x88, 0, 90, "warn"), (0x1, 0, 90, "warn"), (0x1, 0, 5, "pass"),
    ],
)  # fmt: skip
def test_a_slowdown_that_costs_time_fails(mask: int, before: float, after: float, due: str, tmp_path: Path) -> None:
    """Though the second reading finds none."""
    whole = later(tmp_path, {REASONS: mask, THERMAL: violation(before)}, {THERMAL: violation(after), REASONS: 0})
    assert word(said(whole, "clock.throttle")) == due


@pytest.mark.parametrize(
    ("again", "seconds", "due"),
    [(0x88, 10, "fail"), (0x80, 600, "fail"), (0x88, 601, "warn"), (0x1, 10, "warn"), (0x20, 10, "warn")],
)
def test_a_second_reading_of_the_reasons_counts(again: int, seconds: float, due: str, tmp_path: Path) -> None:
    whole = later(tmp_path, {REASONS: 0x88}, {REASONS: again})
    assert isinstance(whole.growth, Growth)
    whole = replace(whole, growth=replace(whole.growth, seconds=seconds))
    assert word(said(whole, "clock.throttle")) == due


@pytest.mark.parametrize(("base", "gpu", "facts", "is_cool"), [
    ("dgx-1-v100", GPU2, {"Temperature {} 0": 67}, True), ("dgx-1-v100", GPU2, {"Temperature {} 0": 68}, False),
    ("dgx-h200", "0000:1b:00.0", {"MarginTemperature {}": 18}, True),  # it slows down at -2
    ("dgx-h200", "0000:1b:00.0", {"MarginTemperature {}": 17}, False),
    ("dgx-h200", "0000:1b:00.0", {"FieldValues {} 194": {"missing": "unsupported"}}, False),  # nor are degrees known
    ("dgx-1-v100", GPU2, {"Temperature {} 0": {"missing": "unsupported"}}, False),
])  # fmt: skip
def test_a_slowdown_far_from_the_threshold_is_of_power(
    base: str, gpu: str, facts: dict[str, Json], is_cool: bool, tmp_path: Path
) -> None:
    slowed = {REASONS: 0x8, **facts}
    of = box(changed(tmp_path, {f"{NVML}{key.format(gpu)}": value for key, value in slowed.items()}, base))
    found = [each.judgement.fault for each in run(of, CHECKS) if (each.id, each.subject.bdf) == ("clock.throttle", gpu)]
    assert found == [Fault.POWER_VIOLATION if is_cool else Fault.HARDWARE_SLOWDOWN]


def test_readings_without_time_between_them_are_no_history(tmp_path: Path) -> None:
    whole = later(tmp_path, {POWER: violation(0)}, {POWER: violation(90)})
    assert isinstance(whole.growth, Growth)
    whole = replace(whole, growth=replace(whole.growth, seconds=0.0))
    assert word(said(whole, "power.violation")) == "skip no-history"


@pytest.mark.parametrize(("milliwatts", "due"), [(285_000, "pass"), (284_999, "skip no-history")])
def test_a_gpu_that_draws_what_it_may_is_not_short_of_power(milliwatts: int, due: str, tmp_path: Path) -> None:
    whole = later(tmp_path, {POWER: violation(0), "PowerUsage {}": milliwatts}, {POWER: violation(90)})
    assert word(said(whole, "power.violation")) == due


@pytest.mark.parametrize(("before", "after", "due"), [(4, 4, "pass"), (4, 5, "warn"), (7, 0, "pass")])
def test_errors_of_a_life_count_when_they_grow(before: int, after: int, due: str, tmp_path: Path) -> None:
    whole = later(tmp_path, {"TotalEccErrors {} 1 1": before}, {"TotalEccErrors {} 1 1": after})
    assert word(said(whole, "ecc.aggregate")) == due
    assert word(said(replace(whole, growth=box("dgx-1-v100").growth), "ecc.aggregate")) == "pass"
