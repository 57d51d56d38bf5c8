"""The report as one file: valid HTML without anything to load, Markdown, complete, small, readable without colour."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import html5lib
import pytest
from markdown_it import MarkdownIt
from measured_box import GPUS, dgx1_p100, fact, overlay
from sample import swept
from test_picture_formats import contrast

from dgxcheck.assessment.health import assess
from dgxcheck.checks.engine.finding import BAD
from dgxcheck.checks.engine.run import EXIT_CODES
from dgxcheck.cli import main
from dgxcheck.output.health import page
from dgxcheck.output.health.instructions import STEPS
from dgxcheck.output.page import markdown as page_markdown
from dgxcheck.output.page.blocks import Cell, Page, PageSection, Paragraph, Table
from dgxcheck.output.page.drawings import Markup, element
from dgxcheck.output.page.style import HEAT, STATUS, css, heat_class
from dgxcheck.output.picture.shapes import DARK, LIGHT
from dgxcheck.output.plain_text import visible
from dgxcheck.output.report import HealthReport

HTML = "{http://www.w3.org/1999/xhtml}"
SOME = (
    "dgx-1-v100",
    "dgx-2",
    "dgx-a100",
    "dgx-1-v100-xid-48",
    "dgx-1-v100-no-nvml",
    "k80-x8-p2p-acs",
    "pcie-x8-sockets-slow",
)
MOST_BYTES = 300_000


def report_on(spec: str) -> HealthReport:
    assessment = assess(spec)
    return HealthReport(assessment=assessment, exit_code=EXIT_CODES[assessment.verdict])


def parsed(text: str) -> Any:
    """The tree as html5lib has it, which accepts nothing that the standard calls an error."""
    return html5lib.HTMLParser(strict=True).parse(text)


def burned(seconds: float = 600.0) -> Any:
    places = range(120)
    curve: Any = {"at": [5.0 * place for place in places], "temperature": [40 + place / 4 for place in places],
             "power_w": [290.0] * 120, "sm_clock": [1400.0 - place for place in places]}  # fmt: skip
    return fact(seconds, "s", cycles=22, wrong=0, wrong_in={}, sm_clock={"min": 1281, "median": 1340}, looks=600,
                throttled={"software power cap": 0.25}, temperature_max=70, power_max=290.0, curve=curve)  # fmt: skip


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> HealthReport:
    """A DGX-1 with all figures and a burn-in, two of them too low."""
    facts = dgx1_p100() | {f"burn-in {gpu}": burned() for gpu in GPUS}
    facts["burn-in all"] = fact(600.0, "s", asked=600.0, stopped=None, gpu=None, detail="", events=[])
    facts |= {f"p2p {GPUS[a]} {GPUS[b]}": fact(9.2) for a, b in ((2, 3), (3, 2))}
    return report_on(overlay(tmp_path_factory.mktemp("loaded"), facts))


def test_a_burn_in_without_curves_and_what_it_does_not_have(tmp_path: Path) -> None:
    """As a recording holds it that other hands made: no curve, one failed, one left out, one without figures."""
    whole: Any = fact(300.0, "s", asked=600.0, detail="GPU1 hung", events=[], how="simulated")
    lean: Any = fact(300.0, "s", cycles=11, wrong=2, sm_clock={"median": 1340}, temperature_max=71, power_max=288.5)
    rows: Any = {
        "burn-in all": whole, f"burn-in {GPUS[0]}": lean, f"burn-in {GPUS[3]}": fact(300.0, "s", curve={"at": [1.0]}),
        f"burn-in {GPUS[1]}": {"failed": "hung", "detail": "no answer for 20 s"},
        f"burn-in {GPUS[2]}": {"skipped": "busy", "detail": "pid 7"},
    }  # fmt: skip
    text = page.as_html(report_on(overlay(tmp_path, rows)))
    assert "All GPUs under load: 300 s of 600 s, then stopped: GPU1 hung." in text
    assert "Simulated: no GPU gave these figures." in text
    cells = {each[0].text: ["".join(cell.itertext()) for cell in each] for each in parsed(text).iter(f"{HTML}tr")
             if len(each) and each[0].text in ("GPU0", "GPU1", "GPU2", "GPU3")}  # fmt: skip
    assert cells["GPU0"] == ["GPU0", "at most 71", "at most 288.5", "median 1340", "11", "2", "never"]
    assert cells["GPU3"] == ["GPU3", "at most ?", "at most ?", "?", "?", "?", "never"]
    assert "hung" in cells["GPU1"][1]
    assert "pid 7" in cells["GPU2"][1]


@pytest.mark.parametrize("spec", swept(SOME, 3, first=1))
def test_html_is_valid_and_loads_nothing(spec: str) -> None:
    text = page.as_html(report_on(spec))
    tree = parsed(text)
    names = {str(each.tag).rpartition("}")[2] for each in tree.iter()}
    assert not names & {"script", "link", "img", "iframe", "object", "embed"}
    ids = Counter(each.get("id") for each in tree.iter() if each.get("id"))
    assert {*ids.values()} == {1}
    assert not [each for each in tree.iter() if each.get("href") or each.get("src") or each.get("onclick")]
    assert not re.search(r"@import|url\(", text)
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("spec", swept(SOME, 3))
def test_everything_is_told(spec: str) -> None:
    """Every finding, every cause with every action, every check that did not run and every device."""
    report = report_on(spec)
    told = " ".join("".join(parsed(page.as_html(report)).itertext()).split())
    short = page.as_markdown(report)
    assessment = report.assessment
    for finding in assessment.findings:
        assert finding.id in told
        assert " ".join(finding.judgement.message.split()) in told
        assert finding.id in short.replace("\\", "")
    for cause in assessment.causes:
        assert all(command in told for action in cause.actions for command in map(" ".join, action.commands)
                   if "'" not in command)  # fmt: skip
    assert all(device.name in told for device in assessment.topology.devices)
    assert assessment.verdict.value.upper() in told


def test_a_report_with_a_burn_in_is_small_and_has_all_parts(loaded: HealthReport) -> None:
    text = page.as_html(loaded)
    tree = parsed(text)
    assert len(text.encode()) < MOST_BYTES
    titles = [each.text for each in tree.iter(f"{HTML}h2")]
    assert titles == ["What is wrong, and what to do", "Score", "Wiring", "Devices", "Measurements", "Under load",
                      "Findings", "Checks that did not run"]  # fmt: skip
    curves = [each for each in tree.iter() if each.get("class") == "curve"]
    assert len(curves) == 3 * len(GPUS)
    assert {len(each.find(".//{*}polyline").get("points").split()) for each in curves} == {120}


def test_heat_maps_say_in_figures_what_they_say_in_colours(loaded: HealthReport) -> None:
    tree = parsed(page.as_html(loaded))
    maps = [each for each in tree.iter(f"{HTML}table") if each.get("class") == "heat"]
    p2p = next(each for each in maps if each.find(f"{HTML}caption").text.startswith("P2P on, one way"))
    cells = list(p2p.iter(f"{HTML}td"))
    low = [each for each in cells if "h1" in str(each.get("class")).split() or "h2" in str(each.get("class")).split()]
    assert ["".join(each.itertext()) for each in low] == ["9.20!50%", "9.20!50%"]
    assert all("fail" in each.get("class") for each in low)
    whole = [each for each in cells if each.get("class") == "h5"]
    assert {"".join(each.itertext()) for each in whole} == {"18.41"}
    unmeasured = [each for each in cells if each.get("class") == "none"]
    assert {"".join(each.itertext()) for each in unmeasured} == {"·", ""}
    assert len(cells) == 64 == len(low) + len(whole) + len(unmeasured)


def test_latencies_without_a_reference_are_compared_with_pairs_joined_alike(tmp_path: Path) -> None:
    slow = {f"latency {GPUS[0]} {GPUS[1]}": fact(25.0, "us")}
    tree = parsed(page.as_html(report_on(overlay(tmp_path, dgx1_p100() | slow))))
    maps = [each for each in tree.iter(f"{HTML}table") if each.get("class") == "heat"]
    on = next(each for each in maps if "latency of a small copy" in each.find(f"{HTML}caption").text)
    told = {
        "".join(each.itertext()) for each in on.iter(f"{HTML}td") if {"h1", "h2"} & {*str(each.get("class")).split()}
    }
    assert told == {"25.00*38%"}


def test_markdown_has_headings_steps_and_tables(loaded: HealthReport) -> None:
    text = page.as_markdown(loaded)
    lines = text.splitlines()
    assert lines[0] == "# FAIL: dgx-1-p100"
    first = STEPS[loaded.assessment.causes[0].actions[0].step]
    assert next(line for line in lines if line.startswith("1. ")).startswith(f"1. **{first}** ")
    rows = [line for line in lines if line.startswith("| GPU2 |") and "9.20" in line]
    assert rows == ["| GPU2 | 18.41 | 18.41 | · | **9.20!** (50%) |  |  | 18.41 |  |"]
    assert text.count("```") % 2 == 0


EVIL = "<script>alert(1)</script> **b** [x](http://e) | `code` & &lt; ~~s~~ \x1b[31m\ufffe"


def test_hostile_text_is_no_markup() -> None:
    whole = parsed(f"<!DOCTYPE html><title>t</title>{element('p', EVIL, title=EVIL)}")
    shown = whole.findtext(f".//{HTML}p")
    assert shown == visible(EVIL)
    assert whole.find(f".//{HTML}p").get("title") == visible(EVIL)
    assert element("p", Markup("<b>x</b>")) == "<p><b>x</b></p>"


@pytest.mark.parametrize("text", [EVIL, "# a", "- a", "1. a", "> a", "+ a", "=== a", "12) a", "a | b", "\\", "__a__"])
def test_hostile_text_is_no_markdown(text: str) -> None:
    table = Table(head=("a", "b"), rows=((Cell(text), Cell(text)),))
    sections = (PageSection(title="s", blocks=(Paragraph(text), table)),)
    page = Page(title=text, status="FAIL", tone="fail", lead=text, facts=(), sections=sections)
    made = MarkdownIt().enable(["table", "strikethrough"]).render(page_markdown.render(page))
    tree = parsed(f"<!DOCTYPE html><title>t</title>{made}")
    names = Counter(str(each.tag).rpartition("}")[2] for each in tree.find(f"{HTML}body").iter())
    assert names == {"body": 1, "h1": 1, "p": 2, "h2": 1, "table": 1, "thead": 1, "tbody": 1, "tr": 2, "th": 2, "td": 2}
    assert [each.text for each in tree.iter(f"{HTML}td")] == [visible(text)] * 2
    assert [each.text for each in tree.iter(f"{HTML}p")] == [visible(text)] * 2


HEATS = {"none", *(name for _, name in HEAT)}


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_heat_and_badges_have_the_contrast_of_wcag_aa(colours: dict[str, str]) -> None:
    heat = {name: colours[name] for name in HEATS}
    low = [name for name, colour in heat.items() if contrast(colours["text"], colour) < 4.5]
    low += [f"small {name}" for name, colour in heat.items() if contrast(colours["faint"], colour) < 4.5]
    for tone, (text, fill) in STATUS.items():
        pairs = ((colours["page"], colours[text]), (colours[text], colours[fill]), (colours["text"], colours[fill]),
                 (colours["faint"], colours[fill]))  # fmt: skip
        low += [f"{tone} {number}" for number, pair in enumerate(pairs) if contrast(*pair) < 4.5]
    assert low == []


def test_every_colour_of_the_rules_is_one_of_the_themes_or_of_a_tone() -> None:
    rules = css()
    named, given = ({*re.findall(form, rules)} for form in (r"var\(--([\w-]+)\)", r"--([\w-]+):"))
    assert named <= given
    assert named >= HEATS, "each class of a heat map has a rule"
    assert rules.count("{") == rules.count("}")


@pytest.mark.parametrize(
    ("share", "name"), [(None, "none"), (1.2, "h5"), (0.98, "h5"), (0.9, "h4"), (0.51, "h2"), (0.0, "h1"), (-1.0, "h1")]
)
def test_colour_is_the_share_of_what_was_expected(share: float | None, name: str) -> None:
    assert heat_class(share) == name


@pytest.mark.parametrize("form", ["html", "markdown", "svg"])
def test_the_command_writes_it_and_keeps_its_exit_code(form: str, tmp_path: Path) -> None:
    file = tmp_path / "report"
    assert main(["health", "--from", "dgx-1-v100-xid-48", "--format", form, "-o", str(file)]) == 2
    assert "GPU2" in file.read_text(encoding="utf-8")


def test_a_healthy_box_is_told_to_be_healthy() -> None:
    report = report_on("dgx-1-v100")
    assert not [each for each in report.assessment.findings if each.status in BAD]
    text = page.as_html(report)
    assert "No problems found in the checks that ran" in text
    assert 'class="badge pass"' in text


def test_a_cell_says_its_column_where_there_is_no_room_for_rows() -> None:
    """The style prints ``data-head`` on a narrow screen; a heat map keeps its columns."""
    report = page.as_html(HealthReport(assessment=assess("pcie-x8-sockets-slow"), exit_code=1))
    assert '<td data-head="Temp">38 °C</td>' in report
    assert '<td class="h5">9.40</td>' in report
    assert '<td class="none warn">2.60*</td>' in report, "slow, however slow the others that are joined alike"
