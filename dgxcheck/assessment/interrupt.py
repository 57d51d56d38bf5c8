"""Ctrl-C, SIGTERM and SIGHUP while a load runs: it ends, and what was seen is still told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """The first of these signals calls ``stop``, the next ends the command at once.

    Only the main thread may handle signals; in any other this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told: list[int] = []

    def once(number: int, _frame: FrameType | None) -> None:
        if told:
            raise KeyboardInterrupt
        told.append(number)
        stop()

    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup
            signal.signal(number, once)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
