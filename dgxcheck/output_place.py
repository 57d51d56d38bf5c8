"""Where a file is written: its folder as a descriptor, so that nobody can exchange a part of its path meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from dgxcheck.facts.record import Record

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40  # as the kernel's own limit for one path


class Place(Record, kw_only=False):
    """A name in an open folder."""

    folder: int
    name: str
    status: os.stat_result | None
    """None where there is no such file."""

    @property
    def regular(self) -> bool:
        """Is it a regular file, or may it become one?"""
        return self.status is None or stat.S_ISREG(self.status.st_mode)

    def open(self, flags: int) -> int:
        """Open what is there; a link in /proc stands for a descriptor of this process and is followed."""
        link = self.status is not None and stat.S_ISLNK(self.status.st_mode)
        how = flags | os.O_CLOEXEC | os.O_NOCTTY | (0 if link else os.O_NOFOLLOW)
        return os.open(self.name, how, dir_fd=self.folder)


@contextmanager
def resolved(path: str, last_link: bool = True) -> Iterator[Place]:
    """The place that a path names, behind its links; OSError where there is none.

    Only links that root or the caller made are followed (EACCES): in a folder that all may write to, anybody can make
    others. Without ``last_link`` a link in the last place is not followed, it is the place.
    """
    folder = os.open("/" if path.startswith("/") else ".", _FOLDER)
    queue = _parts(path)
    links = 0
    try:
        while True:
            part = queue.pop(0) if queue else "."
            status = _status(part, folder)
            stays = not queue and (not last_link or _in_proc(folder))
            if status is not None and stat.S_ISLNK(status.st_mode) and not stays:
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if status.st_uid not in (0, os.geteuid()):
                    raise OSError(errno.EACCES, "leads over a symbolic link of another user", path)
                target = os.readlink(part, dir_fd=folder)
                queue = _parts(target) + queue
                if target.startswith("/"):
                    folder = _step("/", folder)
            elif queue:
                folder = _step(part, folder)
            else:
                yield Place(folder, part, status)
                return
    finally:
        os.close(folder)


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return [*parts, "."] if path.endswith("/") else parts


def _step(part: str, folder: int) -> int:
    below = os.open(part, _FOLDER, dir_fd=folder)
    os.close(folder)
    return below


def _status(part: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(part, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _in_proc(folder: int) -> bool:
    """Do links in this folder stand for open files? Their targets are no paths."""
    try:
        place = os.readlink(f"/proc/self/fd/{folder}")
        return os.fstat(folder).st_dev == os.stat("/proc").st_dev and place.endswith("/fd")
    except OSError:
        return False
