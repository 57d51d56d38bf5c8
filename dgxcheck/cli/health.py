"""``dgxcheck health``: is the box healthy?"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

import click

from dgxcheck import __version__
from dgxcheck.checks.catalogue import CHECKS, PROBES
from dgxcheck.checks.check import DEFAULTS, Box, Check
from dgxcheck.checks.finding import Status
from dgxcheck.checks.run import EXIT_CODES, run, verdict
from dgxcheck.cli import health_instead
from dgxcheck.cli.live import Live
from dgxcheck.cli.options import F, emit, reading, writing
from dgxcheck.facts.host import Host
from dgxcheck.output.health_report import Report
from dgxcheck.output.plain import visible
from dgxcheck.reading import BadInput
from dgxcheck.survey import survey
from dgxcheck.topology.build import build

_FAILING = {"warn": (Status.WARN, Status.UNKNOWN, Status.FAIL), "unknown": (Status.UNKNOWN, Status.FAIL),
            "fail": (Status.FAIL,)}  # fmt: skip
_HOST = {"host": "hostname", "boot_id": "boot_id"}


def _ids(*names: str, text: str) -> Callable[[F], F]:
    return click.option(*names, multiple=True, metavar="ID[,ID]", help=text)


@click.command("health")
@_ids("-i", "--id", "gpus", text="Only these GPUs: index, bus id or UUID; may be repeated.")
@_ids("--only", text="Only these checks: by id (ecc.mode) or subject (ecc).")
@_ids("--skip", text="All but these checks.")
@_ids("--require", text="Checks that must be judged: one that skips is unknown.")
@click.option("--explain", metavar="ID", help="Print rule, source and remedy of a check, or of a subject's checks.")
@click.option("-v", "--verbose", is_flag=True, help="Every finding, those that passed and those that skipped too.")
@click.option("-L", "--list-gpus", "listed", is_flag=True, help="List all GPUs, as dgxcheck list does; judge nothing.")
@click.option("-H", "--detailed-help", "detailed", is_flag=True, help="Print usage and the rule of every check.")
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.option("-l", "--log-file", "log_file", type=click.Path(), metavar="FILE", help="As -o: nvidia-healthmon's name.")
@click.option("-d", "--debug-log", "debug", type=click.Path(), metavar="FILE",
              help="Add every question that was asked, with its answer, to FILE.")  # fmt: skip
@click.option("--fail-on", type=click.Choice([*_FAILING]), default="warn", show_default=True,
              help="The mildest verdict that the exit code tells; unknown stands between warn and fail.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json", "prometheus", "nagios", "junit"]), default="text",
              show_default=True)  # fmt: skip
@reading
@writing
@click.pass_context
def command(
    ctx: click.Context, /, gpus: tuple[str, ...], only: tuple[str, ...], skip: tuple[str, ...],
    require: tuple[str, ...], explain: str | None, verbose: bool, listed: bool, detailed: bool, log_file: str | None,
    debug: str | None, fail_on: str, form: str, spec: str | None, deadline: float, output: str | None, color: str,
) -> int:  # fmt: skip
    """Is the box healthy? Driver, GPUs, memory errors, clocks, power, temperature and PCIe links, read once.

    No load is put on the box and nothing is changed. Exit code 0: pass; 1: warn; 2: fail; 3: unknown, which is also
    the verdict where nothing could be judged.
    """
    output = health_instead.one_file(ctx, output, log_file)
    if detailed:
        return health_instead.detailed_help(ctx, output, color)
    if listed:
        return health_instead.list_gpus(ctx, form, spec, deadline, output, color)
    if explain is not None:
        from dgxcheck.output import health_text

        emit("\n".join(health_text.explained(check, DEFAULTS) for check in _named((explain,))), output, color)
        return 0
    begun = time.monotonic()
    left_out = {check.id for check in _named(skip)}
    checks = [check for check in (_named(only) or CHECKS) if check.id not in left_out]
    required = {check.id for check in _named(require)}
    if idle := sorted(required - {check.id for check in checks}):
        raise BadInput(f"--require {idle[0]}, but --only or --skip leaves it out")
    log = None
    if debug is not None:
        from dgxcheck.source.debug_log import DebugLog

        log = DebugLog(debug)
    live: Live = ctx.obj
    source = live.source(spec, "HEALTH", deadline)
    if log is not None:
        source = log.heard(source)
    facts = survey(source, PROBES)
    topology = build(facts.pci, facts.infiniband, facts.gpu, facts.nvlink, facts.gpu_pairs, facts.numa)
    asked = topology.gpus
    if gpus:
        from dgxcheck.cli import select

        asked = tuple(dict.fromkeys(select.gpus(topology, ",".join(gpus))))
    box = Box(snapshot=facts, topology=topology, gpus=asked)
    findings = run(box, checks, required)
    found = verdict(findings)
    code = EXIT_CODES[found] if found in _FAILING[fail_on] else 0
    host = facts.host
    names = {key: getattr(host, name) if isinstance(host, Host) else host for key, name in _HOST.items()}
    report = Report(
        findings=findings, verdict=found, exit_code=code, origin=source.origin, host=names,
        seconds=time.monotonic() - begun, verbose=verbose, fail_on=fail_on, settings=box.settings,
    )  # fmt: skip
    render = import_module(f"dgxcheck.output.health_{form}").render
    emit(render(report), output, color, form)
    if log is not None:
        log.line({"verdict": found.value, "exit_code": code})
        if log.trouble:
            click.echo(f"dgxcheck: {visible(log.trouble)}", err=True)
    return code


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
