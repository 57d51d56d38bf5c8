"""Where facts come from, in words."""

from __future__ import annotations

from dgxcheck.output.plain_text import visible, wording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.source.protocol import Origin


def source_line(origin: Origin) -> list[str]:
    """``Source: recording dgx-1-v100, reconstructed from published facts.``; nothing for the running machine."""
    return [] if origin.kind == "live" else [f"Source: {source_text(origin)}."]


def source_text(origin: Origin) -> str:
    """``recording dgx-1-v100, reconstructed from published facts``, or ``this machine``."""
    if origin.kind == "live":
        return "this machine"
    notes = [visible(each) for each in (origin.note, origin.unread) if each]
    note = f" ({'; '.join(notes)})" if notes else ""
    return f"{origin.kind} {visible(origin.name)}{wording('provenance').get(origin.provenance, '')}{note}"
