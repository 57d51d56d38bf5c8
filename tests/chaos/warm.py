"""An interpreter that has judged a box once, and is forked for each run: half of what a run costs is its start."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from live_box import Ran

_LOOP = """
import gc, json, os, sys
from dgxcheck.__main__ import run
from dgxcheck.assessment.health import assess
from dgxcheck.assessment.request import Request
import dgxcheck.cli.commands.health
import dgxcheck.output.health.for_programs.as_json
import dgxcheck.workers.nvml.supervisor

assess("dgx-1-v100", Request())
gc.freeze()
for line in sys.stdin:
    argv, environment, out, err = json.loads(line)
    if (pid := os.fork()) == 0:
        os.environ.clear()
        os.environ.update(environment)
        for number, path in enumerate((os.devnull, out, err)):
            os.dup2(os.open(path, os.O_RDWR), number)
        sys.argv = ["dgxcheck", *argv]
        run(sys.argv.pop(1))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Warm:
    """One run at a time."""

    def __init__(self, folder: Path) -> None:
        self._files = folder / "out", folder / "err"
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen((sys.executable, "-c", _LOOP), stdin=pipe, stdout=pipe, text=True,
                                start_new_session=True)  # fmt: skip

    def run(self, argv: Sequence[str], environment: Mapping[str, str], seconds: float) -> Ran:
        """The command with the tree before its arguments; TimeoutError where it does not end."""
        to, of = self._process.stdin, self._process.stdout
        assert to is not None
        assert of is not None
        for path in self._files:
            path.write_bytes(b"")
        since = time.monotonic()
        print(json.dumps([argv, dict(environment), *map(str, self._files)]), file=to, flush=True)
        if not select.select([of], [], [], seconds)[0]:
            self.end()
            self._process = self._started()
            raise TimeoutError(f"no end within {seconds:g} s")
        code, took = int(of.readline()), time.monotonic() - since
        out, err = (path.read_text(encoding="utf-8", errors="replace") for path in self._files)
        return Ran(code, out, err, took)

    def end(self) -> None:
        """With the run that is under way, if one is, and what it started in its group."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
