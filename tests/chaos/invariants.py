"""What holds after every run, whatever was sick."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from live_box import Ran
from processes import is_there

from chaos.cases import Case

VERDICTS = {"pass": 0, "warn": 1, "fail": 2, "unknown": 3}
SLACK_S = 2.0
_UNHEARD = ("stdout closed", "stdout full")


def broken(case: Case, ran: Ran, left: Path, spare: float, cut_short: bool = False) -> Iterator[str]:
    """One line for each thing that does not hold; ``left`` is what the run could write to."""
    if cut_short:
        pass
    elif ran.code not in VERDICTS.values():
        yield f"exit code {ran.code}"
    for word in ("Traceback", "internal error"):
        if word in ran.err or word in ran.out:
            yield f"{word}: {ran.err[-300:]}"
    if ran.seconds > case.seconds + SLACK_S + spare:
        yield f"{ran.seconds:.1f} s with a deadline of {case.seconds:g} s"
    if ran.err.count("\n") > 3:
        yield f"{ran.err.count(chr(10))} lines on stderr"
    if ran.out and not cut_short:
        yield from _report(case, ran)
    elif not cut_short and case.what not in _UNHEARD and (ran.code != VERDICTS["unknown"] or not ran.err):
        yield f"no report, exit code {ran.code}: {ran.err[-300:]}"
    yield from (f"left behind: {path.name}" for path in left.rglob("*") if path.suffix == ".tmp")
    for state in left.rglob("counters.json"):
        try:
            json.loads(state.read_text())
        except ValueError:
            yield "half-written state file"


def _report(case: Case, ran: Ran) -> Iterator[str]:
    try:
        document = json.loads(ran.out)
    except ValueError:
        yield f"no JSON: {ran.out[:100]!r}"
        return
    if VERDICTS.get(document["verdict"]) != ran.code:
        yield f"verdict {document['verdict']}, exit code {ran.code}"
    worst = {finding["status"] for finding in document["findings"]} - {"skip"}
    if document["verdict"] == "pass" and worst - {"pass"}:
        yield f"pass in spite of {worst}"
    if case.must_not_pass and document["verdict"] == "pass":
        yield "pass"


def processes_of(answers: Path) -> list[int]:
    """Processes that were started for this box and still run."""
    mark, found = f"NVML_STANDIN={answers}".encode(), []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if is_there(int(name)) and mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
        except OSError:
            continue
    return found
