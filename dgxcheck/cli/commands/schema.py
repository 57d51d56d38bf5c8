"""``dgxcheck schema``: the JSON Schemas that ship."""

from __future__ import annotations

import os

import click

from dgxcheck.cli.options import emit, writing
from dgxcheck.facts.missing import BadInput
from dgxcheck.rootfs import decode, read_bytes

_FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "schemas"))


@click.command("schema")
@click.argument("name", metavar="NAME")
@writing
def command(name: str, output: str | None, color: str) -> int:
    """Print the JSON Schema of an output or file format: topo, health, result, fleet, watch, list, diff, xid, recording
    or overlay."""
    known = sorted(file[: -len(".schema.json")] for file in os.listdir(_FOLDER) if file.endswith(".schema.json"))
    if name not in known:
        raise BadInput(f"{name}: no such schema; valid names: {', '.join(known)}")
    emit(decode(read_bytes(os.path.join(_FOLDER, f"{name}.schema.json"))), output, color, "json")
    return 0
