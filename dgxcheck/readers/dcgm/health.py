"""``dcgmi health -c``, ``stats`` and ``policy``, and the logs of DCGM.

Logs of DCGM: nv-hostengine.log, nvvs.log (``TIME LEVEL [PID:TID] TEXT [FILE:LINE] [FUNCTION]``).

https://github.com/NVIDIA/DCGM, common/DcgmLogging.h. Most of what these call an error is a module or a file that this
machine does not have: only messages of a GPU that name a fault count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json, items_of, members_of
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.dcgm.cells import DiagCell, cells, frame
from dgxcheck.readers.dcgm.diag import NAMED_GPU
from dgxcheck.readers.dcgm.messages import OUTCOMES, fault_of
from dgxcheck.readers.formats import documents
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart, topic_of
from dgxcheck.readers.values import bounded, numbered
from dgxcheck.readers.wording import any_of, wordings

_OVERALL = LazyPattern(r"(?:Overall Health(?: ?: ?(?P<old>\w{1,10}))?)")
_OVERALL_LINE = LazyPattern(r"(?P<row>Overall Health ?: ?(?:Healthy|Warning|Failure))")
_GPU_LINE = LazyPattern(r"(?P<row>GPU ID: ?\d{1,3})(?: ?:? ?(?:Healthy|Warning|Failure))?")
"""Of the first tables, without their frame."""
_OLD_WATCH = LazyPattern(r"(?P<row>(?P<watch>[A-Z][\w/ -]{2,40}?) system: (?P<status>.{1,1000}))")
"""The first tables have a watch, its status and the text in one cell, below the status of the GPU."""
_TITLE_OF_HEALTH = "Health Monitor Report"
_HEALTH_GPU = LazyPattern(r"(?:-> ?|GPU ID: ?|gpuId ?)(?P<gpu>\d{1,3})")
_WATCH = LazyPattern(r"(?:-> ?|(?P<gpu>\d{1,3}) - )?(?P<watch>[A-Z][\w/ -]{2,40}?) ?(?:system)?")
_STATUS = LazyPattern(r"(?P<word>Warning|Failure|Warn|Fail)\b(?: - | )?(?P<text>.{0,1000})")
_LOGGED = LazyPattern(
    r".{0,200}Detected a (?P<word>WARNING|FAILURE) in health system (?P<watch>[\w ]{2,40}): '(?P<text>.{1,600})"
)
_GPU_KEY = LazyPattern(r"(?:GPU )?(?P<gpu>\d{1,2})")
_OTHERS = ("vGPU", "Switch", "NvSwitch", "GPU_I", "GPU_CI", "LINK", "CPU", "CPU_CORE", "ConnectX", "None")
"""Entities whose numbers are not those of GPUs (dcgm_fields.cpp: DcgmFieldsGetEntityGroupString)."""
_MOST_DEPTH = 8
"""Rows below each other; four are printed."""


def read_health(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every watch that warns or fails; ``Overall Health`` alone is a result of the host."""
    lines = bounded(lines)
    part = ToolPart("dcgmi health")
    name, others, named = HOST, False, False
    whole: str | None = None
    for cell in (*cells(lines), *_frameless(lines)):
        if overall := _OVERALL.fullmatch(cell.left):
            _add_overall(part, whole or "", named)
            name, others, named = HOST, False, False
            whole = overall["old"] or cell.right
        elif whole is None:
            continue
        elif cell.left == "GPU" or cell.left in _OTHERS:
            others, name = cell.left != "GPU", HOST
        elif match := _HEALTH_GPU.fullmatch(cell.left):
            name = HOST if others else f"GPU{int(match['gpu'])}"
            named = _add_old(part, name, cell.parts) or named
        elif _add_old(part, name, (cell.left,)):
            named = True
        elif (watch := _WATCH.fullmatch(cell.left)) and (status := _STATUS.fullmatch(cell.parts[0].strip())):
            subject = f"GPU{int(watch['gpu'])}" if watch["gpu"] else name
            if text := " ".join(" ".join((status["text"], *cell.parts[1:])).split()):
                _add(part, subject, status["word"], watch["watch"], text)
                named = True
        part.lines.update(cell.lines)
    _add_overall(part, whole or "", named)
    for number, line in enumerate(lines):
        if logged := _LOGGED.fullmatch(line.strip()) if "in health system" in line else None:
            gpus = NAMED_GPU.findall(logged["text"])
            _add(part, f"GPU{int(gpus[0])}" if gpus else HOST, logged["word"], logged["watch"], logged["text"])
            part.lines.add(number)
    _json(part, lines)
    if not part:
        return ()
    part.lines |= frame(lines, part.lines, 4, lambda text: text.strip(" |") in (_TITLE_OF_HEALTH, "Errors"))
    return part.imported()


def _frameless(lines: tuple[str, ...]) -> Iterator[DiagCell]:
    """The rows of a first table of which a paste lost the frame: from the line of the overall health, below the title
    or alone, to an empty one.

    Other tools print such lines of another machine's health.
    """
    texts = [line.strip() for line in lines]
    if not any(_TITLE_OF_HEALTH in text for text in texts) and sum(map(bool, texts)) > 1:
        return
    inside = False
    for number, text in enumerate(texts):
        match = _OVERALL_LINE.fullmatch(text)
        inside = match is not None or (inside and text != "")
        if inside and (match := match or _GPU_LINE.fullmatch(text) or _OLD_WATCH.fullmatch(text)):
            yield DiagCell(left=match["row"], parts=("",), lines=(number,), width=0)


def _add_old(reports: Reports, subject: str, parts: Sequence[str]) -> bool:
    """Every ``PCIe system: Warning - TEXT`` in these rows of a cell; is there one?"""
    found: list[tuple[str, list[str]]] = []
    for text in map(str.strip, parts):
        if watch := _OLD_WATCH.fullmatch(text):
            found.append((watch["watch"], [watch["status"]]))
        elif found:
            found[-1][1].append(text)
    named = False
    for name, words in found:
        if (status := _STATUS.fullmatch(" ".join(words))) and status["text"]:
            _add(reports, subject, status["word"], name, status["text"])
            named = True
    return named


def _add_overall(reports: Reports, whole: str, named: bool) -> None:
    """``named``: a watch says why it warns or fails."""
    if whole.startswith("Healthy"):
        reports.add(HOST, "overall", "pass")
    elif not named and (outcome := OUTCOMES.get(whole.strip().lower())):
        text = f"overall health: {whole.strip()}; the text names no watch"
        reports.add(HOST, "overall", outcome, Fault.TEST_FAILED, text)


def _json(part: ToolPart, lines: tuple[str, ...]) -> None:
    """``-j``: the tree of the table, each row an object with ``value``, its next lines (``overflow``) and ``children``.

    https://github.com/NVIDIA/DCGM, dcgmi/Health.cpp (AddErrorMessage), DcgmiOutput.h.
    """
    for found, where in documents(lines, lambda each: _overall(each) is not None):
        rows = members_of(found["body"]).items()
        named = [each for name, row in rows for each in _row(HOST, "", name, row, 0, name not in _OTHERS)]
        _add_overall(part, _overall(found) or "", bool(named))
        for subject, word, watch, text in named:
            _add(part, subject, word, watch, text)
        part.lines.update(where)


def _overall(found: Mapping[str, Json]) -> str | None:
    """``Healthy``, ``Warning`` ..; None for another document."""
    overall = members_of(found.get("body")).get("Overall Health")
    return str(overall.get("value", "")) if isinstance(overall, dict) else None


def _row(
    subject: str, watch: str, name: str, row: Json, depth: int, of_gpus: bool
) -> Iterator[tuple[str, str, str, str]]:
    """Of a GPU, one of its watches, or what that found, a text below ``Warning`` or ``Failure``, or behind it:
    subject, that word, watch, text.
    """
    if depth > _MOST_DEPTH:
        return
    members = members_of(row)
    value, below = members.get("value"), members_of(members.get("children"))
    whole = " ".join(map(str, [value, *items_of(members.get("overflow"))]))
    if of_gpus and (gpu := _HEALTH_GPU.fullmatch(name) or _GPU_KEY.fullmatch(name)):
        subject = f"GPU{int(gpu['gpu'])}"
    elif name.lower() in OUTCOMES:
        for text in [value, *below]:
            if isinstance(text, str) and watch:
                yield subject, name, watch, text
        return
    elif (status := _STATUS.fullmatch(whole)) and status["text"]:
        yield subject, status["word"], name, status["text"]
    for each, inner in below.items():
        yield from _row(subject, name, each, inner, depth + 1, of_gpus)


def _add(reports: Reports, subject: str, word: str, watch: str, text: str) -> None:
    reports.add(subject, topic_of(watch, "watch"), OUTCOMES[word.lower()], fault_of(text), text.rstrip("' ."))


STATS, POLICY = "dcgmi stats", "dcgmi policy"
_STATS_GPU = LazyPattern(r"\|\s{0,4}(?:GPU ID: (?P<gpu>\d{1,2})|Summary)\s{1,100}\|")
_ERRORS = {"Double Bit ECC Errors": (Fault.ECC_UNCORRECTED, "double-bit ECC errors"),
           "Critical XID Errors": (Fault.XID, "critical Xids")}  # fmt: skip
_ROWS = LazyPattern(rf"(?:{any_of('dcgm/lines', 'dcgmi stats')})\s{{0,40}}\*?")
_TITLE = LazyPattern(r"Successfully retrieved (?:statistics for job|process info for PID): .{1,80}")
_FIRST = frozenset(("Start Time", "End Time", "Energy Consumed (Joules)"))
_LISTENING = LazyPattern(r"Listening for violations\.?")
_EVENTS = wordings("dcgm/policy")
_VALUE = LazyPattern(r"(?:Timestamp|DBE error count|PCIe replay count|[SD]BE page retirement count|Temperature|Power"
                    r"|NVLink Counter value): .{1,60}")  # fmt: skip


def read_stats(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Errors that were counted; a job without any passes. A violation is of the host: its lines name no GPU."""
    lines = bounded(lines)
    return (*_stats(lines), *_policy(lines))


def _stats(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    part = ToolPart(STATS)
    is_stats = False
    heads = {n: match["gpu"] for n, line in enumerate(lines) if (match := _STATS_GPU.fullmatch(line.strip()))}
    for cell in cells(lines):
        gpu = next((gpu for number, gpu in reversed(heads.items()) if number < cell.lines[0]), None)
        subject = HOST if gpu is None else f"GPU{int(gpu)}"
        if not _ROWS.fullmatch(cell.left):
            continue
        part.lines.update(cell.lines)
        is_stats = is_stats or cell.left.rstrip(" *") in _FIRST
        fault, words = _ERRORS.get(cell.left, (None, ""))
        if words and cell.right.isdecimal():
            topic = words.replace(" ", "-").lower()
            if count := int(cell.right):
                part.add(subject, topic, "warn", fault, f"{words} during a job: {count}")
            else:
                part.add(subject, topic, "pass")
    if not is_stats:
        return ()
    last = max(part.lines)  # behind it may be the head of a table without rows
    rows = part.lines | {number for number in heads if number < last}
    part.beside = heads.keys() | frame(lines, rows, 2, lambda text: _TITLE.fullmatch(text) is not None)
    return part.imported()


def _policy(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    part = ToolPart(POLICY)
    listening = False
    for number, line in enumerate(lines):
        text = line.strip()
        if _LISTENING.fullmatch(text):
            listening = True
            part.lines.add(number)
        elif listening and (
            found := next(((row, match) for row in _EVENTS if (match := row.words.fullmatch(text))), None)
        ):
            row, match = found
            what = row.text.format(**match.groupdict(""))
            part.add(HOST, f"violation-{row.topic}", "warn", row.fault, f"{what} violates the policy")
            part.lines.add(number)
        elif listening and _VALUE.fullmatch(text):
            part.lines.add(number)
    if listening and not part:
        part.add(HOST, "violations", "pass")
    return part.imported() if listening else ()


_LINE = LazyPattern(
    r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} )?(?P<level>FATAL|ERROR|WARN|INFO|DEBUG|VERB) {1,3}\[\d{1,10}:\d{1,10}\]"
    r" (?P<text>.{0,1500}?)(?: \[[/\w.@+-]{1,300}:\d{1,6}\](?: \[.{0,300})?)?"
)
_LOG_GPU = LazyPattern(r"\b(?:GPU|gpuId|gpu_id|gpu) ?[:=]?(?P<gpu>\d{1,2})\b(?![.:]\d)")


def read_log(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Errors that name a GPU and a fault; every line of the log counts as understood."""
    part = ToolPart("dcgm log")
    for match in part.matches(_LINE, numbered(lines)):
        named = _LOG_GPU.search(match["text"])
        fault = fault_of(match["text"])
        if match["level"] in ("ERROR", "FATAL") and named and fault is not Fault.TEST_FAILED:
            part.add(f"GPU{int(named['gpu'])}", fault.word, "warn", fault, match["text"])
    return part.imported()
