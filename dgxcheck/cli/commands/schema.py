"""``dgxcheck schema``: the JSON Schemas that ship."""

from __future__ import annotations

import os

import click

from dgxcheck.cli.options import completing, options
from dgxcheck.cli.results import emit
from dgxcheck.facts.missing import BadInput, did_you_mean
from dgxcheck.package_files import FOLDER, names, read
from dgxcheck.rootfs import decode

_FOLDER = os.path.join(FOLDER, "schemas")


@click.command("schema")
@click.argument("name", metavar="NAME", shell_complete=completing(lambda: _names()))
@options("output")
def command(name: str, output: str | None) -> int:
    """Print the JSON Schema of an output or file format: topo, health, result, fleet, history,
    pairs, fabric, watch, list, diff, xid, recording
    or overlay."""
    known = _names()
    if name not in known:
        valid = f"valid names: {', '.join(known)}"
        raise BadInput(f"{name}: no such schema; {did_you_mean(name, known, valid)}")
    emit(decode(read(os.path.join(_FOLDER, f"{name}.schema.json"))), output, form="json")
    return 0


def _names() -> list[str]:
    return [file.removesuffix(".schema.json") for file in names(_FOLDER) if file.endswith(".schema.json")]
