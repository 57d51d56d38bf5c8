"""The members of a tar archive, one after the other, from a stream that is read once.

tarfile of the standard library takes headers of any length into memory; this reader bounds all it holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.facts.limits import ARCHIVE_MEMBERS
from dgxcheck.facts.record import Record

_BLOCK = 512
_REGULAR = (b"0", b"\0", b"7")
_LONG_NAME, _PAX = b"L", (b"x", b"g")
_HEADER_BYTES = 64 << 10
"""Of a long name or an extended header."""


class Blocks:
    """Reads as many bytes as are asked for from chunks of any size."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._held = b""

    def read(self, size: int) -> bytes:
        """Fewer bytes only at the end."""
        parts = [self._held]
        length = len(self._held)
        while length < size and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            length += len(chunk)
        held = b"".join(parts)
        self._held = held[size:]
        return held[:size]

    def give_back(self, data: bytes) -> None:
        """Bytes that were read, to be read again."""
        self._held = data + self._held


class Member:
    """A regular file of an archive; ``read`` gives its bytes as long as the next one is not asked for."""

    def __init__(self, name: str, size: int, blocks: Blocks) -> None:
        self.name = name
        self.size = size
        self._left = size
        self._blocks = blocks
        self.cut = False

    def read(self, size: int) -> bytes:
        data = self._blocks.read(min(size, self._left))
        self._left -= len(data)
        if not data and self._left:
            self.cut, self._left = True, 0
        return data

    def skip(self) -> None:
        """Go past what was not read."""
        while self.read(1 << 20):
            pass


class Link(Record):
    """A symbolic link of an archive, its target as it stands."""

    name: str
    target: str


def is_tar(head: bytes) -> bool:
    """Do these bytes begin a tar archive (POSIX or GNU)?"""
    return head[257:262] == b"ustar" and _checksum(head[:_BLOCK])


def members(blocks: Blocks) -> Iterator[Member | Link]:
    """Regular files and symbolic links; the archive ends where a header is not one."""
    name = ""
    for _ in range(ARCHIVE_MEMBERS):
        header = blocks.read(_BLOCK)
        size = _octal(header[124:136])
        if len(header) < _BLOCK or not _checksum(header) or size is None:
            return
        kind = header[156:157]
        if kind == _LONG_NAME or kind in _PAX:
            extra = Member("", size, blocks)
            data = extra.read(_HEADER_BYTES)
            extra.skip()
            found = _text(data) if kind == _LONG_NAME else _path(data)
            name = found or name
        else:
            prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
            own = name or "/".join(filter(None, (prefix, _text(header[:100]))))
            name = ""
            if kind == b"2":
                yield Link(name=own, target=_text(header[157:257]))
                size = 0
            member = Member(own, size if kind in _REGULAR else 0, blocks)
            if kind in _REGULAR:
                yield member
            member.skip()
            size = size if kind in _REGULAR else 0
        blocks.read(-size % _BLOCK)


def _path(data: bytes) -> str:
    """That of a pax header: ``30 path=..\\n``."""
    at = data.find(b" path=")
    end = data.find(b"\n", at)
    return data[at + 6 : end].decode("utf-8", "replace") if at >= 0 and end >= 0 else ""


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")


def _octal(field: bytes) -> int | None:
    digits = field.strip(b" \0")
    if not digits:
        return 0
    return int(digits, 8) if digits.isdigit() and not set(digits) & set(b"89") else None


def _checksum(header: bytes) -> bool:
    """The sum of all bytes, those of the sum itself taken as blanks."""
    return len(header) == _BLOCK and _octal(header[148:156]) == sum(header) - sum(header[148:156]) + 8 * 0x20
