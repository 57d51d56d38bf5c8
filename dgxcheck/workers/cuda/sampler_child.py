"""The worker that looks at GPUs during a burn-in: NVML and the error counters of PCIe, once a second.

The plan is one line of JSON on stdin: ``gpus`` (bus ids), ``files`` (name to path of an ``aer_dev_*`` file),
``every_s`` and ``wait_s``. It says ``idle``, with why GPUs are busy after a while in which their jobs might have ended,
then ``sample N`` before and after each look, with the time (monotonic). It ends when stdin does or holds more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from dgxcheck.rootfs import read_bytes
from dgxcheck.workers.answers import answer, ask, at_intervals, first_line
from dgxcheck.workers.nvml.sampler import WAIT_S, NvmlSampler


def main() -> None:
    plan = json.loads(first_line())
    ask("idle")
    nvml = NvmlSampler()
    answer("idle", nvml.busy(plan["gpus"], min(WAIT_S, plan["wait_s"])))
    at_intervals("sample", plan["every_s"], lambda: _sample(nvml, plan))


def _sample(nvml: NvmlSampler, plan: Mapping[str, Any]) -> dict[str, Any]:
    gpus = {bdf: nvml.sample(bdf) for bdf in plan["gpus"]}
    aer = {name: _total(path) for name, path in plan["files"].items()}
    return {"at": time.monotonic(), "gpus": gpus, "aer": aer}


def _total(path: str) -> int | None:
    """All errors that an ``aer_dev_*`` file counts; None where it cannot be read or has no counts."""
    try:
        lines = read_bytes(path).decode("ascii", "replace").splitlines()
    except OSError:
        return None
    counts = [line.rstrip().rpartition(" ") for line in lines]
    errors = {name.strip(): int(number) for name, _, number in counts if number.isdecimal() and len(number) < 20}
    totals = [number for name, number in errors.items() if name.startswith("TOTAL_ERR")]
    return totals[0] if totals else sum(errors.values()) if errors else None
