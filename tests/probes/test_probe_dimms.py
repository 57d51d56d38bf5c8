"""Memory modules out of the SMBIOS table: what is in which slot, what leaves the machine, and whose errors they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fake_source import FakeSource
from hypothesis import given
from hypothesis import strategies as st
from seam import document
from test_checks_kernel import logged
from test_health_checks import box

from dgxcheck.assessment.node_facts import parts
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.firmware import is_number, structures
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.sysfs import SMBIOS
from dgxcheck.settings import Settings
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.keys import from_rows, to_rows
from probes.host.memory import dimms


def module(slot: str, serial: str, size: int = 32768, bank: str = "CPU 2", asset: str = "Asset1") -> bytes:
    """A structure of type 17, version 2.7 (0x22 bytes)."""
    body = bytearray(0x22)
    body[0:2] = 17, len(body)
    body[0x0C:0x0E] = (size if size < 0x7FFF else 0x7FFF).to_bytes(2, "little")
    body[0x1C:0x20] = (size if size >= 0x7FFF else 0).to_bytes(4, "little")
    body[0x10], body[0x11], body[0x17], body[0x18], body[0x19], body[0x1A] = 1, 2, 3, 4, 5, 6
    return bytes(body) + b"\0".join(map(str.encode, (slot, bank, "Samsung", serial, asset, "M393A4K40"))) + b"\0\0"


SYSTEM = bytes((1, 8, 0, 0, 1, 0, 0, 0)) + b"CHASSIS7\0\0"
TABLE = b"".join((
    SYSTEM, module("DIMM 30", "12AB34CD"), module("DIMM 31", "Not Specified", 65536), module("DIMM 32", "NO DIMM", 0),
    module("A1", "00000000", bank="P0"), module("A1", "8CE00001", bank="P1"), b"\x7f\4\0\0\0\0",
))  # fmt: skip


def test_what_is_in_the_slots() -> None:
    found = dimms(FakeSource({SMBIOS: TABLE}))
    assert not isinstance(found, Missing)
    assert [(each.slot, each.size_mib) for each in found] == [
        ("DIMM 30", 32768), ("DIMM 31", 65536), ("P0 A1", 32768), ("P1 A1", 32768)]  # fmt: skip
    assert [each.serial if isinstance(each.serial, str) else "" for each in found] == ["12AB34CD", "", "", "8CE00001"]
    assert isinstance(dimms(FakeSource({})), Missing)


@given(st.binary(max_size=200))
def test_any_bytes_give_structures_or_none(data: bytes) -> None:
    assert all(len(body) == body[1] for body, _ in structures(data))


def test_words_are_no_serial_numbers() -> None:
    assert not any(map(is_number, ("0x00000000", "FFFFFFFF", "NO DIMM", "Unknown", "")))
    assert all(map(is_number, ("ABCDEFAB", "1", "FF00FF01")))


def test_only_modules_leave_the_machine_and_under_other_numbers() -> None:
    facts, _ = anonymized({"/sys/firmware/dmi/tables": {"data": {"DMI": to_rows(TABLE)}}}, (), b"k" * 32)
    group = facts["/sys/firmware/dmi/tables"]["data"]
    saved = from_rows(group["DMI"]) if isinstance(group, dict) else None
    assert saved is not None
    assert not any(name in saved for name in (b"CHASSIS7", b"12AB34CD", b"8CE00001", b"Asset1"))
    before, after = dimms(FakeSource({SMBIOS: TABLE})), dimms(FakeSource({SMBIOS: saved}))
    assert not isinstance(before, Missing)
    assert not isinstance(after, Missing)
    assert [(a.slot, a.model, a.size_mib) for a in after] == [(b.slot, b.model, b.size_mib) for b in before]
    assert [isinstance(a.serial, str) for a in after] == [isinstance(b.serial, str) for b in before]


def test_an_error_is_found_at_the_slot_and_its_module_is_a_part(tmp_path: Path) -> None:
    """As ghes_edac writes it, which counts all modules as one controller; and the slots that SMBIOS does not know."""
    said = "EDAC MC0: {} UE memory read error on {} (node:1 card:0 module:0"
    path = Path(logged(tmp_path, (50.0, said.format(1, "CPU 2 DIMM 30")), (60.0, said.format(2, "P1 A1")),
                       (70.0, said.format(1, "elsewhere"))))  # fmt: skip
    made: dict[str, Any] = document(path)
    made.setdefault("facts", {})[f"data {SMBIOS}"] = to_rows(TABLE)
    path.write_text(json.dumps(made))
    machine = box(str(path))
    (check,) = [each for each in CHECKS if each.id == "kernel.memory"]
    assert [each.subject.part for each in run(machine, [check])] == ["DIMM 30", "P1 A1", "mc0"]
    own = [part for part in parts(machine.snapshot, Settings()) if part.kind == "dimm"]
    assert [(part.at, part.serial, part.model) for part in own] == [
        ("DIMM 30", "12AB34CD", "Samsung M393A4K40"), ("P1 A1", "8CE00001", "Samsung M393A4K40")]  # fmt: skip
