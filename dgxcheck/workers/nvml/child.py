"""The NVML worker: asks what its plan says and streams each question before and each answer after it.

The plan is one line of JSON on stdin: ``groups`` of ``nvml_plan``; ``units`` (``system``, GPU indexes, ``pairs``; null
for all); ``known`` answers by key, which are used but not asked again; ``avoid``, GPU indexes to leave out of pairs.
A worker whose parent is killed is killed as well, as soon as the driver lets it go.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType

from dgxcheck.facts.missing import NO_WORKER, Gap
from dgxcheck.workers.answers import answer, done, leave


class _Util(ModuleType):
    """What pynvml imports of ``ctypes.util`` and calls on Windows alone; the real one drags half of the library in."""

    find_library = None


def main() -> None:
    sys.modules.setdefault("ctypes.util", _Util("ctypes.util"))
    try:
        from dgxcheck.workers.nvml.walk import walk
    except ImportError as error:
        detail = f"the Python package nvidia-ml-py does not load: {error}"
        answer("nvml nvmlInit", {"missing": Gap.TIMEOUT.value, "detail": detail, "code": NO_WORKER})
        done()
    else:
        walk(json.loads(sys.stdin.readline()))
    leave()  # without nvmlShutdown, which can hang: the kernel closes the driver's nodes
