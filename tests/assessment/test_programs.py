"""Programs on GPUs by user and command, and the host while its GPUs are under load."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from report_of import EMPTY, report_of

from dgxcheck.assessment import assess, host_use
from dgxcheck.assessment.host_use import HostLoad, HostWatch, Program, programs
from dgxcheck.assessment.progress import SILENT, HostNow, Progress
from dgxcheck.checks.engine.finding import Finding, Judgement, Subject, skip
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.gpu import GpuActivity, GpuProcess
from dgxcheck.facts.record import replace
from dgxcheck.output.health import text
from dgxcheck.output.health.for_programs import as_json

BOX = assess("dgx-1-v100")
GPU = BOX.topology.gpus[2]
NOTHING = Missing(Gap.UNSUPPORTED, "")
SUBJECT = Subject(kind="gpu", name=GPU.name, bdf=GPU.bdf)


@pytest.fixture
def sleeper(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours, in what passes for the host's pid namespace."""
    monkeypatch.setattr(host_use, "_INIT_PID_NAMESPACE", os.readlink("/proc/self/ns/pid"))
    script = "import time; print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script, "an argument"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # while it begins, its command line can be empty
        yield process
        process.kill()


def activity(*pids: int) -> tuple[GpuActivity, ...]:
    listed = tuple(GpuProcess(pid=pid, used_memory=1 << 30, name="/usr/bin/python3") for pid in pids)
    row = GpuActivity(bdf=str(GPU.bdf), gpu_percent=5, memory_percent=0, compute=listed, graphics=listed[:1])
    return (row, replace(row, bdf="0000:ff:00.0"))


def test_user_and_command_of_a_process(sleeper: subprocess.Popen[bytes]) -> None:
    (found,) = programs(BOX.topology.gpus, activity(sleeper.pid), time.time())
    assert (found.gpu, found.bdf, found.pid, found.gpu_memory) == (GPU.name, GPU.bdf, sleeper.pid, 1 << 30)
    assert found.user == getpass.getuser()
    assert isinstance(found.command, str)
    assert found.command.endswith("an argument")


def test_a_process_that_has_ended_or_whose_pid_was_given_anew_has_no_name(sleeper: subprocess.Popen[bytes]) -> None:
    started = psutil.Process(sleeper.pid).create_time()
    (later,) = programs(BOX.topology.gpus, activity(sleeper.pid), started - 10)
    sleeper.kill()
    sleeper.wait()
    (ended,) = programs(BOX.topology.gpus, activity(sleeper.pid), time.time())
    for found in (later, ended):
        assert isinstance(found.user, Missing)
        assert (found.user.gap, found.name) == (Gap.ABSENT, "/usr/bin/python3")


def test_what_may_not_be_read_is_denied(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(process: psutil.Process) -> None:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "cmdline", denied)
    (found,) = programs(BOX.topology.gpus, activity(sleeper.pid), time.time())
    assert isinstance(found.command, Missing)
    assert found.command.gap is Gap.DENIED


def test_a_container_names_no_process_by_a_pid_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_use, "_INIT_PID_NAMESPACE", "pid:[1]")
    (found,) = programs(BOX.topology.gpus, activity(os.getpid()), time.time())
    assert isinstance(found.user, Missing)
    assert found.user.gap is Gap.UNSUPPORTED


def test_no_list_names_nothing() -> None:
    assert programs(BOX.topology.gpus, Missing(Gap.LOST, "x"), 0.0) == ()
    assert BOX.programs == ()
    assert BOX.host_load is None


def finding(judgement: Judgement) -> Finding:
    return Finding(id="measure.compute", subject=SUBJECT, judgement=judgement, source="", remedy="")


def program(**members: Any) -> Program:
    given: dict[str, Any] = {"gpu": "GPU2", "bdf": str(GPU.bdf), "pid": 4711, "gpu_memory": 3 << 30, "name": "python3",
             "user": "alice", "command": "python train.py\x1b[2J"}  # fmt: skip
    return Program(**given | members)


def test_programs_are_listed_where_a_gpu_is_busy() -> None:
    busy = finding(skip("busy", "1 compute process"))
    idle = finding(skip("not-configured", "x"))
    listed = text.render(report_of([busy], programs=(program(), program(user=NOTHING, command=NOTHING))))
    assert f"  GPU2  {GPU.bdf}  pid 4711  user alice  3072 MiB  python train.py" in listed
    assert "user ?      3072 MiB  python3\n" in listed
    assert "\x1b" not in listed
    assert "4711" not in text.render(report_of([idle], programs=(program(),)))
    assert "  and 4 more\n" in text.render(report_of([busy], programs=(program(),) * 20))


def test_the_host_is_looked_at_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    percents, free = iter((50.0, 20.0, 90.0, 30.0)), iter((500, 300, 100, 400))
    monkeypatch.setattr(psutil, "cpu_percent", lambda: next(percents))
    monkeypatch.setattr(psutil, "getloadavg", lambda: (3.5 + now[0], 0.0, 0.0))
    memory = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory._replace(total=503 << 30, available=next(free) << 30))
    watch = HostWatch(SILENT, lambda: now[0])
    for at in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0):
        now[0] = at
        watch.look()
    load = watch.load
    assert isinstance(load, HostLoad)
    assert (load.load_before, load.cpu_percent_max, load.memory_available_min >> 30) == (3.5, 90.0, 100)
    shown = text.render(report_of([], host_load=load))
    assert "CPUs up to 90 % busy (load average 3.5 on" in shown
    assert "at least 100.0 of 503.0 GiB memory available" in shown
    document = json.loads(as_json.render(report_of([], host_load=load, programs=(program(user=NOTHING),))))
    assert document["host_load"]["memory_available_min_bytes"] == 100 << 30
    assert (document["programs"][0]["user"], document["programs"][0]["user_reason"]) == (None, "unsupported")


def test_without_psutil_the_report_says_so(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    watch = HostWatch(SILENT)
    watch.look()
    report = report_of([], host_load=watch.load)
    assert "Host under load: not watched: psutil is not installed\n" in text.render(report)
    document = json.loads(as_json.render(report))
    assert (document["host_load"], document["host_load_reason"]) == (None, "unsupported: psutil is not installed")
    (listed,) = programs(BOX.topology.gpus, activity(sleeper.pid), time.time())
    assert isinstance(listed.user, Missing)
    assert listed.command == listed.user


def test_what_is_seen_of_the_host_is_shown() -> None:
    seen: list[HostNow] = []

    class Shown(Progress):
        def host(self, now: HostNow) -> None:
            seen.append(now)

    watch = HostWatch(Shown())
    watch.look()
    watch.look()
    assert isinstance(watch.load, HostLoad)
    assert [now.memory_total for now in seen] == [watch.load.memory_total]


def test_a_recording_asks_psutil_nothing() -> None:
    code = "import sys; from dgxcheck.assessment import assess; assess('dgx-1-v100'); print('psutil' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    assert EMPTY.programs == ()
