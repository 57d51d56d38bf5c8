"""What ``--from`` names: a shipped recording, a recording, a tree of files, a bug report, an archive, a pasted text."""

from __future__ import annotations

import os
import stat

from dgxcheck.facts.missing import BadInput
from dgxcheck.source.recording.shipped import is_shipped
from dgxcheck.source.recording.shipped import open_source as open_recording

_JSON, _PACKED, _SCHEMA = b"{", b"\x1f\x8b", b'"dgxcheck/'
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.source.protocol import Source


def open_source(spec: str, host: str = "") -> Source:
    """The machine that a name stands for; of a text or a bundle of several hosts that of ``host``.

    BadInput for a name that stands for none.
    """
    if is_shipped(spec):
        return _of_one_host(open_recording(spec), spec, host)
    from dgxcheck.readers.bundles.sniff import is_bundle

    if is_bundle(spec):
        from dgxcheck.assessment.importing.bundle import open_bundle

        return open_bundle(spec, host)
    if begins_like_text(spec):
        from dgxcheck.assessment.importing.recording import open_text

        found = open_text(spec, host)
        if found is not None:
            return found
    try:
        return _of_one_host(open_recording(spec), spec, host)
    except BadInput:
        result = _json_of_a_tool(spec, host)
        if result is None:
            raise
        return result


def _of_one_host(source: Source, spec: str, host: str) -> Source:
    """A source that stands for one machine, so that there is no host to choose."""
    if host:
        raise BadInput(f"--host {host}: {spec} is no text of several hosts; leave out --host")
    return source


def _json_of_a_tool(path: str, host: str) -> Source | None:
    """``dcgmi diag -j`` and the like, whole or cut; None for a file of ours that is damaged."""
    head = _head(path)
    if not head.startswith(_JSON) or _SCHEMA in head:
        return None
    from dgxcheck.assessment.importing.recording import open_text

    return open_text(path, host)


def begins_like_text(path: str) -> bool:
    """Is it a regular file that begins like no recording?"""
    head = _head(path)
    return bool(head) and not head.startswith((_JSON, _PACKED))


def _head(path: str) -> bytes:
    """Empty for what is no regular file or cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            return file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (OSError, ValueError):
        return b""
