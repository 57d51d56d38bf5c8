"""JSON objects among other lines: found whole, however long and however laid out, and nothing else; limits of texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.missing import Json
from dgxcheck.readers import formats, model, values
from dgxcheck.readers.derived import completed
from dgxcheck.readers.formats import document, documents, utf16
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import Reports
from dgxcheck.readers.onto import nvml_gpus
from dgxcheck.readers.values import bounded

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4), max_leaves=40,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=6), st.sampled_from([None, 0, 1, 4]), st.integers(0, 3))
def test_an_object_between_other_lines(value: dict[str, Json], indent: int | None, before: int) -> None:
    inside = json.dumps(value, indent=indent).split("\n")
    lines = (*["a line"] * before, *inside, "another {")
    assert document(lines, before) == (value, before + len(inside))


def test_an_object_behind_many_that_break_off() -> None:
    broken = ['{"a": }'] * 63
    assert [found for found, _ in documents((*broken, '{"b": 1}'), bool)] == [{"b": 1}]
    assert not [*documents((*broken, *broken[:1], '{"b": 1}'), bool)]


@pytest.mark.parametrize("members", [1, 30, 63, 64, 65, 1023, 1024, 1025, 20_000])
def test_a_long_object(members: int) -> None:
    value = {f"member {number}": number for number in range(members)}
    lines = tuple(json.dumps(value, indent=1).split("\n"))
    assert [*documents(lines, bool)] == [(value, [*range(len(lines))])]
    assert [*documents(("{", " ", '"a": 1}'), bool)] == [({"a": 1}, [0, 2])]
    assert [*documents((lines[0], " ", *lines[1:]), bool)] == [(value, [0, *range(2, len(lines) + 1)])]
    assert document(lines[:-1], 0) == ({}, 0)  # cut


@pytest.mark.parametrize("text", ["{", "{ int i;", "{\n  x = 1;\n}", '{"a": 1', "{]", "no { brace"])
def test_what_is_no_object(text: str) -> None:
    assert [*documents(tuple(text.split("\n")), lambda _: True)] in ([], [({}, [])])


@pytest.mark.parametrize(("high", "low", "codec"), [
    (bytes(10), b"a" * 10, "utf-16-le"), (b"1" + bytes(9), b"a" * 10, ""), (b"1" + bytes(19), b"a" * 20, "utf-16-le"),
    (bytes(8), b"a" * 8, ""), (bytes(9), b"a" * 9, "utf-16-le"), (bytes(9), b"a" * 8 + bytes(1), ""),
])  # fmt: skip
def test_utf_16_without_its_mark(high: bytes, low: bytes, codec: str) -> None:
    assert utf16(bytes(byte for pair in zip(low, high, strict=True) for byte in pair)) == codec
    other = codec.replace("le", "be")
    assert utf16(bytes(byte for pair in zip(high, low, strict=True) for byte in pair)) == other


def test_limits_of_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("{", '"a": 1}')
    for most, found in ((8, ({"a": 1}, 2)), (7, ({}, 0))):
        monkeypatch.setattr(formats, "MOST_CHARACTERS", most)
        assert document(lines, 0) == found
    assert [values.number(word, 5) for word in ("5", "5.1")] == [5, None]
    assert [values.integer(word, 5) for word in ("5", "6")] == [5, None]
    monkeypatch.setattr(values, "LINE_CHARACTERS", 7)
    assert bounded(lines) is lines
    monkeypatch.setattr(values, "LINE_CHARACTERS", 6)
    assert bounded((*lines, "abcdef")) == ("{", "", "abcdef")
    reports = Reports("x")
    reports.add("GPU0", "t", "fail", None, "a" * 200)
    monkeypatch.setattr(model, "MOST", 2)
    for text in ("a" * 201, "b", "a" * 200):
        reports.add("GPU0", "t", "fail", None, text)
    found_texts = [(fact["text"], fact["count"]) for fact in reports.facts().values() if isinstance(fact, dict)]
    assert found_texts == [("a" * 200, 2), ("a" * 197 + " ..", 1)]


def test_limits_of_a_box() -> None:
    nodes = "/sys/devices/system/node"
    for last, many in ((1023, 1024), (1024, 0)):
        listed = completed({f"text {nodes}/online": f"0-{last}\n"}).get(f"names {nodes}", [])
        assert isinstance(listed, list)
        assert len(listed) == many
    gpus = {f"{INDEX} {number}": f"0000:{place}:00.0" for number, place in (("10", "0a"), ("9", "0b"), ("255", "0c"))}
    assert nvml_gpus(gpus) == ("0000:0b:00.0", "0000:0a:00.0", "0000:0c:00.0")
    for number in ("256", "010", "-1", "x", "\u0663"):
        assert nvml_gpus({f"{INDEX} {number}": "0000:0d:00.0"}) == ()
