"""``import`` of bug reports, archives and directories, and ``--show``; hostile ones are refused within limits."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import resource
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from report_writer import LINE, report, sections
from sample import swept
from seam import is_one_clear_line, run

from dgxcheck.source.recording.load import open_source

BOX = "pcie-x4"


@pytest.fixture(scope="module")
def packed() -> bytes:
    return report(open_source(BOX))


@pytest.fixture
def written(packed: bytes, tmp_path: Path) -> str:
    path = tmp_path / "nvidia-bug-report.log.gz"
    path.write_bytes(packed)
    return str(path)


def judged(spec: str, capsys: pytest.CaptureFixture[str]) -> Any:
    document = json.loads(run(capsys, "health", "--format", "json", "--from", spec).out)
    return {(each["id"], each["subject"]["name"], each["status"], each.get("message")) for each in document["findings"]}


def test_the_import_says_what_the_report_says(written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "box.json")
    done = run(capsys, "import", written, "-o", out)
    assert (done.code, done.out) == (0, "")
    assert "facts imported from nvidia-bug-report.log.gz" in done.err
    document = json.loads(Path(out).read_text(encoding="utf-8"))
    assert document["provenance"]["files"][0]["file"] == "bug report"
    assert "nvidia-smi -q" in " ".join(document["provenance"]["files"][0]["tools"])
    before, after = judged(written, capsys), judged(out, capsys)
    assert {each[:3] for each in before} == {each[:3] for each in after}


def test_identities_leave_as_pseudonyms(written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = open_source(BOX)
    out = tmp_path / "box.json"
    run(capsys, "import", written, "-o", str(out))
    text = out.read_text(encoding="utf-8")
    gpu = source.nvml("nvmlDeviceGetHandleByIndex", "", 0)
    assert isinstance(gpu, str)
    identities = [source.nvml("nvmlDeviceGetUUID", gpu), source.nvml("nvmlDeviceGetSerial", gpu),
                  source.text("/proc/sys/kernel/hostname"),
                  source.text("/sys/class/dmi/id/product_serial")]  # fmt: skip
    for identity in identities:
        if isinstance(identity, str):
            assert f'"{identity.strip()}' not in text


def test_show_lists_outputs_and_what_was_left(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "import", "--show", written)
    assert done.code == 0
    rows = done.out.splitlines()
    assert rows[0].startswith("nvidia-bug-report.log.gz: bug report, ")
    for tool in ("nvidia-smi -q", "lspci", "dmidecode 3.3", "kernel log", "files", "numactl"):
        assert any(f"  {tool}" in row for row in rows), tool
    assert any(row.startswith("left, without content: ") for row in rows)


def test_show_of_a_pasted_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "paste.txt"
    text.write_text("hello\nGPU 0: Tesla (UUID: GPU-1)\n\t Link 0: 25.781 GB/s\nbye\nbye\n", encoding="utf-8")
    done = run(capsys, "import", "--show", str(text))
    assert "       2       2      1  nvidia-smi nvlink -s" in done.out
    assert "not recognised: lines 1, 4-5" in done.out
    assert done.code == 3


@pytest.mark.parametrize("words", [("--onto", "dgx-1-v100"), ("again.log.gz",)])
def test_a_report_stands_alone(
    words: tuple[str, ...], written: str, packed: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "again.log.gz").write_bytes(packed)
    more = [str(tmp_path / word) if word.endswith("gz") else word for word in words]
    done = run(capsys, "import", written, *more, "-o", str(tmp_path / "box.json"))
    assert done.code == 3
    assert "import it alone" in done.err


def test_neither_file_nor_show(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "import", written)
    assert done.code == 3
    assert "--show" in done.err


def test_a_text_beside_a_report_is_of_its_gpus(
    written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = "   D\\D     0      1\n     0 701.00  18.01\n     1  18.10 701.11\n"
    (tmp_path / "p2p.txt").write_text(f"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n{matrix}")
    out = tmp_path / "box.json"
    assert run(capsys, "import", written, str(tmp_path / "p2p.txt"), "-o", str(out)).code == 0
    facts = json.loads(out.read_text(encoding="utf-8"))["facts"]
    assert any(line.startswith("measure p2p") for line in facts)


def tarred(folder: str, files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def outputs(box: str = BOX) -> dict[str, bytes]:
    """What a report holds, as the files of a sosreport."""
    found: dict[str, bytes] = {}
    for section in sections(open_source(box), old=False):
        title, _, text = section.removeprefix(f"{LINE}\n\n").partition("\n")
        if title.startswith("*** /") and "does not exist" not in title:
            found[title[5:]] = text.partition("\n")[2].rstrip("\n").encode() + b"\n"
        elif title == "/usr/bin/nvidia-smi --query":
            for part in f"{title}\n{text}".split("\n/usr/bin/"):
                command, _, body = part.partition("\n")
                name = command.removeprefix("/usr/bin/").replace(" ", "_")
                found[f"sos_commands/nvidia/{name}"] = body.encode()
        elif title.startswith(("/usr", "/sbin")):
            found[f"sos_commands/x/{title.rpartition('/')[2].replace(' ', '_')}"] = text.encode()
        elif title == "dmesg:":
            found["sos_commands/kernel/dmesg"] = text.encode()
    return found


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_sosreport_says_what_the_report_says(
    pack: Any, written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sosreport-box.tar.xz"
    path.write_bytes(pack(tarred("sosreport-box", {name.lstrip("/"): data for name, data in outputs().items()})))
    assert {each[:3] for each in judged(str(path), capsys)} == {each[:3] for each in judged(written, capsys)}


def test_an_unpacked_sosreport_too(written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in outputs().items():
        file = tmp_path / "sos" / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    of_tree = judged(str(tmp_path / "sos"), capsys)
    assert {each[:3] for each in of_tree} == {each[:3] for each in judged(written, capsys)}


def test_a_report_in_an_archive(
    packed: bytes, written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nvsm-health.tar.xz"
    path.write_bytes(lzma.compress(tarred("nvsm", {"nvidia-bug-report.log.gz": packed, "readme": b"hello\n"})))
    assert {each[:3] for each in judged(str(path), capsys)} == {each[:3] for each in judged(written, capsys)}


def test_a_directory_of_loose_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Known by what is in them, whatever they are called; a link is not followed."""
    folder = tmp_path / "collected"
    folder.mkdir()
    for number, (name, data) in enumerate(outputs().items()):
        if name.startswith("sos_commands"):
            (folder / f"{number}.txt").write_bytes(data)
    (folder / "link").symlink_to("/etc/shadow")
    statuses = {each[2] for each in judged(str(folder), capsys)}
    assert "pass" in statuses
    assert not statuses & {"warn", "fail"}


def test_nothing_known_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("hello\n", encoding="utf-8")
    tar = tarred("x", {"notes.txt": b"hello\n"})
    recording = tarred("x", {"box.json": b'{"schema": "dgxcheck/recording/1", "facts": {}}\n'})
    for data, words in (
        (None, "and no sys/ directory"), (tar, "of a supported tool"),
        (gzip.compress(tar)[:-20], "of a supported tool; x.tar is cut off"),
        (recording, "contains a recording, x/box.json: unpack it first"),
    ):  # fmt: skip
        if data is not None:
            (tmp_path / "x.tar").write_bytes(data)
        done = run(capsys, "health", "--from", str(tmp_path if data is None else tmp_path / "x.tar"))
        assert (done.code, done.out) == (3, "")
        assert words in done.err
        assert is_one_clear_line(done.err)


def test_supportconfig(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for name, data in outputs().items():
        kind, title = ("Command", name.rpartition("/")[2].replace("_", " ")) if "sos" in name else ("File", name)
        rows.append(f"#==[ {kind} ]{'=' * 34}#\n# {title}\n{data.decode()}\n")
    path = tmp_path / "scc_box.txz"
    path.write_bytes(lzma.compress(tarred("scc_box", {"hardware.txt": ("====\n" + "".join(rows)).encode()})))
    statuses = {each[2] for each in judged(str(path), capsys)}
    assert "pass" in statuses
    assert not statuses & {"warn", "fail"}


START = b"Start of NVIDIA bug report log file.\n"


def titled(title: str) -> bytes:
    return START + f"{LINE}\n\n{title}\n\n".encode()


def bridges() -> bytes:
    rows = (b"%02x:%02x.0 PCI bridge [0604]: A [8086:1234]\n" % (n % 256, n % 32) for n in range(400_000))
    return titled("/usr/bin/lspci -nn") + b"".join(rows)


def xids() -> bytes:
    rows = (b"[%12.6f] NVRM: Xid (PCI:0000:0f:00): 31, x\n" % (n / 10) for n in range(250_000))
    return titled("dmesg:") + b"".join(rows)


def repeated(start: bytes, unit: bytes, times: int) -> bytes:
    """Packed without being in memory as a whole: a member for each mebibyte."""
    many = (1 << 20) // len(unit)
    return gzip.compress(start, 1) + gzip.compress(unit * many, 1) * (times // many)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a bomb": (lambda: repeated(START, b"\0", 300 << 20), "256 MiB"),
    "a bomb in a tar": (lambda: gzip.compress(tarred("x", {"a": bytes(260 << 20)}), 1), "256 MiB"),
    "one long line": (lambda: repeated(START, b"x", 200 << 20), ""),
    "titles": (lambda: repeated(titled("dmesg:"), titled("dmesg:")[len(START) :], 400_000), ""),
    "functions": (lambda: gzip.compress(bridges(), 1), ""),
    "a tree of one line": (
        lambda: repeated(titled("/usr/bin/lspci -t") + b"-[0000:00]-", b"+-00.0-[00]-", 2_000_000), ""
    ),
    "kernel log": (lambda: gzip.compress(xids(), 1), ""),
}
MEMORY = 512 << 20


@pytest.mark.parametrize("name", swept(HOSTILE, ("a bomb",)))
def test_a_hostile_file_stays_within_its_limits(name: str, tmp_path: Path) -> None:
    content, refusal = HOSTILE[name]
    (tmp_path / "x.gz").write_bytes(content())
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "dgxcheck", "health", "-q", "--from", "x.gz"], cwd=tmp_path, capture_output=True,
        text=True, timeout=120, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert refusal in done.stderr
    assert time.monotonic() - begun < 100
    if refusal:
        assert is_one_clear_line(done.stderr)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_cut_report_is_read_as_far_as_it_goes(
    share: float, packed: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.log.gz"
    path.write_bytes(packed[: int(len(packed) * share)])
    document = json.loads(run(capsys, "health", "--format", "json", "--from", str(path)).out)
    assert not {each["status"] for each in document["findings"]} & {"fail", "warn"}
    assert document["verdict"] == "unknown"
    assert "is cut off" in run(capsys, "health", "--from", str(path)).out
