"""NVIDIA's services: the log of the Fabric Manager, and NVSM of DGX.

``fabricmanager.log``, and the same lines in the journal: errors of NVSwitches and of the service itself.

Messages: NVIDIA Fabric Manager user guide, appendix on error handling
(https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html).

NVIDIA System Management of DGX: ``nvsm show health``, components and alerts, and the line that greets at login.

Source: https://docs.nvidia.com/datacenter/nvsm/nvsm-user-guide/latest/using-nvsm-cli.html
"""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.bdf import PATTERN, as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import NVSWITCHES_ON_PCI, FaultKind
from dgxcheck.facts.tool_outputs import NOT_STARTED, Outcome
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.host.event_log import of_sentence
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart, topic_of
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of, forms, matched, wordings
from dgxcheck.xid.relations import sxid_fault, sxid_response
from dgxcheck.xid.table import sxids

FABRIC_MANAGER_TOOL = "fabric manager"
LOG_LINE = LazyPattern(
    r"\[[A-Z][a-z]{2} [ \d]\d \d{4} \d\d:\d\d:\d\d\] \[(?P<level>INFO|NOTICE|WARNING|ERROR|CRITICAL|FATAL|DEBUG)\]"
    r" \[tid \d{1,10}\] ?(?P<text>.{0,1000})"
)
_FORMS_OF_LINES = forms("host/lines", "Fabric Manager")
"""Of the journal, of its first messages, which also go to the terminal without a date, and of what starts the service
in containers, and the subnet manager of NVLink 5."""
_UNIT = caseless_pattern(any_of("host/lines", "unit of Fabric Manager"))
LOADED = r"Loaded: [a-z-]{4,12} \(/\S{1,120}/"
"""``systemctl status`` below the name of the unit, which is left out easily: the path of its file."""
_SHOWN = LazyPattern(
    rf"(?:(?:[^\w\s] |x )?nvidia-fabricmanager\.service - |{LOADED}nvidia-fabricmanager\.service;).{{1,80}}"
)
ACTIVE = LazyPattern(
    r"Active: (?P<state>failed|inactive|active|activating(?= \(auto-restart\))) \((?P<why>[^()]{1,60})\).{0,120}"
)
ASIDE = LazyPattern(r"(?:Loaded|Drop-In|Docs|Process|Main PID|Tasks|Memory|CPU|CGroup|Status|Duration|Active): .*")
"""``systemctl status``: the unit, its state, and what stands around it."""
UNIT_STOPPED = caseless_pattern(r"Failed with |status=(?!0/)|Start request repeated too quickly")
"""Of the unit: how systemd says that the service ended, or did not begin."""
_PAYLOAD = LazyPattern(r"Message (?:payload|header) details:.{0,2000}")
_OF_ENTRY = LazyPattern(r"(?P<name>[a-z][A-Za-z]{3,30}) : (?P<value>[\w.-]{1,40})(?: #.{0,80})?")
"""Below what it detected of a GPU in a rack: which one, and at which link."""
_NOTHING = caseless_pattern(r"NVSwitch device information.{0,200}nothing[ _]to[ _]do|NV_WARN_NOTHING_TO_DO")
NONE = "no-nvswitch"
_NOTHING_TO_DO = (
    f"no NVSwitch found: where there is none ({NVSWITCHES_ON_PCI}) disable nvidia-fabricmanager, else load mlx5_ib"
    " and ib_umad, or read the kernel log"
)
_NVSWITCH = "nvswitch-error"
_SXID = caseless_pattern(r"NVSwitch (?P<not>non-?)?fatal error (?P<number>\d{5})\b")
_AT_PORT = LazyPattern(r"\bport (?P<port>\d{1,3})\b")
_NOT_STARTED = NOT_STARTED.removeprefix(f"{FABRIC_MANAGER_TOOL.replace(' ', '-')}-")
_CONFIGURED = "Successfully configured all the available"
"""It found NVSwitches, then or before."""
_FORMS = wordings("host/fabric_manager")
_VERSION = [row.words for row in _FORMS if row.topic == "version"]
_OF_OTHER_RUNS = [row.words for row in _FORMS if row.topic == _NVSWITCH] + _VERSION
"""What it cannot say in a run that finds no NVSwitch: the log holds those of months."""
ERROR_WORDS = caseless_pattern(
    r"\bfail|\berror\b|\babort|invalid|mismatch|(?:don['’]t|does not|do not) match|is ib_umad module"
)
_FABRIC_MANAGER_BDF = caseless_pattern(
    r"(?:pci bus id:? ?|PCI:?)(?P<bdf>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])"
)


def read_fabric_manager(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Errors by what they name; a log of notices alone is a result without a fault. IMEX writes lines of this form."""
    if is_of_imex(lines):
        return ()
    part = ToolPart(FABRIC_MANAGER_TOOL)
    unit: list[str] = []
    entries: list[tuple[str, str]] = []
    shown = False
    for number, text in numbered(lines):
        if match := LOG_LINE.fullmatch(text):
            entries.append((match["level"], match["text"]))
        elif match := matched(_FORMS_OF_LINES, text):
            message = match["text"] or ""
            entries.append(("ERROR" if ERROR_WORDS.search(message) else "INFO", message))
        elif entries and entries[-1][1].rstrip().endswith((":", ",")) and (match := _OF_ENTRY.fullmatch(text)):
            entries[-1] = entries[-1][0], f"{entries[-1][1]} {match['name']} {match['value']},"
        elif match := _UNIT.fullmatch(text):
            unit.append(match["text"] or match["verb"] or match["job"])
        elif _SHOWN.fullmatch(text):
            shown = True
        elif shown and (match := ACTIVE.fullmatch(text)):
            unit.append({"inactive": "Stopp", "active": "Start"}.get(match["state"], f"Failed with {match['why']}"))
        elif not (part.lines and (_PAYLOAD.fullmatch(text) or (shown and ASIDE.fullmatch(text)))):
            shown = shown and bool(text)
            continue
        part.lines.add(number)
    configured = max((at for at, (_, text) in enumerate(entries) if _CONFIGURED in text), default=-1)
    entries = [entry for at, entry in enumerate(entries)
               if at >= configured or not any(words.search(entry[1]) for words in _VERSION)]  # one since installed
    if any(_NOTHING.search(text) for _, text in entries):
        part.add(HOST, NONE, "note", None, _NOTHING_TO_DO)  # systemd calls it a failure that it ends at once
        unit, entries = [], [entry for entry in entries if any(words.search(entry[1]) for words in _OF_OTHER_RUNS)]
    for level, text in entries:
        _take(part, level, text)
    down = Fault.FABRIC_MANAGER_DOWN
    bad = [text for text in unit if text.lower() == "fail" or UNIT_STOPPED.search(text)]
    explained = part.has_fault(down) or part.has_fault(Fault.FABRIC_MANAGER_VERSION)
    if bad and not explained:
        text = next((each for each in bad if each.lower() != "fail"), "")
        part.add(HOST, "service", "fail", down, f"the service failed: {text}".rstrip(": "))
        explained = True
    last = next((text.lower() for text in reversed(unit) if text.lower() in ("start", "stopp", "fail")), "")
    if any(text.startswith("Job for ") for text in unit) and not explained:
        again = last == "start"
        how: Outcome = "fail" if configured >= 0 and not again else "unknown"
        part.add(HOST, "service" if again else _NOT_STARTED, how, down, "systemctl could not start the service")
    elif last == "stopp" and not explained:
        part.add(HOST, "service", "unknown", down, "the service does not run")
    return part.imported(sound="log")


def _take(reports: Reports, level: str, text: str) -> None:
    """A line: of notices those alone that tell that all is well."""
    is_error = level in ("ERROR", "CRITICAL", "FATAL")
    for row in _FORMS:
        topic, outcome, fault = row.topic, row.outcome, row.fault
        if row.words.search(text) and (is_error or outcome == "pass"):
            named = _FABRIC_MANAGER_BDF.search(text)
            bdf = as_bdf(named["bdf"]) if named and (topic == _NVSWITCH or fault is Fault.NVLINK_DOWN) else None
            if topic == _NVSWITCH:
                outcome, fault = _of_sxid(text)
                port = _AT_PORT.search(text)
                bdf = f"{bdf}/{port['port'] if port else ''}" if bdf else None
            shown = row.text or text.rstrip(",")
            reports.add(bdf or HOST, topic, outcome, fault, shown if outcome != "pass" else "")
            return


def _of_sxid(text: str) -> tuple[Outcome, FaultKind | None]:
    """By the table of the guide; of one that is not in it as of those that ask for no action."""
    match = _SXID.search(text)
    number = int(match["number"]) if match else 0
    fatal = match is not None and not match["not"]
    entry = sxids().get(number)
    if not fatal and entry is not None and entry.severity == "information":
        return "pass", None
    return "fail" if fatal else "warn", sxid_fault(sxid_response(number, fatal))


_NAMES_IMEX = LazyPattern(any_of("host/lines", "names IMEX"))
"""It hands out references to memory of other hosts, https://github.com/NVIDIA/k8s-dra-driver-gpu/issues/948."""


def is_of_imex(lines: tuple[str, ...]) -> bool:
    """Is it the log of IMEX, which has the form of that of Fabric Manager?"""
    return any("[tid " in line and _NAMES_IMEX.search(line) for line in lines)


_CHECK = LazyPattern(r"(?P<name>[A-Z][^.]{3,120}(?:\.\d[^.]{0,60}){0,4}?) ?\.{3,200} {0,8}(?P<word>[A-Z][a-z]{2,12})")
_WORDS: Mapping[str, Outcome] = {
    "healthy": "pass", "ok": "pass", "unhealthy": "fail", "critical": "fail", "warning": "warn",
    "informational": "note",
}  # fmt: skip
_SUMMARY = caseless_pattern(r"\d{1,5} out of \d{1,5} checks are healthy|(?P<bad>\d{1,5}) checks? (?:is|are) unhealthy"
                      r"|(?P<other>\d{1,5}) (?:informational|unknown) checks?.{0,40}")  # fmt: skip
_OVERALL = caseless_pattern(r"Overall system status is (?P<word>[a-z]{2,12})\.?")
_GREETING = LazyPattern(r"The system has (?P<fail>\d{1,4}) critical alerts? and (?P<warn>\d{1,4}) warnings?\..{0,80}")
_HEADINGS = frozenset(("Info", "Checks", "Health Summary", "Properties:", "Targets:", "Verbs:", "nvsm->"))
_PLAIN = LazyPattern(r"-{4,40}|Timestamp: .{6,60}|Version: [\d.]{3,20}")
_TARGET = LazyPattern(r"/(?:systems|chassis)/[\w./-]{3,200}/(?P<name>[\w.-]{1,64})/?")
_PROPERTY = LazyPattern(r"(?P<name>[A-Za-z]\w{1,60}) = (?P<value>.{0,600})")
_NVSM_BDF = caseless_pattern(PATTERN)
_GPU = caseless_pattern(r"GPU[ _]?(\d{1,2})")
_OVER = frozenset(("cleared", "resolved", "closed"))
"""States of an alert that is no longer one."""


def read_nvsm(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every check, component and alert that is not healthy; counts of alerts that the text does not show."""
    part = ToolPart("nvsm")
    target: list[tuple[str, str]] = []
    path, bad = "", False
    for number, text in numbered(lines, lambda line: line.strip().removeprefix("nvsm-> ")):
        if text in _HEADINGS or _PLAIN.fullmatch(text) or text.startswith("show "):
            part.beside.add(number)
            continue
        if path and (match := _PROPERTY.fullmatch(text)):
            target.append((match["name"].lower(), match["value"].strip(' "')))
        elif match := _TARGET.fullmatch(text):
            _component(part, path, dict(target))
            path, target = match["name"], []
        elif (match := _CHECK.fullmatch(text)) and match["word"].lower() in _WORDS:
            name, word = match["name"].strip(), match["word"].lower()
            bad = bad or _WORDS[word] != "pass"
            _add(part, f"{name} is {word}", _WORDS[word], name[:40])
        elif (match := _OVERALL.fullmatch(text)) and match["word"].lower() in _WORDS:
            if not bad:
                word = match["word"].lower()
                _add(part, f"system status is {word}", _WORDS[word], "status")
        elif match := _GREETING.fullmatch(text):
            _greeting(part, int(match["fail"]), int(match["warn"]))
        elif not _SUMMARY.fullmatch(text):
            continue
        part.lines.add(number)
    _component(part, path, dict(target))
    return part.imported() if part else ()


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
    named = (properties.get(key, "").rstrip(".") for key in ("message", "message_details", "description"))
    about = properties.get("component_id", properties.get("name", name))
    detail = ": ".join(filter(None, named)) or f"health is {word}"
    _add(reports, f"{about}: {detail}", outcome, properties.get("alert_id", name))


def _add(reports: Reports, text: str, outcome: Outcome, topic: str) -> None:
    """Of the GPU that the text names, else of the host."""
    gpu, bdf = _GPU.search(text), _NVSM_BDF.search(text)
    place = as_bdf(bdf[0]) if bdf and text.startswith("GPU") else None
    subject = f"GPU{int(gpu[1])}" if gpu else place or HOST
    fault = None if outcome in ("pass", "note") else of_sentence(text)
    reports.add(subject, topic_of(topic, "check"), outcome, fault, "" if outcome == "pass" else text)
