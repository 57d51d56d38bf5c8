"""The options of ``dgxcheck health``, and what it does in place of judging."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from dgxcheck import __version__
from dgxcheck.assessment.request import Level, Request
from dgxcheck.assessment.result import Assessment
from dgxcheck.assessment.selection import Topic, findings_of, words
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.engine.run import EXIT_CODES
from dgxcheck.cli.options import (
    F,
    checks,
    completing,
    devices,
    flag,
    option,
    profiles,
    reading,
    sources,
    writable,
    writing,
)
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import fields
from dgxcheck.settings import Settings
from dgxcheck.source.protocol import Source

FAILING = {"warn": (Status.WARN, Status.UNKNOWN, Status.FAIL), "unknown": (Status.UNKNOWN, Status.FAIL),
           "fail": (Status.FAIL,), "never": ()}  # fmt: skip
"""Verdicts that the exit code reports, by ``--fail-on``."""
failing = option("--fail-on", [*FAILING], "Lowest severity that gives a non-zero exit code; unknown ranks between warn"
                 " and fail. never: 0, whatever is found; 3 only if dgxcheck could not run.",
                 default="warn")  # fmt: skip
RENDERERS = {
    "text": "text.render", "json": "for_programs.as_json.render", "prometheus": "for_programs.prometheus.render",
    "nagios": "for_programs.nagios.render", "junit": "for_programs.junit.render", "healthmon": "text.healthmon",
    "jsonl": "for_programs.jsonl.render", "html": "page.as_html", "markdown": "page.as_markdown", "svg": "page.as_svg",
    "openmetrics": "for_programs.prometheus.openmetrics", "drain-reason": "for_programs.drain_reason.render",
    "ticket": "ticket.render",
}  # fmt: skip
"""Function below ``dgxcheck.output.health`` of each format, imported when it is asked for."""


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


def exit_code(verdict: Status, fail_on: str) -> int:
    """That of a verdict; 0 of one below ``--fail-on``."""
    return EXIT_CODES[verdict] if verdict in FAILING[fail_on] else 0


def request_of(asked: HealthOptions, settings: Settings, deadline: float | None) -> Request:
    """What the options ask of an assessment; ``deadline`` None: the usual one."""
    if asked.quick and asked.duration is None and asked.extended:
        raise BadInput("-q reads the state only once; it cannot be combined with -e, --window or --state")
    level: Level = "quick" if asked.quick else "extended" if asked.extended else "default"
    shared = {name: getattr(asked, name) for name in fields(Request)}
    # the settings are those of the configuration file that the options name
    return Request(**{**shared, "level": level, "settings": settings, "deadline": deadline, "config": None})


def _ids(*names: str, text: str) -> Callable[[F], F]:
    complete = devices if "--id" in names else checks
    return click.option(*names, multiple=True, metavar="ID[,ID]", help=text, shell_complete=complete)


OPTIONS: tuple[Callable[[Callable[..., int]], Callable[..., int]], ...] = (
    _ids("-i", "--id", "gpus", text="Check only these GPUs: index, bus id or UUID; may be repeated."),
    _ids("--only", text="Run only these checks: by id (ecc.mode) or subject (ecc)."),
    _ids("--skip", text="Run all checks except these."),
    _ids("--require", text="Checks that must run: one that skips is unknown."),
    option("--explain", "ID|KEY|FAULT|FACT", "Explain a check, a threshold, a finding by its key, a fault word or a"
           " fact (power-limit), with what this box has of it; how the score is calculated (score); or what root and"
           " capabilities add (privileges).",
           shell_complete=completing(lambda: dict.fromkeys(("score", "privileges", *words())))),
    flag("-q --quick", "Check only the current state: no counter growth, no kernel log."),
    flag("-e --extended", "Also measure bandwidth, latency and data integrity of every GPU and pair under load."),
    flag("--long", "With -e: larger copies, and patterns in all free memory."),
    option("--duration", "TIME", "Burn in all GPUs for this time (90s, 30m, 1h30m) after the measurements of -e, which"
           " it implies. The load stops automatically before hardware is at risk."),
    option("--window", ("SECONDS", 0.1, 86400), "Read the counters again after this time and check this growth, not"
           " that since an earlier run."),
    option("--state", "FILE", "File for the counters of an earlier run; the default is in the state directory."),
    option("--baseline", "SOURCE", "Known-good recording of this box: anything worse warns, missing hardware fails.",
           shell_complete=sources),
    option("--profile", "NAME", "The reference machine: a name from dgxcheck profiles, a .toml file, auto or none.",
           default="auto", shell_complete=profiles),
    option("--kernel-log", "FILE", "Check a saved dmesg, journalctl -k or /dev/kmsg instead of the kernel log of the"
           " box."),
    option("-c --config", "FILE", "The site's thresholds, severities, cabled ports and pinned versions, in TOML."
           " Default: $DGXCHECK_CONFIG, otherwise /etc/dgxcheck/config.toml."),
    flag("-v --verbose", "List every finding, including pass and skip."),
    flag("-L --list-gpus listed", "List all GPUs, as dgxcheck list does, and exit."),
    flag("-H --detailed-help detailed", "Print usage and the rule of every check."),
    click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s"),
    option("-t --test-seconds", ("SECONDS", 0, 3600), "Time limit for one test; 0 means no limit other than"
           " --deadline.", default=120),
    option("-l --log-file log_file", "FILE", "Same as -o, as in nvidia-healthmon. With --duration: append events, one"
           " JSON object per line; the report goes to -o or stdout.", callback=writable),
    option("-d --debug-log debug", "FILE", "Append every query with its answer to FILE."),
    failing,
    option("--format form", [*RENDERERS], f"{', '.join(RENDERERS)}.", default="text", metavar="FORMAT"),
    flag("--ticket", "Print what a vendor asks for first (--format ticket): part, serial numbers, versions, evidence,"
         " what was tried, what to attach."),
    flag("--brief", "Text for 24 lines: verdict, devices that are not ok, first cause, score."),
    option("--metrics", ["core", "all"], "With --format prometheus or openmetrics: verdicts, causes and main figures,"
           " or all checks and error counters too.", default="core"),
    reading,
    writing,
)  # fmt: skip


def options(command: Callable[..., int]) -> Callable[..., int]:
    """All of them, in the order of the help."""
    for each in reversed(OPTIONS):
        command = each(command)
    return command


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
