"""``dcgmi diag``: the table of every version, whole or only some of its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.dcgm.cells import Cell, cells, is_rule
from dgxcheck.readers.dcgm.faults import fault_of, judged
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "dcgmi diag"
OUTCOMES: dict[str, Outcome] = {"pass": "pass", "fail": "fail", "warn": "warn", "warning": "warn"}
_RESULT = re.compile(r"(?P<word>Pass|Fail|Warn|Skip)(?: - (?:All|GPUs?: (?P<gpus>\d{1,3}(?:, ?\d{1,3}){0,63}),?))?")
_OF_GPU = re.compile(r"GPU ?(?P<gpu>\d{1,3}) ?: (?P<word>Pass|Fail|Warn|Skip)")
_MESSAGE = re.compile(r"(?P<kind>Warning|Error|Info)(?: ?: GPU ?(?P<gpu>\d{1,3}))?")
_NAMED = re.compile(r"\bGPU ?(\d{1,2})(?!\d)")
_WORST = ("fail", "warn", "pass", "skip")
_ALONE: dict[str, Outcome] = {"Error": "fail", "Warning": "warn"}
_META = ("DCGM Version", "Driver Version Detected", "GPU Device IDs Detected", "Diagnostic", "hostengine", "Hostname")
_CHATTER = re.compile(r"Successfully ran diagnostic for group\.?|Error: Diagnostic could not be run.{0,200}")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Each test of each GPU that the table shows a result of."""
    lines = bounded(lines)
    reports = Reports(TOOL)
    understood: set[int] = set()
    test, outcome = "", ""
    failed: list[str] = []
    for cell in cells(lines, 0, len(lines)):
        message = _MESSAGE.fullmatch(cell.left)
        results = [*_results(cell)] if message is None else []
        if message is not None:
            explained = _explain(reports, message, cell.right, test, outcome, failed)
            failed = [name for name in failed if name not in explained and (name != HOST or not explained)]
            if not (explained or test):
                continue
        elif results:
            _unexplained(reports, test, outcome, failed)
            test = cell.left
            outcome = next(word for word in _WORST if word in {each for _, each in results})
            failed = [name for name, word in results if word == outcome and word in ("fail", "warn")]
            for name in (name for name, word in results if word == "pass"):
                reports.add(name, _topic(test), "pass")
        elif not (cell.left in _META and reports) and cell.left not in _META:
            continue
        understood.update(cell.lines)
    _unexplained(reports, test, outcome, failed)
    if not understood:
        return ()
    first, last = min(understood), max(understood)
    frame = {n for n in range(max(first - 4, 0), min(last + 2, len(lines)))
             if is_rule(lines[n]) or _CHATTER.fullmatch(lines[n].strip())}  # fmt: skip
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | frame)),)


def _results(cell: Cell) -> Iterator[tuple[str, str]]:
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


def _unexplained(reports: Reports, test: str, outcome: str, names: list[str]) -> None:
    """Of those that no message is about."""
    for name in names:
        reports.add(name, _topic(test), OUTCOMES[outcome], Fault.TEST_FAILED, f"test {test} ended with {outcome}")


def _explain(
    reports: Reports, message: re.Match[str], text: str, test: str, outcome: str, failed: list[str]
) -> list[str]:
    """Enter the message below a result for the GPU that it names, else for those that failed; the names of these.

    A message without the row of its test counts where it says what is wrong with which GPU.
    """
    named = [message["gpu"]] if message["gpu"] else _NAMED.findall(text)
    subjects = [f"GPU{int(number)}" for number in dict.fromkeys(named)] or failed
    fault = fault_of(text)
    if test:
        of_test = OUTCOMES.get(outcome, "pass")
    else:
        of_test = _ALONE.get(message["kind"], "pass") if named and fault is not Fault.TEST_FAILED else "pass"
    if message["kind"] == "Info" or of_test == "pass":
        return []
    of_test, known = judged(of_test, text)
    ran = " did not run" if of_test == "unknown" else ""
    for subject in subjects:
        reports.add(subject, _topic(test), of_test, known, f"test {test}{ran}: {text}" if test else text)
    return subjects


def _topic(test: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-") or "test"
