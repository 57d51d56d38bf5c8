"""Every figure of ``nvidia-smi -q`` and of the table against a second reader that was written for this alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from checkout import ROOT
from naive_smi import blocks, of_query, of_table
from report_writer import nvidia_smi
from smi_texts import QUERY, TABLE

from dgxcheck.facts.missing import Json
from dgxcheck.readers.nvidia_smi import query, table
from dgxcheck.source.recording.shipped import open_source

SHIPPED = sorted(path.stem for path in (ROOT / "fixtures").glob("*.json"))
RECORDED = next((folder for up in (ROOT.parent, ROOT.parent.parent)
                 if (folder := up / "shared/recordings/smi-q").is_dir()), Path("none"))  # fmt: skip
_BOTH_SAY = ("GpuFabricInfo", "Brand")
"""Words whose numbers are no figures: the tests of these readers have them."""


def answers(facts: Mapping[str, Json], bdf: str) -> dict[str, Json]:
    """By function and arguments; None for what is unsupported."""
    found: dict[str, Json] = {}
    for key, fact in facts.items():
        kind, function, *words = key.split(" ")
        if kind == "nvml" and words[:1] == [bdf]:
            name = " ".join([function.removeprefix("nvmlDeviceGet"), *words[1:]])
            found[name] = None if isinstance(fact, dict) and fact.get("missing") == "unsupported" else fact
    return {name: fact for name, fact in found.items() if name not in _BOTH_SAY}


def told(found: Mapping[str, Json]) -> dict[str, Json]:
    return {name: fact for name, fact in found.items() if fact is not None}


def texts() -> Iterator[tuple[str, str]]:
    yield "made up", QUERY.partition("GPU 00000000:07")[0]
    yield from ((name, nvidia_smi.query(open_source(name))) for name in SHIPPED)
    for path in sorted(RECORDED.glob("*.txt")):
        text = dedent(path.read_text(encoding="utf-8"))
        if text.startswith("\n==") or "=NVSMI LOG=" in text[:200]:
            yield path.stem, text


@pytest.mark.parametrize(("name", "text"), [*texts()], ids=lambda each: each if len(each) < 40 else "")
def test_every_figure_of_a_dump_is_the_printed_one(name: str, text: str) -> None:
    (found,) = query.read_text(tuple(text.split("\n")))
    naive = dict(blocks(text))
    assert naive
    for bdf, rows in naive.items():
        assert told(answers(found.facts, bdf)) == told(of_query(rows)), (name, bdf)


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*table*.txt")), ids=lambda path: path.stem)
def test_every_cell_of_a_recorded_table_is_the_printed_one(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    (found,) = table.read_table(tuple(text.split("\n")))
    for bdf, number, cells in of_table(text):
        assert found.facts[f"nvml nvmlDeviceGetHandleByIndex {number}"] == bdf
        assert told(answers(found.facts, bdf)) == told(cells)


def test_every_cell_of_a_table_is_the_printed_one() -> None:
    text = TABLE.partition("|   1  ")[0]
    (found,) = table.read_table(tuple(text.split("\n")))
    ((bdf, number, cells),) = of_table(text)
    assert (bdf, number) == ("0000:06:00.0", 0)
    assert told(answers(found.facts, bdf)) == told(cells)
