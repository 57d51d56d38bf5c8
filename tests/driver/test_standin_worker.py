"""The stand-in below the worker that asks it: what it is built from, drivers of 2017, a thousand questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standin import nvml
from standin.binding import asked, child, told_by_worker
from standin.boxes import A, Facts, box, full_box

from dgxcheck.facts.nvml.quantities import GROUPS
from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.keys import from_json, to_json

pytestmark = pytest.mark.skipif(nvml.compiler() is None, reason="no gcc to compile the stand-in with")


def test_every_function_of_the_plan_is_served(standin: Path) -> None:
    special = {
        "nvmlDeviceGetGpuFabricInfo": "filled(nvmlDeviceGetGpuFabricInfoV, 0, n.c_nvmlGpuFabricInfo_v2_t())",
        "nvmlDeviceGetSramEccErrorStatus": "nvmlDeviceGetSramEccErrorStatus(gpu(0),"
        " n.byref(n.c_nvmlEccSramErrorStatus_v1_t()))",
        "nvmlDeviceGetPlatformInfo": "nvmlDeviceGetPlatformInfo(gpu(0), n.byref(n.c_nvmlPlatformInfo_v2_t()))",
        "nvmlDeviceGetC2cModeInfo": "nvmlDeviceGetC2cModeInfoV1(gpu(0))",
        "nvmlDeviceGetUnrepairableMemoryFlag": "nvmlDeviceGetUnrepairableMemoryFlag_v1(gpu(0))",
        "nvmlDeviceGetFieldValues": "nvmlDeviceGetFieldValues(gpu(0), [1])[0].nvmlReturn",
        "nvmlDeviceGetCpuAffinity": "nvmlDeviceGetCpuAffinity(gpu(0), 2)",
        "nvmlDeviceGetMemoryAffinity": "nvmlDeviceGetMemoryAffinity(gpu(0), 2, 0)",
    }
    front = {"system": "", "process": "4711", "pair": "gpu(0), gpu(1)", "ordered pair": "gpu(0), gpu(1)"}
    more = {"position": (0,), "link": (0,), "link up": (0,), "memory clock": (877,)}
    calls: dict[str, str] = {}
    for call in (call for group in GROUPS.values() for call in group if call.function != "nvmlDeviceGetPciInfo"):
        args = [str(arg) for arg in more.get(call.scope, ()) + call.args]
        given = ", ".join(filter(None, [front.get(call.scope, "gpu(0)"), *args]))
        calls[call.function] = special.get(call.function, f"{call.function}({given})")
    answers = dict(zip(calls, asked(standin, box(), *calls.values()), strict=True))
    expected: dict[str, Json] = {name: {"error": 2 if "NvLink" in name else 3} for name in calls}
    assert answers == expected | {"nvmlDeviceGetFieldValues": 3}


def test_a_driver_of_2017_has_only_the_symbols_of_its_time(standin_384: Path, tmp_path: Path) -> None:
    memory: Json = {"total": 3, "reserved": 1, "free": 2, "used": 1}
    nvml.write_answers(box(MemoryInfo={"": memory}, CurrentClocksEventReasons={"": 8}), tmp_path / "t")
    ran = child(
        nvml.environment(standin_384, tmp_path / "t"),
        "nvmlInit()",
        "old('nvmlInit_v2')",
        "nvmlDeviceGetPciInfo(gpu(1))",
        "old_pci('nvmlDeviceGetPciInfo_v2', 1).busId",
        "nvmlDeviceGetMemoryInfo(gpu(0), version=nvmlMemory_v2)",
        "nvmlDeviceGetMemoryInfo(gpu(0)).free",
        "nvmlDeviceGetCurrentClocksEventReasons(gpu(0))",
        "nvmlDeviceGetCurrentClocksThrottleReasons(gpu(0))",
        "nvmlDeviceGetComputeRunningProcesses(gpu(0))",
        "hasattr(n.nvmlLib, 'nvmlInitWithFlags')",
    )
    gone = {"error": 13}
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert answers == [gone, None, gone, "0001:0A:00.0", gone, 2, gone, 8, gone, False]


def test_a_symbol_that_never_was_cannot_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nvmlDeviceGetNonsense"):
        nvml.build(tmp_path, without=["nvmlDeviceGetNonsense"])


def test_a_thousand_questions_are_found_again(standin: Path) -> None:
    facts = box(TotalEccErrors={f"{a} {b}": 100 * a + b for a in range(40) for b in range(40)})
    sums = "sum(nvmlDeviceGetTotalEccErrors(gpu(0), a, b) for a in range(40) for b in range(40))"
    assert asked(standin, facts, sums) == [sum(100 * a + b for a in range(40) for b in range(40))]


def by_question(recorded: Facts) -> dict[str, Json]:
    nvml_lines = {key: line for key, line in recorded.items() if key.startswith("nvml ")}
    facts = {f"{key} {args}".rstrip(): fact for key, line in nvml_lines.items() for args, fact in line.items()}
    return {key: to_json(from_json(fact, key)) for key, fact in facts.items()}  # gaps with their codes


def test_the_worker_gets_back_what_a_recording_holds(standin: Path, tmp_path: Path) -> None:
    facts = full_box()
    nvml.write_answers(facts, tmp_path / "t")
    assert told_by_worker(nvml.environment(standin, tmp_path / "t"), tuple(GROUPS)) == by_question(facts)


def test_the_worker_on_a_driver_of_2017_loses_only_what_came_later(standin_384: Path, tmp_path: Path) -> None:
    facts = full_box()
    nvml.write_answers(facts, tmp_path / "t")
    held = by_question(facts)
    told = told_by_worker(nvml.environment(standin_384, tmp_path / "t"), tuple(GROUPS))
    assert told.keys() == held.keys()
    changed = {key.split(" ")[1].removeprefix("nvmlDeviceGet") for key in held if told[key] != held[key]}
    shorter = {"PciInfo", "NvLinkRemotePciInfo", "MemoryInfo", "RetiredPages"}
    later = {"NumaNodeId", "NvLinkRemoteDeviceType", "Architecture", "GpuMaxPcieLinkGeneration", "MigMode"}
    later |= {"RowRemapperHistogram", "RemappedRows", "MarginTemperature", "GpuFabricInfo", "MemoryAffinity"}
    later |= {"SramEccErrorStatus", "RepairStatus", "UnrepairableMemoryFlag", "GspFirmwareVersion", "ModuleId"}
    later |= {"PlatformInfo", "C2cModeInfo", "AddressingMode"}
    assert changed == shorter | later
    assert told[f"nvml nvmlDeviceGetRetiredPages {A} 0"] == [{"address": 2**40}, {"address": 2**41}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=5))
def test_the_table_is_sorted_and_one_line_per_answer(line: dict[str, Json]) -> None:
    table = nvml.answer_table({"nvml nvmlDeviceGetName 0000:06:00.0": line, "/sys": {"text": "no NVML fact"}})
    questions = [row.split(b"\t")[0] for row in table.split(b"\n")[:-1]]
    assert questions == sorted(questions)
    assert len(questions) == len({args.rstrip() for args in line})
