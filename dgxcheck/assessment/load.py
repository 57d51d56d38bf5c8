"""Everything that loads the live machine: measurements, then a burn-in, as facts of the machine."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.assessment import burn_in, measure
from dgxcheck.assessment.progress import Progress
from dgxcheck.assessment.request import Request
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.source.protocol import Source

UNDER_LOAD = ("measure.", "pcie.width", "pcie.generation")
"""What the ids of the checks begin with that judge what was measured."""
BURN_IN = "measure.burn-in"


def under_load(
    box: Box, source: Source, request: Request, checks: Sequence[Check], progress: Progress, root: str
) -> Box:  # fmt: skip
    """The box with what was measured, and with a burn-in's counter growth and kernel log.

    Nothing is measured that none of ``checks`` judges. ``root``: where the machine's files are.
    """
    judging = [check for check in CHECKS if check.id.startswith("measure.")]

    def judge(measurements: measure.Measurements) -> tuple[Finding, ...]:
        return run(_with_measurements(box, measurements), judging)

    facts: dict[str, Json] = {}
    whole = True
    if any(check.id.startswith(UNDER_LOAD) and check.id != BURN_IN for check in checks):
        facts, whole = measure.measure(
            box.snapshot, box.topology, box.gpus, judge, request.test_seconds, request.long, progress
        )
    growth, kernel_log = box.growth, box.snapshot.kernel_log
    if request.duration is not None:
        if whole:
            burned = burn_in.burn_in(
                box, source, request.duration, request.test_seconds, burn_in.not_loaded(box, facts), progress, root
            )
            facts |= burned.measured
            growth, kernel_log = burned.growth, burned.kernel_log
        else:
            facts |= burn_in.interrupted_before(request.duration)
    if facts and whole:
        measure.save(box.snapshot, facts)
    if facts:
        box = _with_measurements(box, measure.as_facts(facts))
    return replace(box, growth=growth, snapshot=replace(box.snapshot, kernel_log=kernel_log))


def _with_measurements(box: Box, measurements: measure.Measurements) -> Box:
    return replace(box, snapshot=replace(box.snapshot, measurement=measurements))
