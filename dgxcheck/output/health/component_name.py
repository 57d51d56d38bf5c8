"""The name of a component in English: ``cooling of GPU2 0000:0a:00.0``."""

from __future__ import annotations

from dgxcheck.components.component import Component
from dgxcheck.facts.bdf import shown

_NOUNS: dict[str, str] = {
    "link": "PCIe link", "nvlink": "NVLinks", "nvswitch": "NVSwitch", "port": "port", "hca": "HCA", "driver": "the",
    "host": "the", "gpus": "all", "disk": "disk", "interface": "interface", "path": "P2P path", "board": "board",
    "subnet-manager": "subnet manager", "host-bridge": "host bridge", "bridge": "PCIe port", "socket": "socket",
    "socket-interconnect": "interconnect of", "switch": "PCIe switch", "fabric": "the",
}  # fmt: skip
_OWN_NAMES = {
    "network of NCCL": "NCCL's network", "results of NCCL": "NCCL's results", "settings of NCCL": "NCCL's settings",
    "results of diagnostics": "results of diagnostics", "path to other hosts": "path to other hosts",
    "transfers to other hosts": "transfers to other hosts",
}  # fmt: skip
"""Parts of the host that are named without it."""


def component_name(component: Component) -> str:
    """With its bus id, unless the name holds it or it joins two GPUs."""
    plain = not (bdf := shown(component.bdf)) or bdf in component.name or component.kind in ("nvlink", "path")
    name = component.name if plain else f"{component.name} {component.bdf}"
    part = f"{component.part} at {component.position}" if component.position else component.part
    if component.kind == "slot":
        return f"{part} {name}".strip()
    if component.kind == "host" and component.part in _OWN_NAMES:
        return f"{_OWN_NAMES[component.part]}{f' ({component.position})' if component.position else ''}"
    noun = f"{_NOUNS.get(component.kind, '')} {name}".strip()
    if component.position and not component.part:
        return f"{noun} port {component.position}"
    return f"{part} of {noun}" if part else noun
