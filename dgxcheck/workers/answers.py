"""The worker's side of the stream: ``key`` before a question, ``key TAB value`` after it, ``done`` at the end."""

from __future__ import annotations

import json
import os
import select
import time

SAY = 3
"""The descriptor that a worker answers on: 1 is /dev/null by then, a driver's library may print there."""

SPENT = 9
"""Exit code of a worker whose driver has broken its process: the rest needs a new one."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


def first_line() -> str:
    """The plan: the first line of stdin, and no byte of what follows."""
    text = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        text += byte
    return text.decode()


def ask(key: str) -> None:
    """Announce the question that is asked now."""
    os.write(SAY, f"{key}\n".encode())


def answer(key: str, value: Any) -> None:
    """Give the answer to a question as JSON."""
    os.write(SAY, f"{key}\t{json.dumps(value)}\n".encode())


def told_to_end(seconds: float = 0.0) -> bool:
    """True once the parent wrote another line or is gone; waits up to ``seconds`` for that."""
    return bool(select.select([0], [], [], seconds)[0])


def at_intervals(name: str, every_s: float, look: Callable[[], Any]) -> NoReturn:
    """Give what ``look`` sees as the answers to ``NAME 0``, ``NAME 1`` .. until told to end."""
    number, due = 0, time.monotonic()
    while True:
        key = f"{name} {number}"
        ask(key)
        answer(key, look())
        number += 1
        due = max(due + every_s, time.monotonic())
        if told_to_end(max(0.0, due - time.monotonic())):
            end()


def done() -> None:
    """All questions of the plan were asked."""
    os.write(SAY, b"done\n")


def leave(code: int = 0) -> NoReturn:
    """End at once: the interpreter's shutdown runs the driver's own exit handlers, which can hang."""
    os._exit(code)


def end() -> NoReturn:
    """All was asked."""
    done()
    leave()
