"""Measurements as tables, as JSON and as metrics."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from golden_text import agrees
from measured_box import GPUS, dgx1_p100, fact, measured, overlay, words
from prometheus_client.parser import text_string_to_metric_families
from schemas import complaints

from dgxcheck.cli import main
from dgxcheck.facts.missing import Json
from dgxcheck.output.color import colorize
from dgxcheck.output.health.measurement_tables import WIDTH, legend, tables
from dgxcheck.readiness.figures import all_figures

AB = f"{GPUS[2]} {GPUS[3]}"
FAULTY: dict[str, Json] = {
    f"p2p {AB}": fact(9.2, samples=[9.1, 9.2, 9.3]),
    f"p2p {GPUS[5]} {GPUS[7]}": fact(15.2),
    f"p2p {GPUS[6]} {GPUS[7]}": {"failed": "integrity", "detail": "3 words"},
    f"p2p-integrity {GPUS[6]} {GPUS[7]}": words(3),
    f"latency {GPUS[0]} {GPUS[3]}": {"missing": "timeout", "detail": "no answer for 120 s"},
    f"compute {GPUS[1]}": {"skipped": "busy", "detail": "pid 7"},
    f"host-to-device {GPUS[4]}": fact(5.9),
    "collective all_reduce 8": fact(62.4),
}


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    main(["health", *argv])
    return capsys.readouterr().out


def test_the_tables_are_golden(tmp_path: Path) -> None:
    lines = tables(all_figures(measured(tmp_path, dgx1_p100() | FAULTY)))
    agrees("measured.tables", "\n".join(lines))
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize(
    ("table", "due"),
    [
        ("RDMA write at mlx5_5: 12.25 GB/s", []),
        ("GPU0   -   24.2* \nGPU1  9.1!  ", ["! wrong or far below what is expected, * below what is expected",
                                           "- not measured"]),
        ("GPU0  x ", ["x not offered by the driver"]),
        ("P2P on, one way, GB/s, from the row's GPU to the column's:", []),
    ],
)  # fmt: skip
def test_the_legend_explains_the_signs_that_are_shown(table: str, due: list[str]) -> None:
    assert legend(table) == due


def test_rows_of_an_hca_of_a_ring_and_of_what_gave_no_figure(tmp_path: Path) -> None:
    rows: dict[str, Json] = {
        "rdma-write mlx5_0": fact(11.5, memory=3), "rdma-read mlx5_0": {"skipped": "busy", "detail": "pid 7"},
        "ring 0,1,2": fact(30.5),
    }  # fmt: skip
    lines = tables(all_figures(measured(tmp_path, rows)))
    for line in ("RDMA write at mlx5_0 (memory of GPU 3): 11.5", "RDMA read at mlx5_0: no figure (pid 7)",
                 "Copies around ring 0,1,2: 30.5"):  # fmt: skip
        assert any(each.startswith(line) for each in lines), lines


def test_numbers_stand_below_each_other(tmp_path: Path) -> None:
    lines = tables(all_figures(measured(tmp_path, dgx1_p100() | FAULTY)))
    start = next(place for place, line in enumerate(lines) if line.startswith("P2P on, one way"))
    rows = lines[start + 2 : start + 10]
    assert len({row.ljust(WIDTH).rfind(".") for row in rows if row.rstrip()[-1].isdigit()}) == 1


def test_hardly_a_terminal_is_too_narrow_for_sixteen(tmp_path: Path) -> None:
    facts = {f"p2p {a} {b}": fact(1234.5) for a in range(16) for b in range(16) if a != b}
    lines = tables(all_figures(measured(tmp_path, facts)))
    assert max(map(len, lines)) <= WIDTH
    assert sum(line.startswith("GPU15") for line in lines) > 1  # in blocks


def test_what_is_low_is_coloured(tmp_path: Path) -> None:
    text = colorize("\n".join(tables(all_figures(measured(tmp_path, dgx1_p100() | FAULTY)))))
    for cell in ("9.20!", "wrong!", "hung!", "5.90!"):
        assert f"\x1b[1;31m{cell}\x1b[0m" in text
    assert "\x1b[1;33m15.20*\x1b[0m" in text
    assert "\x1b" not in next(line for line in text.splitlines() if line.startswith("GPU0"))


@pytest.mark.parametrize(("argv", "shown"), [([], False), (["-v"], True), (["-e"], True)])
def test_tables_are_shown_on_request(
    argv: list[str], shown: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = told(capsys, "--from", overlay(tmp_path, dgx1_p100()), *argv)
    assert ("P2P on, one way" in out) == shown
    assert "measurements under load" in out


def test_a_box_without_measurements_has_no_tables(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "--from", "dgx-1-p100", "-e", "-v")
    assert "P2P on" not in out
    assert "checks ran (state, kernel log, counter growth)." in out


def document(capsys: pytest.CaptureFixture[str], spec: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told(capsys, "--from", spec, "--format", "json"))
    assert complaints("health", found) == []
    return found


def test_json_has_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = dgx1_p100() | FAULTY
    found = document(capsys, overlay(tmp_path, facts))["measurements"]
    assert len(found) == len(facts)
    (low,) = [each for each in found if (each["kind"], each["a"], each["b"]) == ("p2p", GPUS[2], GPUS[3])]
    assert low["source"].startswith("p2pBandwidthLatencyTest on a DGX-1 with P100")
    assert {key: low[key] for key in ("value", "unit", "samples", "spread", "expected", "verdict", "how")} == {
        "value": 9.2, "unit": "GB/s", "samples": [9.1, 9.2, 9.3], "spread": 0.0217, "expected": 18.4,
        "verdict": "fail", "how": "measured",
    }  # fmt: skip
    bad = Counter((each["kind"], each["verdict"]) for each in found if each["verdict"] not in ("pass", None))
    assert bad == {("p2p", "fail"): 1, ("p2p", "warn"): 1, ("p2p", "skip"): 1, ("p2p-integrity", "fail"): 1,
                   ("latency", "fail"): 1, ("compute", "skip"): 1, ("host-to-device", "fail"): 1}  # fmt: skip


def test_json_of_an_import_without_a_box(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts: dict[str, Json] = {"p2p 0 1": fact(9.2), "p2p 1 0": fact(18.4), "host-to-device 0": fact(1)}
    found = document(capsys, overlay(tmp_path, facts, "dgx-station-v100"))
    gpus = [each["subject"] for each in found["findings"] if each["id"] == "measure.host-bandwidth"]
    assert gpus == [{"kind": "gpu", "name": "GPU0", "bdf": None, "uuid": None, "serial": None, "slot": None}]


def test_json_without_measurements(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "dgx-1-p100")["measurements"] == []


def test_metrics_are_in_base_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "--from", overlay(tmp_path, dgx1_p100() | FAULTY), "--format", "prometheus")
    families = {each.name: each for each in text_string_to_metric_families(text)}
    p2p = {(each.labels["gpu"], each.labels["peer"]): each.value for each in
           families["dgxcheck_gpu_p2p_bytes_per_second"].samples}  # fmt: skip
    assert p2p["2", "GPU3"] == 9.2e9
    assert p2p["0", "GPU1"] == 18.41e9
    assert ("6", "GPU7") not in p2p  # not published
    host = {each.labels["gpu"]: each.value for each in families["dgxcheck_gpu_host_copy_bytes_per_second"].samples}
    assert host["4"] == 5.9e9
    assert {each.value for each in families["dgxcheck_gpu_memory_copy_bytes_per_second"].samples} == {510.5e9}
    latencies = [each.value for each in families["dgxcheck_gpu_p2p_latency_seconds"].samples]
    assert latencies == [pytest.approx(9.5e-6)] * 15
    assert max(each.value for each in families["dgxcheck_gpu_p2p_wrong_words"].samples) == 3
