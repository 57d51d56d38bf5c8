"""A fault changes every layer that it touches: the layers agree, and no change of an overlay is without effect."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from layers import disagreements
from test_health_faults import FAULTS, judged

from dgxcheck.reading import BadInput
from dgxcheck.source.library import open_source, shipped
from dgxcheck.source.loader import Recording, load, recording
from dgxcheck.source.overlay import applied

BY_NAME = dict(shipped())
BOXES = sorted(BY_NAME.keys() - FAULTS.keys())


def loaded(name: str) -> Recording:
    path = BY_NAME[name]
    document = load(path)
    return applied(document, path, loaded) if "base" in document else recording(document, path)


@pytest.mark.parametrize("name", BOXES)
def test_the_layers_of_a_box_agree(name: str) -> None:
    assert disagreements(loaded(name).lines) == []


@pytest.mark.parametrize("name", FAULTS)
def test_the_layers_of_a_fault_agree(name: str) -> None:
    """But for what the fault itself is, which the overlay names under ``disagrees``."""
    expect = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))["expect"]
    assert disagreements(loaded(name).lines) == sorted(expect.get("disagrees", []))


def told(document: dict[str, Any]) -> list[Any]:
    found = [
        {key: each[key] for key in ("key", "status", "reason", "message", "evidence")} for each in document["findings"]
    ]
    return [found, document["score"], document["profile"]]


def without_each(overlay: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The overlay without one of its changes, by that change."""
    ways: dict[str, dict[str, Any]] = {}
    for member in ("facts", "add"):
        for key in overlay.get(member, {}):
            ways[key] = deepcopy(overlay)
            del ways[key][member][key]
    for subject in overlay.get("drop", []):
        ways[subject] = deepcopy(overlay)
        ways[subject]["drop"].remove(subject)
    for number, moment in enumerate(overlay.get("later", [])):
        for line, group in moment["facts"].items():
            key = f"later {line}"
            ways[key] = deepcopy(overlay)
            del ways[key]["later"][number]["facts"][line]
            assert group, key
    return ways


@pytest.mark.parametrize("name", FAULTS)
def test_every_change_of_a_fault_matters(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A change without which ``health`` says the same is named under ``unseen``: layers that are there to agree.

    With ``DGXCHECK_UPDATE_GOLDEN`` it is written there.
    """
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    whole = told(judged(capsys, name)[1])
    path = tmp_path / "fault.json"
    unseen = []
    for key, changed in without_each(overlay).items():
        path.write_text(json.dumps(changed), encoding="utf-8")
        try:
            open_source(str(path))
        except BadInput:
            continue  # the rest of the overlay needs it
        if told(judged(capsys, str(path))[1]) == whole:
            unseen.append(key)
    if os.environ.get("DGXCHECK_UPDATE_GOLDEN"):
        named = {"unseen": sorted(unseen)} if unseen else {}
        overlay["expect"] = {key: value for key, value in overlay["expect"].items() if key != "unseen"} | named
        Path(FAULTS[name]).write_text(json.dumps(overlay, indent=1) + "\n", encoding="utf-8")
    assert sorted(unseen) == sorted(overlay["expect"].get("unseen", []))
