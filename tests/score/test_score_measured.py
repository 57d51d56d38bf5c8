"""Measurements in the score: the share of the reference that is reached, and no say for what is simulated."""

from __future__ import annotations

from pathlib import Path

import pytest
from measured_box import GPUS, dgx1_p100, fact, measured, overlay, words

from dgxcheck.cli import main
from dgxcheck.facts.missing import Json
from dgxcheck.profiles.library import by_name
from dgxcheck.profiles.model import MEASURED_KEYS
from dgxcheck.score.box import score_of
from dgxcheck.score.expectation import Score

AB, BA = f"{GPUS[2]} {GPUS[3]}", f"{GPUS[3]} {GPUS[2]}"
HUNG: Json = {"missing": "timeout", "detail": "x"}
BUSY: Json = {"skipped": "busy", "detail": "x"}


def scored(folder: Path, facts: dict[str, Json], profile: str = "auto") -> Score:
    found = score_of(measured(folder, facts, profile=profile))
    assert found is not None
    return found


def test_what_could_not_be_measured_is_not_covered(tmp_path: Path) -> None:
    """Without a CUDA driver nothing is known of the copies that the level extended judges."""
    nothing = scored(tmp_path, {"cuda all": {"skipped": "not-supported", "detail": "no CUDA driver"}})
    assert nothing.coverage < 1
    assert {each.id for each in nothing.expectations if each.share is None} == {
        "pcie.measured-host-to-device", "pcie.measured-device-to-host", "memory.measured-device-copy",
    }  # fmt: skip


def shares(found: Score) -> dict[tuple[str, str], float | None]:
    """What is less than whole."""
    rows = [each for each in found.expectations if ".measured-" in each.id and each.share != 1]
    return {(each.id, each.subject): None if each.share is None else round(each.share, 2) for each in rows}


def test_a_good_box_keeps_its_score(tmp_path: Path) -> None:
    found = scored(tmp_path, dgx1_p100())
    assert (found.total, found.coverage) == (100, 1)
    counts = [each.id for each in found.expectations if ".measured-" in each.id]
    assert {id: counts.count(id) for id in counts} == {
        "pcie.measured-host-to-device": 8, "pcie.measured-device-to-host": 8, "memory.measured-device-copy": 8,
        "nvlink.measured-p2p": 16, "integrity.measured-memory": 8, "integrity.measured-p2p": 28,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "less"),
    [
        ({f"p2p {AB}": fact(17.0)}, {}),
        ({f"p2p {AB}": fact(9.2)}, {("nvlink.measured-p2p", "GPU2-GPU3"): 0.5}),
        ({f"p2p {AB}": HUNG}, {("nvlink.measured-p2p", "GPU2-GPU3"): 0}),
        ({f"p2p {AB}": BUSY}, {("nvlink.measured-p2p", "GPU2-GPU3"): None}),
        ({f"p2p {AB}": {"failed": "integrity", "detail": "x"}}, {("nvlink.measured-p2p", "GPU2-GPU3"): 0}),
        ({f"p2p {AB}": {"failed": "OUT_OF_MEMORY", "code": 2}}, {("nvlink.measured-p2p", "GPU2-GPU3"): None}),
        ({f"host-to-device {GPUS[1]}": fact(6)}, {("pcie.measured-host-to-device", "GPU1"): 0.5}),
        ({f"device-copy {GPUS[1]}": fact(250)}, {("memory.measured-device-copy", "GPU1"): 0.5}),
        ({f"memory-integrity {GPUS[1]}": words(1)}, {("integrity.measured-memory", "GPU1"): 0}),
        ({f"p2p-integrity {BA}": words(1)}, {("integrity.measured-p2p", "GPU2-GPU3"): 0}),
        ({f"p2p-integrity {BA}": words(timed_out=True)}, {("integrity.measured-p2p", "GPU2-GPU3"): 0}),
    ],
)
def test_shares(facts: dict[str, Json], less: dict[tuple[str, str], float | None], tmp_path: Path) -> None:
    found = scored(tmp_path, dgx1_p100() | facts)
    assert shares(found) == less
    assert (found.total == 100) == (not any(share is not None for share in less.values()))
    assert (found.coverage == 1) == (None not in less.values())


def test_what_is_simulated_never_reaches_the_score(tmp_path: Path) -> None:
    facts: dict[str, Json] = {}
    for key, each in dgx1_p100().items():
        assert isinstance(each, dict)
        low = {"value": 0.1} if each["unit"] == "GB/s" else {}
        facts[key] = {**each, **low, "how": "simulated"}
    found = scored(tmp_path, facts)
    assert not [each for each in found.expectations if ".measured-" in each.id]
    assert found.total == 100


def test_what_was_not_measured_is_not_expected(tmp_path: Path) -> None:
    found = scored(tmp_path, {f"host-to-device {GPUS[1]}": fact(12.1), "p2p 0 1": fact(1)})
    assert [each.id for each in found.expectations if ".measured-" in each.id] == ["pcie.measured-host-to-device"]
    assert found.coverage == 1


def test_a_profile_of_a_measured_box_has_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, file = overlay(tmp_path, dgx1_p100() | {f"p2p {AB}": fact(18.2)}), tmp_path / "rack7.toml"
    assert main(["profiles", "--new", "rack7", "--from", spec, "-o", str(file)]) == 0
    made = by_name(str(file))
    assert {key: each.value for key, each in made.numbers.items() if key in MEASURED_KEYS} == {
        "pcie.host-to-device": 12.2, "pcie.device-to-host": 12.9, "nvlink.p2p-nv1": 18.2, "nvlink.p2p-both-nv1": 36.8,
        "pcie.p2p-off-pix": 9.4, "pcie.p2p-off-phb": 10.4, "pcie.p2p-off-soc": 10.4, "pcie.p2p-off-both-pix": 9.4,
        "pcie.p2p-off-both-phb": 17.4, "pcie.p2p-off-both-soc": 17.4,
    }  # fmt: skip
    assert [board.numbers["device_copy"].value for board in made.own_boards.values()] == [510.5]
    assert main(["health", "--from", spec, "--profile", str(file), "--only", "measure"]) == 0
    assert "Score: 100 of 100" in capsys.readouterr().out
