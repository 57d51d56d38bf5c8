"""Several runs, one fact."""

from __future__ import annotations

import pytest

from dgxcheck.facts.missing import Json
from dgxcheck.readers.combine import Part, combine, merge_runs
from dgxcheck.readers.model import Imported


def fact(value: Json, unit: str = "GB/s", at: int = 1, **more: Json) -> dict[str, Json]:
    return {"value": value, "unit": unit, "from": f"line {at}", **more}


def merged(*facts: Json) -> Json:
    return merge_runs(("measure p2p 0 1", one) for one in facts)["measure p2p 0 1"]


def test_one_run_stays_as_it_is() -> None:
    assert merged(fact(1.0)) == fact(1.0)


def test_more_bandwidth_and_less_time_are_better() -> None:
    runs: list[Json] = [
        {"value": 1.0, "from": "line 1"},
        {"value": 2.0, "from": "line 2"},
        {"value": 1.5, "from": "line 3"},
    ]
    assert merged(fact(1.0), fact(2.0, at=2), fact(1.5, at=3)) == fact(2.0, at=2, runs=runs)
    quicker = merged(fact(4.0, "us"), fact(3.0, "us", 2))
    assert isinstance(quicker, dict)
    assert quicker["value"] == 3.0


def test_a_failure_is_not_mended_by_a_better_run() -> None:
    failed: dict[str, Json] = {"failed": "verification", "detail": "offset 8", "from": "line 9"}
    for order in ([fact(5.0), failed], [failed, fact(5.0)]):
        one = merged(*order)
        assert isinstance(one, dict)
        assert one["failed"] == "verification"
        assert "value" not in one
        assert "runs" not in one
        assert one["also"] == [{"value": 5.0, "from": "line 1"}]


def test_a_skip_gives_way_to_a_measurement() -> None:
    one = merged({"skipped": "not-supported", "from": "line 1"}, fact(5.0, at=2))
    assert isinstance(one, dict)
    assert one["value"] == 5.0
    assert one["also"] == [{"skipped": "not-supported", "from": "line 1"}]


def test_answers_that_agree_are_one_and_a_no_stays_in_front() -> None:
    assert merged(fact(True, ""), fact(True, "", 2)) == fact(True, "")
    no = merged(fact(True, ""), fact(False, "", 2))
    assert isinstance(no, dict)
    assert no["value"] is False
    assert no["also"] == [{"value": True, "from": "line 1"}]


def test_a_copy_engine_stands_before_a_kernel() -> None:
    one = merged(fact(9.0, method="SM kernel, pushed"), fact(5.0, at=2, method="copy engine, pushed"))
    assert isinstance(one, dict)
    assert one["value"] == 5.0


def test_what_was_measured_otherwise_is_no_second_run() -> None:
    one = merged(fact(1.0, tool="a"), fact(3.0, at=2, tool="b"), fact(2.0, at=3, tool="b", name="x"))
    assert isinstance(one, dict)
    assert (one["value"], one["tool"]) == (3.0, "b")
    assert "runs" not in one
    assert one["also"] == [
        {"value": 1.0, "from": "line 1", "tool": "a"},
        {"value": 2.0, "from": "line 3", "name": "x"},
    ]


def test_merging_in_steps_says_the_same_as_merging_at_once() -> None:
    facts = [fact(1.0, tool="a"), fact(2.0, at=2, tool="a"), fact(3.0, at=7, tool="b"), fact(2.5, at=8, tool="b")]
    at_once = merged(*facts)
    assert isinstance(at_once, dict)
    assert at_once["runs"] == [{"value": 3.0, "from": "line 7"}, {"value": 2.5, "from": "line 8"}]
    assert at_once["also"] == [
        {"value": 1.0, "from": "line 1", "tool": "a"},
        {"value": 2.0, "from": "line 2", "tool": "a"},
    ]
    assert merged(merged(*facts[:2]), merged(*facts[2:])) == at_once
    assert merged(merged(*facts[:3]), facts[3]) == at_once


def test_keys_keep_their_order_and_runs_are_bounded() -> None:
    many = merge_runs([("b", fact(1.0)), ("a", fact(1.0)), *(("b", fact(float(n))) for n in range(100))])
    assert list(many) == ["b", "a"]
    runs = many["b"]["runs"] if isinstance(many["b"], dict) else []
    assert isinstance(runs, list)
    assert len(runs) == 64


TABLE = "nvidia-smi"
NAME, UUID, TEMPERATURE = (f"nvml nvmlDeviceGet{name} 0000:0a:00.0" for name in ("Name", "UUID", "Temperature"))


@pytest.mark.parametrize(
    ("later", "again", "refused"),
    [
        ({NAME: "A", UUID: "GPU-1", f"{TEMPERATURE} 0": 40}, 1, 0),
        ({UUID: "GPU-1", f"{TEMPERATURE} 0": 40, "nvml nvmlSystemGetCudaDriverVersion": 12030}, 1, 0),
        ({NAME: "A", f"{TEMPERATURE} 0": 40}, 0, 1),
        ({NAME: "B", f"{TEMPERATURE} 0": 40}, 0, 1),
        ({NAME: "A", UUID: "GPU-2", f"{TEMPERATURE} 0": 40}, 0, 1),
        ({NAME: "A", UUID: "GPU-1", "stated label GPU0 GPU1": "SYS"}, 0, 1),
        ({f"{TEMPERATURE} 0": 40}, 0, 1),
        ({NAME: "A", "nvml nvmlDeviceGetHandleByIndex 0": "0000:0b:00.0"}, 0, 0),
        ({NAME: "A", f"{TEMPERATURE} 0": 30}, 0, 0),
    ],
)
def test_a_second_reading_of_the_same_gpus_is_no_contradiction(
    later: dict[str, Json], again: int, refused: int
) -> None:
    first: dict[str, Json] = {NAME: "A", UUID: "GPU-1", f"{TEMPERATURE} 0": 30, "stated label GPU0 GPU1": "NV1",
                              "nvml nvmlSystemGetCudaDriverVersion": 12090}  # fmt: skip
    parts = [Part("text", Imported(tool=TABLE, facts=facts, understood=frozenset())) for facts in (first, later)]
    found = combine(parts)
    assert (len(found.again), len(found.refused)) == (again, refused)
    assert found.facts[f"{TEMPERATURE} 0"] == 30


@pytest.mark.parametrize(("later", "refused"), [
    ({f"{TEMPERATURE} 0": 40}, 0), ({NAME: "B"}, 1), ({UUID: "GPU-2"}, 1), ({"stated label GPU0 GPU1": "SYS"}, 1),
])  # fmt: skip
def test_outputs_of_one_box_may_be_of_two_moments(later: dict[str, Json], refused: int) -> None:
    first: dict[str, Json] = {NAME: "A", UUID: "GPU-1", f"{TEMPERATURE} 0": 30, "stated label GPU0 GPU1": "NV1"}
    parts = [Part("text", Imported(tool=TABLE, facts=facts, understood=frozenset())) for facts in (first, later)]
    found = combine(parts, one_box=True)
    assert len(found.again) + len(found.refused) == refused


def test_every_run_of_one_text_names_its_file() -> None:
    """Those of another method, too."""
    runs: list[Json] = [{"value": 2.0, "from": "line 2"}, {"value": 1.5, "from": "line 3"}]
    also: list[Json] = [{"value": 1.0, "from": "line 4", "method": "pushed"}]
    text = Imported(tool="t", facts={"measure p2p 0 1": fact(2.0, at=2, runs=runs, also=also)}, understood=frozenset())
    found = combine([Part("a {b}.txt", text)]).facts["measure p2p 0 1"]
    assert found == {
        "value": 2.0, "unit": "GB/s", "from": "a {b}.txt, line 2",
        "runs": [{"value": 2.0, "from": "a {b}.txt, line 2"}, {"value": 1.5, "from": "a {b}.txt, line 3"}],
        "also": [{"value": 1.0, "from": "a {b}.txt, line 4", "method": "pushed"}],
    }  # fmt: skip
