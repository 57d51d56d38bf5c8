"""One machine served live, made sick for one case at a time."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from clock import SPARE
from live_box import CHILD, Box, Ran, gpu_bdfs, serve, shipped, with_gpus
from programs import program
from standin import nvml

from chaos.cases import COMMAND, GPUS, Case
from chaos.invariants import SLACK_S, broken, processes_of
from chaos.warm import Warm
from dgxcheck.facts.missing import Json
from dgxcheck.facts.nvml.quantities import GROUPS
from dgxcheck.workers.nvml.plan import COUNTERS

_REDIRECTED = {
    "stdout closed": ">&-", "stderr closed": "2>&-", "stdin closed": "<&-", "stdout full": ">/dev/full",
}  # fmt: skip
_LIMITED = {"16 descriptors": "ulimit -n 16", "1 GiB of memory": "ulimit -v 1048576", "state full": "ulimit -f 0"}
BEHIND = {
    "ordinary user": "setpriv --reuid=65534 --regid=65534 --clear-groups",
    "no processes": "prlimit --nproc=1 setpriv --reuid=63217 --regid=63217 --clear-groups",
}
"""The user who may start nothing is another one: processes of one user are counted together."""
_BY_DRIVER = ("error", "again", "pair", "symbol", "hang", "crash", "slow", "future", "garbage")
"""Rows in which the library alone is sick, whose runs may be forked from a warm interpreter."""

Undo = Callable[[], object]


class Libraries(NamedTuple):
    """Compiled once, shared by all benches."""

    current: Path
    old: Path
    preload: Path


def compiled(folder: Path) -> Libraries:
    places = [folder / name for name in ("current", "old")]
    for place in places:
        place.mkdir()
    preload = folder / "preload.so"
    source = Path(__file__).with_name("preload.c")
    subprocess.run((program("gcc"), "-shared", "-fPIC", "-Wall", "-o", str(preload), str(source), "-ldl"), check=True)
    return Libraries(nvml.build(places[0]), nvml.build(places[1], without=nvml.newer_than(384)), preload)


class Bench:
    """A box, a DGX-1 with three of its GPUs, files and library of its own, so that several can be at work at once."""

    def __init__(
        self, folder: Path, libraries: Libraries, box: str = "dgx-1-v100", gpus: int = GPUS, warm: bool = False
    ) -> None:
        folder.mkdir(mode=0o755)
        self.warm = Warm(folder) if warm else None
        self._box: Box = serve(with_gpus(shipped(box), gpus), folder)
        self._folder = folder
        self._libraries = libraries
        bdfs = gpu_bdfs(self._box.lines)
        self._gpus, self._gpu = len(bdfs), bdfs[len(bdfs) // 2]
        self._random = random.Random(0)

    def failures(self, case: Case) -> list[str]:
        """Run one case; what does not hold after it. What takes too long is run again: a hang is there every time, a
        machine that is busy with other things is not."""
        if case.must_not_pass and case.row in ("again", "pair") and not self._answers(case):
            case = case._replace(must_not_pass=False)
        fault, _, at = case.fault.rpartition(" ")
        if at.isdecimal() and int(at) >= self._gpus:
            case = case._replace(fault=f"{fault} {int(at) % self._gpus}")
        count, _, box = case.what.partition(" of ")
        if case.row == "size" and box:
            other = Bench(self._folder / f"{box}-{count}", self._libraries, box, int(count))
            return other.failures(case._replace(row="", what=""))
        with self._sick(case) as environment:
            ran, cut_short = self._run(case, environment)
            if ran.seconds > case.seconds + SLACK_S + SPARE:
                ran, cut_short = self._run(case, environment)
        spare = SPARE * _starvation() if ran.seconds > case.seconds + SLACK_S else 0.0
        found = list(broken(case, ran, self._box.run, spare, cut_short))
        until = time.monotonic() + 3
        while (left := processes_of(self._box.answers)) and time.monotonic() < until:
            time.sleep(0.05)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        found += [f"left behind: process {pid}" for pid in left]
        shutil.rmtree(self._box.run)
        self._box.run.mkdir(mode=0o700)
        return found

    def _answers(self, case: Case) -> bool:
        """Has the box a value for the function, with arguments that this row asks?"""
        function = case.what.split()[0]
        calls = [call for group in (COUNTERS if case.row == "again" else GROUPS) for call in GROUPS[group]]
        args = tuple(" ".join(map(str, call.args)) for call in calls if call.function == function) or ("",)
        facts = (
            fact for line, group in self._box.lines.items() if line.split(" ")[:2] == ["nvml", function]
            for key, fact in group.items() if f" {key}".endswith(tuple(f" {each}" if each else "" for each in args))
        )  # fmt: skip
        return function == "nvmlInit" or not all(isinstance(fact, dict) and "missing" in fact for fact in facts)

    @contextmanager
    def _sick(self, case: Case) -> Iterator[dict[str, str]]:
        library = self._library(case) if case.row == "library" else self._libraries.current
        environment = self._box.environment(library, *filter(None, [case.fault]))
        if case.errno:
            named = self._path(case).partition("/devices/")[2] or self._path(case)
            environment |= {"LD_PRELOAD": str(self._libraries.preload), "OPEN_ERRORS": named,
                            "OPEN_ERRNO": str(case.errno)}  # fmt: skip
        if case.row == "listing":
            part, most = case.what.rsplit(" ", 1)
            environment |= {"LD_PRELOAD": str(self._libraries.preload), "LISTING_ERRORS": part, "LISTING_READS": most}
        if case.row == "torn":
            environment |= {"LD_PRELOAD": str(self._libraries.preload), "READ_ERRORS": self._path(case)}
        if case.row == "habit":
            environment["NVML_STANDIN_HABIT"] = case.what
        if case.row == "again":
            environment["NVML_STANDIN_CALLS"] = str(self._box.run / "calls")
        if case.row == "clock":
            step, after = case.what.split(" s after ")
            environment |= {"LD_PRELOAD": str(self._libraries.preload), "CLOCK_STEP": step, "CLOCK_READS": after}
        undo: list[Undo] = []
        if case.content:
            undo.append(_replaced(Path(f"{self._box.tree}{self._path(case)}"), case.content))
        if case.row == "list":
            undo += self._lists(case.what)
        if case.row in ("future", "garbage"):
            undo.append(self._answered(*case.what.split()))
        if case.row == "system" and case.what.startswith("no /"):
            undo.append(_replaced(self._box.tree / case.what[4:], "absent"))
        if case.what == "10000 functions":
            undo.append(_crowded(self._box.tree / "sys/bus/pci/devices", 10_000))
        try:
            yield environment
        finally:
            for put_back in undo:
                put_back()

    def _path(self, case: Case) -> str:
        hcas = sorted((self._box.tree / "sys/class/infiniband").glob("*"))
        hca = hcas[0].name if hcas else "mlx5_0"
        return case.path.format(gpu=f"/sys/bus/pci/devices/{self._gpu}", hca=f"/sys/class/infiniband/{hca}")

    def _library(self, case: Case) -> Path:
        if case.what == "old":
            return self._libraries.old
        place = self._folder / case.what.replace(" ", "-")
        place.mkdir(exist_ok=True)
        library = place / nvml.SONAME
        if not library.exists() and case.what != "none":
            _fill(library, {"junk": "binary", "of another machine": "empty"}.get(case.what, case.what))
        if case.what == "of another machine":  # ELF of a machine that there is not
            library.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\xff\xfe" + bytes(100))
        return library

    def _lists(self, what: str) -> list[Undo]:
        lines = dict(self._box.lines)
        if what == "not in sysfs":
            link = self._box.tree / "sys/bus/pci/devices" / self._gpu
            target = os.readlink(link)
            link.unlink()
            return [lambda: link.symlink_to(target)]
        if what == "not in NVML":
            lines |= {"nvml nvmlDeviceGetCount": {"": self._gpus - 1}}
        elif what == "count too high":
            lines |= {"nvml nvmlDeviceGetCount": {"": self._gpus + 1}}
        else:
            lines |= {"nvml nvmlDeviceGetCount": {"": 0}}
        nvml.write_answers(lines, self._box.answers)
        return [lambda: nvml.write_answers(self._box.lines, self._box.answers)]

    def _answered(self, function: str, value: str) -> Undo:
        """Every answer of a function that is there is another number, in each place of one with several; no text."""
        number = int(value)

        def changed(answer: Json) -> Json:
            match answer:
                case list():
                    return [changed(each) for each in answer]
                case dict():
                    return {name: number if isinstance(each, int) else each for name, each in answer.items()}
            return number if isinstance(answer, int) else answer

        lines = {line: dict(group) for line, group in self._box.lines.items()}
        for line, group in lines.items():
            if line.split(" ")[:2] == ["nvml", function]:
                group.update({key: changed(answer) for key, answer in group.items()})
        nvml.write_answers(lines, self._box.answers)
        return lambda: nvml.write_answers(self._box.lines, self._box.answers)

    def _run(self, case: Case, environment: dict[str, str]) -> tuple[Ran, bool]:
        argv = (sys.executable, "-c", CHILD, str(self._box.tree), *COMMAND, "--deadline", f"{case.seconds:g}",
                *(("--window", "1") if case.row == "again" else ()))  # fmt: skip
        if self.warm is not None and case.row in _BY_DRIVER:
            return self.warm.run(argv[3:], environment, case.seconds + 60), False
        what = case.what if case.row == "system" else ""
        if what in ("no HOME", "no environment"):
            kept = ("NVML", "LD_") if what == "no environment" else ("",)
            environment = {name: value for name, value in environment.items() if name.startswith(kept)}
            environment.pop("HOME", None)
        if what == "state read-only":
            environment["STATE_DIRECTORY"] = "/proc/1"
        if what == "COLUMNS=0":
            environment["COLUMNS"] = "0"
        command = f"exec {shlex.join(argv)} {_REDIRECTED.get(what, '')}"
        if what in BEHIND:
            command = f"exec {BEHIND[what]} {shlex.join(argv)}"
        if what in _LIMITED:
            command = f"{_LIMITED[what]}; {command}"
        since = time.monotonic()
        started = [_start(command, environment) for _ in range(2 if what == "two at once" else 1)]
        number = getattr(signal, what, None) if what.startswith("SIG") else None
        if number is not None:
            time.sleep(self._random.uniform(0.1, 0.6))
            started[0].send_signal(number)
        out, err = started[0].communicate(timeout=case.seconds + 60)
        for other in started[1:]:
            other.communicate(timeout=case.seconds + 60)
        return Ran(started[0].returncode, out, err, time.monotonic() - since), number is not None


def _starvation() -> float:
    """How many times as long as alone a program takes now, on a machine that is busy with other things."""
    wall, cpu = time.monotonic(), time.thread_time()
    while time.thread_time() - cpu < 0.05:
        pass
    return max(1.0, (time.monotonic() - wall) / 0.05)


def _start(command: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(("sh", "-c", command), env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe,
                            text=True, errors="replace")  # fmt: skip


def _replaced(path: Path, content: str) -> Undo:
    """Something else in place of a file, until it is undone."""
    kept = path.with_name(f"{path.name}.kept")
    if os.path.lexists(path):
        path.rename(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    _fill(path, content)

    def undo() -> None:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
        if os.path.lexists(kept):
            kept.rename(path)

    return undo


def _crowded(devices: Path, count: int) -> Undo:
    """So many more functions of a class that is not looked into."""
    places = [devices / f"{n // 2048 + 0x1000:04x}:{n // 8 % 256:02x}:00.{n % 8}" for n in range(count)]
    for place in places:
        place.mkdir()
        (place / "class").write_text("0x088000\n")

    def undo() -> None:
        for place in places:
            shutil.rmtree(place)

    return undo


def _fill(path: Path, content: str) -> None:
    if content == "directory":
        path.mkdir()
    elif content == "fifo":
        os.mkfifo(path)
    elif content == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif content == "endless":
        path.symlink_to("/dev/zero")
    elif content == "dangling link":
        path.symlink_to("nowhere")
    elif content == "loop":
        path.symlink_to(path.name)
    elif content != "absent":
        path.write_bytes({"empty": b"", "binary": bytes(range(256)) * 8, "10 MB": b"0123456789\n" * 10**6}[content])
