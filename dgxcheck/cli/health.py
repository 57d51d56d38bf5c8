"""The options of ``dgxcheck health``, and what it does in place of judging."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from dgxcheck import __version__
from dgxcheck.assessment.request import Level, Request
from dgxcheck.assessment.result import Assessment
from dgxcheck.assessment.selection import Topic, findings_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.engine.run import EXIT_CODES
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli.options import (
    F,
    checks,
    duration,
    emit,
    explained,
    profiles,
    reading,
    seconds,
    sources,
    width,
    writable,
    writing,
)
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.settings import Settings
from dgxcheck.source.protocol import Source

FAILING = {"warn": (Status.WARN, Status.UNKNOWN, Status.FAIL), "unknown": (Status.UNKNOWN, Status.FAIL),
           "fail": (Status.FAIL,), "never": ()}  # fmt: skip
"""Verdicts that the exit code reports, by ``--fail-on``."""
failing = click.option(
    "--fail-on", type=click.Choice([*FAILING]), default="warn", show_default=True,
    help="Lowest severity that gives a non-zero exit code; unknown ranks between warn and fail.",
)  # fmt: skip
RENDERERS = {
    "text": "text.render", "json": "as_json.render", "prometheus": "prometheus.render", "nagios": "nagios.render",
    "junit": "junit.render", "healthmon": "text.healthmon", "jsonl": "jsonl.render", "html": "page.as_html",
    "markdown": "page.as_markdown", "svg": "page.as_svg", "openmetrics": "prometheus.openmetrics",
    "drain-reason": "drain_reason.render", "ticket": "ticket.render",
}  # fmt: skip
"""Function below ``dgxcheck.output.health`` of each format, imported when it is asked for."""


class HealthOptions(Record):
    """The command line, by the names of the options below."""

    gpus: tuple[str, ...]
    only: tuple[str, ...]
    skip: tuple[str, ...]
    require: tuple[str, ...]
    explain: str | None
    quick: bool
    extended: bool
    long: bool
    duration: float | None
    window: float | None
    state: str | None
    baseline: str | None
    profile: str
    kernel_log: str | None
    config: str | None
    verbose: bool
    listed: bool
    detailed: bool
    test_seconds: float
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


def exit_code(verdict: Status, fail_on: str) -> int:
    """That of a verdict; 0 of one below ``--fail-on``."""
    return EXIT_CODES[verdict] if verdict in FAILING[fail_on] else 0


def request_of(asked: HealthOptions, settings: Settings, deadline: float | None) -> Request:
    """What the options ask of an assessment; ``deadline`` None: the usual one."""
    if asked.quick and asked.duration is None and asked.extended:
        raise BadInput("-q reads the state only once; it cannot be combined with -e, --window or --state")
    level: Level = "quick" if asked.quick else "extended" if asked.extended else "default"
    return Request(
        level=level,
        gpus=asked.gpus,
        profile=asked.profile,
        only=asked.only,
        skip=asked.skip,
        require=asked.require,
        window=asked.window,
        state=asked.state,
        baseline=asked.baseline,
        kernel_log=asked.kernel_log,
        settings=settings,
        deadline=deadline,
        test_seconds=asked.test_seconds,
        duration=asked.duration,
        long=asked.long,
    )


def _ids(*names: str, text: str) -> Callable[[F], F]:
    complete = None if "--id" in names else checks
    return click.option(*names, multiple=True, metavar="ID[,ID]", help=text, shell_complete=complete)


OPTIONS: tuple[Callable[[Callable[..., int]], Callable[..., int]], ...] = (
    _ids("-i", "--id", "gpus", text="Check only these GPUs: index, bus id or UUID; may be repeated."),
    _ids("--only", text="Run only these checks: by id (ecc.mode) or subject (ecc)."),
    _ids("--skip", text="Run all checks except these."),
    _ids("--require", text="Checks that must run: one that skips is unknown."),
    click.option("--explain", metavar="ID|KEY|FAULT|FACT", shell_complete=explained,
                 help="Explain a check, a finding by its key, a fault word or a fact (power-limit), with what this box"
                      " has of it; how the score is calculated (score); or what root and capabilities add"
                      " (privileges)."),
    click.option("-q", "--quick", is_flag=True, help="Check only the current state: no counter growth, no kernel log."),
    click.option("-e", "--extended", is_flag=True,
                 help="Also measure bandwidth, latency and data integrity of every GPU and pair under load."),
    click.option("--long", is_flag=True, help="With -e: larger copies, and patterns in all free memory."),
    click.option("--duration", metavar="TIME", callback=duration,
                 help="Burn in all GPUs for this time (90s, 30m, 1h30m) after the measurements of -e, which it implies."
                      " The load stops automatically before hardware is at risk."),
    click.option("--window", type=click.FloatRange(min=0.1, max=86400), metavar="SECONDS", callback=seconds,
                 help="Read the counters again after this time and check this growth, not that since an earlier run."),
    click.option("--state", type=click.Path(), metavar="FILE",
                 help="File for the counters of an earlier run; the default is in the state directory."),
    click.option("--baseline", metavar="SOURCE", shell_complete=sources,
                 help="Known-good recording of this box: anything worse warns, missing hardware fails."),
    click.option("--profile", default="auto", show_default=True, metavar="NAME", shell_complete=profiles,
                 help="The reference machine: a name from dgxcheck profiles, a .toml file, auto or none."),
    click.option("--kernel-log", type=click.Path(), metavar="FILE",
                 help="Check a saved dmesg, journalctl -k or /dev/kmsg instead of the kernel log of the box."),
    click.option("-c", "--config", metavar="FILE", type=click.Path(),
                 help="The site's thresholds, severities, cabled ports and pinned versions, in TOML. Default:"
                      " $DGXCHECK_CONFIG, otherwise /etc/dgxcheck/config.toml."),
    click.option("-v", "--verbose", is_flag=True, help="List every finding, including pass and skip."),
    click.option("-L", "--list-gpus", "listed", is_flag=True,
                 help="List all GPUs, as dgxcheck list does, and exit."),
    click.option("-H", "--detailed-help", "detailed", is_flag=True, help="Print usage and the rule of every check."),
    click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s"),
    click.option("-t", "--test-seconds", type=click.FloatRange(min=0, max=3600), default=120, show_default=True,
                 metavar="SECONDS", callback=seconds,
                 help="Time limit for one test; 0 means no limit other than --deadline."),
    click.option("-l", "--log-file", "log_file", type=click.Path(), metavar="FILE", callback=writable,
                 help="Same as -o, as in nvidia-healthmon. With --duration: append events, one JSON object per line;"
                      " the report goes to -o or stdout."),
    click.option("-d", "--debug-log", "debug", type=click.Path(), metavar="FILE",
                 help="Append every query with its answer to FILE."),
    click.option("--fail-on", type=click.Choice([*FAILING]), default="warn", show_default=True,
                 help="Lowest severity that gives a non-zero exit code; unknown ranks between warn and fail. never: 0,"
                      " whatever is found; 3 only if dgxcheck could not run."),
    click.option("--format", "form", metavar="FORMAT", type=click.Choice(list(RENDERERS)), default="text",
                 show_default=True, help=f"{', '.join(RENDERERS)}."),
    click.option("--ticket", is_flag=True,
                 help="Print what a vendor asks for first (--format ticket): part, serial numbers, versions, evidence,"
                      " what was tried, what to attach."),
    click.option("--brief", is_flag=True,
                 help="Text for 24 lines: verdict, devices that are not ok, first cause, score."),
    click.option("--metrics", type=click.Choice(["core", "all"]), default="core", show_default=True,
                 help="With --format prometheus or openmetrics: verdicts, causes and main figures, or all checks and"
                      " error counters too."),
    reading,
    writing,
)  # fmt: skip


def options(command: Callable[..., int]) -> Callable[..., int]:
    """All of them, in the order of the help."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def one_file(ctx: click.Context, output: str | None, log_file: str | None) -> str | None:
    """Where the result goes: ``-l`` is ``-o`` by another name."""
    if output is not None and log_file is not None:
        raise click.UsageError("-o and -l both set the output file; give only one", ctx)
    return log_file if output is None else output


def explain(checks: Sequence[Check], settings: Settings, output: str | None, color: str) -> int:
    """``--explain``: rule, numbers of this site, sources and remedies."""
    from dgxcheck.output.health import explanation

    emit("\n".join(explanation.explained(check, settings) for check in checks), output, color)
    return 0


def explain_on_box(
    about: Topic, assessment: Assessment, settings: Settings, output: str | None, color: str
) -> int:  # fmt: skip
    """``--explain`` of checks, a finding, a fault or a fact on a box: the rules, then what the box has of it."""
    from dgxcheck.output.health import explanation, fact_rows

    if about.facts:
        emit(fact_rows.explained(about.facts, assessment, settings), output, color)
        return 0
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
    from dgxcheck.output.health import explanation

    checks = "\n".join(explanation.explained(check, settings) for check in CHECKS)
    emit(f"{ctx.get_help()}\n\nChecks:\n\n{checks}", output, color)
    return 0
