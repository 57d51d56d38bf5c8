"""Single lines in which programs around the driver say why they failed: vGPU Manager and licences, QEMU, mig-parted,
gdscheck, clients of DCGM, the validator of the GPU operator.

Messages: https://docs.nvidia.com/vgpu/latest/grid-vgpu-user-guide, troubleshooting; QEMU hw/vfio/container.c;
https://github.com/NVIDIA/mig-parted; https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide;
https://github.com/NVIDIA/DCGM; https://github.com/NVIDIA/gpu-operator, validator.
"""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered

VGPU, LICENCE, QEMU, MIG = "vGPU Manager", "vGPU licence", "QEMU", "mig-parted"
GDS, DCGM, OPERATOR, DRIVER, DISK = "gdscheck", "DCGM", "GPU operator", "NVIDIA driver", "disk"
IMEX, CC = "imex", "nvidia-smi conf-compute"
_LOG = r"vmiop_(?:env_)?log: (?:error: )?(?:\(0x[0-9a-f]{1,3}\): )?"
_NO_NVML = r"\w(?:: |=\")(?:Failed to initialize NVML|Cannot init NVML library; err): "
_STATE = rf"notice: {_LOG}vGPU license state: "


class _Row(Record, kw_only=False):
    """What a line of a form says of a topic."""

    tool: str
    topic: str
    form: LazyPattern
    outcome: Outcome
    fault: FaultKind | None = None
    text: str = "{said}"
    """``{said}`` stands for that group of the form."""


_ROWS = (
    _Row(VGPU, "start", LazyPattern(
        rf"error: {_LOG}(?P<said>(?!Failed to get (?:c2c|C2C) info|Assertion Failed)"
        r"(?=.{0,200}(?:[Ff]ail|only on|[Ii]ncompatible|not supported|[Uu]nable))[A-Za-z_].{1,240})"),
        "warn", Fault.DRIVER_ERROR),
    _Row(VGPU, "guest", LazyPattern(
        r"nvidia-vgpu-vfio\] [0-9a-f-]{36}: (?P<said>start failed\. status: 0x[0-9a-f]{1,4}\b.{0,40})"),
        "warn", Fault.DRIVER_ERROR),
    _Row(VGPU, "configuration", LazyPattern(r"(?P<said>failed to send vGPU configuration info to RM: \d{1,4})"),
        "warn", Fault.DRIVER_ERROR, "nvidia-vgpud: {said}"),
    _Row(VGPU, "licence", LazyPattern(rf"{_STATE}Licensed"), "pass"),
    _Row(VGPU, "licence", LazyPattern(rf"{_STATE}Unlicensed \(Restricted\)"),
        "warn", Fault.VGPU_UNLICENSED, "a guest's vGPU is slowed down for lack of a licence"),
    _Row(VGPU, "licence", LazyPattern(rf"{_STATE}Unlicensed \(Unrestricted\)"),
        "note", None, "a guest's vGPU has no licence yet, as until its driver asked for one"),
    _Row(LICENCE, "licence", LazyPattern(r"License acquired successfully"), "pass"),
    _Row(LICENCE, "licence", LazyPattern(
        r"(?P<said>Failed to (?:acquire|renew) license from .{1,160})"), "warn", Fault.VGPU_UNLICENSED),
    _Row(QEMU, "group", LazyPattern(r"vfio:? .{0,40}\bgroup (?P<said>\d{1,5}) is not viable"),
        "note", None, "a device was not given to a guest: others of its IOMMU group, which"
        " ls /sys/kernel/iommu_groups/{said}/devices lists, are not bound to vfio-pci"),
    _Row(QEMU, "group", LazyPattern(
        r"[Pp]lease ensure all devices within the iommu_group are bound to their vfio bus driver"),
        "note", None, "a device was not given to a guest: others of its IOMMU group are not bound to vfio-pci"),
    _Row(QEMU, "busy", LazyPattern(
        r"vfio:? .{0,40}\bfailed to open /dev/vfio/(?P<said>\d{1,5}): Device or resource busy"),
        "note", None, "a device was not given to a guest: another one has it, which fuser -v /dev/vfio/{said} shows"),
    _Row(QEMU, "iommu", LazyPattern(r"failed to setup container for group \d{1,5}: No available IOMMU models"),
        "note", None, "a device was not given to a guest: see whether an IOMMU is on (ls /sys/class/iommu) and"
        " vfio_iommu_type1 is loaded"),
    _Row(MIG, "rights", LazyPattern(
        r"(?P<said>[Ee]rror (?:setting|getting|clearing) MIG[^\"]{1,200}: Insufficient Permissions)"),
        "note", None, "{said}: only root may, in a container that is privileged"),
    _Row(MIG, "configuration", LazyPattern(
        r"(?P<said>error (?:setting MIG(?:Config| mode)|resetting all GPUs|attempting multiple config orderings)"
        r"|unable to apply MIG config with MIG mode disabled)"),
        "note", None, "{said}: nvidia-smi --query-gpu=index,mig.mode.current,mig.mode.pending --format=csv shows which"
        " GPU waits for a reset, and its log what uses it"),
    _Row(MIG, "configuration", LazyPattern(r"MIG configuration applied successfully"), "pass"),
    _Row(GDS, "nvidia-fs", LazyPattern(r"^libcufile version: \d"),
        "note", None, "it shows no version of nvidia_fs: see with lsmod whether that is loaded, and with modinfo"
        " nvidia_fs whether it is installed; without it GPUDirect Storage copies through the host or uses P2PDMA"),
    _Row(GDS, "platform", LazyPattern(r"Platform verification succeeded|GDS release version ?: \d.{0,40}"),
        "pass"),
    _Row(GDS, "verification", LazyPattern(r"(?P<said>Platform verification error.{0,200})"), "note"),
    _Row(GDS, "iommu", LazyPattern(r"^IOMMU: (?:enabled|Pass-through or enabled)$"),
        "note", None, "an IOMMU is on, in passthrough or not, with which GPUDirect Storage is not sure to work or to be"
        " fast"),
    _Row(GDS, "acs", LazyPattern(r"(?P<said>Found ACS enabled for switch .{1,40})"),
        "unknown", Fault.ACS),
    _Row(GDS, "p2pdma", LazyPattern(
        r"(?P<said>gpu attribute pci_p2pdma not supported|Failed to get cuda p2p device address)\b"
        r".{0,120}errornum: 801"),
        "note", None, "{said}: the driver offers no P2PDMA for this GPU; lsmod shows whether nvidia_fs is loaded,"
        " gdscheck -p what that serves instead"),
    _Row(GDS, "io", LazyPattern(
        r"\b(?P<said>cuFile(?:HandleRegister|BufRegister|DriverOpen|Read|Write)\w{0,10} (?:failed|returned error)"
        r".{0,80})"),
        "note", None, "{said}: gdscheck -p shows which file systems and GPUs GPUDirect Storage serves, cufile.log why"
        " not this one"),
    _Row(DCGM, "hostengine", LazyPattern(
        r"unable to establish a connection to the specified host: (?P<said>[\w.:-]{1,100})"),
        "note", None, "no nv-hostengine answers at {said}: systemctl status nvidia-dcgm says whether it runs"),
    _Row(DCGM, "health", LazyPattern(r"Error: Health watches not enabled\."),
        "note", None, "its health watches are off, so that it has nothing to report: dcgmi health -s a"),
    _Row(CC, "ready", LazyPattern(r"Confidential Compute GPUs Ready state: ready"), "pass"),
    _Row(CC, "ready", LazyPattern(r"Confidential Compute GPUs Ready state: not[- ]ready"),
        "note", None, "in confidential computing GPUs take no work, and CUDA fails, before their guest attests them and"
        " runs nvidia-smi conf-compute -srs 1"),
    _Row(DCGM, "hostengine", LazyPattern(r"Unable to connect to host engine\."),
        "note", None, "no nv-hostengine answers: systemctl status nvidia-dcgm says whether it runs"),
    _Row(DCGM, "hostengine", LazyPattern(
        r"(?:Error (?:connecting to|starting) nv-hostengine|Failed to initialize DCGM): (?P<said>.{1,160}?)\"?$"),
        "note", None, "no nv-hostengine: {said}; nvidia-smi on the host shows whether the driver works,"
        " systemctl status nvidia-dcgm whether it runs"),
    _Row(DCGM, "library", LazyPattern(r"libdcgm\.so(?:\.\d)? not [Ff]ound"),
        "note", None, "libdcgm.so is not installed where its client runs"),
    _Row(DCGM, "profiling", LazyPattern(r"third-party Profiling module returned an unrecoverable error"),
        "note", None, "its profiling module failed: nv-hostengine.log says why; another profiler may hold the counters,"
        " or a newer driver or DCGM is needed"),
    _Row(DRIVER, "files", LazyPattern(r"Failed to query NVIDIA devices\. Please ensure that the NVIDIA device files"),
        "note", None, "nvidia-persistenced found no GPU: nvidia-smi shows whether the driver is loaded since"),
    _Row(DRIVER, "absent", LazyPattern(rf"{_NO_NVML}Driver Not Loaded"),
        "warn", Fault.DRIVER_NOT_LOADED, "a program found it not loaded"),
    _Row(DRIVER, "client", LazyPattern(rf"{_NO_NVML}Driver/library version mismatch"),
        "warn", Fault.DRIVER_MISMATCH, "a program with another version of its library was refused"),
    _Row(DCGM, "nvml", LazyPattern(
        r"(?:^|Cannot initialize the hostengine: )Error: Failed to initialize NVML(?: \[.{1,300})?$"),
        "warn", Fault.DRIVER_FAILED, "it cannot initialise NVML"),
    _Row(DCGM, "nvml", LazyPattern(r"Cannot init NVML library; err: (?P<said>[\w ]{3,60})"),
        "warn", Fault.DRIVER_FAILED, "it cannot initialise NVML: {said}"),
    _Row(DRIVER, "client", LazyPattern(
        r"\w\[\d{1,9}\]: NVRM: API mismatch: the client .{0,80}?has (?:the )?version (?P<said>\d[\d.]{2,20}\d)"),
        "warn", Fault.DRIVER_MISMATCH, "it refused a program with library version {said}, as another program logged"),
    _Row(IMEX, "import", LazyPattern(r"cuMemImportFromShareableHandle.{0,40}: (?P<said>invalid resource handle)"),
        "note", None, "a program could not map memory of another: if that is on another node, nvidia-imex-ctl -N on"
        " every node shows whether their domain is up, under Kubernetes in the daemons of the compute domain"),
    _Row(DISK, "space", LazyPattern(r"^(?!.{0,2000}(?:NCCL|nccl-|/dev/shm)).{0,2000}[Nn]o space left on device"),
        "note", None, "a program found no space on a disk: df -h and df -i of the file system that the line names"),
    _Row(OPERATOR, "validator", LazyPattern(r"failed to validate the driver, retrying|command failed, retrying after"),
        "note", None, "its validator waits for the driver: see nvidia-smi on the host, or the log of the pod"
        " nvidia-driver-daemonset"),
)  # fmt: skip


def read_messages(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One result for each topic of each program: of its lines the first since the last good one."""
    parts: dict[str, ToolPart] = {}
    found: dict[tuple[str, str], tuple[_Row, str]] = {}
    for number, text in numbered(lines):
        for row in _ROWS:
            if (match := row.form.search(text)) is None:
                continue
            parts.setdefault(row.tool, ToolPart(row.tool)).lines.add(number)
            before = found.get((row.tool, row.topic))
            if before is None or "pass" in (row.outcome, before[0].outcome):
                said = match.groupdict().get("said") or ""
                found[row.tool, row.topic] = row, row.text.format(said=said.strip())
            break
    for (tool, topic), (row, text) in found.items():
        parts[tool].add(HOST, topic, row.outcome, row.fault, "" if row.outcome == "pass" else text)
    return tuple(each for part in parts.values() for each in part.imported())
