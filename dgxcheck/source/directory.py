"""A machine's files below a directory: a container's /host, an unpacked hwloc or sosreport tree.

Whoever owns the tree may change it while it is read. Every directory is therefore opened from the descriptor of the one
above it, and no link is followed by the kernel: what was checked is what is read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from dgxcheck.facts.missing import BadInput, Gap, Missing, missing, question
from dgxcheck.limits import BINARY_BYTES, TREE_BYTES
from dgxcheck.rootfs import OPENING, decode, list_names, most_of, read_descriptor
from dgxcheck.source.pci_ids import PLACES, PciIds
from dgxcheck.source.protocol import Json, Origin, Source
from dgxcheck.source.recording.keys import split_path

MAX_LINKS = 40  # as the kernel's own limit for one path
_NODE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = _NODE | os.O_DIRECTORY
T = TypeVar("T")


class _Outside(OSError):
    """A symbolic link leads out of the tree."""


class DirectorySource:
    """Answers from the files of a tree; symbolic links are followed within it only."""

    at_s = 0.0

    def __init__(self, root: str) -> None:
        if not os.path.isdir(os.path.join(root, "sys")):
            raise BadInput(f"{root}: contains no sys/ directory; give the root of a file tree, such as a /host mount")
        self._root = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._real: dict[str, str] = {"/": ""}
        self._bytes_left = TREE_BYTES
        self._ids = PciIds(read=self._bytes) if any(map(self._is_file, PLACES)) else PciIds()
        self.origin = Origin("directory", root)

    def close(self) -> None:
        """Nothing can be read any more; who reads for months opens many."""
        root, self._root = self._root, -1
        if root >= 0:
            os.close(root)

    def __del__(self) -> None:
        if getattr(self, "_root", -1) >= 0:
            self.close()

    def text(self, path: str) -> str | Missing:
        return self._asked(path, lambda: decode(self._bytes(path)))

    def data(self, path: str) -> bytes | Missing:
        return self._asked(path, lambda: self._bytes(path, BINARY_BYTES))

    def link(self, path: str) -> str | Missing:
        head, tail = split_path(path)
        try:
            with self._opened(self._follow(head)) as folder:
                return decode(os.fsencode(os.readlink(_possible(tail), dir_fd=folder)))
        except OSError as error:
            # EINVAL: there is a file of this name, but it is no link
            return Missing(Gap.ABSENT, path, "not a link") if error.errno == errno.EINVAL else self._gap(path, error)

    def names(self, path: str) -> tuple[str, ...] | Missing:
        def listed() -> tuple[str, ...]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            with self._opened(self._follow(path), flags) as folder:
                return list_names(folder)

        return self._asked(path, listed)

    def opens(self, path: str) -> bool | Missing:
        return Missing(Gap.UNRECORDED, path, "a directory does not tell what can be opened")

    def nvml(self, function: str, subject: str = "", *args: int) -> Json | Missing:
        return Missing(Gap.UNRECORDED, question(function, subject, *args), "a directory holds no NVML answers")

    def name(self, table: str, key: str) -> str | Missing:
        return self._ids.name(key) if table == "pci" else Missing(Gap.ABSENT, f"{table} {key}")

    def kernel_log(self) -> tuple[str, ...] | Missing:
        return Missing(Gap.UNRECORDED, "/dev/kmsg", "a directory holds no kernel log")

    def measured(self) -> Mapping[str, Json] | Missing:
        return Missing(Gap.UNRECORDED, "measure", "a directory holds no measurements")

    def stated(self) -> Mapping[str, Json] | Missing:
        return Missing(Gap.UNRECORDED, "stated", "a directory holds no other tool's output")

    def later(self, seconds: float) -> Source | Missing:
        return Missing(Gap.UNRECORDED, "later", "a directory holds one moment only")

    def _asked(self, path: str, read: Callable[[], T]) -> T | Missing:
        try:
            return read()
        except OSError as error:
            return self._gap(path, error)

    @contextmanager
    def _opened(self, real: str, flags: int = _NODE) -> Iterator[int]:
        fd = self._open(real, flags)
        try:
            yield fd
        finally:
            os.close(fd)

    def _bytes(self, path: str, limit: int = 0) -> bytes:
        real = self._follow(path)
        # asked before opening: to open a device node can start a tape or a watchdog
        with self._opened(real) as node:
            if not stat.S_ISREG(os.fstat(node).st_mode):
                raise OSError(errno.EISDIR, "not a regular file", path)
            fd = self._reopen(node, real)
        raw = read_descriptor(fd, path, min(limit or most_of(path), self._bytes_left))
        self._bytes_left -= len(raw)
        return raw

    def _reopen(self, node: int, real: str) -> int:
        """For reading, the very file that was asked about, whatever has its name by now; ESTALE if it cannot be had."""
        try:
            return os.open(f"/proc/self/fd/{node}", OPENING)
        except FileNotFoundError:  # no /proc
            fd = self._open(real, OPENING | os.O_NOFOLLOW)
        if not os.path.samestat(os.fstat(fd), os.fstat(node)):
            os.close(fd)
            raise OSError(errno.ESTALE, "replaced while it was opened", real)
        return fd

    def _is_file(self, path: str) -> bool:
        try:
            with self._opened(self._follow(path)) as node:
                return stat.S_ISREG(os.fstat(node).st_mode)
        except OSError:
            return False

    def _gap(self, path: str, error: OSError) -> Missing:
        if isinstance(error, _Outside):
            return Missing(Gap.DENIED, path, str(error))
        gap = missing(path, error)
        if gap.gap is not Gap.ABSENT or self._covers(path):
            return gap
        return Missing(Gap.UNRECORDED, path, f"the tree holds no {_subject_directory(path)}")

    def _covers(self, path: str) -> bool:
        """Absent is only what the tree could have held: its class or module directory is there."""
        directory = _subject_directory(path)
        try:
            if directory != path:
                os.close(self._open(self._follow(directory), _FOLDER))
        except OSError:
            return False
        return directory != path

    def _open(self, real: str, flags: int = _NODE) -> int:
        """Open a path without links, component by component; ELOOP or ENOTDIR where one has become a link."""
        folder = os.dup(self._root)
        *heads, tail = real.split("/")
        for part, how in (*((head, _FOLDER) for head in heads if head), (tail or ".", flags)):
            try:
                below = os.open(part, how, dir_fd=folder)
            finally:
                os.close(folder)
            folder = below
        return folder

    def _follow(self, path: str) -> str:
        """The path with every link in it followed, relative to the tree's root."""
        if (resolved := self._real.get(path)) is not None:
            return resolved
        head, tail = split_path(path)
        real = self._step(self._follow(head), _possible(tail), path)
        self._real[path] = real
        return real

    def _step(self, real: str, tail: str, path: str) -> str:
        queue = [tail]
        links = 0
        while queue:
            part = queue.pop(0)
            if part in ("", "."):
                continue
            if part == "..":
                if not real:
                    raise _Outside(f"{path} leads out of the tree")
                real = real.rpartition("/")[0]
                continue
            if (target := self._target(real, part)) is None:
                real = f"{real}/{part}"
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, "too many levels of symbolic links", path)
            if target.startswith("/"):
                raise _Outside(f"{path} leads out of the tree, to {decode(os.fsencode(target))}")
            queue = target.split("/") + queue
        return real

    def _target(self, real: str, part: str) -> str | None:
        """Where a link leads; None for what is no link, or not there."""
        try:
            with self._opened(real, _FOLDER) as folder:
                return os.readlink(part, dir_fd=folder)
        except OSError:
            return None


def _possible(name: str) -> str:
    """A name that a file can have; ENOENT for others, as for those that no file has."""
    try:
        possible = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise OSError(errno.ENOENT, "no such file", name)
    return name


def _subject_directory(path: str) -> str:
    """``/sys/class/infiniband`` of a path in it, ``/sys/module``, ``/sys/bus/pci/devices``, ``/proc/driver``, ..."""
    parts = path.split("/")
    depth = {"class": 4, "bus": 5, "devices": 4, "kernel": 4}.get(parts[2] if len(parts) > 2 else "", 3)
    return "/".join(parts[: depth if path.startswith("/sys/") else 2])
