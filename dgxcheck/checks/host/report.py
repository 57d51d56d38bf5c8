"""Is the bug report or archive that stands for the machine whole?"""

from __future__ import annotations

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judged, Judgement, Status


def _complete(box: Box) -> Judged:
    if box.cut:
        yield HOST, Judgement(Status.UNKNOWN, f"not all of it was read, and the rest is not judged: {box.cut}")


CHECKS = (
    Check(
        id="report.complete",
        rule="Unknown if the bug report, archive or directory that is examined is cut off, damaged or contradicts"
        " itself: what was not read may hold the fault. No other source has this check.",
        source="the end of nvidia-bug-report.log, the last member of a gzip, xz, bzip2 or tar file",
        remedy="copy the file again; if it was made like this, run nvidia-bug-report.sh again, with --safe-mode if it"
        " hangs",
        judge=_complete,
    ),
)
