"""``dgxcheck import``: what other tools printed, as a recording."""

from __future__ import annotations

import click

from dgxcheck.assessment.import_base import base_of
from dgxcheck.assessment.import_text import Reading, read, recording
from dgxcheck.assessment.import_texts import KNOWN, Text, named, texts
from dgxcheck.cli.options import check_writable, save, sources
from dgxcheck.facts.missing import BadInput
from dgxcheck.output.plain_text import visible
from dgxcheck.readers.gather import Part

MOST_NAMED = 1000
"""Lines of one file that are named as not understood."""
SHOWN = 100
"""Characters of each, after blanks are made one."""
LONGEST = 1000


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="TEXT...")
@click.option("--onto", metavar="SOURCE", shell_complete=sources,
              help="The box whose GPUs the indexes are: a recording, or a directory with sys/ inside.")  # fmt: skip
@click.option("-o", "--output", required=True, type=click.Path(), metavar="FILE",
              help="The recording to write; one that is there is replaced.")  # fmt: skip
def command(files: tuple[str, ...], onto: str | None, output: str) -> int:
    """Read what other tools printed (TEXT, - for stdin) into a recording, for topo and health --from FILE.

    It reads nvidia-smi topo, nvlink -s, -q and -q -x, p2pBandwidthLatencyTest, bandwidthTest, nvbandwidth, nccl-tests
    and more. Exit code 0: all was read; 3: a part was, and stderr names the other lines; or nothing, and no FILE.
    """
    check_writable(output, "import")
    base = None if onto is None else base_of(onto)
    reading = read(texts(files))
    complaints = [line for text in reading.texts for line in _complaints(text, reading)]
    complaints += [_refusal(part) for part in reading.gathered.refused]
    if not reading.gathered.facts:
        _complain(complaints)
        raise BadInput("nothing was read, and no file is written")
    text, count = recording(reading, base)
    save(output, text, 0o644)
    _complain(complaints)
    click.echo(f"{visible(output)}: {count} facts imported from {visible(named(reading.texts))}", err=True)
    return 3 if complaints else 0


def _complain(complaints: list[str]) -> None:
    for line in complaints:
        click.echo(f"dgxcheck: {visible(line)}", err=True)


def _complaints(text: Text, reading: Reading) -> list[str]:
    """Nothing known in it: one line; else one for each line that is not understood."""
    if not any(part.file == text.name for part in reading.parts):
        return [f"{text.name}: no output of a known tool in it; import reads {KNOWN}"]
    unread = reading.unread[text.name]
    named_lines = [
        f"{text.name}:{number + 1}: not read: {' '.join(text.lines[number][:LONGEST].split())[:SHOWN]}"
        for number in unread[:MOST_NAMED]
    ]
    more = [f"{text.name}: {len(unread) - MOST_NAMED} more lines not read"] if len(unread) > MOST_NAMED else []
    return [*named_lines, *more]


def _refusal(part: Part) -> str:
    lines = part.found.understood
    return (
        f"{part.file}:{min(lines) + 1}-{max(lines) + 1}: {part.found.tool} is left out: it contradicts an earlier one; "
        "import outputs of one box at one time"
    )
