"""``dgxcheck recordings``: what ships and can be named after ``--from``."""

from __future__ import annotations

import click

from dgxcheck.cli.options import options
from dgxcheck.cli.results import emit, width
from dgxcheck.facts.missing import members_of
from dgxcheck.output.plain_text import columns, hidden_columns, lines, visible
from dgxcheck.source.recording.load import head_of, shipped

_HEADS = ("Name", "Provenance", "Date", "Machine")
_WIDE = 120
"""Columns of a terminal from which on all of them are shown."""


@click.command("recordings")
@options("output")
def command(output: str | None) -> int:
    """List the recordings shipped with dgxcheck: name, provenance, date, machine.

    Give any of these names to --from.
    """
    rows = []
    for name, path in shipped():
        head = head_of(path)
        kind = members_of(head.get("provenance")).get("kind")
        what = head.get("fault") or head.get("machine") or ""
        rows.append((name, str(kind or "?"), str(head.get("recorded_at", ""))[:10], visible(str(what))))
    available = width(output)
    if not rows:
        text = ["No recordings are shipped."]
    elif available is None or available >= _WIDE:
        text = columns([_HEADS, *rows])
    else:
        text = [*columns([(row[0], row[-1]) for row in (_HEADS, *rows)]), "", *hidden_columns(_HEADS[1:-1])]
    emit(lines(text), output)
    return 0
