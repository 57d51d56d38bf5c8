"""Files as they are packed, unpacked while they are read: gzip of many members, xz, bzip2, or plain.

Nothing is written to disk. A file that is cut or damaged gives what can be unpacked; the ``Stream`` says so.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from dgxcheck.facts.missing import BadInput
from dgxcheck.limits import LINE_CHARACTERS, UNPACKED_BYTES, UNPACKED_LINES
from dgxcheck.readers.bundles.sniff import BZIP2, GZIP, XZ, ZSTD

PACKED = (GZIP, XZ, BZIP2)
_CHUNK = 64 << 10
_PIECE = 1 << 20
"""Of what a member unpacks to, held at once."""
_XZ_MEMORY = 128 << 20
_GZIP_WINDOW = 31
"""zlib's window bits for a gzip member, whose checksum is then verified."""


class Unsupported(BadInput):
    """A file that is packed in a way that cannot be unpacked."""


class Budget:
    """How much a file and all that is packed in it may still unpack to."""

    def __init__(self) -> None:
        self._left = UNPACKED_BYTES
        self._lines = UNPACKED_LINES

    def take(self, part: bytes) -> None:
        """BadInput where it is used up."""
        self._left -= len(part)
        self._lines -= part.count(b"\n")
        if self._left < 0:
            raise BadInput(f"unpacks to more than {UNPACKED_BYTES >> 20} MiB")
        if self._lines < 0:
            raise BadInput(f"unpacks to more than {UNPACKED_LINES} lines")


class Stream:
    """The bytes of one file, unpacked."""

    def __init__(self, read: Callable[[int], bytes], budget: Budget) -> None:
        self._read = read
        self._budget = budget
        self._data = b""
        """Packed bytes that are not unpacked yet."""
        self.cut = False
        """The last member is not complete."""
        self.damaged = False
        """Something between or within the members is not what it claims to be; it was left out."""

    def chunks(self) -> Iterator[bytes]:
        """All that can be unpacked, in pieces of moderate size. BadInput for a format that is not known."""
        self._data = self._read(_CHUNK)
        if self._data.startswith(ZSTD):
            raise Unsupported("zstd is not supported; unpack the file first")
        magic = next((magic for magic in PACKED if self._data.startswith(magic)), b"")
        for part in self._members(magic) if magic else self._plain():
            self._budget.take(part)
            yield part

    def _plain(self) -> Iterator[bytes]:
        while self._data:
            yield self._data
            self._data = self._read(_CHUNK)

    def _members(self, magic: bytes) -> Iterator[bytes]:
        while self._at_member(magic):
            try:
                yield from self._member(magic)
            except (zlib.error, lzma.LZMAError, OSError):
                self.damaged = True
                self._data = self._data[1:]

    def _member(self, magic: bytes) -> Iterator[bytes]:
        """zlib hands back what it has not used yet; the others keep it, and say when they need more."""
        member: Any = (
            zlib.decompressobj(wbits=_GZIP_WINDOW) if magic == GZIP else
            bz2.BZ2Decompressor() if magic == BZIP2 else lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)
        )  # fmt: skip
        data = self._data
        while not member.eof:
            if not data and getattr(member, "needs_input", True):
                data = self._data = self._read(_CHUNK)
                if not data:
                    self.cut = True
                    return
            part = member.decompress(data, _PIECE)
            data = getattr(member, "unconsumed_tail", b"")
            yield part
        self._data = member.unused_data

    def _at_member(self, magic: bytes) -> bool:
        """Go on to where the next member begins; False where there is none any more."""
        while (at := self._data.find(magic)) < 0:
            more = self._read(_CHUNK)
            self._pass(max(len(self._data) - len(magic) + 1, 0) if more else len(self._data))
            if not more:
                return False
            self._data += more
        self._pass(at)
        return True

    def _pass(self, count: int) -> None:
        self.damaged = self.damaged or self._data[:count].strip(b"\0") != b""
        self._data = self._data[count:]


def rows(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces of a text by lines, each with its end; a line that is very long comes in pieces."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (row + b"\n" for row in whole)
        while len(rest) > LINE_CHARACTERS:
            yield rest[:LINE_CHARACTERS]
            rest = rest[LINE_CHARACTERS:]
    if rest:
        yield rest
