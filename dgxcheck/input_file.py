"""Files that the user names: regular ones, read whole within limits of bytes and time, every refusal one clear line."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from time import process_time
from typing import BinaryIO, TypeVar, cast

from dgxcheck.facts.missing import BadInput
from dgxcheck.limits import READ_CPU_S
from dgxcheck.package_files import is_packed, read
from dgxcheck.rootfs import read_bytes

T = TypeVar("T")
PACKED = b"\x1f\x8b"
"""How what gzip packed begins."""
_EXCEEDED = f"not read to its end: {READ_CPU_S} s of CPU time are spent"
_NEXT_TO_NONE_S = 0.001
"""Asking for the CPU time takes a microsecond, as long as many a line."""


class _Spent(Exception):
    """No OSError, which readers of files take for an answer."""


class CpuTime:
    """The CPU time of one input: when it is spent reading ends, what was read is judged, and ``exceeded`` says so."""

    def __init__(self, clock: Callable[[], float] = process_time) -> None:
        self._clock = clock
        self._until = clock() + READ_CPU_S
        self.exceeded = ""

    def within(self, items: Iterable[T]) -> Iterator[T]:
        """The items as long as there is time; of many that took next to none the clock is asked at each 16th alone."""
        last, stride = -inf, 1
        for number, item in enumerate(items):
            if number % stride == 0:
                now = self._clock()
                if now > self._until:
                    self.exceeded = _EXCEEDED
                    return
                last, stride = now, 16 if now - last < _NEXT_TO_NONE_S else 1
            yield item

    def of(self, read: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        """What a reader finds; nothing where one step of it, such as a match, takes as long as the whole input may."""
        try:
            with broken_off(READ_CPU_S):
                return tuple(read())
        except _Spent:
            self.exceeded = _EXCEEDED
            return ()

    def whole(self, name: str, read: Callable[[], T]) -> T:
        """What is read at once, or BadInput where that takes as long."""
        found = self.of(lambda: (read(),))
        if not found:
            raise BadInput(f"{name}: {_EXCEEDED}")
        return found[0]

    def more(self, seconds: float) -> None:
        """What was read is worth so much more time."""
        self._until += seconds


@contextmanager
def broken_off(seconds: float) -> Iterator[None]:
    """What takes more CPU time ends with an exception, in the middle of a match too; in another thread, which no signal
    reaches, it goes on."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _raise)
    outer, _ = signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, outer)
        signal.signal(signal.SIGVTALRM, before)


def _raise(*_: object) -> None:
    raise _Spent


def read_stdin(most: int) -> bytes:
    """All of the standard input, of at most ``most`` bytes."""
    raw = sys.stdin.buffer.read(most + 1)
    if len(raw) > most:
        raise too_large("stdin", most)
    return raw


def read_input(path: str, most: int, instead: str = "") -> bytes:
    """The bytes of a regular file of at most ``most`` bytes; BadInput otherwise, with what to do ``instead``."""
    hint = f"; {instead}" if instead else ""
    try:
        if is_packed(path):
            return read(path)
        status = os.stat(path)  # before it is opened: a FIFO would be waited for, a tape drive would rewind
        if not stat.S_ISREG(status.st_mode):
            kind = "is a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise BadInput(f"{path}: {kind}{hint}")
        if status.st_size > most:
            raise too_large(path, most)
        return read_bytes(path, most)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise too_large(path, most) from None
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"{path}: cannot be read: invalid file name") from None


@contextmanager
def opened(path: str | None) -> Iterator[BinaryIO]:
    """A file, or the standard input, unpacked while it is read where it is packed by gzip."""
    with open(sys.stdin.fileno() if path is None else path, "rb", closefd=path is not None) as stream:
        if stream.peek(2)[:2] == PACKED:
            import gzip

            with gzip.GzipFile(fileobj=stream) as unpacked:
                yield cast(BinaryIO, unpacked)
        else:
            yield stream


def unzipped(raw: bytes, path: str, most: int) -> bytes:
    """What gzip packed, at most ``most`` bytes."""
    import zlib

    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(raw, most + 1)
    except zlib.error as error:
        raise BadInput(f"{path}: not a valid gzip file: {error}") from None
    if len(text) > most or stream.unconsumed_tail:
        raise BadInput(f"{path}: decompresses to more than {most >> 20} MiB")
    if not stream.eof:
        raise BadInput(f"{path}: gzip data is truncated; copy the file again")
    return text


def too_large(name: str, most: int) -> BadInput:
    """What to raise for a text of more than ``most`` bytes."""
    size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
    return BadInput(f"{name}: larger than {size}")
