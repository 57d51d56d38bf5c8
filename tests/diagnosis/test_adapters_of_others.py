"""Tools of NVIDIA are named for adapters of NVIDIA alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from changed_box import PCI, document
from hand_made import box_of
from sample import FAULTS

from dgxcheck.components.locate import is_nvidia_adapter
from dgxcheck.facts.missing import Json

HCA = "0000:0c:00.0"
MLXLINK = "mlxlink"
DOWN: dict[str, Json] = json.loads(Path(FAULTS["dgx-1-v100-port-down"]).read_text(encoding="utf-8"))["facts"]


def of_port(folder: Path, facts: dict[str, Json], log: tuple[str, ...] = ()) -> Any:
    found = document(folder, "dgx-1-v100", facts, log)["causes"]
    return next(cause for cause in found if cause["component"]["bdf"] == HCA)


@pytest.mark.parametrize(("vendor", "named"), [("0x15b3", True), ("0x14e4", False)])
def test_a_port_that_was_switched_off(vendor: str, named: bool, tmp_path: Path) -> None:
    cause = of_port(tmp_path, DOWN | {f"text {PCI}/{HCA}/vendor": f"{vendor}\n"})
    first, *_ = cause["actions"]
    assert first["action"] == "change-setting"
    assert (first["commands"] == [[MLXLINK, "-d", HCA, "--port_state", "UP"]]) is named
    assert (MLXLINK in json.dumps(cause)) is named
    assert "enable the port" in first["text"] or named


@pytest.mark.parametrize(("driver", "named"), [("mlx5_core", True), ("efa", False)])
def test_an_adapter_that_only_the_kernel_names(driver: str, named: bool, tmp_path: Path) -> None:
    gap: Json = {"missing": "unrecorded"}
    line = f"{driver} {HCA}: Failed to allocate a completion context"
    cause = of_port(tmp_path, {f"text {PCI}/{HCA}/vendor": gap}, (line,))
    assert (MLXLINK in json.dumps(cause)) is named


@pytest.mark.parametrize(("name", "known"), [("mlx5_0", True), ("bnxt_re0", False), ("efa_0", False)])
def test_an_adapter_of_which_only_the_name_is_known(name: str, known: bool) -> None:
    assert is_nvidia_adapter(box_of("dgx-1-v100"), None, name) is known


@pytest.mark.parametrize(("vendor", "named"), [("0x15b3", True), ("0x14e4", False)])
def test_firmware_that_differs(vendor: str, named: bool, tmp_path: Path) -> None:
    facts = json.loads(Path(FAULTS["dgx-1-v100-hca-firmware"]).read_text(encoding="utf-8"))["facts"]
    hcas = ("0000:05:00.0", HCA, "0000:84:00.0", "0000:8b:00.0")
    facts |= {f"text {PCI}/{bdf}/vendor": f"{vendor}\n" for bdf in hcas}
    found = document(tmp_path, "dgx-1-v100", facts)["causes"]
    cause = next(each for each in found if "hca-firmware" in each["faults"])
    assert ("mstflint" in json.dumps(cause["actions"])) is named
    assert "firmware tool of the vendor" in json.dumps(cause["actions"]) or named
