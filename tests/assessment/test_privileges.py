"""What root and capabilities add, and a health check as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from checkout import ROOT
from live_box import CHILD, Box, serve, shipped, with_gpus
from seam import run

from dgxcheck.assessment.privileges import PRIVILEGES, needed
from dgxcheck.source.recording.load import open_source

PACKAGES = {**os.environ, "PYTHONPATH": f"{ROOT}:{sysconfig.get_path('purelib')}"}
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def test_checks_are_found_by_leaving_facts_out() -> None:
    found = {each.privilege.name: each for each in needed(open_source("dgx-1-v100"))}
    assert [*found] == [privilege.name for privilege in PRIVILEGES]
    assert {"kernel.xid", "kernel.aer"} <= {*found["CAP_SYSLOG"].checks}
    assert all(check.startswith("kernel.") for check in found["CAP_SYSLOG"].checks)
    assert "gdr.acs" in found["CAP_SYS_ADMIN"].checks
    assert {"gpu.lost", "ecc.volatile", "nvlink.state"} <= {*found["access to /dev/nvidia*"].checks}
    assert not any(each.missing for each in found.values())


@pytest.mark.in_ci
def test_the_option_prints_a_paragraph_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "health", "--explain", "privileges", "--from", "dgx-1-v100")
    assert (done.code, done.err) == (0, "")
    assert [line.partition(":")[0] for line in done.out.splitlines() if line[:1].strip()] == [
        privilege.name for privilege in PRIVILEGES
    ]


@cache
def interpreter() -> str | None:
    """A Python of this version that another user can run; capabilities end with the first exec."""
    import_it = "import click, pynvml, dgxcheck"
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        command = (*NOBODY, "sh", "-c", f'exec "$0" -c "{import_it}"', candidate)
        if subprocess.run(command, capture_output=True, env=PACKAGES, cwd="/").returncode == 0:
            return candidate
    return None


@pytest.fixture
def ordinary() -> Iterator[Box]:
    """A machine whose kernel log, serial numbers and configuration spaces only root can read, below a public folder."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user")
    if interpreter() is None:
        pytest.skip("another user cannot run this Python, or read this checkout")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        box = serve(with_gpus(shipped("dgx-1-v100"), 2), folder)
        for path in (box.tree / "dev/kmsg", box.tree / "sys/class/dmi/id/product_serial"):
            path.chmod(0o600)
        for node in (*box.tree.glob("dev/nvidia*"), *box.tree.glob("dev/infiniband/*")):
            node.chmod(0o666)  # as the driver and rdma-core make them
        for config in (box.tree / "sys/bus/pci/devices").glob("*/config"):
            config.write_bytes(config.read_bytes()[:64])
        yield box


def as_nobody(box: Box, library: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    place = box.answers.parent / library.name
    shutil.copy(library, place)
    python = interpreter()
    assert python is not None
    command = (*NOBODY, "sh", "-c", 'exec "$0" "$@"', python, "-c", CHILD, str(box.tree), *argv)
    environment = box.environment(place, PYTHONPATH=PACKAGES["PYTHONPATH"])
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=60)


def test_an_ordinary_user_is_told_what_is_missing(ordinary: Box, standin: Path) -> None:
    done = as_nobody(ordinary, standin, "health", "--explain", "privileges")
    assert (done.returncode, done.stderr) == (0, "")
    missing = [line.partition(":")[0] for line in done.stdout.splitlines() if line.endswith(": missing")]
    assert missing == ["CAP_SYSLOG", "CAP_SYS_ADMIN", "CAP_DAC_READ_SEARCH"]


def test_an_ordinary_user_gets_no_fault_for_lack_of_rights(ordinary: Box, standin: Path) -> None:
    done = as_nobody(ordinary, standin, "health", "--profile", "none", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {each["status"] for each in json.loads(done.stdout)["findings"]} == {"pass", "skip"}
    reasons = {each["id"]: each["reason"] for each in json.loads(done.stdout)["findings"]}
    assert (reasons["kernel.xid"], reasons["gdr.acs"]) == ("no-permission", "no-permission")
