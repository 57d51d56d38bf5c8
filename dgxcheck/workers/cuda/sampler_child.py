"""The worker that looks at GPUs during a burn-in: NVML and the error counters of PCIe, once a second.

The plan is one line of JSON on stdin: ``gpus`` (bus ids), ``files`` (name to path of an ``aer_dev_*`` file),
``every_s`` and ``wait_s``. It says ``idle``, with why GPUs are busy after a while in which their jobs might have ended,
then ``sample N`` before and after each look, with the time (monotonic). It ends when stdin does or holds more.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Mapping
from typing import Any

from dgxcheck.rootfs import read_bytes
from dgxcheck.workers.nvml.sampler import WAIT_S, Beside
from dgxcheck.workers.process import SAY


def main() -> None:
    plan = json.loads(_line())
    os.write(SAY, b"idle\n")
    nvml = Beside()
    os.write(SAY, f"idle\t{json.dumps(nvml.busy(plan['gpus'], min(WAIT_S, plan['wait_s'])))}\n".encode())
    number, due = 0, time.monotonic()
    while True:
        key = f"sample {number}"
        os.write(SAY, f"{key}\n".encode())
        os.write(SAY, f"{key}\t{json.dumps(_sample(nvml, plan))}\n".encode())
        number += 1
        due = max(due + plan["every_s"], time.monotonic())
        if select.select([0], [], [], max(0.0, due - time.monotonic()))[0]:
            break
    os.write(SAY, b"done\n")
    # no interpreter shutdown: the driver's own exit handlers can hang
    os._exit(0)


def _sample(nvml: Beside, plan: Mapping[str, Any]) -> dict[str, Any]:
    gpus = {bdf: nvml.sample(bdf) for bdf in plan["gpus"]}
    aer = {name: _total(path) for name, path in plan["files"].items()}
    return {"at": time.monotonic(), "gpus": gpus, "aer": aer}


def _total(path: str) -> int | None:
    """All errors that an ``aer_dev_*`` file counts; None where it tells none."""
    try:
        lines = read_bytes(path).decode("ascii", "replace").splitlines()
    except OSError:
        return None
    counts = [line.rstrip().rpartition(" ") for line in lines]
    found = {name.strip(): int(number) for name, _, number in counts if number.isdecimal() and len(number) < 20}
    totals = [number for name, number in found.items() if name.startswith("TOTAL_ERR")]
    return totals[0] if totals else sum(found.values()) if found else None


def _line() -> str:
    """The first line of stdin, and no byte of what follows."""
    text = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        text += byte
    return text.decode()
