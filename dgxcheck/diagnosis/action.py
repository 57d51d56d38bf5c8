"""An action as data: the step, what to type, what to do by hand, what it disturbs, when it is due, its source.

``output`` makes the English: no sentence stands here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.facts.faults import GPU_DEAD, Fault
from dgxcheck.facts.faults.kind import OWN, RMA, XIDS, FaultKind, Scope, Step, Urgency
from dgxcheck.facts.record import Record

Code = Literal[
    "finding-remedy",  # the remedy of the finding ``remedy_of``
    # before anything that disturbs
    "drain-host", "drain-scheduler", "stop-gpu-clients", "stop-gpu-clients-and-display", "stop-gpu-programs",
    "stop-load",
    # resets and restarts
    "reset-one", "reset-named", "reset-together", "reset-board", "reset-with-fabric-manager", "reset-all-with-switches",
    "reboot", "power-cycle", "power-cycle-tray",
    "restart-fabric-manager", "restart-fabric-manager-and-gpus", "restart-imex", "restart-subnet-manager",
    "reload-driver",
    # settings
    "command", "if-unintended", "take-back-or-reset", "mig-pending", "default-power-limit", "lower-limit",
    "persistence", "large-bars", "large-bars-in-guest",
    "pcie-setting", "nccl-settings", "nvlink-setting", "memory-channels", "driver-library",
    "enable-port",
    "disable-acs", "socket-links", "peer-traffic", "peer-through-root",
    # diagnostics
    "field-diagnostic", "field-diagnostic-cooled", "field-diagnostic-by-load",
    "field-diagnostic-by-load-cooled", "watch-counters", "check-program", "restart-program",
    # what is looked at
    "inspect-link", "inspect-rack-fabric", "inspect-rack-links", "inspect-missing", "inspect-port", "inspect-module",
    "inspect-driver-versions", "inspect-soldered-memory",
    "inspect-airflow", "inspect-own-fans", "inspect-coolant", "inspect-water-cooling", "inspect-power",
    "inspect-card-power",
    "inspect-dimms", "inspect-cabling",
    "inspect-far-end", "inspect-power-shelves", "inspect-baseboard",
    "inspect-compute-boards",
    # what is taken out
    "reseat-card", "reseat-dual-gpu-card", "reseat-carrier", "reseat-adapter", "reseat-cable", "reseat-disk",
    "reseat-dimms", "move-cards", "move-adapter", "reseat-part",
    "reseat-drive",
    "replace-card", "replace-retail-card", "replace-dual-gpu-card", "replace-carrier", "replace-adapter",
    "replace-cable", "replace-disk", "replace-one-disk", "replace-dimms", "replace-supply", "restore-array",
    "replace-part", "reassemble-array",
    # what only the vendor does
    "vendor-gpu-tray", "vendor-water-cooled", "vendor-board", "vendor-disk", "vendor-missing-device", "vendor-driver",
    "vendor-power", "vendor-network-board",
    # what only the host of a virtual machine can do
    "contact-host",
]  # fmt: skip
Value = str | int | tuple[str, ...]


class Instruction(Record):
    """What to do by hand or to know beside the commands, as a code with its parameters."""

    code: Code
    values: Mapping[str, Value] = {}
    """Names and figures that the sentence needs: ``slot``, ``gpus``, ``services`` ..."""


class Action(Record):
    """One step."""

    step: Step
    commands: tuple[tuple[str, ...], ...] = ()
    """What to type, in order, each as an argument list; empty where all is done by hand."""
    instruction: Instruction
    remedy_of: str = ""
    """Key of the finding whose remedy is the instruction (code ``finding-remedy``)."""
    disturbs: tuple[str, ...] = ()
    """Names of the devices whose jobs or traffic stop; empty for none, and for the whole host."""
    scope: Scope = "none"
    urgency: Urgency = "now"


PREPARATORY = ("drain", "stop-jobs")
"""Steps that cure nothing where another follows them."""


def first_remedy(actions: tuple[Action, ...]) -> Action:
    """The first action that can help: that after draining the host and stopping its jobs."""
    return next((action for action in actions if action.step not in PREPARATORY), actions[-1])


def preparatory(actions: tuple[Action, ...]) -> tuple[Step, ...]:
    """What comes before ``first_remedy`` so that it ends no job: ``drain``, ``stop-jobs``."""
    before = actions[: actions.index(first_remedy(actions))]
    return tuple(dict.fromkeys(action.step for action in before if action.step in PREPARATORY))


ORDER: tuple[Urgency, ...] = ("now", "next-drain", "next-maintenance", "watch")


def urgency_of(findings: Iterable[Finding]) -> Urgency:
    """The most urgent of the findings; what could not be read makes nothing more urgent.

    An uncorrected error whose row waits for its remapping was contained, and its page is no longer used (Ampere and
    later; https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html), as one after which the driver asks to
    drain and then to reset; one that was not has an Xid of its own.
    """
    every = [*findings]
    with_fault = [finding for finding in every if finding.judgement.fault is not None]
    if any(finding.judgement.fault in (Fault.REMAP_PENDING, Fault.DRAIN_AND_RESET) for finding in with_fault):
        with_fault = [finding for finding in with_fault if finding.judgement.fault is not Fault.ECC_UNCORRECTED]
    return min(map(_urgency, with_fault or every), key=ORDER.index, default="now")


def _urgency(finding: Finding) -> Urgency:
    fault = finding.judgement.fault
    if finding.status is Status.WARN:
        return "next-drain" if fault is None else fault.warns
    return "now" if fault is None else fault.fails


_SMI = "nvidia-smi(1)"
_RESET = f"{_SMI}, --gpu-reset"
_FM = "NVIDIA Fabric Manager guide (DU-09883)"
_MANUAL = "server's manual"
_RMA = f"{RMA}: field diagnostic before an RMA"
_HV = "https://docs.nvidia.com/health-validation/reference/checks/xid.md: drain before reset_gpu and service_required"
_SERVICE = "the machine's service manual (of NVIDIA for a DGX): parts that only the vendor replaces"
_MIG = "NVIDIA MIG user guide: nvsm and dcgm are stopped before a reset on DGX"
_ACS = "NVIDIA NCCL user guide, troubleshooting: PCI Access Control Services"
_PODS = "https://github.com/NVIDIA/NVSentinel/pull/1243: pods of the GPU Operator, persistence mode"
_LIBRARY = "ldconfig(8); NVIDIA driver README: library and module of one version"
_NO_TEST = (
    "https://docs.nvidia.com/datacenter/dcgm/latest/reference/command-line-reference/dcgmi/dcgmi-diag.html: level 1"
    " alone on GPUs that are not for data centers"
)
SOURCES: Mapping[Code, str] = {
    "drain-host": f"{OWN}: no job starts on what is about to be disturbed",
    "drain-scheduler": "scontrol(1), pbsnodes(8B), https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/;"
    f" {_SMI}: the health of what was reset is verified before it is used",
    "stop-gpu-clients": f"{_RESET}: no program may use the GPU; {_MIG}; fuser(1); {_PODS}",
    "stop-gpu-clients-and-display": f"{_RESET}: no program, X server included, may use the GPU; systemctl(1), isolate",
    "stop-gpu-programs": f"{_SMI}, --query-compute-apps",
    "stop-load": f"{OWN}; {_SMI}, --query-compute-apps",
    "reset-one": f"{_RESET}: GPUs with NVLinks are reset one by one from Ampere on, before Ampere together",
    "reset-named": f"{_RESET}: without -i all GPUs are reset",
    "reset-together": f"{_RESET}: before Ampere all GPUs that NVLinks join",
    "reset-board": f"{OWN}: a K80 board has two GPUs behind one PCIe switch; {_RESET}",
    "reset-with-fabric-manager": f"{_RESET}: on Ampere NVSwitch systems Fabric Manager is required",
    "reset-all-with-switches": f"{_RESET}; {_FM}: all GPUs and NVSwitches together, Fabric Manager stopped",
    "reboot": f"{OWN}: where nothing that disturbs less re-initialises it",
    "power-cycle": f"{OWN}: where a reboot does not help, which leaves devices powered",
    "power-cycle-tray": "NVIDIA DGX GB200 user guide: compute tray Redfish commands, rack reboot sequence",
    "restart-fabric-manager": f"{_FM}: ABORT_CUDA_JOBS_ON_FM_EXIT",
    "restart-fabric-manager-and-gpus": f"{_FM}, initializing NVSwitch and NVLink: from Hopper on Fabric Manager is"
    " stopped, the GPUs are reset, then it is started",
    "restart-imex": "NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN; NVIDIA IMEX service guide",
    "restart-subnet-manager": "opensm(8), sminfo(8)",
    "reload-driver": "modprobe(8); NVIDIA driver README: modules and what uses them",
    "command": "nvidia-modprobe(1)",
    "if-unintended": f"{_SMI}: ECC and compute mode, clocks",
    "take-back-or-reset": "nvmlDeviceGetEccMode: current and pending mode",
    "mig-pending": "nvmlDeviceGetMigMode: current and pending mode; NVIDIA MIG user guide: enable MIG mode",
    **dict.fromkeys(("default-power-limit", "lower-limit"), f"{_SMI}, --power-limit"),
    "persistence": "NVIDIA driver persistence, https://docs.nvidia.com/deploy/driver-persistence/index.html",
    "large-bars": "NVIDIA driver README: Above 4G Decoding; Linux PCI resource assignment",
    "large-bars-in-guest": "QEMU: pci-hole64-size; edk2 OvmfPkg PlatformInitLib: opt/ovmf/X-PciMmio64Mb; VMware KB"
    " 2142307: pciPassthru.64bitMMIOSizeGB",
    "pcie-setting": f"{_MANUAL}: PCIe slot configuration",
    "nccl-settings": "NVIDIA NCCL user guide: environment variables",
    "nvlink-setting": "NVIDIA driver README: NVreg_NvLinkDisable, /proc/driver/nvidia/params",
    "memory-channels": "server's manual: memory population, NUMA and power settings",
    "socket-links": "server's manual: link frequency and power management of QPI, UPI or xGMI; numactl(8)",
    "peer-traffic": f"{_ACS}; NVIDIA NCCL user guide: NCCL_P2P_DISABLE",
    "peer-through-root": f"{_ACS}; NVIDIA NCCL user guide: NCCL_P2P_LEVEL",
    "driver-library": _LIBRARY,
    "enable-port": "NVIDIA MFT user manual: mlxlink --port_state",
    "disable-acs": f"{_ACS}; setpci(8); PCI Express base specification, ACS control register",
    "field-diagnostic-cooled": "NVIDIA DCGM user guide: dcgmi diag -r 3, which loads every GPU",
    "field-diagnostic": f"NVIDIA DCGM user guide: dcgmi diag -r 3; {_RMA}",
    **dict.fromkeys(("field-diagnostic-by-load", "field-diagnostic-by-load-cooled"), _NO_TEST),
    "watch-counters": f"{OWN}; limits have their sources in dgxcheck health --explain CHECK",
    "check-program": f"{XIDS}: RESTART_APP, CHECK_APP; compute-sanitizer manual",
    "restart-program": f"{XIDS}: Xid 94, RESTART_APP",
    "inspect-rack-fabric": "NVIDIA GB200 NVL72 and NMX-C user guides; NVIDIA IMEX service guide",
    "inspect-rack-links": "NVIDIA NVOS user manual for NVLink switches: link diagnostics of each port; NMX-C user"
    " guide",
    "inspect-missing": "lspci(8); https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html",
    "inspect-port": "NVIDIA MFT user manual: mlxlink; perfquery(8), ethtool(8)",
    "inspect-module": "NVIDIA MFT user manual: mlxlink; NVIDIA NVOS user manual, link diagnostic per port",
    "inspect-driver-versions": f"modinfo(8), {_LIBRARY}",
    "inspect-soldered-memory": "ipmitool(1), sel; NVIDIA Grace CPU: LPDDR5X on the module",
    "inspect-link": "Linux Documentation/PCI/pcieaer-howto; lspci(8)",
    "inspect-airflow": f"{_MANUAL}: cooling", "inspect-own-fans": f"nvmlDeviceGetFanSpeed; {_MANUAL}: cooling",
    "inspect-coolant": "NVIDIA DGX GB200 user guide: liquid cooling of the compute trays",
    "inspect-power": "ipmitool(1), sdr; server's manual: power supplies",
    "inspect-baseboard": "https://docs.nvidia.com/datacenter/dps/versions/0.7.2/guides/concepts/redfish:"
    " HGX_Baseboard_0; ipmitool(1), sdr and sel",
    "inspect-compute-boards": "NVIDIA DGX GB200 user guide, hardware: compute trays hold one or two compute boards;"
    " ipmitool(1), sel",
    "inspect-card-power": f"nvml.h: NVML_ERROR_INSUFFICIENT_POWER; {_MANUAL}: PCIe cards",
    "inspect-power-shelves": "NVIDIA DGX GB200 user guide: power shelves feed all trays of the rack",
    "inspect-dimms": "dmidecode(8), ipmitool(1); Linux EDAC documentation",
    "inspect-cabling": "ibdiagnet and iblinkinfo(8): speed and width of every link",
    "inspect-far-end": "smpquery(8), direct routes; sminfo(8), which asks the LID that the port knows",
    "reseat-card": f"{OWN}; {_MANUAL}: PCIe cards",
    "reseat-dual-gpu-card": f"{_MANUAL}: PCIe cards; Tesla K80 board specification: two GPUs on one board",
    **dict.fromkeys(("reseat-adapter", "replace-adapter"), f"{_MANUAL}; NVIDIA ConnectX user manual"),
    **dict.fromkeys(("reseat-cable", "replace-cable"), "NVIDIA ConnectX user manual: cables and transceivers"),
    "reseat-disk": f"md(4), mdadm(8); {_MANUAL}",
    "reseat-drive": f"{_MANUAL}: drives",
    **dict.fromkeys(("reseat-dimms", "replace-dimms"), f"{_MANUAL}: memory"),
    **dict.fromkeys(("move-cards", "move-adapter"), "the reference machine's wiring (dgxcheck profiles)"),
    **dict.fromkeys(("reseat-part", "replace-part"), _MANUAL),
    "replace-card": _RMA,
    "replace-retail-card": "https://www.nvidia.com/en-us/support/warranty/: of GeForce NVIDIA's own cards alone; the"
    " maker's warranty",
    "replace-dual-gpu-card": f"{_RMA}; Tesla K80 board specification: two GPUs on one board",
    **dict.fromkeys(("reseat-carrier", "replace-carrier"), f"{_MANUAL}: risers and boards"),
    **dict.fromkeys(("replace-disk", "reassemble-array"), "md(4), mdadm(8)"),
    "replace-one-disk": f"smartctl(8), nvme-smart-log(1); {_MANUAL}",
    "replace-supply": f"{_MANUAL}: power supplies",
    "restore-array": "md(4): RAID 0 and linear have no redundancy",
    **dict.fromkeys(("vendor-gpu-tray", "vendor-board", "vendor-missing-device", "vendor-power"), _SERVICE),
    **dict.fromkeys(("inspect-water-cooling", "vendor-water-cooled"), "NVIDIA DGX Station user guide: water cooling"),
    "vendor-disk": f"{_SERVICE}; md(4)",
    "vendor-network-board": "NVIDIA DGX H100, B200 and B300 user guides: network modules; GB200 and GB300: compute"
    " trays",
    "vendor-driver": f"{OWN}; nvidia-bug-report.sh",
    "contact-host": "nvmlDeviceSetMigMode: a guest may have no reset, its VM is restarted; DCGM installation guide:"
    " bare metal and full GPU passthrough alone",
}
"""By code, where ``source_of`` knows none that is more particular."""


def source_of(action: Action, faults: Iterable[FaultKind], finding: Finding | None) -> str:
    """What says that this is to be done: of a finding's own remedy the fault's source, else what its check reads; of a
    drain after an Xid NVIDIA's guide of those, of a reboot for a lost GPU its catalogue; of a step that a fault's row
    names the source of that row.
    """
    if finding is not None:
        fault = finding.judgement.fault
        return (fault.source if fault is not None else "") or f"{OWN}, by {finding.source}"
    code, reported = action.instruction.code, [*faults]
    if action.step == "drain" and any(each in (Fault.XID, Fault.GPU_LOST) or each.source == XIDS for each in reported):
        return f"{_HV}; {SOURCES[code]}" if code == "drain-scheduler" else _HV
    if code == "reboot" and GPU_DEAD & {*reported} == {Fault.GPU_LOST}:
        return f"{XIDS}: Xid 79, RESTART_BM"
    named = (each.source for each in reported if action.step in each.steps and each.source not in ("", OWN))
    return next(named, SOURCES[code]) if code in ("reboot", "watch-counters") else SOURCES[code]
