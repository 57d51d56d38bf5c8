"""``dgxcheck health``: is the box healthy?"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

import click

from dgxcheck.checks.catalogue import CHECKS, PROBES
from dgxcheck.checks.check import Box, Check
from dgxcheck.checks.finding import Status
from dgxcheck.checks.run import EXIT_CODES, run, verdict
from dgxcheck.cli.live import Live
from dgxcheck.cli.options import F, emit, reading, writing
from dgxcheck.configuration import of_site
from dgxcheck.facts.host import Host
from dgxcheck.output.health_report import Report
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
    require: tuple[str, ...], explain: str | None, config: str | None, verbose: bool, fail_on: str, form: str,
    spec: str | None, deadline: float, output: str | None, color: str,
) -> int:  # fmt: skip
    """Is the box healthy? Driver, GPUs, memory errors, clocks, power, temperature and PCIe links, read once.

    No load is put on the box and nothing is changed. Exit code 0: pass; 1: warn; 2: fail; 3: unknown, which is also
    the verdict where nothing could be judged.
    """
    settings = of_site(config, [check.id for check in CHECKS])
    if explain is not None:
        from dgxcheck.output import health_text

        emit("\n".join(health_text.explained(check, settings) for check in _named((explain,))), output, color)
        return 0
    begun = time.monotonic()
    left_out = {check.id for check in _named(skip)}
    checks = [check for check in (_named(only) or CHECKS) if check.id not in left_out]
    required = {check.id for check in _named(require)}
    if idle := sorted(required - {check.id for check in checks}):
        raise BadInput(f"--require {idle[0]}, but --only or --skip leaves it out")
    live: Live = ctx.obj
    source = live.source(spec, "HEALTH", deadline)
    facts = survey(source, PROBES)
    topology = build(facts.pci, facts.infiniband, facts.gpu, facts.nvlink, facts.gpu_pairs, facts.numa)
    asked = topology.gpus
    if gpus:
        from dgxcheck.cli import select

        asked = tuple(dict.fromkeys(select.gpus(topology, ",".join(gpus))))
    findings = run(Box(snapshot=facts, topology=topology, gpus=asked, settings=settings), checks, required)
    found = verdict(findings)
    code = EXIT_CODES[found] if found in _FAILING[fail_on] else 0
    host = facts.host
    names = {key: getattr(host, name) if isinstance(host, Host) else host for key, name in _HOST.items()}
    report = Report(
        findings=findings, verdict=found, exit_code=code, origin=source.origin, host=names,
        seconds=time.monotonic() - begun, verbose=verbose,
    )  # fmt: skip
    render = import_module(f"dgxcheck.output.health_{form}").render
    emit(render(report), output, color, form)
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
