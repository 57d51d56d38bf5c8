"""A burn-in on a served box with both stand-ins: it reports what was seen, whatever ends it."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from live_box import Box, Ran, finished, serve, shipped, with_gpus
from sample import swept
from standin import cuda
from test_live_signals import workers_of

from dgxcheck.facts.missing import Json
from dgxcheck.measure.burn_in.hot_plug import HotPlug

GPU0, GPU1 = "0000:06:00.0", "0000:07:00.0"
BURN = ("health", "--profile", "none", "--only", "measure.burn-in", "--format", "json", "-t", "10")
LONG = ("--duration", "2m")
PACE = "pace 50\n"
"""Milliseconds that the stand-in sleeps at each wait for a GPU, so that other tests have the cores meanwhile."""


class Burning(NamedTuple):
    """A box with two GPUs that can be loaded, and where the files of a run are."""

    box: Box
    environment: dict[str, str]
    log: Path
    ledger: Path

    def run(self, *more: str, seconds: float = 60) -> Ran:
        return self.box.live(self.environment, *BURN, "-l", str(self.log), *more, seconds=seconds)

    def events(self) -> list[dict[str, Any]]:
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines() if line]

    def happened(self, what: str) -> list[dict[str, Any]]:
        return [event for event in self.events() if event["event"] == what]

    def wait(self, what: str, times: int = 1) -> None:
        until = time.monotonic() + 60
        while len(self.happened(what)) < times and time.monotonic() < until:
            time.sleep(0.1)
        assert self.happened(what)


def burning(
    folder: Path, nvml: Path, library: Path, *faults: str, facts: dict[str, dict[str, Json]] | None = None
) -> Burning:
    """Two GPUs of a DGX-1 with little memory; ``faults`` of CUDA, ``facts`` of NVML that differ."""
    document = with_gpus(shipped("dgx-1-v100"), 2)
    lines = document["facts"]
    assert isinstance(lines, dict)
    document["facts"] = {**lines, **{line: {**_group(lines.get(line)), **new} for line, new in (facts or {}).items()}}
    box = serve(document, folder)
    (folder / "cuda-box").write_text(cuda.dgx1_v100(2, 800).text(*faults) + PACE, encoding="utf-8")
    ledger = folder / "ledger"
    environment = cuda.environment(library, folder / "cuda-box", base=box.environment(nvml), ledger=ledger)
    return Burning(box, environment, folder / "log", ledger)


def _group(group: Json) -> dict[str, Json]:
    return group if isinstance(group, dict) else {}


def findings(ran: Ran) -> dict[str | None, dict[str, Any]]:
    document: dict[str, Any] = ran.json
    return {each["subject"]["bdf"]: each for each in document["findings"] if each["id"] == "measure.burn-in"}


def statuses(ran: Ran) -> dict[str | None, str]:
    return {bdf: each["status"] for bdf, each in findings(ran).items()}


def test_a_healthy_box_passes_and_everything_is_given_back(tmp_path: Path, standin: Path, cuda_library: Path) -> None:
    made = burning(tmp_path, standin, cuda_library)
    ran = made.run("--duration", "2s")
    assert (ran.code, ran.err) == (0, "")
    assert statuses(ran) == {GPU0: "pass", GPU1: "pass", None: "pass"}
    seen = findings(ran)[GPU0]["evidence"][0]["value"]
    assert seen["cycles"] >= 1
    assert seen["wrong"] == 0
    assert seen["peer"] == GPU1
    assert seen["memory_bytes"] >= 128 << 20
    assert (seen["temperature_max"], seen["slowdown_at"]) == (37, 87)
    assert seen["sm_clock"] == {"min": 135, "median": 135}
    assert set(cuda.read_ledger(made.ledger).values()) == {0}
    samples = made.happened("sample")
    assert samples
    assert samples[-1]["gpus"][GPU1]["temperature"] == 40
    assert samples[0]["under_load_s"] <= 0
    assert [event["text"] for event in made.happened("started")] == ["GPUs under load: 2"]


@pytest.mark.in_ci
def test_the_usual_report_goes_to_its_file_beside_the_lines(tmp_path: Path, standin: Path, cuda_library: Path) -> None:
    made = burning(tmp_path, standin, cuda_library, "wrong-memory 1 1000000")
    ran = made.run("--duration", "2s", "-o", str(tmp_path / "report"))
    assert (ran.code, ran.out) == (2, "")
    report = Ran(ran.code, (tmp_path / "report").read_text(encoding="utf-8"), "", 0)
    assert statuses(report) == {GPU0: "pass", GPU1: "fail", None: "pass"}
    assert made.happened("wrong-words")[0]["gpu"] == GPU1


@pytest.mark.in_ci
@pytest.mark.parametrize(
    ("fault", "bad", "said"),
    swept([
        ("wrong 0 1 100", {GPU0}, "wrong words under load"),
        ("wrong-compute 1 639", {GPU1}, "wrong words under load, in turn power"),
        ("crash dgx_fma 1", {GPU1}, "load ended: died: SIGSEGV in turn power"),
        ("error cuMemcpyDtoHAsync 214 0", {GPU0}, "CUDA_ERROR_ECC_UNCORRECTABLE: cuMemcpyDtoHAsync_v2"),
        ("error cuMemcpyDtoDAsync 220 0 1", {GPU0, GPU1}, "CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    ], 5),
)  # fmt: skip
def test_a_fault_is_told_of_its_gpu(
    fault: str, bad: set[str], said: str, tmp_path: Path, standin: Path, cuda_library: Path
) -> None:
    ran = burning(tmp_path, standin, cuda_library, fault).run("--duration", "2s")
    assert ran.code == 2
    found = findings(ran)
    assert {bdf for bdf, each in found.items() if each["status"] == "fail"} == bad
    assert {each["status"] for bdf, each in found.items() if bdf not in bad} == {"pass"}
    assert all(said in found[bdf]["message"] for bdf in bad), [found[bdf]["message"] for bdf in bad]


@pytest.mark.in_ci
def test_a_gpu_that_hangs_stops_no_other(tmp_path: Path, standin: Path, cuda_library: Path) -> None:
    made = burning(tmp_path, standin, cuda_library, "hang cuMemcpyHtoDAsync 1")
    ran = made.run("--duration", "2s", "-t", "4")
    assert ran.code == 2
    assert statuses(ran) == {GPU0: "pass", GPU1: "fail", None: "pass"}
    assert "hung: no answer for" in findings(ran)[GPU1]["message"]
    assert findings(ran)[GPU1]["message"].endswith("in turn host")


def test_a_hot_gpu_is_not_loaded_at_all(tmp_path: Path, standin: Path, cuda_library: Path) -> None:
    hot: dict[str, dict[str, Json]] = {f"nvml nvmlDeviceGetTemperature {GPU1}": {"0": 84}}
    made = burning(tmp_path, standin, cuda_library, facts=hot)
    ran = made.run(*LONG)
    assert ran.code == 2
    assert statuses(ran) == {GPU0: "skip", GPU1: "fail", None: "skip"}
    assert "84 °C, slowdown at 87 °C" in findings(ran)[GPU1]["message"]
    assert [event["gpu"] for event in made.happened("stopped")] == [GPU1]


def test_a_gpu_with_a_job_is_left_alone(tmp_path: Path, standin: Path, cuda_library: Path) -> None:
    job: list[Json] = [{"pid": 4711, "usedGpuMemory": 1 << 30}]
    at_work: dict[str, dict[str, Json]] = {f"nvml nvmlDeviceGetComputeRunningProcesses {GPU1}": {"": job}}
    made = burning(tmp_path, standin, cuda_library, facts=at_work)
    running = made.box.start(made.environment, *BURN, "-l", str(made.log), *LONG, "-t", "1")
    made.wait("started")
    assert [event["text"] for event in made.happened("started")] == ["GPUs under load: 1"]
    running.process.send_signal(signal.SIGTERM)
    found = findings(finished(running, 60))
    assert (found[GPU1]["status"], found[GPU1]["reason"]) == ("skip", "busy")
    assert "1 compute process" in found[GPU1]["message"]


@pytest.mark.in_ci
def test_an_xid_ends_the_load(tmp_path: Path, standin: Path, cuda_library: Path) -> None:
    made = burning(tmp_path, standin, cuda_library)
    running = made.box.start(made.environment, *BURN, "--only", "kernel", "-l", str(made.log), *LONG)
    made.wait("started")
    with (made.box.tree / "dev/kmsg").open("a", encoding="utf-8") as log:
        log.write("6,99999,9000000000,-;NVRM: Xid (PCI:0000:07:00): 48, pid=7, An uncorrectable double bit error\n")
    ran = finished(running, 60)
    assert ran.code == 2
    found = statuses(ran)
    assert (found[GPU1], found[None]) == ("fail", "skip")
    assert found[GPU0] in ("pass", "skip")
    assert "Xid 48 in the kernel log" in findings(ran)[GPU1]["message"]
    document: dict[str, Any] = ran.json
    (xid,) = [each for each in document["findings"] if each["id"] == "kernel.xid" and each["subject"]["bdf"] == GPU1]
    assert xid["status"] == "fail"


@pytest.mark.in_ci
@pytest.mark.parametrize("number", swept([signal.SIGINT, signal.SIGTERM], 2, first=1))
def test_what_was_seen_is_told_when_it_is_interrupted(
    number: signal.Signals, tmp_path: Path, standin: Path, cuda_library: Path
) -> None:
    made = burning(tmp_path, standin, cuda_library)
    running = made.box.start(made.environment, *BURN, "-l", str(made.log), *LONG)
    made.wait("started")
    made.wait("sample", 4)
    children = workers_of(running.process.pid)
    assert len(children) >= 3
    running.process.send_signal(number)
    ran = finished(running, 60)
    assert (ran.code, ran.err) == (3, "")
    found = findings(ran)
    assert found[None]["status"] == "unknown"
    assert found[None]["message"].endswith("stopped: interrupted")
    assert {found[bdf]["status"] for bdf in (GPU0, GPU1)} <= {"pass", "skip"}
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.in_ci
def test_an_error_of_an_interrupted_run_is_still_a_fail(tmp_path: Path, standin: Path, cuda_library: Path) -> None:
    made = burning(tmp_path, standin, cuda_library, "wrong-memory 0 1000000")
    running = made.box.start(made.environment, *BURN, "-l", str(made.log), *LONG)
    made.wait("wrong-words")
    running.process.send_signal(signal.SIGTERM)
    ran = finished(running, 60)
    assert ran.code == 2
    assert statuses(ran)[GPU0] == "fail"


def test_without_cuda_nothing_is_loaded(tmp_path: Path, standin: Path) -> None:
    made = burning(tmp_path, standin, tmp_path / "no" / "libcuda.so.1")
    ran = made.run(*LONG)
    assert ran.code == 3
    assert statuses(ran) == {GPU0: "skip", GPU1: "skip", None: "skip"}
    assert findings(ran)[GPU0]["reason"] == "not-supported"


@pytest.mark.in_ci
def test_errors_that_a_port_counts_are_told_at_once_and_judged_at_the_end(
    tmp_path: Path, standin: Path, cuda_library: Path
) -> None:
    made = burning(tmp_path, standin, cuda_library)
    running = made.box.start(made.environment, *BURN, "--only", "pcie.aer", "-l", str(made.log), "--duration", "5s")
    made.wait("started")
    counts = made.box.tree / "sys/bus/pci/devices" / GPU1 / "aer_dev_fatal"
    counts.write_text(re.sub(r"(?m)^(DLP|TOTAL_ERR_FATAL) 0$", r"\1 1", counts.read_text()))
    ran = finished(running, 60)
    assert made.happened("aer")[0]["text"] == f"1 new fatal PCIe error on {GPU1}"
    assert ran.code == 2
    document: dict[str, Any] = ran.json
    bad = {(each["id"], each["subject"]["bdf"]) for each in document["findings"] if each["status"] == "fail"}
    assert bad == {("pcie.aer", GPU1)}


def test_a_load_does_not_outlive_a_command_that_was_killed(tmp_path: Path, standin: Path, cuda_library: Path) -> None:
    made = burning(tmp_path, standin, cuda_library)
    running = made.box.start(made.environment, *BURN, "-l", str(made.log), *LONG)
    made.wait("started")
    children = workers_of(running.process.pid)
    assert len(children) >= 3
    running.process.kill()
    finished(running, 60)
    until = time.monotonic() + 30
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_without_udev_there_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyudev", None)
    plug = HotPlug()
    assert plug.trouble.startswith("PCI hot-plug events not monitored: ")
    assert plug.changes() == []
