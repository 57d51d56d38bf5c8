"""The score: the share of what is expected, lost hardware counts nothing, unread is not covered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_health_checks import GPU2, NVML, changed

from dgxcheck.cli import main
from dgxcheck.reading import Gap, Missing
from dgxcheck.score.expectation import WEIGHTS, Area, Expectation, score
from dgxcheck.source.library import shipped

BOXES = [name for name, path in shipped() if "faults" not in Path(path).parts]
GONE = Missing(Gap.UNRECORDED, "x")


def due(area: Area, measured: int | float | Missing, expected: float = 1, enough: bool = False) -> Expectation:
    return Expectation(area=area, id="x", subject="x", measured=measured, expected=expected, unit="", source="",
                       enough=enough)  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "expected", "enough", "share"),
    [(8, 8, False, 1), (9, 8, False, 1), (4, 8, False, 0.5), (0, 8, False, 0), (-1, 8, False, 0), (98, 100, True, 1),
     (97, 100, False, 0.97), (GONE, 8, False, None), (GONE, 8, True, None)],
)  # fmt: skip
def test_shares(measured: int | Missing, expected: float, enough: bool, share: float | None) -> None:
    assert due("gpu", measured, expected, enough).share == share


def test_areas_weigh_as_the_design_has_it() -> None:
    found = score((due("gpu", 1), due("gpu", 0), due("nvlink", 1), due("host", 0)))
    assert found.areas == {"gpu": 50, "nvlink": 100, "host": 0}
    assert found.total == 66.6  # (20 x 0.5 + 20 x 1 + 5 x 0) / 45, downwards


def test_what_is_not_covered_lowers_coverage_alone() -> None:
    found = score((due("gpu", 1), due("gpu", GONE), due("memory", 1), due("memory", 1)))
    assert (found.total, found.coverage, found.floor) == (100, 0.75, 75)
    half = score((due("gpu", 1), due("gpu", GONE), due("memory", GONE)))
    assert (half.total, half.floor, half.coverage) == (None, None, 0.333)
    assert score(()).total is None


@given(st.lists(st.tuples(st.sampled_from([*WEIGHTS]), st.floats(0, 2) | st.none()), min_size=1))
def test_any_score_is_within_bounds(parts: list[tuple[Area, float | None]]) -> None:
    found = score(tuple(due(area, GONE if measured is None else measured) for area, measured in parts))
    assert 0 <= found.coverage <= 1
    if found.total is not None:
        assert 0 <= found.total <= 100
        assert found.floor is not None
        assert found.floor <= found.total
        assert (found.total == 100) == all(each.share in (1, None) for each in found.expectations)


def told(capsys: pytest.CaptureFixture[str], spec: str, *argv: str) -> dict[str, Any]:
    main(["health", "--format", "json", "--from", spec, *argv])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    found: dict[str, Any] = document["score"]
    return found


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("level", [[], ["-q"], ["--profile", "same"]])
def test_a_healthy_box_scores_full(box: str, level: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, box, *(box if word == "same" else word for word in level))
    assert found["total"] == 100
    assert found["coverage"] >= 0.95
    assert found["level"] == ("quick" if level == ["-q"] else "default")


@pytest.mark.parametrize(
    ("facts", "area", "low", "high"),
    [
        ({f"{NVML}MaxClockInfo {GPU2} 0": 765}, "gpu", 96, 99.9),  # half a clock of one of eight
        ({f"{NVML}EccMode {GPU2}": [0, 0]}, "memory", 93, 94),
        ({f"{NVML}TotalEccErrors {GPU2} 1 0": 1}, "integrity", 93, 94),
        ({"text /sys/class/infiniband/mlx5_0/ports/1/state": "1: DOWN\n"}, "network", 79, 80.1),
        ({"text /proc/meminfo": "MemTotal:       263066746 kB\n"}, "host", 88, 90.5),
        ({"nvml nvmlDeviceGetHandleByIndex 2": {"missing": "lost", "detail": "NVML 15: GPU is lost"}}, "gpu", 87, 88),
    ],
)
def test_what_is_gone_costs_its_area(
    facts: dict[str, Any], area: str, low: float, high: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, changed(tmp_path, facts))
    assert low <= found["areas"][area] <= high
    assert found["total"] < 100


def test_a_gpu_that_only_stopped_answering_counts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = changed(tmp_path, {f"{NVML}MemoryInfo {GPU2}": {"missing": "lost", "detail": "NVML 15"}})
    found = told(capsys, spec)
    assert found["coverage"] == 1
    assert found["areas"]["memory"] == 93.7  # one of sixteen


def test_a_timeout_is_not_covered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, changed(tmp_path, {f"{NVML}MemoryInfo {GPU2}": {"missing": "timeout"}}))
    assert found["coverage"] == 0.991
    assert found["areas"]["memory"] == 100


def test_a_network_that_is_not_in_use_is_not_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    down = {f"text /sys/class/infiniband/mlx5_{n}/ports/1/state": "1: DOWN\n" for n in range(4)}
    assert told(capsys, changed(tmp_path, {**down}))["areas"]["network"] == 100  # the HCAs are there


def test_without_a_reference_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "dgx-1-v100", "--profile", "none") is None
    assert main(["health", "--from", "dgx-1-v100", "--profile", "none", "--explain", "score"]) == 3
    assert "No score" in capsys.readouterr().out


def test_the_sum_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--from", "dgx-1-v100-gpu-lost", "--explain", "score"]) == 0
    out = capsys.readouterr().out
    assert "GPU0 to GPU7 (7)" in out
    assert "missing GPU 8" in out
    for area, weight in WEIGHTS.items():
        assert any(line.split()[:3] == [area, "weight", str(weight)] for line in out.splitlines())
