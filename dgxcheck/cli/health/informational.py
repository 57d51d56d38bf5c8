"""What ``dgxcheck health`` does in place of judging: the letters of nvidia-healthmon that only tell."""

from __future__ import annotations

from collections.abc import Sequence

import click

from dgxcheck.assessment.explanation import Topic, findings_of
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli.options import emit, width
from dgxcheck.output.health import explanation
from dgxcheck.settings import Settings
from dgxcheck.source.protocol import Source


def one_file(ctx: click.Context, output: str | None, log_file: str | None) -> str | None:
    """Where the result goes: ``-l`` is ``-o`` by another name."""
    if output is not None and log_file is not None:
        raise click.UsageError("-o and -l both set the output file; give only one", ctx)
    return log_file if output is None else output


def explain(checks: Sequence[Check], settings: Settings, output: str | None, color: str) -> int:
    """``--explain``: rule, numbers of this site, sources and remedies."""
    emit("\n".join(explanation.explained(check, settings) for check in checks), output, color)
    return 0


def explain_on_box(
    about: Topic, assessment: Assessment, settings: Settings, output: str | None, color: str
) -> int:  # fmt: skip
    """``--explain`` of checks, a finding or a fault on a box: the rules, then what the box has of it."""
    from dgxcheck.output.health import explanation

    text = explanation.on_box(about, assessment, findings_of(about, assessment), settings, width(output))
    emit(text, output, color)
    return 0


def explain_score(assessment: Assessment, output: str | None, color: str) -> int:
    """``--explain score``: expectation by expectation."""
    from dgxcheck.output.health import explanation

    score = assessment.score
    emit(explanation.score_text(score, assessment.choice, assessment.level), output, color)
    return 0 if score is not None and score.total is not None else 3


def explain_privileges(source: Source, output: str | None, color: str) -> int:
    """``--explain privileges``: what root and capabilities add to which checks."""
    from dgxcheck.assessment.privileges import needed
    from dgxcheck.output.health import explanation

    emit(explanation.privileges_text(needed(source)), output, color)
    return 0


def detailed_help(ctx: click.Context, settings: Settings, output: str | None, color: str) -> int:
    """``-H``: the options, then every check as ``--explain`` prints it."""
    checks = "\n".join(explanation.explained(check, settings) for check in CHECKS)
    emit(f"{ctx.get_help()}\n\nChecks:\n\n{checks}", output, color)
    return 0
