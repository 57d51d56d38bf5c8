"""Boxes with measurements on them: figures of a kind for every GPU or pair, single ones changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

from read_box import facts_in, wired

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.missing import Json
from dgxcheck.profiles import library
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.keys import GroupedFacts, insert
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource

Facts = Mapping[str, Json]
GPUS = [f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a")]
"""Of a DGX-1, in NVML's order."""


def fact(value: Json, unit: str = "GB/s", **more: Json) -> Json:
    return {"value": value, "unit": unit, "method": "ce", "tool": "t 1", "how": "measured", "samples": [], **more}


def words(wrong: int = 0, **more: Json) -> Json:
    return fact(wrong, "words", checked=1 << 26, first=None if not wrong else 4096, **more)


def of_box(source: Source, profile: str = "auto") -> Box:
    facts = facts_in(source)
    topology = wired(facts)
    choice = library.select(profile, facts, topology)
    return Box(snapshot=facts, topology=topology, gpus=topology.gpus, choice=choice, boards=library.boards_for(choice))


def overlay(folder: Path, facts: Facts, base: str = "dgx-1-p100", of_box: Mapping[str, Json] = {}) -> str:
    """A file with these measurements on a box that ships, of which some facts are others."""
    path = folder / "measured.json"
    document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": {**of_box},
                "add": {f"measure {key}": facts[key] for key in facts}}  # fmt: skip
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def measured(folder: Path, facts: Facts, base: str = "dgx-1-p100", profile: str = "auto") -> Box:
    return of_box(open_source(overlay(folder, facts, base)), profile)


def imported(facts: Facts) -> Box:
    """Figures of a tool without a box."""
    lines: GroupedFacts = {}
    for key, value in facts.items():
        insert(lines, f"measure {key}", value)
    return of_box(RecordedSource(lines, Origin("recording")))


def found(box: Box, check: str) -> dict[str, Finding]:
    """By the names of its subject: ``GPU0``, ``GPU0 GPU3``, ``host``."""
    (wanted,) = [each for each in CHECKS if each.id == check]
    told = {}
    for finding in run(box, [wanted]):
        peer = finding.subject.peer
        told[" ".join(filter(None, (finding.subject.name, finding.subject.part, peer.name if peer else "")))] = finding
    return told


def said(box: Box, check: str) -> dict[str, str]:
    """Status and reason, by subject; what passed is left out."""
    told = found(box, check)
    ended = {key: " ".join([each.status.value, each.judgement.reason]).rstrip() for key, each in told.items()}
    return {key: status for key, status in ended.items() if status != "pass"}


P100_EDGES = {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (4, 5), (4, 6), (4, 7), (5, 6), (5, 7), (6, 7),
              (0, 4), (1, 5), (2, 6), (3, 7)}  # fmt: skip
"""Pairs of a DGX-1 P100 that an NVLink joins."""


RINGS = ((0, 1, 5, 4, 7, 6, 2, 3), (0, 2, 1, 3, 7, 5, 6, 4))


def host_copies(down: float = 12.2, up: float = 12.9) -> dict[str, Json]:
    return {f"{kind} {gpu}": fact(value) for gpu in GPUS for kind, value in
            (("host-to-device", down), ("device-to-host", up))}  # fmt: skip


def dgx1_p100() -> dict[str, Json]:
    """All that a good one gives."""
    facts = host_copies()
    for gpu in GPUS:
        facts[f"device-copy {gpu}"] = fact(510.5)
        facts[f"device-copy-sm {gpu}"] = fact(540.2)
        facts[f"memory-integrity {gpu}"] = words()
        facts[f"compute {gpu}"] = fact(9.1, "TFLOP/s", clock_mhz=1480)
    for a, b in permutations(range(8), 2):
        ends = f"{GPUS[a]} {GPUS[b]}"
        linked = (min(a, b), max(a, b)) in P100_EDGES
        facts[f"access {ends}"] = fact(linked, "")
        facts[f"p2p-integrity {ends}"] = words(by={"ce": 0, "sm": 0, "ping-pong": 0}, timed_out=False)
        staged = 9.4 if a // 2 == b // 2 else 10.4
        facts[f"p2p-off {ends}"] = fact(staged)
        facts[f"latency-off {ends}"] = fact(18.5, "us")
        if linked:
            facts[f"p2p {ends}"] = fact(18.41)
            facts[f"latency {ends}"] = fact(9.5, "us")
            facts[f"latency-sm {ends}"] = fact(700.0, "ns")
        if a < b:
            facts[f"p2p-off-both {ends}"] = fact(staged if a // 2 == b // 2 else 17.4)
            facts |= {f"p2p-both {ends}": fact(36.8)} if linked else {}
    for ring, order in enumerate(RINGS):
        facts[f"ring {ring} all"] = fact(36.1, order=[GPUS[n] for n in order], directions=2)
    return facts
