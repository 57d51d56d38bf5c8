"""``nvidia-smi -q -x`` that somebody turned into JSON or a JavaScript object (``xq``, ``xmltodict``, dashboards)."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.answers import MOST_FIELDS, Section, imported
from dgxcheck.readers.values import bounded

TOOL = "nvidia-smi -q -x"
DEEPEST = 10
_PART = re.compile(
    r"""(?P<key>["']?@?[A-Za-z_]\w*["']?)\s*:\s*|(?P<open>[{\[])|(?P<close>[}\]])"""
    r"""|"(?P<double>[^"\\]*)"|'(?P<single>[^'\\]*)'|(?P<skip>[\s,;]+)"""
)
_BEGIN = re.compile(r"""nvidia_smi_log|driver_version["']?\s*:""")
_HEAD = re.compile(r"(?:const|let|var)\s+\w+\s*=\s*")
_SYSTEM = {"driver_version": "driver version", "cuda_version": "cuda version"}


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The object of a text: everything from its first line that opens a brace on."""
    lines = bounded(lines)
    if not any(_BEGIN.search(line) for line in lines):
        return ()
    gpus: list[Section] = []
    system: dict[str, str] = {}
    understood: set[int] = set()
    path: list[str] = []
    key = ""
    for number, line in enumerate(lines):
        text = _HEAD.sub("", line.strip(), count=1)
        if not text or not (path or text.startswith("{")):
            continue
        at = 0
        while at < len(text) and (part := _PART.match(text, at)) is not None and part.end() > at:
            at = part.end()
            if part["key"]:
                key = part["key"].strip("\"'").lstrip("@")
            elif part["open"] and len(path) < 4 * DEEPEST:
                path.append(key)
                key = ""
            elif part["close"]:
                del path[-1:]
                key = ""
            elif (value := part["double"] if part["double"] is not None else part["single"]) is not None:
                _keep(gpus, system, [*path, key], value)
                key = ""
        if at == len(text):
            understood.add(number)
    return (imported(TOOL, gpus, system, frozenset(understood)),) if gpus else ()


def _keep(gpus: list[Section], system: dict[str, str], path: list[str], value: str) -> None:
    names = [name for name in path if name]
    if names[-1:] == ["id"] and names[-2:-1] == ["gpu"] and (bdf := as_bdf(value)) is not None:
        gpus.append(Section(bdf, {}))
    elif names[-1:] and names[-1] in _SYSTEM and "gpu" not in names:
        system.setdefault(_SYSTEM[names[-1]], value)
    elif gpus and "gpu" in names and len(names) < DEEPEST and len(gpus[-1].fields) < MOST_FIELDS:
        below = names[names.index("gpu") + 1 :]
        gpus[-1].fields.setdefault("/".join(below).replace("_", " ").lower(), value)
