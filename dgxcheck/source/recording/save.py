"""Write a recording: one sorted text file, one line per directory or NVML function and subject."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from contextlib import suppress

from dgxcheck.output_place import Place, resolved
from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.keys import GroupedFacts


def written(head: dict[str, Json], lines: GroupedFacts, later: Iterable[tuple[float, GroupedFacts]]) -> str:
    """The text of a recording: members of ``head``, then the facts, then the later moments."""
    parts = [f'"{key}": {_compact(value)}' for key, value in head.items()]
    parts.append(f'"facts": {_facts(lines)}')
    moments = [f'{{"at_s": {_seconds(at_s)}, "facts": {_facts(changed)}}}' for at_s, changed in later]
    if moments:
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
    """Write beside, fsync, rename: a reader sees the old file or the whole new one.

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
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                if exactly:
                    os.fchmod(file.fileno(), mode)
                elif place.status is not None:
                    _keep_owner(file.fileno(), place.status, mode)
                os.fsync(file.fileno())
            os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            os.unlink(temporary, dir_fd=place.folder)
            raise


def create_file(path: str, text: str, mode: int) -> None:
    """Write beside, fsync, link: a reader sees no file or the whole one. FileExistsError for whatever is there."""
    with resolved(path, last_link=False) as place:
        fd, temporary = _beside(place, mode)
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), mode)  # read by services of other users, and the umask of root may be 077
                os.fsync(file.fileno())
            os.link(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        finally:
            os.unlink(temporary, dir_fd=place.folder)


def _keep_owner(fd: int, old: os.stat_result, mode: int) -> None:
    if mode & 0o077 and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):  # not root, or without CAP_CHOWN
            os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, old.st_mode & mode)


def _beside(place: Place, mode: int) -> tuple[int, str]:
    temporary = f"{place.name}.{os.urandom(4).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(temporary, flags, mode, dir_fd=place.folder), temporary
