"""Results of many machines: those of shipped recordings under other names, with noise on their figures and faults."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from dgxcheck.assessment.health import assess
from dgxcheck.checks.engine.run import EXIT_CODES
from dgxcheck.output.health.for_programs import jsonl
from dgxcheck.output.report import HealthReport

HEALTHY = ("dgx-1-v100", "dgx-a100", "dgx-2", "k80-x8")
FAULTY = {"dgx-1-v100": "dgx-1-v100-bar1-small", "dgx-a100": "dgx-a100-sram-threshold", "dgx-2": "dgx-2-nvlink-slow",
          "k80-x8": "k80-x8-odd-auto-boost"}  # fmt: skip
NOISE, SHARE_OF_FAULTS = 0.01, 0.05
Document = dict[str, Any]


@cache
def line_of(spec: str) -> str:
    """The result of a shipped recording, judged once."""
    assessment = assess(spec)
    return jsonl.render(HealthReport(assessment=assessment, exit_code=EXIT_CODES[assessment.verdict]))


def result(spec: str, **members: Any) -> Document:
    """The result of a shipped recording, with other members; each host is a machine of its own."""
    document, host = json.loads(line_of(spec)), members.get("host")
    if host:
        parts = [{**part, "serial": f"{part['serial']} {host}"} for part in document["parts"]]
        document = {**document, "boot_id": f"boot of {host}", "parts": parts}
    return {**document, **members}


def fleet(count: int, seed: int = 1) -> Iterator[tuple[Document, str]]:
    """Results of ``count`` machines, each with what was planted: nothing, ``figure KEY`` or ``fault``.

    Healthy ones have 1 % of noise (one standard deviation) on every figure; of the others one half has one figure 30 %
    lower, the other half is the result of a recording with a fault.
    """
    draw = random.Random(seed)
    for number in range(count):
        box = draw.choice(HEALTHY)
        sick = draw.random() < SHARE_OF_FAULTS
        slow = sick and draw.random() < 0.5
        document = copy.copy(_parsed(FAULTY[box] if sick and not slow else box))
        passed: dict[str, Any] = {key: value and value * draw.gauss(1, NOISE)
                                  for key, value in document["passed"].items()}  # fmt: skip
        planted = "fault" if sick else ""
        if slow:
            key = draw.choice([key for key, value in passed.items() if value])
            passed[key] *= 0.7
            planted = f"figure {key}"
        yield {**document, "host": f"node{number:05}", "passed": passed}, planted


@cache
def _parsed(spec: str) -> Document:
    return result(spec)


def node_program(folder: Path, script: str) -> Path:
    """What stands for dgxcheck on nodes: a shell script that prints ``FOLDER/well.json`` or ``FOLDER/sick.json``."""
    for name, spec in (("well", "dgx-1-v100"), ("sick", "dgx-1-v100-bar1-small")):
        (folder / f"{name}.json").write_text(json.dumps(result(spec)) + "\n")
    program = folder / "node.sh"
    program.write_text(script.replace("FOLDER", str(folder)))
    program.chmod(0o755)
    return program
