"""The topology as JSON, schema ``dgxcheck/topo/1``: null and a reason for what is not known."""

from __future__ import annotations

from dgxcheck.facts.bdf import shown
from dgxcheck.facts.missing import Json
from dgxcheck.output.json_values import compact, either, head, members, source
from dgxcheck.source.protocol import Origin
from dgxcheck.topology.model import Device, Link, Topology

SCHEMA = "dgxcheck/topo/1"


def document(topology: Topology, origin: Origin, added: dict[str, Json]) -> str:
    """The whole document; ``added`` are the parts that a command adds (``rings``, ``path``, ``p2p`` ..)."""
    whole: dict[str, Json] = {
        **head(SCHEMA, dated=False),
        "source": source(origin),
        "devices": [_device(device) for device in topology.devices],
        "links": [of_link(link) for link in topology.links],
        "notes": [*([topology.headline] if topology.headline else []), *topology.notes],
    }
    return compact(whole | added)


def _device(device: Device) -> Json:
    json = members(device, "name kind")
    json |= either("bdf", device.path if shown(device.bdf) is None else device.bdf)
    if device.kind == "gpu":
        json |= either("index", device.uuid if device.index is None else device.index) | members(device, "uuid")
    else:
        json |= members(device, "is_vf")
    json |= members(device, "numa_node cpu_affinity")
    json |= members(device, "gpu_numa_id nvlink_positions path" if device.kind == "gpu" else "path")
    for key in ("link_gen", "link_width", "max_link_gen", "max_link_width"):
        json |= either(key, device.path if device.function is None else getattr(device.function, key))
    return json


def of_link(link: Link) -> dict[str, Json]:
    """What joins two devices."""
    return members(link, "a b label pci pci_reason? nvlinks nvlinks_reason=nvlink_reason? nvlink_generation")
