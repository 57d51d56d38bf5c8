"""The devices that a question of ``dgxcheck topo`` names: as many as its option takes, each once."""

from __future__ import annotations

import click

from dgxcheck.assessment import device_ids
from dgxcheck.topology.model import Device, Topology


def exactly(topology: Topology, ids: str, count: int, option: str) -> tuple[Device, ...]:
    """Exactly ``count`` different GPUs; a usage error otherwise."""
    gpus = tuple(device_ids.gpus(topology, ids))
    number = "one GPU" if count == 1 else f"{('two', 'three')[count - 2]} GPUs"
    if len(gpus) != count:
        raise click.UsageError(f"{option} takes {number}: -i {','.join(['ID'] * count)}, not -i {ids}")
    return _different(gpus, f"{option} takes {number}")


def two_devices(topology: Topology, ids: tuple[str, str]) -> tuple[Device, ...]:
    """Two different GPUs or NICs; a usage error where they are one."""
    return _different(tuple(device_ids.devices(topology, ids)), "--path takes two devices")


def _different(devices: tuple[Device, ...], needs: str) -> tuple[Device, ...]:
    if len({device.name for device in devices}) != len(devices):
        raise click.UsageError(f"{needs}, not {devices[0].name} twice")
    return devices
