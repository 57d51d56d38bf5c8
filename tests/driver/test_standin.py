"""The stand-in for NVML, asked through the real binding in a child process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from standin import nvml
from standin.binding import asked, child
from standin.boxes import LOST, A, B, box

from dgxcheck.source.protocol import Json

pytestmark = pytest.mark.skipif(nvml.compiler() is None, reason="no gcc to compile the stand-in with")


def test_text_and_numbers(standin: Path) -> None:
    facts = box(
        Name={"": "Tesla V100-SXM2-16GB"},
        InforomVersion={"1": "5.0"},
        MinorNumber={"": 7},
        PowerUsage={"": 43210},
        NumaNodeId={"": -1},
        ClockInfo={"0": 135, "2": 877},
        EccMode={"": [1, 0]},
        CudaComputeCapability={"": [7, 0]},
        RemappedRows={"": [1, 2, 0, 1]},
        TotalEccErrors={"1 0": 2**63 + 5},
        MemoryErrorCounter={"0 1 7": 9},
        NvLinkCapability={"3 2": 1},
        DisplayMode={"": False},
        PcieReplayCounter={"": 2**32 - 1},
    )
    facts["nvml nvmlSystemGetDriverVersion"] = {"": "550.127.05"}
    facts["nvml nvmlSystemGetProcessName"] = {"4711": "/usr/bin/python3 -u"}
    facts["nvml nvmlSystemGetCudaDriverVersion"] = {"": 12040}
    assert asked(
        standin,
        facts,
        "nvmlDeviceGetCount()",
        "nvmlDeviceGetName(gpu(0))",
        "nvmlDeviceGetInforomVersion(gpu(0), 1)",
        "nvmlDeviceGetMinorNumber(gpu(0))",
        "nvmlDeviceGetPowerUsage(gpu(0))",
        "nvmlDeviceGetNumaNodeId(gpu(0))",
        "nvmlDeviceGetClockInfo(gpu(0), 2)",
        "nvmlDeviceGetEccMode(gpu(0))",
        "nvmlDeviceGetCudaComputeCapability(gpu(0))",
        "nvmlDeviceGetRemappedRows(gpu(0))",
        "nvmlDeviceGetTotalEccErrors(gpu(0), 1, 0)",
        "nvmlDeviceGetMemoryErrorCounter(gpu(0), 0, 1, 7)",
        "nvmlDeviceGetNvLinkCapability(gpu(0), 3, 2)",
        "nvmlDeviceGetDisplayMode(gpu(0))",
        "nvmlDeviceGetPcieReplayCounter(gpu(0))",
        "nvmlSystemGetDriverVersion()",
        "nvmlSystemGetProcessName(4711)",
        "nvmlSystemGetCudaDriverVersion()",
    ) == [
        *(2, "Tesla V100-SXM2-16GB", "5.0", 7, 43210, -1, 877, [1, 0], [7, 0], [1, 2, 0, 1]),
        *(2**63 + 5, 9, 1, 0, 2**32 - 1, "550.127.05", "/usr/bin/python3 -u", 12040),
    ]


def test_any_text_survives_the_table(standin: Path) -> None:
    texts = ["", "-", "!15", "a\tb", "two\nlines", "100% %41", "Größe", " x ", "\x01\x1b["]
    facts = box() | {"nvml nvmlSystemGetProcessName": {str(pid): text for pid, text in enumerate(texts)}}
    assert asked(standin, facts, *(f"nvmlSystemGetProcessName({pid})" for pid in range(len(texts)))) == texts


def test_bytes_that_are_not_utf8_reach_the_binding(standin: Path) -> None:
    name = "n._nvmlGetFunctionPointer('nvmlDeviceGetName')(gpu(0), buffer := ctypes.create_string_buffer(96), 96)"
    answers = asked(standin, box(Name={"": "a\udcff"}), name, "list(buffer.value)")
    assert answers == [0, [97, 255]]


def test_text_longer_than_the_buffer_is_insufficient_size(standin: Path) -> None:
    assert asked(standin, box(Serial={"": "9" * 30}), "nvmlDeviceGetSerial(gpu(0))") == [{"error": 7}]


def test_structs_have_the_layout_of_the_binding(standin: Path) -> None:
    facts = box(
        MemoryInfo={"": {"total": 17179869184, "reserved": 250000000, "free": 16000000000, "used": 1}},
        BAR1MemoryInfo={"": {"bar1Total": 17179869184, "bar1Free": 3, "bar1Used": 2}},
        UtilizationRates={"": {"gpu": 99, "memory": 12}},
        ViolationStatus={"3": {"referenceTime": 10**12, "violationTime": 10**9}},
        RowRemapperHistogram={"": {"max": 640, "high": 4, "partial": 3, "low": 2, "none": 1}},
        Temperature={"0": 41},
        MarginTemperature={"": -3},
        CpuAffinity={"": [2**64 - 1, 5]},
        MemoryAffinity={"0": [2]},
        SupportedMemoryClocks={"": [877, 810]},
        SupportedGraphicsClocks={"877": [1530, 1522], "810": []},
    )
    assert asked(
        standin,
        facts,
        "nvmlDeviceGetMemoryInfo(gpu(0), version=nvmlMemory_v2)",
        "nvmlDeviceGetMemoryInfo(gpu(0))",
        "nvmlDeviceGetBAR1MemoryInfo(gpu(0))",
        "nvmlDeviceGetUtilizationRates(gpu(0))",
        "nvmlDeviceGetViolationStatus(gpu(0), 3)",
        "nvmlDeviceGetRowRemapperHistogram(gpu(0))",
        "[nvmlDeviceGetTemperatureV(gpu(0), 0), nvmlDeviceGetTemperature(gpu(0), 0)]",
        "nvmlDeviceGetMarginTemperature(gpu(0))",
        "nvmlDeviceGetCpuAffinity(gpu(0), 3)",
        "nvmlDeviceGetCpuAffinity(gpu(0), 1)",
        "nvmlDeviceGetMemoryAffinity(gpu(0), 2, 0)",
        "nvmlDeviceGetSupportedMemoryClocks(gpu(0))",
        "[nvmlDeviceGetSupportedGraphicsClocks(gpu(0), mhz) for mhz in (877, 810)]",
        "nvmlDeviceGetMemoryInfo(gpu(0), version=0x03000028)",
    ) == [
        {"version": 0x02000028, "total": 17179869184, "reserved": 250000000, "free": 16000000000, "used": 1},
        {"total": 17179869184, "free": 16000000000, "used": 1},
        {"bar1Total": 17179869184, "bar1Free": 3, "bar1Used": 2},
        {"gpu": 99, "memory": 12},
        {"referenceTime": 10**12, "violationTime": 10**9},
        {"max": 640, "high": 4, "partial": 3, "low": 2, "none": 1},
        [41, 41],
        -3,
        [2**64 - 1, 5, 0],
        [2**64 - 1],
        [2, 0],
        [877, 810],
        [[1530, 1522], []],
        {"error": 25},
    ]


def test_bus_ids_are_spelt_as_nvml_spells_them(standin: Path) -> None:
    peer: dict[str, Json] = {"busId": B, "domain": 1, "bus": 10, "device": 0, "pciDeviceId": 0x1DB110DE}
    facts = box(
        PciInfo={"": {"busId": A, "pciDeviceId": 0x1DB110DE, "pciSubSystemId": 0x121210DE}},
        NvLinkState={"0": 1, "1": 1},
        NvLinkRemotePciInfo={"0": {**peer, "pciSubSystemId": 7}},
    )
    first, other, remote, no_remote, by_id, lower, unknown, old, old_remote = asked(
        standin,
        facts,
        "nvmlDeviceGetPciInfo(gpu(0))",
        "nvmlDeviceGetPciInfo(gpu(1))",
        "nvmlDeviceGetNvLinkRemotePciInfo(gpu(0), 0)",
        "nvmlDeviceGetNvLinkRemotePciInfo(gpu(0), 1)",
        "nvmlDeviceGetPciInfo(nvmlDeviceGetHandleByPciBusId('00000001:0A:00.0')).busId",
        "nvmlDeviceGetPciInfo(nvmlDeviceGetHandleByPciBusId('0000:06:00.0')).busId",
        "nvmlDeviceGetHandleByPciBusId('0000:07:00.0')",
        "old_pci('nvmlDeviceGetPciInfo_v2', 1)",
        "old_pci('nvmlDeviceGetNvLinkRemotePciInfo', 0, 0)",
    )
    assert first == {
        "busIdLegacy": "0000:06:00.0",
        "domain": 0,
        "bus": 6,
        "device": 0,
        "pciDeviceId": 0x1DB110DE,
        "pciSubSystemId": 0x121210DE,
        "busId": "00000000:06:00.0",
    }
    assert isinstance(other, dict)
    assert (other["busId"], other["busIdLegacy"]) == ("00000001:0A:00.0", "0001:0A:00.0")
    assert isinstance(remote, dict)
    assert (remote["busId"], remote["bus"], remote["pciSubSystemId"]) == ("00000001:0A:00.0", 10, 7)
    assert no_remote == {"error": 3}
    assert (by_id, lower, unknown) == ("00000001:0A:00.0", "00000000:06:00.0", {"error": 6})
    assert isinstance(old, dict)
    assert (old["busId"], old["domain"], old["reserved3"]) == ("0001:0A:00.0", 1, 0)
    assert isinstance(old_remote, dict)
    assert old_remote["busId"] == "0001:0A:00.0"


def test_links_and_pairs(standin: Path) -> None:
    facts = box(NvLinkState={"0": 1, "1": 0, "2": {"missing": "unsupported"}}, NvLinkErrorCounter={"0 2": 17})
    facts[f"nvml nvmlDeviceGetTopologyCommonAncestor {A} {B}"] = {"": 30}
    facts[f"nvml nvmlDeviceGetP2PStatus {B} {A}"] = {"2": 5}
    assert asked(
        standin,
        facts,
        "nvmlDeviceGetNvLinkState(gpu(0), 0)",
        "nvmlDeviceGetNvLinkState(gpu(0), 1)",
        "nvmlDeviceGetNvLinkState(gpu(0), 2)",
        "nvmlDeviceGetNvLinkState(gpu(0), 6)",
        "nvmlDeviceGetNvLinkErrorCounter(gpu(0), 0, 2)",
        "nvmlDeviceGetNvLinkErrorCounter(gpu(0), 1, 2)",
        "nvmlDeviceGetTopologyCommonAncestor(gpu(0), gpu(1))",
        "nvmlDeviceGetTopologyCommonAncestor(gpu(1), gpu(0))",
        "nvmlDeviceGetP2PStatus(gpu(1), gpu(0), 2)",
        "nvmlDeviceGetP2PStatus(gpu(0), gpu(1), 2)",
    ) == [1, 0, {"error": 3}, {"error": 2}, 17, {"error": 3}, 30, 30, 5, {"error": 3}]


def test_field_values_carry_their_own_type_and_error(standin: Path) -> None:
    fields: dict[str, Json] = {"82": 44, "193": -5, "7": 2**40, "8": -(2**40), "9": 0.5, "230": LOST}
    values = asked(standin, box(FieldValues=fields), "nvmlDeviceGetFieldValues(gpu(0), [82, 193, 7, 8, 9, 230, 99])")[0]
    assert isinstance(values, list)
    told = [(v["fieldId"], v["nvmlReturn"], v["valueType"]) for v in values if isinstance(v, dict)]
    assert told == [(82, 0, 1), (193, 0, 5), (7, 0, 3), (8, 0, 4), (9, 0, 0), (230, 15, 0), (99, 3, 0)]
    assert [v["value"] for v in values[:4] if isinstance(v, dict)] == [44, -5, 2**40, -(2**40)]
    real = "nvmlDeviceGetFieldValues(gpu(0), [9])[0].value.dVal"
    assert asked(standin, box(FieldValues=fields), real) == [0.5]


def test_retired_pages_with_and_without_timestamps(standin: Path) -> None:
    timed: list[Json] = [{"address": 2**40, "timestamp": 1500000000}, {"address": 4096, "timestamp": 0}]
    bare: list[Json] = [{"address": 77}]
    both = ("nvmlDeviceGetRetiredPages_v2(gpu(0), {})", "nvmlDeviceGetRetiredPages(gpu(0), {})")
    calls = [call.format(cause) for cause in range(3) for call in both]
    assert asked(standin, box(RetiredPages={"0": timed, "1": bare, "2": []}), *calls) == [
        *(timed, [2**40, 4096]),
        *({"error": 13}, [77]),
        *([], []),
    ]


def test_processes(standin: Path) -> None:
    running: list[Json] = [{"pid": 4711, "usedGpuMemory": 2**34}, {"pid": 1, "usedGpuMemory": None}]
    facts = box(ComputeRunningProcesses={"": running}, GraphicsRunningProcesses={"": []})
    no_mig = {"gpuInstanceId": 2**32 - 1, "computeInstanceId": 2**32 - 1}
    full = [item | no_mig for item in running if isinstance(item, dict)]
    assert asked(
        standin,
        facts,
        "nvmlDeviceGetComputeRunningProcesses(gpu(0))",
        "nvmlDeviceGetComputeRunningProcesses_v2(gpu(0))",
        "nvmlDeviceGetGraphicsRunningProcesses(gpu(0))",
        "nvmlDeviceGetGraphicsRunningProcesses(gpu(1))",
    ) == [full, full, [], {"error": 3}]


def test_fabric_in_each_of_its_structs(standin: Path) -> None:
    uuid = "00112233-4455-6677-8899-aabbccddeeff"
    state: dict[str, Json] = {"state": 3, "status": 0, "cliqueId": 1}
    facts = box(GpuFabricInfo={"": {**state, "clusterUuid": uuid, "healthMask": 42, "healthSummary": 2}})
    first, second, third, wrong = asked(
        standin,
        facts,
        "filled(nvmlDeviceGetGpuFabricInfo, 0, FabricInfo())",
        "filled(nvmlDeviceGetGpuFabricInfoV, 0, n.c_nvmlGpuFabricInfo_v2_t())",
        "filled(nvmlDeviceGetGpuFabricInfoV, 0, n.c_nvmlGpuFabricInfo_v3_t())",
        "filled(nvmlDeviceGetGpuFabricInfoV, 0, n.c_nvmlGpuFabricInfo_t())",
    )
    common = {**state, "clusterUuid": list(bytes.fromhex(uuid.replace("-", "")))}
    assert first == common
    assert second == {**common, "version": 0x02000024, "healthMask": 42}
    assert third == {**common, "version": 0x03000028, "healthMask": 42, "healthSummary": 2}
    assert wrong == {"error": 25}


def test_a_gap_becomes_its_error(standin: Path) -> None:
    gaps: list[tuple[Json, int]] = [
        ({"missing": "unsupported"}, 3),
        ({"missing": "denied"}, 4),
        ({"missing": "lost"}, 15),
        ({"missing": "timeout"}, 10),
        ({"missing": "absent"}, 6),
        ({"missing": "garbled"}, 999),
        ({"missing": "unrecorded"}, 3),
        ({"missing": "lost", "detail": "NVML 16: GPU requires restart"}, 16),
        ({"missing": "garbled", "detail": "NVML 14: Corrupted infoROM"}, 14),
        ({"missing": "timeout", "detail": "died: SIGSEGV"}, 10),
        ("no number", 999),
        (None, 999),
    ]
    facts = box(ClockInfo={str(n): gap for n, (gap, _) in enumerate(gaps)})
    answers = asked(standin, facts, *(f"nvmlDeviceGetClockInfo(gpu(0), {n})" for n in range(len(gaps))))
    assert answers == [{"error": code} for _, code in gaps]


def test_a_lost_gpu_has_no_handle(standin: Path) -> None:
    facts = box() | {"nvml nvmlDeviceGetHandleByIndex": {"0": LOST, "1": B}}
    answers = asked(standin, facts, "gpu(0)", "nvmlDeviceGetPciInfo(gpu(1)).bus", "gpu(2)", "gpu(64)")
    assert answers == [{"error": 15}, 10, {"error": 2}, {"error": 2}]


def test_init_fails_as_recorded(standin: Path, tmp_path: Path) -> None:
    gap: Json = {"missing": "absent", "detail": "NVML 9: Driver Not Loaded"}
    nvml.write_answers({"nvml nvmlInit": {"": gap}}, tmp_path / "t")
    ran = child(nvml.environment(standin, tmp_path / "t"), "nvmlInit()", "nvmlDeviceGetCount()")
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [{"error": 9}, {"error": 1}]


def test_init_without_a_table_is_a_driver_that_is_not_loaded(standin: Path, tmp_path: Path) -> None:
    ran = child(nvml.environment(standin, tmp_path / "none"), "nvmlInit()")
    assert json.loads(ran.stdout) == {"error": 9}
    assert "NVML_STANDIN=" in ran.stderr


def test_shutdown_counts_its_users(standin: Path) -> None:
    down = "nvmlShutdown()"
    assert asked(standin, box(), "nvmlInit()", down, "nvmlDeviceGetCount()", down, "nvmlDeviceGetCount()", down) == [
        *(None, None, 2, None, {"error": 1}, {"error": 1}),
    ]
