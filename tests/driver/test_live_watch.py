"""The watch as a process: a log that is written while it runs, a counter that grows, a restart, systemd, NVML."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from live_box import CHILD, Box
from standin.nvml import read_calls
from watched import XID_31, XID_79, record

GPU = "0000:0a:00.0"
MOST_KIB = 40 << 10


class Running:
    """One run of the command; events as they come."""

    def __init__(self, tree: Path, environment: Mapping[str, str], *argv: str) -> None:
        command = [sys.executable, "-c", CHILD, str(tree), "watch", "--format", "json", *argv]
        self.process = subprocess.Popen(command, env=dict(environment), stdout=subprocess.PIPE, bufsize=0)
        self.seen: list[dict[str, Any]] = []
        self._rest = b""

    def until(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = 20) -> dict[str, Any]:
        """The first event of a kind."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for event in self._read(0.1):
                if wanted(event):
                    return event
        pytest.fail(f"no such event in {seconds} s: {self.seen}")

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        self._read(0)
        return code

    def _read(self, seconds: float) -> list[dict[str, Any]]:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return []
        *lines, self._rest = (self._rest + os.read(self.process.stdout.fileno(), 1 << 16)).split(b"\n")
        new: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.seen += new
        return new

    def resident(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A machine of one GPU, and a log that can be written."""
    root = tmp_path / "tree"
    device = root / "sys/devices/pci0000:00/0000:00:02.0" / GPU
    device.mkdir(parents=True)
    for name, text in (("vendor", "0x10de"), ("class", "0x030200"), ("device", "0x1db1"), ("current_link_width", "16"),
                       ("aer_dev_fatal", "DLP 0\nTOTAL_ERR_FATAL 0")):  # fmt: skip
        (device / name).write_text(f"{text}\n")
    links = root / "sys/bus/pci/devices"
    links.mkdir(parents=True)
    (links / GPU).symlink_to(f"../../../devices/pci0000:00/0000:00:02.0/{GPU}")
    (links / "0000:00:02.0").symlink_to("../../../devices/pci0000:00/0000:00:02.0")
    boot_id = root / "proc/sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text("c89fb41b-0c56-4c08-acc6-707e816867ce\n")
    (root / "dev").mkdir()
    os.mkfifo(root / "dev/kmsg")
    return root


@pytest.fixture
def log(tree: Path) -> Iterator[int]:
    fd = os.open(tree / "dev/kmsg", os.O_RDWR)
    yield fd
    os.close(fd)


def write(log: int, *records: bytes) -> None:
    for each in records:
        os.write(log, each)
        time.sleep(0.1)  # a FIFO joins what is not read yet


def test_each_thing_is_told_once_over_a_restart(tree: Path, log: int, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(20)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1000000"}
        argv = ("--no-health", "--counters", "1", "--state", str(tmp_path / "state/watch.json"))
        first = Running(tree, environment, *argv)
        assert manager.recv(99) == b"READY=1"
        forged = record(2, XID_31.format(pid=1), priority=12)
        write(log, record(1, XID_79), forged, *(record(n, XID_31.format(pid=n)) for n in range(3, 9)))
        assert first.until(lambda event: event.get("code") == "79")["status"] == "fail"
        assert manager.recv(99) == b"WATCHDOG=1"
        time.sleep(1.5)  # the counters have been read
        (tree / "sys/bus/pci/devices" / GPU / "aer_dev_fatal").write_text("DLP 2\nTOTAL_ERR_FATAL 2\n")
        assert first.until(lambda event: event["event"] == "counter")["count"] == 2
        (tree / "sys/bus/pci/devices" / GPU / "current_link_width").write_text("8\n")
        assert first.until(lambda event: event["event"] == "link")["text"] == "PCIe link x8, was x16"
        assert first.resident() < MOST_KIB
        assert first.end() == 0
        assert [(event["event"], event.get("code")) for event in first.seen if event["event"] != "note"] == [
            ("xid", "79"), ("xid", "31"), ("counter", "aer fatal"), ("link", "width"),
        ]  # fmt: skip
        second = Running(tree, environment, *argv)
        while manager.recv(99) != b"READY=1":
            pass
        write(log, record(1, XID_79), record(20, XID_79.replace(": 79", ": 48")))
        assert second.until(lambda event: event.get("code") == "48")
        (tree / "sys/bus/pci/devices" / GPU).unlink()  # of which the kernel here sends no event
        removed = second.until(lambda event: event["event"] == "hot-plug")
        assert (removed["status"], removed["bdf"], removed["text"]) == ("warn", GPU, f"PCI function {GPU} removed")
        time.sleep(1.5)  # the counters have been read again
        assert second.end() == 0
        assert [(event["event"], event["count"]) for event in second.seen if event["event"] != "note"] == [
            ("lost", 11), ("xid", 1), ("hot-plug", 1),
        ]  # fmt: skip
        while manager.recv(99) != b"STOPPING=1":
            pass


def test_a_full_disk_keeps_no_event_from_the_program(tree: Path, log: int, tmp_path: Path) -> None:
    page, got = tmp_path / "page", tmp_path / "got"
    page.write_text(f"#!/bin/sh\ncat > {got}.new && mv {got}.new {got}\n")
    page.chmod(0o755)
    argv = ("--no-health", "--state", str(tmp_path / "watch.json"), "--exec", str(page))
    with open("/dev/full", "w") as full:
        watch = subprocess.Popen([sys.executable, "-c", CHILD, str(tree), "watch", *argv], stdout=full)
    write(log, record(1, XID_79))
    assert watch.wait(20) == 3
    end = time.monotonic() + 20
    while not got.exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert json.loads(got.read_text())["event"] in ("xid", "note")


def test_health_and_xids_from_nvml_where_the_log_is_closed(
    served: Callable[[str], Box], standin: Path, tmp_path: Path
) -> None:
    """A log that is a mere file is as good as closed."""
    box = served("dgx-1-v100")
    environment = box.environment(standin, NVML_STANDIN_XID="2:48")
    running = Running(box.tree, environment, "--state", str(tmp_path / "watch.json"), "--every", "1h")
    xid = running.until(lambda event: event["event"] == "xid")
    assert (xid["bdf"], xid["code"], xid["status"]) == (GPU, "48", "fail")
    assert running.until(lambda event: event["event"] == "verdict", 60)["text"].startswith("verdict ")
    assert running.end() == 0
    told = [(event["event"], event.get("code")) for event in running.seen if event["event"] in ("finding", "note")]
    assert told == [("note", "kernel log")]


@pytest.mark.parametrize(("fault", "why"), [
    ("error 15 nvmlEventSetWait", "GPU is lost"),
    ("error 15 nvmlDeviceGetHandleByIndex 2", "of GPU 2 of 8: "),
    ("error 9 nvmlInit", "driver"),
])  # fmt: skip
def test_events_that_nvml_does_not_tell_are_said_to_be_missed(
    fault: str, why: str, served: Callable[[str], Box], standin: Path, tmp_path: Path
) -> None:
    """Once, and the driver is not opened again and again."""
    box = served("dgx-1-v100")
    environment = box.environment(standin, fault, NVML_STANDIN_CALLS=str(tmp_path / "calls"))
    running = Running(box.tree, environment, "--state", str(tmp_path / "watch.json"), "--no-health")
    note = running.until(lambda event: event.get("code") == "NVML events")
    assert note["text"].startswith("Xids are not monitored: ")
    assert why in note["text"]
    time.sleep(2.5)
    assert running.end() == 0
    assert [event.get("code") for event in running.seen].count("NVML events") == 1
    assert [each.question for each in read_calls(tmp_path / "calls")].count("nvmlInit") == 1
