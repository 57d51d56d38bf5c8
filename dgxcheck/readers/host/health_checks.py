"""Programs that test a node: nvidia-healthmon and its configuration, NHC, the vendor's field diagnostic.

``nvidia-healthmon.conf``, the limits of nvidia-healthmon: what of dgxcheck replaces each key.

Sections are ``[global]`` and the names of GPUs, ``;`` begins a comment; bandwidths are in MB/s. Source: the file that
came with the tool, kept in https://github.com/Microway/MCMS-OpenHPC-Recipe (dependencies/etc/nvidia-healthmon.conf).

Node Health Check (LBNL NHC): what it logs of a check that failed (https://github.com/mej/nhc), and the figures of
Azure's checks that run nvbandwidth and ib_write_bw (https://github.com/Azure/azurehpc-health-checks).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern, caseless_pattern
from dgxcheck.readers import values
from dgxcheck.readers.combine import Figures
from dgxcheck.readers.dcgm.messages import fault_of
from dgxcheck.readers.listing import whole_list
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart, topic_of
from dgxcheck.readers.network.files import NAME
from dgxcheck.readers.values import MOST_GBS, gpu, numbered
from dgxcheck.readers.wording import rows, wordings

_HEALTHMON_OUTCOMES: dict[str, Outcome | None] = {
    "SUCCESS": "pass", "SKIPPED": None, "WARNING": "warn", "ERROR": "fail", "CRITICAL ERROR": "fail",
}  # fmt: skip
_WORDS = "|".join(_HEALTHMON_OUTCOMES)
_HEALTHMON_BEGIN = LazyPattern(rf"Loading Config: (?:{_WORDS})|Global Tests")
_HEALTHMON_GPU = LazyPattern(r"GPU (?P<bdf>[0-9A-Fa-f:.]{7,16}) #(?P<index>\d{1,3}) : .{1,100}")
_TEST = LazyPattern(rf"(?P<name>[A-Z][\w /-]{{2,60}}?)(?:(?:: ?| )\[?(?P<word>{_WORDS})\]?)?")
_HEALTHMON_RESULT = LazyPattern(rf"Result: \[?(?P<word>{_WORDS})\]?")
_OF_TEST = wordings("host/healthmon_tests")
"""Fault by a word of the test's name, if its message names none."""
_SUM = LazyPattern(
    r"(?:Global Test|Device|System) Results: \d{1,6} success, .{1,80}|-{20,100}|One or more tests didn't run\."
)
_TOTAL = LazyPattern(
    r"System Results: (?P<pass>\d{1,6}) success, (?P<fail>\d{1,6}) errors?, (?P<warn>\d{1,6}) warnings?, .{1,80}"
)
"""All that is printed without -v."""


def read_healthmon(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Results of every test that ran; the text of one that did not succeed says what is wrong."""
    part = ToolPart("nvidia-healthmon")
    order: dict[int, str] = {}
    subject, test, text = "", "", ""
    total: re.Match[str] | None = None
    for number, line in numbered(lines):
        if _HEALTHMON_BEGIN.fullmatch(line):
            subject, test = HOST, ""
        elif match := _TOTAL.fullmatch(line):
            test, total = "", match
        elif match := _HEALTHMON_GPU.fullmatch(line):
            bdf, index = as_bdf(match["bdf"]), gpu(match["index"])
            if bdf is None or index is None:
                continue
            subject, test, order[index] = f"GPU{index}", "", bdf
        elif (subject or total) and _SUM.fullmatch(line):
            test = ""
        elif not subject:
            continue
        elif result := _HEALTHMON_RESULT.fullmatch(line) if test else None:
            _healthmon_add(part, subject, test, result["word"], text)
            test = ""
        elif not test and (one := _TEST.fullmatch(line)):
            test, text = "" if one["word"] else one["name"], ""
            if one["word"]:
                _healthmon_add(part, subject, one["name"], one["word"], "")
        elif test and line:
            text = f"{text} {line}".strip()
        elif line:
            subject = ""
            continue
        part.lines.add(number)
    if total is not None and not part:
        counts = {how: int(total[how]) for how in ("fail", "warn", "pass")}
        how: Outcome = "fail" if counts["fail"] else "warn" if counts["warn"] else "pass"
        counted = f"errors: {counts['fail']}, warnings: {counts['warn']}; list the tests with nvidia-healthmon -v"
        part.add(HOST, "results", how, None if how == "pass" else Fault.TEST_FAILED, "" if how == "pass" else counted)
    part.found |= whole_list(order)
    return part.imported() if part else ()


def _healthmon_add(reports: Reports, subject: str, test: str, word: str, text: str) -> None:
    outcome = _HEALTHMON_OUTCOMES[word]
    topic = topic_of(test, "")
    if outcome == "pass":
        reports.add(subject, topic, outcome)
    elif outcome is not None:
        fault = fault_of(text)
        if fault is Fault.TEST_FAILED:
            fault = next((row.fault for row in _OF_TEST if row.words.search(topic.replace("-", ""))), None) or fault
        reports.add(subject, topic, outcome, fault, f"test {test}: {text or word}")


CONFIG_TOOL = "nvidia-healthmon.conf"
REPLACED_BY: Mapping[str, str] = {row["key"]: row["now"] for row in rows("host/healthmon_keys")}
"""By key; profile keys: dgxcheck profiles --new; thresholds: dgxcheck-config(5)."""
_SECTION = LazyPattern(r"\[(?:global|(?:NVIDIA |Tesla |Quadro |GeForce )?[A-Z][\w. -]{1,60})\]")
_KEY = LazyPattern(r"(?P<key>[a-z][a-z.]{2,40})\s{0,40}=\s{0,40}(?P<value>\S.{0,200}|)")
_COMMENT = LazyPattern(r";.*")


def read_config(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One entry without facts for every key, which names its replacement; comments and sections belong to the first."""
    keys: dict[str, set[int]] = {}
    rest: set[int] = set()
    in_section = False
    for number, text in numbered(lines):
        if _SECTION.fullmatch(text) or _COMMENT.fullmatch(text):
            in_section = in_section or text.startswith("[")
            rest.add(number)
        elif in_section and (match := _KEY.fullmatch(text)) and match["key"] in REPLACED_BY:
            keys.setdefault(match["key"], set()).add(number)
    if keys:
        keys[next(iter(keys))] |= rest
    return tuple(
        Imported(tool=f"{CONFIG_TOOL} ({key}: now {REPLACED_BY[key]})", facts={}, understood=frozenset(at))
        for key, at in keys.items()
    )


NODE_HEALTH_TOOL = "nhc"
_FAILED = LazyPattern(
    r"(?:\S.{0,100} )?ERROR: {1,2}nhc: {1,2}Health check failed: {1,2}(?:(?P<check>check_\w{2,60}): {1,2})?"
    r"(?P<text>\S.{0,600})"
)
_PASSED = LazyPattern(
    r"(?:\S.{0,100} )?SUCCESS: {1,2}nhc: {1,2}Health check passed: {1,2}(?P<check>check_\w{2,60}): .{1,400}"
)
"""Of Azure's checks: customTests/azure_common.nhc and others there."""
_OTHER = LazyPattern(r"Healthy|ERROR: {1,2}No results reported")
_NODE_HEALTH_GPU = caseless_pattern(r"\b(?:GPU (?:id )?|device )(?P<gpu>\d{1,2})\b(?!:\d)")
_PAIR = LazyPattern(r"\bGPU \d{1,2} (?:to|and|from) GPU \d{1,2}\b")
"""Neither of the two is to blame by that."""
_NODE_HEALTH_COPIES = LazyPattern(
    r"Device (?P<gpu>\d{1,3}) (?P<way>Host to Device|Device to Host) reported bandwidth is (?P<rate>[\d.]{1,12}) GB/s"
)
_BETWEEN = LazyPattern(
    rf"IB devices= ?(?P<names>{NAME}(?:, ?{NAME}){{0,15}}): .{{0,80}}Measured IB BW (?P<rate>[\d.]{{1,12}}) Gbps"
)
_PORT = ascii_pattern(rf"No IB port (?P<device>{NAME}):(?P<port>\d{{1,2}}) is ACTIVE")


def read_node_health(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Each check that failed, of the GPU or port that its message names; the kernel log cited in it is read as such."""
    part = Figures(NODE_HEALTH_TOOL)
    for number, line in numbered(lines):
        if match := _FAILED.fullmatch(line):
            _node_health_add(part, match["check"] or "check", match["text"].rstrip("."))
        elif passed := _PASSED.fullmatch(line):
            part.add(HOST, passed["check"], "pass")
        elif not _measured(part, line, number):
            part.beside |= {number} if _OTHER.fullmatch(line) else set()
            continue
        part.lines.add(number)
    return part.imported()


def _measured(part: Figures, line: str, number: int) -> bool:
    """Host copies of one GPU, or a transfer between HCAs of the host with the same figure for each HCA."""
    before = len(part.measured)
    if copies := _NODE_HEALTH_COPIES.fullmatch(line):
        value, index = values.number(copies["rate"], MOST_GBS), values.gpu(copies["gpu"])
        if value is not None and index is not None:
            kind = copies["way"].lower().replace(" ", "-")
            part.measure(f"{kind} {index}", value, "GB/s", number, "check of NHC")
    elif (between := _BETWEEN.fullmatch(line)) and (gbit := values.number(between["rate"], 8 * MOST_GBS)) is not None:
        for name in between["names"].split(","):
            how = "check of NHC, between HCAs of one host"
            part.measure(f"rdma-write {name.strip()}", round(gbit / 8, 3), "GB/s", number, how)
    return len(part.measured) > before


def _node_health_add(reports: Reports, check: str, text: str) -> None:
    message = f"{check}: {text}"
    named = None if _PAIR.search(text) else _NODE_HEALTH_GPU.search(text)
    subject, fault = f"GPU{int(named['gpu'])}" if named else HOST, fault_of(message)
    if port := _PORT.search(text):
        subject, fault = f"{port['device']}/{port['port']}", Fault.PORT_DOWN
    reports.add(subject, check, "fail", fault, message)


_FIELD_DIAGNOSTIC_BEGIN = caseless_pattern(
    r"(?:NVIDIA )?(?:\(R\) )?(?:field ?diag(?:nostics?)?|partner ?diag|nvqual|MODS)\b.{0,200}"
)
_CODE = caseless_pattern(r"(?:Error|Exit) Code\s?[=:]?\s?(?P<code>[0-9A-F]{3,16})(?: ?[:(] ?(?P<text>[^()]{1,120})\)?)?"
)  # fmt: skip
_FIELD_DIAGNOSTIC_RESULT = caseless_pattern(
    r"(?:Final |Overall |Test )?(?:Result|Status)s?\s?[:=]\s?(?P<word>PASS|FAIL|RETEST|CONFIG)(?:ED)?"
)
_REST = LazyPattern(r"(?:Driver|Package|Version|Command line|Start time|End time)\s{0,20}: .{1,160}")
_FIELD_DIAGNOSTIC_OUTCOMES: dict[str, Outcome] = {
    "pass": "pass", "fail": "fail", "retest": "unknown", "config": "unknown",
}  # fmt: skip


def read_field_diagnostic(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Results below a line that names the tool; a code of zeros is a pass."""
    part = ToolPart("field diagnostic")
    for number, text in numbered(lines, lambda line: line.strip(" \t*#=|")):
        if _FIELD_DIAGNOSTIC_BEGIN.fullmatch(text):
            part.beside.add(number)
        elif not part.beside:
            continue
        elif code := _CODE.fullmatch(text):
            if code["code"].strip("0"):
                detail = f"error code {code['code']}" + (f": {code['text'].strip()}" if code["text"] else "")
                part.add(HOST, "result", "fail", fault_of(code["text"] or ""), detail)
            else:
                part.add(HOST, "result", "pass")
            part.lines.add(number)
        elif result := _FIELD_DIAGNOSTIC_RESULT.fullmatch(text):
            outcome = _FIELD_DIAGNOSTIC_OUTCOMES[result["word"].lower()]
            fault, shown = (None, "") if outcome == "pass" else (Fault.TEST_FAILED, f"result {result['word'].upper()}")
            if outcome != "fail" or not part.has_fault(Fault.TEST_FAILED):
                part.add(HOST, "result", outcome, fault, shown)
            part.lines.add(number)
        elif _REST.fullmatch(text):
            part.beside.add(number)
    return part.imported() if part else ()
