"""The table of faults is the only one: nothing else spells its words, and each of its rows is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from dgxcheck import package_files
from dgxcheck.facts.faults import BY_WORD, EVERY_FAULT, Fault

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "dgxcheck" / "facts" / "faults"
OTHERS = {
    "drain-and-reset": "a recovery action, by its name in nvml.h",
    "burn-in": "a command and a measurement",
    "hca-firmware": "a quantity of diff",
    "link-layer": "a quantity of diff; a topic of NCCL's log",
    "ecc-pending": "a quantity of diff",
    "mig-pending": "a quantity of diff",
    "nvlink-errors": "what nvidia-smi nvlink -e states",
    "nvswitch-fatal": "a topic of the log of Fabric Manager",
    "pcie-replays": "a quantity of diff",
    "remap-failed": "a quantity of diff",
    "remap-pending": "a quantity of diff",
    "retirement-pending": "a quantity of diff",
}
"""What has the name of a fault and is none."""
WITH_FAULTS = ("checks", "readers", "kernel_messages", "xid")
"""Folders of dgxcheck whose tables name the fault of a row."""


HYPHENATED = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")


def sources() -> Iterator[Path]:
    for package in ("dgxcheck", "probes"):
        yield from (each for each in (ROOT / package).rglob("*.py") if TABLE not in each.parents)


def test_no_fault_is_spelled_outside_the_table() -> None:
    """Words without a hyphen (disk, version) are ordinary names, too; the types keep those apart."""
    words = {word for word in BY_WORD if "-" in word} - {*OTHERS}
    spelled = {
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in sources()
        if words.intersection(HYPHENATED.findall(text := path.read_text(encoding="utf-8")))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in words
    }
    assert spelled == set()


def test_every_fault_is_used() -> None:
    used = {name for path in sources() for name in re.findall(r"\bFault\.([A-Z0-9_]+)", path.read_text("utf-8"))}
    tables = "\n".join(path.read_text("utf-8") for folder in WITH_FAULTS
                       for path in (ROOT / "dgxcheck" / folder).rglob("*.tsv"))  # fmt: skip
    used |= {word.replace("-", "_").upper() for word in BY_WORD.keys() & {*re.split(r"[\t\n]", tables)}}
    names = {name for table in Fault.__bases__ for name in vars(table) if name.isupper()}
    assert names - used == set()
    assert used - names == set()


def test_every_fault_has_its_texts_and_no_other_has() -> None:
    words = [row["word"] for row in package_files.table("facts/faults/texts.tsv")]
    assert words == [*BY_WORD]
    assert [fault.word for fault in EVERY_FAULT if "{" in f"{fault.meaning}{fault.remedy}{fault.source}"] == []


def test_a_word_is_its_constant_s_name() -> None:
    assert len(BY_WORD) == len(EVERY_FAULT)
    assert [getattr(Fault, word.replace("-", "_").upper()) for word in BY_WORD] == [*EVERY_FAULT]


def test_steps_that_hold_for_a_lone_fault_are_steps() -> None:
    assert [fault.word for fault in EVERY_FAULT if fault.alone and not fault.steps] == []
    assert [fault.word for fault in EVERY_FAULT if len({*fault.steps}) < len(fault.steps)] == []


def test_what_a_row_prescribes_has_a_source() -> None:
    assert [fault.word for fault in EVERY_FAULT if (fault.steps or fault.remedy) and not fault.source] == []
