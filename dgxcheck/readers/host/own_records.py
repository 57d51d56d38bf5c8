"""What disks and memory recorded of themselves: SMART logs, arrays, and the errors that rasdaemon kept.

``nvme smart-log`` (nvme-cli), ``smartctl -a`` and ``-H`` (smartmontools), ``ras-mc-ctl --summary``, ``--errors`` and
``--error-count`` (rasdaemon, util/ras-mc-ctl.in), mcelog. They go back to a day that nobody prints: what is wrong only
warns.
"""

from __future__ import annotations

from collections import Counter

from dgxcheck.facts.bdf import PATTERN
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_outputs import DISK
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.formats import Document, documents
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered

SMART, RAS = "SMART", "ras-mc-ctl"
_DISK = LazyPattern(
    r"Smart Log for NVME device: ?(?P<nvme>\w{1,32}) .*|(?:.{0,80}[ #$])?smartctl (?:-.{1,80} )?/dev/(?P<disk>\w{1,32})"
    r"|=== START OF .{1,40} SECTION ===|SMART/Health Information \(NVMe Log 0x02.{0,40}\)"
)
_VALUE = LazyPattern(r"(?P<name>[A-Za-z][\w /()#-]{2,70}?)\s{0,40}:\s{0,40}(?P<value>\S.{0,200})?")
_NUMBER = LazyPattern(r"(?:0x[0-9a-f]{1,2}|[\d,]{1,16})")
_BITS = ("spare below threshold", "temperature", "reliability degraded", "read-only", "memory backup failed")
"""``Critical Warning`` (NVM Express Base Specification, SMART / Health Information)."""
_MEDIA = " media errors"
_RESULTS = {"smart overall-health self-assessment test result": "PASSED", "smart health status": "OK"}


def read_smart(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Of each disk its warnings and the result of its own assessment; errors of its media are a note."""
    part = ToolPart(SMART)
    disk, inside = "a disk", False
    for number, text in numbered(lines):
        if begins := _DISK.fullmatch(text):
            disk, inside = begins["nvme"] or begins["disk"] or disk, True
            part.beside.add(number)
        elif inside and (row := _VALUE.fullmatch(text)):
            part.beside.add(number)
            if _take(part, disk, row["name"].replace("_", " ").lower(), row["value"] or ""):
                part.lines.add(number)
        else:
            inside = inside and not text
    for found, where in documents(lines, lambda each: not each.keys().isdisjoint(("critical_warning", "smart_status"))):
        _of_json(part, found)
        part.lines.update(where)
    return part.imported()


def _of_json(part: ToolPart, found: Document) -> None:
    """``nvme smart-log -o json`` and ``smartctl -j``."""
    device, status = found.get("device"), found.get("smart_status")
    disk = str(device.get("name", "")).removeprefix("/dev/") if isinstance(device, dict) else "a disk"
    log = found.get("nvme_smart_health_information_log", found)
    for name, value in log.items() if isinstance(log, dict) else ():
        _take(part, disk, name.replace("_", " "), str(value.get("value") if isinstance(value, dict) else value))
    if isinstance(status, dict) and isinstance(passed := status.get("passed"), bool):
        _take(part, disk, "smart overall-health self-assessment test result", "PASSED" if passed else "FAILED")


def _take(part: ToolPart, disk: str, name: str, value: str) -> bool:
    """Enter what a row tells; does it tell anything?"""
    wrong, subject = _of_disk(name, value), f"{DISK}{disk}" if " " not in disk else HOST
    if wrong == "":
        part.add(subject, disk, "pass")
    elif wrong is not None and wrong.endswith(_MEDIA):
        part.add(subject, disk, "note", None, f"{disk}: {wrong}")
    elif wrong is not None:
        part.add(subject, disk, "warn", Fault.DISK, f"{disk}: {wrong}")
    return wrong is not None


def _of_disk(name: str, value: str) -> str | None:
    """What is wrong by a row; empty where nothing is, None for a row that does not tell."""
    if good := _RESULTS.get(name):
        return "" if value == good else f"its own assessment is {value}"
    if not _NUMBER.fullmatch(value):
        return None
    count = int(value.replace(",", ""), 16 if value.startswith("0x") else 10)
    if name == "critical warning":
        why = ", ".join(words for bit, words in enumerate(_BITS) if count >> bit & 1)
        return f"critical warning {count:#04x} ({why})" if count else ""
    return f"{count}{_MEDIA}" if name in ("media errors", "media and data integrity errors") and count else None


_NONE = LazyPattern(r"No (?:\w[\w ]{1,40} )?errors\.", "No ")
_TITLE = LazyPattern(
    r"(?P<of>Memory controller|PCIe AER|MCE|Memory failure|ARM processor|Extlog|Disk|devlink)"
    r" (?:events|records|errors)(?: summary)?:|(?P<table>Label\s{1,40}CE\s{1,40}UE)"
)
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
_ONE = LazyPattern(
    rf"{_AT}(?P<count>\d{{1,9}}) {_KIND} error\(s\):?"
    r".{0,80}? at (?P<part>.{1,100}?) {1,4}(?:location: |\.\.\. |label=).*",
    "error(s)",
)
_OF_PCIE = LazyPattern(rf"{_AT}(?P<bdf>{PATTERN}) {_KIND}(?: \((?:Non-)?Fatal\))? error: .*", " error: ")
_OF_CPU = LazyPattern(rf"{_AT}error: (?P<text>.{{0,400}})\bstatus=0x(?P<status>[0-9a-f]{{1,16}})\b.*", "status=0x")
_BANK = LazyPattern(r"CPU \d{1,5}, bank [^,]{1,60} \(bank=\d{1,3}\)", " (bank=")
_UNCORRECTED = 1 << 61
"""Of a bank's status (``MCI_STATUS_UC``, Linux arch/x86/include/asm/mce.h)."""
_OTHER = LazyPattern(rf"(?P<count>\d{{1,9}}) {_KIND}.{{0,200}}errors?\b.*")
_HAS = LazyPattern(r"(?P<part>CPU\(mpidr=0x[0-9a-f]{1,16}\)|[\w:.-]{1,32}) has (?P<count>\d{1,9}) errors", " has ")
"""Of CPUs and disks, of which it does not tell how severe they are."""
_PAGES = LazyPattern(r"(?P<kind>Recovered|Delayed|Failed|Ignored) errors: (?P<count>\d{1,9})", " errors: ")
_PAGE = LazyPattern(rf"{_AT}error: pfn=0x[0-9a-f]{{1,16}}, page_type=[\w ]{{1,60}}, action_result=\w{{1,20}}", ": pfn=")
"""Pages that the kernel took out of use after an error that was not corrected (include/linux/mm.h: mf_result)."""
_EDAC = LazyPattern(
    r"mc\d{1,3}: (?:(?P<part>csrow\d{1,3}(?:: [^:]{1,80})?): )?(?P<count>\d{1,9}) (?P<kind>C|Unc)orrected Errors"
    r"(?: with no DIMM info)?|edac-util: (?:No errors to report|EDAC drivers are loaded)\..{0,80}",
    " Errors", "edac-util: ",
)
"""``edac-util -v`` and ``-s`` (edac-utils, src/util/edac-util.c): a row of a csrow, and of each DIMM in it."""
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
        elif match := _OF_PCIE.fullmatch(text):
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
        elif match := _EDAC.fullmatch(text):
            found["Memory controller", match["part"] or "", match["kind"] == "C"] += int(match["count"] or 0)
        elif not (_NONE.fullmatch(text) or _PAGE.fullmatch(text)):
            continue
        part.lines.add(number)
    for (subject, name, corrected), count in found.items():
        if count:
            fault = None if corrected else _FAULTS.get(subject, Fault.DIMM_ERRORS)
            text = f"{subject}{f' ({name})' if name else ''}: {count} {'' if corrected else 'un'}corrected"
            at = f"{name}/PCIe" if subject == "PCIe AER" and name else HOST
            part.add(at, "errors", "note" if corrected else "warn", fault, text)
    for (subject, name), count in unknown.items():
        text = f"{subject} ({name}): {count} of unknown severity; ras-mc-ctl --errors lists them"
        part.add(HOST, "errors", "note", None, text)
    return part.imported(sound="errors")


MCELOG = "mcelog"
_MCE = LazyPattern(r"(?:.{0,120} )?mcelog(?:\[\d{1,9}\])?: (?P<text>.{0,200})", "mcelog")
_BEGINS = LazyPattern(r"Hardware event\. This is not a software error\.|MCE \d{1,6}")
_SAYS = LazyPattern(
    r"(?:MCA|Transaction|MC[Gi] status|STATUS|MCGSTATUS|MCGCAP|CPU|CPUID|ADDR|MISC|TIME|BANK|SOCKET|PPIN|MICROCODE|RIP"
    r"|TSC|Processor|mcg|bank|(?P<kind>[Cc]orrected|[Uu]ncorrected) error|Memory (?:read|write|scrubbing) error"
    r"|Error (?:enabled|overflow)|MCi_\w{4,8} register valid|warning: \d|consider an|M2M|DIMM|Large number of)\b.{0,99}"
)


def read_mcelog(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Its decoded records (http://mcelog.org): uncorrected errors of memory or CPU; the number of corrected ones."""
    part = ToolPart(MCELOG)
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


MDSTAT = "/proc/mdstat"
_ARRAY = LazyPattern(
    r"(?P<name>md\w{1,30}) : (?P<state>active|inactive)\b(?P<members>.{0,600})", " : active", " : inactive"
)
_MEMBERS = LazyPattern(
    r"\d{1,16} blocks(?P<container> super external:(?![/-]))?"
    r"(?:.{0,120}\[(?P<wanted>\d{1,4})/(?P<there>\d{1,4})\] \[[U_]{1,400}\])?.{0,120}", " blocks"
)
"""A container holds the metadata of arrays (Intel VROC), which name it behind a slash, and is always inactive."""
_BESIDE = LazyPattern(r"Personalities :.{0,200}|unused devices: .{0,200}|bitmap: .{0,120}|\[[=>.]{10,40}\]  .{0,120}")


def read_arrays(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``/proc/mdstat``: arrays that lack a member, or are not assembled."""
    part = ToolPart(MDSTAT)
    name = members = state = ""
    begun = 0
    for number, text in numbered(lines):
        if array := _ARRAY.fullmatch(text):
            name, members, state, begun = array["name"], array["members"], array["state"], number
        elif name and (shown := _MEMBERS.fullmatch(text)):
            there, wanted = int(shown["there"] or 0), int(shown["wanted"] or 0)
            if state == "inactive" and not shown["container"]:
                part.add(f"{DISK}{name}", name, "warn", Fault.DISK, f"{name} is inactive:{members}")
            elif there < wanted:
                part.add(f"{DISK}{name}", name, "warn", Fault.DISK, f"{name} has {there} of {wanted} members:{members}")
            part.lines |= {begun, number}
        elif _BESIDE.fullmatch(text):
            part.beside.add(number)
        else:
            name = name if text else ""
    return part.imported(sound="arrays")


RAID = "storcli"
_OF_RAID = LazyPattern(
    r"(?P<drive>\d{0,4}:\d{1,4}) {1,12}\d{1,5} (?P<is>[A-Z]\w{1,10}) {1,8}[\dF-]{1,4} {1,12}[\d.]{1,10} [GT]B .{8,160}"
    r"|(?P<volume>(?:\d{1,4}|-)/\d{1,4}) {1,8}\w{4,8} {1,4}(?P<state>[A-Z]\w{1,8}) {1,4}(?:RW|RO|B|HD) .{8,160}"
    r"|(?:DG Arr Row |EID:Slt |DG/VD ).{20,160}|(?:TOPOLOGY|[VP]D LIST|Drive Information) :"
    r"|(?:[\d-]{1,3} {1,4}){3}\S{1,9} {1,8}[\d-]{1,5} {1,4}(?:RAID\d{1,2}|DRIVE) .{20,120}"
)
_BROKEN = {"Dgrd": "degraded", "Pdgd": "partially degraded", "OfLn": "offline", "Failed": "failed", "Offln": "offline",
           "UBad": "unconfigured and bad", "Rbld": "being rebuilt", "Msng": "missing"}  # fmt: skip
"""By the legend that it prints itself; hot spares, unconfigured good drives and JBOD are no fault."""


def read_raid(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``storcli`` and ``perccli``, ``show``: volumes that are not optimal, and drives that failed."""
    part = ToolPart(RAID)
    for number, text in numbered(lines):
        row = _OF_RAID.fullmatch(text)
        if row and (state := row["is"] or row["state"]):
            part.lines.add(number)
            if words := _BROKEN.get(state):
                what = f"drive {row['drive']}" if row["drive"] else f"volume {row['volume']}"
                part.add(HOST, "raid", "warn", Fault.DISK, f"{what} is {words}")
        elif row:
            part.beside.add(number)
    return part.imported(sound="raid")


MDADM = "mdadm"
_DETAIL = LazyPattern(r"(?P<name>/dev/md[\w/-]{0,30}):", "/dev/md")
_DETAIL_ROW = LazyPattern(
    r"(?P<name>Version|Creation Time|Raid Level|(?:Array|Used Dev|Chunk) Size|(?:Raid|Total|Preferred Minor) ?\w{0,8}"
    r"|Persistence|Intent Bitmap|Update Time|State|(?:Active|Working|Failed|Spare) Devices|Layout|Consistency Policy"
    r"|\w{1,12} Status|Name|UUID|Events|Number {2,6}Major.{0,60})(?: : (?P<value>.{0,200}))?"
    r"|(?:\d{1,3}|-) {2,10}\d{1,3} {2,10}\d{1,3} {2,10}(?:\d{1,3}|-) {2,10}.{1,100}"
)


def read_array_details(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Arrays whose state is not clean or active alone."""
    part = ToolPart(MDADM)
    array = ""
    for number, text in numbered(lines):
        if begins := _DETAIL.fullmatch(text):
            array = begins["name"]
        elif not (array and text and (row := _DETAIL_ROW.fullmatch(text))):
            array = array if not text else ""
            continue
        elif row["name"] == "State":
            state = row["value"] or ""
            bad = any(word in state for word in ("degraded", "FAILED", "inactive", "Not Started"))
            text = f"{array.removeprefix(DISK)} is {state}" if bad else ""
            part.add(array, "array", "warn" if bad else "pass", Fault.DISK if bad else None, text)
        part.lines.add(number)
    return part.imported()
