"""``dgxcheck health``: is the box healthy, and how near to its reference machine?"""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dgxcheck.checks.drift import baseline
from dgxcheck.checks.engine.acknowledgements import acknowledged, today, unmatched
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.run import EXIT_CODES, run, verdict
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli.health import informational
from dgxcheck.cli.health.options import FAILING, RENDERERS, Asked, options
from dgxcheck.cli.health_box import box
from dgxcheck.cli.live import Live
from dgxcheck.cli.options import emit
from dgxcheck.configuration import of_site
from dgxcheck.diagnosis.causes import diagnose
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import replace
from dgxcheck.output.health.report import Level, Report
from dgxcheck.output.plain_text import visible
from dgxcheck.readiness.figures import all_figures
from dgxcheck.score.box import of_box
from dgxcheck.source.protocol import Source
from dgxcheck.suggestion import did_you_mean

if TYPE_CHECKING:
    from dgxcheck.source.debug_log import DebugLog

QUICK_DEADLINE = 28.0
"""Node health checkers allow 30 s."""
SCORE = "score"
_HOST = {"host": "hostname", "boot_id": "boot_id"}


@click.command("health")
@options
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Check the health of the box and score it against its reference machine.

    No setting is changed, and only -e and --duration put load on the box. Exit code 0: pass; 1: warn; 2: fail; 3:
    unknown, also if nothing could be checked.
    """
    asked = Asked(**given)
    events = asked.log_file if asked.duration is not None else None
    output = informational.one_file(ctx, asked.output, None if events else asked.log_file)
    settings = of_site(asked.config, [check.id for check in CHECKS])
    if asked.detailed:
        return informational.detailed_help(ctx, settings, output, asked.color)
    if asked.listed:
        return _list_gpus(ctx, asked.form, asked.spec, asked.deadline, output, asked.color)
    if asked.explain is not None and asked.explain != SCORE:
        return informational.explain(_named((asked.explain,)), settings, output, asked.color)
    if asked.quick and (asked.extended or asked.window is not None or asked.state is not None):
        raise BadInput("-q reads the state only once; it cannot be combined with -e, --window or --state")
    if asked.duration is not None:
        asked = _burning(asked)
    if asked.long and not asked.extended:
        raise BadInput("--long requires -e")
    checks, required = _selected(asked)
    log = None if asked.debug is None else _log(asked.debug)
    happens = None if events is None else _log(events)
    begun = time.monotonic()
    source = _source(ctx, asked)
    if log is not None:
        source = log.heard(source)
    level: Level = "quick" if asked.quick else "extended" if asked.extended else "default"
    judged = box(source, asked, settings, checks, ctx.obj.root, happens)
    if asked.explain == SCORE:
        return informational.explain_score(of_box(judged), judged.choice, level, output, asked.color)
    report = _report(judged, checks, required, asked, source, level, begun)
    render = import_module(f"dgxcheck.output.health.{RENDERERS[asked.form]}").render
    emit(render(report), output, asked.color, asked.form)
    if log is not None:
        log.line({"verdict": report.verdict.value, "exit_code": report.exit_code})
        if log.trouble:
            click.echo(f"dgxcheck: {visible(log.trouble)}", err=True)
    return report.exit_code


def _burning(asked: Asked) -> Asked:
    """What a burn-in goes with; it implies ``-e``."""
    for given, option in ((asked.quick, "-q"), (asked.spec, "--from"), (asked.window, "--window"),
                          (asked.state, "--state"), (asked.kernel_log, "--kernel-log")):  # fmt: skip
        if given:
            raise BadInput(f"--duration puts load on this machine; it cannot be combined with {option}")
    return replace(asked, extended=True)


def _log(path: str) -> DebugLog:
    from dgxcheck.source.debug_log import DebugLog

    return DebugLog(path)


def _source(ctx: click.Context, asked: Asked) -> Source:
    """The machine; with ``-q`` its driver gets less time, unless the command line says how much.

    No test takes longer than all that is asked of the driver, so ``-t`` bounds that.
    """
    live: Live = ctx.obj
    by_default = ctx.get_parameter_source("deadline") is ParameterSource.DEFAULT
    deadline = QUICK_DEADLINE if asked.quick and by_default else asked.deadline
    return live.source(asked.spec, "HEALTH", min(deadline, max(1.0, asked.test_seconds or deadline)))


def _report(
    judged: Box, checks: list[Check], required: set[str], asked: Asked, source: Source, level: Level, begun: float
) -> Report:
    findings = acknowledged(run(judged, checks, required), judged.settings.acknowledged, today())
    found = verdict(findings)
    host = judged.snapshot.host
    return Report(
        findings=findings,
        verdict=found,
        exit_code=EXIT_CODES[found] if found in FAILING[asked.fail_on] else 0,
        origin=source.origin,
        host={key: getattr(host, name) if isinstance(host, Host) else host for key, name in _HOST.items()},
        seconds=time.monotonic() - begun,
        level=level,
        choice=judged.choice,
        score=of_box(judged),
        diagnosis=diagnose(judged, findings),
        verbose=asked.verbose,
        fail_on=asked.fail_on,
        figures=all_figures(judged),
        unmatched=unmatched(findings, judged.settings.acknowledged, judged),
        settings=judged.settings,
    )


def _selected(asked: Asked) -> tuple[list[Check], set[str]]:
    """The checks to run, and the ids of those that must be judged."""
    left_out = {check.id for check in _named(asked.skip)}
    checks = [check for check in (_named(asked.only) or CHECKS) if check.id not in left_out]
    required = {check.id for check in _named(asked.require)}
    if baseline.ID in required and asked.baseline is None:
        raise BadInput(f"--require {baseline.ID} requires --baseline FILE, the recording to compare with")
    if idle := sorted(required - {check.id for check in checks}):
        raise BadInput(f"--require {idle[0]}: the check is excluded by --only or --skip")
    return checks, required


def _named(words: tuple[str, ...]) -> list[Check]:
    """Checks by id or by subject, in the order of the catalogue."""
    wanted = {word.strip() for each in words for word in each.split(",")}
    known = {check.id for check in CHECKS} | {check.id.partition(".")[0] for check in CHECKS}
    if unknown := sorted(wanted - known):
        hint = did_you_mean(unknown[0], known, "list the checks with 'dgxcheck health -H'")
        raise BadInput(f"no check {unknown[0]!r}; {hint}")
    return [check for check in CHECKS if wanted & {check.id, check.id.partition(".")[0]}]


def _list_gpus(
    ctx: click.Context, form: str, spec: str | None, deadline: float, output: str | None, color: str
) -> int:  # fmt: skip
    """``-L``: what ``dgxcheck list`` prints."""
    from dgxcheck.cli.commands import list_gpus

    if form not in ("text", "json"):
        raise click.UsageError("-L requires --format text or json", ctx)
    code: int = ctx.invoke(list_gpus.command, form=form, spec=spec, deadline=deadline, output=output, color=color)
    return code
