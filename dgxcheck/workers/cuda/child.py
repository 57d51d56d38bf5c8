"""The CUDA worker: measures step by step what its plan says, and streams each key before and each fact after it.

The plan is one line of JSON on stdin: ``library``, ``steps``, ``between_ms``. It ends with ``done``, or with exit code
``SPENT`` where the driver has broken this process and the rest needs a new one.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from dgxcheck.cuda import environment
from dgxcheck.workers.process import SAY

SPENT = 9


def main() -> None:
    plan = json.loads(sys.stdin.readline())
    environment.prepare()  # before the library is loaded
    from dgxcheck.cuda.session import START, Session

    nvml = _nvml()
    busy: dict[str, str] = {}
    session = Session(plan, busy.get, nvml.look if nvml else lambda bdf: {})
    _say(START)
    begun = session.start()
    if "value" in begun and nvml is not None:
        busy.update(nvml.busy(sorted({bdf for step in plan["steps"] for bdf in step["gpus"]}), own=plan.get("own", ())))
    _say(START, begun)
    spent = "value" not in begun
    for step in () if spent else plan["steps"]:
        _say(step["key"])
        fact = session.answer(step)
        _say(step["key"], fact)
        if fact.get("sticky"):
            os._exit(SPENT)
    if not spent:
        _say("closing")
        session.close()
    os.write(SAY, b"done\n")
    # no interpreter shutdown: the driver's own exit handlers can hang
    os._exit(0)


def _nvml() -> Any:
    """NVML beside CUDA, where its binding is to be had."""
    try:
        from dgxcheck.workers.nvml.sampler import Beside
    except ImportError:
        return None
    return Beside()


def _say(key: str, fact: Any = None) -> None:
    text = key if fact is None else f"{key}\t{json.dumps(fact)}"
    os.write(SAY, f"{text}\n".encode())
