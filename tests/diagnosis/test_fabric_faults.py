"""Healthy boxes held to reference machines that are set up by hand, and faults where there is no reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from changed_box import causes
from fabric_box import MINE, PROFILES, box
from fabric_box import bad as bad_in
from judging import BAD, judged, of_text, without_reference
from sample import FAULTS, FOUND_BY, expected, swept

from dgxcheck.checks.engine.box import DEFAULTS
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.missing import Json
from dgxcheck.output.health.explanation import rule

INSTEAD = {"gdr.path", *(check.id for check in CHECKS if check.last)}
"""Without a reference gdr.path judges the place of an HCA, and siblings show what a check with one had reported."""


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("held", [True, False])
def test_a_healthy_box_has_no_finding(name: str, held: bool) -> None:
    assert bad_in(box(name, name if held else "")) == set()


@pytest.mark.parametrize("name", swept(FAULTS, [*FOUND_BY.values()][2::16]))
def test_without_a_reference_nothing_else_is_found(name: str) -> None:
    """A reference adds findings and makes some severe; what stands in for one that is gone is the only other."""
    due = {(each["id"], each["bdf"]) for each in expected(name)["findings"]}
    bad = [each for each in without_reference(name)["findings"] if each["status"] in BAD]
    found = {(each["id"], each["subject"]["bdf"]) for each in bad}
    assert {check for check, _ in found - due} <= INSTEAD
    assert found <= due or due - found


def test_rules_name_their_thresholds() -> None:
    for check in CHECKS:
        if check.id.partition(".")[0] in MINE:
            assert "{" not in rule(check, DEFAULTS)


FAILED: dict[str, Json] = {
    "cliqueId": 0, "clusterUuid": "00000000-0000-0000-0000-000000000000", "healthMask": 0, "healthSummary": 0,
    "state": 3, "status": 999,
}  # fmt: skip


@pytest.mark.parametrize(("base", "bdf", "due"), [
    ("dgx-h200", "0000:1b:00.0", ["restart-service"]), ("vm-h100-x8", "0000:53:00.0", ["contact-host"]),
])  # fmt: skip
def test_the_fabric_manager_of_a_guest_is_its_hosts(base: str, bdf: str, due: list[str], tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, base, {f"nvml nvmlDeviceGetGpuFabricInfo {bdf}": FAILED})
    assert (cause["id"], cause["faults"]) == (f"gpu/{bdf}/fabric", ["fabric-failed"])
    steps = [each["action"] for each in cause["actions"]]
    assert [step for step in steps if step in ("restart-service", "contact-host")] == due
    assert {"inspect", "reset-gpu", "reboot"} < {*steps}


def test_a_baseboard_of_which_nothing_is_on_the_bus(tmp_path: Path) -> None:
    gpus = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
    switches = [f"0000:0{number}:00.0" for number in (5, 6, 7, 8)]
    gone = {"schema": "dgxcheck/overlay/1", "base": "dgx-h100", "drop": gpus + switches,
            "facts": {"nvml nvmlInit": {"missing": "absent", "code": 9}}}  # fmt: skip
    path = tmp_path / "without-board.json"
    path.write_text(json.dumps(gone), encoding="utf-8")
    (cause,) = judged(str(path))[1]["causes"]
    assert (cause["id"], cause["faults"]) == ("host/host/GPU baseboard", ["gpu-missing", "nvswitch-missing"])
    assert [each["action"] for each in cause["actions"]] == ["inspect", "drain", "power-cycle", "contact-vendor"]
    assert "power of the GPU baseboard" in cause["actions"][0]["text"]


@pytest.mark.parametrize(("model", "mode", "due"), [
    ("GB200", "None", "inspect"), ("H100 80GB HBM3", "None", "restart-service"),
    ("H100 80GB HBM3", "Pass-Through", "contact-host"),
])  # fmt: skip
def test_routes_that_all_gpus_of_a_text_lack_are_the_nvswitches(
    model: str, mode: str, due: str, tmp_path: Path
) -> None:
    """They are registered, so that the driver was not told to leave the NVLinks off."""
    text = "==============NVSMI LOG==============\n\nAttached GPUs : 4\n" + "".join(
        f"GPU 00000000:{bus}:00.0\n    Product Name : NVIDIA {model}\n    GPU Virtualization Mode\n"
        f"        Virtualization Mode : {mode}\n    Fabric\n        State : Completed\n"
        "        Status : Success\n        Health\n            Summary : Unhealthy\n"
        "            Route Unhealthy : True\n"
        for bus in (18, 29, 43, 51)
    )
    (cause,) = of_text(text, tmp_path)[1]["causes"]
    assert (cause["component"]["part"], cause["faults"]) == ("NVSwitches", ["fabric-unhealthy"])
    steps = {each["action"] for each in cause["actions"] if each["condition"] is None}
    assert due in steps
    assert "reboot" not in steps
