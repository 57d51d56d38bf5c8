"""-o in a folder that others may write to: no foreign link is followed, and what is replaced keeps mode and owner."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from dgxcheck.source.recording.save import check_place, replace_file

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to others")
OTHER = 12345


@ROOT_ONLY
@pytest.mark.parametrize("deep", [False, True])
def test_a_link_of_another_user_is_not_followed(deep: bool, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_text("old")
    link = tmp_path / "link"
    link.symlink_to(target if deep else target / "file")
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    path = str(link / "file" if deep else link)
    with pytest.raises(PermissionError, match="symbolic link of another user"):
        replace_file(path, "new", 0o644)
    with pytest.raises(PermissionError, match="symbolic link of another user"):
        check_place(path)
    assert (target / "file").read_text() == "old"
    assert [entry.name for entry in target.iterdir()] == ["file"]


@ROOT_ONLY
def test_a_foreign_link_to_a_device_is_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/full")
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    with pytest.raises(PermissionError):
        replace_file(str(link), "new", 0o644)


@ROOT_ONLY
def test_what_is_replaced_keeps_mode_and_owner(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o640)
    os.chown(file, OTHER, OTHER)
    replace_file(str(file), "new", 0o666)
    status = file.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o640, OTHER, OTHER)
    replace_file(str(file), "private", 0o600)
    status = file.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o600, os.geteuid())


def test_own_links_are_followed_and_stay(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to("../file")
    (tmp_path / "way").symlink_to(tmp_path / "folder")
    replace_file(str(tmp_path / "way" / "link"), "new", 0o644)
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "folder" / "link").is_symlink()


def test_a_folder_that_is_exchanged_meanwhile_gets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file lands in the folder that was opened, wherever that is by then."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "secret").mkdir()
    fsync = os.fsync

    def exchange(fd: int) -> None:
        (tmp_path / "shared").rename(tmp_path / "away")
        (tmp_path / "shared").symlink_to(tmp_path / "secret")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", exchange)
    replace_file(str(tmp_path / "shared" / "file"), "new", 0o644)
    assert [*(tmp_path / "secret").iterdir()] == []
    assert (tmp_path / "away" / "file").read_text() == "new"


@pytest.mark.parametrize(("path", "why"), [("loop", errno.ELOOP), ("missing/file", errno.ENOENT), ("", errno.ENOENT)])
def test_no_place_is_an_error(path: str, why: int, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match=f"Errno {why}"):
        replace_file(str(tmp_path / path) if path else "", "new", 0o644)
    assert [entry.name for entry in tmp_path.iterdir()] == ["loop"]
