"""Slurm's reasons, conditions and events of Kubernetes, health events: reconstructed outputs."""

from __future__ import annotations

import pytest
from readers_text import one, results, unread

from dgxcheck.readers.any_text import READERS
from dgxcheck.readers.host import health_agents, schedulers, slurm

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
WIDE = """\
NAMESPACE   LAST SEEN   TYPE      REASON           OBJECT        SUBOBJECT   SOURCE   MESSAGE
default     3m          Warning   GpuNvlinkWatch   node/dgx017     health, dgx017   GPU:2 NvLink link 5 is down
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


def test_reasons_of_slurm() -> None:
    drained, maintained, *others = slurm.read_slurm(tuple(SINFO.splitlines()))
    assert [each.host for each in (maintained, *others)] == ["dgx021", "dgx022", "dgx023", "dgx024"]
    assert (drained.host, results(drained)) == ("dgx017", {"GPU3 Slurm-reason": ("warn", "gpu-lost", 1)})
    assert results(maintained) == {"host Slurm-reason": ("note", "", 1)}
    node = one(slurm.read_slurm, SCONTROL)
    assert (node.host, results(node)) == ("dgx017", {"GPU5 Slurm-reason": ("warn", "remap-failed", 1)})
    assert unread([node], SCONTROL) == []
    sound = one(slurm.read_slurm, SCONTROL.replace("+DRAIN", "").partition("   Reason")[0])
    assert (sound.host, results(sound)) == ("", {"host Slurm-conditions": ("pass", "", 1)})


def test_reasons_of_slurm_in_columns_of_ones_own() -> None:
    text = """\
REASON              NODELIST       STATE
Low RealMemory      gpu[003-004]   drained
gres/gpu count reported lower than configured (7 < 8)gpu009  drained
none                gpu001         idle
"""
    low, _, _, fine = slurm.read_slurm(tuple(text.splitlines()))
    assert results(low) == {"host Slurm-reason": ("note", "", 1)}
    assert results(fine) == {"host Slurm-conditions": ("pass", "", 1)}
    short = SCONTROL.replace("row remap failure on GPU5", "gres/gpu count reported lower than configured (7 < 8)")
    assert results(one(slurm.read_slurm, short)) == {"host Slurm-reason": ("warn", "gpus-not-offered", 1)}


@pytest.mark.parametrize(
    ("line", "node"),
    [("slurmctld: error: Setting node gpu7 state to INVAL with reason:gres/gpu count reported lower than", "gpu7"),
     ("[2026-11-20T02:11:09.1] update_node: node gpu7 reason set to: gres/gpu count reported lower than", "gpu7"),
     ("slurmd: fatal: can't stat gres.conf file /dev/nvidia3: No such file or directory", "")],
)  # fmt: skip
def test_reasons_in_the_logs_of_slurm(line: str, node: str) -> None:
    output = one(slurm.read_slurm, line)
    assert (output.host, results(output)) == (node, {"host Slurm-reason": ("warn", "gpus-not-offered", 1)})


@pytest.mark.parametrize(("count", "outcome"), [(7, ("warn", "gpus-not-offered", 1)), (8, None)])
def test_gpus_that_kubernetes_offers(count: int, outcome: object) -> None:
    text = f"Capacity:\n  cpu:  96\n  nvidia.com/gpu:  8\nAllocatable:\n  cpu:  95\n  nvidia.com/gpu:  {count}\n"
    assert results(one(schedulers.read_kubernetes, text)).get("host Kubernetes-allocatable") == outcome
    requested = f"{text}Allocated resources:\n  nvidia.com/gpu  1  1\n"
    assert results(one(schedulers.read_kubernetes, requested)).get("host Kubernetes-allocatable") == outcome
    node = 'allocatable:\n  nvidia.com/gpu: "{}"\ncapacity:\n  nvidia.com/gpu: "{}"\n'
    nodes = node.format(count, 8) + node.format(4, 4)  # https://github.com/NVIDIA/k8s-device-plugin/issues/58
    assert results(one(schedulers.read_kubernetes, nodes)).get("host Kubernetes-allocatable") == outcome


def test_a_gpu_that_the_device_plugin_offers_no_more() -> None:
    """https://github.com/NVIDIA/k8s-device-plugin/issues/189"""
    uuid = "GPU-7540a9b3-eeb9-1214-1526-f93c9ea826a8"
    text = f"2020/08/10 19:09:42 'nvidia.com/gpu' device marked unhealthy: {uuid}"
    assert results(one(schedulers.read_health_events, text)) == {
        "host health-monitor-offered": ("warn", "gpus-not-offered", 1)
    }


def test_a_condition_of_gke_and_a_line_of_gpud_name_the_xid() -> None:
    row = f'XidCriticalError  True  {SINCE}{{"48":true}}  0f3a'
    assert results(one(schedulers.read_kubernetes, row)) == {
        "host Kubernetes-xidcriticalerror": ("warn", "ecc-uncorrected", 1)
    }
    said = "XID 79(GPU has fallen off the bus) detected on PCI:0000:5d:00"
    lost = ("fail", "gpu-lost", 1)
    assert results(one(schedulers.read_health_events, said)) == {"0000:5d:00.0 health-monitor-xid": lost}
    beside = f"{said}\nNVRM: Xid (PCI:0000:5d:00): 79, pid=1, GPU has fallen off the bus."
    assert results(one(schedulers.read_health_events, beside)) == {"host health-monitor-conditions": ("pass", "", 1)}
    plugin = f"XidCriticalError: Xid=48 on Device=GPU-{'0' * 8}-0000-0000-0000-{'0' * 12}; marking device as unhealthy"
    (answer,) = results(one(schedulers.read_health_events, plugin)).values()
    assert answer == ("warn", "ecc-uncorrected", 1)


def test_conditions_and_events_of_kubernetes() -> None:
    assert results(one(schedulers.read_kubernetes, DESCRIBE)) == {
        "GPU3 Kubernetes-gpuxiderror": ("fail", "gpu-lost", 1), "host Kubernetes-conditions": ("pass", "", 3),
    }  # fmt: skip
    assert results(one(schedulers.read_kubernetes, EVENTS)) == {
        "host Kubernetes-nodenotready": ("note", "", 1),
        "GPU2 Kubernetes-gpunvlinkwatch": ("warn", "nvlink-reported", 1),
    }  # fmt: skip
    wide = one(schedulers.read_kubernetes, WIDE)
    assert (wide.host, results(wide)) == ("dgx017", {"GPU2 Kubernetes-gpunvlinkwatch": ("warn", "nvlink-reported", 1)})
    assert unread([wide], WIDE) == []


def test_an_imex_daemon_that_is_not_ready_is_no_fault_of_nvlinks() -> None:
    """Where no job uses it none runs (NVIDIA/aicr issue 2641)."""
    row = f"GpuNvlinkWatch  True  {SINCE}NotHealthy  ErrorCode:DCGM_FR_IMEX_UNHEALTHY GPU:0 IMEX daemon status is -3"
    assert results(one(schedulers.read_kubernetes, row)) == {"GPU0 Kubernetes-gpunvlinkwatch": ("note", "", 1)}


@pytest.mark.parametrize(
    ("line", "subject", "fault"),
    [
        ("GpuPowerWatch  GpuPowerWatchIsNotHealthy  2m  monitor  ErrorCode:DCGM_FR_CLOCK_THROTTLE_POWER GPU:2"
         " PCI:0001:00:00.0 clocks event due to power violation in GPU 2", "GPU2", "power-violation"),
        ("GpuPowerWatchIsNotHealthy Message=ErrorCode:DCGM_FR_CLOCK_THROTTLE_POWER GPU:1 PCI:0001:00:00.0 clocks event"
         " due to power violation in GPU 1", "GPU1", "power-violation"),
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
    assert (fact["fault"], fact["outcome"]) == ("gpu-lost", "fail")


def test_a_condition_with_other_dates() -> None:
    since = SINCE.replace("Fri, ", "").replace("Thu, ", "")
    row = f"XfsShutdown  True  {since}XfsHasShutdown{' ' * 40}XFS (sda1): Shutting down filesystem."
    assert results(one(schedulers.read_kubernetes, row)) == {"host Kubernetes-xfsshutdown": ("warn", "file-system", 1)}


def test_an_event_that_cites_the_driver_is_of_its_gpu() -> None:
    row = "4m  Warning  GPUXidError  node/n7  NVRM: Xid (PCI:0000:9b:00): 95, pid=0, Uncontained: LTC TAG (0x2,0x0)."
    (answer,) = results(one(schedulers.read_kubernetes, row)).items()
    assert answer == ("0000:9b:00.0 Kubernetes-gpuxiderror", ("warn", "ecc-uncorrected", 1))


def test_health_events() -> None:
    sentinel = one(schedulers.read_health_events, NVSENTINEL)
    assert (sentinel.host, results(sentinel)) == ("dgx017", {"GPU6 NVSentinel-gpuinforomwatch": ("fail", "inforom", 1)})
    healed = NVSENTINEL + NVSENTINEL.replace('"isHealthy": false', '"isHealthy": true')
    assert results(one(schedulers.read_health_events, healed)) == {"host NVSentinel-conditions": ("pass", "", 1)}
    gpud = results(one(schedulers.read_health_events, GPUD))
    assert gpud["GPU2 gpud-accelerator-nvidia-error-xid"][:2] == ("warn", "ecc-uncorrected")


def test_a_health_event_within_a_line_of_a_log() -> None:
    event = '{"checkName": "SysLogsXIDError", "message": "see dmesg", "errorCode": ["48"], "entitiesImpacted": '
    event += '[{"entityType": "PCI", "entityValue": "0002:00:00"}], "nodeName": "n1"}'
    for line in (f'{{"level": "INFO", "events": {{"events": [{event}]}}}}', f'{{"event": {{"HealthEvent": {event}}}}}'):
        output = one(schedulers.read_health_events, line)
        bad = {"0002:00:00.0 NVSentinel-syslogsxiderror": ("warn", "ecc-uncorrected", 1)}
        assert (output.host, results(output)) == ("n1", bad)


@pytest.mark.parametrize("nothing", ['"errorCode": []', '"message": ""', '"message": "", "errorCode": {"a": 1}'])
def test_an_event_that_does_not_say_what_is_wrong(nothing: str) -> None:
    bad, good = f'{{"checkName": "GpuXid", {nothing}}}', f'{{"checkName": "GpuXid", {nothing}, "isHealthy": true}}'
    assert schedulers.read_health_events((bad,)) == ()
    assert results(one(schedulers.read_health_events, good)) == {"host NVSentinel-conditions": ("pass", "", 1)}


def test_what_a_monitor_leaves_out_may_be_missing() -> None:
    event = '{"checkName": "SysLogsXIDError", "message": "XID 48"}'
    assert results(one(schedulers.read_health_events, f'{{"events": [{event}]}}')).keys() == {
        "host NVSentinel-syslogsxiderror"
    }
    node = '{"kind": "Node", "status": {"conditions": [{"type": "%s", "status": "True"}]}}'
    assert results(one(schedulers.read_kubernetes, node % "GpuXidError")).keys() != {}


@pytest.mark.parametrize("around", ["%s", '{"component": "c", "states": [%s]}'])
def test_states_of_gpud(around: str) -> None:
    state = '{"component": "c", "health": "%s", "reason": "fabric manager found but not active"}'
    bad = results(one(schedulers.read_health_events, around % state % "Unhealthy"))
    assert bad["host gpud-c"][:2] == ("warn", "fabric-manager-down")
    good = results(one(schedulers.read_health_events, around % state % "Healthy"))
    assert {outcome for outcome, _, _ in good.values()} == {"pass"}


@pytest.mark.parametrize("text", [SINFO, SCONTROL, DESCRIBE, EVENTS, NVSENTINEL, GPUD])
def test_nobody_else_reads_them(text: str) -> None:
    tools = {part.tool for reader in READERS for part in reader(tuple(text.splitlines()))}
    assert len(tools) == 1


PODS = """\
NAME                                 READY   STATUS                  RESTARTS        AGE
gpu-feature-discovery-a1b2c          0/1     Init:0/1                0               3m
nvidia-driver-daemonset-d3e4f        0/1     CrashLoopBackOff        5 (65s ago)     12m
nvidia-dcgm-exporter-g5h6i           1/1     Running                 0               12m
"""


def test_pods_of_the_gpu_operator_that_do_not_start() -> None:
    output = one(schedulers.read_kubernetes, PODS)
    assert results(output) == {
        "host Kubernetes-pods": ("note", "", 1), "host Kubernetes-pods-2": ("warn", "gpus-not-offered", 1),
        "host Kubernetes-conditions": ("pass", "", 1),
    }  # fmt: skip
    assert unread([output], PODS) == []


def test_a_scan_of_gpud() -> None:
    text = "⌛ scanning the host\n✔ checked 8 nvidia gpu(s)\n✘ only 7 port(s) are active and >=400 Gb/s, expect >=8"
    output = one(schedulers.read_health_events, text)
    assert {fault for outcome, fault, _ in results(output).values() if outcome == "warn"} == {"transfer-unanswered"}
    assert unread([output], text) == []
    assert schedulers.read_health_events(("✘ only 7 port(s) are active",)) == ()


NODE = """\
{"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "gpu-1"}, "status": {"conditions": [
  {"type": "SysLogsXIDError", "status": "True", "reason": "SysLogsXIDErrorIsNotHealthy",
   "message": "ErrorCode:79 PCI:0000:9d:00 kernel: NVRM: Xid (PCI:0000:9d:00): 79, GPU has fallen off the bus."},
  {"type": "Ready", "status": "True", "reason": "KubeletReady"},
  {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure"}]}}]}
"""
POD = NODE.replace('"Node"', '"Pod"')


def test_conditions_of_a_node_as_json() -> None:
    found = one(schedulers.read_kubernetes, NODE)
    assert found.host == "gpu-1"
    assert results(found) == {
        "0000:9d:00.0 Kubernetes-syslogsxiderror": ("fail", "gpu-lost", 1),
        "host Kubernetes-conditions": ("pass", "", 2),
    }  # fmt: skip
    assert schedulers.read_kubernetes(tuple(POD.splitlines())) == ()


@pytest.mark.parametrize(("time", "of_a_node"), [
    ("lastHeartbeatTime", True), ("lastTransitionTime", False), ("lastProbeTime", False), ("lastUpdateTime", False),
])
def test_conditions_of_other_objects_are_not_those_of_a_node(time: str, of_a_node: bool) -> None:
    """Pods, deployments and definitions of resources have such ones, too."""
    lines = '{"type": "ContainersReady", "status": "False", "reason": "ContainersNotReady",', '"message": "Xid 79",'
    for kind in ("Pod", "Deployment"):
        text = (f'{{"kind": "{kind}", "status": {{"conditions": [', *lines, f'"{time}": "2025-03-03T08:11:09Z"}}]}}}}')
        assert bool(schedulers.read_kubernetes(text)) is of_a_node


AGENT = """\
"BackgroundGPUHealthChecks": {
  "status": "Error",
  "description": "BackgroundGPUHealthChecks report Error count=2 subsystem=System",
  "details": "IMEX domain status is DEGRADED (unhealthy) Check IMEX.\\nPersistence Mode not set for GPU: 0, Restart.",
  "last_update": "2026-02-26T08:06:00 UTC",
"""


def test_details_of_healthagent() -> None:
    assert results(one(health_agents.read_healthagent, AGENT)) == {
        "host healthagent-backgroundgpuhealthchecks": ("note", "", 1),
        "GPU0 healthagent-backgroundgpuhealthchecks": ("warn", "persistence-off", 1),
    }
    sound = AGENT.replace('"Error"', '"OK"')
    assert results(one(health_agents.read_healthagent, sound)) == {"host healthagent-conditions": ("pass", "", 1)}


FABRIC = """\
✔ NVIDIA-GB200 checked fabric state
+-------------------------+------------------------------------------+
| GPU UUID                | GPU-1182579c-5a69-8e8e-cb7a-e6e0b65d47c7 |
| Clique ID               | 0                                        |
| State                   | Completed                                |
| Status                  | Success                                  |
| Health Summary          | Healthy                                  |
| Bandwidth               | Full                                     |
| Route Recovery          | False                                    |
| Route Unhealthy         | No                                       |
+-------------------------+------------------------------------------+
"""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Completed", "In Progress", "fabric-failed"), ("Success", "Unknown Error", "fabric-failed"),
        ("Healthy", "Unhealthy", "fabric-unhealthy"), ("Full", "Degraded", "fabric-degraded"),
        ("False", "True", "fabric-degraded"), ("No ", "True ", "fabric-unhealthy"),
        ("Healthy", "Limited Capacity", "fabric-degraded"), ("Completed", "Not Supported", ""), ("Full", "Full", ""),
    ],
)  # fmt: skip
def test_the_fabric_in_gpuds_table(old: str, new: str, fault: str) -> None:
    found = one(health_agents.read_gpud_fabric, FABRIC.replace(old, new))
    assert unread([found], FABRIC) == []
    assert results(found) == {"host gpud-fabric": ("warn" if fault else "pass", fault, 1)}


@pytest.mark.parametrize(("said", "expected"), [
    ("device plugin GetPreferredAllocation; unable to get device link information: error calling nvml.Init",
     ("warn", "gpus-not-offered", 1)),
    ("rpc error: code = Unavailable desc = transport is closing, which is unexpected", ("note", "", 1)),
    ("rpc error: code = Unknown desc = nvml.Init: ERROR_UNKNOWN, which is unexpected",
     ("warn", "gpus-not-offered", 1)),
    ("rpc error: code = Unknown desc = device is in an unrecoverable state: GPU is lost", ("fail", "gpu-lost", 1)),
])  # fmt: skip
def test_why_a_pod_was_given_no_device(said: str, expected: tuple[str, str, int]) -> None:
    """A device plugin that broke off can be that of any device; NVML is the GPUs'."""
    row = f"  Warning  UnexpectedAdmissionError  73s  kubelet  Allocate failed due to {said}"
    assert [*results(one(schedulers.read_kubernetes, row)).values()] == [expected]
