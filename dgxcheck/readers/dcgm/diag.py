"""``dcgmi diag``: the table of every version, whole or some of its rows, and ``-j``, also where the JSON is cut.

DCGM 2 and 3 name ``gpu_ids`` or ``gpu_id``, DCGM 4 ``entity_group`` and ``entity_id``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from dgxcheck.facts.bdf import unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json, items_of, members_of
from dgxcheck.facts.record import replace
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.dcgm.cells import DiagCell, cells, frame
from dgxcheck.readers.dcgm.messages import fault_of, judged
from dgxcheck.readers.formats import documents
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart, topic_of
from dgxcheck.readers.values import MOST_GPUS, bounded, gpu

TOOL = "dcgmi diag"
OUTCOMES: dict[str, Outcome] = {"pass": "pass", "fail": "fail", "warn": "warn", "warning": "warn"}
_RESULT = LazyPattern(r"(?P<word>Pass|Fail|Warn|Skip)(?: - (?:All|GPUs?: (?P<gpus>\d{1,3}(?:, ?\d{1,3}){0,63}),?))?")
_OF_GPU = LazyPattern(r"GPU ?(?P<gpu>\d{1,3}) ?: (?P<word>Pass|Fail|Warn|Skip)")
_MESSAGE = LazyPattern(r"(?P<kind>Warning|Error|Info)(?: ?: GPU ?(?P<gpu>\d{1,3}))?")
NAMED_GPU = LazyPattern(r"\bGPU ?(\d{1,2})(?!\d)")
_WORST = ("fail", "warn", "pass", "skip")
_ALONE: dict[str, Outcome] = {"Error": "fail", "Warning": "warn"}
_ID = LazyPattern("[0-9A-Fa-f]{4}")
_META = ("DCGM Version", "Driver Version Detected", "Diagnostic", "hostengine", "Hostname")
_CHATTER = LazyPattern(r"Successfully ran diagnostic for group\.?|Error: Diagnostic could not be run.{0,200}")


def read_diag(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Each test of each GPU that the table shows a result of."""
    lines = bounded(lines)
    if any(_OF_NODES in line for line in lines):
        return _of_nodes(lines)
    part = ToolPart(TOOL)
    test, outcome = "", ""
    failed: list[str] = []
    for cell in cells(lines):
        message = _MESSAGE.fullmatch(cell.left)
        results = [*_results(cell)] if message is None else []
        if message is not None:
            explained = _explain(part, message, cell.right, test, outcome, failed)
            failed = [name for name in failed if name not in explained and (name != HOST or not explained)]
            if not (explained or test):
                continue
        elif results:
            _add_failed(part, failed, test, OUTCOMES.get(outcome, "pass"))
            test = cell.left
            outcome = next(word for word in _WORST if word in {each for _, each in results})
            failed = [name for name, word in results if word == outcome and word in ("fail", "warn")]
            for name in (name for name, word in results if word == "pass"):
                part.add(name, topic_of(test), "pass")
        elif cell.left == "GPU Device IDs Detected":
            part.found |= _models(cell.parts)
        elif cell.left not in _META:
            continue
        part.lines.update(cell.lines)
    _add_failed(part, failed, test, OUTCOMES.get(outcome, "pass"))
    part.beside = frame(lines, part.lines, 4, lambda text: _CHATTER.fullmatch(text) is not None)
    return part.imported()


NODES_TOOL = "dcgmi mndiag"
_OF_NODES = "MNUBERGEMM Test"
_NODE = LazyPattern(r"Host (?P<host>\d{1,4})(?: \(GPU (?P<gpu>\d{1,3})\))?")
_NAMED_NODE = LazyPattern(r"(?P<host>\d{1,4}): (?P<name>\S{1,253})", ": ")
_GPUS_OF_NODE = LazyPattern(r"GPUs?:? (?P<gpus>\d{1,3}(?:, \d{1,3}){0,63})")
_ABOUT_NODES = (_OF_NODES, "Diagnostic", "Driver Version", "DCGM Version", "Hosts Found", "Hosts With Errors",
                "Total GPUs", "GPU Errors", "GPUs")  # fmt: skip


def _of_nodes(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``dcgmi mndiag`` (DCGM, dcgmi/MnDiag.cpp): the GPUs of each host; what failed without one did not run."""
    names: dict[str, str] = {}
    results: dict[tuple[str, str], tuple[str, str]] = {}
    whole = ToolPart(NODES_TOOL)
    host = ""
    for cell in cells(lines):
        if cell.left == "Host List":
            names |= {match["host"]: match["name"] for part in cell.parts if (match := _NAMED_NODE.fullmatch(part))}
        elif match := _NODE.fullmatch(cell.left):
            host = match["host"]
            if match["gpu"]:
                results[host, match["gpu"]] = "fail", cell.right.removeprefix("Error: ")
        elif match := _GPUS_OF_NODE.fullmatch(cell.left):
            text = cell.unwrapped(cell.parts[1:]).removeprefix("Error: ")
            for number in match["gpus"].split(", "):
                results.setdefault((host, number), (cell.parts[0].strip().lower(), text))
        elif cell.left == "MPI Error":
            whole.add(HOST, "mpi", "unknown", None, f"it did not run: {cell.right.removeprefix('Error: ')}")
        elif cell.left not in _ABOUT_NODES:
            continue
        whole.lines.update(cell.lines)
    whole.lines |= frame(lines, whole.lines, 4, lambda text: text.endswith(("diagnostic.", "diagnostic failed.")))
    parts: dict[str, ToolPart] = {}
    for (at, number), (word, text) in results.items():
        if (outcome := OUTCOMES.get(word)) is not None:
            part = parts.setdefault(names.get(at, ""), ToolPart(NODES_TOOL))
            how, fault = (outcome, None) if outcome == "pass" else judged(outcome, text)
            part.add(f"GPU{int(number)}", "mnubergemm", how, fault, f"test MNUBERGEMM: {text}" if text else "")
    return (*(whole.imported() if whole else ()), *_by_host(parts, whole.lines))


def _by_host(parts: Mapping[str, ToolPart], lines: Collection[int]) -> Iterator[Imported]:
    for name, part in parts.items():
        part.lines.update(lines)
        yield from (replace(output, host=name.partition(".")[0]) for output in part.imported())


def _models(parts: Sequence[str]) -> dict[str, Json]:
    """Of the GPUs from 0 on, where all are alike: those that were tested, by which numbers it does not say."""
    ids = "".join(parts).replace(" ", "").split(",")
    if len({*ids}) > 1 or not _ID.fullmatch(ids[0]) or len(ids) > MOST_GPUS:
        return {}
    facts: dict[str, Json] = {f"{INDEX} {n}": unplaced(n) for n in range(len(ids))}
    return facts | {f"nvml nvmlDeviceGetPciInfo {unplaced(n)}": {"pciDeviceId": int(f"{ids[0]}10de", 16)}
                    for n in range(len(ids))}  # fmt: skip


def _results(cell: DiagCell) -> Iterator[tuple[str, str]]:
    """Pairs of GPU (or host) and ``pass`` ..; nothing for a cell that holds no result."""
    per_gpu = False
    whole: list[tuple[str, str]] = []
    for part in cell.parts:
        text = part.strip()
        if of_gpu := _OF_GPU.fullmatch(text):
            per_gpu = True
            yield f"GPU{int(of_gpu['gpu'])}", of_gpu["word"].lower()
        elif match := _RESULT.fullmatch(text):
            named = [f"GPU{int(number)}" for number in (match["gpus"] or "").replace(" ", "").split(",") if number]
            whole += [(name, match["word"].lower()) for name in named or [HOST]]
    if not per_gpu:
        yield from whole


def _add_failed(reports: Reports, subjects: Sequence[str], test: str, outcome: Outcome, message: str = "") -> None:
    """What a message says of a test that did not pass; without one, that it ended so."""
    word, fault = judged(outcome, message)
    ran = " did not run" if word == "unknown" else ""
    text = message if not test else f"test {test}{ran}: {message}" if message else f"test {test} ended with {outcome}"
    for subject in subjects:
        reports.add(subject, topic_of(test), word, fault, text)


def _explain(
    reports: Reports, message: re.Match[str], text: str, test: str, outcome: str, failed: list[str]
) -> list[str]:
    """Enter the message below a result for the GPU that it names, else for those that failed; the names of these.

    A message without the row of its test counts where it says what is wrong with which GPU.
    """
    named = [message["gpu"]] if message["gpu"] else NAMED_GPU.findall(text)
    subjects = [f"GPU{int(number)}" for number in dict.fromkeys(named)] or failed
    fault = fault_of(text)
    if test:
        of_test = OUTCOMES.get(outcome, "pass")
    else:
        of_test = _ALONE.get(message["kind"], "pass") if named and fault is not Fault.TEST_FAILED else "pass"
    if message["kind"] == "Info" or of_test == "pass":
        return []
    _add_failed(reports, subjects, test, of_test, text)
    return subjects


_TOKEN = LazyPattern(r'"((?:[^"\\]|\\.){0,2000})"\s{0,8}(:?)|([{}])|(?<![\w.])(\d{1,10})(?![\w.])')
_OF_RESULT = ("gpu_id", "gpu_ids", "entity_id", "entity_group", "status")
_WARNINGS = ("warning", "warnings")


def tests(lines: Sequence[str]) -> Iterator[tuple[dict[str, Json], range]]:
    """Each object with a status and the GPUs that it is of, as a test with one result; with the lines that it is on.

    The name of the test is the last one before it.
    """
    name, key = "test", ""
    result: dict[str, Json] = {}
    warnings: list[Json] = []
    depth = begun = first = 0
    for number, line in enumerate(lines):
        for text, colon, brace, digits in _TOKEN.findall(line[:4000]):
            if colon:
                key = text
            elif brace:
                depth += 1 if brace == "{" else -1
                if result and depth < begun:
                    if "status" in result and len(result) > 1:
                        yield {"name": name, "results": [{**result, "warnings": [*warnings]}]}, range(first, number + 1)
                    result, warnings = {}, []
            elif key == "name":
                name = text or name
            elif key in _OF_RESULT:
                begun, first = (begun, first) if result else (depth, number)
                result[key] = text or digits
            elif key in _WARNINGS and text and result:
                warnings.append(text)


_MEMBER = LazyPattern(r'"(?:test_categories|gpu_ids?|entity_id)"\s{0,8}:')
_JSON = LazyPattern(r'[\s{}\[\],:]{1,400}|[\s{\[]{0,80}"[^"]{0,80}".{0,2000}')
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")


def read_json(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every result of every test; those of ``dcgmi mndiag`` by host."""
    lines = bounded(lines)
    part = ToolPart(TOOL)
    nodes: dict[str, ToolPart] = {}
    for found, where in documents(lines, lambda each: _categories(each) is not None):
        names = {node.get("host_id"): str(node.get("hostname", "")) for node in _objects(found, "hosts")}
        for test in (test for category in _categories(found) or () for test in _objects(category, "tests")):
            for node, name in names.items():
                results: list[Json] = [each for each in _objects(test, "results") if each.get("host_id") == node]
                _test(nodes.setdefault(name, ToolPart(NODES_TOOL)), {**test, "results": results})
            if not names:
                _test(part, test)
            elif isinstance(failed := test.get("mpi_error"), dict):
                part.add(HOST, "mpi", "unknown", None, f"mndiag did not run: {failed.get('warning')}")
        part.lines.update(where)
    if any(_MEMBER.search(line) for line in lines):
        rest = ["" if number in part.lines else line for number, line in enumerate(lines)]
        part.lines |= _fragments(part, rest)
    return (*(part.imported() if part or not nodes else ()), *_by_host(nodes, part.lines))


def _categories(found: Mapping[str, Json]) -> list[Json] | None:
    root = next((inner for name in _ROOTS if isinstance(inner := found.get(name), dict)), found)
    categories = root.get("test_categories")
    return categories if isinstance(categories, list) else None


def _fragments(reports: Reports, lines: Sequence[str]) -> set[int]:
    """What is whole in a document that is not; the lines that look like JSON around it belong to it."""
    found: set[int] = set()
    for test, where in tests(lines):
        _test(reports, test)
        found.update(where)
    if not found:
        return set()
    return {number for number, line in enumerate(lines) if _JSON.fullmatch(line.strip())}


def _test(reports: Reports, test: dict[str, Json]) -> None:
    name = str(test.get("name", "test"))[:60]
    for result in _objects(test, "results"):
        outcome = OUTCOMES.get(str(result.get("status", "")).lower())
        if outcome is None:
            continue
        if outcome == "pass":
            for subject in _subjects(result, ""):
                reports.add(subject, topic_of(name), outcome)
            continue
        for message in [*_messages(result)] or [""]:
            _add_failed(reports, _subjects(result, message), name, outcome, message)


def _subjects(result: Mapping[str, Json], text: str) -> list[str]:
    """The GPUs of a result, else those that its message names: of its software tests DCGM 3 gives no number."""
    if str(result.get("entity_group", "")).upper() == "GPU":
        ids = str(result.get("entity_id", ""))
    else:
        ids = str(result.get("gpu_ids", result.get("gpu_id", "")))
    numbers = [index for word in ids.split(",")[:MOST_GPUS] if (index := gpu(word.strip())) is not None]
    return [f"GPU{number}" for number in numbers or dict.fromkeys(map(int, NAMED_GPU.findall(text)))] or [HOST]


def _messages(result: Mapping[str, Json]) -> Iterator[str]:
    """Of ``warnings``: texts, or objects with a text in ``warning``."""
    listed = result.get("warnings")
    for one in listed if isinstance(listed, list) else [] if listed is None else [listed]:
        text = one.get("warning") if isinstance(one, dict) else one
        if isinstance(text, str):
            yield text


def _objects(holder: Json, name: str) -> list[dict[str, Json]]:
    return [each for each in items_of(members_of(holder).get(name)) if isinstance(each, dict)]
