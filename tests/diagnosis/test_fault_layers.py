"""A fault changes every layer that it touches: the layers agree, and no change of an overlay is without effect."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from judging import judged
from layers import disagreements
from sample import BOXES, BY_NAME, FAULTS, FOUND_BY, swept

from dgxcheck.facts.missing import BadInput
from dgxcheck.source.recording.load import Recording, load, open_source, recording
from dgxcheck.source.recording.overlay import applied


@lru_cache(maxsize=4)
def loaded(name: str) -> Recording:
    path = BY_NAME[name]
    document = load(path)
    return applied(document, path, loaded) if "base" in document else recording(document, path)


@pytest.mark.parametrize("name", BOXES)
def test_the_layers_of_a_box_agree(name: str) -> None:
    assert disagreements(loaded(name).lines) == []


def the_layers_of_a_fault_agree(name: str) -> None:
    """But for what the fault itself is, which the overlay names under ``disagrees``."""
    expect = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))["expect"]
    assert disagreements(loaded(name).lines) == sorted(expect.get("disagrees", []))


def told(document: dict[str, Any]) -> list[Any]:
    found = [
        {key: each[key] for key in ("key", "status", "reason", "message", "evidence")} for each in document["findings"]
    ]
    return [found, document["score"], document["profile"]]


def layer(key: str) -> str:
    """What a fact is of, whichever device: ``text current_link_width``, ``nvml nvmlDeviceGetMinorNumber``, ``kmsg``."""
    kind, _, rest = key.partition(" ")
    if kind in ("nvml", "measure"):
        return f"{kind} {rest.split()[0]}"
    return kind if kind == "kmsg" else f"{kind} {rest.rpartition('/')[2]}"


def of_line(line: str) -> str:
    """The same of a line of a later moment."""
    return layer(line) if line.startswith(("nvml ", "kmsg")) else f"files {line.rpartition('/')[2]}"


def without_each(overlay: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The overlay without one of the layers that it changes, by that layer."""
    ways: dict[str, dict[str, Any]] = {}
    for member in ("facts", "add"):
        for key in overlay.get(member, {}):
            del ways.setdefault(layer(key), deepcopy(overlay))[member][key]
    for subject in overlay.get("drop", []):
        ways.setdefault("drop", deepcopy(overlay))["drop"].remove(subject)
    for number, moment in enumerate(overlay.get("later", [])):
        for line in moment["facts"]:
            del ways.setdefault(f"later {of_line(line)}", deepcopy(overlay))["later"][number]["facts"][line]
    return ways


_MOST_BYTES = 4000
"""Of an overlay in the short run: each layer is one judgement more."""
_SHORT = [name for name in [*FOUND_BY.values()][::10] if Path(FAULTS[name]).stat().st_size < _MOST_BYTES]


@pytest.mark.parametrize("name", swept(FAULTS, _SHORT))
def test_every_layer_of_a_fault_matters(name: str, tmp_path: Path) -> None:
    """A layer without which ``health`` says the same is named under ``unseen``: it is there to agree with the others.

    With ``DGXCHECK_UPDATE_GOLDEN`` it is written there.
    """
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    whole = told(judged(name)[1])
    path = tmp_path / "fault.json"
    unseen = []
    for key, changed in without_each(overlay).items():
        path.write_text(json.dumps(changed), encoding="utf-8")
        try:
            open_source(str(path))
        except BadInput:
            continue  # the rest of the overlay needs it
        if told(judged(str(path))[1]) == whole:
            unseen.append(key)
    if os.environ.get("DGXCHECK_UPDATE_GOLDEN"):
        named = {"unseen": sorted(unseen)} if unseen else {}
        overlay["expect"] = {key: value for key, value in overlay["expect"].items() if key != "unseen"} | named
        Path(FAULTS[name]).write_text(json.dumps(overlay, indent=1) + "\n", encoding="utf-8")
    assert sorted(unseen) == sorted(overlay["expect"].get("unseen", []))
