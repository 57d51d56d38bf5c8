"""A host may be called like any word of a driver's message: what is read of the log stays the same."""

from __future__ import annotations

import importlib
import json
import re

import pytest
from checkout import ROOT
from sample import swept

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.driver_words import is_word
from dgxcheck.source.recording.keys import flatten, insert

PARSERS = ("gpu", "hca", "host", "memory", "pcie", "storage")
_OWN = re.compile(r"nfs: server \S+"
                  r"|name=[^,]*|GPU-[\w-]+|dgxcheck|(?:task |stuck for \d+s! \[|SIGBUS to |Killing ).{1,16}:\d+"
                  r"|oom-kill:|Killed process"
                  r"|[Cc]omm:? \w+|\b[0-9a-f]{12,16}\b|[\w.-]+\[\d+\]: segfault|#\d+-Ubuntu")  # fmt: skip
NUMBER = re.compile(r"x[0-9a-f]+|[a-z_]+\d+\w*|[a-z]{1,2}", re.ASCII)
HOST = "text /proc/sys/kernel/hostname"


def recorded() -> list[str]:
    """Every line of the kernel log in the shipped recordings and overlays."""
    lines: set[str] = set()
    for path in [*ROOT.glob("fixtures/*.json"), *ROOT.glob("fixtures/faults/*.json")]:
        lines |= set(texts(json.loads(path.read_text())))
    return sorted(lines)


def texts(value: Json) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) and re.match(r"\d+\.\d+;", value) else []


def words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z]\w+", _OWN.sub(" ", text))}


def literals(module: str) -> set[str]:
    """Whole words that the forms of a subject look for, between characters that end a word."""
    found: set[str] = set()
    for form in importlib.import_module(f"dgxcheck.kernel_messages.{module}").FORMS:
        plain = re.sub(r"\\ ", " ", re.sub(r"\(\?P<\w+>|\\[a-zA-Z]|\[[^]]*\]", "|", form.expression))
        found |= set(re.findall(r"(?<![\w)?])[A-Za-z]{2,}(?![\w(?])", plain))
    return {word.lower() for word in found}


def test_all_words_of_recorded_lines_are_known() -> None:
    lines = recorded()
    assert len(lines) > 50
    assert {word for line in lines for word in words(line) if not is_word(word) and not NUMBER.fullmatch(word)} == set()


@pytest.mark.parametrize("module", PARSERS)
def test_all_words_that_a_parser_looks_for_are_known(module: str) -> None:
    assert {word for word in literals(module) if not is_word(word)} == set()


@pytest.mark.parametrize(
    "host", swept(["gpu", "off", "Xid", "pci", "fallen", "bus", "06", "0a", "nvrm", "Fatal.example.org"], 4)
)
def test_such_a_host_changes_no_line(host: str) -> None:
    lines = [line for line in recorded() if _OWN.search(line) is None]
    facts: dict[str, Json] = {f"kmsg {number}": line for number, line in enumerate(lines)}
    facts["text /proc/cmdline"] = "iommu=pt pci=noaer quiet"
    grouped: dict[str, dict[str, Json]] = {}
    for key, fact in (facts | {HOST: f"{host}\n"}).items():
        insert(grouped, key, fact)
    found = flatten(anonymized(grouped, [], b"key")[0])
    assert {key: found[key] for key in facts} == facts
    assert found[HOST] != f"{host}\n"


def test_another_host_is_replaced() -> None:
    grouped: dict[str, dict[str, Json]] = {}
    for key, fact in {HOST: "rack7-dgx\n", "kmsg 0": "1.0;NVRM: rack7-dgx.example.org"}.items():
        insert(grouped, key, fact)
    assert "rack7" not in json.dumps(anonymized(grouped, [], b"key")[0])
