"""What is built holds what it should, and runs from an empty virtual environment."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from checkout import ROOT
from programs import program

from dgxcheck import __version__
from dgxcheck.cli import main
from dgxcheck.input_file import load as load_toml
from dgxcheck.source.recording.load import shipped

DATA = f"dgxcheck-{__version__}.data/data/share"
SOURCES = ("dgxcheck", "probes")
APART = ("dgxcheck/completions/",)
"""Installed under share/, not as part of the package."""
PROFILES = "dgxcheck/profiles"


def ran(words: list[str], cwd: Path) -> str:
    """The output of a command that must succeed, outside this checkout and its environment."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, f"{' '.join(words)}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def inside(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def tracked(folder: str, pattern: str = "**/*") -> set[str]:
    """Files of a folder of the checkout, without what running leaves behind."""
    found = (path.relative_to(ROOT) for path in (ROOT / folder).glob(pattern) if path.is_file())
    return {str(path) for path in found if "__pycache__" not in path.parts and path.suffix != ".pyc"}


def copied(folder: Path) -> None:
    """What is tracked, and nothing beside it."""
    for file in ran([program("git"), "ls-files", "-z"], ROOT).split("\0")[:-1]:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, folder / file)


@pytest.mark.in_ci
def test_the_tests_are_found_where_no_recordings_lie_beside_the_checkout(tmp_path: Path) -> None:
    copied(tmp_path / "alone")
    words = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", "-p", "no:xdist"]
    found = ran(words, tmp_path / "alone")
    assert "tests/readers/test_smi_dumps.py" in found


@pytest.mark.exhaustive
def test_what_is_built_twice_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From copies of other age, place and mode: only what is in the files counts."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    digests = []
    for number, name in enumerate(("a", "elsewhere/b")):
        copy, out = tmp_path / name, tmp_path / f"dist-{number}"
        copied(copy)
        for place in (path for path in copy.rglob("*") if path.is_file()):
            os.utime(place, (10**9 + number * 10**6,) * 2)
            place.chmod(0o600 if number else 0o664)
        ran([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)], tmp_path)
        digests.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()})
    assert len(digests[0]) == 2
    assert digests[0] == digests[1]


def test_every_locked_version_has_hashes_and_every_dependency_is_locked() -> None:
    locked = (ROOT / "requirements-dev.txt").read_text()
    names = re.findall(r"^([a-z0-9._-]+)==\S+", locked, re.MULTILINE)
    assert len(names) == len(re.findall(r"^[a-z0-9._-]+==[^\n]*\\\n    --hash=sha256:", locked, re.MULTILINE))
    project = load_toml(str(ROOT / "pyproject.toml"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    assert {re.split(r"[><=; ]", each)[0].lower() for each in wanted} <= {*names}


def test_the_wheel_holds_every_module_and_data_file(inside: set[str]) -> None:
    code = {name for folder in SOURCES for name in tracked(folder) if not name.startswith(APART)}
    assert code - tracked(PROFILES, "*.toml") <= inside
    assert "dgxcheck/py.typed" in inside
    assert {
        f"dgxcheck/schemas/{name}.schema.json" for name in ("topo", "health", "list", "diff", "recording", "overlay")
    } <= inside


def test_the_wheel_holds_the_profiles_as_one_file_that_says_what_theirs_say(wheel: Path, inside: set[str]) -> None:
    compiled = json.loads(zipfile.ZipFile(wheel).read(f"{PROFILES}/shipped.json"))
    assert compiled == {Path(name).stem: load_toml(str(ROOT / name)) for name in tracked(PROFILES, "*.toml")}
    assert not {name for name in inside if name.endswith(".toml")}
    assert "shipped.json" not in {path.name for path in (ROOT / PROFILES).iterdir()}, "it would go before the sources"


def test_the_wheel_holds_every_recording(inside: set[str]) -> None:
    recordings = {f"dgxcheck/{name}" for name in tracked("fixtures", "*.json") | tracked("fixtures", "faults/*.json")}
    assert recordings
    assert {name for name in inside if name.startswith("dgxcheck/fixtures/")} == recordings


def test_the_wheel_holds_man_pages_and_completions(inside: set[str]) -> None:
    pages = {f"{DATA}/man/man{name[-1]}/{Path(name).name}" for name in tracked("man", "*.[1-9]")}
    assert pages
    assert {name for name in inside if name.startswith(f"{DATA}/man/")} == pages
    assert {name for name in inside if name.startswith(DATA)} - pages == {
        f"{DATA}/bash-completion/completions/dgxcheck",
        f"{DATA}/zsh/site-functions/_dgxcheck",
        f"{DATA}/fish/vendor_completions.d/dgxcheck.fish",
    }


def test_the_wheel_holds_nothing_else(inside: set[str]) -> None:
    tops = {name.partition("/")[0] for name in inside}
    assert tops == {*SOURCES, f"dgxcheck-{__version__}.data", f"dgxcheck-{__version__}.dist-info"}
    of_the_alerts = "dgxcheck/integrations/dgxcheck-alerts.test.yml"
    tools = {name for name in inside if name.startswith("dgxcheck/readers/")}  # named after the tools: p2p_test.py
    others = inside - tools - {of_the_alerts}
    assert not {name for name in others if "reconstruct" in name or "test" in name or name.endswith(".pyc")}


def test_the_sdist_holds_what_the_project_is_made_of(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = {"README.md", "INSTALL.md", "PYTHON.md", "CHANGELOG.md", "LICENSE"}
    single = pages | {"Makefile", "pyproject.toml", "hatch_build.py", ".ci/run"}
    assert single | {name for folder in (*SOURCES, "fixtures", "man", "tests") for name in tracked(folder)} <= names
    assert not {name for name in names if "__pycache__" in name or name.startswith((".venv", ".git/"))}


def test_the_wheel_runs_from_an_empty_environment(
    wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "venv"
    venv.create(home, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin/python"), "install", "--no-compile", "--quiet"]
    ran([*pip, str(wheel)], tmp_path)
    command = str(home / "bin/dgxcheck")
    assert main(["topo", "-m", "--from", "dgx-1-v100"]) == 0
    assert ran([command, "topo", "-m", "--from", "dgx-1-v100"], tmp_path) == capsys.readouterr().out
    listed = ran([command, "recordings"], tmp_path)
    assert all(name in listed for name, _ in shipped())
    assert main(["profiles"]) == 0
    assert ran([command, "profiles"], tmp_path) == capsys.readouterr().out
    assert ran([command, "schema", "topo"], tmp_path).startswith("{")
    assert (home / "share/man/man1/dgxcheck-topo.1").is_file()
    assert (home / "share/bash-completion/completions/dgxcheck").is_file()
    ran([command, "integrate", "slurm", "--write", "--root", str(tmp_path)], tmp_path)
    assert os.access(tmp_path / "etc/slurm/dgxcheck/slurm-healthcheck.sh", os.X_OK)
