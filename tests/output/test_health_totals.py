"""The totals of a report follow from its findings: each finding is counted once, whichever line names a count."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from golden_text import without_totals
from judging import NAMELESS, judged
from sample import SAMPLE, swept
from seam import run

from dgxcheck.output.health.finding_lines import SKIPPED

STATUSES = ("pass", "fail", "warn", "unknown", "skip")
NOT_PROMISED = ("not-in-level", "not-supported", "not-configured", "no-reference", "no-history")


@pytest.mark.parametrize("name", swept(SAMPLE, 9, first=5))
def test_the_totals_of_a_report_are_those_of_its_findings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = judged(name)[1]
    count = Counter(each["status"] for each in document["findings"])
    assert document["summary"].items() >= {status: count[status] for status in STATUSES}.items()
    assert count.total() == len(document["findings"]) == sum(count[status] for status in STATUSES)
    named = ("--profile", NAMELESS) if name.startswith(NAMELESS) else ()
    text = run(capsys, "health", "-v", "--from", name, *named).out
    ran_of = re.search(r"^(\d+) of (\d+) checks ran \(", text, re.MULTILINE)
    assert ran_of is not None
    assert [*map(int, ran_of.groups())] == [count.total() - count["skip"], count.total()]
    results = re.search(r"^System Results: (\d+) success, (\d+) errors, (\d+) warnings, (\d+) ", text, re.MULTILINE)
    assert results is not None
    told = [*map(int, results.groups())]
    skips = [each["reason"] for each in document["findings"] if each["status"] == "skip"]
    due = [reason for reason in skips if reason not in NOT_PROMISED] if len(skips) < count.total() else skips
    assert told == [count["pass"], count["fail"], count["warn"], count["unknown"] + len(due)]
    skipped = re.search(r"^Did not run: (.*)\.$", text, re.MULTILINE)
    assert skipped is not None
    reasons = Counter(SKIPPED[each["reason"]] for each in document["findings"] if each["status"] == "skip")
    assert {reason: int(number) for number, reason in re.findall(r"(\d+) ([^,;.]+)", skipped[1])} == dict(reasons)


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        (("--from", "dgx-1-v100"), " (state, kernel log, counter growth)"),
        (("--from", "dgx-1-v100", "--quick"), " (state)"),
        (("--from", "dgx-1-v100", "--only", "thermal"), " (state)"),
        (("--from", "dgx-1-v100", "--only", "kernel"), " (kernel log)"),
        (("--from", "dgx-1-v100", "--only", "gpu.model,nvlink.errors"), " (state, counter growth)"),
        (("--from", "dgx-1-p100-memory-slow", "--only", "measure"), " (measurements under load)"),
        (("--from", "dgx-1-v100", "--only", "measure"), ""),
    ],
)
def test_the_verdict_names_what_ran_and_nothing_else(
    arguments: tuple[str, ...], kinds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = run(capsys, "health", *arguments).out
    assert re.search(rf"^\d+ of \d+ checks? ran{re.escape(kinds)}\.$", text, re.MULTILINE), text


@pytest.mark.parametrize(
    ("arguments", "score"),
    [
        (("dgx-1-v100",), "Score: 100 of 100 against dgx-1-v100 (by product name); coverage 100 %."),
        (("dgx-1-v100", "--profile", "none"),
         "Score: none (no reference machine matches; dgxcheck profiles lists them)."),
        (("dgx-1-v100-hot", "--profile", "dgx-1-v100"),
         "Score: 97.5 of 100 against dgx-1-v100 (as requested);"
         " weakest area: gpu 87.8; coverage 100 %."),
    ],
)  # fmt: skip
def test_the_line_of_the_score(arguments: tuple[str, ...], score: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert score in run(capsys, "health", "--from", *arguments).out.splitlines()


def test_golden_files_hold_no_totals() -> None:
    ran, score = "450 of 505 checks ran (state).\n", "Score: 99.5\n"
    text = without_totals(f"{ran}Did not run: 33 not supported, 20 not recorded; list them with -v.\n{score}")
    assert text == f"# of # checks ran (state).\nDid not run: not recorded, not supported\n{score}"
    assert without_totals("System Results: 448 success, 2 errors\n") == "System Results: # success, # errors\n"


def test_diff_counts_the_checks_that_it_does_not_name(capsys: pytest.CaptureFixture[str]) -> None:
    old, new = "dgx-1-v100", "dgx-1-v100-no-nvml"
    ran = ({each["id"] for each in judged(name)[1]["findings"] if each["status"] != "skip"} for name in (old, new))
    lost = set.difference(*ran)
    text = " ".join(run(capsys, "diff", old, new).out.split())
    note = re.search(r"checked in OLD only: ([\w., -]+?) and (\d+) more\.", text)
    assert note is not None
    named = note[1].split(", ")
    assert {*named} <= lost
    assert len(named) + int(note[2]) == len(lost)
