"""``dgxcheck record``: all that a machine says, in one file."""

from __future__ import annotations

import os
import sys
import time

import click

from dgxcheck import __version__
from dgxcheck.cli.live import Live
from dgxcheck.cli.options import reading, seconds
from dgxcheck.facts.missing import BadInput, Json, Missing
from dgxcheck.output.plain_text import visible
from dgxcheck.source.protocol import Source
from dgxcheck.source.recording.anonymize import hidden, mark, site_key
from dgxcheck.source.recording.load import SCHEMA
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.save import check_place, replace_file, written
from dgxcheck.survey import ALL, COUNTERS, survey


@click.command("record")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option("--window", type=click.FloatRange(min=0.1, max=86400), metavar="SECONDS", callback=seconds,
              help="Read the counters again after this time, so that their growth can be checked.")  # fmt: skip
@click.option("--keep-identity", is_flag=True,
              help="Keep serial numbers, UUIDs, addresses and names; only you can then read the file.")  # fmt: skip
@reading
@click.pass_context
def command(
    ctx: click.Context, file: str, window: float | None, keep_identity: bool, spec: str | None, deadline: float
) -> int:
    """Save everything this machine reports to FILE, for use with --from FILE on any machine.

    The machine is not changed and not put under load. Serial numbers, UUIDs, GUIDs, addresses and names are replaced by
    pseudonyms. Exit code 0: FILE was written; 3: written, but a part of the machine did not answer in time, or nothing
    was written.
    """
    live: Live = ctx.obj
    _check(file)
    source = live.source(spec, "EVERYTHING", deadline)
    tape = RecordingSource(source)
    begun = time.time()
    survey(tape, ALL)
    if window is not None or isinstance(source, RecordedSource):
        _later(tape, window)
    silent = [key for key, fact in tape.facts.items() if isinstance(fact, dict) and fact.get("missing") == "timeout"]
    lines, later = tape.lines(), tape.later_lines()
    identities = _identities(source)
    key_mark = source.head.get("identity_key") if isinstance(source, RecordedSource) else None
    if not keep_identity and identities != "made up":
        key = site_key()
        lines, later = hidden(lines, later, key)
        # pseudonyms of pseudonyms are comparable with nothing
        key_mark = mark(key) if identities == "kept" else None
        identities = "pseudonyms"
    head: dict[str, Json] = {
        "schema": SCHEMA,
        "machine": _machine(tape),
        **_when(source, begun),
        "tool_version": __version__,
        "identities": identities,
        **({"identity_key": key_mark} if isinstance(key_mark, str) else {}),
        "provenance": _provenance(source),
    }
    try:
        replace_file(file, written(head, lines, later), 0o600 if keep_identity else 0o644)
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error.strerror}") from None
    click.echo(f"{visible(file)}: {len(tape.facts)} facts recorded", err=True)
    if silent:
        more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
        click.echo(f"no answer in time: {visible(silent[0])}{more}", err=True)
    return 3 if silent else 0


def _check(file: str) -> None:
    """A place that cannot be written to is refused before the machine is asked and a window waited for."""
    if file == "-":
        raise BadInput("record cannot write to '-'; give a file name, or /dev/stdout")
    if os.path.isdir(file):
        raise BadInput(f"{file}: is a directory; give a file name")
    try:
        check_place(file)
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error.strerror}") from None


def _when(source: Source, begun: float) -> dict[str, Json]:
    """``recorded_at``: now of this machine, the date of a recording; nobody knows that of a directory."""
    live = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)) if source.origin.kind == "live" else ""
    recorded_at = source.origin.recorded_at or live
    return {"recorded_at": recorded_at} if recorded_at else {}


def _identities(source: Source) -> str:
    """What the source's identities are as they stand: a recording may hold pseudonyms or made-up ones already."""
    said = source.head.get("identities") if isinstance(source, RecordedSource) else None
    return said if isinstance(said, str) and said in ("pseudonyms", "made up") else "kept"


def _provenance(source: Source) -> Json:
    """That of the recording that is recorded again, where it has one."""
    if isinstance(source, RecordedSource) and isinstance(source.head.get("provenance"), dict):
        return source.head["provenance"]
    return {"kind": "recorded", "from": "directory"} if source.origin.kind == "directory" else {"kind": "recorded"}


def _machine(tape: RecordingSource) -> str:
    """What ``dgxcheck recordings`` says of the box: the product that its firmware names."""
    product = tape.facts.get("text /sys/class/dmi/id/product_name")
    return product.strip() if isinstance(product, str) else ""


def _later(tape: RecordingSource, window: float | None) -> None:
    """The counters once more after ``window`` seconds; of a recording without one, at every moment that it holds."""
    if window is None:
        moment: Source | Missing = tape.later(0.0)
        while not isinstance(moment, Missing):
            survey(moment, COUNTERS)
            moment = moment.later(0.0)
        return
    if tape.origin.kind == "live" and sys.stderr.isatty():
        click.echo(f"reading the counters again in {window:g} s ...", err=True)
    later: Source | Missing = tape.later(window)
    if isinstance(later, Missing):
        raise BadInput(f"--window: the counters cannot be read again: {later}")
    survey(later, COUNTERS)
