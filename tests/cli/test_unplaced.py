"""GPUs of a text without bus ids: no format shows the id that stands for them, and programs can tell them apart."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.cli import main
from dgxcheck.facts.bdf import is_unplaced, nameless, unplaced, without_unplaced

LINKS = "".join(
    f"GPU {gpu}: Tesla V100-SXM2-16GB (UUID: GPU-{gpu}1234567-89ab-cdef-0123-456789abcdef)\n"
    + "".join(f"\t Link {link}: {'<inactive>' if gpu == link == 1 else '25.781 GB/s'}\n" for link in range(6))
    for gpu in range(4)
)
STANDS_FOR = re.compile(r"ffff[0-9a-f]{4}:00:00\.0")
FORMATS = [
    *(
        ("health", form)
        for form in ("text", "json", "jsonl", "junit", "html", "markdown", "svg", "prometheus", "nagios")
    ),
    *(("topo", form) for form in ("text", "json", "svg", "dot")),
    ("list", "json"),
]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("text") / "links.txt"
    path.write_text(LINKS, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("command", "form"), FORMATS)
def test_no_format_shows_what_stands_for_a_bus_id(command: str, form: str, text: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    main([command, "--format", form, "--from", text, "-o", str(out)])
    written = out.read_text(encoding="utf-8")
    assert "GPU1" in written or form == "nagios"
    assert STANDS_FOR.search(written) is None


def test_keys_are_unique_and_bus_ids_are_null(text: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    main(["health", "--format", "json", "--from", text, "-o", str(out)])
    findings: list[Any] = json.loads(out.read_text())["findings"]
    keys = [each["key"] for each in findings]
    assert len(set(keys)) == len(keys) > 20
    assert any(key.endswith("/GPU1") for key in keys)
    assert {each["subject"]["bdf"] for each in findings} == {None}


def test_a_graph_keeps_its_nodes_apart(text: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    main(["topo", "--format", "dot", "--from", text, "-o", str(out)])
    assert {f"GPU{n}" for n in range(4)} <= set(re.findall(r'^ *"(\w+)" \[label', out.read_text(), re.MULTILINE))


@given(st.text(alphabet="f0:. 1", max_size=60))
def test_only_these_are_replaced(other: str) -> None:
    """Whatever stands around it; what looks alike stays."""
    for named, words in ((False, ("-", "-")), (True, ("GPU3", "unnamed-GPU1"))):
        shown = without_unplaced(f"{other}|{unplaced(3)}|{nameless(1)}|{other}", named)
        assert f"|{words[0]}|{words[1]}|" in shown
        assert not any(is_unplaced(shown[at : at + 16]) for at in range(len(shown)))
    assert without_unplaced(other, True) == other or "ffff" in other
