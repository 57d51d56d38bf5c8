"""Unread lines that mention an error stand in the first line of a report; zero errors and manuals do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seam import run

from dgxcheck.readers.alarming import alarming, mentions_trouble

GPU = "GPU 0: Tesla K80 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n"


@pytest.mark.parametrize(
    "line",
    [
        "Job for acme-fabric.service failed because the control process exited",
        "2026-11-23 10:00:00 acme[1]: GPU 3: ECC ERROR",
        "acme-check .............. FAILED",
        "Error: device 3 does not answer",
        "port 3 is degraded: 12 retries",
        "GPU 2 is lost",
        "GPU 0 FAILED the self-test",
        "memory test: 3 errors, 0 skipped",
        "Fehler auf GPU 3",
        "GPU3 温度传感器故障",
    ],
)
def test_alarms(line: str) -> None:
    assert alarming(("x", line), (0, 1)) == (1,)


@pytest.mark.parametrize(
    "line",
    [
        "acme test: no errors found on 8 devices",
        "0 errors, 3 skipped",
        "Errors: 0",
        "RX errors 0  dropped 3  overruns 0  frame 0",
        "Corrected errors : 0, uncorrected errors : 0",
        "ECC errors | N/A",
        "acme-check: passed: 8, failed: 0",
        "-e, --errors  how many errors to print: 10",
        "If the device 3 fails: reset it",
        "Errors that were detected in memory.",
        "all 8 devices are well",
        "terrorbytes: 3",
    ],
)
def test_no_alarms(line: str) -> None:
    assert alarming((line,), (0,)) == ()


@pytest.mark.parametrize(("line", "trouble"), [
    ("Errors: 0", True), ("the node is lost", True), ("2 warnings", True), ("a broken cable", True),
    ("all is well", False), (f"{'x ' * 500}lost", False),
])  # fmt: skip
def test_words_of_trouble(line: str, trouble: bool) -> None:
    assert mentions_trouble(["a line", line]) == trouble


@given(st.lists(st.text()))
def test_any_lines(lines: list[str]) -> None:
    assert set(alarming(lines, range(len(lines)))) <= {*range(len(lines))}


def test_the_headline_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, spec in (("one.txt", tmp_path / "one.txt"), ("folder/one.txt", tmp_path / "folder")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{GPU}acme: ERROR 12 on link 3\nacme: all 3 done\n", encoding="utf-8")
        head = run(capsys, "health", "--from", str(spec)).out.splitlines()[0]
        assert "in what was read" in head
        assert head.endswith("1 line that mentions an error was not recognised: see dgxcheck import --show")
        shown = run(capsys, "import", "--show", str(spec)).out
        assert "       2  mentions an error: acme: ERROR 12 on link 3" in shown.splitlines()


def test_a_text_that_was_read_raises_no_alarm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.txt").write_text(f"{GPU}acme: all 3 done\n", encoding="utf-8")
    assert "speak" not in run(capsys, "health", "--from", str(tmp_path / "one.txt")).out
