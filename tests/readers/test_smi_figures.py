"""Every figure of ``nvidia-smi -q`` and of the table against a second reader that was written for this alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from checkout import ROOT
from naive_smi import blocks, of_query, of_table
from report_writer import nvidia_smi
from smi_texts import QUERY, TABLE

from dgxcheck.facts.missing import Json
from dgxcheck.readers.listing import ATTACHED
from dgxcheck.readers.model import Reader
from dgxcheck.readers.nvidia_smi import fields, query, query_documents, table
from dgxcheck.source.recording.load import open_source

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


@pytest.mark.parametrize(("read", "text", "answer"), [
    (fields.pages, "2", [{"address": 0}] * 2), (fields.pages, "0", []), (fields.pages, "512", [{"address": 0}] * 512),
    (fields.pages, "513", None), (fields.pages, "-1", None), (fields.pages, "N/A", None),
    (fields._nano, "5 us", 5000), (fields._nano, "5 ms", None), (fields._nano, "N/A us", None),
    (fields._hex, "0x1f", 31), (fields._hex, "1f", None),
])  # fmt: skip
def test_words_of_one_figure(read: Callable[[str], Json], text: str, answer: Json) -> None:
    assert read(text) == answer


GPU = {"Product Name": "X", "ECC Mode": {"Current": "Enabled"}}
FORMS: dict[Reader, str] = {
    query.read_text: "GPU 00000000:06:00.0\n    Product Name : X\n    ECC Mode\n        Current : Enabled\n",
    query_documents.read_xml: '<nvidia_smi_log><gpu id="00000000:06:00.0"><product_name>X</product_name><ecc_mode>'
                              "<current_ecc>Enabled</current_ecc></ecc_mode></gpu></nvidia_smi_log>",
    query_documents.read_json: '{"nvidia_smi_log": {"driver_version": "1", "gpu": {"@id": "00000000:06:00.0",'
                               ' "product_name": "X", "ecc_mode": {"current_ecc": "Enabled"}}}}',
}  # fmt: skip


@pytest.mark.parametrize(("limit", "most", "reader", "is_whole"), [
    *(("MOST_FIELDS", most, reader, most == 2) for most in (1, 2) for reader in FORMS),
    *(("XML_DEEPEST", most, query_documents.read_xml, most == 2) for most in (1, 2)),
    *(("JSON_DEEPEST", most, query_documents.read_json, most == 5) for most in (4, 5)),
])  # fmt: skip
def test_a_dump_has_limits(
    limit: str, most: int, reader: Reader, is_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[reader.__module__], limit, most)
    (found,) = reader(tuple(FORMS[reader].splitlines()))
    assert found.facts["nvml nvmlDeviceGetName 0000:06:00.0"] == "X"
    assert ("nvml nvmlDeviceGetEccMode 0000:06:00.0" in found.facts) == is_whole


@pytest.mark.parametrize(("printed", "count"), [
    ("2", None), ("3", 3), ("256", 256), ("257", None), ("0", None), ("\u0663", None),
])  # fmt: skip
def test_gpus_that_are_attached(printed: str, count: int | None) -> None:
    text = QUERY.replace("GPUs                       : 2", f"GPUs                       : {printed}")
    (found,) = query.read_text(tuple(text.splitlines()))
    assert found.facts.get(ATTACHED) == count


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
