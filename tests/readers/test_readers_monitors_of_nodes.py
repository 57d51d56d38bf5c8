"""A BMC's event log, Slurm's reasons, conditions and events of Kubernetes, health events: reconstructed outputs."""

from __future__ import annotations

import json
import re

import pytest
from readers_text import one, unread

from dgxcheck.facts.missing import Json
from dgxcheck.readers.any_text import READERS
from dgxcheck.readers.host import event_log, own_records, schedulers, slurm
from dgxcheck.readers.layout.undo import undone
from dgxcheck.readers.model import Imported

SEL = """\
   1 | 11/02/2026 | 08:00:01 | Event Logging Disabled SEL | Log area reset/cleared | Asserted
   2 | 11/02/2026 | 08:02:11 | System Boot Initiated #0xe0 | Initiated by power up | Asserted
   3 | 11/14/2026 | 21:40:03 | Memory DIMM_P1_C1 | Correctable ECC | Asserted
   4 | 11/15/2026 | 03:12:44 | Memory DIMM_P1_C1 | Uncorrectable ECC | Asserted
   5 | 11/15/2026 | 03:12:45 | Memory DIMM_P1_C1 | Uncorrectable ECC | Asserted
   6 | 11/16/2026 | 10:00:00 | Power Supply PSU3 | Power Supply AC lost | Asserted
   7 | 11/16/2026 | 10:04:10 | Power Supply PSU3 | Power Supply AC lost | Deasserted
   8 | 11/18/2026 | 17:31:09 | Temperature TEMP_GPU4 | Upper Critical going high | Asserted | Reading 95
   9 | Pre-Init  |0000000031| Fan FAN7_R | Lower Critical going low | Asserted | Reading 0 < Threshold 500 RPM
   a | 11/19/2026 | 02:00:00 UTC | Critical Interrupt PCIE_ERR | Bus Fatal Error | Asserted
"""
SINFO = """\
REASON               USER      TIMESTAMP           NODELIST
Xid 79 on GPU 3      root      2026-11-20T02:11:09 dgx017
planned maintenance  admin     2026-11-19T09:00:00 dgx[021-024]
"""
SCONTROL = """\
NodeName=dgx017 Arch=x86_64 CoresPerSocket=64
   CPUAlloc=0 CPUEfctv=256 CPUTot=256 CPULoad=0.11
   Gres=gpu:8
   State=IDLE+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=batch
   Reason=row remap failure on GPU5 [root@2026-11-20T02:11:09]
"""
SINCE = "Fri, 20 Nov 2026 02:11:30 +0000   Thu, 19 Nov 2026 02:11:09 +0000   "
DESCRIBE = f"""\
Conditions:
  Type                 Status  LastHeartbeatTime                 LastTransitionTime                Reason   Message
  ----                 ------  -----------------                 ------------------                ------   -------
  GpuXidError          True    {SINCE}GpuXidErrorIsNotHealthy      ErrorCode:79 XID 79 GPU:3 PCI:0000:3b:00
  GpuInforomWatch      False   {SINCE}GpuInforomWatchIsHealthy     No Health Failures
  MemoryPressure       False   {SINCE}KubeletHasSufficientMemory   kubelet has sufficient memory available
  Ready                True    {SINCE}KubeletReady                 kubelet is posting ready status
"""
EVENTS = """\
LAST SEEN   TYPE      REASON         OBJECT         MESSAGE
5m12s       Warning   NodeNotReady   node/dgx017    Node dgx017 status is now: NodeNotReady
3m          Warning   GpuNvlinkWatch   node/dgx017    GPU:2 NvLink link 5 is currently down
"""
NVSENTINEL = """\
{
  "version": 1,
  "agent": "gpu-health-monitor",
  "componentClass": "GPU",
  "checkName": "GpuInforomWatch",
  "isFatal": true,
  "isHealthy": false,
  "message": "A corrupt InfoROM has been detected in GPU 6",
  "recommendedAction": "CONTACT_SUPPORT",
  "errorCode": ["DCGM_FR_CORRUPT_INFOROM"],
  "entitiesImpacted": [{"entityType": "GPU", "entityValue": "6"}],
  "nodeName": "dgx017"
}
"""
GPUD = """\
{"component": "accelerator-nvidia-error-xid", "startTime": "2026-11-20T00:00:00Z", "events": [
{"name": "error_xid", "type": "Fatal", "message": "XID 48 detected on GPU 2"},
{"name": "reboot", "type": "Info", "message": "system reboot"}]}
"""


def found(output: Imported) -> dict[str, tuple[Json, Json, Json]]:
    """Subject and topic -> outcome, fault, number."""
    return {key.removeprefix("stated report "): (fact["outcome"], fact["fault"], fact["count"])
            for key, fact in output.facts.items() if isinstance(fact, dict)}  # fmt: skip


def test_events_of_a_bmc() -> None:
    output = one(event_log.read, SEL)
    assert found(output) == {
        "host ipmitool-sel-memory": ("note", "", 1), "host ipmitool-sel-memory-2": ("warn", "dimm-errors", 1),
        "host ipmitool-sel-temperature": ("warn", "overheating", 1),
        "host ipmitool-sel-fan": ("warn", "fan", 1),
        "host ipmitool-sel-critical": ("warn", "aer-uncorrectable", 1),
    }  # fmt: skip
    assert unread([output], SEL) == []
    memory = output.facts["stated report host ipmitool-sel-memory-2"]
    assert isinstance(memory, dict)
    assert memory["text"] == "Memory DIMM_P1_C1: Uncorrectable ECC, last 11/15/2026 03:12:45, 2 entries"


def test_numbers_of_events_are_no_numbers_of_lines() -> None:
    """Before the tenth event they could be."""
    few = tuple(line.replace("AC lost | Deasserted", "reset | Asserted") for line in SEL.splitlines()[:8])
    assert undone(few).lines == few


def test_an_hour_may_be_of_twelve() -> None:
    found = one(event_log.read, "6a | 04/12/2024 | 03:27:29 PM CDT | Critical Interrupt | Bus Fatal Error | Asserted")
    (fact,) = found.facts.values()
    assert isinstance(fact, dict)
    assert fact["fault"] == "aer-uncorrectable"


def test_what_is_over_is_no_fault() -> None:
    text = "\n".join(line for line in SEL.splitlines() if "Power Supply" in line or "Boot" in line)
    assert found(one(event_log.read, text)) == {"host ipmitool-sel-events": ("pass", "", 1)}


def test_reasons_of_slurm() -> None:
    drained, maintained = slurm.read_slurm(tuple(SINFO.splitlines()))
    assert (drained.host, found(drained)) == ("dgx017", {"GPU3 Slurm-reason": ("warn", "gpu-lost", 1)})
    assert found(maintained) == {"host Slurm-reason": ("note", "", 1)}
    node = one(slurm.read_slurm, SCONTROL)
    assert (node.host, found(node)) == ("dgx017", {"GPU5 Slurm-reason": ("warn", "remap-failed", 1)})
    assert unread([node], SCONTROL) == []


def test_reasons_of_slurm_in_columns_of_ones_own() -> None:
    text = """\
REASON              NODELIST       STATE
Low RealMemory      gpu[003-004]   drained
gres/gpu count reported lower than configured (7 < 8)gpu009  drained
none                gpu001         idle
"""
    low, _, fine = slurm.read_slurm(tuple(text.splitlines()))
    assert found(low) == {"host Slurm-reason": ("note", "", 1)}
    assert found(fine) == {"host Slurm-conditions": ("pass", "", 1)}
    short = SCONTROL.replace("row remap failure on GPU5", "gres/gpu count reported lower than configured (7 < 8)")
    assert found(one(slurm.read_slurm, short)) == {"host Slurm-reason": ("warn", "gpus-not-offered", 1)}


@pytest.mark.parametrize(
    ("line", "node"),
    [("slurmctld: error: Setting node gpu7 state to INVAL with reason:gres/gpu count reported lower than", "gpu7"),
     ("[2026-11-20T02:11:09.1] update_node: node gpu7 reason set to: gres/gpu count reported lower than", "gpu7"),
     ("slurmd: fatal: can't stat gres.conf file /dev/nvidia3: No such file or directory", "")],
)  # fmt: skip
def test_reasons_in_the_logs_of_slurm(line: str, node: str) -> None:
    output = one(slurm.read_slurm, line)
    assert (output.host, found(output)) == (node, {"host Slurm-reason": ("warn", "gpus-not-offered", 1)})


@pytest.mark.parametrize(("count", "outcome"), [(7, ("warn", "gpus-not-offered", 1)), (8, None)])
def test_gpus_that_kubernetes_offers(count: int, outcome: object) -> None:
    text = f"Capacity:\n  cpu:  96\n  nvidia.com/gpu:  8\nAllocatable:\n  cpu:  95\n  nvidia.com/gpu:  {count}\n"
    assert found(one(schedulers.read_kubernetes, text)).get("host Kubernetes-allocatable") == outcome
    requested = f"{text}Allocated resources:\n  nvidia.com/gpu  1  1\n"
    assert found(one(schedulers.read_kubernetes, requested)).get("host Kubernetes-allocatable") == outcome
    node = 'allocatable:\n  nvidia.com/gpu: "{}"\ncapacity:\n  nvidia.com/gpu: "{}"\n'
    nodes = node.format(count, 8) + node.format(4, 4)  # https://github.com/NVIDIA/k8s-device-plugin/issues/58
    assert found(one(schedulers.read_kubernetes, nodes)).get("host Kubernetes-allocatable") == outcome


def test_a_gpu_that_the_device_plugin_offers_no_more() -> None:
    """https://github.com/NVIDIA/k8s-device-plugin/issues/189"""
    uuid = "GPU-7540a9b3-eeb9-1214-1526-f93c9ea826a8"
    text = f"2020/08/10 19:09:42 'nvidia.com/gpu' device marked unhealthy: {uuid}"
    assert found(one(schedulers.read_health_events, text)) == {
        "host health-monitor-offered": ("warn", "gpus-not-offered", 1)
    }


def test_a_condition_of_gke_and_a_line_of_gpud_name_the_xid() -> None:
    row = f'XidCriticalError  True  {SINCE}{{"48":true}}  0f3a'
    assert found(one(schedulers.read_kubernetes, row)) == {
        "host Kubernetes-xidcriticalerror": ("warn", "ecc-uncorrected", 1)
    }
    said = "XID 79(GPU has fallen off the bus) detected on PCI:0000:5d:00"
    lost = ("fail", "gpu-lost", 1)
    assert found(one(schedulers.read_health_events, said)) == {"0000:5d:00.0 health-monitor-xid": lost}
    beside = f"{said}\nNVRM: Xid (PCI:0000:5d:00): 79, pid=1, GPU has fallen off the bus."
    assert found(one(schedulers.read_health_events, beside)) == {"host health-monitor-conditions": ("pass", "", 1)}
    plugin = f"XidCriticalError: Xid=48 on Device=GPU-{'0' * 8}-0000-0000-0000-{'0' * 12}; marking device as unhealthy"
    (answer,) = found(one(schedulers.read_health_events, plugin)).values()
    assert answer == ("warn", "ecc-uncorrected", 1)


def test_conditions_and_events_of_kubernetes() -> None:
    assert found(one(schedulers.read_kubernetes, DESCRIBE)) == {
        "GPU3 Kubernetes-gpuxiderror": ("fail", "gpu-lost", 1), "host Kubernetes-conditions": ("pass", "", 3),
    }  # fmt: skip
    assert found(one(schedulers.read_kubernetes, EVENTS)) == {
        "host Kubernetes-nodenotready": ("note", "", 1),
        "GPU2 Kubernetes-gpunvlinkwatch": ("warn", "nvlink-reported", 1),
    }  # fmt: skip


def test_an_imex_daemon_that_is_not_ready_is_no_fault_of_nvlinks() -> None:
    """Where no job uses it none runs (NVIDIA/aicr issue 2641)."""
    row = f"GpuNvlinkWatch  True  {SINCE}NotHealthy  ErrorCode:DCGM_FR_IMEX_UNHEALTHY GPU:0 IMEX daemon status is -3"
    assert found(one(schedulers.read_kubernetes, row)) == {"GPU0 Kubernetes-gpunvlinkwatch": ("note", "", 1)}


@pytest.mark.parametrize(
    ("line", "subject", "fault"),
    [
        ("GpuPowerWatch  GpuPowerWatchIsNotHealthy  2m  monitor  ErrorCode:DCGM_FR_CLOCK_THROTTLE_POWER GPU:2"
         " PCI:0001:00:00.0 clocks event due to power violation in GPU 2", "GPU2", "power-violation"),
        ("  ErrorCode:DCGM_FR_IMEX_UNHEALTHY GPU:0 PCI:0000:9d:00.0", "GPU0", ""),
    ],
)  # fmt: skip
def test_a_code_of_nvsentinel_is_read_wherever_it_stands(line: str, subject: str, fault: str) -> None:
    ((key, fact),) = one(schedulers.read_kubernetes, line).facts.items()
    assert isinstance(fact, dict)
    assert (key.split()[2], fact["fault"]) == (subject, fault)


def test_a_gpu_that_go_nvml_calls_lost_is_lost() -> None:
    text = f"failed to get remapped rows for GPU-{'0' * 8}-0000-0000-0000-{'0' * 12}: no answer: ERROR_GPU_IS_LOST"
    (fact,) = one(schedulers.read_health_events, text).facts.values()
    assert isinstance(fact, dict)
    assert (fact["fault"], fact["outcome"]) == ("gpu-lost", "warn")


def test_a_condition_with_other_dates() -> None:
    since = SINCE.replace("Fri, ", "").replace("Thu, ", "")
    row = f"XfsShutdown  True  {since}XfsHasShutdown{' ' * 40}XFS (sda1): Shutting down filesystem."
    assert found(one(schedulers.read_kubernetes, row)) == {"host Kubernetes-xfsshutdown": ("warn", "file-system", 1)}


def test_an_event_that_cites_the_driver_is_of_its_gpu() -> None:
    row = "4m  Warning  GPUXidError  node/n7  NVRM: Xid (PCI:0000:9b:00): 95, pid=0, Uncontained: LTC TAG (0x2,0x0)."
    (answer,) = found(one(schedulers.read_kubernetes, row)).items()
    assert answer == ("0000:9b:00.0 Kubernetes-gpuxiderror", ("warn", "ecc-uncorrected", 1))


def test_health_events() -> None:
    sentinel = one(schedulers.read_health_events, NVSENTINEL)
    assert (sentinel.host, found(sentinel)) == ("dgx017", {"GPU6 NVSentinel-gpuinforomwatch": ("warn", "inforom", 1)})
    healed = NVSENTINEL + NVSENTINEL.replace('"isHealthy": false', '"isHealthy": true')
    assert found(one(schedulers.read_health_events, healed)) == {"host NVSentinel-conditions": ("pass", "", 1)}
    gpud = found(one(schedulers.read_health_events, GPUD))
    assert gpud["GPU2 gpud-accelerator-nvidia-error-xid"][:2] == ("warn", "ecc-uncorrected")


def test_a_health_event_within_a_line_of_a_log() -> None:
    event = '{"checkName": "SysLogsXIDError", "message": "see dmesg", "errorCode": ["48"], "entitiesImpacted": '
    event += '[{"entityType": "PCI", "entityValue": "0002:00:00"}], "nodeName": "n1"}'
    for line in (f'{{"level": "INFO", "events": {{"events": [{event}]}}}}', f'{{"event": {{"HealthEvent": {event}}}}}'):
        output = one(schedulers.read_health_events, line)
        bad = {"0002:00:00.0 NVSentinel-syslogsxiderror": ("warn", "ecc-uncorrected", 1)}
        assert (output.host, found(output)) == ("n1", bad)


@pytest.mark.parametrize("around", ["%s", '{"component": "c", "states": [%s]}'])
def test_states_of_gpud(around: str) -> None:
    state = '{"component": "c", "health": "%s", "reason": "fabric manager found but not active"}'
    bad = found(one(schedulers.read_health_events, around % state % "Unhealthy"))
    assert bad["host gpud-c"][:2] == ("warn", "fabric-manager-down")
    good = found(one(schedulers.read_health_events, around % state % "Healthy"))
    assert {outcome for outcome, _, _ in good.values()} == {"pass"}


SMART = """\
Smart Log for NVME device:nvme2n1 namespace-id:ffffffff
critical_warning                        : 0x9
temperature                             : 41 C (314 Kelvin)
media_errors                            : 3
"""
RAS = """\
Memory controller events summary:
\tCorrected on DIMM Label(s): 'P1_A0' location: 0:0:0:-1 errors: 7
\tFatal on DIMM Label(s): 'P1_B0' location: 0:1:0:-1 errors: 2

PCIe AER events summary:
\t1 Uncorrected (Non-Fatal) errors: Completion Timeout
No MCE errors.
"""


def test_what_disks_and_memory_recorded() -> None:
    disk = one(own_records.read_smart, SMART)
    assert found(disk) == {"host SMART-nvme2n1": ("warn", "disk", 1), "host SMART-nvme2n1-2": ("note", "", 1)}
    assert one(own_records.read_smart, re.sub(" {3,}:", "\t\t\t:", SMART)).facts == disk.facts  # as nvme-cli prints it
    said = disk.facts["stated report host SMART-nvme2n1"]
    assert isinstance(said, dict)
    assert said["text"] == "nvme2n1: critical warning 0x09 (spare below threshold, read-only)"
    assert found(one(own_records.read_smart, SMART.replace("0x9", "0").replace(": 3", ": 0"))) == {
        "host SMART-nvme2n1": ("pass", "", 1)
    }
    failed = "$ smartctl -H /dev/sdb\nSMART overall-health self-assessment test result: FAILED!\n"
    assert found(one(own_records.read_smart, failed)) == {"host SMART-sdb": ("warn", "disk", 1)}
    memory = one(own_records.read_ras, RAS)
    assert found(memory) == {
        "host ras-mc-ctl-errors": ("note", "", 1), "host ras-mc-ctl-errors-2": ("warn", "dimm-errors", 1),
        "host ras-mc-ctl-errors-3": ("warn", "aer-uncorrectable", 1),
    }  # fmt: skip
    assert unread([disk, memory], SMART) == unread([memory], RAS) == []
    error = "4 2026-11-20 02:11:09 +0000 1 %s error(s): memory read error at P1_A0 location: 0:0:0:-1, addr 1"
    table = "Label               \tCE\tUE\nP1_A0\t2\t%d"
    for text, outcome in ((error % "Uncorrected", "warn"), (error % "Corrected", "note"), (table % 1, "warn"),
                          (table % 0, "note"), ("No Memory errors.", "pass")):  # fmt: skip
        assert {how for how, _, _ in found(one(own_records.read_ras, text)).values()} >= {outcome}
    for kind, word in (("ARM processor", "machine-check"), ("Extlog", "dimm-errors")):
        errors = f"{kind} events summary:\n\t2 Uncorrected errors\n"
        assert found(one(own_records.read_ras, errors)) == {"host ras-mc-ctl-errors": ("warn", word, 1)}


@pytest.mark.parametrize("text", [SMART, RAS, SEL, SINFO, SCONTROL, DESCRIBE, EVENTS, NVSENTINEL, GPUD])
def test_nobody_else_reads_them(text: str) -> None:
    tools = {part.tool for reader in READERS for part in reader(tuple(text.splitlines()))}
    assert len(tools) == 1


SENSORS = """\
Inlet Temp       | 24 degrees C      | ok
CPU0 Temp        | 31h | ok  |  3.1 | 45 degrees C
GPU2 Temp        | 93.000     | degrees C  | cr    | na        | na        | 90.000
FAN5             | 0 RPM             | nr
PSU1 Status      | 0x01              | ok
DIMM_F1          | no reading        | ns
"""


def test_sensors_of_a_bmc() -> None:
    output = one(event_log.read_sensors, SENSORS)
    assert found(output) == {
        "host ipmitool-sdr-sensor": ("warn", "overheating", 1), "host ipmitool-sdr-sensor-2": ("warn", "fan", 1)
    }  # fmt: skip
    assert unread([output], SENSORS) == []
    good = SENSORS.replace("| cr", "| ok").replace("| nr", "| ok")
    assert found(one(event_log.read_sensors, good)) == {"host ipmitool-sdr-sensors": ("pass", "", 1)}
    assert event_log.read_sensors(("| GPU0 | passed | ok |", "a | b | cr")) == ()


@pytest.mark.parametrize(
    ("severity", "message", "due"),
    [
        ("Critical", "GPU_SXM_2 has detected errors of type Power Good Fault", ("warn", "test-failed", 1)),
        ("Warning", "The sensor temperature of the inlet is high", ("warn", "overheating", 1)),
        ("Warning", "A user has logged in", ("note", "", 1)), ("OK", "A user has logged in", ("pass", "", 1)),
    ],
)  # fmt: skip
def test_the_log_of_a_bmc_by_redfish(severity: str, message: str, due: tuple[str, str, int]) -> None:
    entry = {"@odata.type": "#LogEntry.v1_9_0.LogEntry", "Severity": severity, "Message": message, "Created": "2026"}
    for text in (json.dumps(entry), json.dumps({"Members": [entry]}, indent=1)):
        output = one(event_log.read_redfish, text)
        assert [*found(output).values()] == [due]


PODS = """\
NAME                                 READY   STATUS                  RESTARTS        AGE
gpu-feature-discovery-a1b2c          0/1     Init:0/1                0               3m
nvidia-driver-daemonset-d3e4f        0/1     CrashLoopBackOff        5 (65s ago)     12m
nvidia-dcgm-exporter-g5h6i           1/1     Running                 0               12m
"""


def test_pods_of_the_gpu_operator_that_do_not_start() -> None:
    output = one(schedulers.read_kubernetes, PODS)
    assert found(output) == {
        "host Kubernetes-pods": ("note", "", 1), "host Kubernetes-pods-2": ("warn", "gpus-not-offered", 1),
        "host Kubernetes-conditions": ("pass", "", 1),
    }  # fmt: skip
    assert unread([output], PODS) == []


def test_a_scan_of_gpud() -> None:
    text = "⌛ scanning the host\n✔ checked 8 nvidia gpu(s)\n✘ only 7 port(s) are active and >=400 Gb/s, expect >=8"
    output = one(schedulers.read_health_events, text)
    assert {fault for outcome, fault, _ in found(output).values() if outcome == "warn"} == {"transfer-unanswered"}
    assert unread([output], text) == []
    assert schedulers.read_health_events(("✘ only 7 port(s) are active",)) == ()
