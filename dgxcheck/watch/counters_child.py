"""The worker that reads link state and error counters from sysfs, where a driver may hang.

The plan is one line of JSON on stdin: ``root`` and ``every_s``. It says ``reading N`` before and after each reading,
and ends when stdin does.
"""

from __future__ import annotations

import json
import time

from dgxcheck.source.directory import DirectorySource
from dgxcheck.survey import survey
from dgxcheck.watch.readings import PROBES, readings
from dgxcheck.workers.answers import answer, ask, done, first_line, leave, told_to_end


def main() -> None:
    plan = json.loads(first_line())
    number, due = 0, time.monotonic()
    while True:
        key = f"reading {number}"
        ask(key)
        answer(key, readings(survey(DirectorySource(plan["root"]), PROBES)))
        number += 1
        due = max(due + plan["every_s"], time.monotonic())
        if told_to_end(max(0.0, due - time.monotonic())):
            break
    done()
    leave()
