"""The JSON Schemas that ship hold for what dgxcheck writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema_rs import meta
from judging import unnamed
from sample import SAMPLE, swept
from schemas import FOLDER, complaints, schema

from dgxcheck.checks.engine.finding import Status
from dgxcheck.cli import main
from dgxcheck.facts.missing import Gap
from dgxcheck.source.recording.load import OVERLAY, load, shipped
from dgxcheck.watch.event import Event, EventKind

NAMES = (
    "topo", "health", "result", "fleet", "history", "pairs", "fabric", "list", "diff", "xid", "watch",
    "recording", "overlay",
)  # fmt: skip
BOXES = [name for name, path in shipped() if "faults" not in Path(path).parts]
QUESTIONS = (
    "-m", "-mp", "-p2p r", "-p2p p", "-c 0", "-n 0 -i 0", "-n 5 -i 0", "-p -i 0,1", "-C -i 0", "-M -i 0,1",
    "-gnid -i 0", "--tree", "--rings", "--path 0 1", "--rdma", "--peers",
)  # fmt: skip
OF_TWO_GPUS = ("-p -i 0,1", "-M -i 0,1", "--path 0 1")
XID = Event(kind="xid", status=Status.FAIL, bdf="0000:06:00.0", code="79", text="Xid 79", seconds=7.5)
MEANT = {"nvlink_generation", "nearest", "unjudged"}
"""Members of which null is an answer."""
Document = dict[str, Any]


def unexplained(document: object, where: str = "") -> list[str]:
    """Members that are null without a reason beside them."""
    if isinstance(document, list):
        return [found for item in document for found in unexplained(item, where)]
    if not isinstance(document, dict):
        return []
    nulls = {key for key, value in document.items() if value is None and not key.endswith("_reason")}
    bare = {key for key in nulls - MEANT if not isinstance(document.get(f"{key}_reason"), str)}
    below = [found for key, value in document.items() for found in unexplained(value, f"{where}.{key}")]
    return [f"{where}.{key}" for key in sorted(bare)] + below


def asked(capsys: pytest.CaptureFixture[str], command: str) -> Document:
    assert main(command.split()) in (0, 3)
    document: Document = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize("name", NAMES)
def test_each_schema_is_one_and_ships(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    meta.validate(schema(name))
    assert asked(capsys, f"schema {name}") == schema(name)
    assert {path.name for path in FOLDER.iterdir()} == {f"{each}.schema.json" for each in NAMES}


def test_facts_have_one_form_in_recordings_and_overlays() -> None:
    shared, other = (schema(name)["$defs"] for name in ("recording", "overlay"))
    same = {key: value for key, value in shared.items() if key != "provenance"}
    assert same.items() <= other.items()
    assert set(shared["gap"]["properties"]["missing"]["enum"]) == {gap.value for gap in Gap}


@pytest.mark.parametrize(
    ("box", "question"),
    swept([(box, question) for box in BOXES for question in QUESTIONS
     if box not in ("gh200", "vgpu-l40s", "h100", "h200") or question not in OF_TWO_GPUS], 7),
)
def test_topo_writes_what_its_schema_says(box: str, question: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaints("topo", asked(capsys, f"topo {question} --format json --from {box}")) == []


@pytest.mark.parametrize("box", BOXES)
def test_list_writes_what_its_schema_says(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaints("list", asked(capsys, f"list --format json --from {box}")) == []


@pytest.mark.parametrize("name", swept(SAMPLE, 9, first=2))
def test_health_writes_what_its_schema_says(name: str) -> None:
    assert complaints("health", unnamed(name)) == []


def test_watch_writes_what_its_schema_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kern.log"
    log.write_text(
        "[   10.000001] NVRM: Xid (PCI:0000:06:00): 79, pid=1, GPU has fallen off the bus.\n"
        "[   11.000001] Memory failure: 0x3f: recovery action for dirty page: Recovered\n"
    )
    assert main(["watch", "--kernel-log", str(log), "--format", "json"]) == 0
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(documents) == 2
    assert [complaints("watch", document) + unexplained(document) for document in documents] == [[], []]
    kinds = schema("watch")["properties"]["event"]["enum"]
    assert kinds == [*get_args(EventKind)]


@pytest.mark.parametrize("box", swept(BOXES, 7, first=1))
def test_recordings_are_what_their_schema_says(box: str, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    assert main(["record", str(again), "--from", box]) in (0, 3)
    for path in (dict(shipped())[box], str(again)):
        assert complaints("recording", load(path)) == []


def test_shipped_overlays_are_what_their_schema_says() -> None:
    overlays = [document for _, path in shipped() if (document := load(path))["schema"] == OVERLAY]
    assert [complaints("overlay", document) for document in overlays] == [[] for _ in overlays]


@pytest.fixture
def bare_tree(tmp_path: Path) -> Path:
    """One V100 and one HCA whose files say next to nothing, no driver."""
    devices, real = tmp_path / "sys/bus/pci/devices", tmp_path / "sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0"
    devices.mkdir(parents=True)
    real.mkdir(parents=True)
    (devices / "0000:03:00.0").symlink_to("../../../devices/pci0000:00/0000:00:02.0/0000:03:00.0")
    for name, text in {"class": "0x030200\n", "vendor": "0x10de\n", "device": "0x1db1\n"}.items():
        (real / name).write_text(text)
    (tmp_path / "sys/class/infiniband/scif0").mkdir(parents=True)
    return tmp_path


GAPPY = ("-m", "-p2p r", "-c 0", "--tree", "--rings", "--path 0 scif0", "-C -i 0", "-M -i 0", "-gnid -i 0", "-n 1 -i 0")


@pytest.mark.parametrize("question", GAPPY)
def test_topo_of_a_tree_full_of_gaps(question: str, bare_tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = asked(capsys, f"topo {question} --format json --from {bare_tree}")
    assert complaints("topo", document) == []
    assert unexplained(document) == []
    assert [device["name"] for device in document["devices"]] == ["GPU0", "scif0"]


def test_list_and_record_of_a_tree_full_of_gaps(bare_tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaints("list", asked(capsys, f"list --format json --from {bare_tree}")) == []
    assert main(["record", str(bare_tree / "box.json"), "--from", str(bare_tree)]) == 0
    assert complaints("recording", load(str(bare_tree / "box.json"))) == []
