"""Write a recording: one sorted text file, one line per directory or NVML function and subject.

A file is replaced whole or not at all, in a folder held as a descriptor, so that nobody can exchange a part of its path
meanwhile.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from dgxcheck.facts.record import Record
from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.keys import GroupedFacts

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


def written(head: dict[str, Json], lines: GroupedFacts, later: Iterable[tuple[float, GroupedFacts]]) -> str:
    """The text of a recording: members of ``head``, then the facts, then the later moments."""
    parts = [f'"{key}": {_compact(value)}' for key, value in head.items()]
    parts.append(f'"facts": {_facts(lines)}')
    if moments := [f'{{"at_s": {_seconds(at_s)}, "facts": {_facts(changed)}}}' for at_s, changed in later]:
        parts.append('"later": [\n' + ",\n".join(moments) + "\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _facts(lines: GroupedFacts) -> str:
    return "{\n" + ",\n".join(f"{json.dumps(line)}: {_compact(lines[line])}" for line in sorted(lines)) + "\n}"


def _seconds(at_s: float) -> str:
    return json.dumps(int(at_s) if at_s == int(at_s) else at_s)


def _compact(value: Json | dict[str, Json]) -> str:
    return json.dumps(value, sort_keys=True)


def check_place(path: str) -> None:
    """The OSError that ``replace_file`` would end with, before there is anything to write; nothing is left behind."""
    with resolved(path) as place:
        if not place.regular:
            if not os.access(path, os.W_OK):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)
            return
        fd, temporary = _beside(place, 0o600)
        os.close(fd)
        os.unlink(temporary, dir_fd=place.folder)


def replace_file(path: str, text: str, mode: int, exactly: bool = False, regular: bool = False) -> None:
    """Write beside, fsync, rename: a reader sees the old file or the whole new one; an output to ``.gz`` is compressed.

    ``mode`` is what the umask leaves of it, or all of it where it is meant ``exactly``. A file that is replaced keeps
    its owner, and no more of its mode than ``mode`` has; one that is private (0600) becomes the caller's.

    What is no regular file (``/dev/stdout``, a FIFO) is written to and stays; a symbolic link stays too, and the file
    that it names is replaced or made. OSError (EACCES) for a link that neither root nor the caller made; where only
    ``regular`` files are meant, for any link or special file (EINVAL).
    """
    with resolved(path, last_link=not regular) as place:
        if regular and not place.regular:
            raise OSError(errno.EINVAL, "not a regular file", path)
        if not place.regular:
            with os.fdopen(place.open(os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
                file.write(text)
            return
        fd, temporary = _beside(place, mode)
        try:
            with _holding(fd, text, packed=path.endswith(".gz") and not regular):
                if exactly:
                    os.fchmod(fd, mode)
                elif place.status is not None:
                    _keep_owner(fd, place.status, mode)
            os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            os.unlink(temporary, dir_fd=place.folder)
            raise


def create_file(path: str, text: str, mode: int) -> None:
    """Write beside, fsync, link: a reader sees no file or the whole one. FileExistsError for whatever is there."""
    with resolved(path, last_link=False) as place:
        fd, temporary = _beside(place, mode)
        try:
            with _holding(fd, text):
                os.fchmod(fd, mode)  # read by services of other users, and the umask of root may be 077
            os.link(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        finally:
            os.unlink(temporary, dir_fd=place.folder)


@contextmanager
def _holding(fd: int, text: str, packed: bool = False) -> Iterator[None]:
    """The file holds the text within the block, and the disk behind it."""
    data = text.encode()
    if packed:
        from gzip import compress

        data = compress(data, mtime=0)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        yield
        os.fsync(fd)


def _keep_owner(fd: int, old: os.stat_result, mode: int) -> None:
    if mode & 0o077 and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):  # not root, or without CAP_CHOWN
            os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, old.st_mode & mode)


def _beside(place: Place, mode: int) -> tuple[int, str]:
    temporary = f"{place.name}.{os.urandom(4).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(temporary, flags, mode, dir_fd=place.folder), temporary
