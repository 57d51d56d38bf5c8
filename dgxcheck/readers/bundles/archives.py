"""Archives read as streams: tar and zip.

The members of a tar archive, one after the other, from a stream that is read once.

tarfile of the standard library takes headers of any length into memory; this reader bounds all it holds.

The members of a zip archive, one after the other, from a stream that is read once: by their own headers.

zipfile of the standard library begins with the list at the end, which an archive that is cut no longer has.
Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3 and 4.4.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator

from dgxcheck.facts.record import Record
from dgxcheck.limits import ARCHIVE_MEMBERS
from dgxcheck.readers.bundles.sniff import ZIP

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


class TarMember:
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


def is_tar(head: bytes) -> bool:
    """Do these bytes begin a tar archive (POSIX or GNU)?"""
    return head[257:262] == b"ustar" and _checksum(head[:_BLOCK])


def tar_members(blocks: Blocks) -> Iterator[TarMember]:
    """Regular files; the archive ends where a header is not one."""
    name = ""
    for _ in range(ARCHIVE_MEMBERS):
        header = blocks.read(_BLOCK)
        size = _octal(header[124:136])
        if not _checksum(header) or size is None:
            return
        kind = header[156:157]
        if kind == _LONG_NAME or kind in _PAX:
            extra = TarMember("", size, blocks)
            data = extra.read(_HEADER_BYTES)
            extra.skip()
            name = (_text(data) if kind == _LONG_NAME else _path(data)) or name
        else:
            prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
            own = name or "/".join(filter(None, (prefix, _text(header[:100]))))
            name = ""
            size = size if kind in _REGULAR else 0
            member = TarMember(own, size, blocks)
            if kind in _REGULAR:
                yield member
            member.skip()
        blocks.read(-size % _BLOCK)


def _path(data: bytes) -> str:
    """That of a pax header: ``30 path=..\\n``."""
    path, end, _ = data.partition(b" path=")[2].partition(b"\n")
    return path.decode("utf-8", "replace") if end else ""


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")


def _octal(field: bytes) -> int | None:
    digits = field.strip(b" \0")
    return None if digits.strip(b"01234567") else int(digits or b"0", 8)


def _checksum(header: bytes) -> bool:
    """The sum of all bytes, those of the sum itself taken as blanks."""
    return len(header) == _BLOCK and _octal(header[148:156]) == sum(header) - sum(header[148:156]) + 8 * 0x20


_NEXT = rb"PK(?:\x03\x04|\x01\x02)"
"""What follows a file: the next one, or the list of all."""
_HEADER = struct.Struct("<4xHHHHHIIIHH")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _SIZE_FOLLOWS, _UTF8 = 0x1, 0x8, 0x800
_RAW_DEFLATE = -15
_LONGEST_DESCRIPTOR = 24
_CHUNK = 64 << 10
_ZIP64, _IN_ZIP64 = 1, 0xFFFFFFFF


class ZipMember(TarMember):
    """A file of an archive, stored as it is or deflated."""

    def __init__(self, name: str, blocks: Blocks, size: int | None) -> None:
        """``size``: of a stored file; a deflated one has an end of its own."""
        super().__init__(name, size or 0, blocks)
        self._inflate = None if size is not None else zlib.decompressobj(_RAW_DEFLATE)
        self._packed = b""

    def read(self, size: int) -> bytes:
        if self._inflate is None:
            return super().read(size)
        data = b""
        while not data and self._inflate is not None:
            packed = self._packed or self._blocks.read(_CHUNK)
            try:
                data = self._inflate.decompress(packed, size)
            except zlib.error:
                packed, self._packed = b"", b""
            else:
                self._packed = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self._blocks.give_back(self._inflate.unused_data)
                self._inflate = None
            elif not (data or packed):
                self.cut, self._inflate = True, None
        return data


class Unreadable(Record, kw_only=False):
    """A file whose bytes cannot be read, and why."""

    name: str
    why: str


def zip_members(blocks: Blocks) -> Iterator[ZipMember | Unreadable]:
    """The files; the archive ends where a header is not one."""
    for _ in range(ARCHIVE_MEMBERS):
        header = blocks.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(ZIP):
            return
        _, flags, method, _, _, _, packed, _, of_name, of_extra = _HEADER.unpack(header)
        name = blocks.read(of_name).decode("utf-8" if flags & _UTF8 else "cp437", "replace").replace("\\", "/")
        size = _size(packed, blocks.read(of_extra))
        size_first = not flags & _SIZE_FOLLOWS
        if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED) or (method == _STORED and not size_first):
            yield Unreadable(name, "is encrypted" if flags & _ENCRYPTED else "is packed in a way that is not supported")
            if not size_first:
                return  # nothing says where it ends
            ZipMember(name, blocks, size).skip()
            continue
        member = ZipMember(name, blocks, size if method == _STORED else None)
        if not name.endswith("/"):
            yield member
        member.skip()
        if member.cut:
            return
        if not size_first:
            _past_descriptor(blocks)


def _size(packed: int, extra: bytes) -> int:
    """Bytes of the packed file; of one beyond 4 GiB they stand in an extra field, after the size unpacked."""
    while packed == _IN_ZIP64 and extra[3:]:
        kind, length = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + length], extra[4 + length :]
        if kind == _ZIP64 and len(field) >= 16:
            return int.from_bytes(field[8:16], "little")
    return packed


def _past_descriptor(blocks: Blocks) -> None:
    """Checksum and sizes after a file whose header does not have them: 12 to 24 bytes, with or without a signature."""
    ahead = blocks.read(_LONGEST_DESCRIPTOR + len(ZIP))[12:]
    following = re.search(_NEXT, ahead)
    blocks.give_back(ahead[following.start() :] if following else b"")
