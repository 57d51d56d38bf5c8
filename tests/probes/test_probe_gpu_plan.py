"""What the probes read is what the NVML worker asks, and the other way round."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, permutations, product

from fake_nvml_source import INVALID, FakeNvml, Question
from nvml_probes import PROBES

import probes
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvml.quantities import GROUPS
from dgxcheck.source.protocol import Json, Source

GPUS = ("0000:06:00.0", "0000:07:00.0", "0000:0a:00.0")
PAIRS = [f"{a} {b}" for a, b in combinations(GPUS, 2)]
ORDERED = [f"{a} {b}" for a, b in permutations(GPUS, 2)]
LINKS, LINKS_UP, MEMORY_CLOCKS, PIDS = range(4), (0, 2), (877, 324), (11, 12)
ALWAYS = ("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
NOTHING: tuple[int, ...] = ()
SCOPES: dict[str, tuple[Iterable[str], Iterable[tuple[int, ...]]]] = {
    "system": ([""], [NOTHING]),
    "gpu": (GPUS, [NOTHING]),
    "position": (GPUS, [(link,) for link in (*LINKS, len(LINKS))]),
    "link": (GPUS, [(link,) for link in LINKS]),
    "link up": (GPUS, [(link,) for link in LINKS_UP]),
    "link 5": (GPUS, [(link,) for link in LINKS_UP]),
    "memory clock": (GPUS, [(clock,) for clock in MEMORY_CLOCKS]),
    "process": ([""], [(pid,) for pid in PIDS]),
    "pair": (PAIRS, [NOTHING]),
    "ordered pair": (ORDERED, [NOTHING]),
}
"""Subjects, and the arguments that come before those of the call."""
PLAN = {(call.function, call.args, call.scope) for calls in GROUPS.values() for call in calls}


def answer(function: str, subject: str, args: tuple[int, ...]) -> Json | Missing:
    """Everything is answered: lists and structs where the next question depends on them, else 1."""
    processes: list[Json] = [{"pid": pid, "usedGpuMemory": 1} for pid in PIDS]
    match function, args:
        case "nvmlInit", ():
            return True
        case "nvmlDeviceGetCount", ():
            return len(GPUS)
        case "nvmlDeviceGetHandleByIndex", (index,):
            return GPUS[index]
        case "nvmlDeviceGetNvLinkState", (link,):
            return INVALID if link not in LINKS else int(link in LINKS_UP)
        case "nvmlDeviceGetNvLinkVersion", _:
            return 7
        case "nvmlDeviceGetSupportedMemoryClocks", ():
            return list(MEMORY_CLOCKS)
        case (("nvmlDeviceGetComputeRunningProcesses" | "nvmlDeviceGetGraphicsRunningProcesses"), ()):
            return processes
        case _:
            return 1


def asked_by(probe: Callable[[Source], object]) -> set[Question]:
    source = FakeNvml(answer)
    probe(source)
    return {question for question in source.asked if question[0] not in ALWAYS}


def expected() -> set[Question]:
    """Every question that the worker asks of this machine."""
    return {
        (function, subject, (*first, *args))
        for function, args, scope in PLAN
        for subject, first in product(*SCOPES[scope])
    }


def test_every_question_is_in_the_plan() -> None:
    for probe in PROBES:
        assert asked_by(probe) - expected() == set(), probe.__name__


def test_everything_in_the_plan_is_asked_by_a_probe() -> None:
    assert expected() - set().union(*(asked_by(probe) for probe in PROBES)) == set()


def test_no_probe_is_left_out() -> None:
    listed = {name for name, module in probes.MODULES.items() if module.startswith("gpu.")}
    assert {probe.__name__ for probe in PROBES} == listed


def test_a_probe_needs_no_other_to_have_run() -> None:
    for probe in PROBES:
        source = FakeNvml(answer)
        probe(source)
        assert source.asked[0] == ("nvmlInit", "", ())
