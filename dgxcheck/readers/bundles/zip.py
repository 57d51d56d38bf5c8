"""The members of a zip archive, one after the other, from a stream that is read once: by their own headers.

zipfile of the standard library begins with the list at the end, which an archive that is cut no longer has.
Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3 and 4.4.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from dgxcheck.facts.limits import ARCHIVE_MEMBERS
from dgxcheck.readers.bundles.tar import Blocks

MAGIC = b"PK\x03\x04"
_LISTED = b"PK\x01\x02"
_HEADER = struct.Struct("<4xHHHHHIIIHH")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _SIZE_FOLLOWS, _UTF8 = 0x1, 0x8, 0x800
_RAW_DEFLATE = -15
_LONGEST_DESCRIPTOR = 24
_CHUNK = 64 << 10
_ZIP64, _IN_ZIP64 = 1, 0xFFFFFFFF


class Member:
    """A file of an archive; ``read`` gives its bytes as long as the next one is not asked for."""

    def __init__(self, name: str, blocks: Blocks, size: int | None) -> None:
        self.name = name
        self.cut = False
        self._blocks = blocks
        self._left = size
        """Of a file that is stored as it is; None for a deflated one, which has an end of its own."""
        self._inflate = zlib.decompressobj(_RAW_DEFLATE) if size is None else None
        self._packed = b""

    def read(self, size: int) -> bytes:
        if self._left is not None:
            data = self._blocks.read(min(size, self._left))
            self._left -= len(data)
            if not data and self._left:
                self.cut, self._left = True, 0
            return data
        return self._inflated(size)

    def _inflated(self, size: int) -> bytes:
        while self._inflate is not None:
            packed = self._packed or self._blocks.read(_CHUNK)
            try:
                data = self._inflate.decompress(packed, size)
            except zlib.error:
                self._end(cut=True)
                return b""
            self._packed = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self._blocks.give_back(self._inflate.unused_data)
                self._end(cut=False)
                return data
            if not data and not packed:
                self._end(cut=True)
            if data:
                return data
        return b""

    def _end(self, cut: bool) -> None:
        self.cut, self._inflate, self._packed = cut, None, b""

    def skip(self) -> None:
        """Go past what was not read."""
        while self.read(1 << 20):
            pass


class Unreadable:
    """A file whose bytes cannot be read, and why."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why


def members(blocks: Blocks) -> Iterator[Member | Unreadable]:
    """The files; the archive ends where a header is not one."""
    for _ in range(ARCHIVE_MEMBERS):
        header = blocks.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(MAGIC):
            return
        _, flags, method, _, _, _, packed, _, of_name, of_extra = _HEADER.unpack(header)
        name = blocks.read(of_name).decode("utf-8" if flags & _UTF8 else "cp437", "replace").replace("\\", "/")
        size = _size(packed, blocks.read(of_extra))
        known = not flags & _SIZE_FOLLOWS
        if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED) or (method == _STORED and not known):
            yield Unreadable(name, "is encrypted" if flags & _ENCRYPTED else "is packed in a way that is not supported")
            if not known:
                return  # nothing says where it ends
            Member(name, blocks, size).skip()
            continue
        member = Member(name, blocks, size if method == _STORED else None)
        if not name.endswith("/"):
            yield member
        member.skip()
        if member.cut:
            return
        if not known:
            _past_descriptor(blocks)


def _size(packed: int, extra: bytes) -> int:
    """Bytes of the packed file; of one beyond 4 GiB they stand in an extra field, after the size unpacked."""
    while packed == _IN_ZIP64 and len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == _ZIP64 and length >= 16 and len(extra) >= 20:
            return int(struct.unpack_from("<Q", extra, 12)[0])
        extra = extra[4 + length :]
    return packed


def _past_descriptor(blocks: Blocks) -> None:
    """Checksum and sizes after a file whose header does not have them: 12 to 24 bytes, with or without a signature."""
    ahead = blocks.read(_LONGEST_DESCRIPTOR + len(MAGIC))
    starts = [at for magic in (MAGIC, _LISTED) if (at := ahead.find(magic, 12)) >= 0]
    blocks.give_back(ahead[min(starts) :] if starts else b"")
