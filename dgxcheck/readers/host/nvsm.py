"""NVIDIA System Management of DGX: ``nvsm show health``, components and alerts, and the line that greets at login.

Source: https://docs.nvidia.com/datacenter/nvsm/nvsm-user-guide/latest/using-nvsm-cli.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.bdf import PATTERN, as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.dcgm.faults import fault_of
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "nvsm"
_CHECK = re.compile(r"(?P<name>[A-Z][^.]{3,120}(?:\.\d[^.]{0,60}){0,4}?) ?\.{3,200} {0,8}(?P<word>[A-Z][a-z]{2,12})")
_WORDS: Mapping[str, Outcome] = {
    "healthy": "pass", "ok": "pass", "unhealthy": "fail", "critical": "fail", "warning": "warn",
    "informational": "note",
}  # fmt: skip
_SUMMARY = re.compile(r"\d{1,5} out of \d{1,5} checks are healthy|(?P<bad>\d{1,5}) checks? (?:is|are) unhealthy"
                      r"|(?P<other>\d{1,5}) (?:informational|unknown) checks?.{0,40}", re.IGNORECASE)  # fmt: skip
_OVERALL = re.compile(r"Overall system status is (?P<word>[a-z]{2,12})\.?", re.IGNORECASE)
_GREETING = re.compile(r"The system has (?P<fail>\d{1,4}) critical alerts? and (?P<warn>\d{1,4}) warnings?\..{0,80}")
_HEADINGS = frozenset(("Info", "Checks", "Health Summary", "Properties:", "Targets:", "Verbs:", "nvsm->"))
_PLAIN = re.compile(r"-{4,40}|Timestamp: .{6,60}|Version: [\d.]{3,20}")
_TARGET = re.compile(r"/(?:systems|chassis)/[\w./-]{3,200}/(?P<name>[\w.-]{1,64})/?")
_PROPERTY = re.compile(r"(?P<name>[A-Za-z]\w{1,60}) = (?P<value>.{0,600})")
_BDF = re.compile(PATTERN, re.IGNORECASE)
_GPU = re.compile(r"GPU[ _]?(\d{1,2})", re.IGNORECASE)
_LINKS = ((Fault.LINK_NARROW, "width"), (Fault.LINK_DEGRADED, "speed"))
_OVER = frozenset(("cleared", "resolved", "closed"))
"""States of an alert that is no longer one."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every check, component and alert that is not healthy; counts of alerts that the text does not show."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    frame: set[int] = set()
    target: list[tuple[str, str]] = []
    path, bad = "", False
    for number, line in enumerate(bounded(lines)):
        text = line.strip().removeprefix("nvsm-> ")
        if text in _HEADINGS or _PLAIN.fullmatch(text) or text.startswith("show "):
            frame.add(number)
            continue
        if path and (match := _PROPERTY.fullmatch(text)):
            target.append((match["name"].lower(), match["value"].strip(' "')))
        elif match := _TARGET.fullmatch(text):
            _component(reports, path, dict(target))
            path, target = match["name"], []
        elif (match := _CHECK.fullmatch(text)) and match["word"].lower() in _WORDS:
            name, word = match["name"].strip(), match["word"].lower()
            bad = bad or _WORDS[word] != "pass"
            _add(reports, f"{name} is {word}", _WORDS[word], name[:40])
        elif (match := _OVERALL.fullmatch(text)) and match["word"].lower() in _WORDS:
            if not bad:
                word = match["word"].lower()
                _add(reports, f"system status is {word}", _WORDS[word], "status")
        elif match := _GREETING.fullmatch(text):
            _greeting(reports, int(match["fail"]), int(match["warn"]))
        elif not _SUMMARY.fullmatch(text):
            continue
        understood.add(number)
    _component(reports, path, dict(target))
    if not reports:
        return ()
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | frame)),)


def _greeting(reports: Reports, critical: int, warnings: int) -> None:
    if critical:
        text = f"critical alerts: {critical}; list them with nvsm show alerts"
        reports.add(HOST, "alerts", "fail", Fault.TEST_FAILED, text)
    if warnings:
        reports.add(HOST, "warnings", "note", None, f"warnings: {warnings}; list them with nvsm show alerts")
    if not critical and not warnings:
        reports.add(HOST, "alerts", "pass")


def _component(reports: Reports, name: str, properties: Mapping[str, str]) -> None:
    """An alert by its severity, any other component by its health; one with neither is left out."""
    word = properties.get("severity", properties.get("status_health", "")).lower()
    outcome = _WORDS.get(word)
    if outcome is None or properties.get("state", properties.get("status", "")).lower() in _OVER:
        return
    texts = [properties[key] for key in ("message", "message_details", "description") if properties.get(key)]
    about = properties.get("component_id", properties.get("name", name))
    detail = ": ".join(texts) or f"health is {word}"
    _add(reports, f"{about}: {detail}", outcome, properties.get("alert_id", name))


def _add(reports: Reports, text: str, outcome: Outcome, topic: str) -> None:
    """Of the GPU that the text names, else of the host."""
    gpu, bdf = _GPU.search(text), _BDF.search(text)
    subject = HOST
    if text.startswith("GPU") or gpu:
        subject = f"GPU{int(gpu[1])}" if gpu else (as_bdf(bdf[0]) or HOST) if bdf else HOST
    fault = next((kind for kind, part in _LINKS if f"link {part}" in text), None) or fault_of(text)
    good = outcome in ("pass", "note")
    name = re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-") or "check"
    reports.add(subject, name, outcome, None if good else fault, "" if outcome == "pass" else text)
