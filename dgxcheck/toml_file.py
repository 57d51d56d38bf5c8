"""TOML files that people write."""

from __future__ import annotations

import os
import stat
import sys
from importlib import import_module
from typing import Any

from dgxcheck.facts.missing import BadInput

MOST_BYTES = 1 << 20


def load(path: str) -> dict[str, Any]:
    """The document of a TOML file; BadInput with one line where it is none. ``/dev/null`` is an empty one."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    raw = _read(path)
    try:
        document: dict[str, Any] = toml.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start + 1})") from None
    except RecursionError:
        raise BadInput(f"{path}: nested too deeply") from None
    except ValueError as error:  # tomllib says where; Python's own refuses numbers of thousands of digits
        raise BadInput(f"{path}: not valid TOML: {str(error).partition(';')[0]}") from None
    return document


def _read(path: str) -> bytes:
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and path != os.devnull:  # a pipe would be waited for, /dev/zero read for ever
            raise BadInput(f"{path}: not a regular file")
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"{path}: cannot be read: invalid file name") from None
    if len(raw) > MOST_BYTES:
        raise BadInput(f"{path}: larger than {MOST_BYTES >> 20} MiB")
    return raw
