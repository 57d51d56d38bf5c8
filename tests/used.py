"""What a program took of the machine, without what the tests' own process holds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

# the peak of a process is at least its parent's size when it began, as exec keeps it: getrusage(2). A small one between
_BETWEEN = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
"""


class Used(NamedTuple):
    printed: str
    cpu_s: float
    peak_kib: int


def used(words: list[str], environment: Mapping[str, str], cwd: Path | None = None) -> Used:
    """The peak is that of the largest process; printed is standard output."""
    command = (sys.executable, "-c", _BETWEEN, *words)
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=True, timeout=300)
    cpu_s, peak_kib = done.stderr.splitlines()[-1].split()
    return Used(done.stdout, float(cpu_s), int(peak_kib))
