"""The worker that reads link state and error counters from sysfs, where a driver may hang.

The plan is one line of JSON on stdin: ``root`` and ``every_s``. It says ``reading N`` before and after each reading,
and ends when stdin does.
"""

from __future__ import annotations

import gc
import json
from contextlib import closing

from dgxcheck.source.directory import DirectorySource
from dgxcheck.survey import survey
from dgxcheck.watch.readings import PROBES, Readings, readings
from dgxcheck.workers.answers import at_intervals, first_line


def main() -> None:
    gc.enable()
    plan = json.loads(first_line())
    at_intervals("reading", plan["every_s"], lambda: read_once(plan["root"]))


def read_once(root: str) -> Readings:
    """Through a source of its own: one remembers what it has listed, and reads a limited number of bytes."""
    with closing(DirectorySource(root)) as source:
        return readings(survey(source, PROBES))
