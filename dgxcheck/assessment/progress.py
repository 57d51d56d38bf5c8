"""What long work reports while it runs, and how signals end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record

StepProgress = Callable[[str, int], None]
"""Called with the key of the step that is measured now, and how many steps are done."""
BurnInProgress = Callable[[float, str, str], None]
"""Called with the seconds under load, what is done now, and the worst event so far (empty: none)."""


class HostNow(Record):
    """How busy the host is at this moment."""

    cpu_percent: float
    """Of all CPUs together, 0 to 100, since the last look."""
    load: float
    """Load average of the last minute."""
    memory_available: int
    """Bytes, as the next."""
    memory_total: int


class Progress:
    """Silent; override what is to be shown."""

    def planned(self, keys: Sequence[str]) -> None:
        """The keys of all steps that are to be measured, in their order; before ``measuring``."""

    def measuring(self, steps: int) -> AbstractContextManager[StepProgress]:
        """Around the measurements, which have so many steps."""
        return nullcontext(lambda key, done: None)

    def figure(self, key: str, fact: Json) -> None:
        """A step has been measured: its key and its fact, as a recording would have them."""

    def burning_in(self, seconds: float) -> AbstractContextManager[BurnInProgress]:
        """Around a burn-in of so many seconds."""
        return nullcontext(lambda elapsed, step, worst: None)

    def burn_in_event(self, members: Mapping[str, Json]) -> None:
        """A sample or an event of a burn-in, as one JSON object; times are seconds under load."""

    def host(self, now: HostNow) -> None:
        """The host while something is measured or under load, about once a second."""

    def waiting(self, seconds: float) -> AbstractContextManager[None]:
        """Around the time until the counters of the live machine are read again."""
        return nullcontext()

    def reading(self, names: Sequence[str]) -> AbstractContextManager[Callable[[str], None]]:
        """Around the reading of texts of these names; called with the name of the one that is read now."""
        return nullcontext(lambda name: None)


SILENT = Progress()


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGINT, SIGTERM or SIGHUP calls ``stop``, the next ends the command at once.

    Only the main thread may handle signals; in any other this does nothing.
    """
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def once(number: int, _frame: FrameType | None) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)
        stop()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup
            signal.signal(number, once)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
