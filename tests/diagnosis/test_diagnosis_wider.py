"""What all GPUs, all below a switch or all ports have in common is one cause; some of them are several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample import FAULTS, swept
from test_diagnosis import PORTS, V100, components, health

PORT_OF = dict(zip(V100, ("04:10", "04:14", "09:08", "09:10", "83:10", "83:14", "88:08", "88:10"), strict=True))
ALL = range(8)
OF_ALL = {
    "persistence-off": ("gpus", "GPUs", "persistence mode"),
    "ecc-off": ("gpus", "GPUs", "ECC mode"),
    "application-clock": ("gpus", "GPUs", "clock setting"),
    "power-cap": ("gpus", "GPUs", "power limit"),
    "prohibited": ("gpus", "GPUs", "compute mode"),
    "hot": ("host", "host", "cooling"),
    "power-brake": ("host", "host", "power supply"),
    "bar1-small": ("host", "host", "large BARs"),
    "gpu-x8": ("host", "host", "PCIe setting"),
    "slot-gen2": ("host", "host", "PCIe setting"),
}


def at(fault: str, gpus: range | tuple[int, ...], folder: Path) -> str:
    """The fault of GPU2 at each of these, in one overlay."""
    text = Path(FAULTS[f"dgx-1-v100-{fault}"]).read_text(encoding="utf-8")
    document = json.loads(text) | {"facts": {}, "add": {}}
    later: dict[float, dict[str, Any]] = {}
    for gpu, bus in ((gpu, V100[gpu]) for gpu in gpus):
        moved = text.replace("0000:0a:00", f"0000:{bus}:00").replace(f"0000:{PORTS[2]}.", f"0000:{PORT_OF[bus]}.")
        for start in ("0x0000000083", "0x000038180", "0x0000381c0"):  # no two devices have one address
            moved = moved.replace(start, f"{start[:-1]}{gpu}")
        here = json.loads(moved)
        for name in ("facts", "add"):
            document[name] |= here.get(name, {})
        for point in here.get("later", []):
            later.setdefault(point["at_s"], {}).update(point["facts"])
    if later:
        document["later"] = [{"at_s": at_s, "facts": facts} for at_s, facts in later.items()]
    path = folder / "several.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("fault", swept(OF_ALL, 4))
def test_what_all_gpus_have_is_one_cause(fault: str, tmp_path: Path) -> None:
    document = health(at(fault, ALL, tmp_path))
    assert components(document) == {OF_ALL[fault]}
    assert len(document["causes"][0]["explains"]) >= 8


def test_a_power_brake_in_several_places_is_the_power_supply(tmp_path: Path) -> None:
    """The power supplies assert it: GPUs that share nothing else do not fail together."""
    assert components(health(at("power-brake", (2, 5), tmp_path))) == {OF_ALL["power-brake"]}


@pytest.mark.parametrize("fault", swept(sorted(OF_ALL.keys() - {"power-brake"}), 4))
def test_what_some_gpus_have_is_one_cause_each(fault: str, tmp_path: Path) -> None:
    """But a setting, which one command sets in both."""
    document = health(at(fault, (2, 5), tmp_path))
    found = {cause["component"]["bdf"] or cause["component"]["name"] for cause in document["causes"]}
    assert found == ({"GPU2, GPU5"} if OF_ALL[fault][0] == "gpus" else {"0000:0a:00.0", "0000:86:00.0"})


@pytest.mark.parametrize("fault", ["gpu-x8", "slot-gen2", "pcie-replays"])
def test_links_that_are_all_bad_below_a_switch_are_the_switch(fault: str, tmp_path: Path) -> None:
    (cause,) = health(at(fault, (2, 3), tmp_path))["causes"]
    assert (cause["component"]["kind"], cause["component"]["bdf"]) == ("switch", "0000:08:00.0")
    assert cause["component"]["shared_by"] == ["GPU2", "GPU3", "mlx5_1"]


def test_a_link_beside_them_that_is_good_clears_the_switch(tmp_path: Path) -> None:
    causes = health(at("gpu-aer-fatal", (2, 3), tmp_path))["causes"]  # the HCA's has no errors
    assert [cause["component"]["kind"] for cause in causes] == ["link", "link"]


def test_ports_that_all_lack_a_subnet_manager_lack_the_same(tmp_path: Path) -> None:
    text = Path(FAULTS["dgx-1-v100-port-init"]).read_text(encoding="utf-8")
    document = json.loads(text)
    document["facts"] = {
        key: value
        for number in range(4)
        for key, value in json.loads(text.replace("mlx5_1", f"mlx5_{number}"))["facts"].items()
    }
    path = tmp_path / "init.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    (cause,) = health(str(path))["causes"]
    assert (cause["component"]["kind"], cause["action"]["action"]) == ("subnet-manager", "inspect")
    assert len(cause["explains"]) == 4


def test_what_nobody_could_read_does_not_count_as_bad(tmp_path: Path) -> None:
    """Two ports have no subnet manager, and what the other two say makes no sense: that is no fault of all four."""
    text = Path(FAULTS["dgx-1-v100-port-init"]).read_text(encoding="utf-8")
    facts: dict[str, Any] = {}
    for number in range(4):
        facts |= json.loads(text.replace("mlx5_1", f"mlx5_{number}"))["facts"]
    facts |= {f"text /sys/class/infiniband/mlx5_{number}/ports/1/state": "many\n" for number in (2, 3)}
    path = tmp_path / "unread.json"
    path.write_text(json.dumps(json.loads(text) | {"facts": facts}), encoding="utf-8")
    found = health(str(path))
    assert {cause["id"] for cause in found["causes"]} == {"subnet-manager/0000:05:00.0", "subnet-manager/0000:0c:00.0"}
    assert {key.split("/")[1] for key in found["unexplained"]} == {"0000:84:00.0", "0000:8b:00.0"}
