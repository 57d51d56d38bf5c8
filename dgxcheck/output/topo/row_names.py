"""Names of rows and columns: short InfiniBand names as they are, else NICn and a legend."""

from __future__ import annotations

from dgxcheck.output.plain_text import visible
from dgxcheck.topology.model import Device, Topology


def row_names(topology: Topology, numbered_nics: bool) -> dict[str, str]:
    """Labels in the matrix by device name; ``numbered_nics``: NICn always, as in current nvidia-smi."""
    nics = [device.name for device in topology.devices if device.kind == "nic"]
    numbered = numbered_nics or not all(map(_is_short_name, nics))
    names = {device.name: visible(device.name) for device in topology.devices}
    return names | {name: f"NIC{number}" for number, name in enumerate(nics)} if numbered else names


def nic_legend(topology: Topology, names: dict[str, str]) -> list[str]:
    """``NIC0: mlx5_0 (0000:05:00.0)``, where the matrix shows other names."""
    nics = (device for device in topology.devices if device.kind == "nic" and names[device.name] != device.name)
    return [f"{names[nic.name]}: {visible(nic.name)}{_bdf(nic)}" for nic in nics]


def _is_short_name(name: str) -> bool:
    """``mlx5_0`` is; ``ibp5s0``, ``rocep193s0f1`` and ``mlx5_bond_0`` need a legend."""
    driver, _, number = name.rpartition("_")
    return number.isdecimal() and driver.isalnum() and len(name) <= 8


def _bdf(nic: Device) -> str:
    return f" ({nic.bdf})" if nic.bdf else ""
