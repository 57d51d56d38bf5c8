"""dmidecode, numactl, ibstat, mst, lsmod, uname and the errors of nvidia-smi, as facts of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import of_text
from readers_text import one, results, unread

from dgxcheck.readers.host import dmidecode, system
from dgxcheck.readers.network import adapters, hcas
from dgxcheck.readers.nvidia_smi import failures, nvlink

INIT = "nvml nvmlInit"
IB = "/sys/class/infiniband/mlx5_0"
NODE = "/sys/devices/system/node"


def test_dmidecode_reads_the_first_table_of_each_kind() -> None:
    text = """\
# dmidecode 3.3
Handle 0x0001, DMI type 1, 27 bytes
System Information
\tManufacturer: NVIDIA
\tProduct Name: DGXA100 920-23687-2530-000

Handle 0x0002, DMI type 2, 15 bytes
Base Board Information
\tProduct Name: DGXA100
Handle 0x0003, DMI type 2, 15 bytes
Base Board Information
\tProduct Name: other
Handle 0x0010, DMI type 17, 40 bytes
Memory Device
\tManufacturer: Samsung
"""
    found = one(dmidecode.read_dmidecode, text)
    assert found.facts == {
        "text /sys/class/dmi/id/sys_vendor": "NVIDIA\n",
        "text /sys/class/dmi/id/product_name": "DGXA100 920-23687-2530-000\n",
        "text /sys/class/dmi/id/board_name": "DGXA100\n",
    }
    assert found.tool == "dmidecode 3.3"
    assert unread([found], text) == []


def test_numactl() -> None:
    text = """\
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 8 9
node 0 size: 1024 MB
node 0 free: 5 MB
node 1 cpus:
node distances:
node   0   1
  0:  10  21
  1:  21  10
"""
    facts = one(system.read_numactl, text).facts
    assert unread([one(system.read_numactl, text)], text) == []
    assert facts[f"names {NODE}"] == ["node0", "node1"]
    assert facts[f"text {NODE}/node0/cpulist"] == "0-2,8-9\n"
    assert facts[f"text {NODE}/node1/cpulist"] == "\n"
    assert facts[f"text {NODE}/node0/distance"] == "10 21\n"


def test_ibstat_and_mst() -> None:
    text = """\
CA 'mlx5_0'
\tCA type: MT4123
\tNumber of ports: 1
\tNode GUID: 0xb8599f0300d1e2f4
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 200
\t\tSM lid: 12
\t\tLink layer: InfiniBand
"""
    facts = one(hcas.read_ibstat, text).facts
    assert facts[f"text {IB}/node_guid"] == "b859:9f03:00d1:e2f4\n"
    assert facts[f"text {IB}/ports/1/state"] == "4: ACTIVE\n"
    assert facts[f"text {IB}/ports/1/sm_lid"] == "0xc\n"
    assert f"text {IB}/ports/1/rate" not in facts  # the text has neither lanes nor generation
    row = "ConnectX7(rev:0)        /dev/mst/mt4129_pciconf0      5e:00.0   mlx5_0          net-ibp94s0      0"
    assert one(adapters.read_mst, f"{row}\nMST modules:").facts == {"stated pci-function mlx5_0": "0000:5e:00.0"}
    other = row.replace("5e:00.0", "0001:5e:00.0")
    assert one(adapters.read_mst, other).facts == {"stated pci-function mlx5_0": "0001:5e:00.0"}
    assert adapters.read_mst((row.replace("5e:00.0", "5e:ff.0"),)) == ()


def test_modules() -> None:
    row = "nvidia 100 3 nvidia_uvm,nvidia_modeset, Live 0xffffffffc0a01000 (PO)"
    facts = one(system.read_modules, f"Module  Size  Used by\n{row}").facts
    assert facts["names /sys/module"] == ["nvidia"]
    assert facts["names /sys/module/nvidia/holders"] == ["nvidia_modeset", "nvidia_uvm"]
    assert facts["text /sys/module/nvidia/initstate"] == "live\n"
    head, others = "Module  Size  Used by", ("nvidia 100", "nvidia 10k 3", "nvidia 100 3k", "! 100 3", "a 100 3 b c")
    assert [row for row in others if any(found.facts for found in system.read_modules((head, row)))] == []


def test_modules_as_lsmod_prints_them() -> None:
    rows = "nvidia  56823808  3 nvidia_uvm,nvidia_modeset\nnvme  57344  0\n\nThat is all.\ni2c  9  0\n"
    text = f"Module  Size  Used by\n{rows}"
    found = one(system.read_modules, text)
    assert found.facts["names /sys/module"] == ["nvidia", "nvme"]
    assert found.facts["names /sys/module/nvidia/holders"] == ["nvidia_modeset", "nvidia_uvm"]
    assert "text /sys/module/nvidia/initstate" not in found.facts
    assert unread([found], text) == [5, 6]


@pytest.mark.parametrize(("rows", "texts"), [
    (("Socket(s): 2", "NUMA node(s): 1"), ["1 NUMA node for 2 sockets"]),
    (("Socket(s): 4", "NUMA node(s): 2"), ["2 NUMA nodes for 4 sockets"]), (("NUMA node(s): 1",), []),
    (("Socket(s): 2", "NUMA node(s): 2"), []), (("Off-line CPU(s) list: 64-127",), []),
    (("Off-line CPU(s) list: 0-3",), ["CPUs 0-3 are offline"]), (("NUMA node1 CPU(s): x",), []),
])  # fmt: skip
def test_lscpu(rows: tuple[str, ...], texts: list[str]) -> None:
    found = one(system.read_lscpu, "\n".join(("Vendor ID: GenuineIntel", "On-line CPU(s) list: 4-63", *rows)))
    assert [fact["text"] for fact in found.facts.values() if isinstance(fact, dict)] == texts
    assert f"text {NODE}/node1/cpulist" not in found.facts


@pytest.mark.parametrize(("row", "fault"), [
    ("/dev/sda1 9G 9G 0 100% /", "disk-full"), ("/dev/sda1 9G 8G 1G 99% /", ""), ("/dev/loop3 9G 9G 0 100% /snap", ""),
    ("tmpfs 9G 9G 0 100% /dev/shm", "shared-memory"), ("auto 0 0 0 - /mnt", ""),
])  # fmt: skip
def test_file_systems(row: str, fault: str) -> None:
    found = one(system.read_file_systems, f"Filesystem Size Used Avail Use% Mounted on\n{row}")
    assert [fact["fault"] for fact in found.facts.values() if isinstance(fact, dict)] == [fault]


def test_uname() -> None:
    line = "uname: Linux box 5.4.0-generic #1 SMP Thu Dec 17 22:57:08 UTC 2015 x86_64 GNU/Linux"
    assert system.read_uname([line]) == {
        "text /proc/sys/kernel/hostname": "box\n", "text /proc/sys/kernel/osrelease": "5.4.0-generic\n",
    }  # fmt: skip
    assert system.read_uname(["FreeBSD box 14"]) == {}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that ..", 9),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", 12),
        ("Failed to initialize NVML: Driver/library version mismatch", 18),
        ("Failed to initialize NVML: Insufficient Permissions", 4),
        ("Failed to initialize NVML: Unknown Error", 999),
    ],
)
def test_a_failure_has_nvmls_code(words: str, code: int) -> None:
    fact: Any = one(failures.read_failure, words).facts[INIT]
    assert fact["code"] == code


def test_no_devices() -> None:
    output = one(failures.read_failure, "No devices were found")
    found = output.facts
    assert (found[INIT], found["nvml nvmlDeviceGetCount"]) == (True, 0)
    ((outcome, fault, _),) = [each for key, each in results(output).items() if key.startswith("host ")]
    assert (outcome, fault) == ("unknown", "driver-failed"), "what to look at; the kernel log says what it is"


def test_a_mismatch_with_both_versions() -> None:
    text = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124"
    fact: Any = one(failures.read_failure, text).facts[INIT]
    assert fact["detail"].endswith("mismatch, library 570.124")


MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Mon Jan 27 02:37:43 UTC 2025"


def test_the_module_that_is_loaded() -> None:
    text = f"\n{MODULE.format('570.86.15')}\nGCC version:  gcc version 12.3.0\n"
    found = one(system.read_driver_version, text)
    assert found.facts == {"text /proc/driver/nvidia/version": f"{MODULE.format('570.86.15')}\n"}
    assert unread([found], text) == []
    assert system.read_driver_version((MODULE.format("570.86.15"), MODULE.format("570.124.06"))) == ()
    assert system.read_driver_version(("NVRM version: 570.86.15",)) == ()


@pytest.mark.parametrize(
    "words",
    [
        "Unable to determine the device handle for GPU0000:0F:00.0: Unknown Error",
        "Unable to detect the device handle for GPU0000:0F:00.0: Unknown Error",
        'After an hour nvidia-smi said "Unable to determine the device handle for GPU0000:0F:00.0: Unknown Error".',
        "The tool stopped with `Unable to determine the device handle for GPU 0000:0F:00.0: Unknown Error`, then",
    ],
)
def test_a_gpu_without_a_handle(words: str) -> None:
    assert one(failures.read_failure, words).facts == {"stated no-handle 0000:0f:00.0": "Unknown Error"}


@pytest.mark.parametrize("command", [
    "docker exec -it trainer nvidia-smi", "sudo podman run --rm --device nvidia.com/gpu=all cuda nvidia-smi -L",
    "kubectl exec trainer-0 -- nvidia-smi", "srun -N1 --container-image=cuda nvidia-smi",
])  # fmt: skip
def test_a_gpu_that_does_not_open_in_a_container_is_not_lost(command: str, tmp_path: Path) -> None:
    said = "Unable to determine the device handle for GPU0000:65:00.0: Unknown Error"
    causes, _ = of_text(f"$ {command}\n{said}\n", tmp_path)
    assert causes == ("fail driver-failed inspect",)
    causes, _ = of_text(f"$ {command}\n$ nvidia-smi\n{said}\n", tmp_path)
    assert [cause.split()[1] for cause in causes] == ["gpu-lost"]


def test_a_gpu_that_another_run_lists_is_looked_at_first(tmp_path: Path) -> None:
    listed = "0000:65:00.0, NVIDIA A10\n"
    said = "Unable to determine the device handle for GPU0000:65:00.0: "
    csv = f"$ nvidia-smi --query-gpu=pci.bus_id,name --format=csv\npci.bus_id, name\n0000{listed}\n"
    causes, _ = of_text(f"{csv}$ nvidia-smi\n{said}Unknown Error\n", tmp_path)
    assert causes == ("fail gpu-unreadable inspect",)
    causes, _ = of_text(f"{csv}$ nvidia-smi\n{said}GPU is lost.  Reboot the system to recover this GPU\n", tmp_path)
    assert [cause.split()[1] for cause in causes] == ["gpu-lost"]


def test_a_gpu_that_nvdebugdump_does_not_open() -> None:
    """https://github.com/jamesstringer90/Easy-GPU-PV/issues/276"""
    (fact,) = one(failures.read_failure, "FAILED to get details on GPU (0x1): Unknown Error").facts.items()
    assert (fact[0].split()[:2], fact[1]) == (["stated", "no-handle"], "Unknown Error")


def test_error_counters() -> None:
    text = "GPU 0: Tesla (UUID: GPU-1)\n\t Link 3: Replay Errors: 7\n\t Link 3: CRC Errors: 2\n"
    facts = one(nvlink.read_errors, text).facts
    assert facts == {"stated nvlink-errors GPU0 3 0": 7, "stated nvlink-errors GPU0 3 2": 2}


@given(st.lists(st.text(max_size=60), max_size=12))
def test_any_text(rows: list[str]) -> None:
    for read in (
        dmidecode.read_dmidecode,
        system.read_numactl,
        hcas.read_ibstat,
        adapters.read_mst,
        system.read_modules,
        failures.read_failure,
        nvlink.read_errors,
    ):
        read(tuple(rows))
