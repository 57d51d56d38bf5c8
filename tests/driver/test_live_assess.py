"""The Python API on a live box of both stand-ins: silent, repeatable, followed by a progress, no worker left."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from live_box import Box
from standin import cuda

GPUS, MEMORY_MIB = 2, 1100
PROGRAM = """
import json, sys
from contextlib import contextmanager

import psutil

from dgxcheck.assessment import Progress, Request, assess, examine

class Steps(Progress):
    @contextmanager
    def measuring(self, steps):
        self.total, self.done = steps, []
        yield lambda key, done: self.done.append(done)

root, steps = sys.argv[1], Steps()
quick = [assess(source, Request(level="quick", profile="none"), root=root) for source in (None, "live")]
wiring = examine(root=root)
measured = assess(request=Request(level="extended", only=("measure",), profile="none"), progress=steps, root=root)
print(json.dumps({
    "verdicts": [each.verdict.value for each in (*quick, measured)],
    "kinds": [each.origin.kind for each in (*quick, wiring, measured)],
    "gpus": [gpu.bdf for gpu in wiring.topology.gpus],
    "same": quick[0].diagnosis == quick[1].diagnosis,
    "figures": len(measured.figures), "total": steps.total, "most": max(steps.done),
    "children": len(psutil.Process().children()),
}))
"""


def test_a_live_box_is_judged_in_process(
    served: Callable[..., Box], standin: Path, cuda_library: Path, tmp_path: Path
) -> None:
    box = served("dgx-1-v100", GPUS)
    (tmp_path / "cuda-box").write_text(cuda.dgx1_v100(GPUS, MEMORY_MIB).text())
    environment = cuda.environment(
        cuda_library, tmp_path / "cuda-box", ledger=tmp_path / "ledger",
        base=box.environment(standin, XDG_RUNTIME_DIR=str(tmp_path)),
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(box.tree)], env=environment, capture_output=True,
                          text=True, timeout=200, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["verdicts"] == ["pass"] * 3
    assert answer["kinds"] == ["live"] * 4
    assert len(answer["gpus"]) == GPUS
    assert answer["same"] is True
    assert answer["figures"] > 0
    assert 0 < answer["most"] <= answer["total"]
    assert answer["children"] == 0
