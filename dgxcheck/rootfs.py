"""Small files below a root: every read of the tool's own goes through here."""

from __future__ import annotations

import errno
import os
import stat

LIMIT = 8 << 20
"""No file of sysfs, procfs or a recorded tree is larger; what is longer is refused."""


def read_bytes(path: str, limit: int = LIMIT) -> bytes:
    """A whole regular file; OSError as the kernel gives it, EFBIG beyond ``limit``, EISDIR for what is no file."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EISDIR, "not a regular file", path)
        # sysfs hands over an attribute in one read; procfs gives pages
        parts = [part := os.read(fd, 65536)]
        size = len(part)
        while part:
            parts.append(part := os.read(fd, 65536))
            size += len(part)
            if size > limit:
                raise OSError(errno.EFBIG, f"larger than {limit >> 10} KiB", path)
    finally:
        os.close(fd)
    return b"".join(parts)


def decode(raw: bytes) -> str:
    """UTF-8, with U+FFFD for what is not: a recording holds no lone surrogates."""
    return raw.decode("utf-8", "replace")


def list_names(path: str) -> tuple[str, ...]:
    """The entries of a directory, sorted; names that are not UTF-8 are spelled with U+FFFD."""
    return tuple(sorted(decode(os.fsencode(name)) for name in os.listdir(path)))
