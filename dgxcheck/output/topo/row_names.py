"""Names of rows and columns: InfiniBand names where they tell, NICn and a legend where they do not."""

from __future__ import annotations

from dgxcheck.output.plain_text import visible
from dgxcheck.topology.model import Device, Topology


def row_names(topology: Topology, numbered_nics: bool) -> dict[str, str]:
    """What each device is called in the matrix, by its name; ``numbered_nics`` as current drivers print them."""
    nics = [device.name for device in topology.devices if device.kind == "nic"]
    numbered = numbered_nics or not all(map(_telling, nics))
    names = {device.name: visible(device.name) for device in topology.devices}
    return names | {name: f"NIC{number}" for number, name in enumerate(nics)} if numbered else names


def nic_legend(topology: Topology, names: dict[str, str]) -> list[str]:
    """``NIC0: mlx5_0 (0000:05:00.0)``, where the matrix shows other names."""
    nics = (device for device in topology.devices if device.kind == "nic" and names[device.name] != device.name)
    return [f"{names[nic.name]}: {visible(nic.name)}{_bdf(nic)}" for nic in nics]


def _telling(name: str) -> bool:
    """``mlx5_0`` says which HCA it is; ``ibp5s0``, ``rocep193s0f1`` or ``mlx5_bond_0`` take a legend."""
    driver, _, number = name.rpartition("_")
    return number.isdecimal() and driver.isalnum() and len(name) <= 8


def _bdf(nic: Device) -> str:
    return f" ({nic.bdf})" if nic.bdf else ""
