"""Datagrams to systemd: to the journal, to the service manager and its watchdog (sd_notify(3))."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress


def send(datagram: bytes, address: str) -> None:
    """To a socket of this machine, without waiting; OSError where nobody listens or its queue is full."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        sender.sendto(datagram, address)


class Notifier:
    """Says what it is reported to; nothing where no service manager listens."""

    def __init__(self) -> None:
        name = os.environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{name[1:]}" if name.startswith("@") else name
        microseconds = os.environ.get("WATCHDOG_USEC", "")
        pid = os.environ.get("WATCHDOG_PID", "")
        asked = microseconds.isascii() and microseconds.isdecimal() and pid in ("", str(os.getpid()))
        self._every_s = int(microseconds) / 2e6 if asked and int(microseconds) else None
        """Half of what the watchdog allows; None where there is none."""
        self._ready = False
        self.due: float | None = None
        """When the watchdog is to hear of us next (monotonic); None where there is none."""

    def alive(self) -> None:
        """The loop has come around: that the service is up, the first time, then to the watchdog when that is due."""
        now = time.monotonic()
        if self._ready and (self.due is None or now < self.due):
            return
        self.say("WATCHDOG=1" if self._ready else "READY=1")
        self._ready = True
        self.due = None if self._every_s is None else now + self._every_s

    def say(self, *lines: str) -> None:
        """``READY=1``, ``WATCHDOG=1``, ``STOPPING=1``; a manager that does not listen is left alone."""
        if self._address:
            with suppress(OSError):
                send("\n".join(lines).encode("utf-8", "replace"), self._address)
