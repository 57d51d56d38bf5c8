"""``dcgmi diag -j``: DCGM 2 and 3 name ``gpu_ids`` or ``gpu_id``, DCGM 4 ``entity_group`` and ``entity_id``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.facts.missing import Json
from dgxcheck.readers.dcgm import diag_fragment
from dgxcheck.readers.dcgm.diag import OUTCOMES, TOOL
from dgxcheck.readers.dcgm.faults import judged
from dgxcheck.readers.json_text import documents
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import MOST_GPUS, bounded, gpu

_MEMBER = re.compile(r'"(?:test_categories|gpu_ids?|entity_id)"\s{0,8}:')
_JSON = re.compile(r'[\s{}\[\],:]{1,400}|[\s{\[]{0,80}"[^"]{0,80}".{0,2000}')
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every result of every test."""
    lines = bounded(lines)
    reports = Reports(TOOL)
    understood: set[int] = set()
    for found, where in documents(lines, lambda each: _categories(each) is not None):
        for test in (test for category in _categories(found) or () for test in _objects(category, "tests")):
            _test(reports, test)
        understood.update(number for number in where if lines[number].strip())
    if any(_MEMBER.search(line) for line in lines):
        rest = ["" if number in understood else line for number, line in enumerate(lines)]
        understood |= _fragments(reports, rest)
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood)),) if understood else ()


def _categories(found: Mapping[str, Json]) -> list[Json] | None:
    root = next((found[name] for name in _ROOTS if name in found), found)
    categories = root.get("test_categories") if isinstance(root, Mapping) else None
    return categories if isinstance(categories, list) else None


def _fragments(reports: Reports, lines: Sequence[str]) -> set[int]:
    """What is whole in a document that is not; the lines that look like JSON around it belong to it."""
    found: set[int] = set()
    for test, where in diag_fragment.tests(lines):
        _test(reports, test)
        found.update(where)
    if not found:
        return set()
    return {number for number, line in enumerate(lines) if _JSON.fullmatch(line.strip()) and line.strip()}


def _test(reports: Reports, test: dict[str, Json]) -> None:
    name = str(test.get("name", "test"))[:60]
    topic = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "test"
    for result in _objects(test, "results"):
        outcome = OUTCOMES.get(str(result.get("status", "")).lower())
        if outcome is None:
            continue
        messages = [*_messages(result)] if outcome != "pass" else []
        for subject in _subjects(result):
            if outcome == "pass":
                reports.add(subject, topic, outcome)
            for text in messages or ([""] if outcome != "pass" else []):
                known, fault = judged(outcome, text)
                ran = " did not run" if known == "unknown" else ""
                shown = f"test {name}{ran}: {text}" if text else f"test {name} ended with {outcome}"
                reports.add(subject, topic, known, fault, shown)


def _subjects(result: Mapping[str, Json]) -> list[str]:
    if str(result.get("entity_group", "")).upper() == "GPU":
        ids = str(result.get("entity_id", ""))
    else:
        ids = str(result.get("gpu_ids", result.get("gpu_id", "")))
    numbers = [index for word in ids.split(",")[:MOST_GPUS] if (index := gpu(word.strip())) is not None]
    return [f"GPU{number}" for number in numbers] or [HOST]


def _messages(result: Mapping[str, Json]) -> Iterator[str]:
    """Of ``warnings``: texts, or objects with a text in ``warning``."""
    listed = result.get("warnings")
    for one in listed if isinstance(listed, list) else [] if listed is None else [listed]:
        text = one.get("warning") if isinstance(one, dict) else one
        if isinstance(text, str):
            yield text


def _objects(holder: Json, name: str) -> list[dict[str, Json]]:
    listed = holder.get(name) if isinstance(holder, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
