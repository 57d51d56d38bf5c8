"""Keys of facts, and the lines in which a recording keeps them.

A key is ``text PATH``, ``data PATH``, ``link PATH``, ``names PATH``, ``opens PATH``,
``nvml FUNCTION SUBJECT [ARG..]``, ``name TABLE KEY``, ``kmsg N`` for line N of the kernel log,
``measure KIND A [B]`` for what was measured at a GPU, or from GPU A to GPU B, or ``stated KIND A [B]`` for what another
tool says of devices that it knows by name. A line of a recording holds all facts of one directory, of one NVML function
and subject, of one kind of measurement or statement, or the kernel log.
"""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Gap, Missing, gap_from_json, gap_to_json, question
from dgxcheck.limits import BINARY_BYTES
from dgxcheck.source.protocol import Json

GroupedFacts = dict[str, "dict[str, Json]"]
DEVICE = "/dev/kmsg"
FILE_KINDS = ("text", "data", "link", "names", "opens")


def split_path(path: str) -> tuple[str, str]:
    """Directory and last component: ``/a/b`` -> ``/a``, ``b``; ``/b`` -> ``/``, ``b``."""
    head, _, tail = path.rpartition("/")
    return head or "/", tail


def nvml_key(function: str, subject: str = "", args: tuple[int, ...] = ()) -> str:
    """``nvml FUNCTION SUBJECT ARG ..`` without the blanks of what is empty."""
    return f"nvml {question(function, subject, *args)}"


def place(key: str) -> tuple[str, str, str] | None:
    """Line, kind and entry in which a key's fact stands; None for what is no key.

    ``text /a/b`` -> (``/a``, ``text``, ``b``); ``nvml F 0000:06:00.0 3`` -> (``nvml F 0000:06:00.0``, ````, ``3``).
    """
    kind, _, rest = key.partition(" ")
    if kind in FILE_KINDS and rest.startswith("/"):
        folder, name = split_path(rest)
        return (rest, "names", "") if kind == "names" else (folder, kind, name)
    if kind == "nvml" and rest:
        words = rest.split(" ")
        end = 1
        while end < len(words) and ":" in words[end]:
            end += 1
        return " ".join(("nvml", *words[:end])), "", " ".join(words[end:])
    if kind == "name" and " " in rest:
        table, _, entry = rest.partition(" ")
        return f"name {table}", "", entry
    if kind in ("measure", "stated") and " " in rest:
        what, _, entry = rest.partition(" ")
        return f"{kind} {what}", "", entry
    if kind == "kmsg" and rest.isascii() and rest.isdecimal():
        return "kmsg", "", rest
    return None


def insert(lines: GroupedFacts, key: str, fact: Json) -> None:
    """Put a key's fact into its line."""
    if (where := place(key)) is None:
        raise ValueError(f"not a valid fact key: {key!r}")
    line, kind, entry = where
    group = lines.setdefault(line, {})
    if kind == "names":
        group["names"] = fact
        return
    if kind:
        if not isinstance(inner := group.setdefault(kind, {}), dict):
            raise ValueError(f"conflicting fact key: {key!r}")
        group = inner
    group[entry] = fact


def grouped(facts: Mapping[str, Json]) -> GroupedFacts:
    """Facts by key as lines, in the order of their keys."""
    lines: GroupedFacts = {}
    for key, fact in sorted(facts.items()):
        insert(lines, key, fact)
    return lines


def find(lines: GroupedFacts, key: str) -> Json | Missing:
    """The fact of a key as the lines hold it (a gap still as an object); ``unrecorded`` where they have none."""
    if (where := place(key)) is None:
        return Missing(Gap.GARBLED, key, "not a valid fact key")
    line, kind, entry = where
    group: Json = dict(lines.get(line, {}))
    if kind and isinstance(group, dict):
        group = group.get(kind) if kind != "names" else {"": group["names"]} if "names" in group else None
    if not isinstance(group, dict) or entry not in group:
        return Missing(Gap.UNRECORDED, key)
    return group[entry]


def flatten(lines: GroupedFacts) -> dict[str, Json]:
    """Every fact under its key."""
    flat: dict[str, Json] = {}
    for line, group in lines.items():
        if not line.startswith("/"):
            flat.update({f"{line} {entry}".rstrip(): fact for entry, fact in group.items()})
            continue
        base = "" if line == "/" else line
        for kind, facts in group.items():
            if kind == "names":
                flat[f"names {line}"] = facts
            elif isinstance(facts, dict):
                flat.update({f"{kind} {base}/{entry}": fact for entry, fact in facts.items()})
    return flat


def numbered(lines: dict[str, Json]) -> tuple[str, ...] | None:
    """The lines of the kernel log in their order; None where one has no number or is no text."""
    by_number = {int(key): text for key, text in lines.items() if key.isascii() and key.isdecimal() and len(key) < 7}
    texts = tuple(text for _, text in sorted(by_number.items()) if isinstance(text, str))
    return texts if len(texts) == len(lines) else None


def from_json(value: Json, where: str) -> Json | Missing:
    """A fact as it was written down: ``{"missing": .., "detail": ..}`` is a gap again, all else is the value."""
    return gap_from_json(value, where) if isinstance(value, dict) and "missing" in value else value


def to_json(fact: Json | Missing) -> Json:
    """A fact as it is written down."""
    return gap_to_json(fact) if isinstance(fact, Missing) else fact


def to_rows(data: bytes) -> dict[str, Json]:
    """``{"size": 256, "rows": {"000": "de10b11d..", ..}}``; rows of zeros are left out."""
    rows = ((start, data[start : start + 16]) for start in range(0, len(data), 16))
    return {"size": len(data), "rows": {f"{start:03x}": row.hex() for start, row in rows if any(row)}}


def from_rows(value: Json) -> bytes | None:
    """The bytes behind ``to_rows``; None for what is not such an object."""
    if not isinstance(value, dict):
        return None
    size, rows = value.get("size"), value.get("rows")
    if not isinstance(size, int) or isinstance(size, bool) or not isinstance(rows, dict):
        return None
    if not 0 <= size <= BINARY_BYTES:
        return None
    data = bytearray(size)
    for offset, text in rows.items():
        try:
            start, row = int(offset, 16), bytes.fromhex(text if isinstance(text, str) else "?")
        except ValueError:
            return None
        if start < 0 or start + len(row) > size:
            return None
        data[start : start + len(row)] = row
    return bytes(data)
