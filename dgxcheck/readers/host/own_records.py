"""What disks and memory recorded of themselves: SMART logs, and the errors that rasdaemon and the kernel counted.

``nvme smart-log`` (nvme-cli), ``smartctl -a`` and ``-H`` (smartmontools), ``ras-mc-ctl --summary``, ``--errors`` and
``--error-count`` (rasdaemon, util/ras-mc-ctl.in), edac-util, mcelog. They go back to a day that nobody prints: what is
wrong only warns.
"""

from __future__ import annotations

from collections import Counter

from dgxcheck.facts.bdf import PATTERN
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import members_of
from dgxcheck.facts.tool_outputs import DISK, Outcome
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.formats import Document, documents
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of

SMART, RAS = "SMART", "ras-mc-ctl"
_DISK = LazyPattern(any_of("host/lines", "SMART"))
_VALUE = LazyPattern(r"(?P<name>[A-Za-z][\w /()#.\[\]-]{2,70}?)\s{0,40}:\s{0,40}(?P<value>\S.{0,200})?")
_ATTRIBUTE = LazyPattern(
    r"\d{1,3} (?P<name>\w[\w-]{2,40}) {1,24}(?:0x[0-9a-f]{4}|[POSRCK-]{6}) .{10,60}?"
    r" (?P<when>-|In_the_past|Past|FAILING_NOW|NOW) {1,8}(?P<value>\d{1,12})(?:\D.{0,60})?"
)
"""Of a SATA disk; ``when`` it failed: ``-`` where it did not (smartmontools, ataprint.cpp)."""
_FAILING = ("FAILING_NOW", "NOW")
_COUNTED = LazyPattern(any_of("host/lines", "SMART of SAS"))
"""The error counter log of a SAS disk."""
_SELF_TEST = caseless_pattern(any_of("host/lines", "SMART, self-tests"))
"""The last one has number 1; what failed may be remapped since (smartmontools, ataprint.cpp and scsiprint.cpp)."""
_NUMBER = LazyPattern(r"(?:0x[0-9a-f]{1,2}|[\d,]{1,16})")
_BITS = ("spare below threshold", "temperature", "reliability degraded", "read-only", "memory backup failed")
"""``Critical Warning`` (NVM Express Base Specification, SMART / Health Information)."""
_MEDIA = " media errors"
_OF_MEDIA = ("media errors", "media and data integrity errors", "current pending sector", "reported uncorrect")
_RESULTS = {"smart overall-health self-assessment test result": "PASSED", "smart health status": "OK"}


def read_smart(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Of each disk its warnings and the result of its own assessment; errors of its media are a note."""
    part = ToolPart(SMART)
    disk, inside = "a disk", False
    for number, text in numbered(lines):
        if begins := _DISK.fullmatch(text):
            disk, inside = begins["nvme"] or begins["disk"] or disk, True
            part.beside.add(number)
        elif inside and (counted := _COUNTED.fullmatch(text)):
            _take(part, disk, "media errors", counted["uncorrected"] or "")
            part.lines.add(number)
        elif row := _SELF_TEST.fullmatch(text):
            inside = True
            part.beside.add(number)
            if row["number"] == "1" and row["failed"]:
                _enter(part, disk, f"its last self-test: {row['failed']}")
                part.lines.add(number)
        elif inside and (row := _ATTRIBUTE.fullmatch(text) or _VALUE.fullmatch(text)):
            part.beside.add(number)
            name, when = row["name"].replace("_", " ").lower(), row.groupdict().get("when", "")
            is_count = name in _OF_MEDIA and when not in _FAILING
            if _take(part, disk, name, (not is_count and when) or row["value"] or ""):
                part.lines.add(number)
        else:
            inside = inside and not text
    for found, where in documents(lines, lambda each: not each.keys().isdisjoint(("critical_warning", "smart_status"))):
        _of_json(part, found)
        part.lines.update(where)
    return part.imported()


def _of_json(part: ToolPart, found: Document) -> None:
    """``nvme smart-log -o json`` and ``smartctl -j``."""
    disk = str(members_of(found.get("device")).get("name", "a disk")).removeprefix("/dev/")
    for name, value in members_of(found.get("nvme_smart_health_information_log", found)).items():
        _take(part, disk, name.replace("_", " "), str(value.get("value") if isinstance(value, dict) else value))
    if isinstance(passed := members_of(found.get("smart_status")).get("passed"), bool):
        _take(part, disk, "smart overall-health self-assessment test result", "PASSED" if passed else "FAILED")


def _take(part: ToolPart, disk: str, name: str, value: str) -> bool:
    """Enter what a row tells; does it tell anything?"""
    wrong = _of_disk(name, value)
    if wrong is not None:
        _enter(part, disk, wrong)
    return wrong is not None


def _enter(part: ToolPart, disk: str, wrong: str) -> None:
    outcome: Outcome = "note" if wrong.endswith(_MEDIA) else "warn" if wrong else "pass"
    text = f"{disk}: {wrong}" if wrong else ""
    subject = HOST if " " in disk else f"{DISK}{disk}"
    part.add(subject, disk, outcome, Fault.DISK if outcome == "warn" else None, text)


def _of_disk(name: str, value: str) -> str | None:
    """What is wrong by a row; empty where nothing is, None for a row that does not tell."""
    if good := _RESULTS.get(name):
        return "" if value == good else f"its own assessment is {value}"
    if value in ("-", *_FAILING):
        return "" if value == "-" else f"{name} is at its threshold"
    if not _NUMBER.fullmatch(value):
        return None
    count = int(value.replace(",", ""), 16 if value.startswith("0x") else 10)
    if name == "critical warning":
        why = ", ".join(words for bit, words in enumerate(_BITS) if count >> bit & 1)
        return f"critical warning {count:#04x} ({why})" if count else ""
    return f"{count}{_MEDIA}" if name in _OF_MEDIA and count else None


_NONE = LazyPattern(r"No (?:\w[\w ]{1,40} )?errors\.")
_TITLE = LazyPattern(any_of("host/lines", "ras-mc-ctl"))
_FAULTS: dict[str, FaultKind] = {
    "PCIe AER": Fault.AER_UNCORRECTABLE, "MCE": Fault.MACHINE_CHECK, "ARM processor": Fault.MACHINE_CHECK,
    "Disk": Fault.DISK, "devlink": Fault.TEST_FAILED,
}  # fmt: skip
"""Of what is not corrected; that of the others is of memory."""
_KIND = r"(?P<kind>Corrected|Uncorrected|Fatal|Deferred)\b"
_TOTAL = LazyPattern(
    rf"{_KIND} on DIMM Label\(s\): '(?P<part>[^']{{0,100}})' ?(?:location: \S{{1,40}} errors: (?P<count>\d{{1,9}}))?"
)
_AT = r"\d{1,9} (?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}|\.\.) {1,3}"
_BY_DAEMON = r".{0,120}\b%s(?::| \[[A-Z]{4,5}\]) .{0,60}?"
"""Newer ones show a level: https://github.com/mchehab/rasdaemon/pull/209."""
_ONE = LazyPattern(
    rf"(?:{_AT}|{_BY_DAEMON % 'mc_event'} )(?P<count>\d{{1,9}}) {_KIND} error(?:\(s\)|s)?:?"
    r".{0,80}? (?:at|on) (?P<part>.{1,100}?) {1,4}(?:location: |\.\.\. |label=|\(mc: ).*"
)
"""Also as the daemon logs it (ras-mc-handler.c)."""
_OF_PCIE = LazyPattern(rf"{_AT}(?P<bdf>{PATTERN}) {_KIND}(?: \((?:Non-)?Fatal\))? error: .*")
_OF_PCIE_LOGGED = LazyPattern(
    rf"{_BY_DAEMON % 'aer_event'} (?P<bdf>{PATTERN}) .{{1,200}} {_KIND}(?: \((?:Non-)?Fatal\))?"
)
"""As the daemon logs it (ras-aer-handler.c)."""
_OF_CPU = LazyPattern(rf"{_AT}error: (?P<text>.{{0,400}})\bstatus=0x(?P<status>[0-9a-f]{{1,16}})\b.*")
_BANK = LazyPattern(r"CPU \d{1,5}, bank [^,]{1,60} \(bank=\d{1,3}\)")
_UNCORRECTED = 1 << 61
"""Of a bank's status (``MCI_STATUS_UC``, Linux arch/x86/include/asm/mce.h)."""
_OTHER = LazyPattern(rf"(?P<count>\d{{1,9}}) {_KIND}.{{0,200}}errors?\b.*")
_HAS = LazyPattern(r"(?P<part>CPU\(mpidr=0x[0-9a-f]{1,16}\)|[\w:.-]{1,32}) has (?P<count>\d{1,9}) errors")
"""Of CPUs and disks, of which it does not tell how severe they are."""
_PAGES = LazyPattern(r"(?P<kind>Recovered|Delayed|Failed|Ignored) errors: (?P<count>\d{1,9})")
_PAGE = LazyPattern(rf"{_AT}error: pfn=0x[0-9a-f]{{1,16}}, page_type=[\w ]{{1,60}}, action_result=\w{{1,20}}")
"""Pages that the kernel took out of use after an error that was not corrected (include/linux/mm.h: mf_result)."""
_ROW = LazyPattern(r"(?P<part>\S{1,100})\s{1,60}(?P<ce>\d{1,12})\s{1,60}(?P<ue>\d{1,12})")


def read_ras(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Errors that were not corrected, and the number of those that were, of each DIMM or kind."""
    part = ToolPart(RAS)
    found: Counter[tuple[str, str, bool]] = Counter()
    unknown: Counter[tuple[str, str]] = Counter()
    of = ""
    for number, text in numbered(lines):
        if title := _TITLE.fullmatch(text):
            of = title["of"] or title["table"]
        elif of.startswith("Label") and (row := _ROW.fullmatch(text)):
            found["Memory controller", row["part"], True] += int(row["ce"])
            found["Memory controller", row["part"], False] += int(row["ue"])
        elif match := _TOTAL.fullmatch(text) or _ONE.fullmatch(text):
            found["Memory controller", match["part"], match["kind"] == "Corrected"] += int(match["count"] or 1)
        elif match := _OF_PCIE.fullmatch(text) or _OF_PCIE_LOGGED.fullmatch(text):
            found["PCIe AER", match["bdf"], match["kind"] == "Corrected"] += 1
        elif of == "MCE" and (match := _OF_CPU.fullmatch(text)):
            bad = int(match["status"], 16) & _UNCORRECTED or match["text"].startswith("Deferred")
            bank = _BANK.search(match["text"])
            found[of, bank[0].partition(" (")[0] if bank else "", not bad] += 1
        elif of and (match := _OTHER.fullmatch(text)):
            found[of, "", match["kind"] == "Corrected"] += int(match["count"])
        elif of in ("ARM processor", "Disk") and (match := _HAS.fullmatch(text)):
            unknown[of, match["part"]] += int(match["count"])
        elif of == "Memory failure" and (match := _PAGES.fullmatch(text)):
            found[of, "", False] += int(match["count"])
        elif not (_NONE.fullmatch(text) or _PAGE.fullmatch(text)):
            continue
        part.lines.add(number)
    for (subject, name, corrected), count in found.items():
        if count:
            at = f"{name}/PCIe" if subject == "PCIe AER" and name else HOST
            _add_errors(part, subject, name, count, corrected, at)
    for (subject, name), count in unknown.items():
        text = f"{subject} ({name}): {count} of unknown severity; ras-mc-ctl --errors lists them"
        part.add(HOST, "errors", "note", None, text)
    return part.imported(sound="errors")


def _add_errors(part: ToolPart, subject: str, name: str, count: int, corrected: bool, at: str = HOST) -> None:
    fault = None if corrected else _FAULTS.get(subject, Fault.DIMM_ERRORS)
    text = f"{subject}{f' ({name})' if name else ''}: {count} {'' if corrected else 'un'}corrected"
    part.add(at, "errors", "note" if corrected else "warn", fault, text)


_EDAC = LazyPattern(any_of("host/lines", "edac-util"), "Errors", "rrors: ", ":CE:", ":UE:", "edac-util: ", "Total ")


def read_edac(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``edac-util`` and its reports (edac-utils, src/util/edac-util.c): errors by csrow, DIMM or memory controller."""
    part = ToolPart("edac-util")
    for row in part.matches(_EDAC, numbered(lines)):
        if count := int(row["count"] or row["number"] or 0):
            _add_errors(part, "Memory controller", row["part"], count, "C" in row.group("kind", "of", "simple"))
    return part.imported(sound="errors")


_MCE = LazyPattern(r"(?:.{0,120} )?mcelog(?:\[\d{1,9}\])?: (?P<text>.{0,200})")
_BEGINS = LazyPattern(r"Hardware event\. This is not a software error\.|MCE \d{1,6}")
_SAYS = LazyPattern(rf"(?:{any_of('host/lines', 'mcelog')})\b.{{0,99}}")


def read_mcelog(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Its decoded records (http://mcelog.org): uncorrected errors of memory or CPU; the number of corrected ones."""
    part = ToolPart("mcelog")
    kinds: Counter[str] = Counter()
    of_memory = inside = False
    for number, line in numbered(lines):
        tagged = _MCE.fullmatch(line)
        text = tagged["text"].strip() if tagged else line
        if _BEGINS.fullmatch(text):
            inside = True
        elif not (tagged or inside) or not (says := _SAYS.match(text)):
            inside = inside and bool(text)
            continue
        else:
            kinds[(says["kind"] or "").lower()] += 1
            of_memory = of_memory or "memory" in text.lower()
        (part.lines if inside else part.beside).add(number)
    what = "memory" if of_memory else "CPU"
    if bad := kinds["uncorrected"]:
        fault = Fault.DIMM_ERRORS if of_memory else Fault.MACHINE_CHECK
        part.add(HOST, "errors", "warn", fault, f"uncorrected errors of {what}: {bad}")
    if some := kinds["corrected"]:
        part.add(HOST, "corrected", "note", None, f"corrected errors of {what}: {some}; see how many a day they are")
    return part.imported(sound="errors")
