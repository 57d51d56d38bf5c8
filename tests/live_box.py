"""A recorded machine served live: its files as a tree, its NVML answers through the stand-in and the real binding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from standin import nvml

from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.keys import GroupedFacts, from_rows
from dgxcheck.workers.nvml import binding as nvml_calls

FIXTURES = Path(__file__).parent.parent / "fixtures"
BOXES = sorted(path.stem for path in FIXTURES.glob("*.json"))
CHILD = "import sys; root = sys.argv.pop(1); from dgxcheck.__main__ import run; run(root)"
"""The installed command over another root."""


_RUNS = count()
"""Each run has a state directory of its own."""


class Ran(NamedTuple):
    """What a command printed, and how long it took."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> dict[str, Json]:
        document: dict[str, Json] = json.loads(self.out)
        return document


class Box(NamedTuple):
    """A recording and the same machine as files and answers."""

    lines: GroupedFacts
    recording: Path
    tree: Path
    answers: Path
    run: Path
    """``XDG_RUNTIME_DIR``"""

    def environment(self, library: Path, *faults: str, **more: str) -> dict[str, str]:
        """For a process that is to meet this machine's driver."""
        given = {"XDG_RUNTIME_DIR": str(self.run), "STATE_DIRECTORY": str(self.run / f"state-{next(_RUNS)}"), **more}
        return {**nvml.environment(library, self.answers, faults=faults), **given}

    def live(self, environment: Mapping[str, str], *argv: str, seconds: float = 30) -> Ran:
        """The command on this machine, live."""
        return finished(self.start(environment, *argv), seconds)

    def start(self, environment: Mapping[str, str], *argv: str) -> Running:
        return started((sys.executable, "-c", CHILD, str(self.tree), *argv), environment)

    def recorded(self, *argv: str) -> Ran:
        """The command on the recording; the answer is kept."""
        return _recorded(self.recording, argv)


class Running(NamedTuple):
    """A command that was started."""

    process: subprocess.Popen[str]
    since: float


def started(command: Sequence[str], environment: Mapping[str, str]) -> Running:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
    )
    return Running(process, time.monotonic())


def finished(running: Running, seconds: float = 30) -> Ran:
    """The output up to end of file: a child that still held stdout would keep this waiting."""
    out, err = running.process.communicate(timeout=seconds)
    return Ran(running.process.returncode, out, err, time.monotonic() - running.since)


@cache
def _recorded(recording: Path, argv: tuple[str, ...]) -> Ran:
    return finished(started((sys.executable, "-m", "dgxcheck", *argv, "--from", str(recording)), os.environ))


def shipped(name: str) -> dict[str, Json]:
    """A recording of ``fixtures/``."""
    document: dict[str, Json] = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    return document


def facts_of(document: dict[str, Json]) -> GroupedFacts:
    facts = document["facts"]
    assert isinstance(facts, dict)
    lines: GroupedFacts = {}
    for line, group in facts.items():
        assert isinstance(group, dict)
        lines[line] = group
    return lines


def answered(lines: GroupedFacts) -> GroupedFacts:
    """A machine has an answer to everything, in today's words.

    What was never recorded it does not have, or its driver cannot tell; NVML's errors are worded by the worker.
    Its versions every NVML tells.
    """

    def fact(line: str, value: Json) -> Json:
        if not isinstance(value, dict):
            return value
        if line.startswith("nvml "):
            return in_words(value) if "missing" in value else value
        if value.get("missing") == "unrecorded":
            return {"missing": "absent"}
        return {key: fact(line, each) for key, each in value.items()} if line.startswith("/") else value

    found = {line: {key: fact(line, value) for key, value in group.items()} for line, group in lines.items()}
    driver = found.get("nvml nvmlSystemGetDriverVersion", {}).get("")
    for name, version in (("NVMLVersion", f"10.{driver}"), ("CudaDriverVersion", 10020)):
        group = found.get(f"nvml nvmlSystemGet{name}", {})
        group[""] = version if isinstance(group.get("", {}), dict) else group[""]
    return found


def in_words(gap: dict[str, Json]) -> Json:
    """A gap of NVML as the worker words the error code in it."""
    detail = str(gap.get("detail"))
    code = int(detail.split(":")[0].removeprefix("NVML ")) if detail.startswith("NVML ") else 3
    said = nvml_calls.gap("", code)
    return {"missing": said.gap.value, "detail": said.detail}


def serve(document: dict[str, Json], directory: Path) -> Box:
    """Write the machine of a recording below a directory, and the recording with an answer to everything."""
    lines = answered(facts_of(document))
    document = {**document, "facts": dict(lines)}
    box = Box(lines, *(directory / name for name in ("box.json", "tree", "answers", "run")))
    box.recording.write_text(json.dumps(document), encoding="utf-8")
    box.tree.mkdir()
    box.run.mkdir(mode=0o700)
    write_tree(lines, box.tree)
    nvml.write_answers(lines, box.answers)
    return box


def write_tree(lines: GroupedFacts, root: Path) -> None:
    """The files of a recording: links first, for the files of a PCI function are behind its link."""
    for line, group in lines.items():
        for name, target in values(group, "link").items():
            path = root / line[1:] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(str(target))
            if line in ("/sys/bus/pci/devices", "/sys/class/net"):
                (path.parent / str(target)).mkdir(parents=True, exist_ok=True)
    for line, group in lines.items():
        directory = root / line[1:]
        for name, content in values(group, "text").items():
            _file(directory / name, str(content).encode())
        for name, rows in values(group, "data").items():
            _file(directory / name, from_rows(rows) or b"")
        for name in (name for name, yes in values(group, "opens").items() if yes is True):
            _file(directory / name, b"")
    for line, group in lines.items():
        names = group.get("names")
        if line.startswith("/") and isinstance(names, list):
            (root / line[1:]).mkdir(parents=True, exist_ok=True)
            for entry in (root / line[1:] / str(name) for name in names):
                if not os.path.lexists(entry):
                    entry.mkdir()
    if log := lines.get("kmsg"):
        _file(root / "dev/kmsg", kmsg(str(log[key]) for key in sorted(log, key=int)).encode())
    _file(root / "usr/share/misc/pci.ids", pci_ids(lines).encode())


def values(group: Mapping[str, Json], kind: str) -> dict[str, Json]:
    """The facts of one kind in a line that are values, no gaps."""
    facts = group.get(kind)
    if not isinstance(facts, dict):
        return {}
    return {name: fact for name, fact in facts.items() if not (isinstance(fact, dict) and "missing" in fact)}


def kmsg(lines: Iterable[str]) -> str:
    """Lines of a recording as records of ``/dev/kmsg``."""
    timed = [line.partition(";") for line in lines]
    return "".join(
        f"6,{number},{round(float(seconds) * 1e6)},-;{message}\n" for number, (seconds, _, message) in enumerate(timed)
    )


def pci_ids(lines: GroupedFacts) -> str:
    """The names that a recording heard, in the form of pci.ids."""
    vendors: dict[str, list[str]] = {}
    for key, name in lines.get("name pci", {}).items():
        vendor, _, device = key.partition(":")
        entries = vendors.setdefault(vendor, [f"{vendor}  some vendor"])
        if isinstance(name, str):
            entries.append(f"\t{device}  {name}")
    return "".join(f"{line}\n" for entries in vendors.values() for line in entries)


def with_gpus(document: dict[str, Json], count: int) -> dict[str, Json]:
    """The same machine with the first GPUs of NVML alone; their NVLinks to the others are down."""
    lines = facts_of(document)
    handles = lines["nvml nvmlDeviceGetHandleByIndex"]
    gone = {str(bdf) for index, bdf in handles.items() if int(index) >= count}
    kept: GroupedFacts = {
        line: dict(group)
        for line, group in lines.items()
        if not any(word.rpartition("/")[2] in gone for word in line.split(" "))
    }
    kept["nvml nvmlDeviceGetCount"] = {"": min(count, len(handles))}
    kept["nvml nvmlDeviceGetHandleByIndex"] = {index: bdf for index, bdf in handles.items() if bdf not in gone}
    devices = kept["/sys/bus/pci/devices"]
    names, links = devices["names"], devices["link"]
    assert isinstance(names, list)
    assert isinstance(links, dict)
    devices["names"] = [name for name in names if name not in gone]
    devices["link"] = {name: target for name, target in links.items() if name not in gone}
    for line, group in kept.items():
        if line.startswith("nvml nvmlDeviceGetNvLinkRemotePciInfo"):
            states = kept[line.replace("RemotePciInfo", "State")]
            for link, info in group.items():
                if isinstance(info, dict) and str(info.get("busId")).lower()[4:] in gone:
                    states[link] = 0
    return {**document, "facts": dict(kept), "later": []}


def flat_gaps(facts: Mapping[str, Json]) -> dict[str, str]:
    """The kind of every gap, by key."""
    return {key: str(fact["missing"]) for key, fact in facts.items() if isinstance(fact, dict) and "missing" in fact}


def gpu_bdfs(lines: GroupedFacts) -> list[str]:
    return [str(bdf) for _, bdf in sorted(lines["nvml nvmlDeviceGetHandleByIndex"].items())]


def _file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
