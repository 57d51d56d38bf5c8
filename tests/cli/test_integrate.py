"""``dgxcheck integrate``: every shipped file has a place, and installing one never harms what is there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from checkout import ROOT
from seam import is_one_clear_line, run

from dgxcheck.integrate import COMMAND, INTEGRATIONS, plan

FOLDER = ROOT / "dgxcheck" / "integrations"
UNIT = Path("etc/systemd/system/dgxcheck-watch.service")
every = pytest.mark.parametrize("name", [each.name for each in INTEGRATIONS])


def test_every_file_belongs_to_one_integration_and_has_a_place_of_its_own() -> None:
    sources = [source for each in INTEGRATIONS for source in each.files]
    places = [place for each in INTEGRATIONS for place in each.files.values()]
    assert sorted(sources) == sorted(path.name for path in FOLDER.iterdir())
    assert len({*places}) == len(places)
    assert all(place.startswith(("/etc/", "/usr/lib/")) and os.path.normpath(place) == place for place in places)
    assert len({each.name for each in INTEGRATIONS}) == len(INTEGRATIONS)
    assert all(each.steps and len(each.purpose) < 100 for each in INTEGRATIONS)


def test_files_that_are_scripts_are_executable_in_the_checkout_too() -> None:
    for path in FOLDER.iterdir():
        assert os.access(path, os.X_OK) == path.read_text(encoding="utf-8").startswith("#!"), path.name


@every
def test_it_shows_then_writes_then_finds_it_unchanged(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (integration,) = (each for each in INTEGRATIONS if each.name == name)
    shown = run(capsys, "integrate", name, "--root", str(tmp_path))
    assert (shown.code, shown.err) == (0, "")
    assert [*tmp_path.iterdir()] == []
    before = os.umask(0o077)
    try:
        written = run(capsys, "integrate", name, "--root", str(tmp_path), "--write")
    finally:
        os.umask(before)
    assert written.code == 0
    for source, place in integration.files.items():
        file = tmp_path / place.lstrip("/")
        assert str(file) in shown.out
        assert file.read_bytes() == (FOLDER / source).read_bytes()
        assert file.stat().st_mode & 0o777 == (0o755 if os.access(FOLDER / source, os.X_OK) else 0o644)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_dir()} == {0o755}
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {
        os.path.basename(place) for place in integration.files.values()
    }
    again = run(capsys, "integrate", name, "--root", str(tmp_path), "--write")
    assert (again.code, again.out.count("unchanged")) == (0, len(integration.files))


def test_one_file_that_differs_and_none_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = INTEGRATIONS[0].files.values()
    there = tmp_path / second.lstrip("/")
    there.parent.mkdir(parents=True)
    there.write_text("mine\n")
    for more in ([], ["--write"]):
        done = run(capsys, "integrate", INTEGRATIONS[0].name, "--root", str(tmp_path), *more)
        assert (done.code, done.err) == (3, "")
        assert "differs, left alone" in done.out
    assert there.read_text() == "mine\n"
    assert not (tmp_path / first.lstrip("/")).exists()


@pytest.mark.parametrize("what", ["directory", "broken link", "link out", "large file"])
def test_what_is_no_file_of_ours_is_left_alone(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, outside = tmp_path / "image", tmp_path / "outside"
    outside.mkdir()
    file = root / UNIT
    file.parent.parent.mkdir(parents=True)
    if what == "link out":
        file.parent.symlink_to(outside)
    else:
        file.parent.mkdir()
    if what == "directory":
        file.mkdir()
    elif what == "broken link":
        file.symlink_to("nowhere")
    elif what == "large file":
        with file.open("wb") as sparse:
            sparse.truncate(1 << 33)
    done = run(capsys, "integrate", "watch", "--root", str(root), "--write")
    assert (done.code, done.err) == (3, "")
    assert "left alone" in done.out or "cannot be used" in done.out
    assert [*outside.iterdir()] == []


def test_a_folder_that_denies_writing_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "etc").write_text("no folder\n")
    done = run(capsys, "integrate", "watch", "--root", str(tmp_path), "--write")
    assert done.code == 3
    assert "cannot be" in done.out + done.err


def test_the_path_of_dgxcheck_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "integrate", "watch", "--root", str(tmp_path), "--command", "/opt/x/dgxcheck", "--write")
    assert "/opt/x/dgxcheck is missing" in done.out
    text = (tmp_path / UNIT).read_text(encoding="utf-8")
    assert "ExecStart=/opt/x/dgxcheck watch " in text
    assert COMMAND not in text
    program = tmp_path / "opt/x/dgxcheck"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = run(capsys, "integrate", "watch", "--root", str(tmp_path), "--command", "/opt/x/dgxcheck")
    assert (done.code, "missing" in done.out) == (0, False)


@pytest.mark.parametrize(("name", "word"), [("watch", "cannot read"), ("telegraf", "is missing"), ("nhc", "")])
def test_a_command_in_a_home_directory_is_no_service_s(
    name: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """pipx installs there; systemd hides homes from the services, not from other programs."""
    words = ["--command", "/root/.local/bin/dgxcheck"] if word else []
    done = run(capsys, "integrate", name, "--root", str(tmp_path), *words)
    assert done.code == 0
    assert (word in done.out) if word else ("missing" not in done.out)


@every
def test_print_gives_the_files_and_nothing_else(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (integration,) = (each for each in INTEGRATIONS if each.name == name)
    files = plan(integration)
    done = run(capsys, "integrate", name, "--print")
    assert done.code == 0
    if len(files) == 1:
        assert done.out == (FOLDER / files[0].source).read_text(encoding="utf-8")
    for file in files:
        assert file.text in done.out


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "integrate")
    assert [line.split()[0] for line in done.out.splitlines()[1:-2]] == [each.name for each in INTEGRATIONS]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("promtheus",), "did you mean prometheus"), (("--write",), "give the name"),
        (("watch", "--print", "--write"), "not both"), (("watch", "--root", "/nonexistent"), "does not exist"),
        (("watch", "--command", "dgxcheck"), "absolute path"), (("watch", "--command", "/a b"), "absolute path"),
        (("watch", "--command", "/a;reboot"), "absolute path"), (("watch", "--command", "/a\n"), "absolute path"),
        (("prometheus", "--command", "/a"), "none of its files"),
    ],
)  # fmt: skip
def test_it_refuses_in_one_line(argv: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "integrate", *argv)
    assert (done.code, done.out) == (3, "")
    assert is_one_clear_line(done.err)
    assert words in done.err


def test_the_files_are_found_in_a_zip_application_too(tmp_path: Path) -> None:
    archive = tmp_path / "dgxcheck.pyz"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in (ROOT / "dgxcheck").rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                packed.write(path, path.relative_to(ROOT))
    script = (
        "from dgxcheck import integrate\n"
        "print(sum(len(integrate.plan(each)) for each in integrate.INTEGRATIONS), integrate.__file__)"
    )
    done = subprocess.run([sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-c", script], cwd="/",
                          env={"PYTHONPATH": str(archive)}, capture_output=True, text=True, check=True)  # fmt: skip
    number, place = done.stdout.split()
    assert int(number) == sum(len(each.files) for each in INTEGRATIONS)
    assert place.startswith(str(archive))
