"""A worker that follows a script, in ``WORKER_DOUBLE``, by the ``units`` of its plan."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

ASKED_AGAIN = ("nvml nvmlInit", "nvml nvmlDeviceGetHandleByIndex")


def main() -> None:
    script = json.loads(os.environ["WORKER_DOUBLE"])
    plan = json.loads(sys.stdin.readline()) if "unread" not in script else {}
    units = plan.get("units")
    steps = script.get(json.dumps(units), script.get("*", []))
    for verb, *rest in steps:
        if verb == "ask":
            os.write(3, f"{rest[0]}\n".encode())
        elif verb == "tell" and (rest[0] not in plan.get("known", {}) or rest[0].startswith(ASKED_AGAIN)):
            os.write(3, f"{rest[0]}\n{rest[0]}\t{json.dumps(rest[1])}\n".encode())
        elif verb == "echo":
            os.write(3, f"plan\t{json.dumps(plan)}\n".encode())
        elif verb == "raw":
            os.write(3, rest[0].encode())
        elif verb == "flood":
            while True:
                os.write(3, rest[0].encode() * 1000)
        elif verb == "sleep":
            time.sleep(rest[0])
        elif verb == "die":
            os.kill(os.getpid(), signal.Signals[rest[0]])
        elif verb == "exit":
            os._exit(rest[0])
        elif verb == "hang":
            while True:
                signal.pause()
    os.write(3, b"done\n")
    os._exit(0)
