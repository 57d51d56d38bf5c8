"""What is impossible by the row of a fact alone, of every kind of device, and identities that two devices share."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_health_checks import GPU2, NVML, changed

from dgxcheck.assessment import assess
from dgxcheck.assessment.request import Request
from dgxcheck.checks.engine.finding import BAD, Finding
from dgxcheck.facts.missing import Json


def contradictions(tmp_path: Path, facts: dict[str, Json]) -> list[Finding]:
    findings = assess(changed(tmp_path, facts), Request()).findings
    return [each for each in findings if each.status in BAD and each.id.startswith("consistency")]


def found(tmp_path: Path, facts: dict[str, Json]) -> list[tuple[str, str, str]]:
    judged = contradictions(tmp_path, facts)
    return [(each.id, each.subject.name, each.judgement.message) for each in judged]


@pytest.mark.parametrize(("facts", "due"), [
    ({"text /sys/class/infiniband/mlx5_2/ports/1/rate": "50 Gb/sec (4X EDR)\n"},
     ("consistency.host", "host", "mlx5_2/1 has a rate that its lanes have not: 50 Gb/sec (4X EDR)")),
    ({f"{NVML}ClockInfo {GPU2} 1": 2000},
     ("consistency.readings", "GPU2", "current SM clock 2000 MHz above 1530 MHz")),
    ({f"{NVML}MaxClockInfo {GPU2} 2": 20000},
     ("consistency.readings", "GPU2", "highest memory clock 20000 MHz is impossible")),
    ({f"{NVML}CudaComputeCapability {GPU2}": [6, 1]},
     ("consistency.identity", "GPU2", "compute capability 6.1 of a Tesla V100-SXM2-16GB")),
])  # fmt: skip
def test_a_value_that_there_is_not_is_unknown(
    facts: dict[str, Json], due: tuple[str, str, str] | None, tmp_path: Path
) -> None:
    assert [due] == found(tmp_path, facts) or (due is None and not found(tmp_path, facts))


def test_two_gpus_with_one_bar_are_told_by_their_names(tmp_path: Path) -> None:
    none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    text = f"{none}0x0000380800000000 0x0000380bffffffff 0x000000000014220c\n{5 * none}"
    facts: dict[str, Json] = {f"text /sys/bus/pci/devices/{bdf}/resource": text for bdf in ("0000:06:00.0", GPU2)}
    alike = [each for each in contradictions(tmp_path, facts) if each.id == "consistency.unique"]
    assert "GPU0, GPU2 have the same BAR start" in {each.judgement.message for each in alike}
    assert {(each.subject.name, each.subject.part) for each in alike} == {("GPU0", "GPU2")}
    assert {(each.judgement.measured, each.judgement.expected) for each in alike} == {(2, 1)}
