"""Readings that cannot be true together are unknown or a warning, whatever each says by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from judging import unnamed
from read_box import box
from sample import BOXES
from test_silence import GPU2, GPUS, findings, later

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.facts.record import replace

NVML = "nvml nvmlDeviceGet"
PCI = "text /sys/bus/pci/devices"
READINGS, IDENTITY, UNIQUE = f"consistency.readings/{GPU2}", f"consistency.identity/{GPU2}", "consistency.unique"
ALONE = ("consistency",)
"""The checks of this subject, which need no finding of another."""
GIB = 1 << 30


@pytest.mark.parametrize("name", BOXES)
def test_the_readings_of_a_box_agree(name: str) -> None:
    statuses = {each["status"] for each in unnamed(name)["findings"] if each["id"].startswith("consistency.")}
    assert "pass" in statuses <= {"pass", "skip"}


@pytest.mark.parametrize(
    "facts",
    [
        {f"{NVML}CurrPcieLinkGeneration {GPU2}": 4},
        {f"{NVML}CurrPcieLinkGeneration {GPU2}": 1, f"{NVML}PerformanceState {GPU2}": 0},
        {f"{NVML}CurrPcieLinkWidth {GPU2}": 0},
        {f"{NVML}CurrPcieLinkWidth {GPU2}": 8},
        {f"{NVML}MemoryInfo {GPU2}": {"total": 16 * GIB, "free": 0, "used": 17 * GIB}},
        {f"{NVML}MemoryInfo {GPU2}": {"total": 16 * GIB, "free": 9 * GIB, "used": 9 * GIB}},
        {f"{NVML}MemoryInfo {GPU2}": {"total": 0, "free": 0, "used": 0}},
        {f"{NVML}BAR1MemoryInfo {GPU2}": {"bar1Total": 16 * GIB, "bar1Free": 15 * GIB, "bar1Used": 2 * GIB}},
        {f"{NVML}ClockInfo {GPU2} 1": 2000},
        {f"{NVML}ApplicationsClock {GPU2} 0": 2000},
        {f"{NVML}PowerUsage {GPU2}": 0},
        {f"{NVML}EnforcedPowerLimit {GPU2}": 400000},
        {f"{NVML}Temperature {GPU2} 0": 0},
        {f"{NVML}Temperature {GPU2} 0": 155},
        {f"{NVML}TemperatureThreshold {GPU2} 1": 95},
        {f"{NVML}UtilizationRates {GPU2}": {"gpu": 101, "memory": 0}},
        {f"{NVML}UtilizationRates {GPU2}": {"gpu": 100, "memory": 50}, f"{NVML}PerformanceState {GPU2}": 8},
        {f"{NVML}UtilizationRates {GPU2}": {"gpu": 100, "memory": 50}, f"{NVML}PerformanceState {GPU2}": 0,
         f"{NVML}CurrentClocksEventReasons {GPU2}": 0, f"{NVML}ClockInfo {GPU2} 1": 135},
        {f"{NVML}UtilizationRates {GPU2}": {"gpu": 100, "memory": 50}, f"{NVML}PowerUsage {GPU2}": 3000},
        {f"{NVML}MemoryErrorCounter {GPU2} 0 0 2": 5},
        {f"{NVML}TotalEccErrors {GPU2} 0 1": 1, f"{NVML}MemoryErrorCounter {GPU2} 0 1 2": 5},
    ],
)  # fmt: skip
def test_readings_that_exclude_each_other(facts: dict[str, Json], tmp_path: Path) -> None:
    assert findings(tmp_path, facts, only=ALONE) == {READINGS: "unknown"}


@pytest.mark.parametrize(("odd", "found"), [(1, {IDENTITY: "warn"}), (4, {})])
def test_a_name_unlike_that_of_most_boards_with_the_same_ids(odd: int, found: dict[str, str], tmp_path: Path) -> None:
    facts: dict[str, Json] = {f"{NVML}Name {gpu}": "NVIDIA Graphics Device" for gpu in (GPU2, *GPUS[-3:])[:odd]}
    assert findings(tmp_path, facts, only=ALONE) == found


def test_a_hypervisor_makes_up_the_links_that_its_guest_reads(tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        f"{NVML}CurrPcieLinkWidth {GPU2}": 8, "text /sys/class/dmi/id/sys_vendor": "QEMU\n",
        "text /proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu hypervisor\n",
    }  # fmt: skip
    assert findings(tmp_path, facts, only=ALONE) == {}


@pytest.mark.parametrize(("reasons", "clock"), [(4, 1200), (1, 135)])
def test_a_gpu_at_work_or_whose_program_just_ended_contradicts_nothing(
    reasons: int, clock: int, tmp_path: Path
) -> None:
    facts: dict[str, Json] = {
        f"{NVML}UtilizationRates {GPU2}": {"gpu": 100, "memory": 50}, f"{NVML}PerformanceState {GPU2}": 0,
        f"{NVML}CurrentClocksEventReasons {GPU2}": reasons, f"{NVML}ClockInfo {GPU2} 1": clock,
        f"{NVML}PowerUsage {GPU2}": 299000,
    }  # fmt: skip
    assert findings(tmp_path, facts) == {}


@pytest.mark.parametrize("facts", [
    {f"{NVML}CurrPcieLinkGeneration {GPU2}": 1, f"{NVML}PerformanceState {GPU2}": 8},
    {f"{NVML}CurrPcieLinkGeneration {GPU2}": 3, f"{PCI}/{GPU2}/current_link_speed": "2.5 GT/s PCIe\n"},
])
def test_a_gpu_is_faster_awake_than_asleep(facts: dict[str, Json], tmp_path: Path) -> None:
    assert findings(tmp_path, facts, only=ALONE) == {}


def test_retired_pages_do_not_come_back(tmp_path: Path) -> None:
    pages: Json = [{"address": 1, "timestamp": 1600000000}, {"address": 2, "timestamp": 1600000000}]
    key = f"{NVML}RetiredPages {GPU2} 0"
    assert findings(tmp_path, {key: pages}, only=ALONE, later=later({key: pages})) == {}
    assert findings(tmp_path, {key: pages}, only=ALONE, later=later({key: []})) == {READINGS: "unknown"}


@pytest.mark.parametrize(
    "facts",
    [
        {f"{PCI}/{GPU2}/device": "0x15f9\n"},
        {f"{NVML}Name {GPU2}": "Tesla P100-SXM2-16GB"},
        {f"{NVML}VbiosVersion {GPU2}": "86.00.41.00.0F"},
        {f"{NVML}Architecture {GPU2}": 4},
        {f"{NVML}CudaComputeCapability {GPU2}": [6, 0]},
    ],
)
def test_a_gpu_that_is_two_models_at_once(facts: dict[str, Json], tmp_path: Path) -> None:
    assert findings(tmp_path, facts, only=ALONE) == {IDENTITY: "warn"}


@pytest.mark.parametrize("what", ["UUID", "Serial", "MinorNumber"])
def test_two_gpus_with_one_identity(what: str, tmp_path: Path) -> None:
    value: Json = 3 if what == "MinorNumber" else "1" * 13
    facts: dict[str, Json] = {f"{NVML}{what} {gpu}": value for gpu in (GPU2, GPUS[3])}
    found = findings(tmp_path, facts, only=ALONE)
    assert [due for key, due in found.items() if key.startswith(UNIQUE)] == ["warn"]


@pytest.mark.parametrize(
    ("what", "values", "base", "flashed"),
    [("UUID", ("GPU-1", "GPU-1"), "dgx-1-v100", True), ("MinorNumber", (3, 3), "dgx-1-v100", False),
     ("NumaNodeId", (10, 10), "gb300-nvl72", False)],
)  # fmt: skip
def test_what_is_given_out_at_each_start_was_not_flashed(
    what: str, values: tuple[Json, Json], base: str, flashed: bool, tmp_path: Path
) -> None:
    gpus = ("0018:06:00.0", "0019:06:00.0") if base == "gb300-nvl72" else (GPU2, GPUS[3])
    path = tmp_path / "box.json"
    facts = {f"{NVML}{what} {gpu}": value for gpu, value in zip(gpus, values, strict=True)}
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": base, "facts": facts}), encoding="utf-8")
    (remedy,) = (each.remedy for each in assess(str(path), Request(only=(UNIQUE,))).findings if each.status in BAD)
    assert ("flashed" in remedy) is flashed
    assert ("given out" in remedy) is not flashed


def test_adapters_and_interfaces_with_one_identity(tmp_path: Path) -> None:
    guid: Json = "0002:c903:0010:0001\n"
    facts: dict[str, Json] = {f"text /sys/class/infiniband/mlx5_{number}/node_guid": guid for number in (0, 1)}
    found = findings(tmp_path, facts, only=ALONE)
    assert [due for key, due in found.items() if key.startswith(UNIQUE)] == ["warn"]


def _named(**names: str | int) -> Box:
    """Of the last two GPUs the same name, number or the like, by field."""
    of = box("dgx-1-v100")
    nvml = of.snapshot.gpu
    assert isinstance(nvml, Nvml)
    gpus = (*nvml.gpus[:6], *(replace(gpu, **names) for gpu in nvml.gpus[6:]))
    return replace(of, snapshot=replace(of.snapshot, gpu=replace(nvml, gpus=gpus)))


def _joined(bdf: Missing | str) -> Box:
    """Two interfaces with one address, and a third that joins them, or is of a function of its own."""
    of = box("dgx-2")
    rows = of.snapshot.network
    assert isinstance(rows, tuple)
    first, second, *others = rows
    both = (first, replace(second, mac=first.mac), replace(first, name="bond0", bdf=bdf))
    return replace(of, snapshot=replace(of.snapshot, network=(*both, *others)))


@pytest.mark.parametrize(("of", "due"), [
    (lambda: _named(uuid="GPU-1"), ["warn"]),
    (lambda: replace(_named(uuid="GPU-1"), gpus=box("dgx-1-v100").gpus[:7]), ["warn"]),  # one of them was asked about
    (lambda: replace(_named(uuid="GPU-1"), gpus=box("dgx-1-v100").gpus[:6]), ["pass"]),
    (lambda: _named(serial="0000000000000"), ["pass"]),  # was never written
    (lambda: _named(serial="0324000000000"), ["warn"]),
    (lambda: _named(gpu_numa_id=0), ["pass"]),  # the host's own, on which no GPU's memory is
    (lambda: _named(gpu_numa_id=2), ["warn"]),
    (lambda: _named(minor=0), ["warn"]),  # the first GPU's
    (lambda: _joined(Missing(Gap.ABSENT, "x")), ["pass"]),
    (lambda: _joined("0000:ff:00.0"), ["warn"]),
])  # fmt: skip
def test_what_may_be_the_same(of: Callable[[], Box], due: list[str]) -> None:
    assert [each.status.value for each in run(of(), [check for check in CHECKS if check.id == UNIQUE])] == due


def test_the_two_gpus_of_a_k80_share_a_serial_number() -> None:
    found = {each["status"] for each in unnamed("k80-x8")["findings"] if each["id"] == "consistency.unique"}
    assert found == {"pass"}


HALF: dict[str, Json] = {"text /proc/meminfo": "MemTotal:       264000000 kB\n"}
"""Of what the DIMMs hold."""


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({"text /sys/devices/system/node/node1/cpulist": "0-19,40-59\n"}, "unknown"),
        ({"text /sys/devices/system/node/node1/cpulist": "x\n"}, None),
        ({f"{PCI}/{GPU2}/local_cpulist": "20-39,60-79\n"}, "unknown"),
        ({f"{PCI}/{GPU2}/local_cpulist": "\n"}, None),
        ({"text /sys/class/infiniband/mlx5_0/ports/1/phys_state": "2: Polling\n"}, "unknown"),
        ({"text /sys/class/infiniband/mlx5_0/ports/1/rate": "100 Gb/sec (4X ?DR)\n"}, None),
        (HALF, "unknown"),
        (HALF | {"text /sys/devices/system/edac/mc/mc1/size_mb": {"missing": "denied"}}, None),
        (HALF | {"names /sys/devices/system/edac/mc": []}, None),
    ],
)
def test_the_host_contradicts_itself(facts: dict[str, Json], due: str | None, tmp_path: Path) -> None:
    assert findings(tmp_path, facts, only=ALONE).get("consistency.host") == due


def test_a_list_of_a_thousand_million_cpus_takes_no_time(tmp_path: Path) -> None:
    huge: dict[str, Json] = {"text /sys/devices/system/node/node1/cpulist": "0-999999998\n"}
    assert findings(tmp_path, huge, only=ALONE).get("consistency.host") == "unknown"
