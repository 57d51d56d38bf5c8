"""All that tests find is what ``golden/findings.txt`` holds, test by test; ``make golden`` accepts it.

A test asserts what matters of its case. Here stands what an admin reads of it: messages with their figures, limits and
evidence, what is blamed, what is to be done. Shipped boxes and faults have golden files of their own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Generator, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from golden_text import FOLDER, UPDATE, changes

from dgxcheck.checks.engine import run as engine
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import BAD, Finding

GOLDEN = FOLDER / "findings.txt"
TESTS = str(Path(__file__).parent)
LONGEST = 60
"""Characters of a value of evidence, and of a remedy: enough to tell it from another."""
MOST = 3
"""Pieces of evidence."""
plain = engine.run
"""For tests that try thousands of cases."""
_OF_THIS_RUN = re.compile(r"/\S*/pytest-\S*/|\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""Folders of tests and times."""
_noted: dict[str, None] = {}


@wraps(plain)
def _run(box: Box, checks: Iterable[Check], required: Collection[str] = ()) -> tuple[Finding, ...]:
    found = plain(box, checks, required)
    if sys._getframe(1).f_code.co_filename.startswith(TESTS):
        note(_lines(found))
    return found


engine.run = _run  # for every test that imports it later


def note(lines: Iterable[str]) -> None:
    """Lines of the test that runs."""
    _noted.update(dict.fromkeys(_OF_THIS_RUN.sub("", line) for line in lines))


def of_document(document: dict[str, Any]) -> Iterator[str]:
    """Of a document of ``health`` the bad findings and the causes with their steps."""
    for each in document["findings"]:
        if each["status"] in BAD:
            yield f"{each['status']} {each['key']}: {each['message']}"
    for cause in document["causes"]:
        said = f"cause {cause['severity']} {cause['id']}, {cause['confidence']['text']}: {cause['headline']}"
        steps = (f"{each['condition'] or ''} {each['action']} {each['instruction']} {each['urgency']}".strip()
                 for each in cause["actions"])  # fmt: skip
        yield " | ".join((said, " ".join(cause["faults"]), ", ".join(cause["explains"]), ", ".join(steps)))


def _lines(found: Iterable[Finding]) -> Iterator[str]:
    for finding in found:
        if finding.status in BAD:
            said = finding.judgement
            limits = "" if said.measured is None else f" ({said.measured} of {said.expected} {said.unit})"
            yield " | ".join(filter(None, (
                f"{finding.status.value} {finding.key}: {said.message}{limits}",
                "; ".join(f"{each.where} = {str(each.value)[:LONGEST]}" for each in said.evidence[:MOST]),
                said.fault.word if said.fault else "",
                ", ".join(f"{each.kind} {each.name} {each.part}".rstrip() for each in finding.blames),
                said.remedy[:LONGEST],
            )))  # fmt: skip


class Findings:
    """A plugin that holds each test to what the golden file has of it; of an update it keeps what no test of this run
    replaces, and drops what no test of a module that ran stands for."""

    def __init__(self) -> None:
        self._held = _read()
        self._found: dict[str, list[str]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        _noted.clear()
        done = yield
        if item.get_closest_marker("exhaustive") or item.get_closest_marker("hypothesis"):
            return done
        name = f"{item.path.stem}::{item.name}"
        self._found[name] = [*_noted]
        if UPDATE not in os.environ and (difference := changes(self._held.get(name, []), self._found[name])):
            pytest.fail(f"not what 'make golden' wrote to {GOLDEN.name}:\n{difference}", pytrace=False)
        return done

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What the processes of xdist found."""
        self._found |= getattr(node, "workeroutput", {}).get(GOLDEN.name, {})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if UPDATE not in os.environ:
            return
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[GOLDEN.name] = self._found
            return
        modules = {_module(name) for name in self._found}
        kept = {name: lines for name, lines in self._held.items() if _module(name) not in modules} | self._found
        text = "".join("\n  ".join((name, *kept[name])) + "\n" for name in sorted(kept) if kept[name])
        GOLDEN.write_text(text, encoding="utf-8")


def _module(name: str) -> str:
    return name.partition("::")[0]


def _read() -> dict[str, list[str]]:
    held: dict[str, list[str]] = {}
    name = ""
    for line in GOLDEN.read_text(encoding="utf-8").splitlines() if GOLDEN.is_file() else ():
        if line.startswith("  "):
            held[name].append(line[2:])
        else:
            name = line
            held[name] = []
    return held
