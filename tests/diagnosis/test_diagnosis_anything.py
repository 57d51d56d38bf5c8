"""Whatever is wrong together: every bad finding is reported once, every cause says what to do, and nothing harmful."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema_rs import validator_for
from measured_box import fact, imported, of_box, words
from report_of import EMPTY
from sample import BOXES, FAULTS, swept
from schemas import schema

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.host_limits import hypervisor
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.diagnosis.causes import diagnose
from dgxcheck.diagnosis.model import Diagnosis
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.output.health.causes import as_json, as_text, place
from dgxcheck.output.health.instructions import action_text
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.load import Recording, load, recording, shipped
from dgxcheck.source.recording.overlay import applied
from dgxcheck.source.recording.replay import RecordedSource

PATHS = dict(shipped())
FAULTY = sorted({str(load(path)["base"]) for path in FAULTS.values()} & {*BOXES})
"""Boxes that ship with faults."""
BAD = (Status.WARN, Status.FAIL, Status.UNKNOWN)
IDS = {check.id for check in CHECKS}
CAUSES = validator_for({"$defs": schema("health")["$defs"], "type": "array", "items": {"$ref": "#/$defs/cause"}})
GOOD = {
    "host-to-device": 12.2, "device-to-host": 12.8, "device-copy": 760.0, "p2p": 24.2, "p2p-both": 17.5, "latency": 9.0,
}  # fmt: skip
"""Figures of one GPU and of two, as good as any of these boxes gives or better; a latency is good where it is low."""
LOST = ("gpu.lost", "kernel.off-bus")


@cache
def of_base(name: str) -> Recording:
    return recording(load(PATHS[name]), name)


@cache
def faults(base: str) -> dict[str, dict[str, Json]]:
    """Those of one box, by name."""
    known = {name: load(path) for name, path in FAULTS.items()}
    return {name: each for name, each in known.items() if each["base"] == base}


@cache
def gpus(base: str) -> tuple[str, ...]:
    return tuple(str(each) for each in of_base(base).lines["nvml nvmlDeviceGetHandleByIndex"].values())


def together(base: str, overlays: Sequence[dict[str, Json]]) -> Box:
    """The box with the facts of all; where two change the same the last one counts."""
    document: dict[str, Json] = {"base": base}
    for each in overlays:
        for member, value in each.items():
            if member in ("facts", "add") and isinstance(value, dict):
                kept = document.get(member, {})
                assert isinstance(kept, dict)
                document[member] = kept | value
            elif member == "drop" and isinstance(value, list):
                kept = document.get(member, [])
                assert isinstance(kept, list)
                document[member] = [*kept, *(subject for subject in value if subject not in kept)]
            elif member == "later":
                document[member] = value
    found = applied(document, base, of_base)
    source = RecordedSource(found.lines, Origin("recording"), found.later, head=found.head)
    return of_box(source, base if base == "k80-x8" else "auto")


@st.composite
def mishaps(draw: st.DrawFn) -> Box:
    base = draw(st.sampled_from(FAULTY))
    names = draw(st.lists(st.sampled_from(sorted(faults(base))), min_size=1, max_size=6, unique=True))
    return together(base, [faults(base)[name] for name in names])


def figure(kind: str, sort: str) -> Json:
    good = GOOD[kind]
    latency = kind == "latency"
    if sort == "hung":
        return {"missing": "timeout", "detail": "no answer for 120 s"}
    if sort == "failed":
        return {"failed": "CUDA_ERROR_ECC_UNCORRECTABLE", "code": 214, "detail": "copy"}
    if sort == "slow":
        good = good * 4 if latency else good / 4
    return fact(good, "us" if latency else "GB/s")


@st.composite
def measured(draw: st.DrawFn) -> Box:
    """Some kinds of figures, of a box or a file without one; which of them are not good is thrown for each."""
    base = draw(st.sampled_from(FAULTY))
    kinds = draw(st.lists(st.sampled_from(sorted(GOOD)), min_size=1, max_size=4, unique=True))
    weights = draw(st.tuples(*(st.integers(0, 6) for _ in range(3))))
    dice = Random(draw(st.integers(0, 1 << 16)))
    facts: dict[str, Json] = {}
    alone = draw(st.booleans())
    subjects = [str(number) for number in range(8)] if alone else gpus(base)
    for kind in kinds:
        ends = [" ".join(pair) for pair in permutations(subjects, 2)] if "p2p" in kind or kind == "latency" else []
        for subject in ends or subjects:
            sort = dice.choices(("good", "slow", "hung", "failed", "absent"), (12, *weights, 1))[0]
            if sort != "absent":
                facts[f"measure {kind} {subject}"] = figure(kind, sort)
            if kind == "p2p" and sort == "failed":
                facts[f"measure p2p-integrity {subject}"] = words(16)
    if alone:
        return imported({key.removeprefix("measure "): value for key, value in facts.items()})
    known = draw(st.lists(st.sampled_from(sorted(faults(base))), max_size=2, unique=True))
    usable = [each for name in known if not _measures(each := faults(base)[name])]
    return together(base, [*usable, {"add": facts}])


def _measures(overlay: dict[str, Json]) -> bool:
    added = overlay.get("add")
    return isinstance(added, dict) and any(key.startswith("measure ") for key in added)


def answers(box: Box) -> None:
    findings = run(box, CHECKS)
    found = diagnose(box, findings)
    bad = [each.key for each in findings if each.status in BAD]
    assert sorted([*(key for cause in found.causes for key in cause.explains), *found.unexplained]) == sorted(bad)
    judged_so = replace(
        EMPTY, snapshot=box.snapshot, topology=box.topology, settings=box.settings, findings=tuple(findings),
        diagnosis=found,
    )  # fmt: skip
    CAUSES.validate(as_json(judged_so))
    for verbose in (False, True):
        text = " ".join(" ".join(as_text(judged_so, verbose, 80)).split())
        assert all(place(cause.component) in text for cause in found.causes)
    harmless(box, found, findings)
    shuffled = list(findings)
    Random(0).shuffle(shuffled)
    mixed = replace(box, gpus=tuple(reversed(box.gpus)))
    assert named(diagnose(mixed, shuffled)) == named(found)


def named(found: Diagnosis) -> set[tuple[object, frozenset[str]]]:
    return {(cause.component.key, frozenset(cause.explains)) for cause in found.causes}


def harmless(box: Box, found: Diagnosis, findings: Sequence[Finding]) -> None:
    lost = {each.subject.bdf for each in findings if each.id in LOST and each.status in BAD}
    by_key = {each.key: each for each in findings}
    for cause in found.causes:
        assert cause.actions
        assert all(action_text(step, by_key) for step in cause.actions)
        assert not {cause.component.part, cause.component.name} & IDS
        for step in cause.actions:
            if any(command[:2] == ("nvidia-smi", "-r") for command in step.commands):
                touched = [gpu.bdf for gpu in box.topology.gpus if gpu.name in step.disturbs]
                assert not lost & {cause.component.bdf, *touched}
                ids = [argv[argv.index("-i") + 1] for argv in step.commands if "-i" in argv]
                assert (ids == [",".join(map(str, touched))]) or len(touched) == len(box.topology.gpus)
            if hypervisor(box):
                assert "ACS" not in action_text(step, by_key).replace("ACS of", "")
                assert "setpci -s" not in action_text(step, by_key)


FEW = settings(suppress_health_check=list(HealthCheck))


@pytest.mark.in_ci
@FEW
@given(mishaps())
def test_faults_together_are_all_told_and_nothing_harmful_is(box: Box) -> None:
    answers(box)


@pytest.mark.in_ci
@FEW
@given(measured())
def test_figures_of_any_kind_are_all_told_and_nothing_harmful_is(box: Box) -> None:
    answers(box)


@pytest.mark.parametrize("base", swept(BOXES, 7, first=4))
def test_all_faults_of_a_box_at_once(base: str) -> None:
    answers(together(base, list(faults(base).values())))
