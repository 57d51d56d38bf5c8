"""Results of NVSM, the field diagnostic, dcgmi stats and policy: what is wrong, of what; monitors are known."""

from __future__ import annotations

import pytest
from readers_text import one, unread

from dgxcheck.facts.missing import Json
from dgxcheck.readers.dcgm import devices, health
from dgxcheck.readers.host import health_checks, services
from dgxcheck.readers.known import read_known
from dgxcheck.readers.model import Imported

HEALTH = """\
Info
----
Timestamp: Mon Mar  2 10:00:00 2026 +0100
Version: 20.09.17
Checks
------
Verify installed DIMM memory sticks.....................................Healthy
Number of logical CPU cores [256].......................................Healthy
GPU link speed [0000:07:00.0][16GT/s]...................................Healthy
GPU link width [0000:0f:00.0][x16]......................................Unhealthy
Health Summary
--------------
3 out of 4 checks are healthy
1 check is unhealthy
Overall system status is unhealthy
"""
ALERT = """\
/systems/localhost/storage/alerts/alert0
Properties:
    system_name = dgx01
    component_id = nvme2n1
    severity = Critical
    state = {}
    message = "drive nvme2n1 reports a media error"
    alert_id = NV-DRIVE-09
Targets:
Verbs:
    show
"""
FANS = """\
nvsm-> show fans
/chassis/localhost/thermal/fans/FAN1_F
Properties:
    Status_State = Enabled
    Status_Health = {}
    Name = FAN1_F
    Reading = 9802 RPM
nvsm->
"""


def results(found: Imported) -> dict[str, tuple[Json, Json]]:
    """Outcome and fault by subject and topic."""
    return {
        key.removeprefix("stated report "): (fact["outcome"], fact["fault"])
        for key, fact in found.facts.items()
        if isinstance(fact, dict)
    }


def bad(found: Imported) -> dict[str, tuple[Json, Json]]:
    return {key: told for key, told in results(found).items() if told[0] != "pass"}


def test_the_checks_of_nvsm() -> None:
    found = one(services.read_nvsm, HEALTH)
    assert unread([found], HEALTH) == []
    assert bad(found) == {"0000:0f:00.0 nvsm-gpu-link-width-0000-0f-00-0-x16": ("fail", "link-tested")}
    assert len(results(found)) == 4


@pytest.mark.parametrize(("name", "subject"), [
    ("GPU3 temperature", "GPU3"), ("GPU link width [0000:0f:00.0]", "0000:0f:00.0"), ("GPU power", "host"),
    ("NVMe link width [0000:0f:00.0]", "host"), ("Temperature of gpu_2", "GPU2"),
])  # fmt: skip
def test_whose_a_check_of_nvsm_is(name: str, subject: str) -> None:
    found = bad(one(services.read_nvsm, f"{name}................................. Unhealthy\n"))
    assert [key.split()[0] for key in found] == [subject]
    assert services.read_nvsm(("Overall system status is fine",)) == ()


def test_a_summary_alone() -> None:
    text = "Health Summary\n--------------\n1 check is unhealthy\nOverall system status is unhealthy\n"
    assert bad(one(services.read_nvsm, text)) == {"host nvsm-status": ("fail", "test-failed")}
    assert not bad(one(services.read_nvsm, "205 out of 205 checks are Healthy\nOverall system status is Healthy\n"))


@pytest.mark.parametrize(("state", "alerts"), [("active", {"host nvsm-nv-drive-09": ("fail", "disk")}),
                                               ("cleared", {})])  # fmt: skip
def test_alerts_of_nvsm(state: str, alerts: dict[str, tuple[str, str]]) -> None:
    found = services.read_nvsm(tuple(f"{ALERT.format(state)}Overall system status is healthy".splitlines()))
    assert [bad(part) for part in found] == [alerts]


@pytest.mark.parametrize(("health", "outcome", "fault"), [("OK", "pass", ""), ("Warning", "warn", "fan"),
                                                          ("Critical", "fail", "fan")])  # fmt: skip
def test_components_of_nvsm(health: str, outcome: str, fault: str) -> None:
    found = one(services.read_nvsm, FANS.format(health))
    assert unread([found], FANS.format(health)) == []
    assert [*results(found).values()] == [(outcome, fault)]


def test_the_greeting_of_dgx_os() -> None:
    line = "The system has {} critical alerts and {} warnings. Use 'sudo nvsm show alerts' for more details."
    assert bad(one(services.read_nvsm, line.format(0, 5))) == {"host nvsm-warnings": ("note", "")}
    assert bad(one(services.read_nvsm, line.format(2, 0))) == {"host nvsm-alerts": ("fail", "test-failed")}
    assert not bad(one(services.read_nvsm, line.format(0, 0)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MODS start: Mon Mar  2 10:00:00 2026\nError Code = 000000000000 (ok)\nMODS end  : Mon Mar  2 [12 s]", {}),
        ("MODS start: Mon Mar  2 10:00:00 2026\nError Code = 010000000083 (Double bit ECC error)",
         {"host field-diagnostic-result": ("fail", "ecc-uncorrected")}),
        ("NVIDIA Field Diagnostic 1.2\nDriver : 550.1\nFinal Result: FAIL",
         {"host field-diagnostic-result": ("fail", "test-failed")}),
        ("NVIDIA Field Diagnostic 1.2\n# Final Result: PASS #", {}),
        ("partnerdiag 2\nResult: RETEST", {"host field-diagnostic-result": ("unknown", "test-failed")}),
    ],
)  # fmt: skip
def test_field_diagnostic(text: str, expected: dict[str, tuple[Json, Json]]) -> None:
    found = one(health_checks.read_field_diagnostic, text)
    assert unread([found], text) == []
    assert bad(found) == expected


def test_a_result_of_another_program_is_none() -> None:
    assert health_checks.read_field_diagnostic(("make test", "Result: FAIL", "Error Code = 000000000083")) == ()


STATS = """\
Successfully retrieved statistics for job: 12.
+------------------------------------------------------------------------------+
| GPU ID: {}                                                                    |
+====================================+=========================================+
|-----  Execution Stats  ------------+-----------------------------------------|
| Start Time                         | Mon Mar  2 10:00:00 2026                |
| Energy Consumed (Joules)           | 1234                                    |
+-----  Event Stats  ----------------+-----------------------------------------+
| Double Bit ECC Errors              | {}                                       |
| Critical XID Errors                | 0                                       |
+-----  Slowdown Stats  -------------+-----------------------------------------+
| Due to - Power (%)                 | 12                                      |
+------------------------------------+-----------------------------------------+
"""


def test_stats_of_a_job() -> None:
    sick = one(health.read_stats, STATS.format(3, 2))
    assert unread([sick], STATS.format(3, 2)) == []
    assert bad(sick) == {"GPU3 dcgmi-stats-double-bit-ecc-errors": ("warn", "ecc-uncorrected")}
    assert not bad(one(health.read_stats, STATS.format(3, 0)))


def test_violations_of_a_policy() -> None:
    text = "Listening for violations.\nTimestamp: Mon Mar  2 10:00:00 2026\nXID error 79 detected.\n"
    found = one(health.read_stats, text)
    assert unread([found], text) == []
    assert bad(found) == {"host dcgmi-policy-violation-xid": ("warn", "xid")}
    assert not bad(one(health.read_stats, "Listening for violations."))


@pytest.mark.parametrize(
    "text",
    [
        "node01        Mon Mar  2 10:00:00 2026  550.54.15\n[0] Tesla V100 | 31'C,   0 % |     5 / 16384 MB |",
        "Device 0 [NVIDIA GeForce RTX 3090] PCIe GEN 3@16x RX: 0.000 KiB/s TX: 0.000 KiB/s",
        "│ NVITOP 1.3.2      Driver Version: 550.54.15      CUDA Driver Version: 12.4 │\n├────────────┤",
        "Error Log Entries for device:nvme0 entries:64\n.................\nEntry[ 0]\nerror_count : 123",
        "Node             SN        Model      Namespace  Usage\n---------------- --------- ----------\n"
        "/dev/nvme0n1     S1        DISK 1     0x1        1.00  TB /   1.00  TB    512   B +  0 B   FW1",
        '# HELP nvidia_gpu_temperature_celsius temperature\nnvidia_gpu_temperature_celsius{uuid="12345678"} 34',
        "I0724 06:31:55.150000       1 factory.go:107] Detected NVML platform: found NVML library\n"
        "I0724 06:31:55.160000       1 server.go:165] Starting GRPC server for 'nvidia.com/gpu'\n"
        "I0724 06:31:55.165000       1 server.go:125] Registered device plugin for 'nvidia.com/gpu' with Kubelet",
        'Device 0: "NVIDIA L40S"\n  CUDA Driver Version / Runtime Version          12.4 / 12.2\n'
        "  (142) Multiprocessors, (128) CUDA Cores/MP:    18176 CUDA Cores\n  Compute Mode:\n"
        "     < Default (multiple host threads can use ::cudaSetDevice() with device simultaneously) >",
    ],
)
def test_monitors_are_known(text: str) -> None:
    found = read_known(tuple(text.splitlines()))
    assert unread(found, text) == []
    assert all("(not used; " in part.tool and not part.facts for part in found)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ('{\n  "body" : { "GPU 0" : { "value" : "x" } },\n  "header" : [ "1 GPU found." ]\n}', "dcgmi -j (not used)"),
        ("+--------+\n| Policy Information      |\n| Violation  | None |\n+--------+", "dcgmi policy (not used)"),
        ("+--------+\n| Instance Hierarchy      |\n| GPU 0      | GPU GPU-5d5ba0d6 (EntityID: 0) |\n+--------+",
         "dcgmi discovery -c (not used; nvidia-smi -L says more)"),
    ],
)
def test_what_dcgmi_prints_of_itself_is_known(text: str, tool: str) -> None:
    lines = tuple(text.splitlines())
    found = (*read_known(lines), *devices.read_unused(lines))
    assert unread(found, text) == []
    assert [(part.tool, part.facts) for part in found] == [(tool, {})]


def test_the_health_as_json_is_read_and_not_only_known() -> None:
    text = '{"body" : {"Overall Health" : {"value" : "Healthy"}}, "header" : ["Health Monitor Report"]}'
    assert devices.read_unused((text,)) == ()
    assert one(health.read_health, text).facts


@pytest.mark.parametrize("text", [
    "START_NODES\nNodeDesc,NumPorts,NodeType\n\"leaf1\",65,2\nEND_NODES\n\n\nSTART_LINKS\nNodeGuid1,PortNum1\n0x1,1\nEND_LINKS",
    "CA   134  1 0x7cfe900300000bde 4x EDR - SW  1719 10 0x7cfe900300000bb0 ( 'gpu01 mlx5_0' - 'leaf01' )",
])  # fmt: skip
def test_outputs_of_a_whole_fabric_name_the_command_for_them(text: str) -> None:
    (found,) = read_known(tuple(text.splitlines()))
    assert found.tool.endswith(" (not used; dgxcheck fabric says more)")
    assert unread([found], text) == []
