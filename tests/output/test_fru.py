"""The part in the hand: slot, serial and part number with every cause that ends at its seat, in its place or at the
vendor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checkout import ROOT
from judging import briefly, printed
from sample import FAULTS

from dgxcheck.cli import main

TO_THE_PART = {"reseat", "replace", "contact-vendor"}


@pytest.mark.of_all_faults
def test_every_such_cause_of_one_gpu_names_its_serial_in_text_and_json() -> None:
    seen = 0
    for fault in FAULTS:
        document = briefly(fault)
        _, text = printed(fault)
        for cause in document["causes"]:
            due = TO_THE_PART & {action["action"] for action in cause["actions"]}
            serial = cause["component"]["serial"]
            assert bool(due) or not cause["frus"], (fault, cause["id"])
            its = cause["component"]
            if due and its["kind"] == "gpu" and its["part"] != "power supply" and serial:
                seen += 1
                assert serial in {unit["serial"] for unit in cause["frus"]}, (fault, cause["id"])
                assert fault.startswith("k80") or f"serial {serial}" in text, (fault, cause["id"])
    assert seen > 40


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_reports_have_it_too(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["health", "--from", "dgx-1-v100-hot", "--format", form])
    assert "serial 0000000002002" in capsys.readouterr().out


def test_a_gpu_that_is_gone_has_the_serial_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    main(["health", "--from", "dgx-b200-slot-contained"])
    assert "part GPU 0000:df:00.0: serial 0000000011007\n" in capsys.readouterr().out


def test_a_module_has_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As NVML numbers the modules of a baseboard; no shipped recording has that."""
    fault = json.loads((ROOT / "fixtures/faults/dgx-h100-remap-failed.json").read_text(encoding="utf-8"))
    for number, bdf in enumerate(("0000:c3:00.0", "0000:d1:00.0"), 5):
        fault["facts"] |= {f"nvml nvmlDeviceGetModuleId {bdf}": number}
    box = tmp_path / "box.json"
    box.write_text(json.dumps(fault), encoding="utf-8")
    main(["health", "--from", str(box)])
    assert "part number 692-2G520-0200-000, module 6\n" in capsys.readouterr().out


def test_the_halves_of_a_board_are_one_part(capsys: pytest.CaptureFixture[str]) -> None:
    main(["health", "--from", "k80-x8-board-hot", "--profile", "k80-x8", "--format", "json"])
    (cause,) = (each for each in json.loads(capsys.readouterr().out)["causes"] if each["frus"])
    (unit,) = cause["frus"]
    assert len(unit["name"].split(", ")) == 2
    assert unit["slot"]
