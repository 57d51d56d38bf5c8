"""The service's command reads a box under the restrictions of its unit, as root and as an ordinary user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import ROOT
from confinement import HIDDEN, NUMBERS, command_of_unit, confined
from live_box import CHILD, Box, serve, shipped
from programs import STRICT, lacking, program
from standin import nvml

OF_A_USER = ("CAP_SYSLOG", "CAP_SYS_ADMIN", "CAP_DAC_READ_SEARCH")
"""As the unit's comment has them for User=."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a box that is served live, with the places that the unit may write to."""
    if os.getuid() or subprocess.run((program("unshare"), "--mount", "true"), check=False).returncode:
        lacking("only root can set up a unit's restrictions by hand")
    for needed in (sys.prefix, sys.base_prefix, str(ROOT)):
        if place := next((place for place in HIDDEN if Path(needed).is_relative_to(place)), None):
            pytest.skip(f"{needed} lies below {place}, which the unit hides: clone to another place to run this test")
    if not NUMBERS.exists():
        lacking(f"{NUMBERS} is not there: the filter of system calls is written for x86-64")
    for name in ("library", "box", "out", "state", "run"):
        (tmp_path / name).mkdir(mode=0o755)
    return tmp_path


@pytest.fixture
def user() -> Iterator[int]:
    """A real user, for CI: elsewhere no test adds one to the machine."""
    if not os.environ.get(STRICT):
        pytest.skip(f"adds a user to the machine; runs where {STRICT} is set (CI)")
    name = f"dgxcheck-{os.getpid()}"
    subprocess.run((program("useradd"), "--system", "--no-create-home", name), check=True)
    done = subprocess.run(("id", "-u", name), capture_output=True, text=True, check=True)
    yield int(done.stdout)
    subprocess.run((program("userdel"), name), check=True)


def metrics(folder: Path, box: Box, user: int | None) -> list[str]:
    """What the service writes; without ``user`` unconfined. A user owns the device nodes, where in life its group
    may open them."""
    file = folder / "out/dgxcheck.prom"
    command = [sys.executable, "-c", CHILD, str(box.tree), *command_of_unit(), "--metrics", "all", "-o", str(file)]
    environment = box.environment(folder / "library" / nvml.SONAME) | {
        "STATE_DIRECTORY": str(folder / "state"), "RUNTIME_DIRECTORY": str(folder / "run"),
    }  # fmt: skip
    if user is not None:
        command = confined(folder, command, user, OF_A_USER if user else ())
        for path in (folder / "out", folder / "state", folder / "run", *(box.tree / "dev").rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1, 2, 3), done.stderr
    assert "Traceback" not in done.stderr
    written = file.read_text()
    file.unlink()
    return re.findall(r"^(dgxcheck_(?:verdict|check_status|findings|coverage|score)\S* \S+)", written, re.MULTILINE)


def differing(before: list[str], after: list[str]) -> list[str]:
    """Metrics that one of the two runs has alone."""
    return sorted({*before} ^ {*after})


@pytest.fixture
def box(folder: Path) -> Box:
    nvml.build(folder / "library")
    return serve(shipped("dgx-1-v100"), folder / "box")


def test_it_reads_the_box_as_root(folder: Path, box: Box) -> None:
    before = metrics(folder, box, None)
    shutil.rmtree(folder / "state")
    (folder / "state").mkdir()
    assert len(before) > 500
    assert differing(before, metrics(folder, box, 0)) == []


def test_it_reads_the_box_as_an_ordinary_user(folder: Path, box: Box, user: int) -> None:
    before = metrics(folder, box, None)
    shutil.rmtree(folder / "state")
    (folder / "state").mkdir()
    assert differing(before, metrics(folder, box, user)) == []


@pytest.mark.parametrize(
    "forbidden",
    [
        "open('/etc/dgxcheck-was-here', 'w')", "open('/proc/sys/kernel/hostname', 'w').write('x')",
        "import socket; socket.socket(socket.AF_INET)", "import os; os.chroot('/tmp')", "import os; os.setuid(1)",
        "import time; time.clock_settime(time.CLOCK_REALTIME, 0)", "import os; os.listdir('/home')[0]",
    ],
)  # fmt: skip
def test_the_restrictions_are_in_force(folder: Path, forbidden: str) -> None:
    done = subprocess.run(confined(folder, [sys.executable, "-c", forbidden]), capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip
    assert done.returncode == 1
    assert re.search(r"PermissionError|Errno 30|Errno 97|Errno 1\b|IndexError", done.stderr), done.stderr
