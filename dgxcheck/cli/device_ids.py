"""Which device a user means: an index, a name, a bus id in any spelling, a UUID."""

from __future__ import annotations

from collections.abc import Sequence

import click

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.missing import BadInput
from dgxcheck.output.topo.row_names import row_names
from dgxcheck.topology.model import Device, Topology


def gpus(topology: Topology, ids: str) -> list[Device]:
    """The GPUs of a comma-separated list."""
    return [_one(topology, topology.gpus, word.strip(), "GPU") for word in ids.split(",")]


def some_gpus(topology: Topology, ids: str, count: int, option: str) -> tuple[Device, ...]:
    """Exactly ``count`` different GPUs; a usage error otherwise."""
    found = tuple(gpus(topology, ids))
    number = "one GPU" if count == 1 else f"{('two', 'three')[count - 2]} GPUs"
    if len(found) != count:
        raise click.UsageError(f"{option} takes {number}: -i {','.join(['ID'] * count)}, not -i {ids}")
    return _different(found, f"{option} takes {number}")


def two(topology: Topology, words: tuple[str, str]) -> tuple[Device, ...]:
    """Two different GPUs or NICs."""
    found = tuple(_one(topology, topology.devices, word.strip(), "device") for word in words)
    return _different(found, "--path takes two devices")


def _different(devices: tuple[Device, ...], needs: str) -> tuple[Device, ...]:
    if len({device.name for device in devices}) != len(devices):
        raise click.UsageError(f"{needs}, not {devices[0].name} twice")
    return devices


def _one(topology: Topology, devices: Sequence[Device], word: str, kind: str) -> Device:
    wanted = as_bdf(word, short=True)
    index = f"GPU{int(word)}" if word.isdecimal() and len(word) < 10 else None
    for found in devices:
        if word.lower() == found.name.lower() or found.name == index:
            return found
        if isinstance(found.uuid, str) and word.lower() == found.uuid.lower():
            return found
        if wanted is not None and found.bdf is not None and found.bdf == wanted:
            return found
    names = row_names(topology, numbered_nics=True)
    for found in devices:
        if word.lower() == names[found.name].lower():
            return found
    for lost in topology.gaps:
        if word.isdecimal() and lost.where == f"nvmlDeviceGetHandleByIndex {int(word[:9])}":
            raise BadInput(f"GPU {word} cannot be accessed: {lost}; 'dgxcheck topo' shows what is known about it")
    known = ", ".join(f"{found.name} ({found.bdf})" if found.bdf else found.name for found in devices)
    hint = f"give the index, name, bus id or UUID of one of {known}" if known else f"the machine has no {kind}s"
    raise BadInput(f"no {kind} {word!r}; {hint}")
