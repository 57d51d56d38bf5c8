"""Trays of an NVL72 joined by their results: the tray, GPU or switch plane that differs, and 72 GPUs at a glance."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time
from typing import Any
from xml.etree import ElementTree

import pytest
from many import result

from dgxcheck.cli import main

TRAYS = [f"nvl{number:03}" for number in range(1, 19)]
DOMAIN = "00000001-0000-0000-0000-000000000001.2"


def rack(names: list[str] = TRAYS, **changed: dict[str, Any]) -> list[dict[str, Any]]:
    """One result per tray; ``changed`` are members of a tray's result."""
    return [result("gb200-nvl72", host=name) | changed.get(name, {}) for name in names]


def links(**down: list[int]) -> dict[str, Any]:
    return {"nvlinks": {f"GPU{n}": {"wired": 18, "down": down.get(f"GPU{n}", [])} for n in range(4)}}


def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], documents: list[dict[str, Any]], form: str) -> str:
    (tmp_path / "results.jsonl").write_text("\n".join(map(json.dumps, documents)))
    main(["fleet", "--fail-on", "never", "--format", form, str(tmp_path)])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "due"),
    [
        ({}, []),
        ({"nvl007": links(GPU2=[11])}, ["nvl007 GPU2: link 11 down"]),
        ({"nvl003": links(GPU0=[4, 5], GPU1=[4, 5], GPU2=[4, 5, 9], GPU3=[4, 5])},
         ["nvl003: links 4, 5 down at every GPU of the tray", "nvl003 GPU2: link 9 down"]),
        ({name: links(**{f"GPU{n}": [13] for n in range(4)}) for name in TRAYS[:17]},
         ["switch plane of link 13: down at 68 of 72 GPUs; look at this NVSwitch on the switch trays (NMX-C; nv show"
          " interface), not at GPUs"]),
        ({name: links(**{f"GPU{n}": [4, 5] for n in range(4)}) for name in TRAYS},
         ["switch planes of links 4, 5: down at 72 of 72 GPUs; look at these NVSwitches, of which a switch tray has"
          " two, on the switch trays (NMX-C; nv show interface), not at GPUs"]),
        ({"nvl011": {"nvlinks": {"GPU0": {"wired": 18, "down": []}}}},
         ["nvl011: 1 GPU, other trays have another number"]),
    ],
)  # fmt: skip
def test_what_differs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], due: list[str]
) -> None:
    text = shown(tmp_path, capsys, rack(**changed), "matrix").splitlines()
    assert text[0].startswith(f"NVLink domain {DOMAIN}: 18 trays, ")
    assert [line.strip() for line in text[1 : text.index(next(line for line in text if " t1 " in line))]] == due
    assert all(f"  {line}" in shown(tmp_path, capsys, rack(**changed), "text") for line in due)


def test_a_tray_outside_of_the_domain_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(tmp_path, capsys, rack(nvl005={"nvlink_domains": [], "nvlinks": {}}), "text")
    assert f"NVLink domain {DOMAIN}: 17 trays, 68 GPUs, 1224 of 1224 NVLinks up" in text
    assert "nvl005: its GPUs are in no NVLink domain" in text


@pytest.mark.parametrize(("few", "verdict"), [
    (1, "WARN: 18 nodes: 18 pass; 1 in an NVLink clique that few have\n"), (9, "PASS: 18 nodes: 18 pass\n"),
])  # fmt: skip
def test_a_tray_in_a_clique_of_its_own_warns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], few: int, verdict: str
) -> None:
    """Two halves were made so."""
    other: dict[str, Any] = {"nvlink_domains": [DOMAIN.replace(".2", ".7")], "source": {"kind": "live"}}
    documents = rack(TRAYS, **dict.fromkeys(TRAYS[:few], other))
    text = shown(tmp_path, capsys, documents, "text")
    assert text.startswith(verdict)
    assert ("nvl001: in a clique that few trays of its cluster have" in text) is (few == 1)


def test_72_gpus_fit_120_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(tmp_path, capsys, rack(nvl007=links(GPU2=[10, 11])), "matrix")
    rows = [line for line in text.splitlines() if line.startswith("t")]
    assert len(rows) == 18
    assert max(map(len, text.splitlines())) <= 120
    assert rows[0].split()[2:] == ["NV18"] * 6 + ["NV16*NV18"] + ["NV18"] * 10


def test_the_picture_has_every_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(tmp_path, capsys, rack(nvl007=links(GPU2=[11])), "svg")
    root = ElementTree.fromstring(text)
    words = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len([word for word in words if word.endswith("/18")]) == 72
    assert "GPU2 17/18" in words


def test_time_grows_with_the_trays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sixteen racks take no more than sixteen times as long as one, with leave for noise."""
    times = []
    for racks in (1, 16):
        names = [f"r{number:02}n{tray:02}" for number in range(racks) for tray in range(18)]
        documents = [each | {"nvlink_domains": [f"{DOMAIN}{each['host'][1:3]}"]} for each in rack(names)]
        start = process_time()
        shown(tmp_path, capsys, documents, "matrix")
        times.append(process_time() - start)
    assert times[1] < 2 * 16 * times[0]


@pytest.mark.parametrize(
    "evil",
    [
        [],
        {"GPU0": 1},
        {"GPU0": {"wired": -1, "down": []}},
        {"GPU0\n": {"wired": 10**9, "down": [1]}},
        {"GPU0": {"wired": 1, "down": ["x", 2]}},
    ],
)
def test_whatever_a_result_says_of_links(tmp_path: Path, capsys: pytest.CaptureFixture[str], evil: Any) -> None:
    for form in ("text", "matrix", "svg"):
        assert shown(tmp_path, capsys, rack(nvl001={"nvlinks": evil}), form)
