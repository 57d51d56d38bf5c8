"""``flint query``, ``mstflint query`` and ``mlxfwmanager``: firmware and board (PSID) of each adapter."""

from __future__ import annotations

import re
from collections import Counter

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME, device_files, listed
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bare, bounded

TOOL = "flint"
_COMMAND = re.compile(
    rf"(?:.{{0,120}}\W)?(?:mst)?flint\s.{{0,80}}?(?:-d|--device)[ =](?P<device>{NAME}|[\w./:-]{{4,80}})\s.{{0,60}}"
    r"\b(?:q|query)\b.{0,60}",
    re.ASCII,
)
_BEGIN = re.compile(r"Image type: {1,20}FS\d|Device #\d{1,3}:")
_MEMBER = re.compile(
    r"(?P<name>FW Version|FW|PSID|PCI Device Name|Device Type|Part Number|Description|Versions|PXE|UEFI|Status"
    r"|FW Release Date|Product Version|Rom Info|Base GUID|Base MAC|Orig PSID|Image type|Security Attributes"
    r"|Default Update Method|VSD|Running FW Version|Image VSD|Device VSD|GUID|MAC)(?::| {2,40})\s{0,40}"
    r"(?P<value>.{0,300})"
)
_VERSION = re.compile(r"\d{1,3}\.\d{1,4}\.\d{1,5}", re.ASCII)
_PSID = re.compile(r"[A-Z]{2,3}_?[0-9A-Z_]{6,14}", re.ASCII)
_CHATTER = re.compile(
    r"-{4,40}|Querying Mellanox devices firmware \.{3}|type=\w{2,8}.{0,80}|.{0,30}(?:GUID|Guid|MAC) {1,30}Number.{0,40}"
)


class Adapter(Record, kw_only=False):
    """One adapter of a text."""

    name: str
    """The RDMA device or bus id that the tool was asked about; empty where the text does not tell."""
    version: str
    psid: str


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The files of RDMA devices that are named; for other adapters a result that compares those of one board."""
    found: list[Adapter] = []
    understood: set[int] = set()
    members: dict[str, str] = {}
    name, inside = "", False

    def close() -> None:
        version = _VERSION.search(members.get("FW Version", "") or members.get("FW", ""))
        if version is not None and _PSID.fullmatch(psid := members.get("PSID", "").strip()):
            found.append(Adapter(name or members.get("PCI Device Name", "").strip(), version[0], psid))
        members.clear()

    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if command := _COMMAND.fullmatch(line) if "flint" in line else None:
            close()
            name, inside = command["device"], False
        elif _BEGIN.fullmatch(line):
            close()
            inside = True
            name = "" if line.startswith("Device") else name
        elif inside and (member := _MEMBER.fullmatch(line)):
            members.setdefault(member["name"], member["value"].strip())
        elif not (inside and _CHATTER.fullmatch(line)):
            inside = inside and (not line or raw[:1] in " \t-")
            continue
        understood.add(number)
    close()
    if not found:
        return ()
    devices = {adapter.name: adapter for adapter in found if re.fullmatch(NAME, adapter.name, re.ASCII)}
    facts: dict[str, Json] = {}
    for device, adapter in devices.items():
        facts |= device_files(device, {"fw_ver": adapter.version, "board_id": adapter.psid})
    facts |= listed({device: [] for device in devices})
    reports = _compared([adapter for adapter in found if adapter.name not in devices])
    return (Imported(tool=TOOL, facts=facts | reports.facts(), understood=frozenset(understood)),)


def _compared(adapters: list[Adapter]) -> Reports:
    """Warns of an adapter whose version differs from that of most adapters of its board (PSID)."""
    reports = Reports(TOOL)
    for at, adapter in enumerate(adapters):
        place = as_bdf(adapter.name) or re.sub(r"^/dev/mst/|[\s/:]", "", adapter.name) or f"adapter{at}"
        versions = Counter(other.version for other in adapters if other.psid == adapter.psid)
        usual, count = versions.most_common(1)[0]
        if adapter.version != usual and 2 * count > versions.total():
            text = f"firmware {adapter.version}, other adapters of board {adapter.psid} run {usual}"
            reports.add(_subject(place), "firmware", "warn", Fault.HCA_FIRMWARE, text)
        else:
            reports.add(_subject(place), "firmware", "pass")
    return reports


def _subject(place: str) -> str:
    """The place without colons: in results of tools a bus id stands for a GPU."""
    return place.replace(":", ".") if ":" in place else place
