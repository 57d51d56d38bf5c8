"""Ctrl-C while the counters are waited for: what was read is reported, and a terminal is left as it was."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from live_box import CHILD, Box

from dgxcheck.source.recording.load import load


def on_terminal(box: Box, standin: Path, wanted: bytes, *argv: str) -> tuple[int, bytes, bytes]:
    """Run with stderr on a terminal, and interrupt it once that shows what is wanted; code, stdout, what was shown."""
    terminal, other = pty.openpty()
    command = [sys.executable, "-c", CHILD, str(box.tree), *argv]
    written = box.tree.parent / "stdout"  # a pipe that nobody reads yet would hold the command when it is full
    with written.open("wb") as stdout:
        process = subprocess.Popen(
            command, env=box.environment(standin, TERM="xterm", COLUMNS="80", LINES="24"), stdin=subprocess.DEVNULL,
            stdout=stdout, stderr=other,
        )  # fmt: skip
    os.close(other)
    shown, until, told = b"", time.monotonic() + 20, False
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if wanted in shown and not told:
            told = True
            process.send_signal(signal.SIGINT)
    process.wait(timeout=20)
    os.close(terminal)
    assert told, shown
    return process.returncode, written.read_bytes(), shown


def test_a_recording_that_is_interrupted_holds_what_was_read(
    served: Callable[..., Box], standin: Path, tmp_path: Path
) -> None:
    box, file = served("dgx-1-v100", 2), tmp_path / "box.json"
    code, _, shown = on_terminal(box, standin, b"again in 0:5", "record", str(file), "--window", "60")
    assert code == 3
    assert shown.splitlines()[-1] == b"interrupted: the counters were read once, not again after the window"
    document = load(str(file))
    assert "later" not in document
    assert document["facts"]


def test_a_health_check_that_is_interrupted_reports_the_rest(served: Callable[..., Box], standin: Path) -> None:
    box = served("dgx-1-v100")
    code, out, shown = on_terminal(box, standin, b"again in 0:5", "health", "--window", "60", "--format", "json")
    document = json.loads(out)
    assert (code, document["verdict"]) == (3, "unknown")
    assert [each["id"] for each in document["findings"] if each["status"] == "unknown"] == ["report.complete"]
    growth = [each["message"] for each in document["findings"] if each["id"] == "network.port-errors"]
    assert {*growth} == {"interrupted before the counters were read again"}
    assert shown.endswith(b"\x1b[?25h") or b"\x1b[?25h" in shown  # the cursor is back
