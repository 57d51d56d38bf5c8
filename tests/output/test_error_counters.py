"""Labels of GPUs as dcgm-exporter has them, and error counters: what was read and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from sample import BOXES, swept

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.finding import BAD
from dgxcheck.facts.bdf import unplaced
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.output.exposition import bus_id
from dgxcheck.output.health.for_programs.prometheus import error_counters, labels_of_gpus, render
from dgxcheck.output.report import HealthReport

GONE = Missing(Gap.UNSUPPORTED, "here")
LINK = ("replay", "recovery", "crc_flit", "crc_data", "ecc_data")


@pytest.mark.parametrize(
    ("bdf", "shown"),
    [("0000:0a:00.0", "00000000:0A:00.0"), ("10000:e1:00.0", "00010000:E1:00.0"), (None, ""), (unplaced(3), "")],
)
def test_bus_ids_are_spelled_as_nvml_does(bdf: str | None, shown: str) -> None:
    assert bus_id(bdf) == shown


def series(box: str, **facts: object) -> Mapping[str, list[tuple[Mapping[str, str], int | float]]]:
    assessment = assess(box, Request())
    changed = replace(assessment, snapshot=replace(assessment.snapshot, **facts))
    return {family.name: [*family.samples] for family in error_counters(changed, labels_of_gpus(changed))}


def test_a_counter_that_is_missing_has_no_series() -> None:
    """Of the row, of one member, or of all: never a zero in its place."""
    facts = assess("dgx-1-v100", Request()).snapshot
    assert not isinstance(facts.nvlink_errors, Missing)
    assert not isinstance(facts.aer, Missing)
    assert not isinstance(facts.gpu_counters, Missing)
    whole = series("dgx-1-v100")
    known = sum(not isinstance(getattr(row, name), Missing) for row in facts.nvlink_errors for name in LINK)
    assert len(whole["nvlink_errors_total"]) == known > 0
    first, *links = facts.nvlink_errors
    port, *others = facts.aer
    changed = series(
        "dgx-1-v100", nvlink_errors=(replace(first, replay=GONE), *links), gpu_counters=GONE, ib_ports=GONE,
        aer=(replace(port, fatal=GONE), *others), gpu_ecc=facts.gpu_ecc,
    )  # fmt: skip
    left = {name: len(whole[name]) - len(rows) for name, rows in changed.items()}
    assert left == {
        "nvlink_errors_total": 1, "pcie_aer_errors_total": 1, "pcie_aer_messages_total": 0,
        "gpu_ecc_volatile_corrected_errors_total": 0, "gpu_pcie_replays_total": len(facts.gpu_counters),
        "port_errors_total": len(whole["port_errors_total"]),
    }  # fmt: skip


@pytest.mark.parametrize("box", ["dgx-a100-nvlink-recovery-total", "dgx-2-corrected-flood"])
def test_errors_are_counted_where_the_finding_is(box: str) -> None:
    counted = {(labels["pci_bus_id"], labels.get("nvlink", "")) for rows in series(box).values()
               for labels, number in rows if number}  # fmt: skip
    bad = [each.subject for each in assess(box, Request()).findings if each.status in BAD]
    assert counted == {(bus_id(subject.bdf), subject.part) for subject in bad}


@pytest.mark.parametrize("box", swept(BOXES, 7, first=3))
def test_no_series_is_there_twice(box: str) -> None:
    for name, rows in series(box).items():
        assert max(Counter(tuple(labels.items()) for labels, _ in rows).values(), default=1) == 1, name
        assert all("" not in (labels.get("device"), labels.get("nvlink")) for labels, _ in rows)


def test_no_serial_number_is_in_the_metrics() -> None:
    assessment = assess("dgx-1-v100", Request())
    text = render(HealthReport(assessment=assessment, exit_code=0))
    nvml = assessment.snapshot.gpu
    assert not isinstance(nvml, Missing)
    assert all(isinstance(gpu.serial, str) and gpu.serial not in text for gpu in nvml.gpus)
    assert all(isinstance(gpu.uuid, str) and gpu.uuid in text for gpu in nvml.gpus)
