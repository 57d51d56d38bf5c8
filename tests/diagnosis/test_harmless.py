"""What is unusual and harmless raises nothing: each box of ``fixtures/harmless`` is judged as its base is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from judging import BAD, judged
from sample import swept
from schemas import complaints
from together import for_each

HARMLESS = sorted((ROOT / "fixtures" / "harmless").glob("*.json"))


def overlay(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def total(document: dict[str, Any]) -> float | None:
    """The score; None for a box without a reference machine."""
    return None if document["score"] is None else float(document["score"]["total"])


@pytest.mark.parametrize("path", swept(HARMLESS, 4), ids=lambda path: path.stem)
def test_an_oddity_changes_neither_verdict_nor_score_nor_causes(path: Path) -> None:
    (code, odd), (base_code, base) = judged(str(path)), judged(overlay(path)["base"])
    assert [each["key"] for each in odd["findings"] if each["status"] in BAD] == []
    assert (code, odd["verdict"], total(odd)) == (base_code, base["verdict"], total(base))
    assert odd["causes"] == base["causes"] == []


@for_each("path", HARMLESS)
def test_an_oddity_is_an_overlay_that_says_what_is_harmless(path: Path) -> None:
    document = overlay(path)
    assert complaints("overlay", document) == []
    assert path.stem.startswith(f"{document['base']}-")
    assert document["sources"]
    assert document["expect"]["findings"] == []
    assert document["expect"]["component"].startswith("none: ")


@pytest.mark.parametrize(("device", "due"), [("0x1fb0", []), ("0x2bb5", ["GPU@0000:c1:00.0"])])
def test_a_gpu_that_the_driver_does_not_take_is_for_a_display_where_it_is_the_oldest(
    device: str, due: list[str], tmp_path: Path
) -> None:
    """One that is newer than the others was bought to compute, and waits for another release."""
    overlay = json.loads((HARMLESS[0].parent / "dgx-station-a100-old-display.json").read_text(encoding="utf-8"))
    overlay["facts"]["text /sys/bus/pci/devices/0000:c1:00.0/device"] = f"{device}\n"
    path = tmp_path / "newer.json"
    path.write_text(json.dumps(overlay), encoding="utf-8")
    found = [each for each in judged(str(path))[1]["findings"] if each["id"] == "kernel.gpu-start"]
    assert [each["subject"]["name"] for each in found if each["status"] == "fail"] == due
