"""Packed files: many members, cut, damaged, nested and hostile ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.missing import BadInput
from dgxcheck.readers.bundles import archives, streams
from dgxcheck.readers.bundles.streams import Budget, Stream, rows


def stream(data: bytes) -> Stream:
    return Stream(io.BytesIO(data).read, Budget())


def unpacked(data: bytes) -> tuple[bytes, bool, bool]:
    opened = stream(data)
    return b"".join(opened.chunks()), opened.cut, opened.damaged


PARTS = [b"first\n" * 1000, b"", b"second\n" * 70_000, b"last"]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_members_follow_each_other(pack: object) -> None:
    assert callable(pack)
    assert unpacked(b"".join(map(pack, PARTS))) == (b"".join(PARTS), False, False)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_cut_file_gives_what_it_has(pack: object) -> None:
    assert callable(pack)
    whole = pack(PARTS[0]) + pack(bytes(range(256)) * 4000)
    data, cut, damaged = unpacked(whole[:-20])
    assert data.startswith(PARTS[0])
    assert (cut, damaged) == (True, False)


def test_junk_between_members_is_left_out() -> None:
    data, cut, damaged = unpacked(gzip.compress(b"one\n") + b"junk \x1f\x8b\x08 junk" + gzip.compress(b"two\n"))
    assert data == b"one\ntwo\n"
    assert damaged
    assert not cut


def test_padding_is_no_damage() -> None:
    assert unpacked(gzip.compress(b"one\n") + bytes(512)) == (b"one\n", False, False)


def test_a_wrong_checksum_is_damage() -> None:
    packed = bytearray(gzip.compress(b"one\n"))
    packed[-6] ^= 1
    assert unpacked(bytes(packed) + gzip.compress(b"two\n"))[2]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_bomb_is_refused(pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(pack)
    monkeypatch.setattr(streams, "UNPACKED_BYTES", 4 << 20)
    with pytest.raises(BadInput, match="unpacks to more than 4 MiB"):
        unpacked(pack(bytes(8 << 20)))


def test_zstd_is_said_to_be_unknown() -> None:
    with pytest.raises(BadInput, match="zstd"):
        unpacked(streams.ZSTD + b"...")


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_end(before: bytes, after: bytes) -> None:
    data, _, _ = unpacked(gzip.compress(b"text\n") + before + gzip.compress(b"more\n") + after)
    assert data.startswith(b"text\n")


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_rows_are_the_text_again(pieces: list[bytes]) -> None:
    found = [*rows(iter(pieces))]
    assert b"".join(found) == b"".join(pieces)
    assert all(b"\n" not in row[:-1] for row in found)


def archive(*files: tuple[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as packed:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("a link")
        link.type, link.linkname = tarfile.SYMTYPE, "../../etc/shadow"
        packed.addfile(link)
    return out.getvalue()


def members(data: bytes) -> list[tuple[str, bytes]]:
    found = []
    for member in archives.tar_members(archives.Blocks(iter([data[n : n + 700] for n in range(0, len(data), 700)]))):
        if isinstance(member, archives.TarMember):
            found.append((member.name, member.read(1 << 20)))
    return found


FILES = (
    ("sos/proc/cmdline", b"quiet\n"),
    (f"{'long/' * 60}name", bytes(1537)),
    ("sos/empty", b""),
    ("ä/b", b"x" * 512),
)


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_members_are_those_of_tarfile(form: int) -> None:
    data = archive(*FILES, form=form)
    assert archives.is_tar(data)
    assert members(data) == [*FILES]


@given(st.integers(0, 20_000), st.binary(max_size=60))
def test_a_damaged_archive_ends(at: int, junk: bytes) -> None:
    data = bytearray(archive(*FILES))
    data[at : at + len(junk)] = junk
    assert len(members(bytes(data))) <= len(FILES) + 1


def test_a_member_is_skipped_unread() -> None:
    names = [each.name for each in archives.tar_members(archives.Blocks(iter([archive(*FILES)])))]
    assert names == [*(name for name, _ in FILES), "a link"]


def test_a_header_that_is_none_ends_the_archive() -> None:
    assert members(zlib.compress(b"x" * 4000)) == []
