"""What only time shows: lemons, parts that take their fault along, slots that keep it, limits ahead."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sample import swept
from schemas import complaints
from test_report_page import parsed
from years import BEGIN_S, SLOTS, Year, document

from dgxcheck.cli import main
from dgxcheck.facts.inventory import Part
from dgxcheck.fleet.document import SharedStrings, result_of
from dgxcheck.fleet.history import History, NodeHistory, Spell, history_of, read
from dgxcheck.fleet.lemons import RATE, lemons
from dgxcheck.fleet.part_history import DAY_S, followed
from dgxcheck.fleet.trends import Gauges
from dgxcheck.limits import RESULT_BYTES
from dgxcheck.output.json_values import part as part_json

EFFECTS = (2.0, 3.0, 5.0, 8.0, 12.0)
DRAIN: tuple[tuple[str, int], ...] = (("ecc-uncorrected", 0),)


def at(day: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGIN_S + day * DAY_S))


def a_result(node: str, day: float, found: Sequence[tuple[str, int]] = (), **members: Any) -> dict[str, Any]:
    return {**document(node, tuple(found), at(day)), **members}


def gpus(*serials: str, **gauges: tuple[float, ...]) -> list[Any]:
    parts = [Part("gpu", serial, SLOTS[slot], "A100", gauges) for slot, serial in enumerate(serials)]
    return [part_json(each) for each in parts]


def written(folder: Path, documents: Sequence[dict[str, Any]]) -> str:
    """One growing file, in any order of time."""
    lines = [json.dumps(each) + "\n" for each in documents]
    random.Random(1).shuffle(lines)
    (folder / "all.jsonl").write_text("".join(lines))
    return str(folder)


def blamed(year: Year, history: History) -> Counter[tuple[str, bool]]:
    """Parts and slots that are blamed, rightly or not; each once."""
    found = {
        (each.what, each.part.serial if each.what == "part" else each.before.place, each.word)
        for each in followed(history.parts)
    }
    slots = {(node, SLOTS[slot]): word for (node, slot), word in year.truth.slots.items()}
    truth: dict[Any, str] = {**year.truth.parts, **slots}
    return Counter((what, truth.get(name) == word) for what, name, word in found)


def test_parts_and_slots_of_a_half_year() -> None:
    year = Year(80, 180, 7, bad=8, moved=20)
    found = blamed(year, history_of(year.visits()))
    assert found["part", False] == found["slot", False] == 0
    assert found["part", True] >= 3
    assert found["slot", True] >= 3


@pytest.mark.exhaustive
def test_a_year_of_five_hundred_nodes() -> None:
    """Faults once a year on a node; bad GPUs and slots once a week. Lemons are found by how much worse they are."""
    found: Counter[float] = Counter()
    wrong, quiet, parts = 0, 0, Counter[tuple[str, bool]]()
    for seed in range(3):
        year = Year(500, 365, seed, lemons=EFFECTS * 4, cured=10, bad=16, moved=60)
        history = history_of(year.visits())
        parts += blamed(year, history)
        reasons = {node for node, _ in year.truth.slots} | {
            stay.place[0] for serial in year.truth.parts for stay in history.parts[serial].stays
        }
        for lemon in lemons(history):
            quiet += lemon.mended and lemon.node in year.truth.cured
            if lemon.node in year.truth.lemons:
                found[year.truth.lemons[lemon.node]] += 1
            elif lemon.node not in reasons | year.truth.cured:
                wrong += 1
    shares = {effect: found[effect] / 12 for effect in EFFECTS}
    print(f"lemons found by effect {shares}; wrongly blamed {wrong} of {3 * 500}; mended {quiet} of 30; {parts}")
    assert shares[12.0] > 0.9
    assert shares[8.0] > 0.6
    assert wrong <= RATE * 3 * 50
    assert parts["part", False] + parts["slot", False] <= 1
    assert parts["part", True] >= 22
    assert parts["slot", True] >= 22


def sisters(nodes: int, seed: int, rate: float, bad: Sequence[float] = ()) -> History:
    """Nodes that all fail as often, by chance, at one of their GPUs; the first GPUs of some fail more often still."""
    draw = random.Random(seed)
    of_slot = [result_of(document("a", (("ecc-uncorrected", slot),)), SharedStrings())[0] for slot in range(8)]

    def spells(often: float, slots: int) -> Iterator[Spell]:
        when = draw.expovariate(often)
        while when < 365:
            at_s, (fault,) = when * DAY_S, of_slot[draw.randrange(slots)].faults
            yield Spell(fault=fault, first_s=at_s, last_s=at_s, results=1, gone_s=at_s + DAY_S)
            when += draw.expovariate(often)

    found = {f"dgx{number}": [*spells(rate, 8)] for number in range(nodes)}
    for name, times in zip(found, bad, strict=False):
        found[name] += spells(rate * (times - 1), 1)
    return History(
        nodes={name: NodeHistory(group=of_slot[0].group, first_s=0, last_s=365 * DAY_S, results=365, days=365,
                                 spells=tuple(own)) for name, own in found.items()},
        parts={}, trends=(), unread=(),
    )  # fmt: skip


def test_a_part_shows_what_the_count_of_its_node_does_not() -> None:
    """Faults every other month on a node, and on three of 100 as many or more at one GPU; by the node's count alone the
    first would be found in one of five."""
    found = Counter(each.node for seed in range(20) for each in lemons(sisters(100, seed, 6 / 365, (2, 3, 5))))
    assert found["dgx0"] >= 8
    assert found["dgx1"] + found["dgx2"] >= 38
    assert found.total() - sum(found[f"dgx{number}"] for number in range(3)) <= 3


@pytest.mark.in_ci
@pytest.mark.parametrize("fleets", swept((75, 300), 2))
def test_of_a_fleet_without_lemons_one_in_twenty_gets_one(fleets: int) -> None:
    alarms = sum(bool(lemons(sisters(100, seed, rate / 365))) for seed in range(fleets) for rate in (1, 6))
    assert alarms <= 2 * fleets * RATE * 1.5


def test_a_node_that_fails_every_other_week_is_one() -> None:
    fleet = sisters(100, 1, 1 / 365)
    nodes = {**fleet.nodes, "bad": sisters(1, 2, 24 / 365).nodes["dgx0"]}
    assert [each.node for each in lemons(History(nodes=nodes, parts={}, trends=(), unread=()))] == ["bad"]


def test_a_machine_alone_is_no_lemon() -> None:
    assert lemons(sisters(1, 1, 1.0)) == ()


def test_a_fault_that_came_back_says_after_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    days = [
        *(a_result("dgx1", day, DRAIN, parts=gpus("A"), settings={"GPU ECC mode": ["on"]}) for day in (1, 2)),
        *(a_result("dgx1", day, parts=gpus("B"), boot_id="c", versions={"driver": ["580"]},
                   settings={"GPU ECC mode": ["off"]}) for day in (9, 10)),
        a_result("dgx1", 12, DRAIN, parts=gpus("B"), boot_id="c"),
        a_result("dgx2", 3, level="quick"),
    ]
    folder = written(tmp_path, days)
    assert main(["fleet", "--history", folder, "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert complaints("history", found) == []
    (fault,) = found["nodes"][0]["faults"]
    assert (fault["times"], fault["open"], fault["first_seen"], fault["last_seen"]) == (2, True, at(1), at(12))
    assert fault["spells"][0]["gone"] == at(9)
    assert fault["spells"][0]["after"] == [
        f"gpu {SLOTS[0]} exchanged: A -> B", "GPU ECC mode on -> off", "driver 570.1 -> 580", "reboot",
        "7 d without a result",
    ]  # fmt: skip
    assert [part["serial"] for part in found["parts"]] == ["A", "B"]
    assert main(["fleet", "--history", folder]) == 2
    out = capsys.readouterr().out
    assert f"dgx1 ecc.volatile/{SLOTS[0]} ecc-uncorrected: 2 times" in out
    assert "came back 3 d after" in out


def test_a_part_that_takes_its_fault_along_and_one_that_fell_off_the_bus(tmp_path: Path) -> None:
    """A GPU that is lost has no serial number to read: it is the one that was last at the place."""
    lost: tuple[tuple[str, int], ...] = (("gpu-lost", 0),)
    documents = [a_result(f"n{number}", day, parts=gpus(f"s{number}")) for number in range(40) for day in range(40)]
    documents += [a_result("dgx1", day, parts=gpus("bad")) for day in (1, 2)]
    documents += [a_result("dgx1", day, lost, parts=[]) for day in (3, 4)]
    documents += [a_result("dgx1", day, parts=gpus("good")) for day in range(5, 30)]
    documents += [a_result("dgx2", day, parts=gpus("bad")) for day in (5, 6)]
    documents += [a_result("dgx2", day, lost, parts=[]) for day in (7, 8)]
    (found,) = followed(read([written(tmp_path, documents)]).parts)
    assert (found.what, found.word, found.part.serial, found.other) == ("part", "gpu-lost", "bad", "good")
    assert found.before.place == ("dgx1", SLOTS[0])
    assert found.after.place == ("dgx2", SLOTS[0])
    assert found.clean == 25


def test_a_module_of_memory_is_followed_and_shown_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def day(node: str, number: float, serial: str, bad: bool = False, slot: str = "CPU 2/DIMM 30") -> dict[str, Any]:
        made = a_result(node, number, parts=[part_json(Part("dimm", serial, slot))])
        error = {"key": f"kernel.memory/{slot}", "status": "fail", "fault": "dimm-errors"}
        found = {"verdict": "fail", "found": [{**a_result("a", 0, DRAIN)["found"][0], **error}]}
        return made | found if bad else made

    days = [day(f"n{number}", when, f"s{number}") for number in range(40) for when in range(30)]
    days += [day("dgx1", when, "<bad>", when > 2) for when in range(5)]
    days += [day("dgx1", when, "good") for when in range(5, 30)]
    days += [day("dgx2", when, "<bad>", when > 6) for when in range(5, 8)]
    folder = written(tmp_path, days)
    told = {}
    for form in ("text", "html", "prometheus", "json"):
        assert main(["fleet", "--history", folder, "--format", form]) == 2
        told[form] = capsys.readouterr().out
    assert "DIMM <bad>: dimm-errors at dgx1 CPU 2/DIMM 30" in told["text"]
    assert "DIMM &lt;bad&gt;: dimm-errors at dgx1 CPU 2/DIMM 30" in told["html"]
    parsed(told["html"])
    series = {each.name: [*each.samples] for each in text_string_to_metric_families(told["prometheus"])}
    (blamed,) = series["dgxcheck_history_blamed"]
    assert blamed.labels == {"what": "part", "kind": "dimm", "serial": "<bad>", "fault": "dimm-errors", "node": "dgx2",
                             "at": "CPU 2/DIMM 30"}  # fmt: skip
    assert {each.labels["node"]: each.value for each in series["dgxcheck_history_incidents"]}["dgx1"] == 1
    assert series["dgxcheck_history_results"][0].value == len(days)


def test_what_fails_now_does_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One result of each node: nothing can have come back, and the faults are there."""
    silent = {**a_result("c", 1, DRAIN), "verdict": "unknown"}
    silent["found"] = [{**silent["found"][0], "status": "unknown", "fault": ""}]
    for found, code, said in (
        ([], 0, "PASS: 2 nodes, 2 results, 2025-10-10 to 2025-10-10: nothing stands out"),
        ([silent], 3, "c unknown on 2025-10-10"),
        ([a_result("c", 1, DRAIN)], 2, "ecc-uncorrected: fail, since 2025-10-10"),
        ([a_result("c", 1, DRAIN), a_result("c", 2)], 0, "PASS: 3 nodes"),
    ):
        folder = written(tmp_path, [a_result("a", 1), a_result("b", 1), *found])
        assert main(["fleet", "--history", folder]) == code
        assert said in capsys.readouterr().out


def test_what_is_kept_of_a_result_does_not_grow_with_what_passed(tmp_path: Path) -> None:
    """Of results that all pass another set of checks, only the difference is kept."""

    def kept(results: int) -> int:
        for number in range(results):
            made = a_result("dgx1", number)
            passed = {f"check{key}/0000:06:00.0": None for key in range(400) if key != number}
            (tmp_path / f"{number}.json").write_text(json.dumps(made | {"passed": passed}))
        tracemalloc.start()
        history = read([str(tmp_path)])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert history.results == results
        return peak

    few = kept(20)
    assert kept(220) - few < 200 * 4096


def test_a_serial_number_of_several_boards_is_not_followed(tmp_path: Path) -> None:
    documents = [a_result(f"n{number}", day, DRAIN, parts=gpus("0")) for number in range(2) for day in range(20)]
    history = read([written(tmp_path, documents)])
    assert history.parts == {}
    assert "several nodes at the same time" in history.unread[0].why


def test_limits_ahead() -> None:
    """A counter that was set to 0, a temperature at another load, a noisy one and few readings do not mislead."""
    draw = random.Random(3)
    gauges, parts = Gauges(), history_of(Year(1, 1, 1).visits()).parts
    serial = next(iter(parts))
    for day in range(200):
        busy = day % 3 == 0
        readings: dict[str, tuple[float, ...]] = {
            "remapped rows": (250.0 if day < 20 else day, 300),
            "temperature": (40 + day / 20 + 30 * (not busy) + draw.gauss(0, 1), 87, 300 if busy else 650),
            "temperature margin": (30 - day / 20, -2, 300),
            "corrected errors": (draw.randrange(50), 1000),
            "retired pages": (3, 63),
            "hot spot": (60 + draw.gauss(0, 3), 95, 300),
            "fan": (80 - day / 20, 100, 300),
        }  # fmt: skip
        readings |= {"new in the last days": (day, 300)} if day >= 195 else {}
        gauges.add(BEGIN_S + day * DAY_S, [Part("gpu", serial, SLOTS[0], "", readings)])
    for hour in range(100):
        gauges.add(BEGIN_S + 3600 * hour, [Part("gpu", serial, SLOTS[0], "", {"for four days": (hour, 300)})])
    found = {trend.gauge: trend for trend in gauges.trends(parts)}
    assert {*found} == {"remapped rows", "temperature"}
    assert found["remapped rows"].per_day == pytest.approx(1, rel=0.01)
    assert (found["remapped rows"].reached_s - BEGIN_S) / DAY_S == pytest.approx(300, abs=3)
    assert (found["temperature"].reached_s - BEGIN_S) / DAY_S == pytest.approx(340, abs=60)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--history", "nowhere"], "no such file or folder"),
        (["--history", ".", "more.json"], "more.json: --history takes"),
        (["--history", ".", "--gate"], "--gate: --history takes"),
        (["--history", ".", "--format", "svg"], "--format svg: --history takes"),
        (["--history", "."], "no result of a machine itself"),
    ],
)
def test_what_it_does_not_take(
    words: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["fleet", *words]) == 3
    assert why in capsys.readouterr().err


def test_hostile_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strange = [{"serial": 5}, {"serial": "x" * 9999, "at": [], "gauges": {"a": [1e30, 2], "b": ["c"], "d": [1, 2]}}, 7]
    good = a_result("dgx1", 1, DRAIN, parts=strange)
    future = {**a_result("dgx2", 1), "generated_at": "2999-01-01T00:00:00Z"}
    recorded = a_result("dgx3", 1, source={"kind": "recording"})
    folder = written(tmp_path, [good, a_result("dgx1", 2, parts={}), future, recorded])
    (tmp_path / "long.json").write_bytes(b"x" * (RESULT_BYTES + 2))
    assert main(["fleet", "--history", folder]) == 3
    out = capsys.readouterr().out
    for words in ("2 results", "in the future", "recordings: 1 result:", "longer than 8 MiB"):
        assert words in out
