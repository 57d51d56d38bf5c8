"""PCIe: width, generation, BAR1 and replays at their thresholds, and where facts are missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabric_box import PROFILES, box, findings, said
from test_health_checks import GPU2, changed

from dgxcheck.checks.pcie.control import _is_kept_awake
from dgxcheck.checks.pcie.gpu_link import _is_loaded, is_outdone, own_hop
from dgxcheck.facts.ids import CONTROLLER_3D, VGA
from dgxcheck.facts.missing import Gap, Json, Missing, rows
from dgxcheck.facts.nvml.gpu import GpuProcess
from dgxcheck.facts.record import Record, replace
from dgxcheck.profiles.model import Number
from dgxcheck.settings import Settings
from dgxcheck.topology.paths import Hop

NVML = f"nvml nvmlDeviceGet{{}} {GPU2}"
FILE = "text /sys/bus/pci/devices/{}/{}"
PORT = "0000:09:08.0"
SWITCH = "0000:08:00.0"
ROOT = "0000:00:03.0"
GONE: Json = {"missing": "unrecorded"}
GAP = Missing(Gap.DENIED, "x")
DENIED: Json = {"missing": "denied", "detail": "no"}
BUSY: dict[str, Json] = {
    NVML.format("CurrPcieLinkGeneration"): 1,
    NVML.format("CurrentClocksEventReasons"): 0,
    NVML.format("UtilizationRates"): {"gpu": 99, "memory": 3},
}
PROCESS: Json = [{"pid": 7, "usedGpuMemory": 1, "gpuInstanceId": 0, "computeInstanceId": 0}]


def speed(bdf: str, name: str, text: str) -> dict[str, Json]:
    return {FILE.format(bdf, name): f"{text}\n"}


def bar1(mib: int, nvml: int | None = None) -> dict[str, Json]:
    """BAR1 of GPU2 on the bus, and by NVML."""
    first = "0x0000000080000000 0x0000000080ffffff 0x0000000000040200\n"
    rest = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    window = f"0x{0x381000000000:016x} 0x{0x381000000000 + (mib << 20) - 1:016x} 0x000000000014220c\n"
    total = (mib if nvml is None else nvml) << 20
    return {
        FILE.format(GPU2, "resource"): first + window + rest * 11,
        NVML.format("BAR1MemoryInfo"): {"bar1Free": 0, "bar1Total": total, "bar1Used": total},
    }


@pytest.mark.parametrize(
    ("facts", "held", "alone"),
    [
        (speed(GPU2, "current_link_width", "8") | speed(PORT, "current_link_width", "8"), "fail", "fail"),
        (speed(GPU2, "current_link_width", "2") | speed(GPU2, "max_link_width", "2"), "fail", "pass"),  # POWER9
        (speed(GPU2, "current_link_width", "8") | speed(PORT, "max_link_width", "8"), "fail", "pass"),
        ({FILE.format(GPU2, "current_link_width"): DENIED, FILE.format(PORT, "current_link_width"): DENIED},
         "skip no-permission", "skip no-permission"),
    ],
)  # fmt: skip
def test_width_is_held_to_the_profile(facts: dict[str, Json], held: str, alone: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, facts)
    assert said(box(spec, "dgx-1-v100"), "pcie.width", GPU2) == [held]
    assert said(box(spec), "pcie.width", GPU2) == [alone]
    assert said(box(spec, "dgx-1-v100", "gpus"), "pcie.width", GPU2) == [alone]


def test_without_a_profile_the_siblings_say_what_a_link_should_be(tmp_path: Path) -> None:
    """At x8 among seven at x16 it fails; where half of them are at x8 that may be the slots' design."""
    narrow = [speed(bdf, "current_link_width", "8") for bdf in (GPU2, PORT)]
    half = {key: value for gpu in box("dgx-1-v100").gpus[4:] for key, value in
            speed(gpu.bdf or "", "current_link_width", "8").items()}  # fmt: skip
    assert said(box(changed(tmp_path, narrow[0] | narrow[1])), "pcie.width", GPU2) == ["fail"]
    assert said(box(changed(tmp_path, narrow[0] | narrow[1] | half)), "pcie.width", GPU2) == ["warn"]


@pytest.mark.parametrize(("others", "due"), [
    ((16, 16), True), ((16, 8), False), ((16,), False), ((16, 16, 8), True), ((16, 16, 8, 8), False), ((), False),
    ((16, 16, GAP), True), ((16, GAP, GAP), False),
])  # fmt: skip
def test_most_of_several_links_have_more_lanes(others: tuple[int | Missing, ...], due: bool) -> None:
    of = box("dgx-1-v100")
    hop = own_hop(of, of.gpus[0].path)
    assert isinstance(hop, Hop)
    narrow = replace(hop, width=8)
    assert is_outdone(narrow, [replace(hop, width=width) for width in others], "width") is due
    assert not is_outdone(replace(hop, width=GAP), [hop, hop], "width")


def test_a_shared_link_is_judged_once(tmp_path: Path) -> None:
    spec = changed(tmp_path, speed(SWITCH, "current_link_width", "8"))
    assert said(box(spec, "dgx-1-v100"), "pcie.path") == ["pass", "fail", *["pass"] * 4]
    one_gpu = replace(box(spec, "dgx-1-v100"), gpus=box(spec).gpus[2:3])
    assert said(one_gpu, "pcie.path") == ["fail"]
    assert said(box(spec), "pcie.path", SWITCH) == ["fail"]
    assert said(box("k80-x8", "k80-x8"), "pcie.path") == ["pass"] * 6
    wired = speed(SWITCH, "current_link_width", "8") | speed("0000:00:03.0", "max_link_width", "8")
    assert said(box(changed(tmp_path, wired), "dgx-1-v100"), "pcie.path", SWITCH) == ["pass"]


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, "pass"),
        ({NVML.format("CurrPcieLinkGeneration"): 1}, "warn"),  # the others, as idle in P0, are at gen3
        ({NVML.format("CurrPcieLinkGeneration"): 1, NVML.format("PerformanceState"): 8}, "skip not-in-level"),
        (BUSY, "warn"),
        (BUSY | {NVML.format("CurrentClocksEventReasons"): 1}, "warn"),
        (BUSY | {NVML.format("PerformanceState"): 8}, "skip not-in-level"),
        (BUSY | {NVML.format("UtilizationRates"): {"gpu": 0, "memory": 0}}, "skip not-in-level"),
        (BUSY | {NVML.format("UtilizationRates"): {"gpu": 0, "memory": 0},
                 NVML.format("ComputeRunningProcesses"): PROCESS}, "warn"),
        (BUSY | {NVML.format("CurrentClocksEventReasons"): GONE}, "skip not-in-level"),
        ({NVML.format("MaxPcieLinkGeneration"): 2}, "pass"),  # without a profile an older host is no fault
        (speed(PORT, "max_link_speed", "5.0 GT/s PCIe"), "pass"),
        ({NVML.format("MaxPcieLinkGeneration"): DENIED, FILE.format(PORT, "max_link_speed"): GONE},
         "skip no-permission"),
        ({NVML.format("CurrPcieLinkGeneration"): {"missing": "garbled"}}, "unknown"),
        ({"nvml nvmlDeviceGetHandleByIndex 2": {"missing": "lost"}}, "skip dependency-failed"),
    ],
)  # fmt: skip
def test_generation(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts)), "pcie.generation", GPU2) == [due]


@pytest.mark.parametrize(("slow", "due"), [(1, "warn"), (3, "warn"), (4, "skip not-in-level")])
def test_idle_links_are_judged_by_most_of_those_that_are_as_idle(slow: int, due: str, tmp_path: Path) -> None:
    gpus = box("dgx-b200").gpus[:slow]
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetCurrPcieLinkGeneration {gpu.bdf}": 4 for gpu in gpus}
    assert said(box(changed(tmp_path, facts, "dgx-b200")), "pcie.generation", "0000:1b:00.0") == [due]


WORKS = GpuProcess(pid=7, used_memory=GAP, name="x")


@pytest.mark.parametrize(("clocks", "activity", "due"), [
    ({}, {"gpu_percent": 1}, True), ({}, {"gpu_percent": 0}, False), ({}, {"gpu_percent": GAP}, False),
    ({}, {"gpu_percent": GAP, "compute": (WORKS,)}, True), ({"reasons": GAP}, {"gpu_percent": 1}, False),
    ({"performance_state": 8}, {"gpu_percent": 1}, False), (None, {"gpu_percent": 1}, False), ({}, None, False),
])  # fmt: skip
def test_a_gpu_is_under_load(clocks: dict[str, object] | None, activity: dict[str, object] | None, due: bool) -> None:
    of = box("dgx-1-v100")
    row = rows(of.snapshot.gpu_clocks)[0]
    assert isinstance(row.reasons, Record)
    first = replace(row, **{"performance_state": 0, "reasons": replace(row.reasons, mask=0)} | (clocks or {}))
    load = replace(rows(of.snapshot.gpu_processes)[0], **{"compute": ()} | (activity or {}))
    facts = replace(of.snapshot, gpu_clocks=GAP if clocks is None else (first,),
                    gpu_processes=GAP if activity is None else (load,))  # fmt: skip
    assert _is_loaded(replace(of, snapshot=facts), of.gpus[0]) is due


def test_generation_of_the_profile_goes_first(tmp_path: Path) -> None:
    slow = changed(tmp_path, {NVML.format("MaxPcieLinkGeneration"): 2, NVML.format("CurrPcieLinkGeneration"): 2})
    asks_less = replace(PROFILES["dgx-1-v100"], numbers={"pcie.link_gen": Number(value=2, source="test")})
    assert said(box(slow, "dgx-1-v100"), "pcie.generation", GPU2) == ["warn"]
    assert said(box(slow, asks_less), "pcie.generation", GPU2) == ["pass"]


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        (bar1(16384), "pass"),
        (bar1(8192), "warn"),
        (bar1(512), "warn"),
        (bar1(256), "fail"),
        (bar1(16384, nvml=8192), "warn"),
        (bar1(32768), "pass"),
        ({NVML.format("BAR1MemoryInfo"): GONE}, "pass"),
        ({FILE.format(GPU2, "resource"): GONE}, "skip not-recorded"),
        ({FILE.format(GPU2, "resource"): "nonsense\n"}, "unknown"),
    ],
)
def test_bar1(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts), "dgx-1-v100"), "pcie.bar1", GPU2) == [due]


def test_bar1_without_a_known_model_is_compared_with_nvml_and_the_others(tmp_path: Path) -> None:
    assert said(box("dgx-1-v100"), "pcie.bar1", GPU2) == ["pass"]
    for facts in (bar1(256), bar1(256, nvml=512)):
        assert said(box(changed(tmp_path, facts)), "pcie.bar1", GPU2) == ["warn"]


def grown(folder: Path, later: dict[str, Json], facts: dict[str, Json] | None = None) -> str:
    path = Path(changed(folder, facts or {}))
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | {"later": [{"at_s": 60, "facts": later}]}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("replays", "seconds", "due"),
    [
        (0, 60, "pass"),
        (8, 60, "pass"),  # gen3 x16
        (9, 60, "warn"),
        (80, 60, "warn"),
        (81, 60, "fail"),
        (8, 1, "pass"),
        (9, 1, "warn"),
        (500, 30, "warn"),  # no minute yet
        (480, 3600, "pass"),
    ],
)
def test_replays(replays: int, seconds: float, due: str, tmp_path: Path) -> None:
    spec = grown(tmp_path, {NVML.format("PcieReplayCounter"): {"": replays}})
    assert said(box(spec, seconds=seconds), "pcie.replay", GPU2) == [due]


@pytest.mark.parametrize(
    ("later", "facts", "due"),
    [
        (3, {NVML.format("PcieReplayCounter"): 120}, "skip no-history"),
        (120, {NVML.format("PcieReplayCounter"): 120}, "pass"),  # in a lifetime
        (9, {NVML.format("PcieReplayCounter"): GONE}, "skip not-recorded"),
        (9, {NVML.format("CurrPcieLinkWidth"): DENIED}, "skip no-permission"),
    ],
)
def test_replays_without_history(later: int, facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    spec = grown(tmp_path, {NVML.format("PcieReplayCounter"): {"": later}}, facts)
    assert said(box(spec), "pcie.replay", GPU2) == [due]


@pytest.mark.parametrize(("replays", "due"), [(2, "pass"), (3, "fail")])
def test_two_replays_make_no_rate(replays: int, due: str, tmp_path: Path) -> None:
    strict = Settings(thresholds={"pcie.replay-fail": 1, "pcie.replay": 0.1})
    spec = grown(tmp_path, {NVML.format("PcieReplayCounter"): {"": replays}})
    assert (said(box(spec, settings=strict), "pcie.replay", GPU2) == ["fail"]) is (due == "fail")


@pytest.mark.parametrize(
    ("drop", "due"),
    [
        ([], "pass"),
        (["0000:86:00.0", "0000:87:08.0", "0000:87:10.0", "0000:88:00.0", "0000:89:00.0"], "warn"),
        (["0000:89:00.0"], "skip no-reference"),  # a GPU, not a switch
        (["0000:08:00.0", "0000:09:00.0"], "skip dependency-failed"),  # the driver had had both
    ],
)
def test_both_sockets_have_as_many_switches(drop: list[str], due: str, tmp_path: Path) -> None:
    path = Path(changed(tmp_path, {}, "pcie-x8"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"drop": drop}), encoding="utf-8")
    assert said(box(str(path)), "pcie.switches") == [due]
    assert said(box("k80-x8"), "pcie.switches") == ["skip not-supported"]  # its switches are on the boards


def test_numa_nodes_without_any_cpu_are_one_a_socket(tmp_path: Path) -> None:
    nodes: dict[str, Json] = {f"text /sys/devices/system/node/node{node}/cpulist": "\n" for node in (0, 1)}
    of = box(changed(tmp_path, nodes, "pcie-x8"))
    assert [row.cpulist for row in rows(of.snapshot.numa)] == ["", ""]
    assert said(of, "pcie.switches") == ["pass"]


@pytest.mark.parametrize(("width", "most", "due"), [(8, 16, "fail"), (8, 8, "skip"), (16, 16, "skip")])
def test_without_the_tree_nvml_says_how_wide_a_link_is(width: int, most: int, due: str, tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        NVML.format("CurrPcieLinkWidth"): width, NVML.format("MaxPcieLinkWidth"): most,
        "names /sys/bus/pci/devices": {"missing": "unrecorded"},
    }  # fmt: skip
    assert [each.split()[0] for each in said(box(changed(tmp_path, facts)), "pcie.width", GPU2)] == [due]


@pytest.mark.parametrize(("device", "due"), [
    ("0000:02:00.0", "skip no-reference"),  # a network card of the board
    ("0000:01:00.0", "warn"),  # a storage controller
])  # fmt: skip
def test_lanes_that_a_board_need_not_wire(device: str, due: str, tmp_path: Path) -> None:
    assert said(box("dgx-1-v100"), "pcie.path", device) == ["pass"]
    facts = speed(device, "current_link_width", "1")
    assert said(box(changed(tmp_path, facts)), "pcie.path", device) == [due]


@pytest.mark.parametrize(("narrow", "due"), [(1, "warn"), (8, "skip no-reference"), (7, "warn")])
def test_lanes_that_all_devices_of_a_model_lack(narrow: int, due: str, tmp_path: Path) -> None:
    """Drives of a DGX-2."""
    functions = box("dgx-2").topology.functions.values()
    kind = next(each.device for each in functions if each.bdf == "0000:51:00.0")
    drives = sorted((each.bdf for each in functions if each.device == kind), key=lambda bdf: bdf != "0000:51:00.0")
    assert len(drives) == 8
    facts = {key: value for bdf in drives[:narrow] for key, value in speed(bdf, "current_link_width", "2").items()}
    assert said(box(changed(tmp_path, facts, "dgx-2")), "pcie.path", "0000:51:00.0") == [due]


@pytest.mark.parametrize(("large", "due"), [(16384, "fail"), (16385, "warn")])
def test_a_bar1_that_is_not_large_anyway_is_no_failure(large: int, due: str, tmp_path: Path) -> None:
    strict = Settings(thresholds={"pcie.bar1-large": large})
    assert said(box(changed(tmp_path, bar1(256)), "dgx-1-v100", settings=strict), "pcie.bar1", GPU2) == [due]


@pytest.mark.parametrize(("persistence", "code", "due"), [
    (True, CONTROLLER_3D << 8, True), (False, CONTROLLER_3D << 8, False), (True, VGA << 8, False), (True, GAP, False),
])  # fmt: skip
def test_a_gpu_that_is_kept_awake(persistence: bool, code: int | Missing, due: bool) -> None:
    of = box("dgx-1-v100")
    modes = tuple(replace(row, persistence=persistence) for row in rows(of.snapshot.gpu_modes))
    functions = {**of.topology.functions, GPU2: replace(of.topology.functions[GPU2], class_code=code)}
    of = replace(of, snapshot=replace(of.snapshot, gpu_modes=modes), topology=replace(of.topology, functions=functions))
    assert _is_kept_awake(of, GPU2) is due


@pytest.mark.parametrize("busy", [False, True])
def test_a_gpu_on_the_package_of_its_cpu_has_no_link(busy: bool, tmp_path: Path) -> None:
    gpu = "0009:01:00.0"
    facts: dict[str, Json] = {
        f"nvml nvmlDeviceGetName {gpu}": "NVIDIA GB10", f"text /sys/bus/pci/devices/{gpu}/device": "0x2e12\n",
        f"nvml nvmlDeviceGetCurrPcieLinkGeneration {gpu}": 1, f"nvml nvmlDeviceGetCurrPcieLinkWidth {gpu}": 1,
        **speed(gpu, "current_link_width", "1"), **speed(gpu, "current_link_speed", "2.5 GT/s PCIe"),
        f"nvml nvmlDeviceGetCurrentClocksEventReasons {gpu}": int(not busy),
        f"nvml nvmlDeviceGetUtilizationRates {gpu}": {"gpu": 96 * busy, "memory": 0},
    }  # fmt: skip
    whole = changed(tmp_path, facts, "gh200")
    treeless: dict[str, Json] = {"names /sys/bus/pci/devices": {"missing": "unrecorded"}}
    for of in (box(whole), box(changed(tmp_path, facts | treeless, "gh200"))):
        assert not [each.id for each in findings(of, "pcie") if each.judgement.fault]
