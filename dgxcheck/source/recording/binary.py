"""Binary facts (config space) as sparse hexadecimal rows of 16 bytes."""

from __future__ import annotations

from dgxcheck.facts.limits import BINARY_BYTES
from dgxcheck.source.protocol import Json


def to_rows(data: bytes) -> dict[str, Json]:
    """``{"size": 256, "rows": {"000": "de10b11d..", ..}}``; rows of zeros are left out."""
    rows: dict[str, Json] = {}
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        if any(row):
            rows[f"{start:03x}"] = row.hex()
    return {"size": len(data), "rows": rows}


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
