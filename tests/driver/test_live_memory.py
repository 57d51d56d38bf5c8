"""A health check of a whole machine takes little memory: the command and each of its workers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from live_box import CHILD, Box

MOST_KIB = 40_000
MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.parametrize("name", ["dgx-a100", "dgx-2"])
def test_a_default_run_stays_below_40_mb(served: Callable[[str], Box], standin: Path, name: str) -> None:
    box = served(name)
    command = (sys.executable, "-c", MEASURED, sys.executable, "-c", CHILD, str(box.tree), "health")
    done = subprocess.run(command, env=box.environment(standin), capture_output=True, text=True, check=True, timeout=60)
    assert 10_000 < int(done.stdout) < MOST_KIB
