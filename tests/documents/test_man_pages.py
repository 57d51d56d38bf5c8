"""Man pages are clean, know every option and nothing else, and their examples print what they show."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import fault_words
import pytest
from check_paragraphs import PAGE, paragraphs
from checkout import ROOT
from command_line import options_of
from programs import program
from threshold_list import in_page, listed
from transcripts import literal, run

from dgxcheck.cli import COMMANDS, SUBCOMMANDS, main

FOLDER = ROOT / "man"
PAGES = sorted(FOLDER.glob("*.[1-9]"))
COMMAND_PAGES = {"": "dgxcheck.1"} | {
    name: f"dgxcheck-{name.replace(' ', '-')}.1" for name in (*COMMANDS, *SUBCOMMANDS)
}
SECTIONS = (
    "NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO",
)  # fmt: skip
LOCAL = ("dgxcheck-config", "dgxcheck-recordings", "dgxcheck-diff", "dgxcheck-xid", "dgxcheck-watch",
         "dgxcheck-integrate")  # fmt: skip
"""Pages whose commands ask no machine, so that they print the same everywhere."""
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
every_command = pytest.mark.parametrize("name", COMMAND_PAGES)


def sections(page: Path) -> dict[str, str]:
    parts = re.split(r"^\.Sh (.*)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def flags(text: str) -> set[str]:
    """``.It Fl o , Fl -output Ar FILE`` -> -o, --output."""
    items = re.findall(r"^\.It (Fl .*)$", text, re.MULTILINE)
    return {f"-{flag}" for item in items for flag in re.findall(r"Fl (\S+)", item)}


def test_every_command_has_its_page_and_no_page_is_left_over() -> None:
    assert {page.name for page in PAGES} == {
        *COMMAND_PAGES.values(), "dgxcheck-config.5", "dgxcheck-recording.5", "dgxcheck-slurm.7",
    }  # fmt: skip


@every_command
def test_the_page_has_every_option_and_no_other(name: str) -> None:
    assert flags(sections(FOLDER / COMMAND_PAGES[name])["OPTIONS"]) == options_of(name)


@every_command
def test_help_has_every_option_and_no_other(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "-h"]) == 0
    said = capsys.readouterr().out.partition("\nOptions:\n")[2].partition("\nCommands:\n")[0]
    listed = re.findall(r"^  (-\S.*?)(?:  |$)", said, re.MULTILINE)
    assert {word for line in listed for word in re.findall(r"(?<!\S)(-[^\s,]+)", line)} == options_of(name)


@every_command
def test_the_synopsis_names_no_option_that_is_not_there(name: str) -> None:
    said = re.findall(r"^\.(?:Op )?(Fl .*)$", sections(FOLDER / COMMAND_PAGES[name])["SYNOPSIS"], re.MULTILINE)
    before_value = [re.split(r" (?:Ar|Cm) ", line)[0] for line in said]
    names = {f"-{word}" for line in before_value for word in line.split() if word not in ("Fl", "|")}
    assert names <= options_of(name)


@every_command
def test_the_sections_are_there(name: str) -> None:
    assert [title for title in sections(FOLDER / COMMAND_PAGES[name]) if title in SECTIONS] == [*SECTIONS]


@every_page
def test_mandoc_finds_no_fault(page: Path) -> None:
    result = subprocess.run(
        [program("mandoc"), "-Tlint", "-W", "style", page.name], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert result.stdout == ""
    assert result.returncode == 0


@every_page
def test_pages_refer_to_pages_that_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    referred = {f"{name}.{section}" for name, section in re.findall(r"^\.Xr (\S+) (\d)", text, re.MULTILINE)}
    assert referred <= {other.name for other in PAGES} - {page.name}


@every_page
def test_examples_print_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    blocks = [block for block in literal(sections(page)["EXAMPLES"])
              if "--from" in block or "$ cat " in block or page.stem in LOCAL]  # fmt: skip
    assert blocks, "a page without an example"
    for block in blocks:
        run(block)


def test_the_health_page_says_of_every_check_what_explain_says() -> None:
    assert sections(PAGE)["CHECKS"] == paragraphs(), "run 'make golden'"


def test_the_health_page_and_the_schema_list_every_fault_word() -> None:
    assert fault_words.in_page() == fault_words.items() != "", "run 'make golden'"
    assert fault_words.in_schema() == {**fault_words.WORDS}, "run 'make golden'"


def test_the_config_page_lists_every_threshold() -> None:
    assert in_page() == listed() != "", "run 'make golden'"


def test_readers_know_where_the_environment_counts() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    sources = "".join(path.read_text(encoding="utf-8") for path in (FOLDER.parent / "dgxcheck").rglob("*.py"))
    asked = set(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", sources)) - {"PATH"}
    assert asked
    assert {name for name in asked if not re.search(rf"\bEv {name}\b", text)} == set()
