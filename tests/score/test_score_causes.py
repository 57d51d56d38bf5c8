"""What causes take of the score, which no verdict caps; machines whose number of GPUs cannot be checked."""

from __future__ import annotations

import json
from pathlib import Path

import measured_box
import pytest
from judging import judged
from test_score import held

from dgxcheck.assessment import assess
from dgxcheck.checks.engine.box import Box
from dgxcheck.output.health.text import score_line
from dgxcheck.package_files import table
from dgxcheck.score.box import score_of
from dgxcheck.score.expectation import WEIGHTS, Score
from dgxcheck.source.recording.load import open_source

HARMED = measured_box.of_box(open_source("dgx-1-v100-gpu-missing"))


def nothing_bad_leaves_a_full_score(fault: str) -> None:
    """Unless what it carries is in no area of the profile, or the driver did not answer, which takes nothing away."""
    document = judged(fault)[1]
    score, verdict = document["score"], document["verdict"]
    if score is None or score["total"] is None or not document["causes"]:
        return
    whole_profile = {*score["areas"]} == {*WEIGHTS}
    if whole_profile and verdict in ("warn", "fail"):
        assert score["total"] < 100
    assert score["measured"] is None or score["total"] <= score["measured"]


def scored(box: Box) -> Score:
    found = score_of(box)
    assert found is not None
    return found


def test_a_machine_known_by_its_gpus_alone_has_no_score_unless_it_has_as_many() -> None:
    short, whole = scored(held("dgx-1-v100-gpu-missing", how="gpus")), scored(held("dgx-1-v100", how="gpus"))
    assert (short.total, short.gpus_uncertain) == (None, True)
    assert (whole.total, whole.gpus_uncertain) == (100, False)
    assert not scored(HARMED).gpus_uncertain, "of the product that the firmware names a GPU is missing"


@pytest.mark.parametrize(
    ("fault", "usable", "area", "total"),
    [
        ("dgx-1-v100-gpu-lost", 0.875, None, 87.5),  # an eighth
        ("dgx-1-v100-gpu-missing", 0.875, None, 87.5),
        ("dgx-1-p100-memory-wrong", 0.875, None, 87.5),  # there, and not to be used
        ("dgx-1-v100-switch-dead", 0.75, None, 75),
        ("dgx-1-v100-root-complex", 0.5, None, 50),
        ("dgx-1-v100-mismatch", 0, None, 0),
        ("dgx-a100-fabric-manager-down", 0, None, 0),
        ("dgx-1-v100-gpu-x8", 1, ("pcie", 93.7), 99),  # half of its link, and of all its traffic
        ("dgx-a100-fabric-unhealthy", 1, ("nvlink", 88.2), 97.6),
        ("dgx-1-v100-hot", 1, ("gpu", 87.8), 97.5),
        ("dgx-1-v100-port-down", 1, ("network", 80), 97),  # a warning costs what it measurably costs
        ("dgx-1-v100-hca-x8", 1, ("network", 90), 98.5),
        ("dgx-h100-power-cap", 1, ("gpu", 72.1), 94.4),
        ("dgx-1-v100-nvlink-crc-flood", 1, ("nvlink", 96.6), 99.3),  # one of seven pairs of two GPUs
        ("dgx-1-v100-disk-missing", 1, ("host", 78.2), 98.9),
        ("dgx-1-v100-mixed-vbios", 1, ("gpu", 99.3), 99.8),  # it works, and is not as it should be
    ],
)
def test_what_carries_a_failing_cause_cannot_be_used(
    fault: str, usable: float, area: tuple[str, float] | None, total: float
) -> None:
    score = judged(fault)[1]["score"]
    assert (score["usable_gpus"], score["total"]) == (usable, total)
    if area is not None:
        assert score["areas"][area[0]] == area[1]
    else:
        assert score["total"] < 100


def test_a_failing_cause_that_is_not_scored_is_named_beside_the_score(tmp_path: Path) -> None:
    """PCIe is not scored where only the model of the GPUs is known."""
    narrow = {"text /sys/bus/pci/devices/0000:75:00.0/current_link_width": "8\n"}
    path = tmp_path / "narrow.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "vm-h100-x8", "facts": narrow}))
    found = assess(str(path))
    assert found.score is not None
    assert (found.score.total, found.score.uncounted) == (100, (1,))
    assert "; not counted: cause 1;" in score_line(found)
    hot = assess("dgx-1-v100-hot").score
    assert hot is not None
    assert hot.uncounted == ()


def test_what_a_part_carries_are_areas_of_the_score() -> None:
    words = {word for row in table("score/carried.tsv") for word in row["areas"].split()}
    assert words <= {*WEIGHTS, "all"}
