"""Pictures as others read them: SVG is well-formed, Graphviz reads DOT, hostile names stay text, colours contrast."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest
from programs import program
from sample import swept
from topology_boxes import Box, ib, nic_at, nodes, tree

from dgxcheck.assessment.machine import examine
from dgxcheck.cli import main
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.output.picture import dot, layout, svg
from dgxcheck.output.picture.marks import Mark, MarkTone
from dgxcheck.output.picture.marks import box as at_box
from dgxcheck.output.picture.shapes import DARK, LIGHT
from dgxcheck.output.topo.picture import wiring_marks
from dgxcheck.source.recording.load import shipped

BOXES = [name for name, path in shipped() if "faults" not in Path(path).parts]
NO_NVLINK = Missing(Gap.UNSUPPORTED, "nvlink")


@pytest.mark.parametrize("box", swept(BOXES, 3))
def test_svg_is_well_formed_and_says_what_it_shows(box: str) -> None:
    machine = examine(box)
    picture = layout.drawn(machine.topology, machine.snapshot.numa, "a box", wiring_marks(machine.topology))
    root = ElementTree.fromstring(svg.render([picture]))
    name = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{name}svg"
    assert root.get("role") == "img"
    ids = {each.get("id") for each in root.iter() if each.get("id")}
    assert {*str(root.get("aria-labelledby")).split()} == ids
    assert root.findtext(f"{name}desc") == picture.description
    assert len(root.findall(f".//{name}text")) == sum(len(each.lines) for each in picture.boxes)
    assert not [each for each in root.iter() if each.tag in (f"{name}script", f"{name}image", f"{name}foreignObject")]
    assert "url(" not in svg.render([picture])


def test_hostile_names_stay_text() -> None:
    evil = '</text><script>alert("1")</script>\x1b[31m&\u202e￾'
    topology = Box(tree([nic_at("pci0000:00", "0000:00:01.0", "0000:01:00.0", node=0)]), (ib(evil, "0000:01:00.0"),),
                   NO_NVLINK, NO_NVLINK, NO_NVLINK, nodes(1)).topology()  # fmt: skip
    mark = Mark(number=1, tone="warn", sign="WARN", tag=evil, words=evil, at=(at_box("0000:01:00.0"),))
    drawn = svg.render([layout.drawn(topology, nodes(1), evil, [mark], [evil])])
    root = ElementTree.fromstring(drawn)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} == {
        "svg", "title", "desc", "style", "rect", "g", "text", "path",
    }  # fmt: skip
    assert "\x1b" not in drawn
    assert "\u202e" not in drawn


@pytest.mark.parametrize("box", swept([*BOXES, "dgx-1-v100-nvlink-down", "dgx-2-nvswitch-missing"], 3, first=2))
def test_graphviz_reads_the_dot_and_has_every_device(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    dot_of_graphviz = program("dot")
    assert main(["topo", "--format", "dot", "--from", box]) == 0
    given_text = capsys.readouterr().out
    result = subprocess.run([dot_of_graphviz, "-Tplain"], input=given_text, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "syntax" not in result.stderr
    keys = {line.split()[1].strip('"') for line in result.stdout.splitlines() if line.startswith("node ")}
    assert {device.bdf for device in examine(box).topology.devices} <= keys


def test_dot_quotes_what_is_hostile() -> None:
    topology = Box(tree([nic_at("pci0000:00", "0000:00:01.0", "0000:01:00.0", node=0)]),
                   (ib('a"]; x [label="\\', "0000:01:00.0"),), NO_NVLINK, NO_NVLINK, NO_NVLINK,
                   nodes(1)).topology()  # fmt: skip
    result = subprocess.run([program("dot"), "-Tplain"], input=dot.render(topology, nodes(1), "t"), text=True,
                            capture_output=True, check=False)  # fmt: skip
    assert result.returncode == 0
    assert sum(line.startswith("node ") for line in result.stdout.splitlines()) == 2


def luminance(colour: str) -> float:
    """Relative luminance, https://www.w3.org/TR/WCAG21/#dfn-relative-luminance"""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    lighter, darker = sorted((luminance(a), luminance(b)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_lines_have_the_contrast_of_wcag_aa(colours: dict[str, str]) -> None:
    behind = ("page", "panel", "bridge", "switch", "gpu", "nic", "other")
    low = [
        (front, back) for front in ("text", "faint") for back in behind if contrast(colours[front], colours[back]) < 4.5
    ]
    low += [(tone, back) for tone in get_args(MarkTone) for back in ("page", "panel", f"{tone}-fill", "switch")
            if contrast(colours[tone], colours[back]) < 4.5]  # fmt: skip
    low += [(edge, back) for edge in ("edge", "nvlink") for back in ("page", "panel")
            if contrast(colours[edge], colours[back]) < 3]  # fmt: skip
    assert low == []
