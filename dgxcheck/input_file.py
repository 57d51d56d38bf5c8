"""Files that the user names: regular ones, read whole within limits of bytes and time, as TOML where they are that;
every refusal one clear line."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from math import inf
from time import process_time
from typing import Any, BinaryIO, NoReturn, TypeVar, cast

from dgxcheck.facts.missing import BadInput, did_you_mean
from dgxcheck.limits import READ_CPU_S, TOML_BYTES, TOML_DOTS
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
    """A file, or the standard input, unpacked while it is read where gzip packed it; OSError for what is damaged."""
    with open(sys.stdin.fileno() if path is None else path, "rb", closefd=path is not None) as stream:
        if stream.peek(2)[:2] == PACKED:
            import gzip
            import zlib

            with gzip.GzipFile(fileobj=stream) as unpacked:
                try:
                    yield cast(BinaryIO, unpacked)
                except zlib.error as error:
                    raise gzip.BadGzipFile(str(error)) from None
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


_MOST_SHOWN = 60
"""Characters of a key or value in a message."""


def load(path: str) -> dict[str, Any]:
    """The document of a TOML file; BadInput with one line where it is none. ``/dev/null`` is an empty one."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    raw = b"" if path == os.devnull else read_input(path, TOML_BYTES)
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.count(b".") > TOML_DOTS:  # tomllib takes memory by the square of a dotted key's length
            raise BadInput(f"{path}: line {number} has more than {TOML_DOTS} dots")
    try:
        document: dict[str, Any] = toml.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start + 1})") from None
    except RecursionError:
        raise BadInput(f"{path}: nested too deeply") from None
    except ValueError as error:  # tomllib says where; Python's own refuses numbers of thousands of digits
        raise BadInput(f"{path}: not valid TOML: {str(error).partition(';')[0]}") from None
    return document


def refuse(path: str, key: str, reason: str) -> NoReturn:
    """A value that is not allowed: BadInput names the file and the key."""
    raise BadInput(f"{path}: {key if key.isprintable() else shown(key)}: {reason}")


def check_keys(names: Iterable[str], allowed: Collection[str], path: str, where: str, what: str = "key") -> None:
    """Refuses a name that is not one of those that there are."""
    for name in names:
        if name not in allowed:
            hint = did_you_mean(name, allowed, f"valid {what}s: {', '.join(allowed)}")
            refuse(path, f"{where}.{plain(name)}" if where else plain(name), f"no such {what}; {hint}")


def plain(name: str) -> str:
    """A key on one line."""
    return name if name.isprintable() and 0 < len(name) <= _MOST_SHOWN else shown(name)


def shown(value: object) -> str:
    """A value on one line: what is long or nested is cut, a number of thousands of digits is not even printed."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number with many digits"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
