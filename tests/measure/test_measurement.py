"""Measurements as facts: through a recording and back, and out of any JSON without an exception."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seam import save

from dgxcheck.facts.measurement import NotMeasured
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import GroupedFacts, flatten, insert
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from probes.results import measurement

A, B = "0000:06:00.0", "0000:07:00.0"
FIGURE: dict[str, Json] = {"value": 18.4, "unit": "GB/s", "method": "ce", "tool": "t 1", "how": "imported",
                           "samples": [18.3, 18.4, 18.5],
                           "runs": [{"value": 18.4, "from": "line 3"}], "hop": "x"}  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FACTS = st.dictionaries(
    st.sampled_from(("value", "unit", "samples", "runs", "how", "missing", "skipped", "failed", "code", "detail")), JSON
)


def held(facts: dict[str, Json]) -> RecordedSource:
    lines: GroupedFacts = {}
    for key, fact in facts.items():
        insert(lines, key, fact)
    return RecordedSource(lines, Origin("recording"))


def test_a_figure_is_read_whole() -> None:
    found = measurement(held({f"measure p2p {A} {B}": FIGURE}))
    assert not isinstance(found, Missing)
    (row,) = found
    assert (row.kind, row.a, row.b, row.number, row.unit) == ("p2p", A, B, 18.4, "GB/s")
    assert (row.samples, row.runs, row.how, row.more) == ((18.3, 18.4, 18.5), (18.4,), "imported", {"hop": "x"})


@pytest.mark.parametrize(("fact", "value"), [
    ({"skipped": "busy", "detail": "a job runs"}, NotMeasured("busy", "a job runs")),
    ({"failed": "CUDA_ERROR_ECC_UNCORRECTABLE", "code": 214, "detail": "copy"},
     NotMeasured("failed", "copy", 214, "CUDA_ERROR_ECC_UNCORRECTABLE")),
    ({"missing": "timeout", "detail": "no answer for 120 s"},
     Missing(Gap.TIMEOUT, f"measure p2p {A} {B}", "no answer for 120 s")),
    ({"value": "18"}, Missing(Gap.GARBLED, f"measure p2p {A} {B}", "no figure in the recording")),
    ({"value": 1e16}, Missing(Gap.GARBLED, f"measure p2p {A} {B}", "no figure in the recording")),
    (3, Missing(Gap.GARBLED, f"measure p2p {A} {B}", "no object in the recording")),
    ({"value": None}, None),
])  # fmt: skip
def test_what_is_no_figure_says_why(fact: Json, value: object) -> None:
    found = measurement(held({f"measure p2p {A} {B}": fact}))
    assert not isinstance(found, Missing)
    assert found[0].value == value


@given(st.dictionaries(st.sampled_from((f"measure p2p {A} {B}", "measure h 0", "measure ring 0 all")), FACTS | JSON))
def test_any_json_is_read_or_said_to_be_garbled(facts: dict[str, Json]) -> None:
    found = measurement(held(facts))
    assert isinstance(found, Missing) or len(found) == len(facts)


def test_a_recording_keeps_measurements(tmp_path: Path) -> None:
    source = held({f"measure p2p {A} {B}": FIGURE, f"measure compute {A}": FIGURE})
    recorder = RecordingSource(source)
    before = measurement(recorder)
    save(tmp_path / "box.json", recorder.lines())
    again = open_source(str(tmp_path / "box.json"))
    assert measurement(again) == before
    assert [*flatten(recorder.lines())] == [f"measure compute {A}", f"measure p2p {A} {B}"]
