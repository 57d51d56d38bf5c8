"""Asks NVML through the real binding in a child process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dgxcheck.source.protocol import Json
from standin import nvml
from standin.boxes import Facts

# Prints the answer to each expression as JSON: a struct as an object, an NVMLError as {"error": code}.
CHILD = """
import ctypes, json, sys
import pynvml as n
from pynvml import *
from dgxcheck.workers.nvml.binding import FabricInfo

def plain(value):
    if isinstance(value, ctypes.Array):
        return [plain(item) for item in value]
    if isinstance(value, ctypes.Structure):
        return {name: plain(getattr(value, name)) for name, *_ in value._fields_}
    if isinstance(value, ctypes.Union):
        return value.sllVal
    if isinstance(value, n.nvmlFriendlyObject):
        return vars(value)
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

def gpu(index):
    return nvmlDeviceGetHandleByIndex(index)

def filled(function, index, struct):
    function(gpu(index), ctypes.byref(struct))
    return struct

def old(symbol, *args):
    n._nvmlCheckReturn(n._nvmlGetFunctionPointer(symbol)(*args))

def old_pci(symbol, index, *args):
    info = n.nvmlPciInfo_v2_t()
    old(symbol, gpu(index), *args, ctypes.byref(info))
    return info

for expression in sys.argv[1:]:
    try:
        answer = plain(eval(expression))
    except (n.NVMLError, n.NVMLLibraryMismatchError) as error:
        answer = {"error": getattr(error, "value", 13)}
    print(json.dumps(answer), flush=True)
"""


def child(environment: Mapping[str, str], *expressions: str, seconds: float = 20) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-c", CHILD, *expressions)
    return subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=seconds, check=False)


def asked(
    library: Path, facts: Facts, *expressions: str, faults: Sequence[str] = (), calls: Path | None = None
) -> list[Json]:
    """The answers to the expressions after nvmlInit."""
    table = library.with_name("answers")
    nvml.write_answers(facts, table)
    ran = child(nvml.environment(library, table, faults=faults, calls=calls), "nvmlInit()", *expressions)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    answers: list[Json] = [json.loads(line) for line in ran.stdout.splitlines()]
    return answers[1:]


def told_by_worker(environment: Mapping[str, str], groups: Sequence[str]) -> dict[str, Json]:
    """What the NVML worker of dgxcheck tells about these groups of its plan, by question."""
    plan = json.dumps({"groups": list(groups), "units": None, "known": {}, "avoid": []})
    command = (sys.executable, "-c", "import os; os.dup2(1, 3); from dgxcheck.workers.nvml.child import main; main()")
    ran = subprocess.run(
        command, env=dict(environment), input=plan, capture_output=True, text=True, timeout=20, check=True
    )
    assert ran.stderr == ""
    return {key: json.loads(value) for key, _, value in map(_split, ran.stdout.splitlines()) if value}


def _split(line: str) -> tuple[str, str, str]:
    return line.partition("\t")
