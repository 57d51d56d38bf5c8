"""Drain reasons: their form, whatever names a machine has, and the same from a result as from the machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import judged
from sample import swept

from dgxcheck.cli import main
from dgxcheck.facts.record import replace
from dgxcheck.fleet.document import SharedStrings, result_of
from dgxcheck.fleet.node import node_of
from dgxcheck.output.drain_reason import BOUND, Item, drain_reason
from dgxcheck.output.fleet.schedulers import reason_of

FORM = re.compile(r"dgxcheck: [A-Za-z0-9.,:@/+_%; \[\]-]+; level (quick|default|extended)")
ITEM = re.compile(r"(?P<id>[a-z0-9]+\.[a-z0-9-]+) (?P<subject>\S+) (?P<fault>[a-z0-9-]+)( [^\[\]]+)?( \[[A-Z_]+\])?")


def item(check: str = "gpu.lost", subject: str = "GPU2 0000:0a:00.0", cause: str = "", figure: str = "") -> Item:
    return Item(check, subject, "gpu-lost", figure, cause, "reset-gpu")


@pytest.mark.parametrize(
    ("verdict", "items", "reason"),
    [
        ("pass", [], "dgxcheck: pass; level quick"),
        ("unknown", [item()], "dgxcheck: unknown; level quick"),
        ("fail", [], "dgxcheck: fail; level quick"),
        ("fail", [item()], "dgxcheck: gpu.lost GPU2_0000:0a:00.0 gpu-lost [RESET_GPU]; level quick"),
        ("fail", [item(cause="gpu/b"), item("gpu.model", cause="gpu/b")],
         "dgxcheck: gpu.lost GPU2_0000:0a:00.0 gpu-lost [RESET_GPU]; level quick"),
        ("fail", [item(cause="switch/s", figure="x8 of x16"), item(subject="GPU3", cause="switch/s")],
         "dgxcheck: gpu.lost switch/s gpu-lost [RESET_GPU]; level quick"),
        ("fail", [Item("clock.throttle", "GPU2", "thermal-slowdown", "", "gpu/c", "inspect"),
                  Item("thermal.temperature", "GPU2", "overheating", "88 °C, limit 87", "gpu/c", "inspect")],
         "dgxcheck: thermal.temperature GPU2 overheating 88 C, limit 87 [INSPECT]; level quick"),
        ("fail", [item(figure="88 °C, limit 87")],
         "dgxcheck: gpu.lost GPU2_0000:0a:00.0 gpu-lost 88 C, limit 87 [RESET_GPU]; level quick"),
    ],
)  # fmt: skip
def test_what_is_said(verdict: str, items: list[Item], reason: str) -> None:
    assert drain_reason(verdict, "quick", items) == reason


def test_what_does_not_fit_is_counted() -> None:
    reason = drain_reason("fail", "extended", [item(subject=f"GPU{number}") for number in range(16)])
    told = reason.removeprefix("dgxcheck: ").split("; ")
    assert len(reason) <= BOUND
    assert told[-2:] == [f"{16 - len(told) + 2} more", "level extended"]


@given(st.lists(st.tuples(st.text(), st.text(), st.text(), st.text(max_size=9)), min_size=1))
def test_hostile_names_keep_the_form(names: list[tuple[str, str, str, str]]) -> None:
    items = [Item("pcie.width", subject, "narrow", figure, cause, step) for subject, figure, cause, step in names]
    reason = drain_reason("fail", "default", items)
    assert FORM.fullmatch(reason)
    assert len(reason.encode()) <= BOUND
    assert reason.count(";") == reason.count("; ")


def the_items_of_a_fault_can_be_read(name: str) -> None:
    result, _ = result_of(judged(name)[1], SharedStrings())
    text = reason_of(node_of([replace(result, live=True)]))
    assert FORM.fullmatch(text)
    first, *others, _level = text.removeprefix("dgxcheck: ").split("; ")
    if result.verdict != "fail":
        assert (first, others) == (result.verdict, [])
    else:
        assert ITEM.fullmatch(first)
        assert all(ITEM.fullmatch(each) or re.fullmatch(r"\d+ more", each) for each in others)


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize(
    "name", swept(["dgx-1-v100-gpu-lost", "dgx-1-v100-hot", "dgx-1-v100", "dgx-1-v100-power-cap"], 2)
)
def test_results_say_the_same(name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["health", "--from", name, "--format", form, "-o", str(tmp_path / "result.json")])
    main(["health", "--from", name, "--format", "drain-reason"])
    own = capsys.readouterr().out
    file = tmp_path / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"source": {"kind": "live"}}))
    assert main(["fleet", "--format", "drain-reason", "--fail-on", "never", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"dgx-1-v100\t{own}"
