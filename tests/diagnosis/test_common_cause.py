"""Devices that have the same fault, or that failed in the same moment, point to what they share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from wired import wired

from dgxcheck.assessment import assess
from dgxcheck.facts.missing import Json

LOST: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
V100 = "dgx-1-v100"
GPUS = wired(V100).gpus
SUPPLY = "host/host/power supply"


def xid_79(bdf: str, seconds: float) -> str:
    return f"{seconds:.6f};NVRM: Xid (PCI:{bdf[:-2]}): 79, GPU has fallen off the bus."


def causes(folder: Path, log: list[str], facts: Mapping[str, Json], base: str = V100) -> dict[str, int]:
    """By component the number of findings that it explains."""
    path = folder / "case.json"
    lines = {f"kmsg {number}": line for number, line in enumerate(log, 40)}
    document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": dict(facts), "add": lines}
    path.write_text(json.dumps(document), encoding="utf-8")
    found = assess(str(path))
    assert found.unexplained == ()
    return {"/".join(filter(None, cause.component.key)): len(cause.explains) for cause in found.causes}


def lost(*gpus: int) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetHandleByIndex {gpu}": LOST for gpu in gpus}


@pytest.mark.parametrize(
    ("gpus", "due"),
    [
        ((2, 3), "switch/0000:08:00.0"),
        ((0, 7), SUPPLY), ((0, 2, 5), SUPPLY), ((4, 5, 6, 7), "host-bridge/pci0000:80"),
        ((4, 5, 6), SUPPLY),
    ],
    ids=["below a switch", "of two sockets", "of both sockets", "of one socket", "of a socket, but one works"],
)  # fmt: skip
def test_gpus_that_go_in_the_same_moment_share_what_failed(gpus: tuple[int, ...], due: str, tmp_path: Path) -> None:
    log = [xid_79(GPUS[gpu], 3600 + place * 0.7) for place, gpu in enumerate(gpus)]
    assert causes(tmp_path, log, lost(*gpus)) == {due: 2 * len(gpus)}


def test_gpus_that_go_at_different_times_are_causes_of_their_own(tmp_path: Path) -> None:
    found = causes(tmp_path, [xid_79(GPUS[0], 3600), xid_79(GPUS[7], 3700)], lost(0, 7))
    assert found == {f"gpu/{GPUS[0]}": 2, f"gpu/{GPUS[7]}": 2}


def test_an_adapter_that_stops_with_the_gpus_beside_it_belongs_to_their_switch(tmp_path: Path) -> None:
    hca = "3601.0;mlx5_core 0000:0c:00.0: poll_health:800:(pid 0): device's health compromised - reached miss count"
    log = [xid_79(GPUS[2], 3600), xid_79(GPUS[3], 3600.2), hca]
    assert causes(tmp_path, log, lost(2, 3)) == {"switch/0000:08:00.0": 5}
    assert causes(tmp_path, [hca], lost(2, 3)) == {"switch/0000:08:00.0": 3}  # when the GPUs stopped is not known


def test_several_nvswitches_at_once_are_the_fabric(tmp_path: Path) -> None:
    def sxid(bdf: str, seconds: float) -> str:
        return f"{seconds};nvidia-nvswitch1: SXid (PCI:{bdf}): 20034, Fatal, Link 28 LTSSM Fault Up"

    log = [sxid("0000:c4:00.0", 3600), sxid("0000:c6:00.0", 3600.5), sxid("0000:c8:00.0", 3601)]
    assert causes(tmp_path, log, {}, "dgx-a100") == {"host/host/NVSwitches": 3}
    apart = [sxid("0000:c4:00.0", 3600), sxid("0000:c6:00.0", 7200)]
    assert causes(tmp_path, apart, {}, "dgx-a100") == {"nvswitch/0000:c4:00.0": 1, "nvswitch/0000:c6:00.0": 1}


def hot(*gpus: str) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetTemperature {gpu} 0": 88 for gpu in gpus}


@pytest.mark.parametrize(
    ("base", "gpus", "due"),
    [
        (V100, (2, 3), "host/host/cooling"), (V100, (4, 5, 6, 7), "host/host/cooling"),
        (V100, (2,), "gpu/0000:0a:00.0/cooling"),
    ],
)  # fmt: skip
def test_gpus_beside_each_other_that_are_hot_share_their_air(
    base: str, gpus: tuple[int, ...], due: str, tmp_path: Path
) -> None:
    found = causes(tmp_path, [], hot(*(wired(base).gpus[gpu] for gpu in gpus)), base)
    assert found.keys() == {due}


def test_hot_gpus_of_different_switches_are_causes_of_their_own(tmp_path: Path) -> None:
    assert len(causes(tmp_path, [], hot(GPUS[0], GPUS[5]))) == 2


@pytest.mark.parametrize(
    ("down", "due"),
    [((0, 1, 2), {"fabric/InfiniBand fabric"}), ((1,), {"port/0000:0c:00.0/1"})],
    ids=["three of four", "one of four"],
)
def test_most_ports_that_are_down_lead_to_one_switch(down: tuple[int, ...], due: set[str], tmp_path: Path) -> None:
    path = "text /sys/class/infiniband/mlx5_{}/ports/1/{}"
    states = {"state": "1: DOWN\n", "phys_state": "2: Polling\n"}
    facts: dict[str, Json] = {path.format(hca, name): text for hca in down for name, text in states.items()}
    assert causes(tmp_path, [], facts).keys() == due
