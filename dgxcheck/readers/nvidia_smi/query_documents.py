"""``nvidia-smi -q -x``: XML, and JSON that somebody made of it.

XML is read tag by tag, so that what is broken stops nothing: no document type is heeded and no entity defined beside
XML's five.
"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.answers import MOST_FIELDS, NOWHERE, GpuDump, imported
from dgxcheck.readers.values import bounded

TOOL = "nvidia-smi -q -x"
XML_DEEPEST = 8
_XML_PART = LazyPattern(r"<(?P<end>/?)(?P<tag>[A-Za-z_][\w.-]*)(?![\w.-])(?P<more>[^<>]*)>|(?P<text>[^<>]+)")
_DECLARED = LazyPattern(r"<\?xml [^<>]*\?>|<!DOCTYPE [^<>]*>")
_ID = LazyPattern(r"""\bid\s*=\s*["']([^"']+)["']""")
_ENTITIES = {"lt": "<", "gt": ">", "quot": '"', "apos": "'", "amp": "&"}
_ENTITY = LazyPattern(r"&(lt|gt|quot|apos|amp);")
_XML_SYSTEM = {"driver_version": "driver version", "cuda_version": "cuda version", "attached_gpus": "attached gpus"}


def read_xml(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every ``nvidia_smi_log`` of a text."""
    return tuple(_logs(bounded(lines)))


def _logs(lines: tuple[str, ...]) -> Iterator[Imported]:
    gpus: list[GpuDump] = []
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
        for part in _XML_PART.finditer(text):
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
                    gpus.append(GpuDump((as_bdf(match[1]) if match else None) or NOWHERE, {}))
                elif tag != "nvidia_smi_log" and len(stack) < 4 * XML_DEEPEST:  # else each tag that ends takes longer
                    stack.append(tag)
            elif tag == "nvidia_smi_log":
                if gpus:
                    yield imported(TOOL, gpus, system, frozenset((*understood, number)), headed)
                gpus, system, understood, stack, inside, headed = [], {}, set(), [], False, False
            elif stack and stack[-1] == tag:
                _xml_keep(gpus, system, stack, value)
                stack.pop()
                value = ""
            elif tag in stack:
                del stack[stack.index(tag) :]
        if not _XML_PART.sub("", text):
            understood.add(number)
    if gpus:
        yield imported(TOOL, gpus, system, frozenset(understood), headed)


def _xml_keep(gpus: list[GpuDump], system: dict[str, str], stack: list[str], value: str) -> None:
    """A value that stood between two tags of one name."""
    text = _ENTITY.sub(lambda match: _ENTITIES[match[1]], value)
    if not gpus:
        if stack[-1] in _XML_SYSTEM:
            system.setdefault(_XML_SYSTEM[stack[-1]], text)
    elif len(stack) <= XML_DEEPEST and len(gpus[-1].fields) < MOST_FIELDS and (text or stack[-1] != "processes"):
        gpus[-1].fields.setdefault("/".join(stack).replace("_", " ").lower(), text)


JSON_DEEPEST = 10
_JSON_PART = LazyPattern(
    r"""(?P<key>["']?@?[A-Za-z_]\w*["']?)\s*:\s*|(?P<open>[{\[])|(?P<close>[}\]])"""
    r"""|"(?P<double>[^"\\]*)"|'(?P<single>[^'\\]*)'|(?P<skip>[\s,;]+)"""
)
_BEGIN = LazyPattern(r"""nvidia_smi_log|driver_version["']?\s*:""")
_JSON_HEAD = LazyPattern(r"(?:const|let|var)\s+\w+\s*=\s*")
_JSON_SYSTEM = {"driver_version": "driver version", "cuda_version": "cuda version"}


def read_json(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The object of a text: everything from its first line that opens a brace on."""
    lines = bounded(lines)
    if not any(_BEGIN.search(line) for line in lines):
        return ()
    gpus: list[GpuDump] = []
    system: dict[str, str] = {}
    understood: set[int] = set()
    path: list[str] = []
    key = ""
    for number, line in enumerate(lines):
        text = _JSON_HEAD.sub("", line.strip(), count=1)
        if not text or not (path or text.startswith("{")):
            continue
        at = 0
        while (part := _JSON_PART.match(text, at)) is not None:
            at = part.end()
            if part["key"]:
                key = part["key"].strip("\"'").lstrip("@")
            elif part["open"] and len(path) < 4 * JSON_DEEPEST:
                path.append(key)
                key = ""
            elif part["close"]:
                del path[-1:]
                key = ""
            elif (value := part["double"] if part["double"] is not None else part["single"]) is not None:
                _json_keep(gpus, system, [*path, key], value)
                key = ""
        if at == len(text):
            understood.add(number)
    return (imported(TOOL, gpus, system, frozenset(understood)),) if gpus else ()


def _json_keep(gpus: list[GpuDump], system: dict[str, str], path: list[str], value: str) -> None:
    names = [name for name in path if name]
    if names[-1:] == ["id"] and names[-2:-1] == ["gpu"] and (bdf := as_bdf(value)) is not None:
        gpus.append(GpuDump(bdf, {}))
    elif (name := "".join(names[-1:])) in _JSON_SYSTEM and "gpu" not in names:
        system.setdefault(_JSON_SYSTEM[name], value)
    elif gpus and "gpu" in names and len(names) < JSON_DEEPEST and len(gpus[-1].fields) < MOST_FIELDS:
        below = names[names.index("gpu") + 1 :]
        gpus[-1].fields.setdefault("/".join(below).replace("_", " ").lower(), value)
