"""``make new-check``: its skeletons pass all that a check has to pass, and touch few files."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from checkout import ROOT
from golden_text import UPDATE
from sample import swept
from transcripts import recipe

MOST_FILES = 7
"""With the change log, which ``make new-check`` leaves to people."""
COPIED = ("dgxcheck", "fixtures", "man", "probes", "tests", "CHANGELOG.md", "Makefile", "README.md", "pyproject.toml")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A copy of the checkout."""
    copied = tmp_path / "checkout"
    copied.mkdir()
    subprocess.run(("cp", "-a", *(ROOT / each for each in COPIED), copied), check=True)
    return copied


def contents(checkout: Path) -> dict[str, bytes]:
    files = (path for path in checkout.rglob("*") if path.is_file() and "cache" not in str(path.relative_to(checkout)))
    return {path.relative_to(checkout).as_posix(): sha256(path.read_bytes()).digest() for path in files}


def python(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout), UPDATE: "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        (sys.executable, *arguments), cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )


def new_check(checkout: Path, name: str, *more: str) -> subprocess.CompletedProcess[str]:
    """As ``make new-check`` runs it."""
    assert recipe((ROOT / "Makefile").read_text(encoding="utf-8"), "new-check") == (
        "python tests/new_check.py $(NAME) $(PACKAGE)"
    )
    return python(checkout, "tests/new_check.py", name, *more)


more = pytest.mark.exhaustive


@pytest.mark.in_ci
@pytest.mark.parametrize(
    ("name", "check", "test", "golden"),
    swept([
        ("host.load-average", "host/load_average.py", "test_host_load_average.py", "::test_every_finding_is_golden"),
        ("host.uptime", "host/uptime.py", "test_host_uptime.py", ""),
        # the registry imports a module of this name from another package
        ("gpu.memory", "gpu/memory.py", "test_gpu_memory.py", "::test_every_finding_is_golden"),
    ], 3),
)
def test_a_skeleton_passes_and_touches_few_files(name: str, check: str, test: str, golden: str, scratch: Path) -> None:
    before = contents(scratch)
    result = new_check(scratch, name)
    assert result.returncode == 0, result.stderr
    added = {f"dgxcheck/checks/{check}", f"tests/checks/{test}"}
    registry = "dgxcheck/checks/registry.py"
    for command in (
        ("-m", "ruff", "check", *added, registry),
        ("-m", "pytest", "-p", "no:cacheprovider", f"tests/checks/{test}", f"tests/test_golden.py{golden}"),
        ("tests/check_paragraphs.py",),
        ("tests/fault_words.py",),
        ("tests/threshold_list.py",),
    ):
        result = python(scratch, *command)
        assert result.returncode == 0, result.stdout + result.stderr
    after = contents(scratch)
    changed = {file for file in after if after[file] != before.get(file)}
    remedies = "dgxcheck/checks/remedies.tsv"
    found = "tests/golden/findings.txt"
    assert changed == {*added, registry, remedies, "man/dgxcheck-health.1", "tests/golden/health-v.txt", found}
    assert len({*changed, "CHANGELOG.md"} - {found}) <= MOST_FILES, "what its own test finds writes itself"
    assert f".It Cm {name}\n" in (scratch / "man" / "dgxcheck-health.1").read_text(encoding="utf-8")


@more
@pytest.mark.parametrize("name", ["host.load-average", "gpu.memory"])
def test_a_skeleton_has_strict_types(name: str, scratch: Path) -> None:
    new_check(scratch, name)
    result = python(scratch, "-m", "mypy", "--cache-dir", str(scratch / ".cache"), "dgxcheck/checks", "tests/checks")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("uptime",), "'uptime' is not a name of the form subject.word or subject.two-words"),
        (("Host.Uptime",), "'Host.Uptime' is not a name of the form subject.word or subject.two-words"),
        (("coffee.level",), "no package has checks of the subject 'coffee'; add PACKAGE= and one of answers"),
        (("host.uptime", "coffee"), "there is no package dgxcheck/checks/coffee"),
        (("host.memory",), "dgxcheck/checks/host/memory.py exists already"),
    ],
)
def test_what_cannot_be_made(arguments: tuple[str, ...], message: str) -> None:
    result = new_check(ROOT, *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(message)
