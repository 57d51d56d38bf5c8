"""Which GPUs reach each other directly: ``topo --peers`` on healthy boxes and where one thing keeps a pair from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from measured_box import fact, overlay, words
from sample import FAULTS

from dgxcheck.cli import main
from dgxcheck.facts.missing import Json

K80 = [f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a")]


def peers(spec: str, capsys: pytest.CaptureFixture[str]) -> dict[tuple[str, str], dict[str, Any]]:
    assert main(["topo", "--peers", "--format", "json", "--from", spec]) in (0, 3)
    return {(each["a"], each["b"]): each for each in json.loads(capsys.readouterr().out)["peers"]}


def changed(base: str, folder: Path, facts: dict[str, Json], add: dict[str, Json] | None = None) -> str:
    document: dict[str, Any] = {"schema": "dgxcheck/overlay/1", "base": base}
    if base in FAULTS:
        document = json.loads(Path(FAULTS[base]).read_text(encoding="utf-8"))
    for name, more in (("facts", facts), ("add", add or {})):
        document[name] = document.get(name, {}) | more
    path = folder / "box.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("box", "direct", "host"),
    [("dgx-1-p100", 16, 12), ("dgx-1-v100", 16, 12), ("dgx-a100", 28, 0), ("k80-x8", 12, 16)],
)
def test_a_healthy_box(box: str, direct: int, host: int, capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = [each["verdict"] for each in peers(box, capsys).values()]
    assert (verdicts.count("direct"), verdicts.count("through the host")) == (direct, host)
    assert len(verdicts) == 28


def test_a_port_that_redirects_stops_one_pair_and_slows_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    found = peers("k80-x8-p2p-acs", capsys)
    assert {pair: each["verdict"] for pair, each in found.items() if each["verdict"] in ("refused", "slow")} == {
        ("GPU2", "GPU3"): "refused", ("GPU0", "GPU2"): "slow", ("GPU1", "GPU2"): "slow",
    }  # fmt: skip
    for pair in (("GPU2", "GPU3"), ("GPU0", "GPU2")):
        bad = [each for each in found[pair]["preconditions"] if each["state"] in ("no", "slow")]
        assert all("setpci -s 0000:09:08.0 ECAP_ACS+0x6.w=0:3c" in each["remedy"] for each in bad)


@pytest.mark.parametrize(("wrong", "due"), [(0, "direct"), (5, "refused")])
def test_data_that_arrive_wrong_are_no_access(
    wrong: int, due: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = {f"p2p-integrity {K80[a]} {K80[b]}": words(wrong) for a, b in ((0, 1), (1, 0))}
    assert peers(overlay(tmp_path, facts, "k80-x8"), capsys)["GPU0", "GPU1"]["verdict"] == due


def test_an_iommu_that_translates_goes_before_acs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts: dict[str, Json] = {
        f"link /sys/bus/pci/devices/{gpu}/iommu_group": f"../../../kernel/iommu_groups/{number}"
        for number, gpu in enumerate(K80)
    }
    types: dict[str, Json] = {f"text /sys/kernel/iommu_groups/{number}/type": "DMA\n" for number in range(8)}
    found = peers(changed("k80-x8-p2p-acs", tmp_path, facts, types), capsys)
    (path,) = [each for each in found["GPU0", "GPU2"]["preconditions"] if each["check"] == "p2p.path"]
    assert "iommu=pt" in path["remedy"]
    assert "setpci" not in path["remedy"]


def test_without_root_a_pair_that_pcie_joins_cannot_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ports = ("03:08.0", "03:10.0", "05:08.0", "05:10.0", "09:08.0", "09:10.0")
    denied: dict[str, Json] = {
        f"data /sys/bus/pci/devices/0000:{port}/config": {"missing": "denied", "detail": "Permission denied"}
        for port in ports
    }
    shut = changed("k80-x8", tmp_path, denied)
    pair = peers(shut, capsys)["GPU0", "GPU1"]
    assert pair["verdict"] == "cannot tell"
    assert any("run dgxcheck as root" in each["message"] for each in pair["preconditions"])
    assert main(["topo", "--peers", "--from", shut]) == 3
    fast: dict[str, Json] = {f"measure p2p-both {K80[0]} {K80[1]}": fact(17.4)}
    capsys.readouterr()
    assert peers(changed("k80-x8", tmp_path, denied, fast), capsys)["GPU0", "GPU1"]["verdict"] == "direct"


def test_a_guest_does_not_see_what_is_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guest: dict[str, Json] = {"text /sys/hypervisor/type": "xen\n"}
    assert peers(changed("k80-x8", tmp_path, guest), capsys)["GPU0", "GPU1"]["verdict"] == "cannot tell"


@pytest.mark.parametrize("box", ["dgx-1-v100-no-nvml", "dgx-1-v100-gpu-lost", "dgx-1-v100-hypervisor"])
def test_a_sick_or_odd_box_is_answered(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--peers", "--from", box]) in (0, 3)
    assert capsys.readouterr().out


def test_a_fabric_that_is_down_names_the_command_that_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--peers", "--from", "dgx-a100-fabric-manager-down"]) == 3
    assert "; dgxcheck health shows what to do\n" in capsys.readouterr().out
