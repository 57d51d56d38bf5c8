"""Commands that could not do what they were asked: modprobe, insmod and dkms, nvidia-smi -r and -mig, ACSCtl alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import judged

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.readers.any_text import outputs
from dgxcheck.readers.host.modprobe import read_modprobe
from dgxcheck.readers.layout.undo import undone
from dgxcheck.readers.nvidia_smi.catalogue import read_reset

NOT_INSERTED = "modprobe: ERROR: could not insert '{}': {}"
MODULES = [
    ("modprobe: FATAL: Module nvidia not found.", "fail", Fault.MODULE_NOT_BUILT),
    ("modinfo: ERROR: Module nvidia not found.", "fail", Fault.MODULE_NOT_BUILT),
    ("modprobe: FATAL: Module nvidia-uvm not found in directory /lib/modules/5.15.0-130-generic", "fail",
     Fault.MODULE_NOT_BUILT),
    ("FATAL: Module nvidia_peermem not found.", "warn", Fault.PEER_MEMORY),
    (NOT_INSERTED.format("nvidia", "Key was rejected by service"), "fail", Fault.MODULE_UNSIGNED),
    (NOT_INSERTED.format("nvidia", "Required key not available"), "fail", Fault.MODULE_UNSIGNED),
    (NOT_INSERTED.format("nvidia_uvm", "Exec format error"), "fail", Fault.MODULE_NOT_BUILT),
    (NOT_INSERTED.format("nvidia", "Unknown symbol in module, or unknown parameter (see dmesg)"), "fail",
     Fault.MODULE_REFUSED),
    (NOT_INSERTED.format("nvidia", "No such device"), "fail", Fault.DRIVER_NOT_LOADED),
    (NOT_INSERTED.format("nvidia", "Input/output error"), "fail", Fault.DRIVER_NOT_LOADED),
    (NOT_INSERTED.format("nvidia_peermem", "Invalid argument"), "warn", Fault.PEER_MEMORY),
    ("insmod: ERROR: could not insert module nvidia.ko: Invalid module format", "fail", Fault.MODULE_NOT_BUILT),
    ("Jul 05 12:58:21 gpu1 systemd-modules-load[580]: Failed to insert module 'nvidia': Exec format error", "fail",
     Fault.MODULE_NOT_BUILT),
    ("Consult /var/lib/dkms/nvidia/525.89.02/build/make.log for more information.", "warn", Fault.MODULE_NOT_BUILT),
    ("==> ERROR: Missing 6.2.1-zen1-1-zen kernel headers for module nvidia/525.89.02.", "warn",
     Fault.MODULE_NOT_BUILT),
]  # fmt: skip
HARMLESS = [
    NOT_INSERTED.format("nvidia", "File exists"),
    NOT_INSERTED.format("nvidia", "Operation not permitted"),
    "modprobe: FATAL: Module vmmon not found in directory /lib/modules/6.8.0-45-generic",
    NOT_INSERTED.format("evdi", "Required key not available"),
    "Consult /var/lib/dkms/hid-nx/v1.14/build/make.log for more information.",
]


def reports(text: str) -> list[dict[str, Any]]:
    """Results in a text, of all readers."""
    facts = [item for _, part in outputs(undone(tuple(text.splitlines()))) for item in part.facts.items()]
    return [fact for key, fact in facts if key.startswith("stated report ") and isinstance(fact, dict)]


@pytest.mark.parametrize(("line", "outcome", "fault"), MODULES)
def test_why_a_module_was_not_loaded(line: str, outcome: str, fault: FaultKind) -> None:
    (found,) = reports(line)
    assert (found["outcome"], found["fault"]) == (outcome, fault.word)


@pytest.mark.parametrize("line", HARMLESS)
def test_other_modules_are_no_matter_of_the_gpus(line: str) -> None:
    assert reports(line) == []


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.sampled_from(MODULES), st.integers(0, 120))
def test_a_line_that_is_cut_or_has_anything_behind_it_makes_no_other_fault(more: str, row: Any, cut: int) -> None:
    line, _, fault = row
    for text in (line[:cut], f"{line}{more}"):
        found = [*read_modprobe((text,)), *read_reset((text,))]
        words = {fact["fault"] for part in found for fact in part.facts.values() if isinstance(fact, dict)}
        assert words <= {fault.word, Fault.DRIVER_NOT_LOADED.word, Fault.PEER_MEMORY.word}


def test_a_module_that_another_stands_for_is_not_there_for_this_kernel() -> None:
    """Debian loads nvidia-current for nvidia."""
    lines = (
        "modprobe: FATAL: Module nvidia-current not found in directory /lib/modules/6.12.69+deb13-amd64",
        "modprobe: ERROR: Error running install command 'modprobe -i nvidia-current ' for module nvidia: retcode 1",
        NOT_INSERTED.format("nvidia", "Invalid argument"),
    )
    (found,) = read_modprobe(lines)
    assert found.understood == frozenset(range(3))


def test_a_container_without_modules_is_no_fault_of_a_driver_that_runs(tmp_path: Path) -> None:
    path = tmp_path / "container.txt"
    gpu = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000000)\n"
    missing = "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-45-generic\n"
    path.write_text(missing, encoding="utf-8")
    assert judged(str(path))[1]["causes"]
    path.write_text(f"{gpu}{missing}", encoding="utf-8")
    assert not judged(str(path))[1]["causes"]


HELD = """The following GPUs could not be reset:
  GPU 00000000:01:00.0: In use by another client
  GPU 00000000:47:00.0: In use by another client

2 devices are currently being used by one or more other processes (e.g., Fabric Manager). Please first kill them.
"""


def test_a_gpu_that_programs_keep_from_a_reset_is_looked_at_first(tmp_path: Path) -> None:
    """NVIDIA/mig-parted issue 181, NVIDIA/gpu-operator issue 118."""
    path = tmp_path / "reset.txt"
    path.write_text(HELD, encoding="utf-8")
    causes = judged(str(path))[1]["causes"]
    assert [cause["id"] for cause in causes] == ["gpu/0000:01:00.0", "gpu/0000:47:00.0"]
    assert {cause["action"]["action"] for cause in causes} == {"inspect"}
    assert all("nvidia_drm" in cause["action"]["text"] for cause in causes)


@pytest.mark.parametrize(("line", "subjects"), [
    ("Warning: MIG mode is in pending disable state for GPU 00000000:C1:00.0:In use by another client",
     {"0000:c1:00.0"}),
    ("GPU 00000000:C1:00.0 is currently in use by another process.", {"0000:c1:00.0"}),
    ("GPU 00000000:C1:00.0 is currently in use by another process.\nGPU 00000000:C1:00.0 was successfully reset.\n"
     "All done.", set()),
    ("Unable to destroy compute instance id  0 from GPU  3 GPU instance id  3: In use by another client", {"GPU3"}),
])  # fmt: skip
def test_which_gpu_is_in_use(line: str, subjects: set[str]) -> None:
    lines = tuple(line.splitlines())
    (part,) = read_reset(lines)
    assert part.understood == {*range(len(lines))}
    names = {key.split()[2] for key in part.facts}
    assert len(names) == len(subjects)
    assert not subjects - {"GPU3"} - names


def test_ports_without_an_address_are_counted(tmp_path: Path) -> None:
    """``lspci -vvv | grep ACSCtl``, as NCCL's guide on troubleshooting asks for."""
    bits = "SrcValid{} TransBlk- ReqRedir{} CmpltRedir{} UpstreamFwd{} EgressCtrl- DirectTrans-"
    rows = [f"\t\tACSCtl:\t{bits.format(*signs)}" for signs in ("++++", "+---", "----", "-+--")]
    text = "\n".join(rows)
    assert [(each["outcome"], each["fault"], each["text"][:6]) for each in reports(text)] == [
        ("unknown", Fault.ACS.word, "2 of 4")
    ]
    assert [each["outcome"] for each in reports("\n".join(rows[1:3]))] == ["pass"]
    path = tmp_path / "acs.txt"
    path.write_text(text, encoding="utf-8")
    found = next(each for each in judged(str(path))[1]["findings"] if each["id"] == "tools.reports")
    assert found["status"] == "unknown"
    assert "must stay" in found["remedy"]


NCCL_SHM = "gpu2:2143:2561 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device"
PASTED = [
    (NCCL_SHM, Fault.SHARED_MEMORY, "inspect"),  # NVIDIA/nccl issue 290
    ("[1] misc/shmutils.cc:114 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-NzwJ7O (size 9)",
     Fault.SHARED_MEMORY, "inspect"),  # NVIDIA/nccl issue 1518
    ("c1:815:864 [0] transport/net_ib.cu:80 NCCL WARN NET/IB : Got async event : local catastrophic error\n"
     "c1:815:864 [0] misc/ibvwrap.cu:220 NCCL WARN Call to ibv_get_async_event failed", Fault.HCA_FATAL, "inspect"),
    ("host-01.example:XXXXXX [5] ibvwrap.c:262 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out",
     Fault.TRANSFER_UNANSWERED, "inspect"),  # NVIDIA/nccl issue 2013, as somebody hid its process
    ("Reason=gres/gpu count reported lower than configured (0 < 8)", Fault.GPUS_NOT_OFFERED, "inspect"),
    ("REASON               USER      TIMESTAMP           NODELIST\n"
     "gres/gpu count repor slurm     2024-01-12T11:22:18 dgx07", Fault.GPUS_NOT_OFFERED, "inspect"),  # sinfo -R
    ("3 | Dec-09-2024 | 21:12:29 | Power Supply 2 PS2 Status                         | Power Supply      | Critical |"
     " Power Supply Failure detected", Fault.POWER_SUPPLY, "inspect"),  # thomas-krenn/check_ipmi_sensor_v3 issue 66
]  # fmt: skip


@pytest.mark.parametrize(("text", "fault", "first"), PASTED)
def test_what_is_pasted_leads_to_the_part_that_it_is_about(
    text: str, fault: FaultKind, first: str, tmp_path: Path
) -> None:
    path = tmp_path / "pasted.txt"
    path.write_text(text, encoding="utf-8")
    found = judged(str(path))[1]
    worst = next(each for each in found["findings"] if each["fault"])
    assert worst["fault"] == fault.word
    assert found["causes"][0]["action"]["action"] == first
    assert "with that tool" not in found["causes"][0]["action"]["text"]


@pytest.mark.parametrize("rate", [50, 53.125])
def test_a_nvlink_s_rate_is_printed_with_its_error_correction_or_without(rate: float, tmp_path: Path) -> None:
    """NVIDIA/nvbandwidth issue 44: a GPU whose links are all alike at the lower figure is sound."""
    path = tmp_path / "nvlink.txt"
    rows = [f"         Link {link}: {rate:g} GB/s" for link in range(18)]
    path.write_text("\n".join([f"GPU 0: NVIDIA B200 (UUID: GPU-{0:08d}-0000-0000-0000-{0:012d})", *rows]))
    assert not judged(str(path))[1]["causes"]
    path.write_text(path.read_text().replace(f"{rate:g} GB/s", "26.562 GB/s"))
    assert judged(str(path))[1]["causes"]


def test_a_virtual_function_without_a_guid_waits_for_its_host(tmp_path: Path) -> None:
    """Mellanox/network-operator issue 1646: no subnet manager configures it, though one runs."""
    path = tmp_path / "ibv_devinfo.txt"
    path.write_text(
        "hca_id: mlx5_7\n\ttransport:\tInfiniBand (0)\n\tnode_guid:\t0000:0000:0000:0000\n\tvendor_id:\t0x02c9\n"
        "\tphys_port_cnt:\t1\n\t\tport:\t1\n\t\t\tstate:\tPORT_INIT (2)\n\t\t\tsm_lid:\t4\n"
        "\t\t\tport_lid:\t65535\n\t\t\tlink_layer:\tInfiniBand\n"
    )
    (bad,) = [each for each in judged(str(path))[1]["findings"] if each["fault"] == Fault.HCA_IDENTITY.word]
    assert bad["id"] == "network.port-state"
    assert "node_guid" in bad["remedy"]


LEGACY = """[15280.304871] NVRM: The NVIDIA Tesla M2070 GPU installed in this system is
NVRM:  supported through the NVIDIA 390.xx Legacy drivers. Please
NVRM:  visit http://www.nvidia.com/object/unix.html for more
"""


def test_a_message_of_several_lines_goes_on_without_a_time(tmp_path: Path) -> None:
    """fgci-org/ansible-role-cuda issue 16: printk gave the time of the first line alone."""
    path = tmp_path / "legacy.txt"
    path.write_text(LEGACY, encoding="utf-8")
    (bad,) = [each for each in judged(str(path))[1]["findings"] if each["status"] in ("warn", "fail")]
    assert bad["fault"] == Fault.GPU_REFUSED.word
    path.write_text(LEGACY.replace("The NVIDIA Tesla", "loading a Tesla"), encoding="utf-8")
    assert not [each for each in judged(str(path))[1]["findings"] if each["status"] in ("warn", "fail")]


PROGRAMS = [
    # ggml-org/llama.cpp issues 13059, 7218; ollama/ollama issues 12136, 1083
    ("ggml_cuda_init: failed to initialize CUDA: system not yet initialized", Fault.FABRIC_MANAGER_DOWN),
    ("ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected", Fault.NOT_READY),
    ("ggml_cuda_init: failed to initialize CUDA: unknown error", Fault.DRIVER_FAILED),
    # tensorflow/tensorflow issue 5473
    ("I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:145] kernel driver does not appear to be running on this"
     " host (box): /proc/driver/nvidia/version does not exist", Fault.DRIVER_NOT_LOADED),
    ("modprobe: ERROR: could not insert 'nvidia_367_uvm': Unknown symbol in module, or unknown parameter (see dmesg)",
     Fault.MODULE_REFUSED),
    # kubernetes-sigs/dra-driver-nvidia-gpu issues 1272, 65; NVIDIA/k8s-device-plugin issue 1371
    ("Error: error creating driver: error initializing NVML: ERROR_LIBRARY_NOT_FOUND", Fault.LIBRARY_MISSING),
    ('Error: failed to locate driver libraries: error locating "libnvidia-ml.so.1"', Fault.LIBRARY_MISSING),
    ("NVML not detected: could not load NVML library: libnvidia-ml.so.1: cannot open shared object file: No such file"
     " or directory", Fault.LIBRARY_MISSING),
    # NVIDIA/libnvidia-container issue 313, NVIDIA/enroot issue 138, NVIDIA/pyxis issue 110
    ("nvidia-container-cli: mount error: failed to add device rules: open /sys/fs/cgroup/devices/slurm/devices.allow:"
     " permission denied", Fault.CONTAINER_ERROR),
    ("slurmstepd: error: pyxis:     nvidia-container-cli: mount error: file creation failed: /raid/run/nvidia-persisten"
     "ced/socket: no such device or address", Fault.CONTAINER_ERROR),
    ("slurmstepd: error: pyxis:     [ERROR] Command not found: nvidia-container-cli, see https://github.com/NVIDIA",
     Fault.CONTAINER_RUNTIME),
    # aws-samples/awsome-distributed-ai issue 203, NVIDIA/nccl issue 563
    ("NCCL WARN NET/OFI Unable to register memory (type = 2) for device 4. RC: -22, Error: Invalid argument",
     Fault.RDMA_ACCESS),
    ("ip-10-0-87-143:149:298 [5] NCCL WARN NET/OFI Unable to register memory (type = 1) for device 0. RC: 12, Error:"
     " Cannot allocate memory", Fault.MEMLOCK),
]  # fmt: skip


@pytest.mark.parametrize(("line", "fault"), PROGRAMS)
def test_what_programs_and_containers_lack(line: str, fault: FaultKind) -> None:
    assert {found["fault"] for found in reports(line)} == {fault.word}


def test_a_pair_below_a_limit_of_the_site_blames_neither_of_its_gpus(tmp_path: Path) -> None:
    """Azure/azurehpc-health-checks issue 162: the limit was that of another model."""
    path = tmp_path / "nhc.txt"
    path.write_text(
        "ERROR:  nhc:  Health check failed:  check_gpu_bw: P2P test on GPU 1 to GPU 0 failed. Bandwidth 256.63 is less"
        " than 335. FaultCode: NHC2020\n", encoding="utf-8",
    )  # fmt: skip
    (cause,) = judged(str(path))[1]["causes"]
    assert not cause["id"].startswith("gpu/")
    assert [step["action"] for step in (cause["action"],)] == ["inspect"]


def test_a_service_that_the_journal_shows_as_failed(tmp_path: Path) -> None:
    """ollama/ollama issue 11932."""
    line = "Aug 16 00:02:53 box systemd[1]: nvidia-persistenced.service: Failed with result 'exit-code'."
    (found,) = reports(line)
    assert found["outcome"] == "note"
    assert "nvidia-persistenced failed" in found["text"]
