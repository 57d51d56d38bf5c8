"""What is impossible by the row of a fact alone, of every kind of device, and identities that two devices share."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_health_checks import GPU2, NVML, changed

from dgxcheck.assessment import assess
from dgxcheck.assessment.request import Request
from dgxcheck.checks.engine.finding import BAD
from dgxcheck.facts.missing import Json


def found(tmp_path: Path, facts: dict[str, Json]) -> list[tuple[str, str, str]]:
    judged = assess(changed(tmp_path, facts), Request())
    return [
        (each.id, each.subject.name, each.judgement.message)
        for each in judged.findings if each.status in BAD and each.id.startswith("consistency")
    ]  # fmt: skip


@pytest.mark.parametrize(("facts", "due"), [
    ({"text /sys/class/infiniband/mlx5_2/ports/1/rate": "50 Gb/sec (4X EDR)\n"},
     ("consistency.host", "host", "mlx5_2/1 has a rate that its lanes have not: 50 Gb/sec (4X EDR)")),
    ({f"{NVML}ClockInfo {GPU2} 1": 2000},
     ("consistency.readings", "GPU2", "current SM clock 2000 MHz above 1530 MHz")),
    ({f"{NVML}MaxClockInfo {GPU2} 2": 20000},
     ("consistency.readings", "GPU2", "highest memory clock 20000 MHz is impossible")),
])  # fmt: skip
def test_a_value_that_there_is_not_is_unknown(
    facts: dict[str, Json], due: tuple[str, str, str] | None, tmp_path: Path
) -> None:
    assert [due] == found(tmp_path, facts) or (due is None and not found(tmp_path, facts))


def test_two_gpus_with_one_bar_are_told_by_their_names(tmp_path: Path) -> None:
    none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    text = f"{none}0x0000380800000000 0x0000380bffffffff 0x000000000014220c\n{5 * none}"
    facts: dict[str, Json] = {f"text /sys/bus/pci/devices/{bdf}/resource": text for bdf in ("0000:06:00.0", GPU2)}
    assert ("consistency.unique", "GPU0", "GPU0, GPU2 have the same BAR start") in found(tmp_path, facts)
