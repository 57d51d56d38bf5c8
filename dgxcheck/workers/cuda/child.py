"""The CUDA worker: measures step by step what its plan says, and streams each key before and each fact after it.

The plan is one line of JSON on stdin: ``library``, ``steps``, ``between_ms``. It ends with ``done``, or with exit code
``SPENT`` where the driver has broken this process and the rest needs a new one.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dgxcheck.cuda import environment
from dgxcheck.workers.answers import SPENT, answer, ask, end, leave


def main() -> None:
    plan = json.loads(sys.stdin.readline())
    environment.prepare()  # before the library is loaded
    from dgxcheck.cuda.session import START, Session

    nvml = _nvml()
    busy: dict[str, str] = {}
    session = Session(plan, busy.get, nvml.look if nvml else lambda bdf: {})
    ask(START)
    begun = session.start()
    if "value" in begun and nvml is not None:
        busy.update(nvml.busy(sorted({bdf for step in plan["steps"] for bdf in step["gpus"]}), own=plan.get("own", ())))
    answer(START, begun)
    spent = "value" not in begun
    for step in () if spent else plan["steps"]:
        ask(step["key"])
        fact = session.answer(step)
        answer(step["key"], fact)
        if fact.get("sticky"):
            leave(SPENT)
    if not spent:
        ask("closing")
        session.close()
    end()


def _nvml() -> Any:
    """NVML beside CUDA; None where its binding does not load."""
    try:
        from dgxcheck.workers.nvml.sampler import NvmlSampler
    except ImportError:
        return None
    return NvmlSampler()
