"""What schedulers and container runtimes say: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from readers_text import assert_read, reported

from dgxcheck.readers.host import slurm

SINFO = """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
gpu*         up   infinite      4  drng@ gpu[01-04]
gpu*         up   infinite      1   mix* gpu05
gpu*         up   infinite      5  maint gpu[06-10]
"""
LONG = """\
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
gpu01          1      gpu*     drained 128    2:32:2 103100        0      1   (null) GPU3 fell off the bus
gpu02          1      gpu*        idle 128    2:32:2 103100        0      1   (null) none
"""
"""``sinfo -N -l``."""
NODES = """\
NAME     STATUS                     ROLES    AGE   VERSION
gpu-01   Ready,SchedulingDisabled   <none>   90d   v1.29.3
gpu-02   NotReady                   <none>   90d   v1.29.3
"""
MISSING = """\
GPUMissing   True  Mon, 03 Mar 2025 08:00:00 +0000   Mon, 03 Mar 2025 07:40:00 +0000   Gone   expected 8 GPUs, found 7
"""
REFUSED = """\
2m          Warning   UnexpectedAdmissionError   pod/train-0   Allocate failed due to no healthy devices present; \
cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected
"""
PLUGIN = """\
I0313 08:11 1 factory.go:107] Detected non-NVML platform: could not load NVML library: libnvidia-ml.so.1: cannot open \
shared object file: No such file or directory
"""
OLD_PLUGIN = "2025/03/03 08:11:10 Failed to initialize NVML: could not load NVML library.\n"
CONDITION = """\
{
    "lastHeartbeatTime": "2025-03-03T08:16:09Z",
    "lastTransitionTime": "2025-03-03T08:11:09Z",
    "message": "ErrorCode:DCGM_FR_XID_ERROR GPU:4 PCI:0000:c4:00.0 Detected XID 79 for GPU 4",
    "reason": "GpuMemWatchIsNotHealthy",
    "status": "True",
    "type": "GpuMemWatch"
}
"""
NO_MESSAGE = """\
{"events": [{"agent": "syslog-health-monitor", "checkName": "SysLogsXIDError", "isFatal": true, "errorCode": ["79"], \
"entitiesImpacted": [{"entityType": "PCI", "entityValue": "0002:00:00"}], "nodeName": "n1"}]}
"""
UNCONTAINED = """\
{"checkName": "GpuMemWatch", "isFatal": true, "message": "an uncontained error (XID 95)", "nodeName": "n1", \
"entitiesImpacted": [{"entityType": "GPU", "entityValue": "1"}, {"entityType": "PCI", "entityValue": "0002:00:00.0"}]}
"""
PORTS = "\N{HEAVY BALLOT X} not enough LinkUp ports, some ports must be down; only 7 LinkUp out of 8, expected 8\n"
PASSED = "SUCCESS:  nhc:  Health check passed:  check_gpu_count: Expected 8 and found 8\n"
CHECK = "20250303 /etc/nhc/nhc.conf: ERROR:  nhc:  Health check failed:  check_hw_ib:  No IB port mlx5_3:1 is ACTIVE\n"
REASON = """\
NodeName=gpu07 Arch=x86_64
   State=IDLE+DRAIN ThreadsPerCore=2
   Reason=PCIe link width x8 [root@2024-03-11T08:11:10]
"""
TWO_EVENTS = REFUSED + "3m          Warning   NodeNotReady   node/gpu-02   Node is not ready\n"
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "sinfo": (SINFO, ()),
    "kubectl get nodes": (NODES, ()),
    "a condition": (MISSING, ("warn gpus-not-offered inspect",)),
    "an event of a pod": (REFUSED, ("warn gpus-not-offered inspect",)),
    "the device plugin without NVML": (PLUGIN, ("warn container-runtime inspect",)),
    "the first device plugins without NVML": (OLD_PLUGIN, ("warn container-runtime inspect",)),
    "a condition alone": (CONDITION, ("fail gpu-lost drain",)),
    "NVSentinel without a message": (NO_MESSAGE, ("fail gpu-lost drain",)),
    "NVSentinel, a GPU with its place": (UNCONTAINED, ("fail ecc-uncorrected drain",)),
    "NVSentinel, not fatal": (UNCONTAINED.replace("isFatal", "isOld"), ("warn ecc-uncorrected drain",)),
    "ports by gpud": (PORTS, ("warn transfer-unanswered inspect",)),
    "ports by gpud, good": ("\N{HEAVY CHECK MARK} ibstat ports/rates check passed (at least 8)\n", ()),
    "NHC, passed": (PASSED, ()),
    "NHC behind the name of its file": (CHECK, ("fail port-down inspect",)),
    "a reason that names no device": (REASON, ("warn link-tested inspect",)),
    "a reason without its author": (REASON.replace(" [root@2024-03-11T08:11:10]", ""), ("warn link-tested inspect",)),
    "a reason that names no GPU": (REASON.replace("PCIe link width x8", "Xid 79"), ("warn gpu-lost inspect",)),
    "events of a pod and a node": (TWO_EVENTS, ("warn gpus-not-offered inspect",)),
    "a container": ("nvidia-container-cli: detection error: nvml error: gpu requires reset\n",
                    ("fail reset-required drain",)),
    "kubelet": ("Warning  UnexpectedAdmissionError  12s  kubelet  Allocate failed due to rpc error: code = Unknown desc"
                " = failed to get nvlink state: GPU requires reset, which is unexpected\n",
                ("warn reset-required inspect",)),
    "the device plugin": ("E0902 09:57:32.900000       1 factory.go:113] Incompatible strategy detected auto\n",
                          ("warn container-runtime inspect",)),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    assert_read(EXPECTED[name], tmp_path)


def test_what_the_scheduler_says_of_nodes() -> None:
    """A state is a note that tells where the reason is; a reason counts as what it names."""
    (states,) = slurm.read_slurm(tuple(SINFO.splitlines()))
    notes = [text for outcome, _, text in reported(states) if outcome == "note"]
    assert notes == ["gpu[01-04] drng@: sinfo -R says why", "gpu05 mix*: sinfo -R says why"]
    lost, fine = slurm.read_slurm(tuple(LONG.splitlines()))
    assert (lost.host, fine.host) == ("gpu01", "gpu02")
    assert reported(lost) == [("warn", "gpu-lost", "GPU3 fell off the bus")]
    assert slurm.read_slurm(("NODELIST   NODES", "gpu01          1")) == ()


@pytest.mark.parametrize(("line", "host"), [
    ("srun: error: Node failure on node07", "node07"), ("srun: error: Node failure on node07.example.com", "node07"),
    ("slurmstepd: error: *** JOB 12 ON node07 CANCELLED AT 2025-03-03T08:11:09 DUE TO NODE FAILURE ***", "node07"),
    ("[2025-03-03T08:11:09.000] Node failure on NONE", ""), ("srun: error: Node failure on gpu[07-", ""),
    ("srun: error: *** STEP 12.0 CANCELLED AT 2025-03-03T08:11:09 DUE TO NODE FAILURE ***", ""),
])
def test_a_node_that_failed_under_a_job_is_the_one_that_the_line_names(line: str, host: str) -> None:
    (found,) = slurm.read_slurm((line,))
    assert found.host == host
    assert [outcome for outcome, _, _ in reported(found)] == ["note"]


@pytest.mark.parametrize(("line", "hosts"), [
    ("srun: error: Node failure on node07,node08", ["node07", "node08"]),
    ("slurmstepd: error: *** STEP 5.0 ON gpu[07-09] CANCELLED AT 2025-03-03T08:11:09 DUE TO NODE FAILURE ***",
     ["gpu07", "gpu08", "gpu09"]),
    ("srun: error: Node failure on gpu[00000-99999]", [""]),
])
def test_of_a_list_every_node_is_a_host(line: str, hosts: list[str]) -> None:
    found = slurm.read_slurm((line, "srun: error: Node failure on node07"))
    assert [each.host for each in found] == [*dict.fromkeys((*hosts, "node07"))]
    assert all(0 in each.understood for each in found if each.host in hosts)


def test_lists_of_very_many_nodes_name_none() -> None:
    lines = tuple(f"srun: error: Node failure on n{rack}-[0-4999]" for rack in range(4))
    found = slurm.read_slurm((*lines, "srun: error: Node failure on node07"))
    assert len(found) == 10_000 + 2
    assert {"n0-0", "n1-4999", "", "node07"} <= {each.host for each in found}


def test_who_drained_a_node_and_when() -> None:
    """``sinfo -R -O Reason,NodeList,User,Timestamp``; a row without nodes is none."""
    head = "REASON                NODELIST  USER    TIMESTAMP\n"
    rows = "GPU3 fell off the bus gpu01     root    2026-11-20T01:02:03\nno nodes\n"
    (found,) = slurm.read_slurm(tuple((head + rows).splitlines()))
    assert [text for _, _, text in reported(found)] == ["GPU3 fell off the bus (root, 2026-11-20T01:02:03)"]
    assert found.understood <= {0, 1}
