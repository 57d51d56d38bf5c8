"""TOML files that people write."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from dgxcheck.reading import BadInput

MOST_BYTES = 1 << 20


def load(path: str) -> dict[str, Any]:
    """The document of a TOML file; BadInput in one line where there is none."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    if os.path.exists(path) and not os.path.isfile(path):
        raise BadInput(f"{path}: is no regular file")
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > MOST_BYTES:
        raise BadInput(f"{path}: larger than {MOST_BYTES >> 20} MiB")
    try:
        document: dict[str, Any] = toml.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: no TOML: {error}") from None
    return document
