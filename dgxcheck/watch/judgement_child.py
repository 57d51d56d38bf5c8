"""The worker that judges the machine once, as ``dgxcheck health`` does.

The plan is one line of JSON on stdin: ``root``, ``profile``, ``config``, ``state``, ``deadline`` and ``known``, the
keys of earlier bad findings. It says ``judgement`` before and after: verdict, bad findings, which of the known ones
pass now, are acknowledged or are not judged, is persistence mode on for all GPUs, and which GPU is at which bus id?
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from dgxcheck.assessment.health import assess
from dgxcheck.assessment.request import Request
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.facts.bdf import is_bdf
from dgxcheck.facts.missing import BadInput, Json, Missing, rows
from dgxcheck.facts.nvml.gpu import GpuModes
from dgxcheck.source import state_file
from dgxcheck.watch.event import Event
from dgxcheck.watch.fold import RANK
from dgxcheck.watch.log_events import log_events
from dgxcheck.workers.answers import answer, ask, end, first_line

JUDGEMENT = "judgement"
_NOT_JUDGED = (Status.SKIP, Status.UNKNOWN)


def main() -> None:
    gc.enable()
    plan = json.loads(first_line())
    ask(JUDGEMENT)
    answer(JUDGEMENT, judged(plan))
    end()


def judged(plan: dict[str, Any]) -> dict[str, Json]:
    """What the loop needs of a judgement, or ``error``: why there is none."""
    state, trouble = _usable(plan["state"])
    request = Request(profile=plan["profile"], config=plan["config"], state=state, deadline=plan["deadline"])
    try:
        assessment = assess(None, request, root=plan["root"])
    except BadInput as error:
        return {"error": str(error), "trouble": trouble}
    return document(assessment, plan["known"]) | {"trouble": trouble}


def _usable(path: str) -> tuple[str | None, str]:
    """The state file of the watch, and what became of one that is none: it is the watch's own, and begun again.
    One that cannot be read is left alone."""
    try:
        state_file.read(path)
        return path, ""
    except state_file.Damaged as error:
        try:
            os.replace(path, f"{path}.damaged")
        except OSError as why:
            return None, f"{error}; it cannot be moved: {why.strerror}"
        return path, f"{error}; moved to {os.path.basename(path)}.damaged, and begun again"
    except BadInput as error:
        return None, str(error)


def document(assessment: Assessment, known: Collection[str]) -> dict[str, Json]:
    """What the loop needs of an assessment."""
    bad = [finding for finding in assessment.findings if finding.counts]
    found, listed = assessment.found, {row.bdf for row in rows(assessment.snapshot.pci)}
    now = {key: _status_now(key, found, listed) for key in known}
    log = assessment.snapshot.kernel_log
    logged = () if isinstance(log, Missing) else log_events(log, lambda bdf, number: 0, past=False)
    return {
        "passed": [key for key, status in now.items() if status is Status.PASS],
        "acknowledged": [key for key in known if key in found and found[key].acknowledged],
        "unjudged": [key for key, status in now.items() if status in _NOT_JUDGED],
        "verdict": assessment.verdict.value,
        "persistence": _persistence(assessment.snapshot.gpu_modes),
        "uuids": {gpu.bdf: gpu.uuid for gpu in assessment.snapshot.listed_gpus if isinstance(gpu.uuid, str)},
        "findings": {
            finding.key: {
                "status": finding.status.value, "bdf": finding.subject.bdf or "", "text": finding.judgement.message,
                "log": finding.witness == "log" and any(_reports(event, finding) for event in logged),
            }
            for finding in bad
        },
    }  # fmt: skip


def _reports(event: Event, finding: Finding) -> bool:
    """Does an event of the log say as much as the finding? One of the host is about the line that it quotes."""
    if event.bdf != (finding.subject.bdf or "") or RANK.index(event.status) < RANK.index(finding.status):
        return False
    line = event.text.partition(": ")[2]
    return bool(event.bdf) or any(str(each.value).startswith(line) for each in finding.judgement.evidence)


def _status_now(key: str, found: Mapping[str, Finding], listed: AbstractSet[str]) -> Status | None:
    """Of an earlier finding: by its own finding, else by those of its parts, else by that of what it is a part of.

    ``driver.fabric`` fails once if no GPU is registered, and passes for each GPU; ``gdr.acs`` is the other way round.
    A check that passes for no device names the odd ones alone: one that it no longer names is as the others, if PCI
    still lists it.
    """
    parts = [finding for name, finding in found.items() if name.startswith(f"{key}/")]
    if parts and key not in found:
        return Status.SKIP if all(finding.status in _NOT_JUDGED for finding in parts) else Status.PASS
    whole = key
    while whole and whole not in found:
        whole = whole.rpartition("/")[0]
    if whole:
        return Status.PASS if found[whole].acknowledged else found[whole].status
    check, *places = key.split("/")
    others = {finding.status for finding in found.values() if finding.id == check}
    bdfs = set(filter(is_bdf, places))
    return Status.PASS if others.intersection(BAD) and Status.PASS not in others and bdfs and bdfs <= listed else None


def _persistence(modes: tuple[GpuModes, ...] | Missing) -> Json:
    """False if any GPU has it off; null where that is not known."""
    answered = [row.persistence for row in rows(modes) if isinstance(row.persistence, bool)]
    return all(answered) if answered else None
