"""dcgmi: each test that failed is said of its GPU, with the fault that its message names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from readers_text import one, unread

from dgxcheck.readers.dcgm import devices, diag, health
from dgxcheck.readers.model import Imported

TABLE = """\
Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 3.3.5                                          |
|-----  Deployment  --------+------------------------------------------------|
| Denylist                  | Pass                                           |
| Inforom                   | Skip                                           |
+-----  Integration  -------+------------------------------------------------+
| PCIe                      | Pass - All                                     |
+-----  Hardware  ----------+------------------------------------------------+
| GPU Memory                | Pass - GPUs: 0, 1, 3                           |
|                           | Fail - GPU: 2                                  |
| Warning                   | GPU 2 has uncorrectable memory errors and row  |
|                           |  remappings are pending                        |
| Diagnostic                | Fail - GPUs: 1, 3                              |
+---------------------------+------------------------------------------------+
"""
FOUR = """\
| memory                    | Pass                                           |
|                           | GPU0: Pass                                     |
|                           | GPU1: Fail                                     |
| Warning: GPU1             | GPU 1 Thermal violations totaling 13.3 s       |
"""


def bad(found: Imported) -> dict[str, str]:
    return {
        key.removeprefix("stated report "): str(fact["fault"])
        for key, fact in found.facts.items()
        if isinstance(fact, dict) and fact["outcome"] != "pass"
    }


def test_the_table() -> None:
    found = one(diag.read_diag, TABLE)
    assert unread([found], TABLE) == []
    assert bad(found) == {
        "GPU2 dcgmi-diag-gpu-memory": "remap-pending",
        "GPU1 dcgmi-diag-diagnostic": "test-failed",
        "GPU3 dcgmi-diag-diagnostic": "test-failed",
    }
    assert found.facts["stated report GPU0 dcgmi-diag-gpu-memory"]
    assert "stated report host dcgmi-diag-inforom" not in found.facts  # skipped is no result


def test_the_message_is_put_together_again() -> None:
    fact: Any = one(diag.read_diag, TABLE).facts["stated report GPU2 dcgmi-diag-gpu-memory"]
    assert fact["text"].endswith("uncorrectable memory errors and row remappings are pending")


def test_dcgm_4_names_gpus_below_the_test() -> None:
    assert bad(one(diag.read_diag, FOUR)) == {"GPU1 dcgmi-diag-memory": "thermal-slowdown"}


@pytest.mark.parametrize(("rows", "faults"), [
    (("PCIe|Fail", "Warning|GPU 2's NvLink link 3 is currently down"), {"GPU2 dcgmi-diag-pcie": "nvlink-reported"}),
    (("PCIe|Fail", "Info|GPU 2's NvLink link 3 is currently down"), {"host dcgmi-diag-pcie": "test-failed"}),
    (("PCIe|Pass", "Info|GPU 2 has uncorrectable memory errors"), {}),
    (("PCIe|Pass", "Warning|GPU 2 has uncorrectable memory errors"), {}),
])  # fmt: skip
def test_a_message_is_of_the_test_above(rows: tuple[str, ...], faults: dict[str, str]) -> None:
    text = "".join(f"| {left:25} | {right:46} |\n" for left, _, right in (row.partition("|") for row in rows))
    found = one(diag.read_diag, text)
    assert (bad(found), unread([found], text)) == (faults, [])


def test_a_message_alone_counts_where_it_names_a_gpu() -> None:
    rows = ("uncorrectable memory errors were found", "GPU 2 has uncorrectable memory errors", "GPU 2 failed")
    found = [diag.read_diag((f"| {'Warning':25} | {row:46} |",)) for row in rows]
    assert [[*bad(part)] for parts in found for part in parts if part.facts] == [["GPU2 dcgmi-diag-test"]]


@pytest.mark.parametrize("cut", range(200, len(TABLE), 53))
def test_a_cut_table_blames_no_gpu_that_the_whole_does_not(cut: int) -> None:
    gpus = {key.split()[0] for key in bad(one(diag.read_diag, TABLE))}
    for text in (TABLE[:cut], TABLE[cut:]):
        for part in diag.read_diag(tuple(text.splitlines())):
            assert {key.split()[0] for key in bad(part)} <= gpus


BUSY = "CUDA-capable device(s) is/are busy or unavailable"


@pytest.mark.parametrize(
    ("message", "outcome", "fault"),
    [
        (BUSY, "unknown", ""), ("could not allocate memory on the GPU", "unknown", ""),
        ("the GPU is in exclusive process mode", "unknown", ""),
        ("the provided PTX was compiled with an unsupported toolchain. Reset GPU.", "unknown", ""),
        ("is running at PCI link width 8X, which is below the minimum allowed link width of 16", "fail",
         "link-tested"),
        ("Thermal violations totaling 0.0 seconds started at 30.0 seconds into the test for GPU 0", "warn",
         "thermal-slowdown"),
        ("Thermal violations totaling 3.2 seconds started at 30.0 seconds into the test for GPU 0", "fail",
         "thermal-slowdown"),
        ("uncorrectable memory errors were found", "fail", "ecc-uncorrected"), ("it failed", "fail", "test-failed"),
    ],
)  # fmt: skip
def test_a_test_that_something_kept_from_running_blames_no_gpu(message: str, outcome: str, fault: str) -> None:
    table = f"| GPU Memory                | Fail - GPU: 0 |\n| Warning                   | GPU 0 {message} |"
    text = f"+-----  Hardware  ----------+---------------+\n{table}\n+---------------------------+---------------+"
    result = {"gpu_id": "0", "status": "Fail", "warnings": [{"warning": message}]}
    tests = [{"category": "Hardware", "tests": [{"name": "GPU Memory", "results": [result]}]}]
    document = json.dumps({"DCGM Diagnostic": {"test_categories": tests}})
    for found in (one(diag.read_diag, text), one(diag.read_json, document)):
        (told,) = [fact for fact in found.facts.values() if isinstance(fact, dict)]
        assert (told["outcome"], told["fault"]) == (outcome, fault)


def test_json_of_3_and_4() -> None:
    three = {"gpu_ids": "2", "status": "FAIL", "warnings": ["GPU 2's NvLink link 3 is currently down"]}
    four = {"entity_group": "GPU", "entity_id": 5, "status": "Fail", "warnings": [{"warning": "PCIe replay count"}]}
    software = {"status": "Fail", "warnings": [{"warning": "Pending page retirements were detected on GPU 7."}]}
    plain = [{"gpu_ids": "3", "status": "Not Run"}, {"gpu_ids": "4", "status": "FAIL"},
             {"gpu_ids": "6", "status": "FAIL", "warnings": "PCIe replay count"},
             {"gpu_ids": "1", "status": "FAIL", "warnings": [6]}]  # fmt: skip
    tests = [{"name": "PCIe", "results": [three, four, {"gpu_ids": "0,1", "status": "PASS"}]},
             {"name": "Mem", "results": plain},
             {"name": "Remap", "results": [software]}]  # fmt: skip
    text = json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Integration", "tests": tests}]}}, indent=1)
    found = one(diag.read_json, text)
    assert bad(found) == {"GPU2 dcgmi-diag-pcie": "nvlink-reported", "GPU5 dcgmi-diag-pcie": "pcie-replays",
                          "GPU7 dcgmi-diag-remap": "retirement-pending", "GPU4 dcgmi-diag-mem": "test-failed",
                          "GPU6 dcgmi-diag-mem": "pcie-replays", "GPU1 dcgmi-diag-mem": "test-failed"}  # fmt: skip
    assert unread([found], text) == []


def test_nvlinks() -> None:
    text = "+---+\n|  NvLink Link Status  |\nGPUs:\n    gpuId 0:\n        U D X _\n    gpuId 1:\n        _ _ _ _\n"
    text += "    gpuId 64:\n        U U U U\n"
    facts = one(devices.read_nvlink, text).facts
    assert facts == {
        "stated nvlink GPU0 0": "up", "stated nvlink GPU0 1": "<inactive>", "stated nvlink GPU0 2": "<inactive>",
        "stated nvlink GPU1": "none",
    }  # fmt: skip


def test_health_as_table_and_in_a_log() -> None:
    table = """\
| Overall Health            | Warning                                                  |
| GPU                       |                                                          |
| -> 3                      | Warning                                                  |
|    -> Errors              |                                                          |
|       -> PCIe system      | Warning                                                  |
|                           | Detected more than 8 PCIe replays per minute for GPU 3   |
"""
    for healthy in ("| Overall Health            | Healthy     |", "| Overall Health: Healthy   |             |"):
        found = one(health.read_health, healthy)
        assert (bad(found), [*found.facts]) == ({}, ["stated report host dcgmi-health-overall"])
    assert bad(one(health.read_health, table)) == {"GPU3 dcgmi-health-pcie": "pcie-replays"}
    nothing = f"{table}|       -> Thermal system   | Warning                                                  |\n"
    assert bad(one(health.read_health, nothing)) == {"GPU3 dcgmi-health-pcie": "pcie-replays"}
    old = "| Overall Health: Warning |         |\n| 2 - PCIe system | Warning - Detected more than 8 PCIe replays |\n"
    assert bad(one(health.read_health, old)) == {"GPU2 dcgmi-health-pcie": "pcie-replays"}
    of_host = "ERROR Detected a FAILURE in health system NVSwitch: 'Detected fatal errors on NvSwitch 2 link 4'"
    assert bad(one(health.read_health, of_host)) == {"host dcgmi-health-nvswitch": "nvswitch-fatal"}
    logged = "ERROR Detected a WARNING in health system Thermal: 'clocks event due to thermal violation in GPU 2.'"
    by_reason = "ERROR Detected a WARNING in health system Thermal: 'clocks_throttle_reason_sw_thermal_slowdown, GPU 2'"
    for line in (logged, by_reason):
        assert bad(one(health.read_health, line)) == {"GPU2 dcgmi-health-thermal": "thermal-slowdown"}


FIRST = """\
+------------------+--------------------------------------------+
| Health Monitor Report                                         |
+==================+============================================+
| Overall Health: Warning                                       |
+==================+============================================+
| GPU ID: 0        | Warning                                    |
|                  | PCIe system: Warning - Detected more than  |
|                  | 8 PCIe replays per minute for GPU 0: 13    |
|                  | Thermal system: Warning - clocks event due |
|                  | to thermal violation in GPU 0              |
+------------------+--------------------------------------------+
"""
BARE = """\
Health Monitor Report
Overall Health: Warning
GPU ID: 0 Warning
PCIe system: Warning - Detected more than 8 PCIe replays per minute for GPU 0: 13
"""


def test_a_watch_of_the_first_tables_is_named_in_the_cell_of_its_text() -> None:
    found = one(health.read_health, FIRST)
    assert bad(found) == {"GPU0 dcgmi-health-pcie": "pcie-replays", "GPU0 dcgmi-health-thermal": "thermal-slowdown"}
    assert unread([found], FIRST) == []
    found = one(health.read_health, BARE)
    assert bad(found) == {"GPU0 dcgmi-health-pcie": "pcie-replays"}
    assert unread([found], BARE) == []


@pytest.mark.parametrize("table", [
    "| Health Monitor Report |\n+====+\n| Overall Health | Healthy |\n+----+\n",
    "Health Monitor Report\nOverall Health: Healthy\n\n",
])  # fmt: skip
def test_what_another_tool_says_of_a_system_is_no_watch(table: str) -> None:
    other = "$ cat site.log\nGPU ID: 3\nCooling system: Warning - filter is due\nStorage system: Failure of node r12\n"
    assert [bad(found) for found in health.read_health(tuple(f"{table}{other}".splitlines()))] == [{}]


@pytest.mark.parametrize("word", ["Healthy", "Warning", "Failure"])
def test_an_overall_health_without_frame_is_dcgms_below_its_title_or_alone(word: str) -> None:
    line = f"Overall Health: {word}"
    for own in (("", line), ("Health Monitor Report", line, "Errors: 5")):
        (found,) = health.read_health(own)
        assert [*found.facts] == ["stated report host dcgmi-health-overall"]
    assert health.read_health(("Server: ilo", line, "Fans: OK")) == ()


def test_discovery() -> None:
    text = """\
2 GPUs found.
| GPU ID | Device Information                                                   |
| 0      | Name: Tesla V100-SXM2-16GB                                           |
|        | PCI Bus ID: 00000000:07:00.0                                         |
| 1      | Name: Tesla V100-SXM2-16GB                                           |
|        | PCI Bus ID: 00000000:0A:00.0                                         |
| 2      | PCI Bus ID: 00000000:0B:00.0                                         |
|        | Device UUID: GPU-00000000-0000-4000-8000-000000000002                |
+--------+----------------------------------------------------------------------+
0 NvSwitches found.
+-----------+
| Switch ID |
+-----------+
1 CPUs found.
| CPU ID | Device Information                                                   |
| 0      | Name: Grace TH500                                                    |
|        | Cores: 0-71                                                          |
"""
    found = one(devices.read_discovery, text)
    assert found.facts["nvml nvmlDeviceGetHandleByIndex 1"] == "0000:0a:00.0"
    assert found.facts["nvml nvmlDeviceGetHandleByIndex 2"] == "0000:0b:00.0"
    assert sum(key.startswith("nvml nvmlDeviceGetName") for key in found.facts) == 2
    assert unread([found], text) == []


COUNTS = """\
+-----------------------------+------------------------------------------------+
| NVLINK Error Counts                                                          |
| GPU 3                                                                        |
+=============================+================================================+
| Link 0                      |                                                |
| -> CRC FLIT Error           | 7                                              |
| -> CRC Data Error           | 0                                              |
| -> Replay Error             | 2                                              |
| -> Recovery Error           | N/A                                            |
+-----------------------------+------------------------------------------------+
"""
PATHS = """\
+-------------------+--------------------------------------------------------+
| GPU ID: 0         | Topology Information                                   |
+===================+========================================================+
| CPU Core Affinity | 0 - 11                                                 |
+-------------------+--------------------------------------------------------+
| To GPU 1          | Connected via an on-board PCIe switch                  |
|                   | Connected via two NVLINKs (Links: 0, 1)                |
| To GPU 2          | Connected via a CPU-level link                         |
+-------------------+--------------------------------------------------------+
"""
FRAGMENT = """\
\t"DCGM GPU Diagnostic" :
\t{
\t\t"test_categories" :
\t\t[
\t\t\t{"..."},
\t\t\t{ "category" : "Hardware", "tests" : [ { "name" : "GPU Memory", "results" : [
\t\t\t\t{ "gpu_id" : "0", "status" : "Pass" },
\t\t\t\t{ "gpu_id" : "5", "status" : "Fail", "warnings" : [ { "warning" : "GPU 5 had uncorrectable errors",
\t\t\t\t\t"error_id" : 12 } ] },
\t\t\t\t{ "gpu_id" : "6", "status" : "Fa
"""


def test_error_counts_of_nvlinks_are_those_of_nvidia_smi() -> None:
    found = one(devices.read_nvlink, COUNTS)
    assert unread([found], COUNTS) == []
    assert found.facts == {"stated nvlink-errors GPU3 0 2": 7, "stated nvlink-errors GPU3 0 0": 2}
    for unnamed in (COUNTS.replace("| GPU 3 ", "| GPUs  "), COUNTS.replace("| Link 0", "| Links ")):
        assert [fact for part in devices.read_nvlink(tuple(unnamed.splitlines())) for fact in part.facts] == []


@pytest.mark.parametrize(("name", "value", "outcome"), [
    ("Symbol BER", "1e-12", "pass"), ("Symbol BER", "1.1e-12", "fail"), ("Symbol BER", "0", "pass"),
    ("Rx Errors", "5", ""),
])  # fmt: skip
def test_bit_errors_of_all_links_of_a_gpu(name: str, value: str, outcome: str) -> None:
    text = f"| NVLINK Error Counts      |\n| GPU 3                    |\n| -> {name}           | {value}          |\n"
    facts = [fact for part in devices.read_nvlink(tuple(text.splitlines())) for fact in part.facts.values()]
    assert [fact["outcome"] for fact in facts if isinstance(fact, dict)] == ([outcome] if outcome else [])
    unnamed = text.replace("| GPU 3 ", "| GPUs  ")
    assert not [part for part in devices.read_nvlink(tuple(unnamed.splitlines())) if part.facts]


def test_a_path_is_of_two_gpus() -> None:
    lines = PATHS.splitlines()
    for text in (PATHS.replace("GPU ID: 0", "GPU     "), "\n".join(lines[:5] + lines[6:7])):
        assert [key for part in devices.read_topo(tuple(text.splitlines())) for key in part.facts] == []


@pytest.mark.parametrize(("many", "listed"), [(64, 64), (65, 0)])
def test_models_of_the_gpus_that_were_tested(many: int, listed: int) -> None:
    row = f"| GPU Device IDs Detected   | {', '.join(['20b0'] * many)} |"
    found = one(diag.read_diag, f"{TABLE}{row}\n").facts
    assert sum(key.startswith("nvml nvmlDeviceGetHandleByIndex") for key in found) == listed


@pytest.mark.parametrize(("result", "many"), [
    ('"gpu_id" : "5", "status" : "Fail"', 1), ('"status" : "Fail"', 0), ('"gpu_id" : "5"', 0),
])  # fmt: skip
def test_a_result_has_a_gpu_and_a_status(result: str, many: int) -> None:
    broken = FRAGMENT.replace('"gpu_id" : "5", "status" : "Fail"', result)
    assert len(bad(one(diag.read_json, broken))) == many


def test_paths_of_one_gpu() -> None:
    found = one(devices.read_topo, PATHS)
    assert unread([found], PATHS) == []
    cut = PATHS.partition("\n")[2] + "| Weather           | fine                    |\n"
    assert unread([one(devices.read_topo, cut)], cut) == [len(cut.splitlines())]
    assert min(one(devices.read_topo, PATHS.partition("\n")[2]).understood) == 0
    assert found.facts == {"stated label-pci GPU0 GPU1": "PIX", "stated label GPU0 GPU1": "NV2"}


def test_json_that_is_none_gives_the_results_that_are_whole() -> None:
    found = one(diag.read_json, FRAGMENT)
    assert unread([found], FRAGMENT) == []
    assert bad(found) == {"GPU5 dcgmi-diag-gpu-memory": "ecc-uncorrected"}
    assert "stated report GPU0 dcgmi-diag-gpu-memory" in found.facts


_OF_DCGM_2 = {"children": {"Failure": {"value": "GPU 2's NvLink link 0 is currently down"}}}
_OF_DCGM_3 = {"overflow": ["GPU 2's NvLink link 0 is", "currently down"]}


@pytest.mark.parametrize(("overall", "row"), [("Healthy", {}), ("Failure", _OF_DCGM_2), ("Failure", _OF_DCGM_3)])
def test_health_as_json(overall: str, row: dict[str, Any]) -> None:
    gpu = {"value": overall, "children": {"Errors": {"children": {"NVLINK system": {"value": overall, **row}}}}}
    below = {"Errors": 5} if overall == "Healthy" else {"GPU": {"children": {"2": gpu}}}
    body = {"Overall Health": {"value": overall}, **below}
    found = one(health.read_health, json.dumps({"body": body, "header": ["Health Monitor Report"]}, indent=1))
    assert bad(found) == ({} if overall == "Healthy" else {"GPU2 dcgmi-health-nvlink-system": "nvlink-reported"})


def test_rows_below_each_other_have_an_end() -> None:
    row: dict[str, Any] = {"value": "Failure", "children": {"Failure": {"value": "an error"}}}
    found = []
    for _ in range(50):
        body = {"Overall Health": {"value": "Healthy"}, "GPU ID: 1": row}
        found.append(bool(bad(one(health.read_health, json.dumps({"body": body})))))
        row = {"value": "Healthy", "children": {"GPU ID: 2": row}}
    assert found == [True] * 8 + [False] * 42


@pytest.mark.parametrize(("end", "due"), [("and temperatur", "temperatures above"), ("at            ", "at es above")])
def test_a_short_row_ends_at_a_blank_and_a_full_one_within_a_word(end: str, due: str) -> None:
    full = f"| Warning                   | GPU 1 has uncorrectable errors {end}  |"
    text = one(diag.read_diag, f"{FOUR.rpartition('| Warning')[0]}{full}\n|                           | es above |")
    (fact,) = [value for value in text.facts.values() if isinstance(value, dict) and value["outcome"] == "fail"]
    assert str(fact["text"]).endswith(due)
