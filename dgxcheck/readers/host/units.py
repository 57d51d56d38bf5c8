"""Services that systemd shows: ``systemctl status`` of NVIDIA's and OFED's units, and ``systemctl list-units``.

https://www.freedesktop.org/software/systemd/man/latest/systemctl.html
"""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.host.services import ACTIVE, ASIDE, FABRIC_MANAGER_TOOL, LOADED
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered

TOOL = "systemctl"
_MANAGER = "nvidia-fabricmanager"
"""Its status has a reader of its own, which knows its log."""
_NAMES = r"nvidia-persistenced|nvidia-dcgm|dcgm|nvsm|nvidia-imex|nvidia-powerd|nvidia-mig-manager|openibd|opensmd?"
_ROW = LazyPattern(
    rf"(?:[●×○✗*x] )?(?P<name>{_MANAGER}|{_NAMES})\.service\s{{1,80}}(?:loaded|masked|not-found)\s{{1,12}}"
    r"(?P<state>active|inactive|failed|activating)\s{1,12}[\w-]{2,20}(?:\s.{0,120})?"
)
_HEAD = LazyPattern(r"UNIT\s{1,80}LOAD\s{1,12}ACTIVE\s{1,12}SUB\s{1,12}DESCRIPTION|\d{1,4} loaded units listed\..*"
                    r"|(?:LOAD|ACTIVE|SUB|JOB) {1,4}(?:=|→) .{10,120}")  # fmt: skip
_ASKED = LazyPattern(
    rf"(?:.{{0,80}}[#$] ?)?(?:sudo )?systemctl is-(?:active|failed) (?P<name>{_MANAGER}|{_NAMES})(?:\.service)?"
)
_STATES = ("active", "inactive", "failed", "activating", "deactivating")
_SHOWN = LazyPattern(
    rf"(?:[●×○✗*x] )?(?P<name>{_NAMES})\.service - .{{1,120}}|{LOADED}(?P<loaded>{_NAMES})\.service;.{{1,120}}"
)
_MESSAGE = LazyPattern(
    rf"(?:(?:.{{0,120}} )?(?:{_NAMES})\[\d{{1,9}}\]: ?)?(?P<text>(?:(?<=: )|Failed to query NVIDIA devices).{{1,400}})"
)
_ENDED = LazyPattern(
    rf".{{0,120}}systemd\[1\]: (?:(?P<name>{_NAMES})\.service: Failed with result '[\w-]{{2,30}}'\.?"
    rf"|Failed to start (?P<unit>{_NAMES})\.service\b.{{0,160}})"
)
"""In the journal."""
_UNIT = LazyPattern(rf"(?:.{{0,120}} )?systemd\[1\]: (?:.{{0,40}} )?(?:{_NAMES})\.service\b.{{0,300}}")

_ABSENT = LazyPattern(
    rf"(?:Failed to \w{{2,12}} (?:[\w-]{{2,40}}\.service|unit): )?Unit (?:file )?(?P<name>{_MANAGER}|{_NAMES})"
    r"\.service (?:(?:could )?not (?:be )?found|does not exist|(?P<masked>is masked))\."
)
"""What ``systemctl`` answers where it cannot act
(https://github.com/systemd/systemd, src/systemctl, src/shared/bus-error.c)."""


def read_units(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """A service that failed, with the first thing that it says of it."""
    part, manager = ToolPart(TOOL), ToolPart(FABRIC_MANAGER_TOOL)
    failed: dict[str, str] = {}
    shown = asked = ""
    for number, text in numbered(lines):
        if call := _ASKED.fullmatch(text):
            asked = call["name"]
        elif asked and text in _STATES:
            text, asked = f"{asked}.service loaded {text} {text}", ""
        if row := _ROW.fullmatch(text):
            if row["state"] == "failed" and row["name"] == _MANAGER:
                manager.add(HOST, "service", "fail", Fault.FABRIC_MANAGER_DOWN, "the service failed")
                manager.lines.add(number)
                continue
            if row["state"] == "failed":
                failed.setdefault(row["name"], "")
        elif begins := _SHOWN.fullmatch(text):
            shown = begins["name"] or begins["loaded"]
        elif absent := _ABSENT.fullmatch(text):
            state = "masked" if absent["masked"] else "not installed"
            part.add(HOST, absent["name"], "note", None, f"{absent['name']} is {state}")
        elif shown and (active := ACTIVE.fullmatch(text)):
            if active["state"] in ("failed", "activating"):  # it ended, and systemd starts it again
                failed.setdefault(shown, "")
        elif ended := _ENDED.fullmatch(text):
            failed.setdefault(ended["name"] or ended["unit"], "")
        elif shown and (message := _MESSAGE.fullmatch(text)):
            if shown in failed:
                failed[shown] = failed[shown] or message["text"]
        elif _HEAD.fullmatch(text):
            part.beside.add(number)
            continue
        elif not (call or _UNIT.fullmatch(text) or (shown and ASIDE.fullmatch(text))):
            continue
        part.lines.add(number)
    for name, why in failed.items():
        part.add(HOST, name, "note", None, f"{name} failed: {why or f'journalctl -b -u {name} says why'}")
    return (*part.imported(sound="units"), *manager.imported())
