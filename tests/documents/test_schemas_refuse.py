"""The JSON Schemas that ship refuse broken documents, and accept members that came later."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from fabrics import Fabric, within
from schemas import complaints
from test_schemas import NAMES, XID, Document
from years import document

from dgxcheck.cli import main
from dgxcheck.output.watch import json_line
from dgxcheck.source.recording.load import load, shipped
from dgxcheck.watch.event import ReportedEvent


def _set(*where: str | int, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        at: Any = document
        for step in where[:-1]:
            at = at[step]
        if value is KeyError:
            del at[where[-1]]
        else:
            at[where[-1]] = value

    return change


GPU = "/sys/bus/pci/devices/0000:06:00.0"
HOP: Document = {
    "port": "0000:04:10.0", "device": "0000:06:00.0", "gen": 3, "width": 16, "max_gen": 3, "max_width": 16,
    "narrow": False, "slow": False, "gb_per_second": 15.75, "max_gb_per_second": 15.75, "unjudged": None,
}  # fmt: skip
BROKEN: dict[str, list[Callable[[Document], None]]] = {
    "result": [
        _set("schema", value="dgxcheck/health/2"),
        _set("level", value="long"),
        _set("generated_at", value="today"),
        _set("passed", value=[]),
        _set("found", 0, "status", value="pass"),
        _set("found", 0, "key", value=KeyError),
        _set("causes", 0, "commands", value="nvidia-smi -r"),
    ],
    "fleet": [
        _set("verdict", value="good"),
        _set("summary", "silent", value=-1),
        _set("nodes", 0, "newest", value=None),
        _set("nodes", 0, "faults", 0, "level", value=KeyError),
        _set("faults", 0, "count", value=0),
        _set("unread", value=None),
    ],
    "history": [
        _set("verdict", value="good"),
        _set("nodes", 0, "faults", 0, "times", value=-1),
        _set("nodes", 0, "faults", 0, "spells", 0, "gone", value=0),
        _set("parts", 0, "stays", value=[]),
        _set("lemons", value=None),
    ],
    "pairs": [
        _set("blamed", 0, "what", value="cable"),
        _set("blamed", 0, "chance", value=2),
        _set("medians", value=[]),
        _set("unread", value=None),
    ],
    "fabric": [
        _set("verdict", value="good"),
        _set("summary", "cables", value=-1),
        _set("findings", 0, "fault", value=""),
        _set("findings", 0, "moves", 0, "from", value=KeyError),
        _set("leaves", 0, "uplinks", value=None),
    ],
    "xid": [
        _set("schema", value="dgxcheck/xid/2"),
        _set("entries", value=[]),
        _set("entries", 0, "kind", value="xid"),
        _set("entries", 0, "severity", value="bad"),
        _set("entries", 0, "remedy", value=""),
        _set("entries", 0, "steps", value=KeyError),
        _set("relations", 0, "place", value="somewhere"),
        _set("relations", 0, "causes", value=[]),
    ],
    "topo": [
        _set("schema", value="dgxcheck/topo/2"),
        _set("devices", value=KeyError),
        _set("source", "kind", value="guess"),
        _set("devices", 0, "bdf", value="6:0.0"),
        _set("devices", 0, "numa_node", value="0"),
        _set("devices", 0, "numa_node", value=-1),
        _set("devices", 0, "numa_node", value=None),
        _set("devices", 0, "path", value=None),
        _set("devices", 0, "uuid", value=KeyError),
        _set("devices", 0, "kind", value="fpga"),
        _set("links", 0, "label", value="NV0"),
        _set("links", 0, "label", value="SYS"),
        _set("links", 0, "pci", value=None),
        _set("links", 0, "nvlinks", value=None),
        _set("links", 0, "nvlinks", value=True),
        _set("notes", value="none"),
        _set("rings", value={"count": None}),
        _set("p2p", value=None),
        _set("p2p", value={"capability": "read", "pairs": [{"a": "GPU0", "b": "GPU1", "status": None}]}),
        _set("nvlink_graph", value=None),
        _set("devices", 0, "gpu_numa_id_reason", value="Not Supported"),
        _set("devices", 0, "index", value=None),
        _set("devices", 0, "link_gen", value=None),
        _set("devices", 8, "bdf", value=None),
        _set("gpus_near_cpu", value=["GPU0"]),
        _set("gpus_within_level", value={"gpus": ["GPU1"]}),
        _set("gpu_path", value={"a": "GPU0", "b": "GPU1", "label": "SYS", "pci": "SOC", "nvlinks": 0}),
        _set("gpu_path", value="GPU0 reaches GPU1 over 1 NVLink (NV1)."),
        _set("numa_nodes", value=[{"gpu": "GPU0"}]),
        _set("numa_nodes", value=[{"gpu": "GPU0", "node": -1}]),
        _set("hops", value=[HOP | {"gen": None}]),
        _set("hops", value=[HOP | {"narrow": None, "narrow_reason": "not there"}]),
        _set("nvlink_graph", value={"equals": "dgx-1-v100", "nearest": None}),
    ],
    "list": [
        _set("schema", value="dgxcheck/topo/1"),
        _set("gpus", value=KeyError),
        _set("gpus", 0, "index", value="0"),
        _set("gpus", 0, "bdf", value="00000000:06:00.0 "),
        _set("gpus", 0, "uuid", value=None),
        _set("gpus", 0, "vbios", value=88),
        _set("gpus", 0, "slot_reason", value="the firmware names no slot"),
        _set("notes", value=[1]),
    ],
    "diff": [
        _set("schema", value="dgxcheck/health/1"),
        _set("verdict", value="equal"),
        _set("old", "source", "kind", value="guess"),
        _set("summary", "exit_code", value=2),
        _set("differences", 0, "kind", value="bad"),
        _set("differences", 0, "area", value="weather"),
        _set("differences", 0, "message", value=KeyError),
        _set("differences", 0, "old", value={"bdf": "0000:0b:00.0"}),
        _set("notes", value="none"),
    ],
    "watch": [
        _set("schema", value="dgxcheck/watch/0"),
        _set("at", value="today"),
        _set("event", value="nothing"),
        _set("status", value="info"),
        _set("bdf", value=None),
        _set("count", value=0),
        _set("text", value=KeyError),
    ],
    "recording": [
        _set("schema", value="dgxcheck/recording/0"),
        _set("facts", value=[]),
        _set("recorded_at", value="yesterday"),
        _set("identities", value="some"),
        _set("provenance", value={"kind": "reconstructed"}),
        _set("facts", GPU, "text", "class", value=0x030200),
        _set("facts", GPU, "text", "class", value={"missing": "perhaps"}),
        _set("facts", GPU, "mode", value={}),
        _set("facts", GPU, "data", "config", value={"size": 64, "rows": {"000": "xy"}}),
        _set("facts", GPU, "data", "config", value="de10b11d"),
        _set("facts", "/sys/bus/pci/devices", "names", value="0000:06:00.0"),
        _set("facts", "nvml nvmlInit", value=True),
        _set("facts", "nvml nvmlInit", "", value={"missing": 3}),
        _set("facts", "/dev", value={"opens": {"nvidia0": "yes"}}),
        _set("later", value=[{"at_s": 0, "facts": {}}]),
    ],
    "overlay": [
        _set("base", value=KeyError),
        _set("fact", value={}),
        _set("fault", value=["x8"]),
        _set("sources", value="a page"),
        _set("expect", "findings", 0, "status", value="pass"),
        _set("expect", "component", value=KeyError),
        _set("expect", "component", value=""),
        _set("expect", "skip", value=[]),
        _set("expect", "skips", value=["ecc.mode", "ecc.mode"]),
        _set("expect", "unseen", value={}),
        _set("expect", "disagrees", value="NVLinks"),
        _set("facts", "text", value="8\n"),
        _set("facts", f"text {GPU}/current_link_width", value=8),
        _set("add", value={"opens /dev/nvidia0": "no"}),
        _set("drop", value="0000:06:00.0"),
        _set("later", value={}),
    ],
}  # fmt: skip
CASES = [(name, number) for name, changes in BROKEN.items() for number in range(len(changes))]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """A document of each kind that nothing is wrong with."""
    import contextlib
    import io

    documents: dict[str, Document] = {}
    for name in ("topo", "health", "list"):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            main([name, "--format", "json", "--from", "dgx-1-v100"])
        documents[name] = json.loads(out.getvalue())
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["diff", "dgx-1-v100", "dgx-1-v100-gpu-missing", "--format", "json"])
    documents["diff"] = json.loads(out.getvalue())
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["xid", "79", "--format", "json"])
    documents["xid"] = json.loads(out.getvalue())
    documents["watch"] = json.loads(json_line(ReportedEvent(XID, "2026-11-22T10:00:00Z", 3)))
    results = tmp_path_factory.mktemp("results")
    main(["health", "--from", "dgx-1-v100-gpu-missing", "--format", "jsonl", "-o", str(results / "one.json")])
    documents["result"] = json.loads((results / "one.json").read_text())
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["fleet", str(results), "-n", "dgx002", "--format", "json"])
    documents["fleet"] = json.loads(out.getvalue())
    parts = [{"kind": "gpu", "serial": "1", "at": "0000:06:00.0", "model": "", "gauges": {}}]
    (results / "day.json").write_text(json.dumps({**document("dgx1", (("xid", 0),)), "parts": parts}))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["fleet", "--history", str(results / "day.json"), "--format", "json"])
    documents["history"] = json.loads(out.getvalue())
    for a, b, rate in (("n1", "n2", 90), ("n3", "n4", 10), ("n1", "n3", 10), ("n2", "n4", 90)):
        (results / "pairs").mkdir(exist_ok=True)
        (results / "pairs" / f"1,{a},{b},-.json").write_text(json.dumps({"BW_average": rate}))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["fleet", "pairs", str(results / "pairs"), "--format", "json"])
    documents["pairs"] = json.loads(out.getvalue())
    fabric = Fabric("fat", 8)
    within(fabric, Random(1))
    (results / "ib.txt").write_text(fabric.discovered())
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["fabric", str(results / "ib.txt"), "--format", "json"])
    documents["fabric"] = json.loads(out.getvalue())
    documents["recording"] = load(dict(shipped())["dgx-1-v100"])
    documents["overlay"] = {
        "schema": "dgxcheck/overlay/1",
        "base": "dgx-1-v100",
        "fault": "GPU0 runs on 8 lanes",
        "sources": ["made up"],
        "expect": {"findings": [{"id": "pcie.width", "bdf": "0000:06:00.0", "status": "fail"}], "component": "GPU0"},
        "facts": {f"text {GPU}/current_link_width": "8\n", "nvml nvmlDeviceGetCurrPcieLinkWidth 0000:06:00.0": 8},
    }
    return documents


@pytest.mark.parametrize("name", NAMES)
def test_sound_documents_pass(name: str, sound: dict[str, Document]) -> None:
    assert complaints(name, sound[name]) == []
    assert name != "topo" or complaints(name, sound[name] | {"hops": [HOP]}) == []


@pytest.mark.parametrize("name", ["topo", "health", "result", "fleet", "list", "diff", "recording"])
def test_added_members_are_no_error(name: str, sound: dict[str, Document]) -> None:
    """Not so in an overlay, which people write by hand: a misspelt ``drop`` would go unnoticed."""
    assert complaints(name, sound[name] | {"added_later": {"any": "thing"}}) == []


@pytest.mark.parametrize(("name", "number"), CASES)
def test_broken_documents_are_refused(name: str, number: int, sound: dict[str, Document]) -> None:
    document = copy.deepcopy(sound[name])
    BROKEN[name][number](document)
    assert complaints(name, document) != []
