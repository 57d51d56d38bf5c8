"""Every recorded fact has a row: its nature, and by it how it is judged or why it is not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain

import pytest
from checkout import ROOT

from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts import host, infiniband, kernel_log, measurement, memory, nature, pci, tool_outputs
from dgxcheck.facts.nature import COMPARED, rows_of
from dgxcheck.facts.nvml import gpu, nvlink, quantities, readings
from dgxcheck.facts.record import Record, fields
from dgxcheck.settings import THRESHOLDS

MODULES = (gpu, readings, host, memory, infiniband, nvlink, pci, kernel_log, measurement, tool_outputs)
RECORDS = {
    name: each
    for module in MODULES
    for name, each in vars(module).items()
    if isinstance(each, type) and issubclass(each, Record) and each.__module__ == module.__name__
}
ROWS = {f"{name}.{field}": row for name, record in RECORDS.items() for field, row in rows_of(record).items()}


@pytest.mark.parametrize("name", RECORDS)
def test_every_field_has_a_row(name: str) -> None:
    assert [*rows_of(RECORDS[name])] == [*fields(RECORDS[name])]


def test_a_row_is_found_by_the_field_itself() -> None:
    found = nature.row(readings.GpuPower.limit_mw)
    assert (found.nature, found.label, found.unit) == ("setting", "power limit", "mW")
    with pytest.raises(AttributeError):
        nature.row(readings.GpuPower.limit_wm)  # type: ignore[attr-defined]


def test_every_counter_has_an_allowance_or_the_reason_why_any_number_is_harmless() -> None:
    lacking = [
        name for name, row in ROWS.items()
        if row.nature == "counter" and not {"limit", "any", "names"} & row.more.keys()
    ]  # fmt: skip
    inside = ("EccCounts.", "AerErrors.total", "GpuMemory.row_histogram")  # what holds them, or what they hold, has it
    assert [name for name in lacking if not name.startswith(inside)] == []


_NUMBERED = (nature.by_name(table, name) for table in (infiniband.counters(), pci.BY_NAME) for name in table)
EVERY = [*ROWS.values(), *(row for row in _NUMBERED if row is not None)]
OWN = {
    "counter": {"limit", "per", "grown", "names", "blames", "ceiling", "of_life", "at_boot"},
    "state": {"good", "by"},
    "identity": {"shared", "flashed", "lasts"},
    "inventory": {"tolerance", "slack"},
    "place": {"unique"},
    "capability": {"any_order"},
}
"""What only rows of one nature say: of another one nothing reads it."""


def test_a_row_says_what_is_read_of_its_nature() -> None:
    for row in EVERY:
        for of, options in OWN.items():
            assert row.nature == of or not options & row.more.keys(), f"{row.record.__name__}.{row.name}"
        assert "fix" not in row.more or row.nature in ("setting", "capability"), row.name


def test_a_limit_is_a_threshold_or_a_number() -> None:
    limits = [row.more[key] for row in EVERY for key in ("limit", "tolerance") if key in row.more]
    assert {limit for limit in limits if isinstance(limit, str)} <= THRESHOLDS.keys()


def test_what_a_row_names_is_a_field_of_its_record() -> None:
    for row in ROWS.values():
        assert row.more.get("most", row.name) in fields(row.record), row.name


def test_what_is_not_compared_says_why() -> None:
    for name, row in ROWS.items():
        if row.nature in COMPARED and "differs" in row.more:
            assert len(row.more["differs"].split()) > 2, name


def test_what_nvml_is_asked_gives_facts_that_records_have() -> None:
    """``application.graphics`` is a field of the record that a field holds."""
    by_group: Mapping[str, type[Record]] = {
        record._where.removeprefix("nvml "): record  # type: ignore[attr-defined]
        for record in RECORDS.values()
        if record._where.startswith("nvml ")  # type: ignore[attr-defined]
    }
    for group, record in by_group.items():
        for fact in chain.from_iterable(quantity.facts for quantity in quantities.GROUPS[group]):
            outer, _, inner = fact.partition(".")
            held = record.__annotations__.get(outer, "")
            assert held, (group, fact)
            assert not inner or inner in fields(RECORDS[held]), (group, fact)


def test_a_function_of_nvml_that_a_check_or_probe_names_is_asked() -> None:
    """A typo would be evidence that nobody can look up; a probe also names the function whose number a text lacks."""
    asked = {quantity.function for group in quantities.GROUPS.values() for quantity in group}
    asked |= {"nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetIndex"}
    named = {
        (name, str(path.relative_to(ROOT)))
        for room in ("probes", "dgxcheck/checks", "dgxcheck/diagnosis", "dgxcheck/score", "dgxcheck/assessment")
        for path in (ROOT / room).rglob("*.py")
        for name in re.findall(r"[\"'](nvml(?:DeviceGet\w+|SystemGet\w+|Init\w*))[\"' ]", path.read_text())
    }
    assert len(named) > 50
    assert {each for each in named if each[0] not in asked} == set()


def test_what_knows_more_than_a_row_is_a_check() -> None:
    ids = {check.id for check in CHECKS}
    named = {str(row.more["by"]) for row in ROWS.values() if "by" in row.more}
    assert named <= ids
    reasons = " ".join(str(row.more.get("differs", "")) for row in ROWS.values())
    assert {word.strip(",;:") for word in reasons.split() if "." in word and word[0].islower()} <= ids
