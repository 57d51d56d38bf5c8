"""``dgxcheck health``: is the box healthy?"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from dgxcheck.checks.catalogue import CHECKS, PROBES
from dgxcheck.checks.check import NO_GROWTH, Box, Check, Growth
from dgxcheck.checks.finding import Judgement, Status
from dgxcheck.checks.run import EXIT_CODES, run, verdict
from dgxcheck.cli.growth import since_last_run, within
from dgxcheck.cli.live import Live
from dgxcheck.cli.options import F, emit, reading, seconds, writing
from dgxcheck.configuration import of_site
from dgxcheck.facts.host import Host
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.frozen import replace
from dgxcheck.output.health_report import Level, Report
from dgxcheck.profiles import library
from dgxcheck.reading import BadInput, Json, Missing
from dgxcheck.score.box import of_box
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.survey import Snapshot, survey
from dgxcheck.topology.build import build

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

WINDOW = 10.0
"""Seconds between two readings where no earlier run gives one."""
QUICK_DEADLINE = 28.0
"""Node health checkers allow 30 s."""
_FAILING = {"warn": (Status.WARN, Status.UNKNOWN, Status.FAIL), "unknown": (Status.UNKNOWN, Status.FAIL),
            "fail": (Status.FAIL,)}  # fmt: skip
_HOST = {"host": "hostname", "boot_id": "boot_id"}


def _ids(*names: str, text: str) -> Callable[[F], F]:
    return click.option(*names, multiple=True, metavar="ID[,ID]", help=text)


def _profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    names = (*library.names(), "auto", "none")
    return [
        *(CompletionItem(name) for name in names if name.startswith(incomplete)),
        CompletionItem(incomplete, "file"),
    ]


@click.command("health")
@_ids("-i", "--id", "gpus", text="Only these GPUs: index, bus id or UUID; may be repeated.")
@_ids("--only", text="Only these checks: by id (ecc.mode) or subject (ecc).")
@_ids("--skip", text="All but these checks.")
@_ids("--require", text="Checks that must be judged: one that skips is unknown.")
@click.option("--explain", metavar="ID", help="Print rule, source and remedy of a check, or of a subject's checks.")
@click.option("-q", "--quick", is_flag=True, help="State alone: no growth of counters, no kernel log.")
@click.option(
    "-e",
    "--extended",
    is_flag=True,
    help=f"All there is; where no earlier run was, counters are read again after {WINDOW:g} s.",
)
@click.option(
    "--window",
    type=click.FloatRange(min=0.1, max=86400),
    metavar="SECONDS",
    callback=seconds,
    help="Read the counters again after this time and judge their growth, not that since an earlier run.",
)
@click.option(
    "--state",
    type=click.Path(),
    metavar="FILE",
    help="Counters of an earlier run, kept here; by default in the state directory.",
)
@click.option(
    "--profile",
    default="auto",
    show_default=True,
    metavar="NAME",
    shell_complete=_profiles,
    help="The reference machine: a name of dgxcheck profiles, a .toml file, auto or none.",
)
@click.option("--kernel-log", "log", type=click.Path(), metavar="FILE",
              help="Judge a saved dmesg, journalctl -k or /dev/kmsg in place of the source's kernel log.")  # fmt: skip
@click.option("-c", "--config", metavar="FILE", type=click.Path(),
              help="The site's thresholds, severities, cabled ports and pinned versions, in TOML. If not given:"
                   " $DGXCHECK_CONFIG, else /etc/dgxcheck/config.toml.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Every finding, those that passed and those that skipped too.")
@click.option("--fail-on", type=click.Choice([*_FAILING]), default="warn", show_default=True,
              help="The mildest verdict that the exit code tells; unknown stands between warn and fail.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json", "prometheus", "nagios"]), default="text",
              show_default=True)  # fmt: skip
@reading
@writing
@click.pass_context
def command(
    ctx: click.Context, /, gpus: tuple[str, ...], only: tuple[str, ...], skip: tuple[str, ...],
    require: tuple[str, ...], explain: str | None, quick: bool, extended: bool, window: float | None,
    state: str | None, profile: str, log: str | None, config: str | None, verbose: bool, fail_on: str, form: str,
    spec: str | None, deadline: float, output: str | None, color: str,
) -> int:  # fmt: skip
    """Is the box healthy, and how near to its reference machine?

    No load is put on the box and nothing is changed. Exit code 0: pass; 1: warn; 2: fail; 3: unknown, which is also
    the verdict where nothing could be judged.
    """
    if quick and (extended or window is not None or state is not None):
        raise BadInput("-q reads state once; it goes with none of -e, --window and --state")
    settings = of_site(config, [check.id for check in CHECKS])
    if explain is not None and explain != "score":
        from dgxcheck.output import health_text

        emit("\n".join(health_text.explained(check, settings) for check in _named((explain,))), output, color)
        return 0
    if quick and ctx.get_parameter_source("deadline") is ParameterSource.DEFAULT:
        deadline = QUICK_DEADLINE
    level: Level = "quick" if quick else "extended" if extended else "default"
    begun = time.monotonic()
    saved = None if log is None else _saved(log)
    left_out = {check.id for check in _named(skip)}
    checks = [check for check in (_named(only) or CHECKS) if check.id not in left_out]
    required = {check.id for check in _named(require)}
    if idle := sorted(required - {check.id for check in checks}):
        raise BadInput(f"--require {idle[0]}, but --only or --skip leaves it out")
    live: Live = ctx.obj
    source = live.source(spec, "HEALTH", deadline)
    facts = survey(source, [name for name in PROBES if name != "kernel_log" or not (quick or saved is not None)])
    if saved is not None:
        facts = replace(facts, kernel_log=saved)
    topology = build(facts.pci, facts.infiniband, facts.gpu, facts.nvlink, facts.gpu_pairs, facts.numa)
    choice = library.chosen(profile, facts, topology)
    growth = NO_GROWTH if quick else _growth(source, facts, extended, window, state)
    asked = topology.gpus
    if gpus:
        from dgxcheck.cli import select

        asked = tuple(dict.fromkeys(select.gpus(topology, ",".join(gpus))))
    box = Box(
        snapshot=facts, topology=topology, gpus=asked, settings=settings, choice=choice, growth=growth,
        boards={} if profile == "none" else library.boards_for(choice),
    )  # fmt: skip
    score = of_box(box)
    if explain is not None:
        from dgxcheck.output import score_text

        emit(score_text.render(score, choice, level), output, color)
        return 0 if score is not None and score.total is not None else 3
    findings = run(box, checks, required)
    found = verdict(findings)
    code = EXIT_CODES[found] if found in _FAILING[fail_on] else 0
    host = facts.host
    names = {key: getattr(host, name) if isinstance(host, Host) else host for key, name in _HOST.items()}
    report = Report(
        findings=findings, verdict=found, exit_code=code, origin=source.origin, host=names,
        seconds=time.monotonic() - begun, verbose=verbose, level=level, choice=choice, score=score,
    )  # fmt: skip
    render = import_module(f"dgxcheck.output.health_{form}").render
    emit(render(report), output, color, form)
    return code


def _growth(
    source: Source, facts: Snapshot, extended: bool, window: float | None, state: str | None
) -> Growth | Judgement:
    """Counters at two times: in this run, in the recording, or against an earlier run."""
    if window is not None:
        return within(source, window)
    if source.origin.kind != "live":
        return within(source, inf)
    since = since_last_run(source, facts, state)
    return within(source, WINDOW) if extended and isinstance(since, Judgement) else since


def _saved(path: str) -> KernelLog | Missing:
    """A saved kernel log as facts."""
    from dgxcheck.source.kernel_log import kept
    from dgxcheck.source.recorded import RecordedSource
    from dgxcheck.source.saved_log import load

    if path == "-":
        raise BadInput("--kernel-log reads a file, not stdin; save the log as one first")
    lines: dict[str, Json] = {str(number): line for number, line in enumerate(kept(load(path)))}
    log = survey(RecordedSource({"kmsg": lines}, Origin("recording", path)), ("kernel_log",)).kernel_log
    return replace(log, where=path)


def _named(words: tuple[str, ...]) -> list[Check]:
    """Checks by id or by subject, in the order of the catalogue."""
    wanted = {word.strip() for each in words for word in each.split(",")}
    known = {check.id for check in CHECKS} | {check.id.partition(".")[0] for check in CHECKS}
    if unknown := sorted(wanted - known):
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"checks are {', '.join(check.id for check in CHECKS)}"
        raise BadInput(f"no check {unknown[0]!r}; {hint}")
    return [check for check in CHECKS if wanted & {check.id, check.id.partition(".")[0]}]
