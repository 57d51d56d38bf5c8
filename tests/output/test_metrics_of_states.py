"""Temperatures and memory that was set aside are metrics of every machine that has the reading, whoever judges it."""

from __future__ import annotations

import pytest
from sample import BOXES, swept

from dgxcheck.assessment.health import assess
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.output.health.for_programs import prometheus
from dgxcheck.output.report import HealthReport


def report_on(name: str) -> HealthReport:
    return HealthReport(assessment=assess(name), exit_code=0)


@pytest.mark.parametrize("name", swept(BOXES, 6))
def test_what_was_read_has_a_series(name: str) -> None:
    report = report_on(name)
    assessment = report.assessment
    found = {family.name: len(family.samples) for family in prometheus.families(report)}
    known = {gpu.bdf for gpu in assessment.topology.gpus}
    thermal = [row for row in rows(assessment.snapshot.gpu_thermal) if row.bdf in known]
    memory = [row for row in rows(assessment.snapshot.gpu_ecc) if row.bdf in known]
    assert found["gpu_temperature_celsius"] == sum(not isinstance(row.gpu_c, Missing) for row in thermal)
    assert found["gpu_temperature_margin_celsius"] == sum(not isinstance(row.margin_c, Missing) for row in thermal)
    both = [(row.remapped_corrected, row.remapped_uncorrected) for row in memory]
    assert found["gpu_remapped_rows"] == sum(not isinstance(each, Missing) for pair in both for each in pair)


@pytest.mark.parametrize(("name", "families"), [
    ("dgx-h100", {"gpu_temperature_celsius", "gpu_temperature_margin_celsius", "gpu_remapped_rows"}),
    ("dgx-b200", {"gpu_temperature_celsius", "gpu_temperature_margin_celsius", "gpu_remapped_rows"}),
    ("dgx-1-v100", {"gpu_temperature_celsius", "gpu_retired_pages"}),
])  # fmt: skip
def test_each_generation_has_its_own(name: str, families: set[str]) -> None:
    found = prometheus.families(report_on(name))
    names = {family.name for family in found if family.samples}
    assert names & {"gpu_temperature_celsius", "gpu_temperature_margin_celsius", "gpu_retired_pages",
                    "gpu_remapped_rows"} == families  # fmt: skip
