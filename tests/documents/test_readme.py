"""The README shows what the commands print, and names no command, option or recording that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT
from command_line import options_of
from transcripts import PICTURES, fenced, picture, recipe, run

from dgxcheck import __version__
from dgxcheck.cli import COMMANDS

README, MAKEFILE, CHANGES = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile", "CHANGELOG.md")
)
BLOCKS = fenced(README)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.partition("\n")[0] for block in BLOCKS])
def test_commands_print_what_the_readme_shows(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(block, {"make demo": recipe(MAKEFILE, "demo")})


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_what_the_command_draws(name: str, tmp_path: Path) -> None:
    assert f"](man/{name}.svg)" in README
    command, recording = PICTURES[name]
    assert f"dgxcheck {command} --format svg -o {name}.svg --from {recording}" in README
    assert picture(name, tmp_path) == (ROOT / "man" / f"{name}.svg").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert README.count("\n") <= 250


def test_the_demo_is_shown_and_there_are_two_commands() -> None:
    made = re.findall(r"`make (\w+)`|^\$ make (\w+)$", README, re.MULTILINE)
    assert {name for pair in made for name in pair if name} == {"demo", "test"}
    assert any(block.startswith("$ make demo\n") for block in BLOCKS)


def test_every_command_named_is_there() -> None:
    code = re.findall(r"^```.*?^```|`[^`]*`", README, re.DOTALL | re.MULTILINE)
    assert {name for each in code for name in re.findall(r"dgxcheck ([a-z]+)\b", each)} == set(COMMANDS)


def test_every_option_named_is_there() -> None:
    known = {option for name in ("", *COMMANDS) for option in options_of(name)}
    lines = re.findall(r"dgxcheck ((?:topo|list|record|schema)[^`\n#]*)", README)
    named = {word for line in lines for word in line.split() if word.startswith("-")}
    named |= {word for span in re.findall(r"`(-[^`]*)`", README) for word in span.split() if word.startswith("-")}
    assert named
    assert named <= known


def test_the_change_log_knows_this_version() -> None:
    assert re.search(rf"^## {re.escape(__version__)}\b", CHANGES, re.MULTILINE)
