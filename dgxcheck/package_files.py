"""Data files that ship inside the package, which may be a folder or a zip archive (``dgxcheck.pyz``).

Paths are those below ``FOLDER``; in an archive they stand for its members, and the file system knows none of them.
"""

from __future__ import annotations

import os
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
_LOADER: Any = __spec__.loader if __spec__ is not None else None
_ARCHIVE: str | None = getattr(_LOADER, "archive", None)
"""The archive as it stands on the search path, where a ``zipimport.zipimporter`` loads the package."""


def is_packed(path: str) -> bool:
    """Is it a path below the package, in an archive?"""
    return _ARCHIVE is not None and path.startswith(f"{FOLDER}/")


def read(path: str) -> bytes:
    """A whole file; OSError where there is none."""
    if not is_packed(path):
        with open(path, "rb") as file:
            return file.read()
    data: bytes = _LOADER.get_data(f"{_ARCHIVE}/dgxcheck{path.removeprefix(FOLDER)}")
    return data


def table(place: str, of: str = "") -> Iterator[dict[str, str]]:
    """The rows of a table of tab-separated values, ``xid/sxids.tsv``, by the names of its columns, which are its first
    line; lines that begin with ``#`` do not count. ``of``: those whose first cell it is. ValueError for a row that has
    not all of the columns."""
    columns, rows = _rows(place)
    return (dict(zip(columns, row, strict=True)) for row in rows.get(of, ()))


@cache
def _rows(place: str) -> tuple[list[str], dict[str, list[list[str]]]]:
    """The names of the columns and the cells of the rows: all of them below "", and by the first cell."""
    lines = read(os.path.join(FOLDER, place)).decode("utf-8").split("\n")
    head, *rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    by_first: dict[str, list[list[str]]] = {}
    for row in rows:
        by_first.setdefault(row[0], []).append(row)
    return head, by_first | {"": rows}


def names(folder: str) -> list[str]:
    """Names of the files of a folder, sorted; none where there is no such folder."""
    if not is_packed(folder):
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    inside = f"dgxcheck{folder.removeprefix(FOLDER)}/"
    below = (name.removeprefix(inside) for name in _members() if name.startswith(inside))
    return sorted(name for name in below if name and "/" not in name)


def is_file(path: str) -> bool:
    """Is there such a file?"""
    return os.path.basename(path) in names(os.path.dirname(path)) if is_packed(path) else os.path.isfile(path)


@cache
def _members() -> tuple[str, ...]:
    from zipfile import ZipFile

    with ZipFile(_ARCHIVE or "") as archive:
        return tuple(archive.namelist())
