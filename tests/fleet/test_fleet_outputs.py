"""Every kind of row that outputs about a fleet can have: whole texts against golden files, the same in JSON, HTML and
metrics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_text import agrees
from many import result
from prometheus_client.parser import text_string_to_metric_families
from schemas import complaints
from test_fleet_page import page_of
from test_pairs import NODES, measured
from test_report_page import parsed
from years import BEGIN_S, SLOTS, Year, document

from dgxcheck.facts.inventory import Part
from dgxcheck.facts.record import replace
from dgxcheck.fleet.history import History, history_of
from dgxcheck.fleet.judge import judge as judge_fleet
from dgxcheck.fleet.lemons import lemons
from dgxcheck.fleet.pairs import ALL, Measured, judge
from dgxcheck.fleet.part_history import DAY_S, followed
from dgxcheck.fleet.trends import Gauges
from dgxcheck.output.fleet import history as history_shown
from dgxcheck.output.fleet import pairs as pairs_shown
from dgxcheck.output.fleet import text as fleet_shown
from dgxcheck.output.report import FleetReport, HistoryReport, PairsReport


@pytest.fixture(scope="module")
def year() -> HistoryReport:
    """60 nodes: lemons, some of them mended, bad parts, bad slots, and a GPU whose remapped rows near their limit."""
    told = history_of(Year(60, 365, 0, lemons=(12.0, 12.0), cured=3, bad=6, moved=10).visits())
    serial, gauges = next(iter(told.parts)), Gauges()
    for day in range(200):
        gauges.add(BEGIN_S + day * DAY_S, [Part("gpu", serial, SLOTS[0], "A100", {"remapped rows": (day, 300)})])
    history = History(nodes=told.nodes, parts=told.parts, trends=gauges.trends(told.parts), unread=())
    return HistoryReport(history, lemons(history), followed(history.parts), "fail", 2)


def told(page: str) -> str:
    return " ".join("".join(parsed(page).itertext()).split())


def test_a_year_as_text(year: HistoryReport) -> None:
    agrees("fleet-history", history_shown.text(year))


def test_a_year_as_page_has_every_row_of_the_text(year: HistoryReport) -> None:
    page = told(history_shown.html(year))
    rows = history_shown.text(replace(year, verbose=True))
    assert [row for row in map(str.strip, rows.splitlines()[1:]) if row.removesuffix(":") not in page] == []


def test_a_year_as_document_and_metrics(year: HistoryReport) -> None:
    found = json.loads(history_shown.as_json(year))
    assert complaints("history", found) == []
    assert {each["what"] for each in found["blamed"]} == {"part", "slot"}
    assert [each["mended"] for each in found["lemons"]] == [each.mended for each in year.lemons]
    (trend,) = found["trends"]
    assert (trend["gauge"], trend["first"], trend["last"], trend["limit"]) == ("remapped rows", 0, 199, 300)
    metrics = {each.name: each.samples for each in text_string_to_metric_families(history_shown.prometheus(year))}
    lemon_values = {each.labels["node"]: each.value for each in metrics["dgxcheck_history_lemon"]}
    assert lemon_values == {each.node: float(not each.mended) for each in year.lemons}
    assert {each.labels["what"] for each in metrics["dgxcheck_history_blamed"]} == {"part", "slot"}
    (ahead,) = metrics["dgxcheck_history_limit_timestamp_seconds"]
    assert ahead.labels["serial"] == trend["serial"]


def test_pairs_as_text() -> None:
    """A slow adapter, node, path, leaf and uplinks, and what one round alone cannot tell apart."""
    four = tuple(f"mlx5_{number}" for number in range(4))
    leaves = {(node, adapter): f"leaf{at // 16}" for at, node in enumerate(NODES) for adapter in four}
    factors = {("dgx007", "mlx5_2"): 0.7, **{("dgx040", name): 0.0 for name in four},
               **{port: 0.5 for port, leaf in leaves.items() if leaf == "leaf5"}}  # fmt: skip
    tests = [_across(test, leaves, "leaf3") for test in measured(factors, 40, four)]
    number = next(at for at, test in enumerate(tests) if {leaves[node, four[0]] for node in test.nodes} == {"leaf1"})
    tests[number] = Measured(round=tests[number].round, nodes=tests[number].nodes, adapter=four[0], figure=5.0)
    whole = pairs_shown.text(PairsReport(judge(tests, leaves=leaves), "fail", 2))
    once = pairs_shown.text(PairsReport(judge(measured({("dgx005", ALL): 0.5}, 1)), "warn", 1))
    agrees("fleet-pairs", f"{whole}\n{once}")


def _across(test: Measured, leaves: dict[tuple[str, str], str], leaf: str) -> Measured:
    """At half the rate where it leaves ``leaf``."""
    ends = {leaves[node, test.adapter] for node in test.nodes}
    if leaf not in ends or len(ends) == 1:
        return test
    return Measured(round=test.round, nodes=test.nodes, adapter=test.adapter, figure=test.figure / 2)


def test_a_fleet_as_text_and_page(tmp_path: Path) -> None:
    """A fault that nothing shows to be gone, a result of a recording, a node without one, another driver."""
    days = {name: f"2026-01-0{day}T00:00:00Z" for day, name in enumerate(("before", "now"), 1)}
    nodes = {name: result("dgx-a100", host=name, generated_at=days["now"], source={"kind": "live"})
             for name in ("n1", "n2", "n3", "n4", "other", "bad")}  # fmt: skip
    (xid,) = document("n1", (("xid", 0),))["found"]
    sick = {"verdict": "fail", "found": [xid], "level": "extended", "generated_at": days["before"]}
    boxes = [
        *[*nodes.values()][:4], {**nodes["n1"], **sick},
        {**nodes["n1"], "host": "copy", "source": {"kind": "recording"}},
        {**nodes["other"], "versions": {**nodes["other"]["versions"], "driver": ["1.2"]}},
        {**nodes["bad"], "verdict": "fail", "found": [xid]},
    ]
    (tmp_path / "all.jsonl").write_text("".join(f"{json.dumps(box)}\n" for box in boxes))
    found = judge_fleet([str(tmp_path)], ["n1", "n2", "n3", "n4", "gone"], 1e9)
    agrees("fleet", fleet_shown.render(FleetReport(found, 2)))
    page = told(page_of(found))
    for words in ("level extended, 2026-01-01", "FAIL kernel.xid (xid)", "no result"):
        assert words in page


def test_a_page_folds_what_is_beyond_its_first_rows(tmp_path: Path) -> None:
    """40 kinds of faults at one node, and 40 figures of another that are off."""
    boxes = [result("dgx-a100", host=f"n{number:02}") for number in range(12)]
    (xid,) = document("n03", (("xid", 0),))["found"]
    boxes[3] |= {"verdict": "fail", "found": [{**xid, "key": f"check{kind}/GPU0"} for kind in range(40)]}
    for number, box in enumerate(boxes):
        box["passed"] |= {f"figure{kind}/GPU0": 100 * (0.5 if number == 4 else 1) + number / 10 for kind in range(40)}
    (tmp_path / "all.jsonl").write_text("".join(f"{json.dumps(box)}\n" for box in boxes))
    page = told(page_of(judge_fleet([str(tmp_path)], [])))
    assert "15 more kinds of faults" in page
    assert all(f"FAIL check{kind} (xid)" in page for kind in range(40))
    assert "10 more figures" in page
    assert all(f"figure{kind}/GPU0" in page for kind in range(40))
