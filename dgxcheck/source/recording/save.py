"""Write a recording: one sorted text file, one line per directory or NVML function and subject."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable

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
    if (place := _replaced(path)) is not None:
        fd, temporary = _beside(place, 0o600)
        os.close(fd)
        os.unlink(temporary)
    elif not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)


def replace_file(path: str, text: str, mode: int, exactly: bool = False) -> None:
    """Write beside, fsync, rename: a reader sees the old file or the whole new one.

    ``mode`` is what the umask leaves of it, or all of it where it is meant ``exactly``.

    What is no regular file (``/dev/stdout``, a FIFO) is written to and stays; a symbolic link stays too, and the file
    that it names is replaced or made.
    """
    if (place := _replaced(path)) is None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    fd, temporary = _beside(place, mode)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if exactly:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise


def _replaced(path: str) -> str | None:
    """The regular file of this name, there or not, behind all symbolic links; None for what is no regular file."""
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        regular = True
    return os.path.realpath(path) if regular else None


def _beside(place: str, mode: int) -> tuple[int, str]:
    temporary = f"{place}.{os.urandom(4).hex()}.tmp"
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), temporary
