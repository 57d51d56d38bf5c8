"""Lines and fields that few outputs have: what ``import`` makes of each, and that what stands beside them is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from smi_texts import TABLE

from dgxcheck.cli import main

GPU, NOWHERE = "0000:17:00.0", "ffff0000:00:00.0"
NVML = "nvml nvmlDeviceGet"
XID = "NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus."
LATER = "NVRM: Xid (PCI:0000:31:00): 48, pid=1, DBE"
UUID = "GPU-11111111-2222-3333-4444-55555555555"
BANKS = {"max": 2540, "high": 16, "partial": 3, "low": 1, "none": 0}
CSV = {
    "clocks.gr [MHz]": "345 MHz", "clocks.mem [MHz]": "1593 MHz", "clocks.applications.memory [MHz]": "2619 MHz",
    "clocks.max.sm [MHz]": "1980 MHz", "clocks_event_reasons.gpu_idle": "Active",
    "clocks_event_reasons.hw_slowdown": "Active", "clocks_throttle_reasons.sw_power_cap": "Not Active",
    **{f"remapped_rows.histogram.{name}": f"{number} bank(s)" for name, number in BANKS.items()},
    "fabric.state": "Completed", "fabric.status": "Success",
}  # fmt: skip
ROWS = "".join(", ".join(each) + "\n" for each in (
    ("index", "name", "pci.bus_id", *CSV), ("0", "NVIDIA H100 80GB HBM3", f"0000{GPU}", *CSV.values()),
))  # fmt: skip
LOG = f"""\
==============NVSMI LOG==============

Driver Version                            : 535.129.03

Attached GPUs                             : 1
GPU 0000{GPU}
    Product Name                          : NVIDIA H100 80GB HBM3
    GPU Reset Status
        Reset Required                    : Yes
        Drain and Reset Recommended       : No
    BAR1 Memory Usage
        Total                             : N/A
        Used                              : N/A
        Free                              : N/A
    Clocks Event Reasons
        Idle                              : Unknown Error
        SW Power Cap                      : Unknown Error
        HW Slowdown                       : Unknown Error
"""
XML = f"""\
<?xml version="1.0" ?>
<nvidia_smi_log>
<gpu id="0000{GPU}">
<product_name>NVIDIA A10</product_name>
<mig_devices/>
<temperature>
<gpu_temp>45 C</gpu_temp>
<power_readings>
<power_draw>20.00 W</power_draw>
</temperature>
<minor_number>3</minor_number>
</gpu>
</nvidia_smi_log>
"""
MIG = f"GPU 0: NVIDIA A10 (UUID: {UUID}0)\n  MIG 1g.10gb     Device  0: (UUID: MIG-{UUID[4:]}1)\nGPU 1: NVIDIA A10\n"
LINKS = f"GPU 0: NVIDIA A10 (UUID: {UUID}0)\n\t Link 0, P2P is supported: true\n\t Link 0: 25.781 GB/s\n"
LSCPU = """\
CPU(s):              64
On-line CPU(s) list: 0-63
NUMA node(s):        2
NUMA node0 CPU(s):   0-31
NUMA node1 CPU(s):   32-63
"""
HCA = """\
18:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
\tRegion 0: Memory at weird (64-bit, prefetchable) [size=32M]
\tCapabilities: [48] Vital Product Data
\t\tRead-only fields:
\t\t\t[VA] Vendor specific: SMDL=SW_MNG
\t\tEnd
\tKernel driver in use: mlx5_core

"""
SLOTS = "/sys/bus/pci/devices/0000:18:00.0"


def imported(text: str, folder: Path, *more: str) -> dict[str, Any]:
    """The facts of a text by line and entry: ``nvml nvmlDeviceGetClockInfo 0000:17:00.0 0``."""
    source, box = folder / "text", folder / "box.json"
    source.write_text(text, encoding="utf-8")
    main(["import", str(source), "-o", str(box), *more])
    lines = json.loads(box.read_text(encoding="utf-8"))["facts"]
    return {f"{line} {entry}".strip(): value for line, entries in lines.items() for entry, value in entries.items()}


@pytest.mark.parametrize(("text", "key", "value"), [
    (ROWS, f"{NVML}ClockInfo {GPU} 0", 345),
    (ROWS, f"{NVML}ClockInfo {GPU} 2", 1593),
    (ROWS, f"{NVML}ApplicationsClock {GPU} 2", 2619),
    (ROWS, f"{NVML}MaxClockInfo {GPU} 1", 1980),
    (ROWS, f"{NVML}CurrentClocksEventReasons {GPU}", 0x9),
    (ROWS, f"{NVML}RowRemapperHistogram {GPU}", BANKS),
    (ROWS, f"{NVML}GpuFabricInfo {GPU}", {"cliqueId": None, "clusterUuid": None, "state": 3, "status": 0}),
    (LOG, f"{NVML}FieldValues {GPU} 230", 1),
    (LOG, f"{NVML}BAR1MemoryInfo {GPU}", {"missing": "unsupported", "detail": "nvidia-smi: N/A"}),
    (LOG, f"{NVML}CurrentClocksEventReasons {GPU}", {"missing": "garbled", "detail": "nvidia-smi: Unknown Error"}),
    (XML, f"{NVML}Temperature {GPU} 0", 45),
    (XML, f"{NVML}MinorNumber {GPU}", 3),
    (MIG, f"{NVML}Name ffff0001:00:00.0", "NVIDIA A10"),
    (MIG.replace("GPU 1: NVIDIA A10", "GPU 0: NVIDIA A40"), f"{NVML}Count", 1),
    (LINKS, f"{NVML}FieldValues {NOWHERE} 0 164", 25781),
    (f"WARNING: infoROM is corrupted at gpu {GPU}\n", f"{NVML}InforomImageVersion {GPU}",
     {"missing": "garbled", "detail": "nvidia-smi: infoROM is corrupted", "code": 14}),
    (LSCPU, "/sys/devices/system/node names", ["node0", "node1"]),
    (LSCPU, "/sys/devices/system/node/node1 text", {"cpulist": "32-63\n"}),
    (LSCPU, "/sys/devices/system/cpu text", {"online": "0-63\n"}),
    (LSCPU.replace("NUMA node0 CPU(s):   0-31\n", ""), "/sys/devices/system/node names", None),
    (HCA, f"{SLOTS} text", {"class": "0x020700\n", "device": "0x1021\n", "vendor": "0x15b3\n"}),
    ("gpuId 0:\n        U U D\nNvSwitches:\n    physicalId 8:\n        D D D\n", f"{NVML}NvLinkState {NOWHERE} 2", 0),
    ("".join(f"[0] {line}\n" for line in MIG.splitlines()), f"{NVML}Name {NOWHERE}", "NVIDIA A10"),
    (f"[   12.345678 <    0.000001>] {XID}\n", "kmsg 1", f"12.345678;{XID}"),
    (f"      3 {XID}\n      1 {LATER}\n", "kmsg 2", f"10800.000000;{LATER}"),
    ('{"dmesg": [\n{"pri": 6,\n"time": 12.345678,\n"msg": "' + XID + '\\q"\n}\n]}\n', "kmsg 1", f"12.345678;{XID}\\q"),
])  # fmt: skip
def test_a_rare_field(text: str, key: str, value: Any, tmp_path: Path) -> None:
    assert imported(text, tmp_path).get(key) == value


def test_the_boots_of_a_journal_are_parted(tmp_path: Path) -> None:
    rows = [{"_BOOT_ID": boot * 32, "_TRANSPORT": "kernel", "SYSLOG_FACILITY": "0", "_HOSTNAME": "n1", "MESSAGE": text,
             "_SOURCE_MONOTONIC_TIMESTAMP": str(at), "__REALTIME_TIMESTAMP": str(17 * 10**14 + at)}
            for boot, at, text in (("a", 12345678, XID), ("b", 2345678, LATER))]  # fmt: skip
    found = imported("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows), tmp_path)
    assert found["kmsg 1"] == f"2.345678;{LATER}"
    assert found["kmsg 2"].endswith(f"dgxcheck: earlier: boot -1, begun 0: {XID}")


PREFLIGHT = (
    '{"level":"INFO","module":"preflight.gpu","test":"ecc","message":"ok"}\n'
    '{"level":"ERROR","module":"preflight.gpu","test":"xid","message":"GPU 1 has Xid 79"}\n'
)
HEALTH = json.dumps({"header": ["Health Monitor Report"], "body": {
    "Overall Health": {"value": "Warning"},
    "GPU ID: 0": {"children": {"PCIe system": {"value": "Warning - Detected more than 8 PCIe replays per minute"}}},
}})  # fmt: skip
EXPORTED = f'gpu="0",UUID="{UUID}5",pci_bus_id="0000{GPU}",modelName="NVIDIA A10",Hostname="n1"'
METRICS = f"""\
DCGM_FI_DEV_GPU_TEMP{{{EXPORTED},DCGM_FI_DRIVER_VERSION="535.129.03"}} 45
DCGM_EXP_XID_ERRORS_COUNT{{{EXPORTED},xid="79"}} 1
"""
DKMS = """\
Error! Bad return status for module build on kernel: 5.15.0-91-generic (x86_64)
Consult /var/lib/dkms/nvidia/535.129.03/build/make.log for more information.
modprobe: FATAL: Module gdrdrv not found in directory /lib/modules/5.15.0-91-generic
"""
RECOVERING = """\
Switch: 0xe41d2d0300e512c0 leaf1:
   3    1[  ] ==( 4X       25.78125 Gbps Active/  LinkErrorRecovery)==>       5    1[  ] "gpu01 mlx5_0" ( )
"""


@pytest.mark.parametrize(("text", "about", "due"), [
    ("Couldn't allocate MR\nfailed to create mr\n", "host perftest-rdma-access",
     ("fail", "rdma-access", "memory cannot be registered with the HCA", 2)),
    (METRICS, f"{GPU} dcgm-exporter-xid-79", ("fail", "gpu-lost", "last Xid: 79 (GPU has fallen off the bus)", 1)),
    (HEALTH, "GPU0 dcgmi-health-pcie-system",
     ("warn", "pcie-replays", "Detected more than 8 PCIe replays per minute", 1)),
    (PREFLIGHT, "host preflight-ecc", ("pass", "", "", 1)),
    (PREFLIGHT, "GPU1 preflight-xid", ("fail", "gpu-lost", "test xid: GPU 1 has Xid 79", 1)),
    ("Healthy\nERROR:  nhc:  Health check failed:  check_hw_gm:  GPU 3 has ECC errors.\nERROR: No results reported\n",
     "GPU3 nhc-check_hw_gm", ("fail", "test-failed", "check_hw_gm: GPU 3 has ECC errors", 1)),
    (DKMS, "host modprobe-dkms",
     ("warn", "module-not-built", "dkms could not build nvidia 535.129.03 for kernel 5.15.0-91-generic", 1)),
    (DKMS, "host modprobe-module-gdrdrv", ("note", "", "no module gdrdrv in /lib/modules/5.15.0-91-generic", 1)),
    (RECOVERING, "leaf1/1 iblinkinfo-state",
     ("warn", "port-errors", "the link to gpu01 mlx5_0 is recovering from errors", 1)),
])  # fmt: skip
def test_a_rare_result(text: str, about: str, due: tuple[str, str, str, int], tmp_path: Path) -> None:
    found = imported(text, tmp_path)[f"stated report {about}"]
    assert (found["outcome"], found["fault"], found["text"], found["count"]) == due


def test_the_driver_s_version_is_a_label_of_a_metric(tmp_path: Path) -> None:
    assert imported(METRICS, tmp_path)["nvml nvmlSystemGetDriverVersion"] == "535.129.03"


def test_figures_that_no_hardware_has_are_left_out(tmp_path: Path) -> None:
    rate = "cudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: {}GB/s\n"
    access = "> Peer access from NVIDIA A10 (GPU0) -> NVIDIA A10 (GPU{}) : {}\n"
    text = access.format(0, "No") + access.format(1, "Yes") + rate.format("999999999.00") + rate.format("20.00")
    found = imported(f"[./simpleP2P] - Starting...\n{text}", tmp_path)
    assert {key: each["value"] for key, each in found.items() if key.startswith("measure ")} == {
        "measure access 0 1": True, "measure p2p-alternating 0 1": 21.4748,
    }  # fmt: skip


@pytest.mark.parametrize(("spans", "due"), [(False, [True, True]), (True, [])])
def test_channels_of_gpus_of_several_hosts_show_no_access(spans: bool, due: list[bool], tmp_path: Path) -> None:
    """With MNNVL a GPU that data goes to directly may be another host's."""
    ends = ("0[17000]", "1[18000]")
    rows = ["NCCL version 2.20.5+cuda12.4", *(["MNNVL 1 cliqueId 1 cliqueSize 8 cliqueRank 0"] if spans else []),
            *(f"Channel 00/0 : {a} -> {b} via P2P/IPC" for a, b in (ends, ends[::-1]))]  # fmt: skip
    found = imported("".join(f"n1:1:1 [0] NCCL INFO {row}\n" for row in rows), tmp_path)
    assert [each["value"] for key, each in found.items() if key.startswith("measure access")] == due


def test_rows_of_a_gpu_that_come_again_are_another_reading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the same driver, though no head stands above them."""
    table = TABLE.partition("\n\n")[0]
    rows = table[table.index("|   0") : table.index("|   1")].replace("36C", "57C")
    found = imported(f"{table}\n{rows}", tmp_path)
    assert found[f"{NVML}Temperature 0000:06:00.0 0"] == 36
    assert "nvidia-smi 470.1.2 output is left out because it contradicts earlier output" in capsys.readouterr().err
