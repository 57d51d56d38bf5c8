"""Is a file a bug report or an archive, from its first bytes? Imports nothing heavy: every ``--from FILE`` comes by."""

from __future__ import annotations

import os
import re
import stat

HEAD = b"Start of NVIDIA bug report log file."
_FIRST = 8 << 10
_SECTION = re.compile(rb"^_{40,60}\r?\n\r?\n?(?:\*\*\* /|/usr/|/sbin/|/bin/)", flags=re.MULTILINE)
"""How a report goes on whose head is cut away."""
_SUPPORTCONFIG = re.compile(rb"^#==\[ [\w -]{1,40} \]=+#", flags=re.MULTILINE)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_TREE = ("sos_commands", "sos_reports")
GZIP, XZ, BZIP2, ZSTD, ZIP = b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"


def is_bundle(path: str) -> bool:
    """True for a bug report, an archive, or a directory of outputs; False for all else, and what cannot be read."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return _is_directory_of_outputs(path)
        if not stat.S_ISREG(status.st_mode):
            return False
        with open(path, "rb") as file:
            return holds_outputs(file.read(_FIRST))
    except (OSError, ValueError):
        return False


def holds_outputs(head: bytes) -> bool:
    """Do these first bytes of a file begin a bug report or an archive, packed or not?"""
    if head.startswith(GZIP):
        import zlib

        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _FIRST)
        except zlib.error:
            return False
    elif head.startswith((XZ, BZIP2, ZSTD, ZIP)):
        return True  # recordings and texts are not packed so
    if head.startswith(_UTF16):
        head = head.decode("utf-16", "replace").encode("utf-8", "replace")
    return is_report(head) or head[257:262] == b"ustar" or is_supportconfig(head)


def is_report(head: bytes) -> bool:
    """Do these bytes begin a bug report?"""
    return HEAD in head or _SECTION.search(head) is not None


def is_supportconfig(head: bytes) -> bool:
    """Do these bytes begin one of the texts of SUSE's supportconfig?"""
    return _SUPPORTCONFIG.search(head) is not None


def _is_directory_of_outputs(path: str) -> bool:
    """A tree of the machine's files (``sys/``) is no such directory, but where sosreport has put outputs beside it."""
    names = os.listdir(path)
    return any(name in _TREE for name in names) or (bool(names) and "sys" not in names)
