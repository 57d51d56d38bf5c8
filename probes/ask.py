"""Asks a Source for one file and turns its text into a value: a number, a flag, a word, a list of CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nature import rows_of
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import ranges
from dgxcheck.limits import ATTRIBUTE_BYTES
from dgxcheck.source.protocol import Source

T = TypeVar("T")
R = TypeVar("R")


def ask(source: Source, path: str, parse: Callable[[str, str], T | Missing]) -> T | Missing:
    """What ``parse(text, path)`` makes of the file, or why there is no text."""
    answer = source.text(path)
    return answer if isinstance(answer, Missing) else parse(answer, path)


def files(source: Source, kind: type[Record], folder: str, **parsers: Callable[[str, str], Any]) -> dict[str, Any]:
    """Fields of a record that are files of a folder; what a file is called, if not as its field, stands in the row."""
    names = _file_names(kind)
    return {field: ask(source, f"{folder}/{names[field]}", parse) for field, parse in parsers.items()}


@cache
def _file_names(kind: type[Record]) -> dict[str, str]:
    return {field: str(row.more.get("file", field)) for field, row in rows_of(kind).items()}


def mapped(listed: Iterable[T] | Missing, read: Callable[[T], R]) -> tuple[R, ...] | Missing:
    """What ``read`` makes of each that is listed, or why there is no list."""
    return listed if isinstance(listed, Missing) else tuple(map(read, listed))


def numbered(source: Source, folder: str, prefix: str) -> tuple[int, ...] | Missing:
    """The numbers of ``node0``, ``node1`` .. in a directory, ascending; other names beside them are left out."""
    if isinstance(names := source.names(folder), Missing):
        return names
    numbers = (name[len(prefix) :] for name in names if name.startswith(prefix))
    return tuple(sorted(int(number) for number in numbers if is_decimal(number)))


def one_of(values: Mapping[str, T]) -> Callable[[str, str], T | Missing]:
    """A parser of a file that holds one of these texts."""

    def parse(text: str, where: str) -> T | Missing:
        return garbled(text, where) if (value := values.get(text.strip())) is None else value

    return parse


HEX_DIGITS = "0123456789abcdefABCDEF"
_U64_DIGITS = 20
_SHOWN = 80


def garbled(text: str, where: str) -> Missing:
    """An answer that makes no sense, with its beginning as the detail; a file that holds nothing tells nothing.

    Where the kernel refuses a read, a copy of the tree has an empty file.
    """
    shown = text.strip()[:_SHOWN]
    return Missing(Gap.GARBLED, where, shown) if shown else Missing(Gap.ABSENT, where, "empty")


def line(text: str, where: str) -> str | Missing:
    """The text without the blanks around it; a file that holds nothing tells nothing."""
    if len(text) > ATTRIBUTE_BYTES:
        return garbled(text[: 2 * _SHOWN], where)
    return text.strip(" \t\r\n\0") or Missing(Gap.ABSENT, where, "empty")


def decimal(text: str, where: str) -> int | Missing:
    """An unsigned decimal number of at most 64 bits."""
    body = text.strip()
    return int(body) if is_decimal(body) else garbled(text, where)


def signed(text: str, where: str) -> int | Missing:
    """A decimal number that may be negative, as ``numa_node``."""
    body = text.strip()
    return int(body) if is_decimal(body.removeprefix("-")) else garbled(text, where)


def hexadecimal(text: str, where: str) -> int | Missing:
    """``0x10de``: the kernel prints every id with its prefix."""
    body = text.strip()
    if not body.startswith("0x") or not 3 <= len(body) <= 18 or body[2:].strip(HEX_DIGITS):
        return garbled(text, where)
    return int(body, 16)


flag = one_of({"0": False, "1": True})


def cpulist(text: str, where: str) -> str | Missing:
    """``0-19,40-59``; empty is a value, a NUMA node of memory alone has no CPUs."""
    return text.strip() if ranges(text) is not None else garbled(text, where)


def is_decimal(body: str) -> bool:
    """ASCII digits alone, not more than 64 bits need: ``int()`` takes underscores and the digits of other scripts."""
    return body.isascii() and body.isdigit() and len(body) <= _U64_DIGITS


def natural(name: str) -> tuple[str, int, str]:
    """Sort key that puts ``mlx5_10`` after ``mlx5_9``."""
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    return stem, int(digits) if is_decimal(digits) else -1, name
