"""What DCGM and the exporters say: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from readers_text import assert_read, results

from dgxcheck.assessment.importing.texts import lines as lines_of
from dgxcheck.readers.any_text import outputs
from dgxcheck.readers.dcgm import diag
from dgxcheck.readers.layout.undo import undone

OF_EIGHTEEN = "GPUs:\n" + "".join(
    f"    gpuId {at}:\n        {' '.join('U' * 12)} {'D' if at == 3 else 'U'} U U U U U\n" for at in range(8)
)
"""``dcgmi nvlink -s``, which names no model."""
POLICY = "Listening for violations.\nThe maximum number of retired pages has violated policy manager values.\n"
HEALTH = """\
| Health Monitor Report                                                                |
+===========================+==========================================================+
| Overall Health            | Failure                                                  |
| {:<25} |                                                          |
| -> 1                      | Failure                                                  |
|    -> Errors              |                                                          |
|       -> {:<16} | Failure                                                  |
|                           | {:<56} |
+---------------------------+----------------------------------------------------------+
"""
"""DCGM 4, dcgmi/Health.cpp: entities of each kind have numbers of their own."""
SWITCH = HEALTH.format("Switch", "NVLINK system", "Detected fatal errors on NvSwitch 1 link 12")
CONNECTX = HEALTH.format("ConnectX", "ConnectX system", "ConnectX entity Id:1 uncorrectable fatal errors: 0x4000")
LANES = HEALTH.format("GPU", "PCIe system", "Detected more than 8 PCIe replays per minute for GPU 1")
TREE = """{"body": {"Overall Health": {"value": "Failure"}, "Switch": {"children": {"1": {"children": {"Errors":
{"children": {"NVLINK system": {"children": {"Failure": {"children": {"Detected fatal errors on NvSwitch 1 link 12":
{}}}}}}}}}}}}}
"""
COUNTS = """\
+-----------------------------+------------------------------------------------+
| NVLINK Error Counts                                                          |
| GPU 3                                                                        |
+=============================+================================================+
| Error Detail                |                                                |
| -> Rx Symbol Error          | 0                                              |
| -> Symbol BER               | 1.5e-254                                       |
| -> Effective BER            | {:<46} |
+-----------------------------+------------------------------------------------+
"""
"""DCGM 4, dcgmi/Nvlink.cpp: of GPUs from Blackwell on."""
LINKS = """\
+----------------------+
|  NvLink Link Status  |
+----------------------+
GPUs:
    gpuId 0:
        U U {0} U
    Link Entities:  0:01  1:02
    gpuId 1:
        U U U U
    Link Entities: N/A
NvSwitches:
    No NvSwitches found.
"""
C2C_STATUS = 'DCGM_FI_DEV_C2C_LINK_STATUS{{gpu="{0}",pci_bus_id="0000000{0}:01:00.0",modelName="NVIDIA {1}"}} {2}\n'
EXPORTER = """\
# HELP nvidia_smi_gpu_recovery_action gpu_recovery_action
nvidia_smi_gpu_info{{driver_version="590.48",index="3",name="NVIDIA H200",pci_bus_id="00000000:83:00.0",uuid="1-2"}} 1
nvidia_smi_gpu_recovery_action{{uuid="1-2"}} {}
nvidia_smi_ecc_errors_uncorrected_volatile_total{{uuid="1-2"}} {}
nvidia_smi_remapped_rows_pending{{uuid="1-2"}} {}
nvidia_smi_command_exit_code 0
"""
NOT_IDLE = """\
+---------------------------+------------------------------------------------+
| nvbandwidth               | Fail                                           |
|                           | GPU0: Fail                                     |
| Warning: GPU0             | The memory copy utilization for the GPU: 0 is  |
|                           | greater than 10%. This may affect the results  |
|                           | of the nvbandwidth test.                       |
+---------------------------+------------------------------------------------+
"""
"""DCGM 4.5.0 on idle hosts: https://github.com/NVIDIA/DCGM/issues/272."""
GEMM = "".join(f"GEMM [I] (ADAPTER#{at})  Ending with {{{at}}}.381499904 GFlops\n" for at in range(4))
NODES = """\
Multi-node diagnostic failed.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| MNUBERGEMM Test           | Fail                                           |
| Hosts Found               | 2                                              |
| Host List                 | 0: node-a01.local                              |
|                           | 1: node-a02                                    |
|-----  Host Details  ------+------------------------------------------------|
| Host 0                    | Pass                                           |
|   GPUs: 0, 1              | Pass                                           |
| Host 1                    | Fail                                           |
|   GPU 0                   | Pass                                           |
|   GPU 1                   | Fail                                           |
|                           | Error: wrong results                           |
|-----  Error Summary  -----+------------------------------------------------|
| Host 1 (GPU 1)            | Error: wrong results                           |
+---------------------------+------------------------------------------------+
"""
NODES_JSON = """\
{"DCGM Diagnostic": "DCGM Multi-Node Diagnostic", "hosts": [{"host_id": 0, "hostname": "node-a01"},
{"host_id": 1, "hostname": "node-a02"}], "test_categories": [{"category": "Multi-Node Tests", "tests": [{"name":
"mnubergemm", "status": "Fail", "results": [{"host_id": 0, "entity_group": "GPU", "entity_id": 1, "status": "Pass"},
{"host_id": 1, "entity_group": "GPU", "entity_id": 1, "status": "Fail", "warnings": [{"warning": "wrong results"}]}
]}]}]}
"""
DISCOVERY = "".join(
    f"| {gpu}      | Name: NVIDIA H100 80GB HBM3 |\n|        | PCI Bus ID: 00000000:{gpu + 16:02x}:00.0 |\n"
    for gpu in range(8)
) + "{} NvSwitches found.\n| Switch ID |\n"  # fmt: skip
UNHEALTHY = '{"body": {"Overall Health": {"value": "Failure"}}, "header": ["Health Monitor Report"]}\n'
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "dcgmi health -j, of no watch": (UNHEALTHY, ("fail test-failed inspect",)),
    "dcgmi health -j, healthy before": (UNHEALTHY.replace("Failure", "Healthy") + UNHEALTHY,
                                        ("fail test-failed inspect",)),
    "dcgmi health -j, healthy later": (UNHEALTHY + UNHEALTHY.replace("Failure", "Healthy"),
                                       ("fail test-failed inspect",)),
    "dcgmi health, of no watch": ("| Overall Health | Failure |\n\n| Overall Health | Healthy |\n",
                                  ("fail test-failed inspect",)),
    "the first dcgmi health": ("Overall Health: Failure\n", ("fail test-failed inspect",)),
    "the first dcgmi health, good": ("Overall Health: Healthy\n", ()),
    "dcgmi nvlink -s, one of eighteen": (OF_EIGHTEEN, ("warn nvlink-down drain",)),
    "a policy of DCGM": (POLICY, ("warn pages-many watch",)),
    "dcgmi nvlink -e": (COUNTS.format("4e-09"), ("fail nvlink-errors drain",)),
    "dcgmi nvlink -e, good": (COUNTS.format("1e-15"), ()),
    "dcgmi nvlink -s": (LINKS.format("D"), ("warn nvlink-down drain",)),
    "dcgmi nvlink -s, good": (LINKS.format("U"), ()),
    "dcgmi nvlink -s, a GPU without links": (
        LINKS.format("X").replace("NvSwitches:", "    gpuId 2:\n        _ _ _ _\nNvSwitches:"),
        ("warn nvlink-down drain",)),
    "dcgm-exporter, C2C": (
        "".join(C2C_STATUS.format(gpu, "GB200", 1 - gpu) for gpu in range(2)), ("warn c2c-down inspect",)),
    "dcgm-exporter, no C2C": (C2C_STATUS.format(0, "H100 80GB HBM3", 0), ()),
    "nvidia_gpu_exporter": (EXPORTER.format(1, 0, 0), ("fail reset-required drain",)),
    "nvidia_gpu_exporter, memory": (EXPORTER.format(0, 2, 1), ("fail ecc-uncorrected remap-pending drain",)),
    "nvidia_gpu_exporter, good": (EXPORTER.format(0, 0, 0), ()),
    "nvbandwidth of DCGM that began too early": (NOT_IDLE, ()),
    "ubergemm": (GEMM.format(6698, 19239, 19148, 19256), ("warn slow inspect",)),
    "ubergemm, good": (GEMM.format(19010, 19239, 19148, 19256), ()),
    "dcgmi discovery": (DISCOVERY.format(3), ("fail nvswitch-missing drain",)),
    "dcgmi discovery, good": (DISCOVERY.format(4), ()),
    "dcgmi discovery without NVSwitches": (DISCOVERY.format(0), ()),
    "dcgmi health, an NVSwitch": (SWITCH, ("fail nvswitch-fatal drain",)),
    "dcgmi health -j, an NVSwitch": (TREE, ("fail nvswitch-fatal drain",)),
    "dcgmi health, a ConnectX": (CONNECTX, ("fail aer-uncorrectable inspect",)),
    "dcgmi health, a GPU": (LANES, ("fail pcie-replays inspect",)),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    assert_read(EXPECTED[name], tmp_path)


@pytest.mark.parametrize(("text", "components"), [
    (SWITCH, ["host/host/NVSwitches"]), (TREE, ["host/host/NVSwitches"]), (CONNECTX, ["host/host/PCIe links"]),
    (LANES, ["gpu/GPU1"]),
])
def test_numbers_of_other_entities_are_not_those_of_gpus(text: str, components: list[str], tmp_path: Path) -> None:
    _, found = of_text(text, tmp_path)
    assert [cause["id"] for cause in found["causes"]] == components


@pytest.mark.parametrize("text", [NODES, NODES_JSON])
def test_results_of_several_nodes_are_of_each(text: str) -> None:
    found = {output.host: results(output) for _, output in outputs(undone(lines_of(text.encode(), "f")))}
    assert found["node-a01"].keys() >= {"GPU1 dcgmi-mndiag-mnubergemm"}
    assert {outcome for outcome, _, _ in found["node-a01"].values()} == {"pass"}
    assert found["node-a02"]["GPU1 dcgmi-mndiag-mnubergemm"] == ("fail", "test-failed", 1)


def test_a_test_between_nodes_that_did_not_start_is_no_fault(tmp_path: Path) -> None:
    text = NODES[: NODES.index("| Host List")] + "| MPI Error                 | Error: could not reach node-a02   |\n"
    _, found = of_text(text, tmp_path)
    assert (found["causes"], found["verdict"]) == ([], "unknown")
    document = NODES_JSON.replace('"status": "Fail", "results', '"mpi_error": {"warning": "Error: x"}, "results')
    assert ("host dcgmi-diag-mpi", ("unknown", "", 1)) in results(diag.read_json((*document.splitlines(),))[0]).items()


def test_an_exporter_tells_which_gpu_it_is(tmp_path: Path) -> None:
    _, found = of_text(EXPORTER.format(1, 0, 0), tmp_path)
    assert [cause["id"] for cause in found["causes"]] == ["gpu/0000:83:00.0"]
    alone = [line for line in EXPORTER.format(1, 0, 0).splitlines() if "gpu_info" not in line]
    _, found = of_text("\n".join(alone), tmp_path)
    assert [cause["component"]["kind"] for cause in found["causes"]] == ["gpu"]
