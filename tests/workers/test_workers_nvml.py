"""NVML through its workers: what hangs, dies or errs costs its own answers alone, and nothing is waited for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from clock import SPARE
from live_box import Box
from sample import swept
from standin.boxes import A, B, full_box
from standin.nvml import environment, read_calls, write_answers

from dgxcheck.facts.missing import NO_WORKER, Gap, Json, Missing
from dgxcheck.facts.nvml.quantities import GROUPS
from dgxcheck.workers import stream, supervisor
from dgxcheck.workers.nvml import supervisor as nvml
from dgxcheck.workers.nvml.binding import MOST_PROCESSES, gap
from dgxcheck.workers.nvml.plan import TOPOLOGY
from dgxcheck.workers.nvml.supervisor import NvmlStage
from dgxcheck.workers.supervisor import init_limit, silence_limit

C = "0000:0b:00.0"
INIT, COUNT = ["tell", "nvml nvmlInit", True], ["tell", "nvml nvmlDeviceGetCount", 3]
HANDLES = [["tell", f"nvml nvmlDeviceGetHandleByIndex {i}", bdf] for i, bdf in enumerate((A, B, C))]
NAMES = [["tell", f"nvml nvmlDeviceGetName {bdf}", "x"] for bdf in (A, B, C)]
HANG: list[Json] = ["hang"]
Play = Callable[..., NvmlStage]


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory of its own for the list of workers left behind."""
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """A finished stage whose children follow scripts, by the units of their plan."""
    stages: list[NvmlStage] = []

    def finished(deadline: float = 4, **scripts: list[list[Json]]) -> NvmlStage:
        by_units = {"*": [], **{json.dumps(_units(key)): steps for key, steps in scripts.items()}}
        monkeypatch.setenv("WORKER_DOUBLE", json.dumps(by_units))
        monkeypatch.setattr(nvml, "MODULE", "worker_double")
        stages.append(NvmlStage(TOPOLOGY, deadline))
        stages[-1].finish()
        return stages[-1]

    yield finished
    for stage in stages:
        stage.stop()


def _units(key: str) -> Json:
    return None if key == "first" else [int(key[3:]) if key.startswith("gpu") else key]


def ask(question: str) -> list[Json]:
    return ["ask", f"nvml {question}"]


def answers(stage: NvmlStage) -> dict[str, Json]:
    return {key.removeprefix("nvml "): json.loads(text) for key, text in stage.answers.items()}


def late(detail: str) -> Json:
    return {"missing": "timeout", "detail": detail}


def test_limits_are_those_of_the_design() -> None:
    assert [(init_limit(d), silence_limit(d)) for d in (60, 28, 8, 4)] == [(57, 5), (25, 5), (5, 2), (2, 1)]


def test_one_child_answers_all(play: Play) -> None:
    stage = play(first=[INIT, COUNT, *HANDLES, *NAMES])
    assert answers(stage)[f"nvmlDeviceGetName {C}"] == "x"
    assert stage.missing(f"nvml nvmlDeviceGetUUID {C}", C) == Missing(Gap.UNASKED, f"nvmlDeviceGetUUID {C}")


def test_a_gpu_that_hangs_costs_its_own_answers(play: Play) -> None:
    stage = play(
        first=[INIT, COUNT, *HANDLES, NAMES[0], ask(f"nvmlDeviceGetName {B}"), HANG],
        gpu1=[INIT, HANDLES[1], ask(f"nvmlDeviceGetUUID {B}"), HANG],
        gpu2=[INIT, HANDLES[2], NAMES[2]],
        pairs=[INIT, *HANDLES, ["tell", f"nvml nvmlDeviceGetTopologyCommonAncestor {A} {C}", 10]],
    )
    told = answers(stage)
    assert told[f"nvmlDeviceGetName {B}"] == told[f"nvmlDeviceGetUUID {B}"] == late("no answer for 1 s")
    assert told[f"nvmlDeviceGetName {C}"] == "x"
    assert told[f"nvmlDeviceGetTopologyCommonAncestor {A} {C}"] == 10
    why = f"given up after nvmlDeviceGetName {B}: no answer for 1 s"
    for key, subject in ((f"nvmlDeviceGetSerial {B}", B), (f"nvmlDeviceGetTopologyCommonAncestor {A} {B}", f"{A} {B}")):
        assert stage.missing(f"nvml {key}", subject) == Missing(Gap.TIMEOUT, key, why)


def test_a_handle_that_hangs_leaves_the_other_gpus_and_the_system(play: Play) -> None:
    """All handles are asked for before anything else: nothing but handles was answered by then."""
    version = "nvmlSystemGetDriverVersion"
    stage = play(
        first=[INIT, COUNT, HANDLES[0], ask("nvmlDeviceGetHandleByIndex 1"), HANG],
        system=[INIT, ["tell", f"nvml {version}", "550"]],
        gpu0=[INIT, HANDLES[0], NAMES[0]],
        gpu2=[INIT, HANDLES[2], NAMES[2]],
        pairs=[INIT, HANDLES[0], HANDLES[2]],
    )
    told = answers(stage)
    assert told["nvmlDeviceGetHandleByIndex 1"] == late("no answer for 1 s")
    assert (told[version], told[f"nvmlDeviceGetName {A}"], told[f"nvmlDeviceGetName {C}"]) == ("550", "x", "x")


def test_a_driver_that_hangs_only_afterwards_takes_no_answer_back(play: Play) -> None:
    """After the first hang the driver lets nobody in any more: ``nvmlInit`` and handles were answered before."""
    stage = play(
        first=[INIT, COUNT, *HANDLES, NAMES[0], ask(f"nvmlDeviceGetName {B}"), HANG],
        gpu1=[ask("nvmlInit"), HANG],
        gpu2=[INIT, ask("nvmlDeviceGetHandleByIndex 2"), HANG],
        pairs=[["tell", "nvml nvmlInit", {"missing": "garbled", "detail": "NVML 999: unknown error"}]],
    )
    told = answers(stage)
    assert told["nvmlInit"] is True
    assert [told[f"nvmlDeviceGetHandleByIndex {i}"] for i in range(3)] == [A, B, C]
    assert told[f"nvmlDeviceGetName {A}"] == "x"
    name = f"nvmlDeviceGetName {C}"
    why = "given up after nvmlDeviceGetHandleByIndex 2: no answer for 1 s"
    assert stage.missing(f"nvml {name}", C) == Missing(Gap.TIMEOUT, name, why)
    pair = f"nvmlDeviceGetTopologyCommonAncestor {A} {C}"
    said = "when called again, nvmlInit failed: NVML 999: unknown error"
    assert stage.missing(f"nvml {pair}", f"{A} {C}") == Missing(Gap.GARBLED, pair, said, 999)


def test_a_gpu_that_is_lost_on_the_way_keeps_what_it_said(play: Play) -> None:
    lost: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
    stage = play(
        first=[INIT, COUNT, *HANDLES, *NAMES, ask(f"nvmlDeviceGetUUID {C}"), ["die", "SIGBUS"]],
        gpu2=[INIT, ["tell", "nvml nvmlDeviceGetHandleByIndex 2", lost]],
    )
    told = answers(stage)
    assert told["nvmlDeviceGetHandleByIndex 2"] == C
    assert told[f"nvmlDeviceGetName {C}"] == "x"
    assert told[f"nvmlDeviceGetUUID {C}"] == late("died: SIGBUS")


@pytest.mark.parametrize("last", [[ask("nvmlInit"), HANG], [INIT, ask("nvmlDeviceGetCount"), HANG]])
def test_without_a_list_of_gpus_nothing_more_is_tried(play: Play, last: list[list[Json]]) -> None:
    before = time.monotonic()
    stage = play(deadline=2, first=last)
    assert time.monotonic() - before < 2 + SPARE
    asked = str(last[-2][1]).removeprefix("nvml ")
    gone = stage.missing(f"nvml nvmlDeviceGetName {A}", A)
    assert (gone.gap, gone.detail.partition(":")[0]) == (Gap.TIMEOUT, f"given up after {asked}")


def test_a_garbled_count_is_not_so_many_questions(play: Play) -> None:
    before = time.monotonic()
    count: list[Json] = ["tell", "nvml nvmlDeviceGetCount", 4_000_000_000]
    stage = play(first=[INIT, count, ask("nvmlSystemGetDriverVersion"), ["die", "SIGSEGV"]])
    assert time.monotonic() - before < 4 + SPARE
    assert answers(stage)["nvmlSystemGetDriverVersion"] == late("died: SIGSEGV")


def meet(monkeypatch: pytest.MonkeyPatch, library: Path, table: Path, *faults: str) -> Path:
    """Make this library with these faults the NVML of workers of this process; where its calls are listed."""
    calls = table.with_name("calls")
    for name, value in environment(library, table, faults=faults, calls=calls, base={}).items():
        monkeypatch.setenv(name, value)
    return calls


def test_one_that_cannot_be_killed_is_not_waited_for_and_the_next_run_starts_none(
    served: Callable[..., Box], standin: Path, monkeypatch: pytest.MonkeyPatch, run: Path
) -> None:
    box = served("dgx-1-v100")
    calls = meet(monkeypatch, standin, box.answers, "hang nvmlInit")
    pids: list[int] = []
    before = time.monotonic()
    first = NvmlStage(TOPOLOGY, 2, pids.append)
    first.finish()
    first.stop()
    assert time.monotonic() - before < 2 + SPARE
    meet(monkeypatch, standin, box.answers)
    asked = len(read_calls(calls))
    since = (run / "dgxcheck" / "left-behind").read_text().split()[2]
    said = f"an earlier worker (pid {pids[0]}) has been stuck in the driver since {since}"
    second = NvmlStage(TOPOLOGY)
    second.finish()
    assert answers(second) == {"nvmlInit": late(said)}
    ran = box.live(box.environment(standin, XDG_RUNTIME_DIR=str(run)), "topo", "-m")
    assert f"(nvmlInit: {said})" in ran.out
    assert ran.code == 3
    assert len(read_calls(calls)) == asked
    os.kill(pids[0], signal.SIGKILL)
    os.waitpid(pids[0], 0)
    third = NvmlStage(TOPOLOGY)
    third.finish()
    third.stop()
    assert answers(third)["nvmlInit"] is True


@pytest.mark.in_ci
def test_eight_gpus_that_hang_and_cannot_be_killed_end_in_time(
    served: Callable[..., Box], standin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = served("dgx-1-v100", 8)
    meet(monkeypatch, standin, box.answers, "hang nvmlDeviceGetNvLinkState")
    pids: list[int] = []
    before = time.monotonic()
    stage = NvmlStage(TOPOLOGY, 3, pids.append)
    stage.finish()
    stage.stop()
    taken = time.monotonic() - before
    for pid in pids:
        with suppress(ProcessLookupError, ChildProcessError):  # one that was only starting ends by itself
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert taken < 4 + SPARE
    assert answers(stage)["nvmlDeviceGetCount"] == 8


def test_a_deadline_without_a_free_cpu_says_nothing_of_the_driver(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    monkeypatch.setattr(supervisor, "waited_for_cpu", lambda pid: 0.8 * (time.monotonic() - began))
    monkeypatch.setattr(stream.Worker, "excused", lambda worker: True)
    stage = play(first=[INIT, COUNT, *HANDLES, NAMES[0], ask(f"nvmlDeviceGetName {B}"), HANG])
    why = "the host had no CPU free for most of the deadline of 4 s"
    assert answers(stage)[f"nvmlDeviceGetName {B}"] == {"missing": "timeout", "detail": why, "code": NO_WORKER}
    where = f"nvmlDeviceGetUUID {C}"
    assert stage.missing(f"nvml {where}", C) == Missing(Gap.TIMEOUT, where, why, NO_WORKER)


PIPED = """
import sys
from dgxcheck.cli import main
from dgxcheck.workers.nvml.supervisor import NvmlStage
from dgxcheck.workers.nvml.plan import TOPOLOGY
import os
os._exit(main(["topo", "-m", "--deadline", "2"], NvmlStage(TOPOLOGY, 2, lambda pid: None), sys.argv[1]))
"""


def test_a_pipe_ends_with_the_command_though_a_worker_lives_on(
    served: Callable[..., Box], standin: Path, run: Path
) -> None:
    """``dgxcheck topo | cat`` returns: no child holds the pipe."""
    box = served("dgx-1-v100", 1)
    given = box.environment(standin, "hang nvmlInit", XDG_RUNTIME_DIR=str(run))
    before = time.monotonic()
    line = f"'{sys.executable}' -c '{PIPED}' '{box.tree}' | cat"
    ran = subprocess.run(line, shell=True, env=given, capture_output=True, text=True, timeout=20, check=True)  # noqa: S602 -- its pipe is tested
    assert time.monotonic() - before < 2 + 1 + 1.5 + SPARE
    assert "(nvmlInit: no" in ran.stdout  # "no answer for 1 s"; "not answered within" where no CPU was free
    pid = int((run / "dgxcheck" / "left-behind").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)


CODES = (*range(1, 30), 999)
REACHED_FIRST = ("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
AFTER_ANOTHER = ("link", "link up", "memory clock", "process", "system")
DEPENDENT = sorted({call.function for group in GROUPS.values() for call in group if call.scope in AFTER_ANOTHER})
WALKS = """
import json, os, sys
os.dup2(1, 3)
from dgxcheck.workers.nvml.walk import walk
for fault in json.load(sys.stdin):
    os.environ["NVML_STANDIN_FAULT"] = fault
    os.write(3, f"fault\\t{json.dumps(fault)}\\n".encode())
    walk({"groups": sys.argv[1:], "units": None, "known": {}, "avoid": []})
"""
"""Many walks in one process; the stand-in takes up its faults with every nvmlInit."""


@pytest.mark.in_ci
@pytest.mark.parametrize("part", swept(range(3), 3))
def test_every_error_code_in_every_call_is_a_gap_of_that_call_alone(part: int, standin: Path, tmp_path: Path) -> None:
    write_answers(full_box(), tmp_path / "table")
    targets = ("*", *REACHED_FIRST, *DEPENDENT)
    faults = ["", *[f"error {code} {target}" for target in targets for code in CODES][part::3]]
    ran = subprocess.run(
        (sys.executable, "-c", WALKS, *GROUPS),
        env=environment(standin, tmp_path / "table"), input=json.dumps(faults),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    told: dict[str, dict[str, Json]] = {}
    for line in ran.stdout.splitlines():
        key, tab, text = line.partition("\t")
        if key == "fault":
            walk = told.setdefault(json.loads(text), {})
        elif tab:
            assert key not in walk, "a question is answered once"
            walk[key] = json.loads(text)
    assert ran.stdout.splitlines().count("done") == len(faults) == len(told)
    healthy = told[""]
    for fault in faults[1:]:
        _, code, target = fault.split(" ")
        expected = gap("", int(code))
        for key, value in told[fault].items():
            function, handles = key.split(" ")[1], ":" in key
            hit = function == target or (target == "*" and handles)
            if key == "nvml nvmlDeviceGetHandleByIndex 2":
                continue  # lost at any rate
            if hit:
                assert isinstance(value, dict), (fault, key)
                assert (value["missing"], value["detail"]) == (expected.gap.value, expected.detail), (fault, key)
            elif target != "*":
                assert value == healthy[key], (fault, key)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(2, "unsupported"), (3, "unsupported"), (13, "unsupported"), (4, "denied"), (15, "lost"), (16, "lost"),
     (10, "timeout"), (6, "absent"), (9, "absent"), (12, "absent"), (18, "garbled"), (999, "garbled"), (7, "garbled")],
)  # fmt: skip
def test_what_an_error_code_means(code: int, kind: str) -> None:
    assert gap("nvmlInit", code).gap.value == kind


def test_a_list_of_processes_that_never_fits_ends(standin: Path, tmp_path: Path) -> None:
    """Each try has sixteen times the room of the one before; a driver that wants ever more is not believed."""
    write_answers(full_box(), tmp_path / "table")
    calls = tmp_path / "calls"
    given, fault = environment(standin, tmp_path / "table", calls=calls), "error 7 nvmlDeviceGetComputeRunningProcesses"
    subprocess.run(
        (sys.executable, "-c", WALKS, "activity"), env=given, input=json.dumps([fault]),
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    asked = [call.question for call in read_calls(calls)]
    assert asked.count(f"nvmlDeviceGetComputeRunningProcesses {A}") == 3
    assert MOST_PROCESSES == 64 * 16**2
