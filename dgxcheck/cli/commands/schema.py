"""``dgxcheck schema``: the JSON Schemas that ship."""

from __future__ import annotations

import os

import click

from dgxcheck.cli.options import emit, output_file
from dgxcheck.facts.missing import BadInput
from dgxcheck.rootfs import decode, read_bytes
from dgxcheck.suggestion import did_you_mean

_FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "schemas"))


@click.command("schema")
@click.argument("name", metavar="NAME", shell_complete=lambda _ctx, _param, start: _completed(start))
@output_file
def command(name: str, output: str | None) -> int:
    """Print the JSON Schema of an output or file format: topo, health, result, fleet, watch, list, diff, xid, recording
    or overlay."""
    known = _names()
    if name not in known:
        valid = f"valid names: {', '.join(known)}"
        raise BadInput(f"{name}: no such schema; {did_you_mean(name, known, valid)}")
    emit(decode(read_bytes(os.path.join(_FOLDER, f"{name}.schema.json"))), output, form="json")
    return 0


def _names() -> list[str]:
    return sorted(file[: -len(".schema.json")] for file in os.listdir(_FOLDER) if file.endswith(".schema.json"))


def _completed(incomplete: str) -> list[str]:
    return [name for name in _names() if name.startswith(incomplete)]
