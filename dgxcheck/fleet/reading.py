"""Results of many machines out of files and folders, one document after the other, within limits."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from time import process_time
from typing import BinaryIO

from dgxcheck.facts.missing import BadInput, Json, items_of, members_of
from dgxcheck.facts.record import Record
from dgxcheck.fleet.document import HEALTH, RESULT, NotAResult
from dgxcheck.fleet.same_name import another_of_series
from dgxcheck.input_file import CpuTime, opened
from dgxcheck.limits import FLEET_FILES, FLEET_IDLE_LINES, FLEET_RESULTS, RESULT_BYTES, RESULT_CPU_S
from dgxcheck.source.recording.load import unique

STDIN = "-"
_ENDINGS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
"""Files of a folder that can hold results; a file that is named itself may end in anything."""
_MOST_LINES = 3
"""Of a file that are named one by one."""
_NAME = rb"(?P<node>[A-Za-z0-9][\w.-]{0,254})"
_PREFIX = re.compile(rb"\s{0,12}(?:(?:" + _NAME + rb"|\d{1,6}):|\[[\w./-]{1,400}\]) (?=\{)")
"""Before each line as clush and pdsh print it, as ``srun -l`` does, and ``kubectl logs --prefix``."""
_STAMPED = re.compile(
    rb'(?P<node>)(?!\s{0,400}(?:\{|\[\s{0,400}[{"])).{1,400}?(?=\{"schema": ?"dgxcheck/)'
)
"""Before a result, other than in JSON, the stamp of docker, journald, rsyslog or stern."""
_MEMBER = re.compile(rb'(?P<node>)\s{0,12}"[\w.]{1,99}": ?(?="\{\\")')
"""Before a result in a string, as in a line of a task's document that is not whole."""
_TASK = re.compile(rb"(?:\w{1,12}: \[)?" + _NAME + rb'(?![\w.-])[^{"\n]{0,400} => (?=\{)')
"""Before the document of a task of Ansible, in one line or in many, of which a member holds the result."""
_RULE, _RULED = re.compile(rb"-{8,40}\s{0,4}"), re.compile(_NAME + rb"\s{0,4}")
"""``clush -b`` and dshbak print the node between two rules, above its lines."""
_NONE = "not a JSON document"
_COLLECT = "; collect what dgxcheck health --format jsonl prints"
_ABOVE = re.compile(
    _NAME + rb"(?: \| (?:CHANGED|SUCCESS|FAILED)(?: \| rc=\d{1,3})? >>|(?P<indents>:))\s{0,4}"
)  # fmt: skip
"""The line above what a node printed: of Ansible's commands, and of Salt, which indents that."""


class Unread(Record, kw_only=False):
    """What holds no result."""

    where: str
    """The file, and the line in it where it has several."""
    why: str


def documents(
    specs: Iterable[str], clock: Callable[[], float] = process_time, most: int = FLEET_RESULTS
) -> Iterator[tuple[str, Json] | Unread]:  # fmt: skip
    """Every document of the named files and folders, with where it stands. Raises BadInput for a name of nothing."""
    for path in _files(specs):
        if isinstance(path, Unread):
            yield path
            continue
        try:
            with opened(None if path == STDIN else path) as stream:
                yield from _documents(stream, "stdin" if path == STDIN else path, CpuTime(clock), most)
        except (OSError, EOFError) as error:
            yield Unread(path, f"cannot be read: {getattr(error, 'strerror', None) or error}")


def _files(specs: Iterable[str]) -> Iterator[str | Unread]:
    for spec in specs:
        if os.path.isdir(spec):
            yield from _below(spec)
        elif spec == STDIN or os.path.exists(spec):
            yield spec
        else:
            raise BadInput(f"{spec}: no such file or folder; give results of 'dgxcheck health --format jsonl'")


def _below(folder: str) -> Iterator[str | Unread]:
    """The files of a folder and those below it, in order; links to folders are not followed."""
    count = 0
    failed: list[OSError] = []
    for at, folders, names in os.walk(folder, onerror=failed.append):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(at, name)
            if name.endswith(_ENDINGS) and os.path.isfile(path):
                count += 1
                if count > FLEET_FILES:
                    raise BadInput(f"{folder}: more than {FLEET_FILES} results")
                yield path
    yield from (Unread(str(error.filename), f"cannot be read: {error.strerror}") for error in failed)


def _documents(stream: BinaryIO, where: str, time: CpuTime, most: int) -> Iterator[tuple[str, Json] | Unread]:
    """One per line, which may begin with its node, but for repetitions of the result before; a first line that is no
    whole document begins one that spans the file, or is a damaged one."""
    number, found, beside, failed, empty = 0, 0, 0, 0, True
    before = node = above_it = again = b""
    heading = None
    rest = BytesIO()

    def next_line() -> bytes:
        nonlocal again
        line, again = again or rest.readline(), b""
        return line if line.endswith(b"\n") else line + stream.readline(RESULT_BYTES + 1 - len(line))

    for line in time.within(iter(next_line, b"")):
        number += 1
        place = where if number == 1 else f"{where} line {number}"
        if line == before:
            beside, heading = beside + 1, None
            continue
        if (exceeded := _exceeded(where, number, line, number - found - beside, found, most)) is not None:
            yield exceeded
            return
        ruled, above_it = _RULE.fullmatch(above_it), line
        if not line.strip() or _RULE.fullmatch(line):
            continue
        above = _ABOVE.fullmatch(line) or (ruled and _RULED.fullmatch(line))
        if heading is not None and (above or (heading[1] and line[:1] != b" ")):
            failed += 1
            if failed <= _MOST_LINES:
                yield Unread(heading[0], f"{node.decode()} printed nothing" if above else _NONE + _COLLECT)
            node = b""
        heading = None
        empty = False
        if above:
            node, heading = above["node"], (place, bool(above.groupdict().get("indents")))
            continue
        begins = _start(line)
        if begins is not None:
            node, line = begins["node"] or node, line[begins.end() :]
        of_task, more = begins is not None and begins.re is _TASK, list[bytes]()
        if of_task and line.rstrip() == b"{":
            more = [*_block(iter(next_line, b""))]
            if more and more[-1].rstrip() != b"}" and more[-1][:1] not in _OF_BLOCK:
                again = more.pop()
            number, beside = number + len(more), beside + len(more)
            line += b"".join(more)
        why = f"{_NONE}{_COLLECT if not failed and line[:1] != b'{' else ''}"
        try:
            document = parsed(line)
            if document is None and number == 1 and begins is None:
                after = stream.read(RESULT_BYTES + 1 - len(line))
                document = parsed(line + after) if len(line + after) <= RESULT_BYTES else None
                rest = BytesIO(after if document is None and after[:1] == b"{" else b"")
            if of_task and document is None:
                document = _members(more) or None
            of_task |= isinstance(document, str)
            held = [*_within(document)] if of_task else []
            if node and of_task and document is not None and not held:
                document, why = None, f"{node.decode()}: what Ansible printed of it holds no result"
        except NotAResult as error:
            document, held, why = None, [], str(error)
        for name, each in [(node.decode(), one) for one in held] or _collected(document, node.decode()):
            if isinstance(each, dict) and _is_result(each):
                if another_of_series(name, host := str(each.get("host"))):
                    yield Unread(place, f"{name} printed a result of {host}")
                    continue
                found, before = found + 1, line
                time.more(RESULT_CPU_S)
                yield place, each
                continue
            failed += 1
            if failed <= _MOST_LINES:
                yield Unread(place, why) if each is None else (place, each)
        node = b""
    if heading is not None:
        yield Unread(heading[0], f"{node.decode()} printed nothing")
    if failed > _MOST_LINES:
        yield Unread(where, f"{failed - _MOST_LINES} more lines hold no result")
    if time.exceeded:
        yield Unread(where, time.exceeded)
    elif empty:
        yield Unread(where, "is empty")


def _exceeded(where: str, number: int, line: bytes, idle: int, found: int, most: int) -> Unread | None:
    """Why a file is read no further, where a line is too long, or too many before it hold no result, or one."""
    if len(line) > RESULT_BYTES:
        return Unread(f"{where} line {number}", f"longer than {RESULT_BYTES >> 20} MiB")
    if idle > FLEET_IDLE_LINES:
        return Unread(where, f"more than {FLEET_IDLE_LINES} lines hold no result; not read from line {number} on")
    if found > most:
        return Unread(where, f"more than {most} results; not read from line {number} on")
    return None


def _start(line: bytes) -> re.Match[bytes] | None:
    """What stands before the document in a line."""
    starts = () if line[:1] == b"{" else (_TASK, _PREFIX, _STAMPED, _MEMBER)
    return next(filter(None, (start.match(line) for start in starts)), None)


def _members(lines: Iterable[bytes]) -> list[Json]:
    """The documents in strings of a document that is not whole."""
    starts = ((line, start) for line in lines if (start := _MEMBER.match(line)))
    return [parsed(line[start.end() :].rstrip(b",\r\n ")) for line, start in starts]


_OF_BLOCK = (b" ", b"\t", b'"', b"]")
"""How lines begin between the braces of a document, also where a paste lost their indentation, if no
object stands in it."""


def _block(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Those of a document but for its head, within the size of a result, and the one after them."""
    size = 0
    for line in lines:
        yield line
        size += len(line)
        if line[:1] not in _OF_BLOCK or size > RESULT_BYTES:
            return


def _within(document: Json) -> Iterator[Json]:
    """The results in members of a document at any depth, or in their text, which often stands twice."""
    rest, read = [document], set[str]()
    while rest:
        one = rest.pop()
        if isinstance(one, str) and one[:1] == "{" and one not in read:
            read.add(one)
            one = parsed(one.encode("utf-8", "surrogatepass"))
        if _is_result(one):
            yield one
        else:
            rest += reversed([*items_of(one), *members_of(one).values()])


def _collected(document: Json, node: str) -> Iterable[tuple[str, Json]]:
    """A document, or those that somebody collected in a list or by the name of their node; with that name."""
    if isinstance(document, list) and document:
        return (("", each) for each in document)
    by_node = document if isinstance(document, dict) and document and "schema" not in document else {"": None}
    are_results = all("schema" in members_of(one) for one in by_node.values())
    return by_node.items() if are_results else ((node, document),)


def _is_result(document: Json) -> bool:
    return members_of(document).get("schema") in (RESULT, HEALTH)


def parsed(text: bytes) -> Json:
    """A JSON document; None for what is none. Raises NotAResult where a member stands twice."""
    try:
        encoding = "utf-8" if text[:2] == b'{"' else json.detect_encoding(text)
        document: Json = _DECODER.decode(text.decode(encoding, "surrogatepass"))
    except NotAResult:
        raise
    except (ValueError, RecursionError):
        return None
    return document


def _refused(word: str) -> None:
    raise ValueError(word)


def _each_once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    try:
        return unique(pairs)
    except ValueError as error:
        raise NotAResult(str(error)) from None


_DECODER = json.JSONDecoder(parse_constant=_refused, object_pairs_hook=_each_once)
