"""The worker that reads link state and error counters from sysfs, where a driver may hang.

The plan is one line of JSON on stdin: ``root`` and ``every_s``. It says ``reading N`` before and after each reading,
and ends when stdin does.
"""

from __future__ import annotations

import json

from dgxcheck.source.directory import DirectorySource
from dgxcheck.survey import survey
from dgxcheck.watch.readings import PROBES, readings
from dgxcheck.workers.answers import at_intervals, first_line


def main() -> None:
    plan = json.loads(first_line())
    # a new source each time: one remembers what it has listed, and reads a limited number of bytes
    at_intervals("reading", plan["every_s"], lambda: readings(survey(DirectorySource(plan["root"]), PROBES)))
