"""TOML files that people write."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable
from importlib import import_module
from typing import Any, NoReturn

from dgxcheck.facts.missing import BadInput, did_you_mean
from dgxcheck.input_file import read_input
from dgxcheck.limits import TOML_BYTES, TOML_DOTS

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
