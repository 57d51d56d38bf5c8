"""``dgxcheck recordings``: what ships and can be named after ``--from``."""

from __future__ import annotations

import click

from dgxcheck.cli.options import emit, output_file
from dgxcheck.output.plain_text import columns, lines, visible
from dgxcheck.source.recording.shipped import head_of, shipped


@click.command("recordings")
@output_file
def command(output: str | None) -> int:
    """List the recordings shipped with dgxcheck: name, provenance, date, machine.

    Give any of these names to --from.
    """
    rows = []
    for name, path in shipped():
        head = head_of(path)
        provenance = head.get("provenance")
        kind = provenance.get("kind") if isinstance(provenance, dict) else None
        what = head.get("fault") or head.get("machine") or ""
        rows.append((name, str(kind or "?"), str(head.get("recorded_at", ""))[:10], visible(str(what))))
    emit(
        lines(columns([("Name", "Provenance", "Date", "Machine"), *rows]) if rows else ["No recordings are shipped."]),
        output,
    )
    return 0
