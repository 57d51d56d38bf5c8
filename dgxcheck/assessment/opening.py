"""What ``--from`` names: a shipped recording, a recording, a tree of files, a bug report, an archive .."""

from __future__ import annotations

from dgxcheck.readers.bundles.sniff import is_bundle
from dgxcheck.source.recording.shipped import is_shipped
from dgxcheck.source.recording.shipped import open_source as open_recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.source.protocol import Source


def open_source(spec: str) -> Source:
    """The machine that a name stands for; BadInput for a name that stands for none."""
    if not is_shipped(spec) and is_bundle(spec):
        from dgxcheck.assessment.bundle import open_bundle

        return open_bundle(spec)
    return open_recording(spec)
