"""One Xid or SXid: its meaning, its severity, what it is about, NVIDIA's action, and what to do first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.suggestion import did_you_mean

Severity = Literal["fail", "repeated", "text", "warn", "application", "information"]
"""The worst first. repeated: warns, and fails if it occurs twice. text: the line itself says how severe it is
(``Fatal``, the action that is required). application: a program's own fault, until several programs have it."""
Response = Literal[
    "off-bus", "power", "recovery", "fabric-reboot", "field-diagnostic", "memory", "fabric-reset", "nvlink", "reset",
    "nvlink-peer", "nvlink-signal", "nvlink-off", "vm", "pcie", "cooling", "mechanical", "contained", "repair",
    "update", "watch", "report", "follow", "program", "none",
]  # fmt: skip
"""What to do first, the most drastic before the others."""
Part = Literal["", "memory", "NVLink", "PCIe link", "power supply", "InfoROM"]
"""Part of the GPU; empty for the GPU as a whole."""
Fatality = Literal["non-fatal", "fatal", "always-fatal"]
"""Of an SXid: fatal to the NVLinks of one port, or always to the whole fabric."""


class XidEntry(Record, kw_only=False):
    """One Xid on one range of architectures."""

    number: int
    mnemonic: str
    """The driver's, as in nverror.h; empty where it is not public."""
    text: str
    severity: Severity
    response: Response
    about: Part
    action: str = ""
    """NVIDIA's immediate action (``RESET_GPU``); empty where NVIDIA publishes none, and before Ampere."""
    investigation: str = ""
    """NVIDIA's investigatory action, if the first does not help."""
    products: tuple[str, ...] = ()
    """GPUs to which NVIDIA's catalogue applies it; empty where it does not say."""
    causes: tuple[str, ...] = ()
    """Possible causes by NVIDIA's list for GPUs before Ampere."""


class SXidEntry(Record, kw_only=False):
    """One SXid, as NVIDIA's Fabric Manager guide has it."""

    number: int
    text: str
    fatality: Fatality
    severity: Severity
    response: Response


REMEDIES: Mapping[Response, str] = {
    "off-bus": "save the evidence first (nvidia-bug-report.sh --safe-mode --extra-system-data; it can take long), then"
    " reboot, and cold power cycle if the GPU is still missing; if it comes back, check power, seating and temperature"
    " of the GPU, then call the vendor",
    "power": "power off and check the GPU's auxiliary power cables and the power supplies",
    "recovery": "do what the driver asks for: GPU Recovery Action of nvidia-smi -q",
    "fabric-reboot": "drain the node and reboot it: the error is fatal to the whole NVSwitch fabric",
    "field-diagnostic": "drain the GPU and run dcgmi diag -r 3, then the vendor's field diagnostic; if it fails, call"
    " the vendor with the file of nvidia-bug-report.sh",
    "memory": "drain and reset the GPU, then run dcgmi diag -r 3; if it fails or the Xid comes back, call the vendor"
    " with the file of nvidia-bug-report.sh",
    "fabric-reset": "the NVLinks at that port of the NVSwitch are down: drain the node, then reset all GPUs and"
    " NVSwitches together (stop Fabric Manager, nvidia-smi -r, start Fabric Manager) or reboot",
    "nvlink": "see nvlink.errors and nvidia-smi nvlink -e for the links at both ends; drain and reset the GPU; if the"
    " Xid comes back, run the vendor's field diagnostic: the GPU, its peer or what joins them can be at fault",
    "reset": "drain and reset the GPU; if the Xid comes back, call the vendor with the file of nvidia-bug-report.sh",
    "nvlink-peer": "NVIDIA's table says that the device at the other end of this NVLink caused it: look for its own"
    " Xids or SXids first; drain and reset this GPU so that the link trains again",
    "nvlink-signal": "the signal of this NVLink was bad: drain and reset the GPU; if the Xid comes back, check"
    " connectors and cables of the link (in a rack its cartridge), at both ends",
    "nvlink-off": "software or a user switched this NVLink off: look for what stopped the driver, Fabric Manager or the"
    " peer at that time; drain and reset the GPU so that the link trains again",
    "vm": "restart the virtual machine",
    "pcie": "check the GPU's PCIe link (pcie.*, kernel.aer) and its seating",
    "cooling": "check the cooling of the system: the NVSwitch can slow its NVLinks down",
    "mechanical": "if no GPU was reset or shut down then, check how the boards and NVLink connectors are seated",
    "contained": "restart the program that was stopped; reset the GPU at the next drain",
    "repair": "GPU memory is marked for repair: reset the GPU at the next drain, which repairs it",
    "update": "update the driver, and the vGPU software of host and guest, to versions that belong together",
    "watch": "no action now; reset the GPU at the next drain if ecc.* asks for it; call the vendor if it comes back",
    "report": "if it comes back, call the vendor with the file of nvidia-bug-report.sh",
    "follow": "look for the Xid or the killed program before it: this one only reports that a channel was removed;"
    " alone: restart Fabric Manager on a machine with NVSwitches, else check the program",
    "program": "check the program (compute-sanitizer); suspect the hardware only if several programs fail on this GPU",
    "none": "no action",
}  # fmt: skip
"""The first step in words, the most drastic first."""


AMPERE = 7
"""``nvmlDeviceArchitecture_t``"""
NAMES: Mapping[str, int] = {
    "kepler": 2, "maxwell": 3, "pascal": 4, "volta": 5, "turing": 6, "ampere": 7, "ada": 8, "hopper": 9,
    "blackwell": 10,
}  # fmt: skip
"""``nvmlDeviceArchitecture_t`` by name."""
BOARDS: Mapping[str, str] = {
    "k40": "kepler", "k80": "kepler", "m40": "maxwell", "m60": "maxwell", "p4": "pascal", "p40": "pascal",
    "p100": "pascal", "v100": "volta", "v100s": "volta", "t4": "turing", "a2": "ampere", "a10": "ampere",
    "a16": "ampere", "a30": "ampere", "a40": "ampere", "a100": "ampere", "a800": "ampere", "l4": "ada", "l40": "ada",
    "l40s": "ada", "h20": "hopper", "h100": "hopper", "h200": "hopper", "h800": "hopper", "gh200": "hopper",
    "b100": "blackwell", "b200": "blackwell", "b300": "blackwell", "gb200": "blackwell", "gb300": "blackwell",
}  # fmt: skip


def architecture_of(name: str) -> tuple[str, int]:
    """Name and ``nvmlDeviceArchitecture_t`` of a board or architecture: ``v100``, ``hopper``.

    Product names (``NVIDIA A100-SXM4-80GB``) are searched for a board. Raises BadInput for a name that is neither.
    """
    for word in re.split(r"[^a-z0-9]+", name.lower()):
        known = BOARDS.get(word, word)
        if known in NAMES:
            return known, NAMES[known]
    hint = did_you_mean(name.lower(), (*BOARDS, *NAMES), f"give a board or architecture: {', '.join(NAMES)}")
    raise BadInput(f"--gpu {name}: unknown GPU; {hint}")
