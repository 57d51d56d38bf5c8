"""Packed files: many members, cut, damaged, nested and hostile ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.missing import BadInput
from dgxcheck.readers.bundles import archives, sniff, streams
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
    packed = b"".join(map(pack, PARTS))
    assert unpacked(packed) == (b"".join(PARTS), False, False)
    file = io.BytesIO(packed)
    slow = Stream(lambda size: file.read(min(size, 99)), Budget())  # a pipe gives less than was asked for
    assert b"".join(slow.chunks()) == b"".join(PARTS)


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
    assert unpacked(pack(bytes(4 << 20)))[0] == bytes(4 << 20)
    with pytest.raises(BadInput, match="unpacks to more than 4 MiB"):
        unpacked(pack(bytes((4 << 20) + 1)))
    monkeypatch.setattr(streams, "UNPACKED_LINES", 4)
    assert unpacked(pack(b"\n" * 4))[0] == b"\n" * 4
    with pytest.raises(BadInput, match="unpacks to more than 4 lines"):
        unpacked(pack(b"\n" * 5))


@pytest.mark.parametrize(("junk", "damaged"), [(bytes(600_000), False), (b"x" + bytes(599_999), True)])
def test_much_between_members_is_damage_where_it_is_not_empty(junk: bytes, damaged: bool) -> None:
    assert unpacked(gzip.compress(b"one\n") + junk + gzip.compress(b"two\n")) == (b"one\ntwo\n", False, damaged)


def test_a_long_line_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LINE_CHARACTERS", 4)
    assert [*rows(iter([b"abcd", b"\nabcde", b"fghi\n"]))] == [b"abcd\n", b"abcd", b"efghi\n"]


def test_zstd_is_said_to_be_unknown() -> None:
    with pytest.raises(BadInput, match="zstd"):
        unpacked(sniff.ZSTD + b"...")


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


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_long_name_stays_where_a_header_without_one_follows(kind: bytes) -> None:
    data = archive(FILES[1], form=tarfile.GNU_FORMAT)
    header = tarfile.TarInfo("header")
    header.type, header.size = kind, len(comment := b"13 comment=x\n")
    extra = header.tobuf() + comment.ljust(512, b"\0")
    assert members(data[:1024] + extra + data[1024:]) == [FILES[1]]


@given(st.integers(0, 20_000), st.binary(max_size=60))
def test_a_damaged_archive_ends(at: int, junk: bytes) -> None:
    data = bytearray(archive(*FILES))
    data[at : at + len(junk)] = junk
    assert len(members(bytes(data))) <= len(FILES) + 1


def test_a_member_is_skipped_unread() -> None:
    names = [each.name for each in archives.tar_members(archives.Blocks(iter([archive(*FILES)])))]
    assert names == [name for name, _ in FILES]


def test_a_header_that_is_none_ends_the_archive() -> None:
    assert members(zlib.compress(b"x" * 4000)) == []
    assert not archives.is_tar(archive(*FILES)[:500])


@pytest.mark.parametrize(("size", "found"), [
    (b"00000000003", b"one"), (b"3\0        ", b"one"), (b"\0", b""), (b"8", None), (b"+3", None), (b"0o3", None),
    (b"1_3", None), (b"3 3", None),
])  # fmt: skip
def test_the_size_in_a_header_is_octal(size: bytes, found: bytes | None) -> None:
    data = bytearray(archive(("a", b"one"), form=tarfile.USTAR_FORMAT)[:1024])
    data[124:136] = size.ljust(12, b"\0")
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    assert members(bytes(data)) == ([] if found is None else [("a", found)])


@pytest.mark.parametrize(("old", "new", "name"), [
    (b"path=", b"path=", "ä/b"), (b" path=", b" pxth=", "?/b"), (b"\n", b" ", "?/b"),
])  # fmt: skip
def test_a_pax_header_without_a_whole_path_names_no_file(old: bytes, new: bytes, name: str) -> None:
    data = archive(FILES[3])
    found = members(data[:1024].replace(old, new, 1) + data[1024:])
    assert [each for each, _ in found][:1] == [name]


SIZES = struct.pack("<QQ", 9, 3)


def _extra(kind: int, length: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, length) + data


@pytest.mark.parametrize(("extra", "whole"), [
    (_extra(1, 16, SIZES), True), (_extra(7, 1, b"x") + _extra(1, 16, SIZES), True), (_extra(1, 15, SIZES), False),
    (_extra(1, 16, SIZES[:15]), False), (_extra(7, 16, SIZES), False), (_extra(7, 0, b""), False), (b"xyz", False),
])  # fmt: skip
def test_a_size_of_64_bits_stands_in_the_extra_field(extra: bytes, whole: bool) -> None:
    header = struct.pack("<4s5H3I2H", sniff.ZIP, 20, 0, 0, 0, 0, 0, 0xFFFFFFFF, 9, 1, len(extra))
    member = next(archives.zip_members(archives.Blocks(iter([header + b"a" + extra + b"one"]))))
    assert isinstance(member, archives.ZipMember)
    assert (member.read(1 << 20) + member.read(1), member.cut) == (b"one", not whole)


@pytest.mark.parametrize(("flags", "method", "names"), [
    (0, 0, ["a", "b"]), (1, 0, ["a is encrypted", "b"]), (9, 8, ["a is encrypted"]), (1, 8, ["a is encrypted", "b"]),
    (8, 0, ["a is packed in a way that is not supported"]), (0, 9, ["a is packed in a way that is not supported", "b"]),
])  # fmt: skip
def test_what_follows_a_file_of_unknown_length_is_not_read(flags: int, method: int, names: list[str]) -> None:
    """Folders are no files."""
    data = b"".join(
        struct.pack("<4s5H3I2H", sniff.ZIP, 20, flag, how, 0, 0, 0, 3, 3, len(name), 0) + name + b"one"
        for name, flag, how in ((b"a", flags, method), (b"folder/", 0, 0), (b"b", 0, 0))
    )
    found = [f"{member.name} {member.why}" if isinstance(member, archives.Unreadable) else member.name
             for member in archives.zip_members(archives.Blocks(iter([data])))]  # fmt: skip
    assert found == names


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_deflated_file_is_read_in_pieces_as_far_as_it_goes(share: float) -> None:
    text = b"".join(b"%d\n" % (number * number) for number in range(30_000))
    packed = zlib.compressobj(wbits=-15)
    data = struct.pack("<4s5H3I2H", sniff.ZIP, 20, 8, 8, 0, 0, 0, 0, 0, 1, 0) + b"a"
    body = packed.compress(text) + packed.flush()
    data += body[: int(len(body) * share)]
    member = next(archives.zip_members(archives.Blocks(iter([data[n : n + 700] for n in range(0, len(data), 700)]))))
    assert isinstance(member, archives.ZipMember)
    found = b"".join(iter(lambda: member.read(1000), b""))
    assert (found == text, member.cut) == (share == 1, share < 1)
    assert text.startswith(found)
    assert len(found) > len(text) * share * 0.8
