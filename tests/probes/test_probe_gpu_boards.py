"""What three boards of different age tell, and what each cannot."""

from __future__ import annotations

from typing import TypeVar

import pytest
from fake_nvml_source import MIB, FakeNvml, box
from nvml_boards import A100, K80, V100

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.gpu import GpuProcess
from dgxcheck.facts.nvml.readings import EccCounts, EventReasons, RetiredPage, SupportedClocks
from dgxcheck.facts.record import fields
from dgxcheck.source.protocol import Json
from probes.gpu.identity import gpu, gpu_affinity, gpu_board, gpu_modes, gpu_processes
from probes.gpu.readings import (
    event_reasons,
    gpu_clocks,
    gpu_counters,
    gpu_ecc,
    gpu_memory,
    gpu_pcie,
    gpu_power,
    gpu_thermal,
)

T = TypeVar("T")


def one(facts: tuple[T, ...] | Missing) -> T:
    assert not isinstance(facts, Missing)
    (fact,) = facts
    return fact


def gap(value: object) -> Gap:
    assert isinstance(value, Missing)
    return value.gap


def counted(counts: EccCounts) -> set[str]:
    return {field for field in fields(counts) if not isinstance(getattr(counts, field), Missing)}


@pytest.fixture
def k80() -> FakeNvml:
    return box("1580:00:00.0", answers=K80)


@pytest.fixture
def v100() -> FakeNvml:
    return box("0000:06:00.0", answers=V100)


@pytest.fixture
def a100() -> FakeNvml:
    return box("0000:07:00.0", answers=A100)


def test_identity_of_a_k80(k80: FakeNvml) -> None:
    nvml = gpu(k80)
    assert not isinstance(nvml, Missing)
    assert (nvml.driver_version, nvml.count, nvml.lost) == ("430.26", 1, ())
    assert gap(nvml.cuda_version) is Gap.UNSUPPORTED
    half = one(nvml.gpus)
    assert (half.bdf, half.index, half.name, half.minor) == ("1580:00:00.0", 0, "Tesla K80", 1)
    assert (half.serial, half.vbios) == ("0320000000001", "80.21.1F.00.05")
    assert gap(half.gpu_numa_id) is Gap.UNSUPPORTED


def test_no_numa_node_is_a_gap_and_no_number(v100: FakeNvml) -> None:
    nvml = gpu(v100)
    assert not isinstance(nvml, Missing)
    assert gap(one(nvml.gpus).gpu_numa_id) is Gap.UNSUPPORTED


def test_board_of_a_k80(k80: FakeNvml) -> None:
    board = one(gpu_board(k80))
    assert (board.pci_device_id, board.pci_subsystem_id) == (0x102D10DE, 0x106C10DE)
    assert (board.compute_capability, board.multi_gpu, board.board_id) == ((3, 7), False, 0x15800000)
    assert (board.inforom_oem, board.inforom_ecc) == ("1.1", "3.0")
    assert gap(board.inforom_power) is Gap.UNSUPPORTED
    assert gap(board.architecture) is Gap.UNSUPPORTED


def test_unknown_architecture_is_a_gap() -> None:
    board = one(gpu_board(box("0000:06:00.0", answers={"nvmlDeviceGetArchitecture": 0xFFFFFFFF})))
    assert gap(board.architecture) is Gap.UNSUPPORTED


def test_pci_link_and_bar1_of_a_k80(k80: FakeNvml) -> None:
    link = one(gpu_pcie(k80))
    assert (link.link_gen, link.link_width, link.max_link_gen, link.max_link_width) == (3, 16, 3, 16)
    assert (link.bar1_total, link.bar1_used) == (16384 * MIB, 2 * MIB)
    assert gap(link.gpu_max_link_gen) is Gap.UNSUPPORTED


def test_reserved_memory_is_known_from_r510_on(k80: FakeNvml, v100: FakeNvml) -> None:
    old, new = one(gpu_memory(k80)), one(gpu_memory(v100))
    assert (old.total, new.total, new.reserved) == (11441 * MIB, 16384 * MIB, 240 * MIB)
    assert gap(old.reserved) is Gap.UNSUPPORTED
    assert (old.ecc, old.ecc_pending) == (True, True)
    assert gap(old.row_histogram.max) is Gap.UNSUPPORTED


def test_rows_of_an_a100(a100: FakeNvml) -> None:
    assert one(gpu_memory(a100)).row_histogram.max == 640
    ecc = one(gpu_ecc(a100))
    assert (ecc.remapped_corrected, ecc.remapped_uncorrected) == (0, 0)
    assert (ecc.remap_pending, ecc.remap_failed) == (False, False)
    assert gap(ecc.retired_single_bit) is Gap.UNSUPPORTED
    assert counted(ecc.aggregate_uncorrected) == {"device_memory", "sram"}


def test_retired_pages_of_a_k80_have_no_time(k80: FakeNvml) -> None:
    ecc = one(gpu_ecc(k80))
    assert (ecc.aggregate_corrected.total, ecc.aggregate_uncorrected.device_memory) == (7, 7)
    assert not isinstance(ecc.retired_double_bit, Missing)
    (page,) = ecc.retired_double_bit
    assert page.address == 0x2CE8A4
    assert gap(page.timestamp) is Gap.UNSUPPORTED
    assert ecc.retirement_pending is False
    assert gap(ecc.remap_failed) is Gap.UNSUPPORTED


def test_retired_pages_of_a_v100(v100: FakeNvml) -> None:
    ecc = one(gpu_ecc(v100))
    assert ecc.retired_single_bit == ()
    assert ecc.retired_double_bit == (RetiredPage(address=0x1D5, timestamp=1546300800),)


def test_the_locations_that_count_tell_kepler_and_volta_apart(k80: FakeNvml, v100: FakeNvml) -> None:
    common = {"total", "l1_cache", "l2_cache", "device_memory", "register_file"}
    assert counted(one(gpu_ecc(k80)).aggregate_uncorrected) == common | {"texture_memory"}
    volta = one(gpu_ecc(v100))
    assert counted(volta.volatile_corrected) == common
    assert counted(volta.volatile_uncorrected) == common | {"cbu"}


def test_clocks_of_a_k80_under_load(k80: FakeNvml) -> None:
    clocks = one(gpu_clocks(k80))
    assert (clocks.current.graphics, clocks.max.graphics, clocks.default_application.graphics) == (810, 875, 562)
    assert (clocks.current.memory, clocks.application.memory, clocks.current.video) == (2505, 2505, 540)
    assert gap(clocks.max_customer_boost.graphics) is Gap.UNSUPPORTED
    assert (clocks.auto_boost, clocks.auto_boost_default, clocks.performance_state) == (True, True, 0)
    assert clocks.reasons == EventReasons(mask=2, active=("applications_clocks_setting",), unknown=0)
    assert clocks.supported == (
        SupportedClocks(memory=2505, graphics=(875, 862, 562)),
        SupportedClocks(memory=324, graphics=(324,)),
    )


def test_clocks_of_an_idle_v100(v100: FakeNvml) -> None:
    clocks = one(gpu_clocks(v100))
    assert (clocks.current.graphics, clocks.default_application.graphics) == (135, 1312)
    assert clocks.max_customer_boost.graphics == 1530
    assert gap(clocks.auto_boost) is Gap.UNSUPPORTED
    assert gap(clocks.supported) is Gap.UNSUPPORTED
    assert clocks.reasons == EventReasons(mask=1, active=("gpu_idle",), unknown=0)


def test_unknown_reasons_are_kept() -> None:
    reasons = event_reasons(0x8000000000000848)
    assert reasons.active == ("hw_slowdown", "hw_thermal_slowdown")
    assert reasons.unknown == 0x8000000000000800


@pytest.mark.parametrize(("state", "expected"), [(8, 8), (15, 15), (32, Gap.UNSUPPORTED), (16, Gap.GARBLED)])
def test_performance_state(state: int, expected: int | Gap) -> None:
    clocks = one(gpu_clocks(box("0000:06:00.0", answers={"nvmlDeviceGetPerformanceState": state})))
    got = clocks.performance_state
    assert (got.gap if isinstance(got, Missing) else got) == expected


def test_power(k80: FakeNvml, v100: FakeNvml) -> None:
    power = one(gpu_power(k80))
    assert (power.usage_mw, power.enforced_limit_mw, power.default_limit_mw) == (135720, 149000, 149000)
    assert (power.min_limit_mw, power.max_limit_mw) == (100000, 175000)
    assert one(gpu_power(v100)).max_limit_mw == 300000


def test_temperatures_by_age(k80: FakeNvml, v100: FakeNvml, a100: FakeNvml) -> None:
    kepler, volta, ampere = (one(gpu_thermal(source)) for source in (k80, v100, a100))
    assert (kepler.gpu_c, kepler.shutdown_c, kepler.slowdown_c) == (64, 110, 88)
    assert gap(kepler.gpu_max_c) is gap(kepler.memory_c) is gap(kepler.fan_percent) is Gap.UNSUPPORTED
    assert (volta.memory_c, volta.memory_max_c, volta.gpu_max_c) == (33, 85, 83)
    assert (ampere.shutdown_c, ampere.slowdown_c, ampere.memory_max_c, ampere.gpu_max_c) == (92, 89, 95, 85)
    assert gap(ampere.margin_c) is Gap.UNSUPPORTED


def test_a_hopper_gives_margins() -> None:
    answers = {f"nvmlDeviceGetFieldValues {193 + n}": value for n, value in enumerate((-8, -2, 0, 0))}
    thermal = one(gpu_thermal(box("0000:06:00.0", answers={**answers, "nvmlDeviceGetMarginTemperature": 54})))
    assert (thermal.shutdown_tlimit_c, thermal.slowdown_tlimit_c, thermal.memory_max_tlimit_c) == (-8, -2, 0)
    assert (thermal.gpu_max_tlimit_c, thermal.margin_c) == (0, 54)


def test_a_margin_read_as_unsigned_is_garbled() -> None:
    thermal = one(gpu_thermal(box("0000:06:00.0", answers={"nvmlDeviceGetFieldValues 193": 2**32 - 8})))
    assert gap(thermal.shutdown_tlimit_c) is Gap.GARBLED


def test_all_bits_set_is_no_number() -> None:
    """What is read of a device that is gone: alone, as one of several outputs, as a member of a struct."""
    questions = ("nvmlDeviceGetTotalEccErrors 1 0", "nvmlDeviceGetCurrentClocksEventReasons")
    several: dict[str, Json] = {
        "nvmlDeviceGetRemappedRows": [2**64 - 1] * 4, "nvmlDeviceGetBAR1MemoryInfo": {"bar1Total": 2**64 - 1},
    }  # fmt: skip
    source = box("0000:06:00.0", answers=several | dict.fromkeys(questions, 2**64 - 1))
    assert gap(one(gpu_ecc(source)).remapped_uncorrected) is Gap.GARBLED
    assert gap(one(gpu_pcie(source)).bar1_total) is Gap.GARBLED
    assert gap(one(gpu_ecc(source)).volatile_uncorrected.total) is Gap.GARBLED
    assert gap(one(gpu_clocks(source)).reasons) is Gap.GARBLED


def test_modes(k80: FakeNvml, v100: FakeNvml, a100: FakeNvml) -> None:
    kepler, volta, ampere = (one(gpu_modes(source)) for source in (k80, v100, a100))
    assert (kepler.persistence, kepler.compute_mode) == (False, 0)
    assert (kepler.display_mode, kepler.display_active) == (False, False)
    assert gap(kepler.mig) is gap(kepler.operation_mode) is gap(kepler.fabric) is Gap.UNSUPPORTED
    assert volta.persistence is True
    assert (ampere.mig, ampere.mig_pending, ampere.recovery_action) == (False, False, 0)


def test_fabric_of_an_nvswitch_machine() -> None:
    uuid = "00000000-0000-0000-0000-000000000000"
    info: dict[str, Json] = {"state": 3, "status": 0, "cliqueId": 0, "clusterUuid": uuid}
    modes = one(gpu_modes(box("0000:06:00.0", answers={"nvmlDeviceGetGpuFabricInfo": info})))
    assert not isinstance(modes.fabric, Missing)
    assert (modes.fabric.state, modes.fabric.status, modes.fabric.clique_id) == (3, 0, 0)
    assert modes.fabric.cluster_uuid == uuid
    modes = one(gpu_modes(box("0000:06:00.0", answers={"nvmlDeviceGetGpuFabricInfo": {"state": 3}})))
    assert not isinstance(modes.fabric, Missing)
    assert gap(modes.fabric.clique_id) is gap(modes.fabric.cluster_uuid) is Gap.UNRECORDED


def test_processes_without_memory_or_name_are_still_there(k80: FakeNvml) -> None:
    activity = one(gpu_processes(k80))
    assert (activity.gpu_percent, activity.memory_percent, activity.graphics) == (99, 29, ())
    assert not isinstance(activity.compute, Missing)
    known, unknown = activity.compute
    assert known == GpuProcess(pid=4242, used_memory=576 * MIB, name="/usr/bin/python3")
    assert unknown.pid == 7
    assert gap(unknown.used_memory) is gap(unknown.name) is Gap.UNSUPPORTED


def test_memory_of_all_ones_is_a_gap() -> None:
    answers: dict[str, Json] = {"nvmlDeviceGetComputeRunningProcesses": [{"pid": 1, "usedGpuMemory": 2**64 - 1}]}
    activity = one(gpu_processes(box("0000:06:00.0", answers=answers)))
    assert not isinstance(activity.compute, Missing)
    assert gap(activity.compute[0].used_memory) is Gap.UNSUPPORTED


def test_affinity(k80: FakeNvml, v100: FakeNvml) -> None:
    near = one(gpu_affinity(v100))
    assert (near.cpulist, near.memory_nodes) == ("0-19,40-59", (0,))
    assert gap(one(gpu_affinity(k80)).cpulist) is Gap.UNSUPPORTED


def test_counters(k80: FakeNvml, v100: FakeNvml) -> None:
    counters = one(gpu_counters(v100))
    assert (counters.pcie_replays, counters.power_ns, counters.clock_us) == (2, 35000000, 1700000000000000)
    assert gap(counters.thermal_ns) is Gap.UNSUPPORTED
    assert one(gpu_counters(k80)).pcie_replays == 0
