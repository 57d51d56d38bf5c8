"""Bundles of several hosts: one box is made of those of one, and never of two."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_writer import report
from seam import is_one_clear_line, run
from test_bundle_files import LOG, XID, put, zipped
from test_import_bundles import tarred

from dgxcheck.assessment.importing.bundle import opened
from dgxcheck.facts.missing import BadInput
from dgxcheck.readers.bundles.bug_report import with_hosts
from dgxcheck.readers.bundles.sections import Section
from dgxcheck.source.recording.load import open_source

IBSTAT = b"CA 'mlx5_0'\n\tCA type: MT4123\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 200\n"
GOOD, BAD = LOG.encode(), f"{LOG}{XID}\n".encode()


def owners(*files: str) -> dict[str, str]:
    sections = [Section(title=file.rpartition("/")[2], lines=("x",), size=1, file=file) for file in files]
    return {section.file: section.host for section in with_hosts(sections)}


@pytest.mark.parametrize(
    ("files", "hosts"),
    [
        (("node01/dmesg.txt", "node02/dmesg.txt"), ("node01", "node02")),
        (("node01/dmesg.txt", "node02/dmesg.txt", "node02/ibstat"), ("node01", "node02", "node02")),
        (("x/alpha/dmesg", "x/beta/dmesg", "x/beta/sub/ibstat"), ("alpha", "beta", "beta")),
        (("n1/2026-11-22/dmesg", "n2/2026-11-23/dmesg"), ("n1", "n2")),
        (("x/alpha/dmesg", "x/beta/dmesg", "readme"), ("alpha", "beta", "")),
        (("node01.zip/dmesg", "node02.zip/dmesg"), ("node01", "node02")),
        (("dmesg-node01.txt", "dmesg-node02.txt"), ("node01", "node02")),
        (("dmesg-dgx-01.txt", "dmesg-dgx-02.txt", "lspci_-nn-dgx-01.txt"), ("dgx-01", "dgx-02", "dgx-01")),
        (("node01_ibstat", "node02_ibstat", "notes"), ("node01", "node02", "")),
        (("node01.smi.log", "node02.smi.log", "node01.wiring.log", "node02.wiring.log"),
         ("node01", "node02", "node01", "node02")),
        (("dmesg.node01.example.org", "dmesg.node02.example.org"), ("node01.example.org", "node02.example.org")),
        (("nvidia-bug-report_ip-10-0-1-2.ec2.internal.log.gz", "nvidia-bug-report_ip-10-0-1-3.ec2.internal.log.gz"),
         ("ip-10-0-1-2.ec2.internal", "ip-10-0-1-3.ec2.internal")),
    ],
)  # fmt: skip
def test_folders_and_names_tell_the_host(files: tuple[str, ...], hosts: tuple[str, ...]) -> None:
    assert owners(*files) == dict(zip(files, hosts, strict=True))


@pytest.mark.parametrize(
    "files",
    [
        ("node01/dmesg", "node01/ibstat", "readme"),
        ("dmesg-node01", "ibstat-node01"),
        ("-dmesg", "_ibstat"),
        ("nvidia-smi-q", "nvidia-smi-nvlink", "nvidia-smi-topo"),
        ("dcgmi-diag-r1", "dcgmi-diag-r3"),
        ("nvidia-smi_gpu0", "nvidia-smi_gpu1"),
        ("ibstat-mlx5_0", "ibstat-mlx5_1"),
        ("gpu0/stats.json", "gpu1/stats.json"),
        ("nccl-tests-8x", "nccl-tests-16x"),
        ("p2p-run1", "p2p-run2"),
        ("sos_commands/kernel/dmesg", "var/log/dmesg"),
        ("nvlink-s", "nvlink-e", "lspci-vvv", "lspci-nn"),
    ],
)
def test_files_of_one_host(files: tuple[str, ...]) -> None:
    assert set(owners(*files).values()) == {""}


@pytest.mark.parametrize("form", ["folder", "zip", "tar"])
def test_several_hosts_are_a_question(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"node01/dmesg.txt": GOOD, "node02/dmesg.txt": BAD, "node01/ib.txt": IBSTAT, "note": b"hello\n"}
    packed = {"zip": zipped, "tar": lambda held: tarred("x", held)}
    spec = put(tmp_path, files) if form == "folder" else put(tmp_path, {"x": packed[form](files)}) + "/x"
    done = run(capsys, "health", "--from", spec)
    assert (done.code, done.out) == (3, "")
    assert "several hosts: node01, node02; choose one" in done.err
    assert is_one_clear_line(done.err)
    first, second = opened(spec, "node01").facts, opened(spec, "node02").facts
    assert not any("Xid" in str(fact) for fact in first.values())
    assert any("Xid" in str(fact) for fact in second.values())
    assert "names /sys/class/infiniband" in first
    assert "names /sys/class/infiniband" not in second
    with pytest.raises(BadInput, match="--host node03"):
        opened(spec, "node03")


def test_two_bug_reports_are_two_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"nvidia-bug-report.log.gz": report(open_source("pcie-x4")),
             "nvidia-bug-report.log.old.gz": report(open_source("pcie-x4"))}  # fmt: skip
    done = run(capsys, "health", "--from", put(tmp_path, files))
    assert done.code == 3
    assert "nvidia-bug-report.log.gz, nvidia-bug-report.log.old.gz; choose one" in done.err
    out = tmp_path / "box.json"
    assert run(capsys, "import", str(tmp_path), "--host", "nvidia-bug-report.log.gz", "-o", str(out)).code == 0
    assert run(capsys, "health", "--from", str(out)).code == 0


def test_what_is_of_no_host_is_of_none_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = put(tmp_path, {"node01/dmesg": GOOD, "node02/dmesg": GOOD, "ibstat": IBSTAT})
    assert "names /sys/class/infiniband" not in opened(spec, "node01").facts
    done = run(capsys, "import", "--show", spec, "--host", "node01")
    assert "left, because their host is unknown: ibstat" in done.out


def test_hosts_that_prompts_name(tmp_path: Path) -> None:
    files = {name: f"root@{name}:~# nvidia-smi -L\nGPU 0: A (UUID: GPU-{number}1111111-2222-3333-4444-555555555555)\n"
             for number, name in enumerate(("alpha", "beta"))}  # fmt: skip
    spec = put(tmp_path, {f"{number}.txt": text.encode() for number, text in enumerate(files.values())})
    with pytest.raises(BadInput, match="several hosts: alpha, beta"):
        opened(spec)
    assert {output.title for output in opened(spec, "beta").outputs} == {"1.txt"}


def test_outputs_that_contradict_each_other_are_said(tmp_path: Path) -> None:
    texts = [f"GPU 0: A100 (UUID: GPU-{number}1111111-2222-3333-4444-555555555555)\n" for number in range(2)]
    found = opened(put(tmp_path, {f"{number}.txt": text.encode() for number, text in enumerate(texts)}))
    assert found.bundle.notes == ("1.txt: left out, because earlier output contradicts",)
