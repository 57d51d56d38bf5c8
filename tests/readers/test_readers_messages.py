"""Single lines of programs around the driver, and nvidia-installer: why they failed, and what is to be looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judging import judged

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.readers.any_text import outputs
from dgxcheck.readers.layout.undo import undone

VGPU = "Apr 06 13:46:20 host nvidia-vgpu-mgr[25539]: "
BUSY = ("An NVIDIA kernel module 'nvidia-drm' appears to already be loaded in your kernel.  This may be because it is"
        " in use (for example, by an X server, a CUDA program, or the NVIDIA Persistence Daemon)")  # fmt: skip
NOT_LOADED = (
    "ERROR: Unable to load the kernel module '{}.ko'.  This happens most frequently when this kernel module was built"
    " against the wrong or improperly configured kernel sources\n-> Kernel module load error: {}"
)
FAULTS = [
    # mbilker/vgpu_unlock-rs issue 5, NVIDIA/nvidia-installer issue 15, mrzenc/vgpu4nixos issue 4
    (f"{VGPU}error: vmiop_log: (0x0): init_device_instance failed for inst 0 with error 1 (error setting vGPU"
     " configuration information from RM)", Fault.DRIVER_ERROR),
    (f"{VGPU}error: vmiop_log: (0x0): vGPU is supported only on VGX capable boards", Fault.DRIVER_ERROR),
    (f"{VGPU}error: vmiop_env_log: Failed to initialize RM client: 0x26", Fault.DRIVER_ERROR),
    # NVIDIA/open-gpu-kernel-modules, rpc.c has the other way round
    (f"{VGPU}error: vmiop_log: (0x0): Incompatible Guest/Host drivers: Guest VGX version is older than the minimum"
     f" version supported by the Host. Disabling vGPU.\n{VGPU}error: vmiop_log: (0x0): VGPU message 21 failed",
     Fault.VGPU_VERSION),
    (f"{VGPU}error: vmiop_log: (0x0): Incompatible Guest/Host drivers: Guest VGX version is newer than the maximum"
     " version supported by the Host. Disabling vGPU.", Fault.VGPU_VERSION),
    *((f"{VGPU}error: vmiop_log: (0x0): {said}", Fault.VGPU_VERSION)
      for said in ("Guest driver is incompatible with host driver.",
                   "Guest VGX version is newer than the maximum version supported by the Host. Disabling vGPU.")),
    # NVIDIA/gpu-operator issue 527
    ("[ 936.327747] [nvidia-vgpu-vfio] a581675d-19eb-4f50-aa64-6aeb378c58c3: start failed. status: 0x0 Timeout Occured",
     Fault.DRIVER_ERROR),
    ("Feb 13 15:20:08 host nvidia-vgpud[1562]: error: failed to send vGPU configuration info to RM: 6",
     Fault.DRIVER_ERROR),
    (f"{VGPU}notice: vmiop_log: (0x0): vGPU license state: Unlicensed (Restricted)", Fault.VGPU_UNLICENSED),
    ("Jun 01 10:00:00 vm nvidia-gridd[812]: Failed to acquire license from 10.0.0.1 (Error: Generic communications"
     " error)", Fault.VGPU_UNLICENSED),
    ("Jun 01 10:00:00 vm nvidia-gridd[812]: Valid GRID license not found. GPU features will be degraded.",
     Fault.VGPU_UNLICENSED),
    ("Found ACS enabled for switch 86:10.0", Fault.ACS),
    # NVIDIA/nvidia-installer: kernel.c
    (NOT_LOADED.format("nvidia", "No such device"), Fault.DRIVER_NOT_LOADED),
    (NOT_LOADED.format("nvidia-modeset", "Device or resource busy"), Fault.DRIVER_NOT_LOADED),
    (NOT_LOADED.format("nvidia", "Required key not available"), Fault.MODULE_UNSIGNED),
    ("ERROR: The Nouveau kernel driver is currently in use by your system.  This driver is incompatible with the NVIDIA"
     " driver, and must be disabled before proceeding.", Fault.NOUVEAU),
    ("ERROR: Unable to find the kernel source tree for the currently running kernel.", Fault.MODULE_NOT_BUILT),
    ("ERROR: The kernel module failed to load. Secure boot is enabled on this system, so this is likely because it was"
     " not signed by a key that is trusted by the kernel.", Fault.MODULE_UNSIGNED),
    ('ERROR: An error occurred while performing the step: "Building kernel modules". See /var/log/'
     "nvidia-installer.log for details.", Fault.MODULE_NOT_BUILT),
    # NVIDIA/gpu-operator: a driver container of CentOS 7
    ("Unable to open the file '/lib/modules/3.10.0-862.el7.x86_64/proc/version' (No such file or directory).Could not"
     " resolve Linux kernel version", Fault.MODULE_NOT_BUILT),
    # NVIDIA/gpu-operator issue 163
    ("Could not unload NVIDIA driver kernel modules, driver is in use", Fault.GPU_IN_USE),
    # NVIDIA/mig-parted, as in issue 181
    ('time="2023-01-01T10:00:00Z" level=error msg="\\nThe following GPUs could not be reset:\\n  GPU 00000000:07:00.0:'
     ' In use by another client\\n\\n1 device is currently being used by one or more other processes"',
     Fault.GPU_IN_USE),
    ("level=error msg=\"Error clearing MigConfig: error destroying Compute instance for profile '(0, 0)': In use by"
     ' another client"', Fault.GPU_IN_USE),
    # ComputeCanada/puppet-magic_castle issue 27, BiBiServ/bibigrid issue 705, NVIDIA/deepops issue 1214
    ("Feb 20 18:59:13 node2 slurmd[57977]: fatal: gres.conf duplicate records for gpu", Fault.GPUS_NOT_OFFERED),
    ("slurmd: error: Waiting for gres.conf file /dev/nvidia0", Fault.GPUS_NOT_OFFERED),
    ("fatal: We were configured to autodetect nvml functionality, but we weren't able to find that lib when Slurm was"
     " configured.", Fault.GPUS_NOT_OFFERED),
    # Kubernetes pkg/kubelet/cm/dra/plugin, cm/devicemanager
    ('E0114 22:32:39.849988 14067 kuberuntime_manager.go:1323] "Failed to prepare dynamic resources" err="prepare'
     ' dynamic resources: DRA driver compute-domain.nvidia.com is not registered" pod="default/worker-0"',
     Fault.GPUS_NOT_OFFERED),
    # kubernetes-sigs/dra-driver-nvidia-gpu issue 1218
    ("  Warning  FailedPrepareDynamicResources  22s   kubelet            Failed to prepare dynamic resources: prepare"
     " dynamic resources: NodePrepareResources: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
     Fault.GPUS_NOT_OFFERED),
    ("plugin name gpu.nvidia.com not found in the list of registered DRA plugins", Fault.GPUS_NOT_OFFERED),
    ("Warning  UnexpectedAdmissionError  3s  kubelet  Allocate failed due to requested number of devices unavailable"
     " for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected", Fault.GPUS_NOT_OFFERED),
    ("nvidia-operator-validator-h862j   0/1   Init:RunContainerError   3 (2m4s ago)   4m51s", Fault.GPUS_NOT_OFFERED),
    ("nvidia-driver-daemonset-abcde     0/1   CreateContainerError     0              10m", Fault.GPUS_NOT_OFFERED),
    ("nvidia-vgpu-manager-daemonset-x   0/1   CrashLoopBackOff         5              10m", Fault.GPUS_NOT_OFFERED),
    ("slurmd: error: Ignoring file-less GPU gpu:model_a from final GRES list", Fault.GPUS_NOT_OFFERED),
    # NVIDIA/dcgm-exporter: nv-hostengine's words
    ("Error: Failed to initialize NVML\ntime=\"2022-05-24T08:06:48Z\" level=fatal msg=\"Error starting nv-hostengine:"
     ' DCGM initialization error"', Fault.DRIVER_FAILED),
    # NVIDIA/dcgm-exporter issue 46, NVIDIA/go-nvml issue 164
    ("2022-03-03 01:22:10.481 ERROR [11:11] Cannot initialize the hostengine: Error: Failed to initialize NVML"
     " [/workspaces/dcgmlib/src/DcgmHostEngineHandler.cpp:3677] [DcgmHostEngineHandler::Init]", Fault.DRIVER_FAILED),
    ('level=ERROR msg="Cannot init NVML library; err: Unknown Error"', Fault.DRIVER_FAILED),
    ('level=ERROR msg="Cannot init NVML library; err: Driver Not Loaded"', Fault.DRIVER_NOT_LOADED),
    ("slurmd: error: Failed to initialize NVML: Driver Not Loaded", Fault.DRIVER_NOT_LOADED),
    ('level=error msg="Failed to initialize NVML: Driver/library version mismatch"', Fault.DRIVER_MISMATCH),
    ("[  145.699297] cloud-init[3620]: NVRM: API mismatch: the client has the version 535.161.08, but",
     Fault.DRIVER_MISMATCH),
    # NVIDIA/pyxis issue 110, where nothing else says why
    ("slurmstepd: error: pyxis:     [ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1",
     Fault.CONTAINER_ERROR),
]  # fmt: skip
NOTES = [
    # kubevirt/kubevirt: QEMU's words behind libvirt's
    ("qemu-kvm: -device vfio-pci,host=0000:01:00.0,id=ua-gpu1: vfio 0000:01:00.0: group 1 is not viable",
     "ls /sys/kernel/iommu_groups/1/devices"),
    ("Please ensure all devices within the iommu_group are bound to their vfio bus driver.", "IOMMU group"),
    ("kvm: -device vfio-pci: vfio 0000:01:00.0: failed to open /dev/vfio/11: Device or resource busy",
     "fuser -v /dev/vfio/11"),
    ("vfio 0000:06:00.0: failed to setup container for group 1: No available IOMMU models", "vfio_iommu_type1"),
    # NVIDIA/gpu-operator issue 1606
    ('time="2025-08-19T11:17:47Z" level=error msg="\\nResetting GPU 00000000:00:04.0 is not supported.\\n"',
     "restart that"),
    ("$ nvidia-smi -r -i 0\nResetting GPU 00000000:0A:04.0 is not supported.", "GPU 0000:0a:04.0 cannot be reset"),
    # NVIDIA/gpu-operator issue 2781: the lines of a driver container
    ("Detected Pre-NVL5 system\nrequest to query NVSwitch device information from NVSwitch driver failed with"
     " error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]", "load mlx5_ib and ib_umad"),
    (" IOMMU: Pass-through or enabled", "GPUDirect Storage"),
    (" GDS release version: 1.7.2.10\n libcufile version: 2.12", "nvidia_fs"),
    # kubernetes-sigs/dra-driver-nvidia-gpu issue 1417
    ("CUDA error in cuMemImportFromShareableHandle: invalid resource handle", "nvidia-imex-ctl -N"),
    # LMCache issue 2539, NVIDIA/gds-nvidia-fs issues 14 and 75
    ("RuntimeError: cuFileHandleRegister failed (cuFile err=5008, cuda_err=0)", "gdscheck -p"),
    ("cuFileRead returned error(ret=-1, step_size=1073741824, bytes_left=1073741824)", "cufile.log"),
    ("26-01-2026 15:24:49:200 [pid=1 tid=1] DEBUG  cufio-drv:796 gpu attribute pci_p2pdma not supported errornum: 801"
     " error:  CUDA_ERROR_NOT_SUPPORTED", "lsmod"),
    (f"ERROR: {BUSY}", "fuser -v /dev/nvidia*"),
    ("Compiler version check failed:\n\n-> The CC version check failed", "/proc/version"),
    ('level=fatal msg="Error applying MIG configuration with hooks: unable to apply MIG config with MIG mode disabled"',
     "mig.mode.pending"),
    ('level=error msg="Error setting MIG mode: Insufficient Permissions"', "only root may"),
    ("Failed to display compute instances: Insufficient Permissions", "only root may"),
    ("Warning  FailedScheduling  3s  default-scheduler  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
     "kubectl describe node"),
    ("12m  Warning  Unhealthy  pod/nvidia-driver-daemonset-x7k2p  Startup probe failed: NVIDIA-SMI has failed because"
     " it couldn't communicate with the NVIDIA driver.", "builds or loads the driver"),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=11.0. Some of the step tasks have been OOM Killed.",
     "MaxRSS"),
    ('E0114 22:32:39.849988 14067 remote_image.go:171] "PullImage from image service failed" err="write /var/lib/'
     'containerd/tmp: no space left on device"', "df -h"),
    ("srun: error: Node failure on gpu-a-12", "slurmctld"),
    ('level=info msg="Error: error validating driver installation: error creating symlinks: failed to create device'
     ' node nvidiactl: failed to determine major: invalid device node"', "nvidia-driver-daemonset"),
    # NVIDIA/dcgm-exporter issue 148, NVIDIA/DCGM issue 62
    ("Error: unable to establish a connection to the specified host: localhost\nError: Unable to connect to host"
     " engine. Host engine connection invalid/disconnected.", "at localhost: systemctl status nvidia-dcgm"),
    ("Error: Unable to connect to host engine. Host engine connection invalid/disconnected.", "systemctl status"),
    ("Error: Health watches not enabled. Please enable watches. ", "dcgmi health -s a"),  # dcgmi/Health.cpp
    ("Confidential Compute GPUs Ready state: not-ready", "-srs 1"),  # NVIDIA/nvtrust issues 37 and 56
    ('level=fatal msg="Error connecting to nv-hostengine: Host engine connection invalid/disconnected"',
     "nv-hostengine"),
    ('level=fatal msg="Error watching fields: The third-party Profiling module returned an unrecoverable error"',
     "nv-hostengine.log"),
    ("Error setting watches. Result: -33: This request is serviced by a module of DCGM that is not currently loaded",
     "dcgmi modules -l"),
    ('"error":"failed to initialize DCGM: error connecting to nv-hostengine: Host engine connection invalid"',
     "systemctl status nvidia-dcgm"),
    ('level=warning msg="failed to validate the driver, retrying after 5 seconds\\n"', "nvidia-driver-daemonset"),
    ("slurmstepd: error: pyxis: failed to import docker image\nslurmstepd: error: pyxis: printing enroot log file:",
     "enroot"),
]  # fmt: skip
WHOSE = {
    Fault.GPUS_NOT_OFFERED: "host/host/GPUs for the scheduler",
    Fault.VGPU_UNLICENSED: "host/host/vGPU licence",
    Fault.VGPU_VERSION: "host/host/vGPU software",
    Fault.CONTAINER_ERROR: "host/host/container runtime",
    Fault.GPU_IN_USE: "gpu/",
}
"""Beginning of the component; the others are the driver's."""
ASKED = [
    (f"{VGPU}error: vmiop_log: (0x0): vGPU is supported only on VGX capable boards", "-b -u nvidia-vgpu-mgr"),
    ("Feb 13 15:20:08 host nvidia-vgpud[1562]: error: failed to send vGPU configuration info to RM: 6", "nvidia-vgpud"),
    ("[ 936.327747] [nvidia-vgpu-vfio] a581675d-19eb-4f50-aa64-6aeb378c58c3: start failed. status: 0x0 Timeout Occured",
     "dmesg -T"),
]  # fmt: skip
SOUND = [
    "Confidential Compute GPUs Ready state: ready",
    f"{VGPU}notice: vmiop_log: (0x0): vGPU license state: Unlicensed (Restricted)\n"
    f"{VGPU}notice: vmiop_log: (0x0): vGPU license state: Licensed",
    "nvidia-gridd: Failed to acquire license from 10.0.0.1 (Error: timed out)\nnvidia-gridd: License acquired"
    " successfully. (Info: 10.0.0.1, NVIDIA Virtual Compute Server)",
    f"{NOT_LOADED.format('nvidia', 'No such device')}\nInstallation of the kernel module for the NVIDIA Accelerated"
    " Graphics Driver for Linux-x86_64 (version 535.161.07) is now complete.",
    "level=fatal msg=\"error setting MIGConfig: busy\"\nMIG configuration applied successfully",
    "slurmd: error: Waiting for gres.conf file /dev/nvidia0\nslurmd: gres.conf file /dev/nvidia0 now exists",
]
HARMLESS = [
    # DualCoder/vgpu_unlock issue 1: assertions of no account
    f"{VGPU}error: vmiop_log: NVOS status 0x56\n{VGPU}error: vmiop_log: Assertion Failed at 0xf69873bf:293",
    f"{VGPU}error: vmiop_log: (0x0): Failed to get C2C info",
    "CC State                   : OFF\nMulti-GPU Mode             : None\nCC GPUs Ready State        : Not Ready",
    "VM group 12 is not viable for this workload",
    "Insufficient Permissions",
]


def reports(text: str) -> list[dict[str, Any]]:
    """Results in a text, of all readers."""
    facts = [item for _, part in outputs(undone(tuple(text.splitlines()))) for item in part.facts.items()]
    return [fact for key, fact in facts if key.startswith("stated report ") and isinstance(fact, dict)]


@pytest.mark.parametrize(("line", "fault"), FAULTS)
def test_what_a_line_is_about(line: str, fault: FaultKind) -> None:
    assert {found["fault"] for found in reports(line)} - {""} == {fault.word}


@pytest.mark.parametrize(("line", "fault"), FAULTS)
def test_whose_it_is_and_that_the_first_step_disturbs_nothing(line: str, fault: FaultKind, tmp_path: Path) -> None:
    path = tmp_path / "line.txt"
    path.write_text(line, encoding="utf-8")
    for cause in judged(str(path))[1]["causes"]:
        assert cause["id"].startswith(WHOSE.get(fault, "driver/"))
        assert cause["action"]["action"] in ("inspect", "change-setting", "load-module")
        assert not cause["action"]["disturbs"]


@pytest.mark.parametrize(("line", "where"), ASKED)
def test_the_log_is_read_where_the_line_came_from(line: str, where: str, tmp_path: Path) -> None:
    path = tmp_path / "line.txt"
    path.write_text(line, encoding="utf-8")
    (cause,) = judged(str(path))[1]["causes"]
    assert where in cause["action"]["text"]


@pytest.mark.parametrize(("line", "step"), NOTES)
def test_what_is_no_fault_of_the_machine_says_where_to_look(line: str, step: str, tmp_path: Path) -> None:
    notes = [found for found in reports(line) if found["outcome"] == "note"]
    assert any(step in found["text"] for found in notes)
    path = tmp_path / "note.txt"
    path.write_text(line, encoding="utf-8")
    assert not judged(str(path))[1]["causes"]


@pytest.mark.parametrize("text", SOUND)
def test_what_failed_first_and_was_done_in_the_end(text: str) -> None:
    assert {found["outcome"] for found in reports(text)} == {"pass"}


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_of_no_account(text: str) -> None:
    assert not {found["outcome"] for found in reports(text)} - {"pass"}
