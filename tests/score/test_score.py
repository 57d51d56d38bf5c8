"""The score: the share of what is expected, lost hardware counts nothing, unread is not covered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import measured_box
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample import swept
from test_health_checks import GPU2, NVML, box, changed

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.box import Box
from dgxcheck.cli import main
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.profiles.library import boards_for, by_name, names
from dgxcheck.profiles.model import Number, SelectedProfile, Selection
from dgxcheck.score.box import score_of
from dgxcheck.score.expectation import WEIGHTS, Area, Expectation, Score, score
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.load import shipped
from dgxcheck.source.recording.replay import RecordedSource

ONE_GPU = ("h100", "h200")
BOXES = [name for name, path in shipped() if "faults" not in Path(path).parts]
NO_FAULT = [
    name
    for name, path in shipped()
    if name not in BOXES and not json.loads(Path(path).read_text(encoding="utf-8"))["expect"]["findings"]
]
GONE = Missing(Gap.UNRECORDED, "x")
DOWN = {"state": "1: DOWN\n", "phys_state": "2: Polling\n", "lid": "0x0\n"}
"""A port without a cable; one that was up keeps its LID."""
UNUSED = DOWN | {"counters/port_rcv_data": "0\n"}
"""And that never received anything."""


def due(area: Area, measured: int | float | Missing, expected: float = 1, enough: bool = False) -> Expectation:
    return Expectation(area=area, id="x", subject="x", measured=measured, expected=expected, unit="", source="",
                       enough=enough)  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "expected", "enough", "share"),
    [(8, 8, False, 1), (9, 8, False, 1), (4, 8, False, 0.5), (0, 8, False, 0), (-1, 8, False, 0), (98, 100, True, 1),
     (97, 100, False, 0.97), (GONE, 8, False, None), (GONE, 8, True, None)],
)  # fmt: skip
def test_shares(measured: int | Missing, expected: float, enough: bool, share: float | None) -> None:
    assert due("gpu", measured, expected, enough).share == share


def test_areas_weigh_as_the_design_has_it() -> None:
    found = score((due("gpu", 1), due("gpu", 0), due("nvlink", 1), due("host", 0)))
    assert found.areas == {"gpu": 50, "nvlink": 100, "host": 0}
    assert found.total == 66.6  # (20 x 0.5 + 20 x 1 + 5 x 0) / 45, downwards


def test_what_is_not_covered_lowers_coverage_alone() -> None:
    found = score((due("gpu", 1), due("gpu", GONE), due("memory", 1), due("memory", 1)))
    assert (found.total, found.coverage, found.floor) == (100, 0.75, 75)
    half = score((due("gpu", 1), due("gpu", GONE), due("memory", GONE)))
    assert (half.total, half.floor, half.coverage) == (None, None, 0.333)
    assert score(()).total is None


@given(st.lists(st.tuples(st.sampled_from([*WEIGHTS]), st.floats(0, 2) | st.none()), min_size=1))
def test_any_score_is_within_bounds(parts: list[tuple[Area, float | None]]) -> None:
    found = score(tuple(due(area, GONE if measured is None else measured) for area, measured in parts))
    assert 0 <= found.coverage <= 1
    if found.total is not None:
        assert 0 <= found.total <= 100
        assert found.floor is not None
        assert found.floor <= found.total
        assert (found.total == 100) == all(each.share in (1, None) for each in found.expectations)


def recording_score(spec: str) -> Score:
    """What ``health`` scores a recording."""
    found = assess(spec).score
    assert found is not None
    return found


@pytest.mark.parametrize("box", swept([box for box in BOXES if box in names()], 4, first=2))
@pytest.mark.parametrize("request_", [Request(), Request(level="quick"), Request(profile="same")])
def test_a_healthy_box_scores_full(box: str, request_: Request) -> None:
    assessment = assess(box, replace(request_, profile=box) if request_.profile == "same" else request_)
    found = assessment.score
    assert found is not None
    assert found.total == 100
    assert found.coverage >= (0.7 if box == "dgx-2" else 0.95)  # no dump of a DGX-2's GPUs is published
    assert assessment.level == request_.level


@pytest.mark.parametrize("box", [box for box in BOXES if box not in (*names(), "hgx-h100", "vm-h100-x8", *ONE_GPU)])
def test_a_healthy_box_without_a_reference_machine_passes_without_a_score(box: str) -> None:
    assessment = assess(box)
    assert assessment.score is None
    assert assessment.verdict == "pass"


@pytest.mark.parametrize("box", ONE_GPU)
def test_one_gpu_of_a_reference_machine_passes_without_a_total(box: str) -> None:
    """A virtual machine may have as many of its GPUs as it was given: that some are missing cannot be seen."""
    found = recording_score(box)
    assert (found.total, found.gpus_uncertain, set(found.areas.values())) == (None, True, {100})
    assert assess(box).verdict == "pass"


@pytest.mark.parametrize("box", ["hgx-h100", "vm-h100-x8"])
def test_a_healthy_box_of_another_name_scores_full(box: str) -> None:
    found = recording_score(box)
    assert (found.total, found.coverage) == (100, 1)


@pytest.mark.parametrize("name", NO_FAULT)
def test_what_is_no_fault_costs_nothing(name: str) -> None:
    found = recording_score(name)
    assert found.total == 100
    assert set(found.areas.values()) == {100}
    assert found.coverage > 0.5


@pytest.mark.parametrize(
    ("facts", "area", "low", "high"),
    [
        ({f"{NVML}MaxClockInfo {GPU2} 0": 765}, "gpu", 93, 94),  # half a clock of one of eight
        ({f"{NVML}EccMode {GPU2}": [0, 0]}, "memory", 93, 94),
        ({f"{NVML}TotalEccErrors {GPU2} 1 0": 1}, "integrity", 87, 88),
        ({"text /sys/class/infiniband/mlx5_0/ports/1/state": "1: DOWN\n"}, "network", 79, 80.1),
        ({"text /proc/meminfo": "MemTotal:       263066746 kB\n"}, "host", 86, 90.5),
        ({"nvml nvmlDeviceGetHandleByIndex 2": {"missing": "lost", "detail": "NVML 15: GPU is lost"}}, "gpu", 87, 88),
    ],
)
def test_what_is_gone_costs_its_area(
    facts: dict[str, Any], area: Area, low: float, high: float, tmp_path: Path
) -> None:
    found = recording_score(changed(tmp_path, facts))
    assert low <= found.areas[area] <= high
    assert found.total is not None
    assert found.total < 100


def test_a_gpu_that_only_stopped_answering_counts_nothing(tmp_path: Path) -> None:
    spec = changed(tmp_path, {f"{NVML}MemoryInfo {GPU2}": {"missing": "lost", "detail": "NVML 15"}})
    found = recording_score(spec)
    assert found.coverage == 1
    assert found.areas["memory"] == 87.5  # one of eight


def test_a_timeout_is_not_covered(tmp_path: Path) -> None:
    """One of several GPUs; of one alone that GPU is to be reset, and not usable."""
    silent: dict[str, Json] = {f"{NVML}MemoryInfo {GPU2}": {"missing": "timeout"}}
    several = recording_score(changed(tmp_path, {**silent, f"{NVML}MemoryInfo 0000:0b:00.0": {"missing": "timeout"}}))
    assert (several.coverage < 1, several.areas["memory"]) == (True, 100)
    assert recording_score(changed(tmp_path, silent)).usable_gpus == 0.875


def test_a_network_that_is_not_in_use_is_not_scored(tmp_path: Path) -> None:
    ports = [f"text /sys/class/infiniband/mlx5_{n}/ports/1" for n in range(4)]
    down = {f"{port}/{name}": word for port in ports for name, word in UNUSED.items()}
    assert recording_score(changed(tmp_path, {**down})).areas["network"] == 100  # the HCAs are there


def test_without_a_reference_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert assess("dgx-1-v100", Request(profile="none")).score is None
    assert main(["health", "--from", "dgx-1-v100", "--profile", "none", "--explain", "score"]) == 3
    assert "Score: none (no reference machine matches" in capsys.readouterr().out


def test_the_sum_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--from", "dgx-1-v100-gpu-lost", "--explain", "score"]) == 0
    out = capsys.readouterr().out
    assert "GPU0 to GPU7 (7)" in out
    assert "missing GPU" in out
    for area, weight in WEIGHTS.items():
        assert any(line.split()[:3] == [area, "weight", str(weight)] for line in out.splitlines())


def held(spec: str, how: Selection = "named", **numbers: float) -> Box:
    """A box held to the DGX-1 with V100, whose profile may say more."""
    profile = by_name("dgx-1-v100")
    more = {key.replace("_", "."): Number(value, "a data sheet") for key, value in numbers.items()}
    choice = SelectedProfile(profile=replace(profile, numbers={**profile.numbers, **more}), how=how)
    return replace(box(spec), choice=choice, boards=boards_for(None))


def shares(made: Box, id: str) -> dict[str, float | None]:
    """By subject, to two places, what is less than whole; all where there are none."""
    found = score_of(made)
    assert found is not None
    of_all = {each.subject: each.share for each in found.expectations if each.id == id}
    return {name: share if share is None else round(share, 2) for name, share in of_all.items() if share != 1}


HCA = "0000:05:00.0"
PORT = "text /sys/class/infiniband/mlx5_0/ports/1"
ROCE = {f"{PORT}/link_layer": "Ethernet\n", f"{PORT}/rate": "25 Gb/sec (1X EDR)\n"}
SLOW = {f"{PORT}/rate": "56 Gb/sec (4X FDR)\n"}
BLOCK = "/sys/class/block"
NET = "text /sys/class/net"
ALONE: dict[str, Json] = {f"names {BLOCK}": ["sda", "sdb"]}
CLASS = "text /sys/bus/pci/devices/0000:02:00.0/class"
TWO = {f"{NET}/enp2s0f1/carrier": "1\n", f"{NET}/enp2s0f1/speed": "1000\n"}
MEMINFO = "text /proc/meminfo"
CPUINFO = "text /proc/cpuinfo"
LXC: dict[str, Json] = {"text /run/systemd/container": "lxc\n"}
ONE_CPU = {CPUINFO: "processor : 0\nphysical id : 0\ncore id : 0\n"}


def gib(number: float) -> dict[str, Json]:
    return {MEMINFO: f"MemTotal: {round(number * (1 << 20))} kB\n"}


def sectors(number: int) -> dict[str, Json]:
    return {**ALONE, f"text {BLOCK}/sdb/size": f"{number}\n"}


@pytest.mark.parametrize(
    ("id", "facts", "less"),
    [
        ("network.rate", {f"{PORT}/state": "5: ACTIVE_DEFER\n"}, {}),
        ("network.rate", {f"{PORT}/state": "2: INIT\n"}, {"mlx5_0/1": 0}),
        ("network.rate", SLOW, {"mlx5_0/1": 0.56}),
        ("network.rate", ROCE, {}),
        ("network.rate", {**SLOW, f"link /sys/bus/pci/devices/{HCA}/physfn": "../0000:05:00.1"}, {}),
        ("network.hcas", {"names /sys/class/infiniband": ["mlx5_1", "mlx5_2", "mlx5_3"]}, {"host": 0.75}),
        ("network.hcas", {"names /sys/class/infiniband": ["mlx5_1", "mlx5_2", "mlx5_3"],
                          f"text /sys/bus/pci/devices/{HCA}/device": "0x0209\n"}, {}),  # in flash recovery
        ("network.hcas", {"names /sys/class/infiniband": {"missing": "absent"}}, {"host": 0}),
        ("network.hcas", {"names /sys/class/infiniband": {"missing": "absent"}, "text /.dockerenv": ""},
         {"host": None}),
        ("host.data", {f"names {BLOCK}": ["sda"]}, {"host": 0.06}),
        ("host.data", {f"names {BLOCK}": []}, {"host": None}),
        ("host.data", sectors(14300000000), {}),
        ("host.data", sectors(14200000000), {"host": 0.95}),
        ("host.ethernet", {CLASS: "0x0c0330\n"}, {"host": None}),  # USB
        ("host.ethernet", TWO, {}),  # one of them is as fast as it should be
        ("gpu.not-slowed", {f"{NVML}CurrentClocksEventReasons {GPU2}": 0x20}, {"GPU2": 0}),
        ("gpu.not-slowed", {f"{NVML}CurrentClocksEventReasons {GPU2}": 0x4}, {}),
        ("memory.size", {f"{NVML}MemoryInfo {GPU2}": {"total": 15897460736, "free": 0, "used": 0}}, {"GPU2": 0.94}),
        ("host.memory", gib(497), {}),
        ("host.memory", gib(496), {"host": 0.97}),
        ("host.memory", gib(16) | LXC, {"host": None}),
        ("host.memory", LXC, {}),
        ("host.cores", ONE_CPU, {"host": 0.03}),
        ("host.cores", ONE_CPU | LXC, {"host": None}),
        ("host.sockets", ONE_CPU | LXC, {"host": None}),
    ],
)  # fmt: skip
def test_it_measures_as_the_checks_do(
    id: str, facts: dict[str, Json], less: dict[str, float | None], tmp_path: Path
) -> None:
    assert shares(held(changed(tmp_path, facts)), id) == less


def test_half_a_dimm_is_missed_where_its_size_is_known(tmp_path: Path) -> None:
    for size, less in ((504 - 15.9, {}), (504 - 16, {"host": 0.95})):
        assert shares(held(changed(tmp_path, gib(size)), host_dimm=32), "host.memory") == less


def test_the_tolerances_are_the_site_s(tmp_path: Path) -> None:
    made = held(changed(tmp_path, sectors(14200000000)))
    wider = replace(made.settings, thresholds={"host.data-tolerance": 6})
    assert shares(replace(made, settings=wider), "host.data") == {}


def test_a_port_that_the_configuration_names_is_missed_where_none_is_up(tmp_path: Path) -> None:
    ports = [f"text /sys/class/infiniband/mlx5_{n}/ports/1" for n in range(4)]
    down: dict[str, Json] = {f"{port}/{name}": word for port in ports for name, word in UNUSED.items()}
    made = held(changed(tmp_path, down))
    assert shares(made, "network.rate") == {}
    named = replace(made, settings=replace(made.settings, ports=("mlx5_0/1",)))
    assert shares(named, "network.rate") == {"mlx5_0/1": 0}


def whole(made: Box) -> bool:
    """Is nothing less than whole of what is covered, and something not covered?"""
    found = score_of(made)
    assert found is not None
    return {each.share for each in found.expectations} == {1, None}


def test_what_a_virtual_machine_was_not_given_is_not_missed() -> None:
    made = held("dgx-1-v100-gpu-missing")
    assert shares(made, "gpu.count") == {"host": 0.88}
    assert shares(made, "memory.size") == {"missing GPU": 0}
    host = made.snapshot.host
    assert isinstance(host, Host)
    guest = replace(made, snapshot=replace(made.snapshot, host=replace(host, vm="KVM")))
    assert shares(guest, "gpu.count") == {"host": None}
    assert shares(guest, "memory.size") == {"hidden GPU": None}
    assert shares(guest, "nvlink.graph") == {"host": None}
    assert whole(guest)


def test_a_machine_known_by_its_gpus_alone_misses_no_gpu() -> None:
    made = held("dgx-1-v100-gpu-missing", how="gpus")
    assert shares(made, "nvlink.graph") == {"host": None}
    assert shares(made, "memory.size") == {}


def test_a_board_without_nvswitches_is_held_to_no_graph_of_one_with_them(tmp_path: Path) -> None:
    gpus = ("0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0")
    facts: dict[str, Json] = {}
    for gpu in gpus:
        peers = [peer for peer in gpus if peer != gpu for _ in range(6)]
        for link, peer in enumerate(peers):
            facts[f"nvml nvmlDeviceGetNvLinkRemoteDeviceType {gpu} {link}"] = 0
            facts[f"nvml nvmlDeviceGetNvLinkRemotePciInfo {gpu} {link}"] = {"busId": f"0000{peer}"}
    made = box(changed(tmp_path, facts, "gb200-nvl72"))
    profile = by_name("gb200-nvl72")
    cases: tuple[tuple[Selection, float | None], ...] = (("gpus", None), ("named", 0))
    for how, share in cases:
        choice = SelectedProfile(profile=profile, how=how)
        assert shares(replace(made, choice=choice, boards=boards_for(None)), "nvlink.graph") == {"host": share}


@pytest.mark.parametrize(
    ("driver", "less"), [("vfio-pci", None), ("nvidia", 0), ("nouveau", 0), ({"missing": "absent"}, 0)]
)
def test_a_gpu_of_another_driver_is_hidden_not_gone(driver: Json, less: float | None, tmp_path: Path) -> None:
    hidden: dict[str, Json] = {"nvml nvmlDeviceGetCount": 7, "nvml nvmlDeviceGetHandleByIndex 7": {"missing": "absent"}}
    last = "0000:8a:00.0"
    link = f"../../../../bus/pci/drivers/{driver}" if isinstance(driver, str) else driver
    made = held(changed(tmp_path, {**hidden, f"link /sys/bus/pci/devices/{last}/driver": link}))
    assert shares(made, "memory.size") == {f"{'missing' if less == 0 else 'hidden'} GPU": less}
    assert whole(made) == (less is None)


def test_hardware_that_nobody_looked_for_is_not_missing() -> None:
    nothing = measured_box.of_box(RecordedSource({}, Origin("recording")), "dgx-1-v100")
    found = score_of(nothing)
    assert found is not None
    assert (found.total, found.coverage) == (None, 0)
