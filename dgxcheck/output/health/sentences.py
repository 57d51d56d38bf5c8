"""What an instruction says: a sentence for each code, with its values."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.finding import Finding
from dgxcheck.diagnosis.action import Code, Instruction
from dgxcheck.facts.faults.kind import SOLDERED

_THEN = "if it is refused as in use, nvidia-smi{chosen} -pm 0, reset, nvidia-smi{chosen} -pm 1{mig}; then restart" \
    " the stopped services"
_AT_BOOT = "systemctl enable --no-reload nvidia-fabricmanager makes it run after a reboot too"
_BY_LOAD = "for it loads every GPU: DCGM has no hardware test for this board; then the diagnostic of its maker"
_WINDOW = (
    "a larger window for 64-bit MMIO (QEMU: pci-hole64-size; OVMF: opt/ovmf/X-PciMmio64Mb; VMware:"
    " pciPassthru.use64bitMMIO and pciPassthru.64bitMMIOSizeGB)"
)
SENTENCES: Mapping[Code, str] = {
    "finding-remedy": "{remedy}",
    "drain-host": "take the host out of the scheduler so that no new jobs start, until dgxcheck health passes again",
    "drain-scheduler": "no new jobs start, running jobs can end; once dgxcheck health passes again, {back}",
    "stop-gpu-clients": "stop every program listed{also}{pods}{machines}",
    "stop-gpu-clients-and-display": "a display runs on the GPU: systemctl isolate ends every graphical"
    " session, so warn who works there; stop every program listed{also}{pods}{machines}; once all is done systemctl"
    " isolate graphical.target brings the desktop back",
    "stop-gpu-programs": "stop those programs listed that are not needed",
    "stop-load": "stop the programs listed, so that it cools",
    "reset-one": _THEN,
    "reset-named": "find the index of this GPU in nvidia-smi, then nvidia-smi -r -i INDEX; restart"
    " the stopped services",
    "reset-together": f"these GPUs are reset together; {_THEN}",
    "reset-board": f"both GPUs of the board are reset together; {_THEN}",
    "reset-with-fabric-manager": f"with Fabric Manager running; {_THEN}",
    "reset-all-with-switches": f"resets all GPUs{{switches}}; {_THEN}",
    "reboot": "{again}",
    "power-cycle": "shut down, remove AC power for a minute, power on",
    "power-cycle-tray": "shut its system down and wait until it is off, for this cuts power; then this tray alone,"
    " through its BMC (the rack's power shelves feed every tray): curl -k -u USER"
    " -H 'Content-Type: application/json' -X POST -d '{{\"ResetType\":\"AuxPowerCycleForce\"}}'"
    " https://BMC/redfish/v1/Chassis/BMC_0/Actions/Oem/NvidiaChassis.AuxPowerReset",
    "restart-fabric-manager": f"CUDA programs on all GPUs can be aborted{{machines}}; {_AT_BOOT}",
    "restart-fabric-manager-and-gpus": "Fabric Manager of these GPUs is stopped, and started only after a reset of all"
    f" of them: else they keep an outdated state of the fabric{{machines}}{{mig}}; then restart the stopped services;"
    f" {_AT_BOOT}",
    "restart-imex": "on all nodes of the domain, once all of them are drained: it ends the multi-node jobs of the whole"
    " NVLink domain",
    "restart-subnet-manager": "only if none answered: read its log (opensm) on the host or switch where it runs, then"
    " restart it",
    "reload-driver": "then restart the stopped services",
    "command": "",
    "if-unintended": "if this was not intended{deferred}",
    "take-back-or-reset": "takes the pending change back and needs no reset; if the change was intended, reset the GPU"
    " instead",
    "mig-pending": "a reset of the GPU applies the change, while no job uses it; if it was not intended, {command}"
    " takes it back and needs no reset",
    "default-power-limit": "if this was not intended, set the default limit shown by nvidia-smi -q -d POWER"
    " (nvidia-smi -pl)",
    "lower-limit": "unless a lower limit was set for power or cooling of the rack; holds until the driver unloads",
    "persistence": "then systemctl enable --no-reload nvidia-persistenced, so that it holds after a reboot",
    "large-bars": "enable Above 4G Decoding with the largest MMIO range in the system firmware{or_guest}",
    "large-bars-in-guest": f"have who runs its host give the virtual machine {_WINDOW}",
    "pcie-setting": "set the slot to auto in the firmware: link speed and width",
    "nccl-settings": "run with NCCL_DEBUG=INFO; look for NCCL_P2P_DISABLE, NCCL_P2P_LEVEL and NCCL_SHM_DISABLE in the"
    " job's environment, /etc/nccl.conf and ~/.nccl.conf",
    "nvlink-setting": "look for NVreg_NvLinkDisable in /etc/modprobe.d and remove it (the value in effect:"
    " /proc/driver/nvidia/params); in a virtual machine without it, its host's fabric manager and partition decide",
    "socket-links": "check the socket links (QPI, UPI, xGMI) in the firmware, their speed, width and power management,"
    " and the kernel log for machine checks; measure again with process and memory on the GPU's"
    " NUMA node",
    "peer-traffic": "check ACS and IOMMU on the path (dgxcheck topo --peers){guest}; until it is fixed programs can"
    " copy through host memory (NCCL_P2P_DISABLE=1)",
    "peer-through-root": "check ACS and IOMMU (dgxcheck topo --peers) and the PCIe settings in the system firmware;"
    " until it is fixed programs can keep P2P within PCIe switches (NCCL_P2P_LEVEL=PXB)",
    "memory-channels": "check the population of the memory channels, NUMA and power settings in the system firmware",
    "driver-library": "if libnvidia-ml.so.1 is still not found, install the driver libraries of version {version}, the"
    " version of the loaded module",
    "enable-port": "if a cable is plugged in and the port is to be used",
    "disable-acs": "lasts until the next reboot; to keep it, disable ACS in the system firmware; not on a host that"
    " gives devices to virtual machines",
    "field-diagnostic": "once no job runs on these GPUs{whole}{lost}{vendors}",
    "field-diagnostic-cooled": "only once the cooling is repaired and no job runs{whole}, for it heats every"
    " GPU{vendors}",
    "field-diagnostic-by-load": f"once no job runs{{lost}}, {_BY_LOAD}",
    "field-diagnostic-by-load-cooled": f"only once the cooling is repaired and no job runs, {_BY_LOAD}",
    "watch-counters": "nothing to do now; act if it comes back or grows",
    "check-program": "debug the program that caused it (compute-sanitizer); suspect the GPU only if several programs"
    " fail on it",
    "restart-program": "restart the program that was stopped",
    "inspect-airflow": "check fans and inlet air",
    "inspect-own-fans": "look whether this card's fans turn (nvidia-smi shows the speed that the driver asks for, not"
    " the real one), whether a program sets that speed, and whether dust or cables block them, then check the inlet"
    " air",
    "inspect-coolant": "check coolant flow and temperature at this tray, its leak sensors (BMC), then"
    " the rack's coolant distribution unit",
    "inspect-water-cooling": "check pump, coolant level and radiator; then call the vendor",
    "inspect-card-power": "check this card's own auxiliary power cables, at both ends, its slot and riser, once it is"
    " drained and with the power off; then power supplies and their feeds",
    "inspect-power": "check power supplies, power cables, their feeds and the rack's power distribution",
    "inspect-baseboard": "look in the BMC's sensors and event log for power of the GPU baseboard that failed and for"
    " its connectors (from H100 on Redfish lists it as HGX_Baseboard_0, its retimers as HGX_PCIeRetimer_0 and up)",
    "inspect-compute-boards": "look in the BMC's event log for power, heat or a leak at these GPUs; the Grace on their"
    " compute board runs, so that the rack's power shelves are not the reason",
    "inspect-power-shelves": "look at the rack's power shelves and at this tray's power distribution board: it has no"
    " power supply of its own",
    "inspect-rack-fabric": "the fabric manager of this rack runs on its NVLink switch trays (NMX-C): check its log"
    " there and the partition of this GPU",
    "inspect-link": "find the error in the kernel log and check for a hot-plug event or reset at that time: one"
    " from which the device recovered, and which does not recur, needs no further action; a port that contained it"
    " (DPC) took its link down",
    "inspect-rack-links": "look at the other end before this tray is blamed: do GPUs of other trays lack links to the"
    " same NVLink switch tray (dgxcheck fleet); what do NMX-C's log and, on the switch tray, nv show interface --view"
    " link-diagnostics say; if the switch tray is at fault, nothing is to be done on this one",
    "inspect-missing": "find the port that has nothing below it, and the kernel log's lines about it (dmesg: PCIe"
    " errors, no space for a BAR, a link that is down)",
    "inspect-port": "compare with the switch port: what speed, width and FEC it is set to, and its error counters;"
    " look at temperature and received power of the module",
    "inspect-module": "read the module's part number and power class and its temperature (mlxlink -m), and whether the"
    " adapter supports it; of one that is too hot see the airflow at its cage, of one over the power budget what power"
    " the port may give",
    "inspect-driver-versions": "a reload takes the module that is on disk: it helps only where modinfo shows the"
    " version of the library (the file that libcuda.so.1 and libnvidia-ml.so.1 lead to); else the driver's packages are"
    " made whole first, once the host is drained. Where only a container fails, the image has its own libcuda.so.1"
    " (there ldconfig -p, LD_LIBRARY_PATH, /usr/local/cuda/compat): then the host needs nothing",
    "inspect-soldered-memory": SOLDERED,
    "inspect-dimms": "find the label of the DIMM that is missing or has errors (ras-mc-ctl --errors, the BMC's event"
    " log)",
    "inspect-cabling": "check the switch that the cables lead to and how they are seated",
    "inspect-far-end": "see where the cable leads; ask for the subnet manager (sminfo) from an ACTIVE port of that"
    " fabric or on the host or switch where it runs, for a port that waits cannot ask; if one answers, read its log"
    " and the partitions of this port",
    "reseat-card": "with the power off reseat the card{slot} and its riser{module}",
    "reseat-dual-gpu-card": "with the power off reseat the card{slot} that carries {gpus}, and its riser",
    "reseat-carrier": "with the power off reseat the board or riser that carries {devices}",
    "reseat-adapter": "with the power off reseat the adapter{slot} and its riser",
    "reseat-cable": "reseat the cable or transceiver{at}",
    "reseat-disk": "reseat {disk}, and leave in those that still run",
    "reseat-drive": "back up its volume, shut down, then reseat the drive {name}: never pull it from a running array",
    "reseat-dimms": "with the power off reseat the DIMM{at}",
    "move-cards": "with the power off move the cards back to the slots of the reference machine",
    "move-adapter": "with the power off move the adapter to its slot in the reference machine",
    "reseat-part": "reseat it",
    "replace-card": "replace the card{slot} through the vendor's RMA",
    "replace-retail-card": "replace the card{slot} through the warranty of its maker or seller",
    "replace-dual-gpu-card": "replace the card{slot} that carries {gpus} through the vendor's RMA",
    "replace-carrier": "with the power off replace the board or riser that carries {devices}",
    "replace-adapter": "with the power off replace the adapter{slot}",
    "replace-cable": "replace the cable or transceiver{at}",
    "replace-disk": "replace {disk}, add its successor (mdadm --add) and let the array rebuild",
    "replace-one-disk": "back up now all that is on it, of an array without redundancy all of the array; then stop what"
    " uses it, replace {disk} and restore the data",
    "replace-dimms": "with the power off replace the DIMM{at}",
    "replace-supply": "replace only a power supply that is reported as failed, one at a time",
    "reassemble-array": "stop what uses it and unmount it; with the power off check cable and seating of the missing"
    " disk; then mdadm --stop {device} and mdadm --assemble --scan, and mount it read-only first",
    "restore-array": "only if the disk stays invisible in another slot too: if it is visible and mdadm --assemble"
    " refuses it, compare mdadm --examine of all members first, for creating {array} ends what could be saved; without"
    " redundancy its data is then lost: replace the disk, create {array} again and restore from backup",
    "replace-part": "replace it",
    "vendor-gpu-tray": "GPU tray and modules are serviced by the vendor only",
    "vendor-water-cooled": "the GPUs are water-cooled: reseating, thermal paste and replacement are the vendor's work",
    "vendor-disk": "have the vendor replace {disk}; then add its successor, and let the array rebuild",
    "vendor-board": "have the vendor diagnose and replace it",
    "vendor-driver": "send NVIDIA nvidia-bug-report.log.gz and the crash data; a board is replaced only for a machine"
    " check or PCIe error of its own",
    "vendor-power": "have the vendor check power supplies and power distribution board: the GPU obeys their signal",
    "vendor-network-board": "the adapters are on a network module, GPU board or tray: the vendor takes it out",
    "vendor-missing-device": "have the vendor find out why the device is missing",
    "contact-host": "power, cooling, slots, NVSwitches, resets and tests of the board are out of this virtual machine's"
    " reach: give who runs its host the saved evidence; a restart on another host shows whether the fault stays with"
    " the board{ask}",
}
_PODS = "; kubectl drain deletes the emptyDir data of the node's pods, and leaves those of the GPU Operator: they" \
    " end with kubectl label node {node} --overwrite nvidia.com/gpu.deploy.NAME=false, NAME in turn device-plugin," \
    " gpu-feature-discovery, dcgm and dcgm-exporter, and come back with =true"
_INSTANCES = "then create the MIG instances again (nvidia-mig-parted), which it removes"
_NO_LABEL = " whose label was found, and no other: if nothing names one, call the vendor"
_WHERE_TRUE: Mapping[str, tuple[str, str]] = {
    "deferred": ("deferred", "; it takes effect when the driver is loaded again"),
    "machines": ("machines", "; shut down the virtual machines that use them first"),
    "lost": ("lost", " and the lost GPU responds again (else go on)"),
    "ask": ("lost", "; ask for PCIe errors (AER) and vfio messages of that moment in the host's kernel log, and for"
            " power and temperature events of its BMC"),
    "again": ("mig", _INSTANCES), "mig": ("mig", f"; {_INSTANCES}"),
    "whole": ("mig", " and MIG is off, under which DCGM tests no GPU (nvidia-smi -mig 0; on Ampere then a reset)"),
    "vendors": ("bare", "; then the vendor's field diagnostic if DCGM finds nothing"),
    "module": ("unknown", " (of an SXM module only the vendor)"),
    "guest": ("guest", ", and pass the PCIe switch through to this virtual machine too"),
    "or_guest": ("or_guest", f"; in a virtual machine give it {_WINDOW}"),
}  # fmt: skip
"""What a place of a sentence says where this value is true; else nothing."""


def instruction_text(instruction: Instruction, of: Finding | None = None) -> str:
    """The sentence of a code with its values; the remedy of a finding as it is."""
    values = instruction.values
    words = {
        name: device_list(value) if isinstance(value, tuple) else str(value) for name, value in values.items()
    }
    if slot := values.get("slot"):
        words["slot"] = f" in slot {slot}"
    services = words.get("services")
    words["also"] = f", and those of these services that run: {services}" if services else ""
    words["pods"] = _PODS.format(node=shlex.quote(words["node"])) if "node" in words else ""
    words |= {word: text if values.get(value) else "" for word, (value, text) in _WHERE_TRUE.items()}
    place = values.get("name") or values.get("position")
    words["at"] = f" at {place}" if place else _NO_LABEL if "position" in values else ""
    words["disk"] = f"the disk at {place}"
    words["device"] = shlex.quote(f"/dev/{values.get('array', place)}")
    if "members" in values:  # of an array whose errors name no member, how to find it
        shown = f"mdadm --detail {words['device']} lists it as faulty, or no longer; else the kernel log names it"
        unnamed = f"the failing disk of {place} ({shown})"
        words["disk"] = f"{words['members']} of {place}" if words["members"] else unnamed
    blanks = {"slot": "", "chosen": "", "switches": " and NVSwitches"}
    return SENTENCES[instruction.code].format(**{**blanks, **words, "remedy": of.remedy if of else ""})


def device_list(names: Sequence[str]) -> str:
    """``GPU0 to GPU7``, ``GPU6, GPU7``, ``mlx5_0``"""
    first = names[0].removeprefix("GPU") if names else ""
    if len(names) > 2 and first.isdecimal():
        consecutive = [f"GPU{number}" for number in range(int(first), int(first) + len(names))]
        if [*names] == consecutive:
            return f"{names[0]} to {names[-1]}"
    return ", ".join(names)
