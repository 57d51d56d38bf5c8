"""``ibstat``: HCAs and their ports."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME, device_files, guid, lid, listed, physical, port_files, state
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bare, bounded

TOOL = "ibstat"
_DEVICE = re.compile(rf"CA '({NAME})'", re.ASCII)
_PORT = re.compile(r"Port (\d{1,3}):", re.ASCII)
_GONE = re.compile(rf"ibpanic: \[\d{{1,10}}\] \w{{1,40}}: (?P<what>.{{1,80}}'(?P<device>{NAME})'.{{1,120}})", re.ASCII)
"""A device that is still listed, but whose files cannot be read because its driver released it."""
_LABELS = frozenset((
    "CA type", "Number of ports", "Firmware version", "Hardware version", "Node GUID", "System image GUID", "State",
    "Physical state", "Rate", "Base lid", "LMC", "SM lid", "Capability mask", "Port GUID", "Link layer",
))  # fmt: skip


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Rates are left out: ``ibstat`` tells neither lanes nor generation."""
    facts: dict[str, Json] = {}
    reports = Reports(TOOL)
    ports: dict[str, list[int]] = {}
    understood: set[int] = set()
    device = ""
    port = 0
    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        label, colon, value = line.partition(":")
        if match := _DEVICE.fullmatch(line):
            device, port = match[1], 0
            ports.setdefault(device, [])
        elif match := _GONE.fullmatch(line):
            reports.add(match["device"], "device", "warn", Fault.HCA_NOT_STARTED, match["what"])
        elif device and (match := _PORT.fullmatch(line)):
            port = int(match[1])
            ports[device].append(port)
        elif device and colon and label in _LABELS:
            facts |= _of_port(device, port, label, value.strip()) if port else _of_device(device, label, value.strip())
        else:
            device = device if not line else ""
            continue
        understood.add(number)
    if not (ports or reports):
        return ()
    return (Imported(tool=TOOL, facts={**facts, **reports.facts(), **listed(ports)}, understood=frozenset(understood)),)


def _of_device(device: str, label: str, value: str) -> dict[str, Json]:
    if not value:
        return {}
    files = {
        "CA type": ("hca_type", value[:200]), "Firmware version": ("fw_ver", value[:200]),
        "Node GUID": ("node_guid", guid(value)), "System image GUID": ("sys_image_guid", guid(value)),
    }  # fmt: skip
    return device_files(device, dict([files[label]])) if label in files else {}


def _of_port(device: str, port: int, label: str, value: str) -> dict[str, Json]:
    files = {
        "State": ("state", state(value)), "Physical state": ("phys_state", physical(value)),
        "Link layer": ("link_layer", value[:40] or None), "Base lid": ("lid", lid(value)),
        "SM lid": ("sm_lid", lid(value)),
    }  # fmt: skip
    return port_files(device, port, dict([files[label]])) if label in files else {}
