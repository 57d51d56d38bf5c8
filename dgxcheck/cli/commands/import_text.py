"""``dgxcheck import``: what other tools printed, as a recording."""

from __future__ import annotations

import os

import click

from dgxcheck import __version__
from dgxcheck.cli.import_base import Base, base_of
from dgxcheck.cli.import_texts import KNOWN, Text, named, texts
from dgxcheck.cli.options import sources
from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.output.plain_text import visible
from dgxcheck.readers.benchmarks import catalogue
from dgxcheck.readers.gather import Gathered, Part, gathered
from dgxcheck.readers.nvidia_smi import catalogue as smi
from dgxcheck.readers.onto import listed, placed, unfit
from dgxcheck.source.recording.anonymize import hidden, site_key
from dgxcheck.source.recording.keys import Lines, flatten, insert
from dgxcheck.source.recording.load import SCHEMA
from dgxcheck.source.recording.save import check_place, replace_file, written

READERS = (*catalogue.READERS, *smi.READERS)
MOST_NAMED = 1000
"""Lines of one file that are named as not understood."""
SHOWN = 100
"""Characters of each, after blanks are made one."""
LONGEST = 1000


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="TEXT...")
@click.option("--onto", metavar="SOURCE", shell_complete=sources,
              help="The box that the texts were made on: a recording, or a directory that contains sys/.")  # fmt: skip
@click.option("-o", "--output", required=True, type=click.Path(), metavar="FILE",
              help="The recording to write; an existing file is replaced.")  # fmt: skip
def command(files: tuple[str, ...], onto: str | None, output: str) -> int:
    """Convert the output of other tools (TEXT, - for stdin) into a recording, for topo and health --from FILE.

    Supported are nvidia-smi topo, nvlink -s, -q and -q -x, p2pBandwidthLatencyTest, bandwidthTest, nvbandwidth,
    nccl-tests and more. Exit code 0: everything was read; 3: a part was read and the other lines are listed on stderr,
    or nothing was read and no FILE was written.
    """
    _check(output)
    base = None if onto is None else base_of(onto)
    read = texts(files)
    parts = [Part(text.name, found) for text in read for reader in READERS for found in reader(text.lines)]
    found = gathered(parts)
    unread = {text.name: _unread(text, parts) for text in read}
    complaints = [line for text in read for line in _complaints(text, parts, unread[text.name])]
    complaints += [_refusal(part) for part in found.refused]
    if not found.facts:
        for line in complaints:
            click.echo(f"dgxcheck: {visible(line)}", err=True)
        raise BadInput("nothing was read; no file was written")
    try:
        facts = _facts(found, base)
    except BadInput as error:
        raise BadInput(f"{named(read)} onto {onto}: {error}; no file was written") from None
    head, lines, later = _recording(facts, base)
    head["provenance"] = _provenance(read, [part for part in parts if part not in found.refused], unread, base)
    try:
        replace_file(output, written(head, lines, later), 0o644)
    except OSError as error:
        raise BadInput(f"{output}: cannot be written: {error.strerror}") from None
    for line in complaints:
        click.echo(f"dgxcheck: {visible(line)}", err=True)
    click.echo(f"{visible(output)}: {len(facts)} facts imported from {visible(named(read))}", err=True)
    return 3 if complaints else 0


def _check(output: str) -> None:
    if output == "-":
        raise BadInput("import cannot write to '-'; give a file name, or /dev/stdout")
    if os.path.isdir(output):
        raise BadInput(f"{output}: is a directory; give a file name")
    try:
        check_place(output)
    except OSError as error:
        raise BadInput(f"{output}: cannot be written: {error.strerror}") from None


def _facts(found: Gathered, base: Base | None) -> dict[str, Json]:
    """By key; on the GPUs of the base, or of a dump that was imported beside, where that fits."""
    if base is not None:
        if not base.gpus:
            raise BadInput("NVML lists no GPU of the box, so GPU numbers cannot be assigned")
        return placed(found.facts, base.gpus)
    gpus = listed(found.facts)
    if gpus and not unfit(found.facts, gpus):
        own = {key: fact for key, fact in found.facts.items() if key.startswith("nvml ")}
        return placed(found.facts, gpus) | own
    return found.facts


def _recording(facts: dict[str, Json], base: Base | None) -> tuple[dict[str, Json], Lines, list[tuple[float, Lines]]]:
    """Head, lines and later moments; identities of either side leave as pseudonyms of one key."""
    key = site_key()
    new: Lines = {}
    for name in sorted(facts):
        insert(new, name, facts[name])
    new, _ = hidden(new, (), key)
    head: dict[str, Json] = {"schema": SCHEMA, "tool_version": __version__, "identities": "pseudonyms"}
    if base is None:
        return head, new, []
    lines, later = base.with_identities_hidden(key)
    own = flatten(lines)
    for name, fact in flatten(new).items():
        if name.startswith(("measure ", "stated ")) or _is_gap(own.get(name)):
            insert(lines, name, fact)
    told: dict[str, Json] = {
        name: base.head[name] for name in ("machine", "recorded_at", "identities") if name in base.head
    }
    made_up = told.get("identities") == "made up"
    return {**head, **told, "identities": "made up" if made_up else "pseudonyms"}, lines, later


def _is_gap(fact: Json) -> bool:
    return fact is None or (isinstance(fact, dict) and "missing" in fact)


def _provenance(read: list[Text], parts: list[Part], unread: dict[str, list[int]], base: Base | None) -> Json:
    files: list[Json] = []
    for text in read:
        tools: list[Json] = [*dict.fromkeys(part.found.tool for part in parts if part.file == text.name)]
        files.append({"file": text.name, "tools": tools, "unread": len(unread[text.name])})
    return {"kind": "imported", "files": files, **({} if base is None else base.provenance())}


def _unread(text: Text, parts: list[Part]) -> list[int]:
    understood = {number for part in parts if part.file == text.name for number in part.found.understood}
    return [number for number, line in enumerate(text.lines) if line.strip() and number not in understood]


def _complaints(text: Text, parts: list[Part], unread: list[int]) -> list[str]:
    """Nothing known in it: one line; else one for each line that is not understood."""
    if not any(part.file == text.name for part in parts):
        return [f"{text.name}: contains no output of a supported tool; import reads {KNOWN}"]
    said = [
        f"{text.name}:{number + 1}: not read: {' '.join(text.lines[number][:LONGEST].split())[:SHOWN]}"
        for number in unread[:MOST_NAMED]
    ]
    return [
        *said,
        *([f"{text.name}: more lines not read: {len(unread) - MOST_NAMED}"] if len(unread) > MOST_NAMED else []),
    ]


def _refusal(part: Part) -> str:
    lines = part.found.understood
    return (
        f"{part.file}:{min(lines) + 1}-{max(lines) + 1}: {part.found.tool} output is left out because it contradicts"
        " earlier output; import only output of one box at one time"
    )
