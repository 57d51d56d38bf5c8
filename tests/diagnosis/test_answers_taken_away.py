"""Whatever answers are taken away, the verdict is never better: at least as bad as before, or unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from math import inf
from pathlib import Path
from random import Random

import pytest
from findings_golden import plain as run  # of thousands of gaps none is noted
from hypothesis import given
from hypothesis import strategies as st
from sample import BOXES, FAULTS, swept

import probes
from dgxcheck.assessment.health import with_growth, within
from dgxcheck.assessment.machine import topology_of
from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.run import LEAST_CHECKS, verdict
from dgxcheck.checks.registry import CHECKS, PROBES
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.profiles import library
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import GroupedFacts
from dgxcheck.source.recording.load import Recording, load, recording, shipped
from dgxcheck.source.recording.overlay import applied
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import COUNTERS, survey

PATHS = dict(shipped())
GAPS: dict[str, dict[str, Json]] = {
    "absent": {"missing": "absent", "detail": "NVML 6: not found", "code": 6},
    "denied": {"missing": "denied", "detail": "NVML 4: no permission", "code": 4},
    "timeout": {"missing": "timeout", "detail": "no answer for 5 s"},
    "lost": {"missing": "lost", "detail": "NVML 15: GPU is lost", "code": 15},
    "unsupported": {"missing": "unsupported", "detail": "NVML 3: not supported", "code": 3},
    "garbled": {"missing": "garbled", "detail": "NVML 999: unknown error", "code": 999},
}
RANK = {Status.PASS: 0, Status.WARN: 1, Status.FAIL: 2}
UNKNOWABLE = ("nvmlDeviceGetViolationStatus", "nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetNumaNodeId")
"""No published dump says which boards answer the first, an A100 need not answer the second, and with CDMM a Grace's GPU
has no NUMA node: where no sibling does, nobody knows that they must."""
AMBIGUOUS = {
    ("dgx-a100-container-shut", "nvmlInit"), ("dgx-a100-channel-repair", "nvmlDeviceGetRepairStatus"),
    ("dgx-h100-memory-unrepairable", "nvmlDeviceGetUnrepairableMemoryFlag"),
}  # fmt: skip
"""A container that may open no device node, and whose NVML finds nothing, may have been given no GPU; no published dump
says that an A100 answers whether it is to be repaired, or an H100 whether its memory can be."""
LISTING = ("nvml nvmlInit", "nvml nvmlDeviceGetCount", "nvml nvmlDeviceGetHandleByIndex")
Key = tuple[str, str]
"""Line and entry of an NVML answer."""


@cache
def recorded(name: str) -> Recording:
    document = load(PATHS[name])
    return applied(document, name, recorded) if "base" in document else recording(document, name)


def judged(lines: GroupedFacts, whole: Recording, unread: str = "") -> tuple[Status, tuple[Finding, ...]]:
    """``unread``: a probe that failed at the first reading alone."""
    source = RecordedSource(lines, Origin("recording"), whole.later, head=whole.head)
    facts = survey(source, PROBES)
    topology = topology_of(facts)
    choice = library.select("auto", facts, topology)
    box = Box(snapshot=facts, topology=topology, gpus=topology.gpus, choice=choice, boards=library.boards_for(choice))
    growth = within(source, facts, inf)
    if unread and isinstance(growth, Growth):
        growth = replace(growth, old=replace(growth.old, **{unread: Missing(Gap.GARBLED, f"probe {unread}")}))
    findings = run(with_growth(box, growth), CHECKS)
    return verdict(findings, LEAST_CHECKS), findings


@cache
def before(name: str) -> Status:
    return judged(recorded(name).lines, recorded(name))[0]


def keys(name: str) -> list[Key]:
    lines = recorded(name).lines
    return [(line, entry) for line in sorted(lines) if line.startswith("nvml ") for entry in sorted(lines[line])]


def without(name: str, taken: Mapping[Key, Json]) -> GroupedFacts:
    lines = dict(recorded(name).lines)
    for (line, entry), gap in taken.items():
        lines[line] = {**lines[line], entry: gap}
    return lines


def not_better(name: str, taken: Mapping[Key, Json]) -> tuple[Finding, ...]:
    found, findings = judged(without(name, taken), recorded(name))
    was = before(name)
    assert found is Status.UNKNOWN or was is Status.UNKNOWN or RANK[found] >= RANK[was], (name, found, [*taken][:5])
    return findings


def functions(name: str) -> dict[str, list[Key]]:
    found: dict[str, list[Key]] = {}
    for line, entry in keys(name):
        found.setdefault(line.split()[1], []).append((line, entry))
    return found


def gpus(name: str) -> list[str]:
    return [str(bdf) for bdf in recorded(name).lines[LISTING[2]].values() if isinstance(bdf, str)]


def removals(name: str) -> Iterator[tuple[str, list[Key]]]:
    """What a fault shows in: its functions of all GPUs and of its own, and all that is asked of its own."""
    document = load(FAULTS[name])
    text = json.dumps([document.get(member) for member in ("facts", "add", "later")])
    own = [bdf for bdf in gpus(name) if bdf in text]
    for function, of_it in functions(name).items():
        if function in text and function not in UNKNOWABLE and (name, function) not in AMBIGUOUS:
            yield f"{function} of all", of_it
            yield from ((f"{function} of {bdf}", [key for key in of_it if bdf in key[0].split()]) for bdf in own[:1])
    for bdf in own[:1]:
        yield bdf, [(line, entry) for line, entry in keys(name) if bdf in line.split()]


def cases(names: list[str]) -> Iterator[tuple[str, str]]:
    """Each fault with two of the six gaps, which take turns: with all of them the sweep took eight minutes."""
    for number, name in enumerate(names):
        for kind, gap in enumerate(GAPS):
            if (number + kind) % 3 == 0:
                yield name, gap


@pytest.mark.parametrize(("name", "gap"), swept(cases([*FAULTS]), 151))
def test_one_function_or_one_gpu_is_silent(name: str, gap: str) -> None:
    for _, taken in removals(name):
        if taken:
            not_better(name, dict.fromkeys(taken, GAPS[gap]))


@pytest.mark.in_ci
@given(st.data())
def test_any_answers_are_silent(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*BOXES, *FAULTS]))
    every = [key for key in keys(name) if (name, key[0].split()[1]) not in AMBIGUOUS]
    share = data.draw(st.sampled_from([0.01, 0.1, 0.5, 1.0]))
    dice = Random(data.draw(st.integers(0, 1 << 32)))
    taken = {key: GAPS[dice.choice([*GAPS])] for key in every if dice.random() < share}
    not_better(name, taken)


@pytest.mark.parametrize(("name", "gap"), swept([(name, gap) for name in BOXES for gap in GAPS], 19))
def test_without_a_layer_nothing_passes(name: str, gap: str) -> None:
    """All that NVML answers of one GPU but its handle."""
    bdf = gpus(name)[-1]
    taken = [(line, entry) for line, entry in keys(name) if bdf in line.split()]
    findings = not_better(name, dict.fromkeys(taken, GAPS[gap]))
    assert verdict(findings, LEAST_CHECKS) in (Status.UNKNOWN, Status.FAIL)


@pytest.mark.parametrize("name", swept(BOXES, 7))
def test_a_gpu_of_which_most_is_not_recorded_is_unknown(name: str) -> None:
    """By questions, whatever the others answer; by answers, whichever they are."""
    dice, bdf = Random(name), gpus(name)[-1]
    own = [key for key in keys(name) if bdf in key[0].split()]
    lines = sorted({line for line, _ in own})
    gone = {*dice.sample(lines, 4 * len(lines) // 5)}
    for taken in ([key for key in own if key[0] in gone], dice.sample(own, 4 * len(own) // 5)):
        findings = not_better(name, {key: {"missing": "unrecorded"} for key in taken})
        assert verdict(findings, LEAST_CHECKS) is Status.UNKNOWN


@pytest.mark.parametrize("name", swept(BOXES, 7, first=1))
def test_a_lack_of_permission_blames_no_hardware(name: str) -> None:
    taken = dict.fromkeys(keys(name), GAPS["denied"])
    findings = not_better(name, taken)
    assert {each.status for each in findings} <= {Status.PASS, Status.SKIP, Status.UNKNOWN}
    one = dict.fromkeys([key for key in keys(name) if not key[0].startswith(LISTING)], GAPS["denied"])
    assert {each.status for each in not_better(name, one)} <= {Status.PASS, Status.SKIP, Status.UNKNOWN}


ASIDE = ("vpd", "slots", "empty_ports", "numa_memory", "units", "imex", "dimms", "gpu_affinity", "nvlink_capability",
         "stated", "tool_reports")  # fmt: skip
"""What these probes read of a DGX-1 only adds to what others say, or is not in its recording."""


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_that_fails_accuses_no_hardware(probe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: object) -> object:
        raise IndexError("list index out of range")

    monkeypatch.setattr(import_module(f"probes.{probes.MODULES[probe]}"), probe, broken)
    found, findings = judged(recorded("dgx-1-v100").lines, recorded("dgx-1-v100"))
    gap = f"probe {probe}: IndexError: list index out of range"
    assert {each.status for each in findings} <= {Status.PASS, Status.SKIP, Status.UNKNOWN}
    assert found is (Status.PASS if probe in ASIDE else Status.UNKNOWN)
    assert probe in ASIDE or any(gap in each.judgement.message for each in findings if each.status is Status.UNKNOWN)


NOT_READ_BEFORE = {
    "aer": ["pcie.aer"], "gpu_counters": ["pcie.replay", "power.violation"], "nvlink_errors": ["nvlink.errors"],
}  # fmt: skip


@pytest.mark.parametrize("probe", COUNTERS)
def test_what_was_not_read_before_has_not_grown(probe: str) -> None:
    _, findings = judged(recorded("dgx-1-v100").lines, recorded("dgx-1-v100"), unread=probe)
    assert {each.status for each in findings} <= {Status.PASS, Status.SKIP, Status.UNKNOWN}
    lacking = {each.id: each.judgement for each in findings
               if each.status is Status.SKIP and each.judgement.message == "no earlier reading"}  # fmt: skip
    assert sorted(lacking) == NOT_READ_BEFORE.get(probe, [])
    assert all(each.reason == "no-history" for each in lacking.values())


def test_the_gaps_are_those_of_the_seam() -> None:
    assert json.dumps(GAPS)
    assert Path(PATHS["dgx-1-v100"]).is_file()
