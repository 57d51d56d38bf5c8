"""Faults as public reports tell them: the cause, the first step, and no step before it that would do harm.

What is expected was written down from the reports before the diagnosis was seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from judging import judged

from dgxcheck.facts.missing import Json

Facts = Mapping[str, Json]


def xid(bus: str, number: int, rest: str) -> str:
    return f"NVRM: Xid (PCI:0000:{bus}:00): {number}, {rest}"


def lost(bus: str, index: int) -> Facts:
    folder = f"/sys/bus/pci/devices/0000:{bus}:00.0"
    return {
        f"nvml nvmlDeviceGetHandleByIndex {index}": {"missing": "lost", "detail": "NVML 15: GPU is lost"},
        f"text {folder}/current_link_width": "63\n",
        f"text {folder}/current_link_speed": "Unknown\n",
        f"data {folder}/config": {"size": 64, "rows": {f"0{row}0": "f" * 32 for row in range(4)}},
    }


def of(bus: str, query: str, value: Json) -> Facts:
    function, _, arguments = query.partition(" ")
    return {f"nvml {function} 0000:{bus}:00.0{f' {arguments}' if arguments else ''}": value}


def unlisted(bus: str, *above: str) -> Facts:
    """A GPU without a driver; those above it move up in NVML's list."""
    handles = dict(enumerate(above, 7 - len(above)))
    return {
        **{f"nvml nvmlDeviceGetHandleByIndex {at}": f"0000:{other}:00.0" for at, other in handles.items()},
        "nvml nvmlDeviceGetHandleByIndex 7": {"missing": "garbled", "code": 2},
        "nvml nvmlDeviceGetCount": 7,
        f"link /sys/bus/pci/devices/0000:{bus}:00.0/driver": {"missing": "absent"},
    }


def links_off(links: int, *buses: str) -> Facts:
    """No NVLink of these GPUs is up, whatever they say of the fabric."""
    return {f"nvml nvmlDeviceGetNvLinkState 0000:{bus}:00.0 {link}": 0 for bus in buses for link in range(links)}


NO_CLUSTER = "00000000-0000-0000-0000-000000000000"
IN_NO_DOMAIN: dict[str, Json] = {"cliqueId": 0, "clusterUuid": NO_CLUSTER, "healthMask": 170, "healthSummary": 1,
                                 "state": 3, "status": 0}  # fmt: skip
OF_A100 = ("07", "0f", "47", "4e", "87", "90", "b7", "bd")
OF_H100 = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
OF_GB200 = tuple(f"{domain}:01:00.0" for domain in ("0008", "0009", "0018", "0019"))
LINKS_DISABLED: Facts = {"text /proc/driver/nvidia/params": "NvLinkDisable: 1\n"}
OFF = "pid=1, GPU has fallen off the bus."
RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
REPLACING = {"reseat", "replace"}
REPORTS: list[tuple[str, Facts, list[str], str, set[str], set[str]]] = [
    # base, facts, lines of the log, component, first steps, steps that would do harm before them
    ("dgx-h100", lost("61", 3), ["NVRM: The NVIDIA GPU 0000:61:00.0",  # NVIDIA/NVSentinel issue 155
      "NVRM: (PCI ID: 10de:2330) installed in this system has",
      "NVRM: fallen off the bus and is not responding to commands."], "gpu/0000:61:00.0", {"reboot"}, {"reset-gpu"}),
    ("dgx-h100", {}, [xid("1b", 62, "323f0f30 0000c3d8 00000000 206dae68"), xid("1b", 45, "pid=9, Ch 00000001"),
      xid("1b", 154, RESET)], "gpu/0000:1b:00.0", {"reset-gpu"}, REPLACING),  # NVIDIA forum, topic 371272
    ("dgx-h100", {}, [xid("d1", 149, "NETIR_LINK_EVT Fatal XC0 i0 Link 03 (0x026001c6 0x00000000 0x00000000 0x00000000"
      " 0x00000000 0x00000000)"), xid("d1", 45, "pid=9, Ch 00000001 caused by previous Xid 149")],
      "gpu/0000:d1:00.0/NVLink", {"watch", "inspect", "reset-gpu"}, REPLACING),  # open-gpu-kernel-modules issue 1150
    ("dgx-b300", {}, [xid("9a", 149, "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000 0x00000000 0x00000000"
      " 0x00000000 0x00000000)"), *(xid(bus, 145, "RLW_SRC_TRACK Nonfatal XC1 i0 Link 11 (0x00000004 0x80000000"
      " 0x00000000 0x00000000 0x00000000 0x00000000)") for bus in ("ba", "da")), xid("ba", 45, "pid=9, Ch 00000001"
      " caused by previous Xid 145")],
      "gpu/0000:9a:00.0/NVLink", {"inspect"}, REPLACING),  # open-gpu-kernel-modules issues 1150 and 1355
    ("dgx-h100", {}, [xid("c3", 95, "pid=4711, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No")],
      "gpu/0000:c3:00.0/memory", {"reset-gpu"}, {"replace"}),
    ("dgx-1-v100", {**lost("06", 0), **lost("86", 5)}, [xid("06", 79, OFF), "9000.000000;" + xid("86", 79, OFF)],
      "gpu/0000:(06|86):00.0", {"reboot"}, {"reset-gpu"}),  # an hour and a half apart: two causes
    ("dgx-a100", {**lost("07", 0), **lost("bd", 7)}, [xid("07", 79, OFF), xid("bd", 79, OFF)],
      "host/host/GPU baseboard", {"inspect"}, {"reset-gpu"}),  # in the same moment, on both sockets
    ("dgx-a100", of("87", "nvmlDeviceGetRemappedRows", [0, 1, 1, 0]), [xid("87", 94, "pid='<unknown>', Contained: SM"
      " (0x1). RST: No, D-RST: No")], "gpu/0000:87:00.0/memory", {"restart-program", "reset-gpu"}, {"replace"}),
    ("dgx-a100", {}, ["CPU23: Package temperature above threshold, cpu clock throttled (total events = 90112)"],
      "host/host/cooling", {"inspect"}, {"reset-gpu", "replace"}),
    ("dgx-1-v100", {}, ["mlx5_core 0000:84:00.0: print_health_info:420:(pid 0): Fatal error detected",
      "mlx5_core 0000:84:00.0: print_health_info:431:(pid 0): synd 0x1: firmware internal error"],
      "hca/0000:84:00.0", {"power-cycle", "inspect", "reboot", "load-module"}, {"reset-gpu"}),
    ("k80-x8", lost("86", 5), [], "gpu/0000:86:00.0", {"reboot", "power-cycle"}, {"reset-gpu"}),
    ("dgx-1-v100", {**of("0b", "nvmlDeviceGetTemperature 0", 89), **of("0b", "nvmlDeviceGetTotalEccErrors 1 0", 3)}, [],
      "gpu/0000:0b:00.0/(cooling|memory)", {"inspect", "reset-gpu"}, {"replace"}),
    ("pcie-x4", {key: value for bus in ("07", "08", "0e", "0f") for key, value in {
      **of(bus, "nvmlDeviceGetCurrentClocksEventReasons", 0x20), **of(bus, "nvmlDeviceGetTemperature 0", 92)}.items()},
      [], "host/host/cooling", {"inspect"}, {"replace", "reset-gpu"}),
    ("dgx-h100", {}, ["NVRM: nvAssertOkFailedNoLog: Assertion failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST]"
      " (0x0000000F) returned from rmStatus @ kernel_ce_gv100.c:106"],  # open-gpu-kernel-modules issue 688
      "gpu/f[0-9a-f:.]+", {"reboot"}, {"reset-gpu"}),
    ("dgx-h100", {}, ["NVRM: API mismatch: the client has the version 580.126.09, but",  # upgraded and not loaded:
      "NVRM: this kernel module has the version 580.105.08.  Please"],  # stackhpc/ansible-slurm-appliance issue 287
      "driver/NVIDIA driver", {"inspect"}, {"stop-jobs", "reset-gpu"}),
    ("dgx-h100", {}, ["NVRM: API mismatch: the client has the version 580.65.06, but",
      "NVRM: this kernel module has the version 580.105.08.  Please"],
      "host/host/programs with another driver library", {"stop-jobs"}, {"reboot", "reset-gpu"}),
    ("dgx-h100", lost("61", 3), ["nvidia 0000:61:00.0: Unable to change power state from D3cold to D0, device"
      " inaccessible", "NVRM: GPU 0000:61:00.0: RmInitAdapter failed! (0x22:0x56:667)"],
      "gpu/0000:61:00.0", {"reboot"}, {"change-setting", "reset-gpu"}),
    ("dgx-h100", unlisted("df"), ["NVRM: GPU 0000:df:00.0: RmInitAdapter failed! (0x62:0x51:1941)"],
      "gpu/0000:df:00.0", {"inspect"}, {"replace", "reset-gpu"}),  # open-gpu-kernel-modules issue 892
    ("dgx-h100", unlisted("df"), ["NVRM: osInitNvMapping: *** Cannot attach gpu", "NVRM: GPU 0000:df:00.0:"
      " RmInitAdapter failed! (0x22:0x56:894)"], "gpu/0000:df:00.0", {"reboot"}, {"change-setting", "reset-gpu"}),
    ("dgx-h100", {**unlisted("c3", "d1", "df")}, ["NVRM: The NVIDIA GPU 0000:c3:00.0 (PCI ID: 10de:2330)",
      "NVRM: installed in this system is not supported by the", "NVRM: NVIDIA 580.105.08 driver release."],
      "gpu/0000:c3:00.0", {"reboot"}, {"change-setting", "reset-gpu"}),  # NVIDIA/aicr issue 1858: one of eight
    ("dgx-h100", {}, ["mlx5_core 0000:29:00.0 ens6f0np0: TX timeout detected",  # NVIDIA/NVSentinel issue 1334
      "watchdog: BUG: soft lockup - CPU#14 stuck for 26s! [swapper/14:0]",
      "RIP: 0010:mlx5e_poll_ico_cq+0x5c/0x2a0 [mlx5_core]"], "hca/0000:29:00.0", {"inspect"}, {"reset-gpu", "replace"}),
    # MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark issue 146: an adapter that did not come back after a PCIe error
    ("hgx-h100", {}, ["pcieport 0000:13:01.0: AER: Uncorrected (Fatal) error received: 0000:18:00.0",
      "mlx5_core 0000:18:00.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
      "mlx5_core 0000:18:00.0: mlx5_pci_slot_reset: wait vital failed with error code: -110",
      "pcieport 0000:17:00.0: AER: device recovery failed",
      "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [irq/40-aerdrv:555]",
      "RIP: 0010:mlx5_pci_slot_reset+0x5c/0x2a0 [mlx5_core]"], "hca/0000:18:00.0", {"inspect"}, {"replace"}),
    # Linux kernel/hung_task.c: what waits for a disk
    ("dgx-h100", {}, ["nvme nvme3: I/O 45 (I/O Cmd) QID 12 timeout, aborting",
      "INFO: task jbd2/md1-8:900 blocked for more than 122 seconds."], "disk/md1", {"inspect"}, {"replace", "reboot"}),
    ("dgx-h100", {}, ["mlx5_core 0000:29:00.0 ens6f0np0: ERR CQE on SQ: 0x1dbb"],  # Linux en/reporter_tx.c
      "hca/0000:29:00.0", {"inspect"}, {"reset-gpu", *REPLACING}),
    ("dgx-h100", {}, ["gdrdrv:gdrdrv_pin_buffer:nvidia_p2p_get_pages(va=704fe0000 len=327680 p2p_token=0 va_space=0)"
      " failed [ret = -22]"], "driver/NVIDIA driver", {"inspect"}, {"reset-gpu", "reboot"}),  # NVIDIA/gdrcopy issue 30
    ("dgx-h100", unlisted("df"), ["nouveau 0000:df:00.0: secboot: error during falcon reset: -110",
      "nouveau 0000:df:00.0: gr: init failed, -110"], "(driver/NVIDIA driver|gpu/0000:df:00.0)", {"change-setting"},
      {"reset-gpu", *REPLACING}),  # nouveau: secboot, gr
    ("gb300-nvl72", {}, ["nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)"],
      "host/host/peer memory module", {"load-module"}, {"reboot"}),  # NVIDIA/gpu-operator issue 2868
    # NVIDIA driver README: NVreg_NvLinkDisable; NVIDIA fabric manager user guide: registered, and the links lost since
    ("dgx-h100", {**links_off(18, *OF_H100), **LINKS_DISABLED}, [], "host/host/NVLink setting", {"change-setting"},
      {"restart-service", "reset-gpu", *REPLACING}),
    ("dgx-a100", {**links_off(12, *OF_A100), **LINKS_DISABLED}, [], "host/host/NVLink setting", {"change-setting"},
      {"restart-service", "reset-gpu", *REPLACING}),
    ("gb200-nvl72", {f"nvml nvmlDeviceGetGpuFabricInfo {bdf}": IN_NO_DOMAIN for bdf in OF_GB200}, [],
      "host/host/NVSwitches", {"inspect"}, {"reset-gpu", *REPLACING}),
    ("dgx-h100", {**of("1b", "nvmlDeviceGetP2PStatus 0000:43:00.0 0", 4),
      **of("43", "nvmlDeviceGetP2PStatus 0000:1b:00.0 0", 4)}, [], "host/host/P2P setting", {"change-setting"},
      {"reset-gpu", *REPLACING}),  # nvml.h: NVML_P2P_STATUS_DISABLED_BY_REGKEY
    ("hgx-h100", of("43", "nvmlDeviceGetClockInfo 2", 1593), [], "gpu/0000:43:00.0/clock setting", {"change-setting"},
      {"reset-gpu", *REPLACING}),  # nvidia-smi(1): --lock-memory-clocks
    ("dgx-h100", links_off(18, *OF_H100), [], "host/host/NVSwitches", {"restart-service"}, {"reset-gpu", *REPLACING}),
    ("dgx-a100", {}, ["AMD-Vi: Completion-Wait loop timed out", "iommu ivhd2: AMD-Vi: Event logged [IOTLB_INV_TIMEOUT"
      " device=07:00.0 address=0x106c2d8f0]"], "link/0000:07:00.0", {"inspect"}, {"change-setting"}),
    # rwth-i6/returnn issue 1486: Unable to determine the device handle for GPU0000:03:00.0: Unknown Error
    ("geforce-x4", {**lost("23", 2), "nvml nvmlDeviceGetHandleByIndex 2": {"missing": "garbled", "code": 999}}, [],
      "gpu/0000:23:00.0", {"reboot"}, {"reset-gpu"}),
    # Azure/azhpc-images pull request 506: Completed, Insufficient Resources, and no cluster: one cause
    ("gb200-nvl72", {f"nvml nvmlDeviceGetGpuFabricInfo {bdf}": {**IN_NO_DOMAIN, "status": 23} for bdf in OF_GB200}, [],
      "host/host/Fabric Manager", {"inspect"}, {"reset-gpu", *REPLACING}),
    # nvml.h: NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION: what the mask says is more than the status
    ("dgx-h100", {key: value for bus in OF_H100 for key, value in of(bus, "nvmlDeviceGetGpuFabricInfo",
      {**IN_NO_DOMAIN, "status": 23, "healthMask": 5 << 8 | 170}).items()}, [],
      "host/host/(NVSwitches|Fabric Manager)", {"inspect", "restart-service"}, {"reset-gpu", *REPLACING}),
    ("dgx-1-v100", {"text /sys/class/net/enp2s0f0/carrier": "0\n"}, ["igb 0000:02:00.0 enp2s0f0: PCIe link lost",
      "NETDEV WATCHDOG: enp2s0f0 (igb): transmit queue 0 timed out"],  # pcengines/apu2-documentation issue 174
      "slot/0000:02:00.0/device", {"inspect"}, {"reset-gpu"}),
    ("hgx-h100", {}, ["XFS (md1): I/O Error Detected. Shutting down filesystem",  # node-problem-detector request 845
      "XFS (md1): xfs_log_force: error -5 returned."], "disk/md1", {"inspect"}, {"reset-gpu", *REPLACING}),
    ("dgx-1-v100", {}, ["nv_peer_mem: Unknown symbol ib_register_peer_memory_client (err 0)"],
      "host/host/peer memory module", {"load-module"}, {"reboot"}),  # Mellanox/nv_peer_memory issue 84
    ("vm-h100-x8", unlisted("75", "86", "97", "a8", "b9", "ca"), ["NVRM: Can't find an IRQ for your NVIDIA card!",
      "nvidia: probe of 0000:75:00.0 failed with error -1"],  # kata-containers/kata-containers issue 1142
      "driver/NVIDIA driver", {"change-setting"}, {"reset-gpu", *REPLACING}),
]  # fmt: skip


@pytest.mark.in_ci
def test_what_public_reports_tell_has_its_cause_and_nothing_harmful(tmp_path: Path) -> None:
    for number, (base, facts, log, component, first, harmful) in enumerate(REPORTS):
        lines = {
            f"kmsg {place}": line if line[0].isdigit() else f"{3600 + place / 100:.6f};{line}"
            for place, line in enumerate(log, 40)
        }
        path = tmp_path / f"{base}-{number}.json"
        document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, "add": lines}
        path.write_text(json.dumps(document), encoding="utf-8")
        causes = judged(str(path))[1]["causes"]
        assert causes, component
        for cause in causes:
            assert re.fullmatch(component, cause["id"]), (cause["id"], component)
            steps = [action["action"] for action in cause["actions"]]
            due = cause["action"]["action"]
            assert due in first, (component, steps)
            assert harmful.isdisjoint(steps[: steps.index(due) + 1]), (component, steps)


def test_a_gpu_whose_chip_the_driver_cannot_tell_is_looked_at_first(tmp_path: Path) -> None:
    """NVIDIA/open-gpu-kernel-modules issue 1151: it is off the bus, or of a kind that the driver does not know."""
    path = tmp_path / "log.txt"
    path.write_text("[   79.050000] NVRM: GPU 0000:05:00.0: RmInitAdapter failed! (0x22:0x56:894)\n")
    (cause,) = judged(str(path))[1]["causes"]
    assert [action["action"] for action in cause["actions"]] == ["inspect", "drain", "power-cycle", "contact-vendor"]
    assert cause["id"].startswith("gpu/")


@pytest.mark.parametrize("buses", [("05",), ("05", "06")])
def test_a_driver_that_does_not_support_a_gpu_is_no_defect_of_the_board(buses: tuple[str, ...], tmp_path: Path) -> None:
    """NVIDIA/open-gpu-kernel-modules issue 116, NVIDIA/nvtrust issue 128: NV_ERR_NOT_SUPPORTED."""
    path = tmp_path / "log.txt"
    rows = (f"[   79.{bus}0000] NVRM: GPU 0000:{bus}:00.0: RmInitAdapter failed! (0x63:0x56:1689)" for bus in buses)
    path.write_text("\n".join(rows))
    (cause,) = judged(str(path))[1]["causes"]
    steps = [action["action"] for action in cause["actions"]]
    assert steps == ["drain", "change-setting", "reboot"]
