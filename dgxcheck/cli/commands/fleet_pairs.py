"""``dgxcheck fleet pairs``: plan measurements of nodes in pairs, and judge their outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import click

from dgxcheck.checks.engine.finding import Status
from dgxcheck.cli.options import options
from dgxcheck.cli.results import emit, exit_code, renderer
from dgxcheck.facts.missing import BadInput
from dgxcheck.fleet.pairs import ALL, Plan, Port, judge, read, rounds
from dgxcheck.output.report import PairsReport

_ADAPTERS = re.compile(r"[A-Za-z0-9_.-]{1,64}(?:,[A-Za-z0-9_.-]{1,64}){0,31}", flags=re.ASCII)
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}", flags=re.ASCII)


@click.command("pairs")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path())
@options("fleet pairs")
@click.pass_context
def command(
    ctx: click.Context, folder: str | None, where: str | None, count: str, test: str, adapters: str | None,
    launcher: str, timeout: int, fabric: str | None, verbose: bool, fail_on: str, form: str, output: str | None,
) -> int:  # fmt: skip
    """Measure nodes in pairs, and say which node, adapter, cable or leaf is slow.

    With -w NODES, print a script that runs some rounds of a measurement and leaves an output per pair in a folder.
    With DIR, that folder, judge the outputs. A folder of results for dgxcheck fleet that is called pairs is ./pairs.
    """
    if (folder is None) == (where is None):
        raise click.UsageError("give -w NODES for a script, or the folder that the script filled", ctx)
    if where is not None:
        plan = Plan(
            rounds=rounds(_nodes(where), _count(ctx, count)), test=test, adapters=_adapters(adapters, test),
            launcher=launcher, seconds=timeout,
        )  # fmt: skip
        emit(renderer("fleet.pairs.script")(plan), output)
        return 0
    assert folder is not None
    judged = judge(*read(folder), *(() if fabric is None else _fabric(fabric)))
    certain = any(each.what not in ("suspect", "path", "rate") for each in judged.blamed)
    verdict = Status.WARN if judged.blamed else Status.PASS
    verdict = Status.FAIL if certain else Status.UNKNOWN if judged.unread else verdict
    code = exit_code(verdict, fail_on)
    report = PairsReport(judged, verdict.value, code, verbose)
    emit(renderer(f"fleet.pairs.{'text' if form == 'text' else 'as_json'}")(report), output, form=form)
    return code


def _nodes(where: str) -> tuple[str, ...]:
    """Names that a shell takes as they are."""
    from dgxcheck.cli.commands.fleet import wanted

    nodes = wanted(where, "-w")
    if (wrong := next((node for node in nodes if not _NODE.fullmatch(node)), None)) is not None:
        raise BadInput(f"-w: {wrong[:80]!r} is no host name")
    return nodes


def _count(ctx: click.Context, text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isdecimal() and len(text) < 6 and int(text)):
        raise click.UsageError(f"--rounds: {text!r} is neither a number from 1 on nor all", ctx)
    return int(text)


def _adapters(text: str | None, test: str) -> tuple[str, ...]:
    if text is None:
        return ("mlx5_0",) if test == "ib_write_bw" else (ALL,)
    if not _ADAPTERS.fullmatch(text):
        raise BadInput(f"--adapters: {text[:80]!r} is no list such as mlx5_0,mlx5_1")
    if test == "nvbandwidth":
        raise BadInput("--adapters: nvbandwidth goes over NVLink, not over adapters")
    return tuple(dict.fromkeys(text.split(",")))


def _fabric(file: str) -> tuple[Mapping[Port, str], Mapping[Port, str], Mapping[Port, float]]:
    """The leaf of each adapter, what is wrong with its cable, and the nominal GB/s of its link."""
    from dgxcheck.fabric.intent import places_of
    from dgxcheck.fabric.judge import judge as judged
    from dgxcheck.fabric.model import fabric_of
    from dgxcheck.fabric.reading import outputs

    fabric = fabric_of(outputs([file]).texts)
    places = places_of(fabric)
    if not places:
        raise BadInput(f"{file}: no adapter on a switch; give the output of ibnetdiscover -p")
    ports = {f"{host} {name}": (host, name) for host, own in places.items() for name in own}
    notes = {ports[end]: finding.message for finding in judged(fabric).findings for end in finding.ends if end in ports}
    at = {(host, name): place for host, own in places.items() for name, place in own.items()}
    leaves = {plug: fabric.switch(place[0]) for plug, place in at.items()}
    return leaves, notes, {plug: fabric.at[place].gbit / 8 for plug, place in at.items()}
