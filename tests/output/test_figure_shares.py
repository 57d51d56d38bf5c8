"""Figures against what is expected of them in a terminal: percentages, bars, and colours that add nothing to them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from measured_box import GPUS, dgx1_p100, fact, overlay

from dgxcheck.assessment.health import assess
from dgxcheck.cli import main
from dgxcheck.output.color import colorize
from dgxcheck.output.health.measurement_tables import WIDTH, bars, share, shares, tables
from dgxcheck.readiness.figures import Figure

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Figure, ...]:
    facts = dgx1_p100() | {f"p2p {GPUS[a]} {GPUS[b]}": fact(9.2) for a, b in ((2, 3), (3, 2))}
    facts[f"host-to-device {GPUS[5]}"] = fact(6.1)
    return assess(overlay(tmp_path_factory.mktemp("figures"), facts)).figures


def test_a_low_pair_stands_in_a_map_of_percentages(figures: tuple[Figure, ...]) -> None:
    cells = {(each.a, each.b): each for each in figures if each.row.kind == "p2p"}
    lines = shares(cells, WIDTH)
    assert lines[0] == "  of what each path should carry:"
    assert lines[2 + 2].split() == ["GPU2", "100%", "100%", "-", "50%", "-", "-", "100%", "-"]
    assert max(map(len, lines)) <= WIDTH
    good = {pair: each for pair, each in cells.items() if pair not in (("GPU2", "GPU3"), ("GPU3", "GPU2"))}
    assert shares(good, WIDTH) == []


def test_the_lowest_of_each_kind_is_a_bar(figures: tuple[Figure, ...]) -> None:
    drawn = {line.split()[0]: line for line in bars(figures, WIDTH)[1:-1]}
    assert drawn["host-to-device"].split()[1:] == ["GPU5", "6.1", "of", "12", "GB/s", "#" * 11 + "." * 11, "51%!"]
    assert drawn["p2p"].split()[1:4] == ["GPU2", "-", "GPU3"]
    assert "memory-integrity" not in drawn
    assert max(map(len, drawn.values())) <= WIDTH


def test_of_a_latency_less_is_better(figures: tuple[Figure, ...]) -> None:
    latencies = [(each, part) for each in figures if each.row.kind == "latency" and (part := share(each)) is not None]
    assert all((each.row.number <= each.expected) == (part >= 1) for each, part in latencies if each.expected)  # type: ignore[operator]


def test_colour_adds_nothing_to_the_text(figures: tuple[Figure, ...]) -> None:
    text = "\n".join(tables(figures))
    assert max(map(len, text.splitlines())) <= WIDTH
    coloured = colorize(text)
    assert COLOURS.sub("", coloured) == text
    assert "\x1b[30;42m100%" in coloured
    assert "\x1b[30;43m50%" in coloured


def test_imported_figures_are_shown_without_being_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    head = "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n"
    Path("p2p.txt").write_text(f"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n{head}     0 734.51  24.21 \n"
                               "     1  24.20 735.00 \n", encoding="utf-8")  # fmt: skip
    assert main(["import", "p2p.txt", "-o", "box.json"]) == 0
    main(["health", "--from", "box.json"])
    assert "P2P on, one way, GB/s" in capsys.readouterr().out
