"""Files of a directory or archive, whatever they are called and however they were saved: as if pasted in one text."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seam import run
from test_import_bundles import outputs, tarred

from dgxcheck.assessment.importing.bundle import opened
from dgxcheck.assessment.importing.recording import facts_of, read
from dgxcheck.assessment.importing.texts import text_of
from dgxcheck.facts.missing import BadInput
from dgxcheck.input_file import CpuTime
from dgxcheck.readers.bundles import contents
from dgxcheck.readers.bundles import outputs as bundle_outputs
from dgxcheck.readers.bundles.archives import Blocks, ZipMember, zip_members
from dgxcheck.readers.bundles.sniff import holds_outputs

XID = "[  900.100000] NVRM: Xid (PCI:0000:0a:00): 48, pid=1, An uncorrectable double bit error (DBE) has been detected"
TEXTS = {
    "mail.txt": f"Hello,\n\nthis is it:\n> [  899.000000] nvidia 0000:0a:00.0: starting\n> {XID}\n\nCan you help?\n",
    "smi-l": "root@box:~# nvidia-smi -L\nGPU 0: V100-SXM2-16GB (UUID: GPU-11111111-2222-3333-4444-555555555555)\n",
    "wiring.md": "```\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-19\nGPU1\tNV2\t X \t0-19\n```\n",
    "fm": "[Nov 23 2026 10:00:00] [ERROR] [tid 1] detected NVSwitch fatal error 20034 on NVSwitch pci bus id"
    " 00000000:c5:00.0 physical id 8 port 3\n",
    "a b (1).log": "CA 'mlx5_0'\n\tCA type: MT4123\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n"
    "\t\tRate: 10\n\t\tLink layer: InfiniBand\n",
    "nccl": "box:1:2 [0] transport/net_ib.cc:95 NCCL WARN NET/IB : mlx5_0:1 Got completion from peer 10.0.0.2 with"
    " status=12 opcode=0 len=0 vendor err 129 (Recv)\n",
}
"""In the public formats of their tools."""


def pasted(texts: dict[str, str]) -> dict[str, Any]:
    lines = tuple(line for name in sorted(texts) for line in texts[name].split("\n"))
    return facts_of(read([text_of("paste.txt", lines)]).combined, None)


def put(folder: Path, files: dict[str, bytes]) -> str:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(folder)


def test_the_facts_are_those_of_the_same_texts_pasted_in_one(tmp_path: Path) -> None:
    found = opened(put(tmp_path, {name: text.encode() for name, text in TEXTS.items()}))
    assert found.facts == pasted(TEXTS)
    assert {output.title for output in found.outputs} == TEXTS.keys()


ENCODED: dict[str, Callable[[str], bytes]] = {
    "UTF-16 with its mark": lambda text: text.encode("utf-16"),
    "UTF-16 without": lambda text: text.encode("utf-16-le"),
    "UTF-16 of the other order": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "PowerShell": lambda text: text.replace("\n", "\r\n").encode("utf-16"),
    "packed": lambda text: gzip.compress(text.encode()),
}


_BEGINS = "Start of NVIDIA bug report log file.  Please include this file\n"


@pytest.mark.parametrize(("head", "is_bundle"), [
    (_BEGINS.encode(), True), (_BEGINS.encode("utf-16"), True), (gzip.compress(_BEGINS.encode(), mtime=0), True),
    (f"quiet\n{'_' * 44}\n\n*** /proc/cmdline\n".encode(), True), (b"#==[ Command ]====#\n# /usr/bin/dmesg\n", True),
    (b"GPU 0: V100\n", False), (gzip.compress(b"GPU 0: V100\n", mtime=0), False),
    ("GPU 0: V100\n".encode("utf-16"), False),
])  # fmt: skip
def test_the_first_bytes_of_outputs(head: bytes, is_bundle: bool) -> None:
    assert holds_outputs(head) == is_bundle


@pytest.mark.parametrize("how", ENCODED)
def test_however_it_was_saved(how: str, tmp_path: Path) -> None:
    found = opened(put(tmp_path, {name: ENCODED[how](text) for name, text in TEXTS.items()}))
    assert found.facts == pasted(TEXTS)


class Pipe(io.BytesIO):
    """A writer that cannot go back: sizes stand behind each file then."""

    def seek(self, offset: int, whence: int = 0) -> int:
        raise io.UnsupportedOperation


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, stream: bool = False) -> bytes:
    out = Pipe() if stream else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize(("method", "stream"), [(zipfile.ZIP_DEFLATED, False), (zipfile.ZIP_DEFLATED, True),
                                                (zipfile.ZIP_STORED, False)])  # fmt: skip
def test_zip(method: int, stream: bool, tmp_path: Path) -> None:
    data = zipped({f"collected/{name}": text.encode() for name, text in TEXTS.items()}, method, stream)
    found = opened(put(tmp_path, {"x.zip": data}) + "/x.zip")
    assert found.facts == pasted(TEXTS)
    assert found.bundle.notes == ()


def test_a_zip_of_files_with_64_bits_of_size(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, text in TEXTS.items():
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(text.encode())
    found = opened(put(tmp_path, {"x.zip": out.getvalue()}) + "/x.zip")
    assert (found.facts, found.bundle.notes) == (pasted(TEXTS), ())


@pytest.mark.parametrize(("at", "value", "why"), [
    (6, 1, "is encrypted"), (8, 97, "is packed in a way that is not supported"),
])  # fmt: skip
def test_a_member_of_a_zip_that_cannot_be_read(at: int, value: int, why: str, tmp_path: Path) -> None:
    """The others are."""
    files = {"first.txt": b"hello\n", **{name: text.encode() for name, text in TEXTS.items()}}
    data = bytearray(zipped(files))
    data[at] = value
    found = opened(put(tmp_path, {"x.zip": bytes(data)}) + "/x.zip")
    assert (found.facts, found.bundle.notes) == (pasted(TEXTS), (f"first.txt {why}",))


def test_a_report_that_is_packed_twice(tmp_path: Path) -> None:
    files = {name: text.encode() for name, text in TEXTS.items()}
    twice = gzip.compress(gzip.compress(tarred("x", files)))
    assert opened(put(tmp_path, {"x.tar.gz.gz": twice}) + "/x.tar.gz.gz").facts == pasted(TEXTS)


def test_names_in_a_zip_have_the_code_page_of_the_format_or_utf_8() -> None:
    data = zipped({"é.txt": b"1"})
    flag = data.index(b"PK\x01\x02")  # Python marks UTF-8, bit 11, in both headers
    (of_utf_8,) = zip_members(Blocks(iter([data[:flag]])))
    plain = bytearray(data[:flag].replace("é".encode(), b"\x82\x82"))
    plain[7] &= ~0x08
    (of_dos,) = zip_members(Blocks(iter([bytes(plain)])))
    assert (of_utf_8.name, of_dos.name) == ("é.txt", "éé.txt")


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_cut_zip_gives_what_is_whole(share: float, tmp_path: Path) -> None:
    texts = {f"{number}.txt": f"{TEXTS['smi-l']}{'x' * 2000}\n" for number in range(4)}
    data = zipped({name: text.encode() for name, text in texts.items()}, zipfile.ZIP_STORED)
    found = opened(put(tmp_path, {"x.zip": data[: int(len(data) * share)]}) + "/x.zip")
    assert found.facts == opened(put(tmp_path / "one", {"0.txt": TEXTS["smi-l"].encode()})).facts
    assert share > 0.8 or any("is cut off" in note for note in found.bundle.notes)


def test_an_archive_among_the_files(tmp_path: Path) -> None:
    """Of a name in two archives both are read."""
    files = {name: text.encode() for name, text in TEXTS.items()}
    first, second = dict([*files.items()][:3]), dict([*files.items()][3:])
    spec = put(tmp_path, {"a.zip": zipped(first), "b.tgz": gzip.compress(tarred("b", second)), "notes": b"hello\n"})
    assert opened(spec).facts == pasted(TEXTS)


def test_a_link_in_an_archive_is_left_out(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        link = tarfile.TarInfo("x/passwd")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        for name, text in TEXTS.items():
            held = tarfile.TarInfo(f"x/{name}")
            held.size = len(text.encode())
            archive.addfile(held, io.BytesIO(text.encode()))
    found = opened(put(tmp_path, {"outputs.tar": packed.getvalue()}) + "/outputs.tar")
    assert (found.facts, found.bundle.notes) == (pasted(TEXTS), ())


def test_what_cannot_be_unpacked_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the rest is read."""
    spec = put(tmp_path, {"fm": TEXTS["fm"].encode(), "dmesg.zst": b"\x28\xb5\x2f\xfd" + bytes(100)})
    done = run(capsys, "health", "--from", spec)
    assert "dmesg.zst: zstd is not supported" in done.out
    assert "20034" in done.out


def test_files_that_are_nothing_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"fm": TEXTS["fm"].encode() + b"and so on\n", "notes.txt": b"hello\n", "photo.jpg": b"\xff\xd8\0\0" * 99}
    done = run(capsys, "import", "--show", put(tmp_path, files))
    assert "left, no output of a supported tool: notes.txt, photo.jpg" in done.out.splitlines()
    assert "not recognised in fm: line 2" in done.out.splitlines()
    done = run(capsys, "import", put(tmp_path, files), "-o", str(tmp_path / "out.json"))
    assert done.code == 3
    assert "2 files not read: notes.txt, photo.jpg" in done.err
    assert "fm: 1 line not read" in done.err


def test_listings_of_lspci_in_several_files_are_put_together(tmp_path: Path) -> None:
    """Under names that tell nothing, with a prompt above each; without the 15,000 rows of extended config space."""
    extended = re.compile(rb"^[1-9a-f][0-9a-f]0: .*\n", re.MULTILINE)
    lspci = [extended.sub(b"", data) for name, data in outputs().items() if "/lspci" in name]
    plain = put(tmp_path / "plain", {f"lspci_{number}": data for number, data in enumerate(lspci)})
    asked = put(tmp_path / "asked", {f"{number}": b"$ lspci -nn\n" + data for number, data in enumerate(lspci)})
    assert len(lspci) == 3
    assert opened(asked).facts == opened(plain).facts


LOG = "[    0.000000] Linux version 6.2.0\n[    4.000000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.113.01\n"


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a"), ("dmesg", "xid.txt"), ("dmesg.txt", "kern.log")])
def test_an_event_that_stands_in_two_files_counts_once(names: tuple[str, str], tmp_path: Path) -> None:
    whole, part = LOG + XID + "\n", f"{XID}\n"
    facts = opened(put(tmp_path, {names[0]: whole.encode(), names[1]: part.encode()})).facts
    assert sum("Xid" in str(fact) for key, fact in facts.items() if key.startswith("kmsg")) == 1


def test_two_parts_of_one_log_are_one_boot(tmp_path: Path) -> None:
    facts = opened(put(tmp_path, {"1.txt": LOG.encode(), "2.txt": f"{XID}\n[  901.0] x\n".encode()})).facts
    assert "900.100000;" + XID.partition("] ")[2] in facts.values()


@given(st.binary(max_size=400), st.integers(0, 300), st.booleans())
def test_any_bytes_in_a_zip(noise: bytes, at: int, stream: bool) -> None:
    """Whatever is damaged, members end, and nothing is given twice."""
    whole = zipped({"a.txt": b"hello\n" * 30, "b/c.txt": b"world\n" * 30}, stream=stream)
    data = whole[:at] + noise + whole[at + len(noise) :]
    total = 0
    for member in zip_members(Blocks(iter([data]))):
        while isinstance(member, ZipMember) and (part := member.read(4096)):
            total += len(part)
    assert total <= 1100 * (len(data) + 1)


def _nested(pack: Callable[[bytes], bytes], times: int) -> bytes:
    data = TEXTS["fm"].encode()
    for _ in range(times):
        data = pack(data)
    return data


@pytest.mark.parametrize(("pack", "most"), [
    (gzip.compress, 4), (lambda data: tarred("x", {"fm": data}), 3), (lambda data: zipped({"fm": data}), 3),
])  # fmt: skip
def test_archives_in_archives_are_opened_to_a_depth(pack: Callable[[bytes], bytes], most: int, tmp_path: Path) -> None:
    for times in (most, most + 1):
        path = put(tmp_path, {f"fm{times}": _nested(pack, times)}) + f"/fm{times}"
        assert bool(contents.load(path, CpuTime()).sections[0].lines) == (times == most)


def test_a_file_in_an_archive_in_an_archive_has_the_names_of_both(tmp_path: Path) -> None:
    for times, name in ((1, "fm"), (2, "fm/fm"), (3, "fm/fm/fm")):
        path = put(tmp_path, {"x.zip": _nested(lambda data: zipped({"fm": data}), times)}) + "/x.zip"
        assert [section.file for section in contents.load(path, CpuTime()).sections] == [name]


LINES = b"[1] aaa\n[2] bbb\n[3] ccc\n"
COST = 3 * (len("[1] aaa") + 128)


@pytest.mark.parametrize(("limit", "most", "files", "refusal"), [
    ("ARCHIVE_MEMBERS", 2, {"a": LINES, "b": LINES}, "more than 1 files"),
    ("ARCHIVE_MEMBERS", 2, {"x.zip": zipped({"a": LINES, "b": LINES})}, "more than 1 outputs"),
    ("BUNDLE_BYTES", COST // 3, {"a": LINES}, "more than 0 MiB of outputs"),
])  # fmt: skip
def test_a_bundle_beyond_a_limit_is_refused(
    limit: str, most: int, files: dict[str, bytes], refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, files)
    monkeypatch.setattr(contents, limit, most)
    assert all(section.lines for section in contents.load(path, CpuTime()).sections)
    monkeypatch.setattr(contents, limit, most - 1)
    with pytest.raises(BadInput, match=refusal):
        contents.load(path, CpuTime())


def test_a_file_beyond_the_limit_is_left_out_of_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, {"a": LINES, "b": LINES + b"\n"})
    monkeypatch.setattr(contents, "REPORT_BYTES", len(LINES))
    assert [section.title for section in contents.load(path, CpuTime()).sections] == ["a"]
    assert contents.load(f"{path}/a", CpuTime()).sections[0].lines
    with pytest.raises(BadInput, match="b: larger than"):
        contents.load(f"{path}/b", CpuTime())


def test_what_every_reader_tries_has_a_limit_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it a file is read where its name or its beginning says what it is."""
    path = put(tmp_path, {"a": LINES, "b": LINES, "nvidia-smi": LINES})
    for limit, loose in ((3 * COST, "a b nvidia-smi"), (3 * COST - 1, "a b"), (COST, "a"), (COST - 1, "")):
        monkeypatch.setattr(contents, "LOOSE_BYTES", limit)
        found = contents.load(path, CpuTime()).sections
        assert [section.title for section in found if section.loose] == loose.split()
        assert [section.title for section in found if section.lines] == [*dict.fromkeys([*loose.split(), "nvidia-smi"])]


def test_of_a_log_the_last_rows_are_read_and_of_a_tool_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ("dmesg", "dmesg_-T", "lspci", "nvidia-smi_-q")
    path = put(tmp_path, {f"sos_commands/x/{name}": LINES for name in files})
    for most, firsts, sizes in ((8, [0, 2, 0, 0], [3, 1, 3, 3]), (6, [0, 3, 0, 0], [3, 0, 3, 3]),
                                (4, [1, 3, 0, 0], [2, 0, 3, 2])):  # fmt: skip
        monkeypatch.setattr(contents, "LOG_ROWS", most)
        monkeypatch.setattr(contents, "READ_LINES", most // 2)
        found = contents.load(path, CpuTime())
        assert [section.first for section in found.sections] == firsts
        assert [len(section.lines) for section in found.sections] == sizes
        assert len(found.notes) == sum(size < 3 for size in sizes)


@pytest.mark.parametrize(("most", "is_read"), [(6, True), (5, False)])
def test_a_file_of_the_machine_has_a_longest(
    most: int, is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_outputs, "FILE_BYTES", most)
    path = put(tmp_path, {"box/proc/cmdline": b"quiet\n", "fm": TEXTS["fm"].encode()})
    assert ("text /proc/cmdline" in opened(path).facts) == is_read
