"""Where each shipped fault sits, and where else it could."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from places import Moves, to_buses, to_ends, to_gpus, to_hcas, to_nvlinks, to_ports, to_switches, to_wrong_peers
from sample import FAULTS
from wired import Wired, wired

BDF = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
BRIDGE = re.compile(rf"{BDF.pattern}|pci[0-9a-f:]+")
DEVICE = re.compile(r"GPU\d+|mlx5_\d+")
NVLINK = re.compile(r"NVLink (\d+) of ")
OF_A_GPU = (
    "dgx-1-p100-memory-slow", "dgx-1-p100-memory-wrong", "dgx-1-p100-pages-63", "dgx-1-p100-wrong-model",
    "dgx-1-v100-aer-flood", "dgx-1-v100-application-clock", "dgx-1-v100-bar1-full", "dgx-1-v100-bar1-small",
    "dgx-1-v100-bar1-unassigned", "dgx-1-v100-ecc-aggregate", "dgx-1-v100-ecc-off", "dgx-1-v100-ecc-pending",
    "dgx-1-v100-ecc-volatile", "dgx-1-v100-gpu-aer-fatal", "dgx-1-v100-gpu-lost", "dgx-1-v100-gpu-missing",
    "dgx-1-v100-gpu-not-started", "dgx-1-v100-gpu-x8", "dgx-1-v100-host-copy-slow", "dgx-1-v100-hot",
    "dgx-1-v100-inforom", "dgx-1-v100-lanes-lost-at-load", "dgx-1-v100-max-payload", "dgx-1-v100-mixed-vbios",
    "dgx-1-v100-node-shut", "dgx-1-v100-off-bus-at-load", "dgx-1-v100-one-hot", "dgx-1-v100-pcie-replays",
    "dgx-1-v100-persistence-off", "dgx-1-v100-power-brake", "dgx-1-v100-power-cap", "dgx-1-v100-power-violation",
    "dgx-1-v100-prohibited", "dgx-1-v100-slot-gen2", "dgx-1-v100-slow-at-work", "dgx-1-v100-thermal-held",
    "dgx-1-v100-xid-13-often", "dgx-1-v100-xid-48", "dgx-1-v100-xid-48-again", "dgx-1-v100-xid-62",
    "dgx-1-v100-xid-62-again", "dgx-1-v100-xid-63", "dgx-1-v100-xid-74", "dgx-1-v100-xid-79",
    "dgx-1-v100-xid-79-again", "dgx-a100-driver-error", "dgx-a100-mig-pending", "dgx-a100-nvlink-down",
    "dgx-a100-remap-failed", "dgx-a100-remap-pending", "dgx-a100-reset-required", "dgx-a100-xid-64", "dgx-a100-xid-94",
    "dgx-a100-xid-119-reboot", "dgx-1-v100-xid-32", "dgx-station-v100-gpu-missing",
    "dgx-station-v100-mixed-memory", "dgx-station-v100-one-hot", "k80-x8-driver-hangs", "k80-x8-ecc-off",
    "k80-x8-p2p-acs-silent", "k80-x8-page-pending", "dgx-2-odd-compute-mode", "dgx-a100-odd-board",
    "k80-x8-odd-auto-boost", "pcie-x4-odd-power-range", "pcie-x8-odd-inforom",
    "dgx-a100-sram-threshold", "dgx-a100-rows-512", "dgx-a100-bank-without-spare-rows", "dgx-2-corrected-flood",
    "dgx-2-pages-growing", "pcie-x8-page-double-bit", "dgx-1-v100-memory-hot", "dgx-a100-memory-warmer",
    "pcie-x8-host-copies-far-below", "dgx-1-v100-clocks-locked", "dgx-a100-clock-ceiling",
    "dgx-1-v100-bus-master-off", "pcie-x8-gpu-aspm", "dgx-a100-drain-p2p", "dgx-a100-fabric-clique",
    "dgx-a100-fabric-degraded", "dgx-a100-fabric-left-out", "dgx-a100-fabric-no-partition",
    "dgx-a100-fabric-unhealthy", "dgx-a100-nvlink-slow", "dgx-a100-reboot-required", "pcie-x8-gpu-x8",
    "dgx-a100-nvlink-recovery-total", "pcie-x4-gpu-slow-everywhere", "pcie-x8-aer-totals",
    "pcie-x8-clocks-locked-under-load", "pcie-x4-replays-total", "dgx-a100-xid-149-nonfatal",
    "dgx-a100-memory-contained", "dgx-a100-xid-13-one-program",
    "dgx-h100-fabric-unhealthy", "dgx-h100-link-gen4", "dgx-h100-margin", "dgx-h100-nvlink-down",
    "dgx-b200-nvlinks-down", "dgx-b200-remap-pending", "gb200-nvl72-fabric-degraded", "gb200-nvl72-clique",
    "gb200-nvl72-imex-recovery", "gb200-nvl72-nvlink-down", "gb300-nvl72-power-cap", "dgx-b300-link-gen4",
    "l40s-x8-remap-pending", "l40s-x8-gpu-x8", "l40s-x8-xid-79", "geforce-x4-fallen-off", "geforce-x4-gpu-x4",
    "dgx-h200-nvlink-down", "hgx-h100-gpu-gen4",
    "dgx-h100-memory-unrepairable", "dgx-h100-memory-held", "dgx-h100-remap-failed", "dgx-h100-sram-threshold",
    "dgx-b200-fabric-degraded", "dgx-b200-netir-link-down", "dgx-b200-recovery-failed", "dgx-b200-rlw-fatal",
    "dgx-b300-misconfigured", "dgx-b300-nvlinks-down", "dgx-h200-channel-repair", "dgx-h200-gpu-x8",
    "dgx-h200-gsp-timeout", "dgx-h200-uncontained", "gb200-nvl72-c2c-down", "gb200-nvl72-hot",
    "gb200-nvl72-netir-link-down", "gb300-nvl72-gpu-gen4", "gb300-nvl72-nvlinks-down", "gb300-nvl72-remap-failed",
    "geforce-x4-gsp-heartbeat", "geforce-x4-power-cap", "geforce-x4-riser-gen3", "geforce-x4-throttle",
    "geforce-x4-xid-62", "hgx-h100-nvlink-down", "hgx-h100-persistence-off", "hgx-h100-xid-48", "l40s-x8-double-bit",
    "l40s-x8-ecc-off", "l40s-x8-hot", "l40s-x8-power-cap", "l40s-x8-gfw-boot", "gb200-nvl72-memory-node",
    "dgx-b200-pcie-timeout",
    "l40s-x8-nova", "hgx-h100-d3cold", "geforce-x4-own-fans-stalled", "geforce-x4-gen1-at-work",
    "dgx-1-v100-gpu-asleep",
    "dgx-a100-80-xid-95", "dgx-a100-80-power-cap", "dgx-a100-80-gpu-x8", "big-sur-gpu-x8", "big-sur-off-bus",
    "big-sur-persistence-off",
)  # fmt: skip
OF_A_SILENT_GPU = (
    "dgx-1-v100-xid-before-reload", "dgx-1-v100-bars-unassigned", "k80-x8-lost-at-second-reading",
    "pcie-x4-vbios-of-another-model",
    "pcie-x8-lost-in-pairs",
)  # fmt: skip
OF_AN_HCA = (
    "dgx-1-v100-hca-firmware", "dgx-1-v100-hca-missing", "dgx-1-v100-hca-not-started", "dgx-1-v100-port-module-hot",
    "dgx-1-v100-hca-x8",
    "dgx-1-v100-port-1x", "dgx-1-v100-port-down", "dgx-1-v100-port-fdr", "dgx-1-v100-port-init",
    "dgx-1-v100-port-link-downed", "dgx-1-v100-port-polling", "dgx-1-v100-port-symbol-errors",
    "dgx-1-v100-hca-ethernet", "dgx-1-v100-hca-gen1", "dgx-1-v100-hca-without-ports", "dgx-1-v100-port-no-sm",
    "dgx-1-v100-read-request", "dgx-1-v100-hca-relaxed-ordering", "dgx-1-v100-transport-errors",
    "dgx-1-v100-port-flapping",
)  # fmt: skip
OF_A_SWITCH = (
    "dgx-1-v100-nvml-disagrees", "dgx-1-v100-switch-x8", "k80-x8-p2p-broken",
    "k80-x8-p2p-slower",
    "dgx-1-v100-switch-gen1", "dgx-1-v100-uplink-limited", "pcie-x4-switch-limited", "pcie-x8-bridge-off",
    "pcie-x8-switch-gen2",
)  # fmt: skip
"""Or of the two GPUs below it."""
OF_A_PORT = ("dgx-1-v100-acs-redirect", "dgx-1-v100-odd-acs-validation", "dgx-1-v100-switch-aer")
OF_NVLINKS = (
    "dgx-1-v100-nvlink-down", "dgx-1-v100-nvlink-half-rate", "dgx-1-v100-nvlink-one-sided",
    "dgx-1-v100-p2p-not-in-use", "dgx-1-v100-p2p-silent",
)  # fmt: skip
OF_ONE_END = (
    "dgx-1-v100-nvlink-crc", "dgx-1-v100-nvlink-recoveries", "dgx-1-v100-nvlink-recovery-xid-74",
    "dgx-1-v100-nvlink-replays",
    "dgx-1-v100-nvlink-crc-flood", "dgx-1-v100-nvlink-crc-total",
)  # fmt: skip
STAYS = {
    "dgx-station-a100-gpu-missing": "one of its other GPUs is that of the display",
    "l40s-x8-unpowered": "of the last GPU, which NVML leaves out of its list",
    "k80-x8-board-missing": "of a switch's port; below a root port the place that is left is the host bridge",
    "dgx-1-v100-hca-wrong-slot": "of a place, which moves with its NUMA node",
    **dict.fromkeys(
        ("dgx-1-v100-switch-dead", "dgx-1-v100-supply-failed", "dgx-1-v100-root-complex", "dgx-1-v100-two-hot",
         "dgx-a100-nvswitches-down", "k80-x8-board-off-bus", "pcie-x8-switch-dead", "pcie-x8-switch-missing",
         "dgx-a100-no-subnet-manager", "dgx-1-v100-hca-firmware-split"), "of several devices at once"),
    **dict.fromkeys(
        ("dgx-a100-xid-62-nvlinks", "dgx-a100-off-bus-sxids", "dgx-a100-xid-48-recovery", "dgx-1-p100-xid-109-peers",
         "dgx-2-xid-62-peers", "dgx-station-v100-off-bus-peers"), "of the far ends of NVLinks too"),
    **dict.fromkeys(("dgx-a100-off-bus-and-governor", "pcie-x4-hot-and-persistence", "pcie-x8-apart"), "two faults"),
    **dict.fromkeys(("dgx-2-nvme-gen1", "dgx-a100-nvme-x2", "dgx-a100-nvme-aer-flood"), "of a disk"),
    "pcie-x4-root-port-messages": "of a root port; what is below the others is alike",
    **dict.fromkeys(
        ("dgx-2-nvswitch-gen1", "dgx-2-nvswitch-missing", "dgx-2-nvswitch-off-pci", "dgx-a100-nvswitch-asleep",
         "dgx-a100-nvswitch-fell-off", "dgx-a100-nvswitch-unbound",
         "dgx-2-nvswitch-links-down", "dgx-h100-nvswitch-missing"),
        "of an NVSwitch; all are alike"),
    **dict.fromkeys(
        ("dgx-2-nvlinks-slow", "dgx-a100-read-request-all", "dgx-h100-power-cap",
         "hgx-h100-default-limit-350", "dgx-h100-nvme-gen3-everywhere"), "of all GPUs, adapters or drives"),
    **dict.fromkeys(
        ("dgx-2-hca-without-guid", "dgx-a100-rnr-retries", "dgx-h100-port-200", "dgx-a100-transport-totals"),
        "of a box whose adapters are at different depths"),
    "dgx-station-v100-nvlink-generation": "of both ends of one link; other pairs of this box have two",
    "dgx-a100-port-completion-timeout": "of a port; those above adapters are of other kinds",
    "dgx-a100-hca-ethernet": "of the adapters for computing; those for storage are too few to be compared",
    **dict.fromkeys(("dgx-1-v100-acs-everywhere", "dgx-1-v100-nouveau"), "of all bridges or GPUs"),
    **dict.fromkeys(
        ("dgx-1-v100-cores-offline", "dgx-1-v100-dimm-missing",
         "dgx-1-v100-edac-corrected", "dgx-1-v100-edac-uncorrected", "dgx-1-v100-iommu-dma", "dgx-1-v100-memlock",
         "dgx-1-v100-memlock-jobs", "dgx-1-v100-old-client",
         "dgx-1-v100-mismatch", "dgx-1-v100-no-nvml", "dgx-1-v100-peermem-unregistered", "dgx-1-v100-verbs-shut",
         "dgx-1-v100-memory-ran-out", "dgx-1-v100-panic-in-driver", "dgx-2-tasks-hung", "dgx-a100-service-crashed",
         "dgx-a100-bmc-silent", "dgx-a100-iommu-refuses-gpu", "dgx-a100-module-loading",
         "dgx-a100-fabric-manager-down", "dgx-a100-governor", "dgx-a100-not-ready", "k80-x8-uvm-node-gone"),
        "of the host, its memory or the driver"),
    **dict.fromkeys(
        ("dgx-1-v100-no-libcuda", "dgx-1-v100-port-state-unreadable", "dgx-2-count-above-list", "dgx-2-gpu-silent",
         "dgx-2-reading-impossible",
         "dgx-a100-idle-at-full-load", "dgx-a100-memory-unreadable",
         "dgx-station-v100-memory-more-than-there-is", "k80-x8-cpus-in-two-nodes",
         "pcie-x4-init-denied", "pcie-x8-handle-refused", "pcie-x8-no-worker"),
        "unknown: nothing is to blame for what could not be read"),
    **dict.fromkeys(
        ("dgx-a100-no-mlx5-ib", "dgx-b200-no-mlx5-ib", "dgx-a100-no-nvme", "dgx-h100-gsp-image-missing"),
        "of a module or driver"),
    "dgx-a100-container-shut": "of a container",
    **dict.fromkeys(
        ("vgpu-l40s-gsp-timeout", "vm-h100-x8-remap-failed", "vm-h100-x8-fabric-elsewhere"),
        "of a virtual machine, whose GPUs are below no bridge"),
    "gb200-nvl72-memory-corrected": "of the host, its memory or the driver",
    "dgx-h100-hca-bad-device": "of one adapter, as dgx-1-v100-hca-not-started, which is moved",
    "k80-x8-p2p-acs": "of one of the boards at the switch that two share",
    **dict.fromkeys(
        ("dgx-2-hca-asleep", "dgx-2-hca-set-aside"), "of a box whose adapters are at different depths"),
    **dict.fromkeys(
        ("dgx-a100-nvlink-unsupported", "dgx-a100-channel-repair", "dgx-a100-gsp-everywhere",
         "dgx-1-v100-no-gpu-starts"), "of all GPUs"),
    **dict.fromkeys(
        ("k80-x8-board-hot", "dgx-1-v100-brakes-scattered", "dgx-2-trunks-slow", "dgx-a100-ports-down",
         "dgx-b300-power-limit-of-four"),
        "of several devices at once"),
    **dict.fromkeys(
        ("dgx-1-v100-file-system", "dgx-2-driver-not-loaded", "dgx-2-open-modules", "dgx-h100-nvlinks-undetected",
         "dgx-2-memory-limited", "dgx-2-port-contained", "dgx-h200-fabric-out-of-sync"),
        "of a disk, the driver, the host or a port"),
    "dgx-1-v100-hca-commands-time-out": "of one adapter, as dgx-1-v100-hca-not-started, which is moved",
    **dict.fromkeys(("dgx-1-v100-silent-and-lost", "pcie-x8-serial-twice"), "of two GPUs at once"),
    **dict.fromkeys(
        ("dgx-1-p100-nvlink-unsupported-gpu", "dgx-a100-link-down-at-second-reading"),
        "of the far ends of NVLinks too"),
    "dgx-a100-remap-at-second-reading": "of a later moment",
    **dict.fromkeys(
        ("k80-x8-dimm-flood", "pcie-x8-dimm-uncorrected", "k80-x8-two-dimms-of-a-socket", "pcie-x8-edac-total",
         "dgx-a100-apei-memory", "dgx-2-machine-check", "pcie-x4-cpu-throttled",
         "dgx-station-v100-driver-stuck", "dgx-station-v100-disk-medium-errors", "pcie-x8-disk-failing",
         "dgx-a100-nvme-dropped", "pcie-x8-gpu-unplugged", "dgx-h200-raid0-disk-gone", "dgx-b200-slot-contained",
         "dgx-1-p100-maxcpus", "pcie-x8-numa-off", "k80-x8-numa-two-nodes-one-root",
         "dgx-2-node-without-memory", "dgx-2-distances-odd", "dgx-1-v100-no-msi",
         "dgx-a100-nps1", "dgx-1-v100-socket-missing",
         "pcie-x4-power-brake-at-load",
         "pcie-x4-cpu-clock-limited", "dgx-2-turbo-off", "k80-x8-clock-source-hpet",
        ),
        "of a DIMM, a CPU, a disk or a slot"),
    **dict.fromkeys(
        ("dgx-1-v100-disk-missing", "dgx-station-v100-disk-missing", "dgx-a100-md-degraded"), "of the only array"),
    **dict.fromkeys(("dgx-1-v100-ethernet-1g", "dgx-station-v100-ethernet-1g"), "of the only cabled interface"),
    "dgx-b300-carrier-flapping": "of one of the two Ethernet interfaces",
    **dict.fromkeys(
        ("dgx-1-v100-nvlink-down-xid-74", "dgx-1-v100-xid-79-peers", "dgx-a100-sxid-20034"),
        "of the far ends of NVLinks too"),
    **dict.fromkeys(
        ("dgx-a100-sxid-10004", "dgx-a100-sxid-20009", "dgx-a100-sxid-22003"), "of an NVSwitch; all are alike"),
    **dict.fromkeys(
        ("dgx-station-v100-disk-short", "pcie-x8-dimm-missing"), "of a disk or memory controller"),
    "dgx-a100-odd-ipoib-mtu": "of a network interface, whose name is no device's",
    **dict.fromkeys(
        ("dgx-2-hca-and-nvlink-slow", "dgx-2-hca-slow", "dgx-2-nvlink-slow", "dgx-2-uplink-slow",
         "dgx-a100-copies-slow", "dgx-station-v100-nvlink-half-rate", "pcie-x4-one-direction",
         "pcie-x4-root-complex-slow", "pcie-x4-uplink-slow", "pcie-x8-gpu-slow", "pcie-x8-sockets-slow",
         "pcie-x8-uplink-slow", "pcie-x4-burn-in-hot"),
        "of figures that all GPUs or HCAs have"),
    **dict.fromkeys(
        ("dgx-b200-nvlsm-bridge-missing", "gb300-nvl72-dma-missing", "gb200-nvl72-imex-down", "big-sur-acs-switch",
         "big-sur-switch-x8", "dgx-a100-80-hca-gen3",
         "dgx-b200-fabric-in-progress", "dgx-b200-port-200", "gb300-nvl72-dma-x8", "gb300-nvl72-port-400",
         "dgx-b300-port-down", "gh200-remap-failed",
         "dgx-b300-acs-gpu-port", "dgx-b300-nic-x8", "dgx-b300-off-bus", "dgx-b300-port-400", "dgx-b300-uplink-gen3",
         "dgx-h200-fabric-not-started", "dgx-h200-nvswitch-fatal", "dgx-h200-power-brake", "gb200-nvl72-port-down",
         "gb200-nvl72-tray-unregistered", "gb300-nvl72-acs-gpu-port", "gb300-nvl72-iommu-groups", "gb200-nvl72-ats",
         "gb300-nvl72-nic-x8",
         "gb200-nvl72-switch-links-down", "dgx-b200-error-rate-everywhere", "gb300-nvl72-imex-recovery",
         "dgx-h100-hcas-gen4", "dgx-h100-no-numa", "dgx-b300-switch-dead", "dgx-a100-switch-and-disk-dead",
         "geforce-x4-riser-fatal", "gh200-c2c-down", "gh200-double-bit", "gh200-ecc-off", "gh200-hca-x8",
         "gh200-numa-balancing", "gh200-off-bus", "gh200-port-down", "hgx-h100-acs-switch", "hgx-h100-governor",
         "hgx-h100-acs-ports-of-a-switch",
         "hgx-h100-hca-older", "hgx-h100-hca-x8", "hgx-h100-off-bus", "l40s-x8-acs-switch", "l40s-x8-uplink-gen3"),
        "of a port or adapter, of all GPUs or the only one, of the far ends too"),
    "dgx-1-p100-nccl-over-pcie": "of a library, on all GPUs at once",
    "k80-x8-board-moved": "of the wiring: of no other board do the bus numbers stay in order",
}  # fmt: skip
"""Faults of no GPU, adapter, switch, port, NVLink or root bus."""


KINDS: tuple[tuple[Collection[str], Callable[..., Moves]], ...] = (
    (OF_A_GPU, to_gpus), (OF_A_SILENT_GPU, to_gpus), (OF_AN_HCA, to_hcas), (OF_A_SWITCH, to_switches),
    (OF_A_PORT, to_ports),
    (("dgx-1-v100-numa-lost",), to_buses),
    (OF_NVLINKS, to_nvlinks), (OF_ONE_END, to_ends), (("dgx-station-v100-nvlink-wrong-peer",), to_wrong_peers),
)  # fmt: skip


def overlay(fault: str) -> dict[str, Any]:
    """As it ships."""
    document: dict[str, Any] = json.loads(Path(FAULTS[fault]).read_text(encoding="utf-8"))
    return document


def moves(fault: str) -> Moves:
    """All other places of a fault, each with the move; none for one that stays."""
    document = overlay(fault)
    for faults, kind in KINDS:
        if fault in faults:
            box = wired(document["base"])
            yield from kind(box, at(box, document))


def at(box: Wired, document: dict[str, Any]) -> list[str]:
    """The devices that an overlay names to blame, or the first below what it names; of an NVLink both.

    Then others that it has figures of copies with one of these of.
    """
    component = document["expect"]["component"]
    devices = {box.called(bdf): bdf for bdf in (*box.gpus, *box.hcas)}
    found = [devices[name] for name in DEVICE.findall(component)]
    if link := NVLINK.match(component):
        found += [far for end, far in box.ends.items() if end == (found[0], int(link[1])) and far not in found]
    found = found or box.behind(BRIDGE.findall(component)[0])
    pairs = [BDF.findall(key) for key in document.get("add", {}) if key.startswith("measure ")]
    others = [pair[0] for one in found for pair in pairs if pair[1:] == [one] and pair[0] not in found]
    return [*found, *dict.fromkeys(others)]
