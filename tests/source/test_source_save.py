"""A file is written whole or not at all."""

from __future__ import annotations

import errno
import gzip
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dgxcheck.source.recording.save import check_place, replace_file, written

KILLED = """
import os, sys
from dgxcheck.source.recording import save
os.{at} = lambda *_, **__: os.kill(os.getpid(), 9)
save.replace_file(sys.argv[1], "new " * 100000, 0o644)
"""


@pytest.fixture
def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_is_replaced_whole(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "box.json"
    for text in ("old", "new"):
        replace_file(str(path), text, 0o644)
        assert path.read_text() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 & ~umask
    replace_file(str(path), "secret", 0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["box.json"]
    replace_file(f"{path}.gz", "packed", 0o644)
    assert gzip.decompress((tmp_path / "box.json.gz").read_bytes()) == b"packed"
    replace_file(f"{path}.gz", "a state", 0o644, regular=True)
    assert (tmp_path / "box.json.gz").read_text() == "a state"


def test_a_mode_that_is_meant_exactly_is_no_matter_of_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "box.prom"
    before = os.umask(0o077)
    try:
        replace_file(str(path), "1", 0o644, exactly=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    finally:
        os.umask(before)


@pytest.mark.parametrize("at", ["fsync", "rename"])
def test_a_kill_while_saving_leaves_the_old_file(tmp_path: Path, at: str) -> None:
    path = tmp_path / "box.json"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED.format(at=at), str(path)], check=False, timeout=30)
    assert done.returncode == -9
    assert path.read_text() == "old"
    replace_file(str(path), "new", 0o644)
    assert path.read_text() == "new"


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "box.json"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_file(str(path), "new \ud800", 0o644)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["box.json"]


def test_a_directory_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        replace_file(str(tmp_path), "text", 0o644)
    with pytest.raises(FileNotFoundError):
        replace_file(str(tmp_path / "none/box.json"), "text", 0o644)


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "box.json").symlink_to("real.json")
    replace_file(str(tmp_path / "box.json"), "new", 0o644)
    assert (tmp_path / "box.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_a_link_to_a_file_that_is_not_there_stays_and_the_file_is_made(tmp_path: Path) -> None:
    (tmp_path / "box.json").symlink_to("there/real.json")
    with pytest.raises(FileNotFoundError):
        replace_file(str(tmp_path / "box.json"), "new", 0o644)
    (tmp_path / "there").mkdir()
    replace_file(str(tmp_path / "box.json"), "new", 0o644)
    assert os.readlink(tmp_path / "box.json") == "there/real.json"
    assert (tmp_path / "there/real.json").read_text() == "new"
    assert os.listdir(tmp_path / "there") == ["real.json"]


def test_a_link_to_itself_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "box.json").symlink_to("box.json")
    for write in (lambda path: replace_file(path, "new", 0o644), check_place):
        with pytest.raises(OSError, match="Too many levels"):
            write(str(tmp_path / "box.json"))
    assert (tmp_path / "box.json").is_symlink()


def test_a_place_is_checked_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old")
    (tmp_path / "dangling").symlink_to("none/box.json")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir(tmp_path))
    for name in ("old.json", "new.json", "pipe"):
        check_place(str(tmp_path / name))
    for name in ("none/box.json", "dangling", "old.json/box.json", "x" * 300):
        with pytest.raises(OSError, match=r"No such file|Not a directory|name too long"):
            check_place(str(tmp_path / name))
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "old.json").read_text() == "old"


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    replace_file(str(path), "text", 0o644)
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_device_node_is_written_to_and_stays(tmp_path: Path) -> None:
    """Nodes of its own: a mistake here would replace the system's."""
    full = tmp_path / "full"
    try:
        os.mknod(full, 0o20666, os.makedev(1, 7))
        os.close(os.open(full, os.O_WRONLY))
    except OSError as error:
        pytest.skip(f"no device nodes here: {error}")
    with pytest.raises(OSError, match="No space left") as refused:
        replace_file(str(full), "text", 0o644)
    assert refused.value.errno == errno.ENOSPC
    assert stat.S_ISCHR(full.stat().st_mode)


def test_lines_are_sorted_one_each_and_times_exact() -> None:
    facts: dict[str, dict[str, object]] = {"/b": {"text": {"z": "1", "a": "\x1b"}}, "/a": {"names": ["x"]}}
    text = written({"schema": "s"}, json.loads(json.dumps(facts)), [(60.0, {}), (1234567.125, {})])
    assert text == (
        '{\n"schema": "s",\n"facts": {\n"/a": {"names": ["x"]},\n"/b": {"text": {"a": "\\u001b", "z": "1"}}\n},\n'
        '"later": [\n{"at_s": 60, "facts": {\n\n}},\n{"at_s": 1234567.125, "facts": {\n\n}}\n]\n}\n'
    )
    assert json.loads(text)["later"][1]["at_s"] == 1234567.125
