"""Every fact has one place in a recording, and its bytes come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.limits import BINARY_BYTES
from dgxcheck.source.recording.keys import (
    GroupedFacts,
    find,
    flatten,
    from_json,
    from_rows,
    insert,
    nvml_key,
    place,
    to_json,
    to_rows,
)

PATHS = st.lists(st.text(min_size=1, max_size=5).filter(lambda name: "/" not in name), min_size=1, max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)
FILES = st.tuples(st.sampled_from(["text", "data", "link", "names", "opens"]), PATHS).map(" ".join)
BDF = "0000:06:00.0"
SUBJECTS = st.sampled_from(["", BDF, f"{BDF} 0000:07:00.0"])
NVML = st.builds(
    nvml_key, st.from_regex("nvml[A-Za-z]{1,9}", fullmatch=True), SUBJECTS, st.lists(st.integers(0, 99)).map(tuple)
)
KEYS = st.one_of(FILES, NVML, st.sampled_from(["name pci 10de", "name pci 10de:1db1", "kmsg 0", "kmsg 12"]))


@given(st.dictionaries(KEYS, st.integers() | st.text() | st.lists(st.text())))
def test_keys_go_into_lines_and_out_again(facts: dict[str, Json]) -> None:
    lines: GroupedFacts = {}
    for key, fact in facts.items():
        insert(lines, key, fact)
    assert flatten(lines) == facts
    assert all(find(lines, key) == fact for key, fact in facts.items())


@given(KEYS)
def test_what_was_not_put_in_is_unrecorded(key: str) -> None:
    assert find({}, key) == Missing(Gap.UNRECORDED, key)


@pytest.mark.parametrize(
    ("key", "due"),
    [
        ("text /a/b", ("/a", "text", "b")),
        ("text /b", ("/", "text", "b")),
        ("names /a/b", ("/a/b", "names", "")),
        ("names /", ("/", "names", "")),
        ("nvml nvmlInit", ("nvml nvmlInit", "", "")),
        (f"nvml F {BDF} 3 0", (f"nvml F {BDF}", "", "3 0")),
        (f"nvml F {BDF} 0000:07:00.0 3", (f"nvml F {BDF} 0000:07:00.0", "", "3")),
        ("nvml nvmlSystemGetProcessName 1234", ("nvml nvmlSystemGetProcessName", "", "1234")),
        ("name pci 10de:1db1", ("name pci", "", "10de:1db1")),
        ("kmsg 12", ("kmsg", "", "12")), ("kmsg x", None), ("kmsg", None),
        ("text a/b", None), ("nvml", None), ("name pci", None), ("", None), ("size /a", None),
    ],
)  # fmt: skip
def test_the_place_of_a_key(key: str, due: tuple[str, str, str] | None) -> None:
    assert place(key) == due


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match="not a valid fact key"):
        insert({}, "nonsense", 1)
    with pytest.raises(ValueError, match="conflicting fact key"):
        insert({"/a": {"text": 1}}, "text /a/b", "c")
    assert find({}, "nonsense") == Missing(Gap.GARBLED, "nonsense", "not a valid fact key")


@given(st.sampled_from(Gap), st.text())
def test_a_gap_is_written_down_and_read_again(gap: Gap, detail: str) -> None:
    assert from_json(to_json(Missing(gap, "here", detail)), "here") == Missing(gap, "here", detail)


@pytest.mark.parametrize("value", [{"missing": "soon"}, {"missing": 3}, {"missing": ["absent"]}, {"missing": None}])
def test_a_gap_of_no_known_kind_is_garbled(value: Json) -> None:
    assert from_json(value, "here") == Missing(Gap.GARBLED, "here")


@given(st.binary(max_size=600))
def test_bytes_come_back_from_their_rows(data: bytes) -> None:
    assert from_rows(to_rows(data)) == data


def test_rows_of_zeros_are_left_out() -> None:
    assert to_rows(bytes(16) + b"\1" + bytes(31)) == {"size": 48, "rows": {"010": "01" + "00" * 15}}
    assert from_rows(to_rows(bytes(BINARY_BYTES))) == bytes(BINARY_BYTES)


@pytest.mark.parametrize(
    "value",
    [
        None, 3, "de10", [], {}, {"size": 16}, {"size": -1, "rows": {}}, {"size": True, "rows": {}},
        {"size": BINARY_BYTES + 1, "rows": {}}, {"size": 10**39, "rows": {}}, {"size": 1.5, "rows": {}},
        {"size": 16, "rows": {"000": 5}}, {"size": 16, "rows": {"000": "d"}}, {"size": 16, "rows": {"00g": "de"}},
        {"size": 16, "rows": {"010": "de"}}, {"size": 16, "rows": {"-1": "de"}}, {"size": 1, "rows": {"0": "dede"}},
    ],
)  # fmt: skip
def test_what_are_no_rows_is_none(value: Json) -> None:
    assert from_rows(value) is None
