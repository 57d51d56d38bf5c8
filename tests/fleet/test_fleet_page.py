"""``fleet --format html``: every node with its state, not by colour alone; valid, loads nothing, small for 10,000."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from many import fleet, result
from test_picture_formats import contrast
from test_report_page import EVIL, HTML, parsed

from dgxcheck.cli import main
from dgxcheck.facts.record import replace
from dgxcheck.fleet.document import SharedStrings, result_of
from dgxcheck.fleet.judge import Fleet, fleet_of, judge
from dgxcheck.fleet.node_names import racks_of
from dgxcheck.fleet.outliers import FigureColumns
from dgxcheck.output.fleet import html
from dgxcheck.output.page.blocks import Mosaic, Tile
from dgxcheck.output.page.drawings import mosaic
from dgxcheck.output.page.style import STATUS
from dgxcheck.output.picture.shapes import DARK, LIGHT
from dgxcheck.output.plain_text import visible
from dgxcheck.output.report import FleetReport
from dgxcheck.settings import Settings

SVG = "{http://www.w3.org/2000/svg}"


def page_of(found: Fleet, settings: Settings | None = None) -> str:
    racks = racks_of((*found.nodes, *found.silent), settings or Settings())
    return html.render(FleetReport(found, 0, False, racks))


def told(tree: Any) -> str:
    return " ".join("".join(tree.itertext()).split())


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, Any]:
    """210 machines, two without a result, and the page about them."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "all.jsonl").write_text("".join(f"{json.dumps(document)}\n" for document, _ in fleet(210, seed=3)))
    found = judge([str(folder)], ["node00001", "node00210", "node00211"])
    return found, parsed(page_of(found))


@pytest.mark.in_ci
def test_the_page_is_valid_and_loads_nothing(some: tuple[Fleet, Any]) -> None:
    tree = some[1]
    names = {str(each.tag).rpartition("}")[2] for each in tree.iter()}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "use"}
    assert not [each for each in tree.iter() if each.get("href") or each.get("src") or each.get("onclick")]
    assert {*Counter(each.get("id") for each in tree.iter() if each.get("id")).values()} == {1}


def test_every_node_is_a_tile_of_its_state_and_every_fault_is_told(some: tuple[Fleet, Any]) -> None:
    found, tree = some
    tiles = {each.findtext(f"{SVG}title").partition(": ")[0]: each.get("class")
             for each in tree.iter(f"{SVG}path") if each.find(f"{SVG}title") is not None}  # fmt: skip
    assert tiles == {name: node.verdict for name, node in found.nodes.items()} | dict.fromkeys(found.silent, "skip")
    text = told(tree)
    for kind in found.kinds:
        assert f"{kind.status.upper()} {kind.check}" in text
        assert " ".join(next(iter(kind.nodes.values())).fault.action.split()) in text
    assert all(each.key in text and each.node in text for each in found.outliers)
    assert "node[00210-00211]" in text
    assert [each.text for each in tree.iter(f"{HTML}h2")] == [
        "Nodes", "Without a result", "Faults", "Off the median of the fleet",
        "Versions and settings that differ", "Lowest scores",
    ]  # fmt: skip


def test_a_strip_shows_all_nodes_and_points_at_those_off(some: tuple[Fleet, Any]) -> None:
    found, tree = some
    strips = [each for each in tree.iter(f"{SVG}svg") if each.get("class") == "spread"]
    assert len(strips) == min(len(found.figures), 30) > 0
    for strip, figure in zip(strips, found.figures, strict=False):
        bars = strip.find(f"{SVG}path[@class='counts']").get("d")
        assert bars.count("M") == sum(map(bool, figure.counts))
        marks = {float(x) for x in re.findall(r"M([\d.]+)", strip.find(f"{SVG}path[@class='off']").get("d"))}
        shaded = [float(x) for x in re.findall(r"[MH]([\d.]+)", strip.find(f"{SVG}path[@class='range']").get("d"))]
        assert not [x for x in marks if shaded[0] + 1 < x < shaded[1] - 1]


@pytest.mark.parametrize("count", [1, 3, 16, 200, 201, 1000])
def test_tiles_neither_overlap_nor_leave_the_picture(count: int) -> None:
    tiles = tuple(Tile(f"dgx{number:04}", "pass") for number in range(count))
    groups = tuple((f"rack {at}", tiles[at : at + 50]) for at in range(0, count, 50))
    for drawn in (groups, (("all", tiles),)):
        words: Any = (("pass", "pass"),)
        made = mosaic(Mosaic(groups=drawn, words=words, title="t", text="t"), "one")
        tree = parsed(f"<!DOCTYPE html><title>t</title>{made}").find(f".//{SVG}svg")
        width, height = (float(tree.get(name)) for name in ("width", "height"))
        rects = sorted(_rects(tree))
        assert len(rects) == len(drawn)
        assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in rects)
        assert not [(a, b) for a in rects for b in rects if a < b and _overlap(a, b)]
        squares = [each for each in tree.iter(f"{SVG}path") if each.get("class") == "pass"]
        places = Counter((group, each.get("d")) for group, parent in enumerate(tree.iter(f"{SVG}g"))
                         for each in parent if each in squares)  # fmt: skip
        assert not places or max(places.values()) == 1


Rectangle = tuple[float, float, float, float]


def _rects(tree: Any) -> list[Rectangle]:
    """The panels of the groups, moved to their places."""
    found = []
    for group in tree.findall(f"{SVG}g"):
        x, y = map(float, re.findall(r"[\d.]+", group.get("transform")))
        rect = group.find(f"{SVG}rect[@class='group']")
        found.append((x, y, float(rect.get("width")), float(rect.get("height"))))
    return found


def _overlap(a: Rectangle, b: Rectangle) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


@pytest.mark.parametrize("tone", ["fail", "warn", "unknown"])
def test_states_differ_without_colour(tone: Any) -> None:
    def marks(state: Any) -> list[str]:
        drawn = Mosaic(groups=(("all", (Tile("a", state),)),), words=(), title="t", text="t")
        return re.findall(r'class="mark mark-\w+" d="([^"]+)"', mosaic(drawn, "one"))

    assert marks(tone)
    assert all(marks(tone) != marks(other) for other in ("fail", "warn", "unknown", "pass", "skip") if other != tone)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_names_and_marks_have_the_contrast_of_wcag_aa(colours: dict[str, str]) -> None:
    texts = [(colours["text"], colours["panel"]), (colours["text"], colours["page"]),
             *((colours["text"], colours[fill]) for _, fill in STATUS.values())]  # fmt: skip
    assert [pair for pair in texts if contrast(*pair) < 4.5] == []
    graphics = [(colours["page"], colours["fail"]), (colours["fail"], colours["panel"]),
                (colours["warn"], colours["warn-fill"]), (colours["warn"], colours["page"]),
                (colours["edge"], colours["bridge"]), (colours["faint"], colours["panel"])]  # fmt: skip
    assert [pair for pair in graphics if contrast(*pair) < 3] == []


def test_ten_thousand_nodes_are_a_small_file() -> None:
    sick, well = (result_of(result(spec), SharedStrings())[0] for spec in ("dgx-1-v100-bar1-small", "dgx-1-v100"))
    results = [replace(sick if number % 7 == 0 else well, node=f"node{number:05}") for number in range(10_000)]
    text = page_of(fleet_of(results, FigureColumns(), (), [f"node{number:05}" for number in range(10_100)]))
    assert len(text.encode()) < 2_000_000
    assert text.count("<title>node") == 10_100


def test_hostile_names_are_no_markup() -> None:
    one = result("dgx-1-v100-bar1-small", host=EVIL)
    one["found"][0]["message"] = EVIL
    found, _ = result_of(one, SharedStrings())
    tree = parsed(page_of(fleet_of([found], FigureColumns(), ())))
    assert not {str(each.tag).rpartition("}")[2] for each in tree.iter()} & {"script", "b", "a"}
    assert visible(EVIL) in "".join(tree.itertext())


def test_the_command_takes_racks_from_the_site(tmp_path: Path) -> None:
    config, results, out = tmp_path / "site.toml", tmp_path / "all.jsonl", tmp_path / "fleet.html"
    results.write_text("".join(f"{json.dumps(result('dgx-1-v100', host=f'dgx{n}'))}\n" for n in range(1, 6)))
    config.write_text('[fleet.racks]\nA01 = "dgx[1-2]"\n"cage <3>" = "dgx5,dgx9"\n')
    assert main(["fleet", "--format", "html", "-c", str(config), "-o", str(out), str(results)]) == 0
    labels = [each.text for each in parsed(out.read_text()).iter(f"{SVG}text")]
    assert [label for label in labels if label[:3] not in ("dgx", "pas")] == ["A01", "cage <3>", "other nodes"]
    assert labels.index("dgx5") > labels.index("cage <3>")
