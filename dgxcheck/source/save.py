"""Write a recording: one sorted text file, one line per directory or NVML function and subject."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from dgxcheck.source.keys import Lines
from dgxcheck.source.protocol import Json


def written(head: dict[str, Json], lines: Lines, later: Iterable[tuple[float, Lines]]) -> str:
    """The text of a recording: members of ``head``, then the facts, then the later moments."""
    parts = [f'"{key}": {_compact(value)}' for key, value in head.items()]
    parts.append(f'"facts": {_facts(lines)}')
    moments = [f'{{"at_s": {_seconds(at_s)}, "facts": {_facts(changed)}}}' for at_s, changed in later]
    if moments:
        parts.append('"later": [\n' + ",\n".join(moments) + "\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _facts(lines: Lines) -> str:
    return "{\n" + ",\n".join(f"{json.dumps(line)}: {_compact(lines[line])}" for line in sorted(lines)) + "\n}"


def _seconds(at_s: float) -> str:
    return json.dumps(int(at_s) if at_s == int(at_s) else at_s)


def _compact(value: Json | dict[str, Json]) -> str:
    return json.dumps(value, sort_keys=True)


def replace_file(path: str, text: str, mode: int) -> None:
    """Write beside, fsync, rename: a reader sees the old file or the whole new one.

    What is no regular file (``/dev/stdout``, a FIFO) is written to and stays; a symbolic link stays too.
    """
    if os.path.exists(path):
        if not os.path.isfile(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return
        path = os.path.realpath(path)
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
