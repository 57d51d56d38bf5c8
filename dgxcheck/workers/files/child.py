"""The worker for driver-backed files: JSON lines of questions in, ``key`` and ``key TAB value`` out, until stdin ends.

A line is ``{"root", "ask": [question..], "avoid": [directory..]}``; a question is ``text``, ``data`` or ``opens`` and a
path in which ``*`` stands for one component. Directories under ``avoid`` are left alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

from dgxcheck.facts.missing import gap_to_json, missing
from dgxcheck.rootfs import decode, list_names, read_bytes
from dgxcheck.workers.answers import answer, ask, done, leave


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        for question in request["ask"]:
            kind, _, pattern = question.partition(" ")
            for path in matches(request["root"], pattern):
                if not any(f"{path}/".startswith(f"{directory}/") for directory in request["avoid"]):
                    _answer(request["root"], kind, path)
        done()
    leave()


def matches(root: str, pattern: str) -> Iterator[str]:
    """The paths that a pattern stands for, in order; a pattern without ``*`` stands for itself."""
    head, star, rest = pattern.partition("/*")
    if not star:
        yield pattern
        return
    try:
        names = list_names(root + head)
    except OSError:
        return
    for name in names:
        if "\n" not in name and "\t" not in name:
            yield from matches(root, f"{head}/{name}{rest}")


def _answer(root: str, kind: str, path: str) -> None:
    key = f"{kind} {path}"
    ask(key)
    value: object
    try:
        value = _READ[kind](root + path)
    except OSError as error:
        value = gap_to_json(missing(path, error))
    answer(key, value)


def _opens(path: str) -> bool:
    """A node that may not be opened is an answer; one that is not there, or whose device is gone, is a gap."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except PermissionError:
        return False
    os.close(fd)
    return True


_READ = {
    "text": lambda path: decode(read_bytes(path)),
    "data": lambda path: read_bytes(path, 1 << 16).hex(),
    "opens": _opens,
}
