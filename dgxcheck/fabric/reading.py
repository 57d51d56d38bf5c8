"""Outputs about a fabric: of files, of the standard input, and of ibnetdiscover on this host."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial

from dgxcheck.checks.engine.finding import counted
from dgxcheck.fabric.model import fabric_of
from dgxcheck.fabric.plan import as_it_was
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.input_file import CpuTime, opened, too_large
from dgxcheck.limits import FABRIC_BYTES, FABRIC_LINES
from dgxcheck.readers.fabric.any_fabric import FabricText, read
from dgxcheck.readers.fabric.plan import PlannedCable, planned
from dgxcheck.rootfs import decode

STDIN = "-"
PROGRAM = "ibnetdiscover"
_WANTED = "ibnetdiscover, iblinkinfo, ibdiagnet's db_csv or net_dump, lldpctl -f json, ibqueryerrors or perfquery"
_LLDP = re.compile(r"\s*\{\s*\"lldp\"")


class Outputs(Record):
    """What was read, and what holds nothing of a fabric."""

    texts: tuple[FabricText, ...]
    unread: tuple[str, ...]
    cut: bool = False
    """Does one of them end within a row?"""


def outputs(specs: Sequence[str]) -> Outputs:
    """Of all files together; error counters say something of a cable, which another output has to name."""
    texts: list[FabricText] = []
    unread: list[str] = []
    counters: list[str] = []
    cut = False
    for spec in specs:
        name = "stdin" if spec == STDIN else spec
        written = _text(spec)
        text = CpuTime().whole(spec, partial(read, written, _machine(name)))
        if text.unlisted or _is_cut(written):
            cut = True
            more = f"names {counted(text.unlisted, 'node')} that it does not list"
            how = more if text.unlisted else "ends within a row"
            unread.append(f"{name}: {how}, so what is not in it may be behind its end; read the whole output")
        if text.rows or text.errors:
            texts.append(text)
            counters += [] if text.rows else [name]
        else:
            unread.append(f"{name}: {_why(written)}")
    if not any(text.rows for text in texts):
        more = "error counters, but no cable; give the output of ibnetdiscover -p too"
        unread += [f"{name}: {more}" for name in counters]
    return Outputs(texts=tuple(texts), unread=tuple(unread), cut=cut)


def _why(text: str) -> str:
    """What holds nothing of a fabric may be of it all the same."""
    if _LLDP.match(text):
        return "lldpctl heard no neighbor; look whether lldpd runs here and the switches send LLDP"
    try:
        return f"a plan of {counted(len(planned(text, '')), 'cable')}; give it as --plan FILE"
    except BadInput:
        return f"no output of {_WANTED}"


def _machine(path: str) -> str:
    """Whose output of lldpctl it is: dgx001 of lldp/dgx001.json.gz."""
    return os.path.basename(path).partition(".")[0]


def _is_cut(text: str) -> bool:
    """Does it end within a name or bracket? What a page or an editor left out is the last newline alone."""
    last = text[text.rfind("\n") + 1 :].rstrip()
    if last[:3] in ("CA ", "SW "):  # ibnetdiscover -p
        return not last.endswith((")", "'"))
    return last.count('"') % 2 == 1 or last.count("(") > last.count(")") or last.count("[") > last.count("]")


def plan(path: str) -> tuple[PlannedCable, ...]:
    """The cables of a plan, or of an earlier output of a tool; BadInput where it is neither, or is cut off."""
    text = _text(path)
    earlier = CpuTime().whole(path, partial(read, text, _machine(path)))
    if not any(row.peer for row in earlier.rows):
        return planned(text, path)
    if _is_cut(text):
        raise BadInput(f"{path}: ends within a row, so the cables behind it are not planned; give the whole output")
    return as_it_was(fabric_of([earlier]))


def live(timeout_s: float) -> Outputs:
    """``ibnetdiscover -p`` in a process of its own, ended after ``timeout_s``; BadInput where it does not answer."""
    from shutil import which

    path = which(PROGRAM) or which(PROGRAM, path="/usr/sbin:/sbin:/usr/local/sbin")
    if path is None:
        raise BadInput(f"{PROGRAM} is not installed (infiniband-diags); give files with its output")
    text = read(_output([path, "-p"], timeout_s))
    if not text.rows:
        raise BadInput(f"{PROGRAM} found no port; it needs an active InfiniBand port and access to /dev/infiniband")
    return Outputs(texts=(text,), unread=())


def _output(argv: Sequence[str], timeout_s: float) -> str:
    import subprocess
    from signal import SIGKILL

    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as child:
        try:
            out, errors = child.communicate(timeout=timeout_s)
        except BaseException as error:
            os.killpg(child.pid, SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise BadInput(f"{PROGRAM} did not end within {timeout_s:g} s") from None
            raise
    if child.returncode and not out:
        lines = decode(errors).strip().splitlines()
        raise BadInput(f"{PROGRAM} failed: {lines[-1][:200] if lines else f'exit {child.returncode}'}")
    return decode(out[:FABRIC_BYTES])


def _text(spec: str) -> str:
    try:
        with opened(None if spec == STDIN else spec) as stream:
            data = stream.read(FABRIC_BYTES + 1)
    except (OSError, EOFError) as error:
        raise BadInput(f"{spec}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > FABRIC_BYTES:
        raise too_large(spec, FABRIC_BYTES)
    if data.count(b"\n") > FABRIC_LINES:
        raise BadInput(f"{spec}: more than {FABRIC_LINES} lines")
    return decode(data).removeprefix("\ufeff")  # as spreadsheets begin their csv
