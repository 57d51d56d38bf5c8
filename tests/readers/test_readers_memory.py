"""The memory slots of ``dmidecode``: what is in them, and what is judged of it."""

from __future__ import annotations

from collections import Counter

import pytest
from readers_text import one, unread

from dgxcheck.facts.missing import Json
from dgxcheck.readers.host import dmidecode, own_records

COUNTS = "Label \t\tCE\tUE\nmc#0csrow#0channel#0\t3\t0\nmc#0csrow#1channel#0\t0\t2\nmc#0csrow#2channel#0\t0\t0\n"
"""``ras-mc-ctl --error-count``"""
HEAD = """\
# dmidecode 3.3
Getting SMBIOS data from sysfs.
SMBIOS 3.2.0 present.
"""
Slot = tuple[str, str, str]
"""Name, size and configured speed."""


def memory(slots: list[Slot], *, kind: str = "DDR4", clock: str = "Configured Memory Speed") -> str:
    """Type 17 as dmidecode prints it, with the tables around it."""
    text = HEAD + "\nHandle 0x0021, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: System Memory\n"
    for number, (name, size, speed) in enumerate(slots):
        text += (
            f"\nHandle 0x{0x30 + number:04X}, DMI type 17, 84 bytes\nMemory Device\n\tSize: {size}\n"
            f"\tLocator: {name}\n\tBank Locator: NODE {number // 8}\n"
        )
        if size != "No Module Installed":
            text += f"\tType: {kind}\n\tSpeed: 3200 MT/s\n\tSerial Number: 1234ABCD\n\t{clock}: {speed}\n"
    return f"{text}\nHandle 0x0090, DMI type 127, 4 bytes\nEnd Of Table\n"


def outcomes(text: str) -> dict[str, str]:
    """Outcome of each result by its topic."""
    facts = one(dmidecode.read_dmidecode, text).facts
    return {key.rpartition("dmidecode-")[2]: str(fact["outcome"]) for key, fact in facts.items()
            if isinstance(fact, dict)}  # fmt: skip


def slots(count: int = 8, empty: tuple[int, ...] = (), odd: tuple[int, ...] = ()) -> list[Slot]:
    """``P1-DIMMA1``, ``P1-DIMMB1`` .."""
    return [
        (f"P1-DIMM{'ABCDEFGH'[n]}1", "No Module Installed" if n in empty else "32 GB",
         "2400 MT/s" if n in odd else "2933 MT/s") for n in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "due"), [
    (memory(slots()), {"memory": "pass"}),
    (memory(slots(), clock="Configured Clock Speed"), {"memory": "pass"}),
    (memory(slots(odd=(2,))), {"memory": "pass", "memory-speed": "warn"}),
    (memory(slots(empty=(2,))), {"memory": "pass", "memory-channels": "warn"}),
    (memory(slots(6, empty=(2,))), {"memory": "pass", "memory-channels": "warn"}),
    (memory(slots(5, empty=(2,))), {"memory": "pass"}),
    (memory(slots(empty=(2, 3))), {"memory": "pass"}),  # six of eight channels are a usual choice
    (memory(slots(4, empty=(2,))), {"memory": "pass"}),
    (memory(slots(2, odd=(1,)), kind="Logical non-volatile device"), {}),
    (memory(slots(empty=tuple(range(8)))), {}),
    (memory([(f"DIMM{n}", "None" if n == 2 else "32 GB", "2933 MT/s") for n in range(8)]), {"memory": "pass"}),
    (memory([("DIMM A1", "32768 MB", "3200 MT/s"), ("DIMM B1", "Unknown", "Unknown")]), {"memory": "pass"}),
])  # fmt: skip
def test_what_is_judged(text: str, due: dict[str, str]) -> None:
    found = dmidecode.read_dmidecode(tuple(text.splitlines()))
    assert (outcomes(text) if found else {}) == due
    assert not found or unread(found, text) == []


def test_optane_beside_dimms_is_no_odd_dimm() -> None:
    text = memory(slots(odd=(6, 7))).replace("Type: DDR4\n\tSpeed: 3200 MT/s\n\tSerial Number: 1234ABCD\n"
                                            "\tConfigured Memory Speed: 2400", "Type: Logical non-volatile device\n"
                                            "\tConfigured Memory Speed: 2400")  # fmt: skip
    assert outcomes(text) == {"memory": "pass"}


def test_every_figure_is_what_a_naive_reader_counts() -> None:
    text = memory(slots(empty=(1, 3, 5), odd=()))
    facts: dict[str, Json] = dict(one(dmidecode.read_dmidecode, text).facts)
    (said,) = (fact["text"] for fact in facts.values() if isinstance(fact, dict))
    lines = [line.strip() for line in text.splitlines()]
    sizes = Counter(line.removeprefix("Size: ") for line in lines if line.startswith("Size: "))
    speeds = {line.split()[-2] for line in lines if line.startswith("Configured")}
    assert said == (
        f"{sizes['32 GB']} x 32 GiB DDR4 at {speeds.pop()} MT/s, rated 3200; "
        f"empty slots: {sizes['No Module Installed']}"
    )


@pytest.mark.parametrize(("size", "speed", "text"), [
    ("32 GB", "3200 MT/s", "1 x 32 GiB DDR4 at 3200 MT/s"),
    ("32768 MB", "2933 MT/s", "1 x 32 GiB DDR4 at 2933 MT/s, rated 3200"),
    ("32 GB", "Unknown", "1 x 32 GiB DDR4"),
])  # fmt: skip
def test_size_and_speed_of_a_module(size: str, speed: str, text: str) -> None:
    found = one(dmidecode.read_dmidecode, memory([("A1", size, speed)]) + "\tno member\n")
    assert [fact["text"] for fact in found.facts.values() if isinstance(fact, dict)] == [text]


def test_the_bank_names_the_channel_where_it_has_one() -> None:
    """One slot of each of eight channels, whose own names are all alike."""
    text = memory([("DIMM 0", "No Module Installed" if n == 2 else "32 GB", "2933 MT/s") for n in range(8)])
    for n in range(8):
        text = text.replace("Bank Locator: NODE 0", f"Bank Locator: P0 CHANNEL {'ABCDEFGH'[n]}", 1)
    assert outcomes(text) == {"memory": "pass", "memory-channels": "warn"}


def test_a_fragment_without_heads() -> None:
    text = memory(slots(1)).partition("Memory Device\n")[2].partition("\nHandle")[0]
    found = one(dmidecode.read_dmidecode, f"Memory Device\n{text}")
    assert unread([found], f"Memory Device\n{text}") == []


def test_counts_of_each_label() -> None:
    found = one(own_records.read_ras, COUNTS)
    assert unread([found], COUNTS) == []
    assert [(fact["outcome"], fact["text"]) for fact in found.facts.values() if isinstance(fact, dict)] == [
        ("note", "Memory controller (mc#0csrow#0channel#0): 3 corrected"),
        ("warn", "Memory controller (mc#0csrow#1channel#0): 2 uncorrected"),
    ]


@pytest.mark.parametrize(("odd", "words"), [(4, "P1-DIMMD1 at 2403, the others"), (5, "P1-DIMMD1 at 2403 and 1 more,")])
def test_four_dimms_at_another_speed_are_named(odd: int, words: str) -> None:
    texts = [(name, size, f"{2400 + at if at < odd else 2933} MT/s") for at, (name, size, _) in enumerate(slots())]
    assert words in str(one(dmidecode.read_dmidecode, memory(texts)).facts["stated report host dmidecode-memory-speed"])


@pytest.mark.parametrize(("most", "count"), [(8, 8), (7, 7)])
def test_slots_have_a_limit(most: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dmidecode, "MOST_SLOTS", most)
    assert f"'{count} x " in str(one(dmidecode.read_dmidecode, memory(slots())).facts)
