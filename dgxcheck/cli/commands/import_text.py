"""``dgxcheck import``: what other tools printed, as a recording."""

from __future__ import annotations

import click

from dgxcheck.assessment.importing.bundle import Opened, as_source, opened
from dgxcheck.assessment.importing.onto import base_of
from dgxcheck.assessment.importing.recording import TextsRead, read, recording
from dgxcheck.assessment.importing.texts import KNOWN, InputText, texts
from dgxcheck.assessment.importing.unread import nearest
from dgxcheck.assessment.machine import open_source
from dgxcheck.checks.engine.finding import counted, first_of
from dgxcheck.cli.options import options
from dgxcheck.cli.progress import TerminalProgress
from dgxcheck.cli.results import check_writable, emit, save
from dgxcheck.facts.missing import BadInput
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.output.recognised import AGAIN, CONTRADICTS, recognised
from dgxcheck.readers.bundles.sniff import is_bundle
from dgxcheck.readers.combine import Part

MOST_NAMED = 10
"""Lines of one file that are named as not understood."""
SHOWN = 100
"""Characters of each, after blanks are made one."""
LONGEST = 1000
OF_ONE_BOX = "import only output of one box at one time"


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="TEXT...")
@options("import")
def command(files: tuple[str, ...], onto: str | None, output: str | None, host: str | None, show: bool) -> int:
    """Convert the output of other tools (TEXT, - for stdin) into a recording, for topo and health --from FILE.

    Supported are nvidia-bug-report.log.gz, support archives, nvidia-smi topo, nvlink, -q and -q -x,
    p2pBandwidthLatencyTest, bandwidthTest, nvbandwidth, nccl-tests and more. Exit code 0: every known output was
    read; 3: lines of one were not, and are listed on stderr, or nothing was read and no FILE was written.
    """
    if output is None and not show:
        raise click.UsageError("give -o FILE, or --show to see what would be read")
    if output is not None:
        check_writable(output, "import")
    reports = tuple(file for file in files if file != "-" and is_bundle(file))
    if len(reports) > 1 or (reports and onto is not None):
        what = "--onto another one" if onto is not None else "the bug reports and archives of one machine at one time"
        raise BadInput(f"{reports[-1]}: stands for a machine of its own; import it alone, not {what}")
    with TerminalProgress().reading(files) as begin:
        for report in reports:
            begin(report)
        bundle = opened(reports[0], host or "") if reports else None
        base = None if onto is None else base_of(onto, open_source(onto))
        if bundle is not None and bundle.outputs:
            base = base_of(reports[0], as_source(reports[0], bundle))
        others = tuple(file for file in files if file not in reports)
        reading = read(texts(others), bundle, "" if reports else host or "", begin)
    if show:
        emit(lines(map(visible, recognised(reading))), None)
    complaints = [] if bundle is None else [*bundle.bundle.notes, *_of_files(bundle)]
    complaints += [line for text in reading.texts for line in _complaints(text, reading)]
    complaints += [_left_out(part, f"{CONTRADICTS}; {OF_ONE_BOX}") for part in reading.combined.refused]
    complaints += [_left_out(part, AGAIN) for part in reading.combined.again]
    if not reading.combined.facts and (bundle is None or not bundle.outputs):
        if not reading.parts or output is not None:
            _complain(complaints)
            what = "recognised, but it reports nothing" if reading.parts else "nothing was read"
            raise BadInput(f"{what}; no file was written" if output is not None else what)
        tools = dict.fromkeys(part.found.tool.partition(" (")[0] for part in reading.parts)
        emit(f"{', '.join(tools)}: nothing reported in it\n", None)
    if output is not None:
        text, count, left = recording(reading, base)
        save(output, text, 0o644)
        _complain(complaints)
        if left:
            shown = first_of([f"{what} ({number})" for what, number in left.items()], 3)
            number = counted(sum(left.values()), "fact")
            click.echo(f"{number} not taken: the box has its own {visible(shown)}", err=True)
        before = [] if reading.bundle is None else [reading.bundle.bundle.name]
        from_where = visible(first_of([*before, *(each.name for each in reading.texts)], 3))
        click.echo(f"{visible(output)}: {counted(count, 'fact')} imported from {from_where}", err=True)
    return 3 if complaints else 0


def _of_files(opened: Opened) -> list[str]:
    """For a directory: the files that were read in part or not at all."""
    if opened.bundle.kind != "directory":
        return []
    left = opened.left
    return [
        *(f"{file}: {counted(len(lines), 'line')} not read: see --show" for file, lines in opened.found.unread.items()),
        *([f"{counted(len(left), 'file')} not read: {first_of(left, 3)}: see --show"] if left else []),
    ]


def _complain(complaints: list[str]) -> None:
    for line in complaints:
        click.echo(f"dgxcheck: {visible(line)}", err=True)


def _complaints(text: InputText, reading: TextsRead) -> list[str]:
    """Nothing known in it: one line; else the first lines that are not understood."""
    if not any(part.file == text.name for part in reading.parts):
        if not any(map(str.strip, text.lines)):
            return [f"{text.name}: file is empty"]
        like = nearest(text.layout.lines)
        lacking = "; ".join(filter(None, (text.selection, like or f"import reads {KNOWN}")))
        return [f"{text.name}: contains no output of a supported tool; {lacking}"]
    beside = reading.beside(text.name)
    unread = [number for number in reading.unread[text.name] if number not in beside]
    named_lines = [
        f"{text.name}:{number + 1}: not read: {' '.join(text.lines[number][:LONGEST].split())[:SHOWN]}"
        for number in unread[:MOST_NAMED]
    ]
    rest = len(unread) - MOST_NAMED
    more = [f"{text.name}: {counted(rest, 'more line')} not read: see --show"] if rest > 0 else []
    return [*([f"{text.name}: {text.selection}"] if text.selection else []), *named_lines, *more]


def _left_out(part: Part, why: str) -> str:
    lines = part.found.understood
    return f"{part.file}:{min(lines) + 1}-{max(lines) + 1}: {part.found.tool} output is left out because it {why}"
