"""The first screen of ``health``: verdict and first action, the devices, causes with their findings, each said once."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from judging import judged, printed
from sample import SAMPLE, swept
from seam import run

from dgxcheck.output.plain_text import wrapped

WIDTHS = (40, 80, 200)


@pytest.mark.parametrize(("text", "note"), [
    ("[    1.000000] NVRM: Xid (PCI:0000:52:00): 31, pid=4711, name=python3, Ch 0000000a, MMU Fault",
     "note: kernel.xid GPU@0000:52:00.0: Xid 31 (GPU memory page fault)"),
    ("InfiniBand device 'mlx5_2' port 1 status:\n\tstate:\t\t 1: DOWN\n\tphys state:\t 3: Disabled\n"
     "\tlink_layer:\t InfiniBand",
     "note: network.port-state mlx5_2/1: port is DOWN (disabled), as are all ports: nothing is cabled"),
])
@pytest.mark.parametrize("imported", [False, True])
def test_what_a_text_reports_without_a_fault_is_shown(
    text: str, note: str, imported: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, box = tmp_path / "log.txt", tmp_path / "box.json"
    file.write_text(f"{text}\n")
    assert run(capsys, "import", str(file), "-o", str(box)).code == 0
    assert note in run(capsys, "health", "--from", str(box if imported else file)).out


def test_of_many_findings_one_of_each_check_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight GPUs that are braked do not hide the power supply that the BMC names."""
    overlay, event, box = tmp_path / "braked.json", tmp_path / "sel.txt", tmp_path / "box.json"
    gpus = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
    braked = {f"nvml nvmlDeviceGetCurrentClocksEventReasons 0000:{bus}:00.0": 0x80 for bus in gpus}
    overlay.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-h100", "facts": braked}))
    event.write_text("1 | 11/20/2026 | 11:50:12 | Power Supply PSU2 | Failure detected | Asserted\n")
    assert run(capsys, "import", "--onto", str(overlay), str(event), "-o", str(box)).code == 0
    out = run(capsys, "health", "--from", str(box)).out
    assert "WARN tools.reports: ipmitool sel: Power Supply PSU2" in out
    assert "and 2 more; list them with -v" in out


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize("name", swept(SAMPLE, 3))
def test_the_first_line_is_the_verdict(name: str) -> None:
    document = judged(name)[1]
    first = printed(name)[1].partition("\n")[0]
    assert first.startswith(f"{document['verdict'].upper()}  ")
    if any(cause["severity"] == document["verdict"] for cause in document["causes"]):
        assert " -> " in first


@pytest.mark.parametrize("name", swept(SAMPLE, 3, first=1))
def test_each_bad_finding_is_said_once(name: str) -> None:
    lines = printed(name)[1].splitlines()
    bad = [each for each in judged(name)[1]["findings"] if each["status"] in ("fail", "warn", "unknown")]
    told = [line for line in lines if re.match(r" *(FAIL|WARN|UNKNOWN) \S+\.", line)]
    hidden = sum(int(match[1]) for line in lines if (match := re.match(r" *and (\d+) more;", line)))
    assert len(told) + hidden == len(bad)
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", swept(["dgx-1-v100-gpu-lost", "dgx-a100-sxid-20034", "k80-x8-p2p-acs"], 3))
def test_a_narrow_terminal_loses_nothing(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prose is wrapped between words; rows of tables are neither cut nor wrapped, and what is left out is named."""
    from dgxcheck.cli.commands import health

    wide = run(capsys, "health", "--from", name).out
    monkeypatch.setattr(health, "width", lambda _: width)
    narrow = run(capsys, "health", "--from", name).out
    causes = slice(wide.index("Cause 1"), None), slice(narrow.index("Cause 1"), None)
    assert words(wide[causes[0]]) == words(narrow[causes[1]])
    longest = max(map(len, words(narrow)))
    assert all(len(line) <= max(width, longest + width // 4) for line in narrow.splitlines())


def test_folding_keeps_words() -> None:
    text = "  2. reset GPU: nvidia-smi -r -i 0000:47:00.0; with Fabric Manager running"
    assert words(wrapped(text, 40, 5)) == words(text)
    assert all(len(line) <= 40 for line in wrapped(text, 40, 5).splitlines())
    assert wrapped(text, None, 5) == text


def test_a_gpu_that_the_driver_does_not_list_is_not_ok(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "health", "--from", "dgx-1-v100-no-nvml").out
    rows = re.findall(r"^GPU\d+ +\S+ +(\S+)", out, re.MULTILINE)
    assert rows == ["?"] * 8


@pytest.mark.parametrize("options", [("-v",), ("-q",), ("--format", "healthmon")])
def test_healthmon_lines_close_the_output(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "health", "--from", "dgx-1-v100-hot", *options).out.splitlines()
    assert out[-2].startswith("System Results: ")
    assert out[-1] == "One or more tests didn't run."


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("dgx-1-v100-gpu-x8", "GPU2: PCIe x8 instead of x16 -> drain, cold power cycle"),
        ("dgx-1-v100-gpu-missing", "missing GPU below 09:10.0: 7 of .. -> lspci -tv, then reboot"),
        ("dgx-1-p100-pages-63", "GPU1 (07:00.0): 63 retired pages -> drain, dcgmi diag -r 3"),
        ("dgx-1-v100-ecc-volatile", "GPU2: 2 uncorrected memory errors .. -> drain, nvidia-smi -r"),
    ],
)
def test_one_line_says_device_and_figure(name: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(capsys, "health", "--from", name, "--format", "nagios").out.partition(" | ")[0]
    assert first == f"DGXCHECK CRITICAL - {line}"
    assert len(first.encode()) <= 80


_EIGHT = (
    "dgx-1-v100", "dgx-1-v100-gpu-x8", "dgx-a100-nvlink-down", "dgx-2-nvswitch-missing", "k80-x8-board-off-bus",
    "pcie-x8-apart", "dgx-b300-port-down", "gb200-nvl72-hot",
)  # fmt: skip


@pytest.mark.parametrize("name", swept(_EIGHT, ("dgx-1-v100-gpu-x8", "pcie-x8-apart")))
def test_a_short_terminal_still_shows_verdict_and_first_cause(name: str) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    argv = [sys.executable, "-m", "dgxcheck", "health", "--from", name, "--color", "never"]
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # EIO where the terminal has no writer left
            while more := os.read(ours, 65536):
                shown += more
        assert process.wait() in (0, 1, 2)
    os.close(ours)
    lines = shown.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
    assert max(map(len, lines)) <= 80
    first = lines[: lines.index("")]
    assert first[0].split()[0] in ("PASS", "WARN", "FAIL")
    assert len(lines) < 24 or lines[-len(first) :] == first
