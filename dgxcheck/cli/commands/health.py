"""``dgxcheck health``: is the box healthy, and how near to its reference machine?"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from dgxcheck.assessment.health import assess
from dgxcheck.assessment.machine import LiveMachine
from dgxcheck.assessment.progress import SILENT, Progress
from dgxcheck.assessment.request import Level, Request, validate
from dgxcheck.assessment.result import Assessment
from dgxcheck.assessment.selection import Topic, findings_of, has_nvidia_gpu, selected, site_settings, topic
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli import INCOMPLETE
from dgxcheck.cli.options import LightCommand, given, options
from dgxcheck.cli.results import emit, exit_code, formats, renderer, width
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import fields
from dgxcheck.output.plain_text import visible
from dgxcheck.output.report import HealthReport
from dgxcheck.settings import Settings
from dgxcheck.source.protocol import Source

if TYPE_CHECKING:
    from dgxcheck.source.debug_log import DebugLog

SCORE, PRIVILEGES = "score", "privileges"


class HealthOptions(Request):
    """The command line, by the names of its options: a request, and how what is judged of it is shown."""

    explain: str | None
    quick: bool
    extended: bool
    verbose: bool
    listed: bool
    detailed: bool
    log_file: str | None
    debug: str | None
    fail_on: str
    form: str
    ticket: bool
    brief: bool
    metrics: str
    spec: str | None
    deadline: float
    output: str | None
    color: str


@click.command("health", cls=LightCommand)
@options("health")
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> int:
    """Check the health of the box and score it against its reference machine.

    No setting is changed, and only -e and --duration put load on the box. Exit code 0: pass; 1: warn; 2: fail; 3:
    unknown, also if nothing could be checked.
    """
    asked = HealthOptions(**values)
    if asked.ticket and asked.brief:
        raise click.UsageError("--ticket and --brief cannot be combined", ctx)
    if (asked.ticket and asked.form not in ("text", "ticket")) or (asked.brief and asked.form != "text"):
        option = "--ticket" if asked.ticket else "--brief"
        raise click.UsageError(f"{option} cannot be combined with --format {asked.form}", ctx)
    events_file = asked.log_file if asked.duration is not None else None
    output = one_file(ctx, asked.output, None if events_file else asked.log_file)
    settings = site_settings(asked.config)

    def shown(text: str) -> int:
        emit(text, output, asked.color)
        return 0

    if asked.detailed:
        return shown(f"{ctx.get_help()}\n\nChecks:\n\n{rules(CHECKS, settings)}")
    if asked.listed:
        return _list_gpus(ctx, asked.form, asked.spec, asked.deadline, output, asked.color)
    if asked.explain == PRIVILEGES:
        return shown(privileges(ctx.obj.source(asked.spec, "EVERYTHING", asked.deadline)))
    about = None if asked.explain in (None, SCORE) else topic(asked.explain or "")
    rules_alone = about is not None and bool(about.checks) and not about.key and asked.spec is None
    if about is not None and rules_alone and not has_nvidia_gpu(ctx.obj.root):
        return shown(rules(about.checks, settings))
    request = request_of(asked, settings, asked.deadline if given(ctx, "deadline") else None)
    validate(request, live=asked.spec is None)
    selected(request)
    debug, events = (None if path is None else _debug_log(path) for path in (asked.debug, events_file))
    report = _report(ctx.obj, asked, request, debug, SILENT if asked.spec is not None else _terminal(events))
    if asked.explain == SCORE:
        score = report.assessment.score
        shown(renderer("health.explanation.score_text")(report.assessment))
        return 0 if score is not None and score.total is not None else INCOMPLETE
    if about is not None:
        return shown(on_box(about, report.assessment, settings, width(output)))
    form = "ticket" if asked.ticket else asked.form
    emit(renderer(formats("health")[form])(report), output, asked.color, form, again=True)
    if debug is not None:
        debug.line({"verdict": report.assessment.verdict.value, "exit_code": report.exit_code})
        if debug.trouble:
            click.echo(f"dgxcheck: {visible(debug.trouble)}", err=True)
    return report.exit_code


def _debug_log(path: str) -> DebugLog:
    from dgxcheck.source.debug_log import DebugLog

    return DebugLog(path)


def _terminal(events: DebugLog | None) -> Progress:
    """Shows how far the live machine is."""
    from dgxcheck.cli.progress import TerminalProgress

    return TerminalProgress(events)


def _report(
    machine: LiveMachine, asked: HealthOptions, request: Request, debug: DebugLog | None, progress: Progress
) -> HealthReport:
    if request.duration is not None:
        gc.enable()  # the other runs are too short for it to pay
    source = machine.source(asked.spec, "HEALTH", request.driver_deadline)
    logged = source if debug is None else debug.logged(source)
    assessment = assess(logged, request, progress=progress, root=machine.root)
    return HealthReport(
        assessment=assessment, exit_code=exit_code(assessment.verdict, asked.fail_on), verbose=asked.verbose,
        fail_on=asked.fail_on, width=width(asked.output), brief=asked.brief, every_metric=asked.metrics == "all",
    )  # fmt: skip


def _list_gpus(ctx: click.Context, form: str, spec: str | None, deadline: float, output: str | None, color: str) -> int:
    """``-L``: what ``dgxcheck list`` prints."""
    from dgxcheck.cli.commands import list_gpus

    if form not in ("text", "json"):
        raise click.UsageError("-L requires --format text or json", ctx)
    code: int = ctx.invoke(list_gpus.command, form=form, spec=spec, deadline=deadline, output=output, color=color)
    return code


def request_of(asked: HealthOptions, settings: Settings, deadline: float | None) -> Request:
    """What the options ask of an assessment; ``deadline`` None: the usual one."""
    if asked.quick and asked.duration is None and asked.extended:
        raise BadInput("-q reads the state only once; it cannot be combined with -e, --window or --state")
    level: Level = "quick" if asked.quick else "extended" if asked.extended else "default"
    shared = {name: getattr(asked, name) for name in fields(Request)}
    # the settings are those of the configuration file that the options name
    return Request(**{**shared, "level": level, "settings": settings, "deadline": deadline, "config": None})


def one_file(ctx: click.Context, output: str | None, log_file: str | None) -> str | None:
    """Where the result goes: ``-l`` is ``-o`` by another name."""
    if output is not None and log_file is not None:
        raise click.UsageError("-o and -l both set the output file; give only one", ctx)
    return log_file if output is None else output


def rules(checks: Sequence[Check], settings: Settings) -> str:
    """``--explain`` and ``-H``: rule, numbers of this site, sources and remedies."""
    from dgxcheck.output.health import explanation

    return "\n".join(explanation.explained(check, settings) for check in checks)


def on_box(about: Topic, assessment: Assessment, settings: Settings, columns: int | None) -> str:
    """``--explain`` of checks, a finding, a fault or a fact on a box: the rules, then what the box has of it."""
    from dgxcheck.output.health import explanation, fact_rows

    if about.facts:
        return fact_rows.explained(about.facts, assessment, settings)
    return explanation.on_box(about, assessment, findings_of(about, assessment), settings, columns)


def privileges(source: Source) -> str:
    """``--explain privileges``: what root and capabilities add to which checks."""
    from dgxcheck.assessment.privileges import needed
    from dgxcheck.output.health import explanation

    return explanation.privileges_text(needed(source))
