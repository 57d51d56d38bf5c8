"""Evidence is what the recording says: an answer of NVML that a finding shows is the one to the question it names."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import briefly, judged
from sample import BY_NAME, swept

from dgxcheck.facts.missing import Json, Missing
from dgxcheck.source.recording.load import open_source

READ = {
    "ecc.aggregate": "of both kinds of memory", "ecc.retired-pages": "how many", "ecc.row-remap": "as truths",
    "ecc.spare-rows": "banks with few and with none", "gpu.count": "why NVML did not start",
    "gpu.lost": "that NVML lists it no longer", "gpu.memory-node": "-1 is none", "nvlink.generation": "decoded",
    "nvlink.graph": "of all links by what they join", "nvlink.symmetry": "of all links by what they join",
}
"""Checks that show what was made of an answer."""
ONCE = [name for name, path in BY_NAME.items() if '"later"' not in Path(path).read_text(encoding="utf-8")]
"""What was read once: of two readings a finding shows the later one, or both."""


@pytest.mark.parametrize("name", swept(ONCE, 9))
def test_an_answer_of_nvml_is_that_to_its_question(name: str) -> None:
    source = open_source(name)
    shown = [(finding["key"], *each["where"].split(), each["value"]) for finding in judged(name)[1]["findings"]
             for each in finding["evidence"] if each["where"].startswith("nvmlDevice") and finding["id"] not in READ]
    wrong = []
    for key, function, *words, value in shown:
        subject = " ".join(each for each in words if not each.isdigit())
        answer = source.nvml(function, subject, *(int(each) for each in words if each.isdigit()))
        if not is_shown(answer, value):
            wrong.append((key, function, *words, value, answer))
    assert not wrong


@pytest.mark.parametrize("name", ["dgx-1-v100-verbs-shut", "dgx-2-turbo-off", "k80-x8-uvm-node-gone"])
def test_a_truth_is_that_of_the_file(name: str) -> None:
    source, every = open_source(name), [each for finding in briefly(name)["findings"] for each in finding["evidence"]]
    shown = {each["where"]: each["value"] for each in every if isinstance(each["value"], bool)}
    assert shown == {path: source.opens(path) is True if path.startswith("/dev/") else source.text(path) == "1\n"
                     for path in shown}  # fmt: skip
    assert shown


def is_shown(answer: Json | Missing, value: Json) -> bool:
    """The same, at each reading; those members of it that count; a rate decoded; or why there is none."""
    if isinstance(answer, Missing):
        return isinstance(value, str) and value.replace(" ", "-").startswith((answer.gap.value, "not-supported"))
    if isinstance(answer, dict):
        return value.items() <= answer.items() if isinstance(value, dict) else value in answer.values()
    if isinstance(value, float):
        return True
    return value == answer or (isinstance(answer, list) and value in answer) or value == [answer, answer]
