"""``fabricmanager.log``, and the same lines in the journal: errors of NVSwitches and of the service itself.

Messages: NVIDIA Fabric Manager user guide, appendix on error handling
(https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html).
"""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_report import NOT_STARTED, Outcome
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded
from dgxcheck.xid.table import sxids

TOOL = "fabric manager"
_LINE = re.compile(
    r"\[[A-Z][a-z]{2} [ \d]\d \d{4} \d\d:\d\d:\d\d\] \[(?P<level>INFO|NOTICE|WARNING|ERROR|CRITICAL|FATAL|DEBUG)\]"
    r" \[tid \d{1,10}\] ?(?P<text>.{0,1000})"
)
_JOURNAL = re.compile(
    r"(?:.{0,120} )?(?:nv-fabricmanager|nvidia-fabricmanager(?:-start\.sh)?|nv-imex)\[\d{1,9}\]: ?(?P<text>.{1,1000})"
)
_HELPER = re.compile(
    r"(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d )?(?:nvidia-fabricmanager-wrapper|nvlsm):(?: (?P<text>.{0,1000}))?"
)
"""What starts the service in containers, and the subnet manager of NVLink 5."""
_UNIT = re.compile(
    r"(?P<job>Job for nvidia-fabricmanager\.service failed) .{1,200}"
    r"|(?:.{0,120} )?systemd\[1\]: (?:nvidia-fabricmanager\.service: (?P<text>.{1,300})"
    r"|(?P<verb>Start|Stopp|Fail)\w* .{0,20}(?:nvidia-fabricmanager\.service|NVIDIA fabric manager service).{0,80})",
    re.IGNORECASE,
)
_STOPPED = re.compile(r"Failed with result|status=(?!0/)|Start request repeated too quickly", re.IGNORECASE)
"""Of the unit: how systemd says that the service ended, or did not begin."""
_PAYLOAD = re.compile(r"Message (?:payload|header) details:.{0,2000}")
NONE = "no-nvswitch"
_NON_FATAL = "nvswitch-error"
_SXID = re.compile(r"error (?P<number>\d{5})\b")
_NOT_STARTED = NOT_STARTED.removeprefix(f"{TOOL.replace(' ', '-')}-")
_CONFIGURED = re.compile(r"Successfully configured all the available")
"""It found NVSwitches, then or before."""
_FORMS: tuple[tuple[re.Pattern[str], str, Outcome, FaultKind | None], ...] = (
    (re.compile(r"NV_WARN_NOTHING_TO_DO"), NONE, "pass", None),
    (_CONFIGURED, "configured", "pass", None),
    (re.compile(r"NVSwitch fatal error", re.IGNORECASE), "nvswitch-fatal", "fail", Fault.NVSWITCH_FATAL),
    (re.compile(r"NVSwitch non-?fatal error", re.IGNORECASE), _NON_FATAL, "warn", Fault.NVSWITCH_WATCHED),
    (re.compile(r"GPU.{0,80}NVLink.{0,80}(?:fail|error|down)|NVLink.{0,60}train\w* (?:fail|error)", re.IGNORECASE),
     "nvlink", "fail", Fault.NVLINK_DOWN),
    (re.compile(r"version.{0,80}(?:mismatch|(?:don't|does not|do not) match)", re.IGNORECASE), "version", "fail",
     Fault.FABRIC_MANAGER_DOWN),
    (re.compile(r"fail|error|abort|not supported", re.IGNORECASE), "error", "warn", Fault.FABRIC_MANAGER_ERROR),
)  # fmt: skip
_ERROR = re.compile(r"\bfail|\berror\b|\babort|mismatch|(?:don't|does not|do not) match", re.IGNORECASE)
_BDF = re.compile(
    r"(?:pci bus id:? ?|PCI:?)(?P<bdf>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])", re.IGNORECASE
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Errors by what they name; a log of notices alone is a result without a fault."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    unit: list[str] = []
    entries: list[tuple[str, str]] = []
    for number, line in enumerate(bounded(lines)):
        text = line.strip()
        if match := _LINE.fullmatch(text):
            entries.append((match["level"], match["text"]))
        elif match := _JOURNAL.fullmatch(text):
            entries.append(("ERROR" if _ERROR.search(match["text"]) else "INFO", match["text"]))
        elif match := _HELPER.fullmatch(text):
            entries.append(("ERROR" if _ERROR.search(match["text"] or "") else "INFO", match["text"] or ""))
        elif match := _UNIT.fullmatch(text):
            unit.append(match["text"] or match["verb"] or match["job"])
        elif not (understood and _PAYLOAD.fullmatch(text)):
            continue
        understood.add(number)
    if any(_FORMS[0][0].search(text) for _, text in entries):
        reports.add(HOST, NONE, "pass")  # without NVSwitches it ends at once, which systemd calls a failure
        unit, entries = [], []
    for level, text in entries:
        _take(reports, level, text)
    down = Fault.FABRIC_MANAGER_DOWN
    bad = [text for text in unit if text.lower() == "fail" or _STOPPED.search(text)]
    if bad and not reports.has_fault(down):
        text = next((each for each in bad if each.lower() != "fail"), "")
        reports.add(HOST, "service", "fail", down, f"the service failed: {text}".rstrip(": "))
    last = next((text.lower() for text in reversed(unit) if text.lower() in ("start", "stopp", "fail")), "")
    if any(text.startswith("Job for ") for text in unit) and not reports.has_fault(down):
        configured, again = any(_CONFIGURED.search(text) for _, text in entries), last == "start"
        how: Outcome = "fail" if configured and not again else "unknown"
        topic = "service" if again else _NOT_STARTED
        reports.add(HOST, topic, how, down, "systemctl could not start the service")
    elif last == "stopp" and not reports.has_fault(down):
        reports.add(HOST, "service", "unknown", down, "the service was stopped and not started again")
    if understood and not reports:
        reports.add(HOST, "log", "pass")
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood)),) if understood else ()


def _take(reports: Reports, level: str, text: str) -> None:
    """A line: of notices those alone that tell that all is well."""
    is_error = level in ("ERROR", "CRITICAL", "FATAL")
    for form, topic, outcome, fault in _FORMS:
        if form.search(text) and (is_error or outcome == "pass"):
            if topic == _NON_FATAL:
                outcome, fault = _of_sxid(text)
            named = _BDF.search(text)
            bdf = as_bdf(named["bdf"]) if named and fault is Fault.NVLINK_DOWN else None
            reports.add(bdf or HOST, topic, outcome, fault, text if outcome != "pass" else "")
            return


def _of_sxid(text: str) -> tuple[Outcome, FaultKind | None]:
    """By the table of the guide; of one that is not in it as of those that ask for no action."""
    match = _SXID.search(text)
    known = sxids().get(int(match["number"])) if match else None
    if known is not None and known.severity == "information":
        return "pass", None
    asks = known is not None and known.response in ("cooling", "mechanical")
    return "warn", Fault.NVSWITCH_NOTICE if asks else Fault.NVSWITCH_WATCHED
