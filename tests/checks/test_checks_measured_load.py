"""PCIe links while copies run, and what is said of a box of which only figures are known."""

from __future__ import annotations

from pathlib import Path

import pytest
from measured_box import GPUS, fact, imported, measured, overlay, said

from dgxcheck.cli import main
from dgxcheck.facts.missing import Json

GENERATION, WIDTH = "pcie.generation", "pcie.width"
GPU2 = GPUS[2]


def load(how: str = "measured", **more: Json) -> dict[str, Json]:
    return {f"under-load {GPU2}": fact(None, "", **{"how": how, **more})}


@pytest.mark.parametrize(
    ("facts", "check", "due"),
    [
        ({}, GENERATION, {}),
        (load(link_gen=3, link_width=16), GENERATION, {}),
        (load(link_gen=2), GENERATION, {"GPU2": "warn"}),
        (load(link_gen=2, how="simulated"), GENERATION, {}),
        (load(link_gen=None), GENERATION, {}),
        (load(link_gen=True), GENERATION, {}),
        (load(link_width=16), WIDTH, {}),
        (load(link_width=8), WIDTH, {"GPU2": "fail"}),
        (load(link_width=8, how="simulated"), WIDTH, {}),
        (load(link_width=0), WIDTH, {}),
    ],
)
def test_the_link_under_load(facts: dict[str, Json], check: str, due: dict[str, str], tmp_path: Path) -> None:
    assert said(measured(tmp_path, facts), check) == due


def test_without_a_profile_lost_lanes_warn(tmp_path: Path) -> None:
    assert said(measured(tmp_path, load(link_width=8), profile="none"), WIDTH) == {"GPU2": "warn"}


def test_load_makes_an_idle_link_judgeable(tmp_path: Path) -> None:
    """A K80 rests at generation 1."""
    k80 = measured(tmp_path, {}, "k80-x8").gpus
    idle = said(measured(tmp_path, {}, "k80-x8"), GENERATION)
    assert set(idle.values()) == {"skip not-in-level"}
    facts = {f"under-load {gpu.bdf}": fact(None, "", link_gen=3) for gpu in k80}
    assert said(measured(tmp_path, facts, "k80-x8"), GENERATION) == {}
    facts[f"under-load {k80[1].bdf}"] = fact(None, "", link_gen=1)
    assert said(measured(tmp_path, facts, "k80-x8"), GENERATION) == {"GPU1": "warn"}


def test_figures_without_a_machine_do_not_miss_its_gpus() -> None:
    assert said(imported({"p2p 0 1": fact(9)}), "gpu.count") == {"host": "skip not-recorded"}


def test_quick_reads_no_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = overlay(tmp_path, {f"host-to-device {GPU2}": fact(1)})
    assert main(["health", "--from", spec, "-q", "-v", "--only", "measure,gpu.count"]) == 0
    out = capsys.readouterr().out
    assert out.partition("Did not run, not part of this level:\n")[2].count("  measure.") == 9
    assert main(["health", "--from", spec, "--only", "measure"]) == 2
