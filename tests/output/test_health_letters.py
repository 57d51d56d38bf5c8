"""The letters of nvidia-healthmon: -L, -V, -H, -l, and -d with its log."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import options_of
from seam import is_one_clear_line, run

from dgxcheck import __version__
from dgxcheck.assessment.machine import TEGRA_RELEASE
from dgxcheck.checks.registry import CHECKS, PROBES
from dgxcheck.facts.missing import Missing
from dgxcheck.source.debug_log import DebugLog
from dgxcheck.source.directory import DirectorySource
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.survey import COUNTERS, survey

BOX = "dgx-1-v100"
Capture = pytest.CaptureFixture[str]


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("box", [BOX, "dgx-station-v100"])
def test_l_lists_what_list_lists(form: str, box: str, capsys: Capture) -> None:
    due = run(capsys, "list", "--from", box, "--format", form)
    assert run(capsys, "health", "-L", "--from", box, "--format", form) == due


def test_l_has_no_form_for_monitors(capsys: Capture) -> None:
    done = run(capsys, "health", "-L", "--from", BOX, "--format", "nagios")
    assert (done.code, done.out) == (3, "")
    assert "-L requires --format text or json" in done.err


def test_version(capsys: Capture) -> None:
    assert run(capsys, "health", "-V") == (0, f"dgxcheck {__version__}\n", "")


def test_detailed_usage_has_every_option_and_every_check(capsys: Capture) -> None:
    done = run(capsys, "health", "-H")
    assert done.code == 0
    usage, _, checks = done.out.partition("\nChecks:\n\n")
    assert all(option in usage for option in options_of("health"))
    assert checks == run(capsys, "health", "--explain", ",".join(check.id for check in CHECKS)).out


def test_bundled_letters(capsys: Capture) -> None:
    assert run(capsys, "health", "-vL", "--from", BOX) == run(capsys, "list", "--from", BOX)


def test_l_names_the_file_for_the_result(tmp_path: Path, capsys: Capture) -> None:
    due = run(capsys, "health", "--from", "dgx-1-v100-hot")
    done = run(capsys, "health", "--from", "dgx-1-v100-hot", "-l", str(tmp_path / "log"))
    assert done == (2, "", "")
    assert (tmp_path / "log").read_text(encoding="utf-8") == due.out
    done = run(capsys, "health", "--from", BOX, "-l", str(tmp_path / "a"), "-o", str(tmp_path / "b"))
    assert done.code == 3
    assert "give only one" in done.err
    assert os.listdir(tmp_path) == ["log"]


@pytest.mark.parametrize("box", [BOX, "dgx-1-v100-gpu-lost"])
def test_the_debug_log_has_every_question_and_its_answer(box: str, tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "debug"
    plain = run(capsys, "health", "--from", box)
    assert run(capsys, "health", "--from", box, "-d", str(log)) == plain
    head, *lines, end = entries(log)
    assert (head["dgxcheck"], head["source"], head["name"]) == (__version__, "recording", box)
    assert (end["exit_code"], end["verdict"]) == (plain.code, "fail" if plain.code else "pass")
    recorder = RecordingSource(open_source(box))
    recorder.text(TEGRA_RELEASE)  # before all else: a Jetson is refused
    survey(recorder, (*PROBES, *COUNTERS))
    answers = [line for line in lines if "asked" in line]
    assert {line["asked"]: line["answer"] for line in answers if "later_s" not in line} == recorder.facts
    assert any(isinstance(line["answer"], dict) and "missing" in line["answer"] for line in answers)
    assert {line["asked"] for line in answers if "later_s" in line} < recorder.facts.keys()  # counters were read again
    times = [line["seconds"] for line in (head, *lines, end)]
    assert times == sorted(times)


def test_a_later_moment_is_logged_as_such(tmp_path: Path) -> None:
    class Twice(DirectorySource):
        def later(self, seconds: float) -> Twice:
            again = Twice(str(tmp_path))
            again.at_s = seconds
            return again

    (tmp_path / "sys").mkdir()
    source = DebugLog(str(tmp_path / "debug")).logged(Twice(str(tmp_path)))
    source.text("/sys/a")
    again = source.later(10)
    assert not isinstance(again, Missing)
    again.text("/sys/a")
    _, first, _, second = entries(tmp_path / "debug")
    assert "later_s" not in first
    assert (second["later_s"], second["asked"], second["answer"]["missing"]) == (10, "text /sys/a", "unrecorded")


def test_the_debug_log_grows_and_is_for_its_owner_alone(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "debug"
    log.write_text('{"old": 1}\n')
    log.chmod(0o666)
    before = os.umask(0)
    try:
        run(capsys, "health", "--from", BOX, "-d", str(log))
        run(capsys, "health", "--from", BOX, "-d", str(tmp_path / "new"))
    finally:
        os.umask(before)
    assert entries(log)[0] == {"old": 1}
    assert len(entries(log)) == len(entries(tmp_path / "new")) + 1
    assert [stat.S_IMODE(path.stat().st_mode) for path in (log, tmp_path / "new")] == [0o600, 0o600]


def test_the_debug_log_is_no_way_into_other_files(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    (tmp_path / "symbolic").symlink_to(target)
    (tmp_path / "hard").hardlink_to(target)
    os.mkfifo(tmp_path / "fifo")
    for name in ("symbolic", "hard", "fifo", "none/debug", "."):
        done = run(capsys, "health", "--from", BOX, "-d", str(tmp_path / name))
        assert (done.code, done.out) == (3, ""), name
        assert is_one_clear_line(done.err)
    assert target.read_text() == "old"


def test_hostile_answers_are_escaped_in_the_debug_log(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "sys/class/net/a\x1b[2J\nb").mkdir(parents=True)
    run(capsys, "health", "--from", str(tmp_path), "-d", str(tmp_path / "debug"))
    text = (tmp_path / "debug").read_text(encoding="utf-8")
    assert text.isascii()
    assert "\x1b" not in text
    assert ["a\x1b[2J\nb"] in [entry.get("answer") for entry in entries(tmp_path / "debug")]


def test_a_full_disk_ends_the_log_and_nothing_else(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk."""
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "from dgxcheck.cli import main\n"
        "sys.exit(main(['health', '--from', 'dgx-1-v100', '-d', sys.argv[1]]))"
    )
    argv = [sys.executable, "-B", "-c", code, str(tmp_path / "debug")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("PASS ")
    assert is_one_clear_line(done.stderr)
    assert "the debug log is incomplete" in done.stderr
