"""``ibstat``: HCAs and their ports, as the files of ``/sys/class/infiniband``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.missing import Json

_CLASS = "/sys/class/infiniband"
_DEVICE = re.compile(r"CA '([\w.-]{1,64})'", re.ASCII)
_PORT = re.compile(r"Port (\d{1,3}):", re.ASCII)
_MEMBER = re.compile(r"([A-Z][\w ]{1,40}): (\S.{0,200})", re.ASCII)
_STATES = {"Down": "1: DOWN", "Initializing": "2: INIT", "Armed": "3: ARMED", "Active": "4: ACTIVE"}
_PHYSICAL = {"Sleep": "1: Sleep", "Polling": "2: Polling", "Disabled": "3: Disabled",
             "PortConfigurationTraining": "4: PortConfigurationTraining", "LinkUp": "5: LinkUp",
             "LinkErrorRecovery": "6: LinkErrorRecovery", "PhyTest": "7: Phy Test"}  # fmt: skip
_GUID = re.compile(r"0x([0-9a-f]{16})", re.ASCII)


def read(lines: Sequence[str]) -> dict[str, Json]:
    """Facts by key. Rates are left out: ``ibstat`` tells neither lanes nor generation."""
    facts: dict[str, Json] = {}
    devices: dict[str, list[str]] = {}
    device = port = ""
    for line in lines:
        text = line.strip()
        if match := _DEVICE.fullmatch(text):
            device, port = match[1], ""
            devices.setdefault(device, [])
        elif device and (match := _PORT.fullmatch(text)):
            port = match[1]
            devices[device].append(port)
        elif device and (match := _MEMBER.fullmatch(text)):
            base = f"{_CLASS}/{device}/ports/{port}" if port else f"{_CLASS}/{device}"
            if (file := _file(bool(port), match[1], match[2])) is not None:
                facts[f"text {base}/{file[0]}"] = f"{file[1]}\n"
    if not devices:
        return {}
    facts |= {f"names {_CLASS}/{name}/ports": [*ports] for name, ports in devices.items() if ports}
    return {**facts, f"names {_CLASS}": [*sorted(devices)]}


def _file(of_port: bool, label: str, value: str) -> tuple[str, str] | None:
    if not of_port:
        names = {"CA type": "hca_type", "Firmware version": "fw_ver"}
        guids = {"Node GUID": "node_guid", "System image GUID": "sys_image_guid"}
        if label in guids and (match := _GUID.fullmatch(value)):
            return guids[label], ":".join(match[1][n : n + 4] for n in range(0, 16, 4))
        return (names[label], value) if label in names else None
    if label == "State" and value in _STATES:
        return "state", _STATES[value]
    if label == "Physical state" and value in _PHYSICAL:
        return "phys_state", _PHYSICAL[value]
    if label == "Link layer":
        return "link_layer", value
    if label in ("Base lid", "SM lid") and value.isascii() and value.isdecimal() and len(value) < 6:
        return ("lid" if label == "Base lid" else "sm_lid"), f"{int(value):#x}"
    return None
