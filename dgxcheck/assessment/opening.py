"""What ``--from`` names: a shipped recording, a recording, a tree of files, a bug report, an archive, a pasted text."""

from __future__ import annotations

import os
import stat

from dgxcheck.readers.bundles.sniff import is_bundle
from dgxcheck.source.recording.shipped import is_shipped
from dgxcheck.source.recording.shipped import open_source as open_recording

_JSON, _PACKED = b"{", b"\x1f\x8b"
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.source.protocol import Source


def open_source(spec: str) -> Source:
    """The machine that a name stands for; BadInput for a name that stands for none."""
    if is_shipped(spec):
        return open_recording(spec)
    if is_bundle(spec):
        from dgxcheck.assessment.bundle import open_bundle

        return open_bundle(spec)
    if begins_like_text(spec):
        from dgxcheck.assessment.pasted import open_text

        found = open_text(spec)
        if found is not None:
            return found
    return open_recording(spec)


def begins_like_text(path: str) -> bool:
    """Is it a regular file that begins like no recording?"""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            head = file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (OSError, ValueError):
        return False
    return bool(head) and not head.startswith((_JSON, _PACKED))
