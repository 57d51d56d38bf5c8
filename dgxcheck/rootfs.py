"""Small files below a root: every read of the tool's own goes through here."""

from __future__ import annotations

import errno
import os
import stat

from dgxcheck.limits import ATTRIBUTE_BYTES, FILE_BYTES, TREE_NAMES

_PAGE = 4096
OPENING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def most_of(path: str) -> int:
    """The most bytes that a file of a machine may have, by its path under the machine's root."""
    return ATTRIBUTE_BYTES if path.startswith("/sys/") else FILE_BYTES


def read_bytes(path: str, limit: int = FILE_BYTES) -> bytes:
    """A whole regular file; OSError as the kernel gives it, EFBIG beyond ``limit``, EISDIR for what is no file."""
    return read_descriptor(os.open(path, OPENING), path, limit)


def read_descriptor(fd: int, path: str, limit: int) -> bytes:
    """The same of an open file, which is closed."""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EISDIR, "not a regular file", path)
        # sysfs hands over less than a page of an attribute in one read; procfs, whose files have no size, gives pages
        parts = [part := os.read(fd, 65536)]
        size = len(part)
        while part and not (size <= status.st_size and size < _PAGE):
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


def list_names(path: str | int) -> tuple[str, ...]:
    """The entries of a directory, sorted; names that are not UTF-8 are spelled with U+FFFD. EFBIG for too many."""
    names: list[str] = []
    with os.scandir(path) as entries:
        for entry in entries:
            names.append(decode(os.fsencode(entry.name)))
            if len(names) > TREE_NAMES:
                raise OSError(errno.EFBIG, f"more than {TREE_NAMES} entries", path)
    return tuple(sorted(names))
