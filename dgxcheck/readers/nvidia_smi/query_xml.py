"""``nvidia-smi -q -x``, whole, cut or with other text around it: read tag by tag, so that what is broken stops nothing.

No document type is heeded and no entity is defined; the five of XML are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.answers import MOST_FIELDS, NOWHERE, Section, imported
from dgxcheck.readers.values import bounded

TOOL = "nvidia-smi -q -x"
DEEPEST = 8
_PART = re.compile(r"<(?P<end>/?)(?P<tag>[A-Za-z_][\w.-]*)(?![\w.-])(?P<more>[^<>]*)>|(?P<text>[^<>]+)")
_DECLARED = re.compile(r"<\?xml [^<>]*\?>|<!DOCTYPE [^<>]*>")
_ID = re.compile(r"""\bid\s*=\s*["']([^"']+)["']""")
_ENTITIES = {"lt": "<", "gt": ">", "quot": '"', "apos": "'", "amp": "&"}
_ENTITY = re.compile(r"&(lt|gt|quot|apos|amp);")
_SYSTEM = {"driver_version": "driver version", "cuda_version": "cuda version", "attached_gpus": "attached gpus"}


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every ``nvidia_smi_log`` of a text."""
    return tuple(_logs(bounded(lines)))


def _logs(lines: tuple[str, ...]) -> Iterator[Imported]:
    gpus: list[Section] = []
    system: dict[str, str] = {}
    understood: set[int] = set()
    stack: list[str] = []
    inside = headed = False
    value = ""
    for number, line in enumerate(lines):
        text = line.strip()
        if _DECLARED.fullmatch(text):
            understood.add(number)
            continue
        if not inside and "<nvidia_smi_log" not in text and not text.startswith("<gpu id="):
            continue
        at = 0
        whole = True
        for part in _PART.finditer(text):
            whole = whole and not text[at : part.start()].strip()
            at = part.end()
            tag = part["tag"]
            if tag is None:
                value = part["text"].strip()
            elif part["more"].endswith("/"):
                continue
            elif not part["end"]:
                inside, value, headed = True, "", headed or tag == "nvidia_smi_log"
                if tag == "gpu":
                    stack = []
                    match = _ID.search(part["more"])
                    gpus.append(Section((as_bdf(match[1]) if match else None) or NOWHERE, {}))
                elif tag != "nvidia_smi_log" and len(stack) < 4 * DEEPEST:
                    stack.append(tag)
            elif tag == "nvidia_smi_log":
                if gpus:
                    yield imported(TOOL, gpus, system, frozenset((*understood, number)), headed)
                gpus, system, understood, stack, inside, headed = [], {}, set(), [], False, False
            elif stack and stack[-1] == tag:
                _keep(gpus, system, stack, value)
                stack.pop()
                value = ""
            elif tag in stack:
                del stack[stack.index(tag) :]
        if whole and not text[at:].strip():
            understood.add(number)
    if gpus:
        yield imported(TOOL, gpus, system, frozenset(understood), headed)


def _keep(gpus: list[Section], system: dict[str, str], stack: list[str], value: str) -> None:
    """A value that stood between two tags of one name."""
    text = _ENTITY.sub(lambda match: _ENTITIES[match[1]], value)
    if not gpus:
        if stack[-1] in _SYSTEM:
            system.setdefault(_SYSTEM[stack[-1]], text)
    elif len(stack) <= DEEPEST and len(gpus[-1].fields) < MOST_FIELDS and (text or stack[-1] != "processes"):
        gpus[-1].fields.setdefault("/".join(stack).replace("_", " ").lower(), text)
