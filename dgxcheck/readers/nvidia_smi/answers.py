"""What a dump of nvidia-smi says of a GPU, as the answers that NVML gave to it.

A field that a dump does not have stays unrecorded; what it calls N/A is unsupported, an error word is that error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from dgxcheck.facts.ids import MOST_GPUS
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.fields import LISTS, RETIRED, SINGLE, THROTTLE, WORDS, number, pages

Fields = dict[str, str]
"""Values by path, in lower case: the labels of the text, or the tags of the XML with blanks for underscores, joined by
``/``."""
MIB = 1 << 20
MOST_FIELDS = 4096
"""Of one GPU; lists of supported clocks and processes have the most."""
NOWHERE = "0000:00:00.0"
"""The bdf of a GPU whose dump begins after it: zeros, as NVML writes what it does not know."""
UNSUPPORTED: Json = {"missing": "unsupported", "detail": "nvidia-smi: N/A"}
_UNSUPPORTED = (
    "",
    "N/A",
    "Not Supported",
    "Not Found",
    "Function Not Found",
    "Requested functionality has been deprecated",
)
_ERRORS = {"GPU is lost": "lost", "GPU requires reset": "lost", "Insufficient Permissions": "denied"}


class Section(Record, kw_only=False):
    """One GPU of a dump."""

    bdf: str
    fields: Fields


def imported(tool: str, gpus: Sequence[Section], system: Mapping[str, str], understood: frozenset[int]) -> Imported:
    """The answers of NVML about the GPUs of one dump, indexes in its order; ``system`` has its first lines."""
    gpus = list({gpu.bdf: gpu for gpu in gpus[:MOST_GPUS]}.values())
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetHandleByIndex {n}": gpu.bdf for n, gpu in enumerate(gpus)}
    driver, cuda = system.get("driver version", ""), system.get("cuda version", "")
    if re.fullmatch(r"\d{1,4}(\.\d{1,4}){1,3}", driver, re.ASCII):
        facts["nvml nvmlSystemGetDriverVersion"] = driver
        tool = f"{tool} {driver}"
    if found := re.fullmatch(r"(\d{1,3})\.(\d{1,2})", cuda, re.ASCII):
        facts["nvml nvmlSystemGetCudaDriverVersion"] = int(found[1]) * 1000 + int(found[2]) * 10
    for gpu in gpus:
        for question, answer in answers(gpu.fields):
            function, _, args = question.partition(" ")
            facts[f"nvml nvmlDeviceGet{function} {gpu.bdf} {args}".rstrip()] = answer
    return Imported(tool=tool, facts=facts, understood=understood)


def answers(fields: Fields) -> Iterator[tuple[str, Json]]:
    """Function (without ``nvmlDeviceGet``) with its arguments, and the answer, for all that the fields tell."""
    for question, pattern, read in SINGLE:
        if (said := _one(fields, pattern)) is not None:
            yield question, _read(said, read)
    for question, group, parts in LISTS:
        yield from _several(fields, question, group, parts)
    yield from _memory(fields)
    yield from _reasons(fields)
    yield from _errors(fields)
    for cause, pattern in RETIRED:
        if (said := _one(fields, pattern)) is not None:
            yield f"RetiredPages {cause}", _read(said, pages)
    state, status = _one(fields, "fabric/state"), _one(fields, "fabric/status")
    if state is not None and status is not None:
        clique = _one(fields, "fabric/cliqueid") or ""
        known = {"state": WORDS.get(state), "status": WORDS.get(status), "cliqueId": number(clique)}
        known["clusterUuid"] = (_one(fields, "fabric/clusteruuid") or "").removesuffix("N/A")
        yield "GpuFabricInfo", known if state in WORDS and status in WORDS else UNSUPPORTED
    device = re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{8})", _one(fields, "pci/(?:pci )?device id") or "")
    if device:
        yield "PciInfo", {"pciDeviceId": int(device[1], 16)}


def _read(said: str, read: Callable[[str], Json]) -> Json:
    """The answer that a field shows, or the gap that its error word stands for."""
    word = said.strip().removeprefix("[").removesuffix("]").strip()
    if word in _UNSUPPORTED:
        return UNSUPPORTED
    if word in _ERRORS:
        return {"missing": _ERRORS[word], "detail": f"nvidia-smi: {word}"}
    found = read(word)
    return {"missing": "garbled", "detail": f"nvidia-smi: {word[:40]}"} if found is None else found


def _one(fields: Fields, pattern: str | re.Pattern[str]) -> str | None:
    if isinstance(pattern, str):
        pattern = re.compile(pattern)
    return next((value for path, value in fields.items() if pattern.fullmatch(path)), None)


def _several(fields: Fields, question: str, group: str, parts: Sequence[re.Pattern[str]]) -> Iterator[tuple[str, Json]]:
    if fields.get(group) == "N/A":
        yield question, UNSUPPORTED
        return
    values = [_read(said, number) for part in parts if (said := _one(fields, part)) is not None]
    if len(values) == len(parts):
        gap = next((value for value in values if not isinstance(value, int)), None)
        yield question, values if gap is None else gap


def _memory(fields: Fields) -> Iterator[tuple[str, Json]]:
    amounts: dict[str, Json] = {}
    for name in ("total", "used", "free", "reserved"):
        said = _one(fields, f"fb memory usage/{name}")
        if said is not None and isinstance(mib := _read(said, number), int):
            amounts[name] = mib * MIB
    if amounts:
        yield "MemoryInfo", amounts


def _reasons(fields: Fields) -> Iterator[tuple[str, Json]]:
    if next(reversed(fields), "").startswith(("clocks throttle reasons/", "clocks event reasons/")):
        return  # cut before all of them were said
    said = {bit: _one(fields, pattern) for bit, pattern in THROTTLE}
    words = set(said.values()) - {None}
    if words & {"Active", "Not Active"}:
        yield "CurrentClocksEventReasons", sum(bit for bit, word in said.items() if word == "Active")
    elif words:
        yield "CurrentClocksEventReasons", _read(str(sorted(map(str, words))[0]), number)


def _errors(fields: Fields) -> Iterator[tuple[str, Json]]:
    """Totals of uncorrected errors; from Ampere on the sum of SRAM and DRAM."""
    for when, period in ((0, "volatile"), (1, "aggregate")):
        total = _one(fields, f"ecc errors/{period}/double bit/total")
        sums = re.compile(f"ecc errors/{period}/[sd]ram uncorrectable.*")
        parts = [_read(value, number) for path, value in fields.items() if sums.fullmatch(path)]
        numbers = [number for number in parts if isinstance(number, int)]
        if total is not None:
            yield f"TotalEccErrors 1 {when}", _read(total, number)
        elif parts and _one(fields, f"ecc errors/{period}/dram uncorrectable") is not None:  # which is the last
            gaps = [part for part in parts if not isinstance(part, int)]
            yield f"TotalEccErrors 1 {when}", gaps[0] if gaps else sum(numbers)
