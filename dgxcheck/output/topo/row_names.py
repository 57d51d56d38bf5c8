"""Names of rows and columns: short InfiniBand names as they are, else NICn and a legend."""

from __future__ import annotations

from itertools import count

from dgxcheck.output.plain_text import visible
from dgxcheck.topology.model import Device, Topology, is_printed


def row_names(topology: Topology, numbered_nics: bool) -> dict[str, str]:
    """Labels in the matrix by device name; ``numbered_nics``: NICn always, as in current nvidia-smi.

    A NIC that an imported matrix calls NICn keeps that number; the others get those that are free.
    """
    every = [device.name for device in topology.devices if device.kind == "nic"]
    nics = [name for name in every if not is_printed(name)]
    numbered = numbered_nics or not all(map(_is_short_name, nics))
    names = {device.name: visible(device.name) for device in topology.devices}
    free = (name for name in map("NIC{}".format, count()) if name not in names)
    return names | dict(zip(nics, free, strict=False)) if numbered else names


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
