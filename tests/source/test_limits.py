"""Small files that grow when they are read, and large ones of the least lines: each loader within 512 MiB."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from checkout import ROOT
from sample import swept

from dgxcheck import limits
from dgxcheck.assessment.machine import PEERS, examine
from dgxcheck.readers.kernel_log.excerpt import read_excerpt

MEMORY = 512 << 20
TOPO, HEALTH = ("topo", "--from"), ("health", "-q", "--from", "dgx-1-v100")
HEAD, END = b'{"schema": "dgxcheck/recording/1", "facts": {"/x": {"text": {"a": [', b"1]}}}}"
INPUTS: dict[str, tuple[tuple[str, ...], str, Callable[[], bytes], str]] = {
    "dotted keys": ((*HEALTH, "--config"), "x.toml", lambda: b".".join([b"a"] * 30_000) + b"=1\n", "more than 64 dots"),
    "tables": (
        (*HEALTH, "--config"), "x.toml", lambda: b"".join(b"[" + b"a." * 60 + b"b%d]\n" % n for n in range(490)), "a:",
    ),
    "lists": (TOPO, "x.json.gz", lambda: gzip.compress(HEAD + b"[]," * (4 << 20) + END), "objects and lists"),
    "objects": (TOPO, "x.json.gz", lambda: gzip.compress(HEAD + b'{"a":{}},' * (1 << 20) + END), "objects and lists"),
    "numbers": (TOPO, "x.json.gz", lambda: gzip.compress(HEAD + b"1e9," * (3 << 20) + END), "values, more than"),
    "boots": ((*HEALTH, "--kernel-log"), "x.log", lambda: b"-- Reboot --\n[1.1] NVRM: a\n" * 400_000, ""),
    "driver's lines": (
        (*HEALTH, "--kernel-log"), "x.log", lambda: b"".join(b"[%d.1] NVRM:x\n" % n for n in range(900_000)), "",
    ),
    "short rows": ((*HEALTH, "--kernel-log"), "x.log", lambda: b"[1.1] a\n" * (2 << 20), ""),
    "Xids of many programs": (
        (*HEALTH, "--kernel-log"), "x.log", lambda: b"".join(
            b"[%5d.000001] NVRM: Xid (PCI:0000:06:00): %d, pid=%d\n" % (n, n % 16, n) for n in range(16_000)), "",
    ),
    "JSON of a journal": (
        (*HEALTH, "--kernel-log"), "x.log", lambda: b'{"MESSAGE":[' + b"[]," * (5 << 20) + b"1]}\n", "not a",
    ),
    "pasted rows": (("import", "-o", "out.json"), "x.txt", lambda: b"ab\n" * (5 << 20), ""),
}  # fmt: skip


@pytest.mark.in_ci
@pytest.mark.parametrize("name", swept(INPUTS, 4))
def test_a_loader_stays_within_its_memory(name: str, tmp_path: Path) -> None:
    words, file, content, refusal = INPUTS[name]
    (tmp_path / file).write_bytes(content())
    result = subprocess.run(
        [sys.executable, "-m", "dgxcheck", *words, file], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        check=False, env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )  # fmt: skip
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr
    assert refusal in result.stderr
    assert (len(result.stderr.splitlines()) == 1) == bool(refusal)


def test_ten_thousand_hosts_in_one_log_share_what_was_read() -> None:
    """A set of all lines for each of them took gigabytes."""
    rows = tuple(f"Nov 20 12:00:04 dgx{n} kernel: NVRM: Xid (PCI:0000:06:00): 79, pid=1, x" for n in range(2000))
    found = read_excerpt(rows)
    assert len(found) == len(rows)
    assert {id(each.understood) for each in found} == {id(found[0].understood)}


@pytest.mark.in_ci
@pytest.mark.parametrize("row", ["mlx5_{0} port 1 ==> ib{0} (Up)", "{1:04x}:{2:02x}:00.0 0302: 10de:20b0"])
def test_a_machine_of_ten_thousand_devices_is_none(row: str, tmp_path: Path) -> None:
    """Half a megabyte of text took minutes and gigabytes: each pair of devices is joined."""
    text = tmp_path / "x.txt"
    text.write_text("".join(row.format(n, n >> 8, n & 255) + "\n" for n in range(10_000)))
    machine = examine(str(text), PEERS)
    assert not machine.topology.devices
    assert any("more than" in gap.detail for gap in machine.topology.gaps)


def test_the_manual_lists_every_limit() -> None:
    """dgxcheck-recording(5), LIMITS: each constant by what it is about, with its number."""
    page = (ROOT / "man/dgxcheck-recording.5").read_text().partition(".Sh LIMITS")[2].partition(".Sh ")[0]
    for name, value in vars(limits).items():
        if name.isupper():
            assert f'.\\" {name}\n{written(name, value)}' in page, name


def written(name: str, value: int) -> str:
    """A limit as the page writes it."""
    if name.endswith("_BYTES") and value >= 1 << 10:
        return f"{value >> 20} MiB" if value >= 1 << 20 else f"{value >> 10} KiB"
    return f"{value:,}".replace(",", " ") if value >= 10_000 else str(value)
