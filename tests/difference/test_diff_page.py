"""``diff`` as one file: every difference in words, a picture before and after, marks where something has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import html5lib
import pytest
from picture_rules import faults
from sample import swept

from dgxcheck.assessment.compare import compare
from dgxcheck.cli import main
from dgxcheck.output.diff import page
from dgxcheck.output.diff.page import pictures_of
from dgxcheck.output.picture.layout import TALL, WIDEST
from dgxcheck.output.report import DiffReport

CHANGES = ("gpu-missing", "nvlink-down", "switch-x8", "hca-wrong-slot", "no-nvml", "xid-48")
HTML = "{http://www.w3.org/1999/xhtml}"


def report_on(change: str) -> DiffReport:
    return DiffReport(comparison=compare("dgx-1-v100", f"dgx-1-v100-{change}"), exit_code=1)


def parsed(text: str) -> Any:
    return html5lib.HTMLParser(strict=True).parse(text)


@pytest.mark.parametrize("change", swept(CHANGES, 3))
def test_html_is_valid_and_has_every_difference_and_two_pictures(change: str) -> None:
    report = report_on(change)
    tree = parsed(page.as_html(report))
    told = " ".join("".join(tree.itertext()).split())
    assert all(" ".join(each.message.split()) in told for each in report.comparison.differences)
    assert len([each for each in tree.iter() if each.get("class") == "dgx"]) == 2 * 2, "each wide and tall"
    assert {"Before:", "After:"} <= {*told.split()}
    assert all(each.device.split(" - ")[0] in page.as_markdown(report).replace("\\", "")
               for each in report.comparison.differences)  # fmt: skip


@pytest.mark.parametrize("change", swept(CHANGES, 3))
def test_nothing_overlaps(change: str) -> None:
    comparison = report_on(change).comparison
    assert [faults(each) for widest in (WIDEST, TALL) for each in pictures_of(comparison, widest)] == [[]] * 4


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ("gpu-missing", ["WORSE 1: GPU3: missing: Tesla V100-SXM2-16GB, serial 0000000002003"], []),
        ("nvlink-down", [], ["WORSE 1: GPU2 - GPU3: NVLinks up: 2 -> 1"]),
    ],
)
def test_what_is_gone_is_marked_before_and_what_changed_after(change: str, before: list[str], after: list[str]) -> None:
    pictures = pictures_of(report_on(change).comparison)
    said = [[line.text for box in picture.boxes if box.kind == "caption" and box.tone for line in box.lines]
            for picture in pictures]  # fmt: skip
    assert said == [before, after]
    toned = [
        any(line.tone for line in picture.lines)
        or any(arc.tone for arc in picture.arcs)
        or any(box.tone for box in picture.boxes if box.kind != "caption")
        for picture in pictures
    ]
    assert toned == [bool(before), bool(after)]


def test_health_reports_have_no_wiring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "report.json")
    assert main(["health", "--from", "pcie-x4", "--format", "json", "-o", file]) == 0
    assert main(["diff", file, file, "--format", "svg"]) == 3
    assert "a health report contains no wiring" in capsys.readouterr().err
    assert main(["diff", file, file, "--format", "html"]) == 0
    assert parsed(capsys.readouterr().out).find(f".//{HTML}h1").text == "What has changed"
