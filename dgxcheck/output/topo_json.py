"""The topology as JSON, schema ``dgxcheck/topo/1``: null and a reason for what is not known."""

from __future__ import annotations

import json

from dgxcheck import __version__
from dgxcheck.frozen import fields
from dgxcheck.reading import Json, Missing
from dgxcheck.source.protocol import Origin
from dgxcheck.topology.model import Device, Link, Topology

SCHEMA = "dgxcheck/topo/1"


def document(topology: Topology, origin: Origin, members: dict[str, Json]) -> str:
    """The whole document; ``members`` are the parts that a command adds (``rings``, ``path``, ``p2p`` ..)."""
    whole: dict[str, Json] = {
        "schema": SCHEMA,
        "tool_version": __version__,
        "source": source(origin),
        "devices": [_device(device) for device in topology.devices],
        "links": [_link(link) for link in topology.links],
        "notes": list(topology.notes),
    }
    return json.dumps(whole | members, indent=1) + "\n"


def source(origin: Origin) -> Json:
    """Where the facts come from; empty members are left out."""
    return {key: value for key in fields(origin) if (value := getattr(origin, key))}


def either(key: str, value: object) -> dict[str, Json]:
    """``{key: value}``, or ``{key: null, key_reason: why}`` for a gap."""
    if isinstance(value, Missing):
        return {key: None, f"{key}_reason": str(value)}
    return {key: value if isinstance(value, bool | int | float | str) else None}


def _device(device: Device) -> Json:
    function = device.function
    found: dict[str, Json] = {"name": device.name, "kind": device.kind, "bdf": device.bdf}
    if device.kind == "gpu":
        found |= {"index": device.index} | either("uuid", device.uuid)
    else:
        found |= either("is_vf", device.is_vf)
    found |= either("numa_node", device.numa_node) | either("cpu_affinity", device.cpu_affinity)
    if device.kind == "gpu":
        found |= either("gpu_numa_id", device.gpu_numa_id) | either("nvlink_positions", device.nvlink_positions)
    if isinstance(device.path, Missing):
        found |= either("path", device.path)
    else:
        found["path"] = list(device.path)
    for key in ("link_gen", "link_width", "max_link_gen", "max_link_width"):
        found |= either(key, getattr(function, key) if function else None)
    return found


def _link(link: Link) -> Json:
    return {
        "a": link.a,
        "b": link.b,
        "label": link.label,
        "pci": link.pci,
        "pci_reason": link.pci_reason or None,
        "nvlinks": link.nvlinks,
        "nvlinks_reason": link.nvlink_reason or None,
        "nvlink_generation": link.nvlink_generation,
    }
