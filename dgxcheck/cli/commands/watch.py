"""``dgxcheck watch``: report what is new in the kernel log, devices, counters and health, each thing once."""

from __future__ import annotations

import gc
import os
import shutil
import sys

import click

from dgxcheck.assessment.machine import LiveMachine
from dgxcheck.assessment.progress import interruptible
from dgxcheck.assessment.selection import site_settings
from dgxcheck.cli import watch_sinks
from dgxcheck.cli.options import given, options
from dgxcheck.facts.missing import BadInput
from dgxcheck.output.watch import json_line, text_line
from dgxcheck.profiles.library import by_name
from dgxcheck.source import state_file
from dgxcheck.watch.dispatcher import Sink
from dgxcheck.watch.hook import ENDING_S
from dgxcheck.watch.memory import NAME
from dgxcheck.watch.plan import Plan

_OF_SAVED_LOG = frozenset(("kernel_log", "form", "program"))
_FORMS = {"json": json_line, "text": text_line}


@click.command("watch")
@options("watch")
@click.pass_context
def command(
    ctx: click.Context, every: float, no_health: bool, counters: float, state: str | None, metrics: str | None,
    program: str | None, kernel_log: str | None, form: str, profile: str, config: str | None, deadline: float,
) -> int:  # fmt: skip
    """Watch this machine, and report each event once: Xids, PCIe errors, removed devices, counters, health.

    Nothing is repaired or changed. SIGTERM or Ctrl-C ends it. Exit code 0: it was ended; 3: it could not run.
    """
    named = {*given(ctx, *ctx.params)}
    if no_health and "every" in named:
        raise click.UsageError("--every is how often the health is checked; --no-health never checks it", ctx)
    if kernel_log is not None and (idle := sorted(named - _OF_SAVED_LOG)):
        raise click.UsageError(f"--kernel-log watches nothing; leave out --{idle[0].replace('_', '-')}", ctx)
    if kernel_log is not None and form == "table":
        raise click.UsageError("--kernel-log has no table; give --format text or json", ctx)
    gc.enable()  # it runs for months
    if program is not None and shutil.which(program) is None:
        raise BadInput(f"--exec {program}: no such program, or not executable")
    hook = [watch_sinks.ProgramSink(os.path.abspath(shutil.which(program) or program))] if program is not None else []
    if kernel_log is not None:
        return _replay(kernel_log, form, hook)
    site_settings(config)
    if profile not in ("auto", "none"):
        by_name(profile)
    machine: LiveMachine = ctx.obj
    shown = _shown(form)
    # workers do not run in this directory
    plan = Plan(
        root=machine.root, state=os.path.abspath(state or state_file.default_path(NAME)),
        judge_s=0 if no_health else every, counters_s=counters,
        profile=os.path.abspath(profile) if profile.endswith(".toml") or "/" in profile else profile,
        config=None if config is None else os.path.abspath(config), deadline=deadline,
    )  # fmt: skip
    # stdout last: where it cannot be written, the watch ends
    listening: list[Sink] = [*hook, *([watch_sinks.MetricsSink(metrics)] if metrics is not None else []), shown]
    from dgxcheck.watch.loop import Watch

    watch = Watch(plan, listening)
    with interruptible(watch.stop):
        watch.run()
    for sink in hook:
        sink.finish(ENDING_S)
    return 0


def _shown(form: str) -> Sink:
    if form == "auto":
        if watch_sinks.stdout_is_journal():
            return watch_sinks.JournalSink()
        form = "table" if sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else "json"
    return watch_sinks.TableSink() if form == "table" else watch_sinks.LineSink(_FORMS[form])


def _replay(path: str, form: str, hook: list[watch_sinks.ProgramSink]) -> int:
    from dgxcheck.watch.log_events import replayed

    as_json = form == "json" or (form == "auto" and not sys.stdout.isatty())
    lines = watch_sinks.LineSink(_FORMS["json" if as_json else "text"])
    for reported in replayed(path):
        lines.tell(reported)
        for sink in hook:
            sink.hook.make_room()
            sink.tell(reported)
    for sink in hook:
        sink.finish()
    return 0
