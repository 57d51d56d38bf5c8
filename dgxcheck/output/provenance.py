"""The line on the source of the facts: shown with every report that is not of the running machine."""

from __future__ import annotations

from dgxcheck.output.plain_text import visible
from dgxcheck.source.protocol import Origin

_MADE = {
    "reconstructed": ", reconstructed from published facts",
    "overlay": ", an overlay: not a real machine",
    "imported": ", imported from the output of other tools",
    "imported onto reconstructed": ", imported from the output of other tools onto reconstructed facts",
    "imported onto overlay": ", imported from the output of other tools onto an overlay: not a real machine",
}


def line(origin: Origin) -> list[str]:
    """``Source: recording dgx-1-v100, reconstructed from published facts.``; nothing for the running machine."""
    return [] if origin.kind == "live" else [f"Source: {describe(origin)}."]


def describe(origin: Origin) -> str:
    """``recording dgx-1-v100, reconstructed from published facts``, or ``this machine``."""
    if origin.kind == "live":
        return "this machine"
    notes = [visible(each) for each in (origin.note, origin.unread) if each]
    note = f" ({'; '.join(notes)})" if notes else ""
    return f"{origin.kind} {visible(origin.name)}{_MADE.get(origin.provenance, '')}{note}"
