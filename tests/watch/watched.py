"""A kernel log that is written while it is read, for tests of the watch."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable

from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.survey import log_facts
from dgxcheck.watch.dispatcher import Sink
from dgxcheck.watch.event import Event, ReportedEvent
from dgxcheck.watch.log_events import log_events
from dgxcheck.watch.log_follower import Kmsg

XID_79 = "NVRM: Xid (PCI:0000:0a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
XID_31 = "NVRM: Xid (PCI:0000:06:00): 31, pid={pid}, name=python3, Ch 00000010, intr 00000000. MMU Fault"


def record(sequence: int, message: str, seconds: float = 10.0, priority: int = 4) -> bytes:
    """As ``/dev/kmsg`` gives it; priority below 8: of the kernel."""
    return f"{priority},{sequence},{round(seconds * 1e6)},-;{message}\n".encode()


class Ring:
    """A log that gives one record a read, then says that there is none; None stands for an overrun."""

    def __init__(self, records: Iterable[bytes | None]) -> None:
        self._records = iter(records)

    def __call__(self, _size: int) -> bytes:
        try:
            found = next(self._records)
        except StopIteration:
            raise BlockingIOError from None
        if found is None:
            raise OSError(errno.EPIPE, "Broken pipe")
        return found


def kmsg(*records: bytes | None, sequence: int = -1) -> Kmsg:
    return Kmsg(Ring(records), sequence)


class Log:
    """A log with a descriptor: each packet is one record."""

    def __init__(self) -> None:
        self._writer, self._reader = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._reader.setblocking(False)
        self.fd = self._reader.fileno()

    def write(self, *records: bytes) -> None:
        for each in records:
            self._writer.send(each)

    def detach(self) -> int:
        return self._reader.detach()


class Listener(Sink):
    """Keeps what it is reported."""

    def __init__(self) -> None:
        self.reported: list[ReportedEvent] = []

    def tell(self, reported: ReportedEvent) -> None:
        self.reported.append(reported)

    def events(self, kind: str) -> list[Event]:
        return [each.event for each in self.reported if each.event.kind == kind]


def never(_bdf: str, _code: str) -> int:
    return 0


def in_log(*messages: str) -> list[Event]:
    lines = [f"{10 + number / 100:.6f};{message}" for number, message in enumerate(messages)]
    facts = log_facts(["0.000000;dgxcheck: log begins", *lines])
    assert isinstance(facts, KernelLog)
    return log_events(facts, never)
