"""Convert the fields of an nvidia-smi dump to NVML's answers.

Fields absent from the dump stay unrecorded, N/A is unsupported, error texts become that error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from dgxcheck.facts.bdf import UNPLACED, is_unplaced, nameless, unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MOST_GPUS, RECOVERY_ACTION, NvmlReturn
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record, replace
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.listing import ATTACHED, INDEX, WITHOUT_NUMBER
from dgxcheck.readers.model import HOST, Imported, Reports
from dgxcheck.readers.nvidia_smi.fields import (
    LISTS,
    SINGLE,
    SLOWDOWNS,
    STRUCTS,
    SW_THERMAL,
    THROTTLE,
    Part,
    fabric,
    number,
)
from dgxcheck.readers.values import integer

Fields = dict[str, str]
"""Values by path, in lower case: the labels of the text, or the tags of the XML with blanks for underscores, joined by
``/``."""
_ACTIONS = {"reset required": 1, "drain and reset recommended": 4}
"""``nvmlDeviceGpuRecoveryAction_t``; drivers before R565 know no other, and say it so."""
MOST_FIELDS = 4096
"""Of one GPU; lists of supported clocks and processes have the most."""
NOWHERE = UNPLACED
"""The bdf of a GPU whose dump begins after it, until its number is known."""
UNSUPPORTED: Json = {"missing": "unsupported", "detail": "nvidia-smi: N/A"}
_UNSUPPORTED = (
    "", "N/A", "Not Supported", "Not Found", "Function Not Found", "Requested functionality has been deprecated",
)  # fmt: skip
NO_ANSWER = "no answer"
"""A value of a GPU that does not even tell its name."""
MIG_DEVICES = "mig devices"
ERRORS: Mapping[str, dict[str, Json]] = {
    NO_ANSWER: {"missing": "lost"}, "Insufficient Permissions": {"missing": "denied"},
    "GPU is lost": {"missing": "lost", "code": NvmlReturn.GPU_IS_LOST},
    "GPU requires reset": {"missing": "lost", "code": NvmlReturn.RESET_REQUIRED},
}  # fmt: skip


_LICENCE = LazyPattern("(?:vgpu software|grid) licensed product/license status")
_MIG = LazyPattern("mig mode/current(?: mig)?")
_VIRTUAL = LazyPattern("(?:gpu virtualization mode/)?virtualization mode")


class GpuDump(Record, kw_only=False):
    """One GPU of a dump."""

    bdf: str
    fields: Fields
    index: int | None = None
    """NVML's number of it, where the output or the command above it has it."""


def imported(
    tool: str, gpus: Sequence[GpuDump], system: Mapping[str, str], understood: frozenset[int], headed: bool = True,
    reports: Reports | None = None, host: str = "",
) -> Imported:
    """The answers of NVML about the GPUs of one dump, and ``reports``; ``system`` has its first lines.

    GPUs without a printed number have that of their place, unless the dump lacks its head or tells of more GPUs than
    it shows.
    """
    gpus, attached = _merged(gpus[:MOST_GPUS]), _attached(system)
    whole = headed if attached is None else attached <= len(gpus)
    gpus = _numbered(gpus) if whole else gpus
    facts: dict[str, Json] = {f"{INDEX} {gpu.index}": gpu.bdf for gpu in gpus if gpu.index is not None}
    facts |= {f"{WITHOUT_NUMBER} {gpu.bdf}": True for gpu in gpus if gpu.index is None}
    if attached is not None and attached > len(gpus):
        facts[ATTACHED] = attached
    driver, cuda = system.get("driver version", ""), system.get("cuda version", "")
    driver = driver.partition(" ")[0]  # 610 adds that the field is deprecated
    if re.fullmatch(r"\d{1,4}(\.\d{1,4}){1,3}", driver, re.ASCII):
        facts["nvml nvmlSystemGetDriverVersion"] = driver
        tool = f"{tool} {driver}"
    if match := re.fullmatch(r"(\d{1,3})\.(\d{1,2})(?: .*)?", cuda, re.ASCII):
        facts["nvml nvmlSystemGetCudaDriverVersion"] = int(match[1]) * 1000 + int(match[2]) * 10
    reports = reports or Reports(tool)
    for gpu in gpus:
        if is_unlicensed(gpu.fields):
            text = f"vGPU licence: {_field(gpu.fields, _LICENCE)}"
            reports.add(HOST, "licence", "warn", Fault.VGPU_UNLICENSED, text)
        if gpu.fields.get(MIG_DEVICES) == "None" and _field(gpu.fields, _MIG) == "Enabled":
            of_gpu = gpu.bdf if gpu.index is None else f"GPU{gpu.index}"
            reports.add(of_gpu, "mig-devices", "warn", Fault.MIG_EMPTY, "MIG mode is on, without a MIG device")
        for question, answer in answers(gpu.fields):
            function, _, args = question.partition(" ")
            facts[f"nvml nvmlDeviceGet{function} {gpu.bdf} {args}".rstrip()] = answer
    return Imported(tool=tool, facts=facts | reports.facts(), understood=understood, host=host)


def _merged(gpus: Sequence[GpuDump]) -> list[GpuDump]:
    """Every GPU once, with its printed number; GPUs with neither bus id nor number stay separate."""
    found: dict[str, GpuDump] = {}
    unnamed = 0
    for gpu in gpus:
        bdf = gpu.bdf
        if bdf == NOWHERE:
            bdf = nameless(unnamed) if gpu.index is None else unplaced(gpu.index)
            unnamed += gpu.index is None
        earlier = found.get(bdf)
        index = earlier.index if earlier is not None and gpu.index is None else gpu.index
        found[bdf] = GpuDump(bdf, gpu.fields, index)
    return [*found.values()]


def _numbered(gpus: Sequence[GpuDump]) -> list[GpuDump]:
    """The GPUs; one with a bus id and without a number gets that of its position."""
    taken = {gpu.index for gpu in gpus}
    free = (number for number in range(2 * MOST_GPUS) if number not in taken)
    return [gpu if gpu.index is not None or is_unplaced(gpu.bdf) else replace(gpu, index=next(free)) for gpu in gpus]


def _attached(system: Mapping[str, str]) -> int | None:
    """How many GPUs NVML lists, by the head of a dump; None where the head is cut or makes no sense."""
    return integer(system.get("attached gpus", ""), MOST_GPUS) or None


def is_unlicensed(fields: Fields) -> bool:
    """A vGPU of a guest; the driver of a whole GPU shows the group as well, and needs no licence for CUDA."""
    licence = _field(fields, _LICENCE) or ""
    return licence.lower().startswith("unlicensed") and _field(fields, _VIRTUAL) in (None, "VGPU")


def answers(fields: Fields) -> Iterator[tuple[str, Json]]:
    """Pairs of NVML function (without ``nvmlDeviceGet``) with arguments, and answer, for every known field."""
    for question, pattern, read in SINGLE:
        if (text := _field(fields, pattern)) is not None:
            yield question, _read(text, read)
    for question, group, whole, parts in LISTS:
        yield from _list_answer(fields, question, group, whole, parts)
    of_reset = {action for name, action in _ACTIONS.items() if _field(fields, f"gpu reset status/{name}") == "Yes"}
    if of_reset and _field(fields, "gpu recovery action") is None:
        yield f"FieldValues {RECOVERY_ACTION}", min(of_reset)
    yield from _clock_event_reasons(fields)
    yield from _ecc_totals(fields)
    for question, members, more in STRUCTS:
        yield from _struct(fields, question, members, more)
    if "fabric/state" in fields and "fabric/status" in fields:
        words = {fields["fabric/state"], fields["fabric/status"]}
        unread: Json = {"missing": "garbled", "detail": f"nvidia-smi: {', '.join(sorted(words))[:60]}"}
        yield "GpuFabricInfo", fabric(fields) or (UNSUPPORTED if words & {"N/A", ""} else unread)
    if device := re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{8})", _field(fields, "pci/(?:pci )?device id") or ""):
        yield "PciInfo", {"pciDeviceId": int(device[1], 16)}


def _read(text: str, read: Callable[[str], Json]) -> Json:
    """The answer of a field, or the gap for its error text."""
    word = text.strip().removeprefix("[").removesuffix("]").strip()
    if word in _UNSUPPORTED:
        return UNSUPPORTED
    if word in ERRORS:
        return {**ERRORS[word], "detail": f"nvidia-smi: {word}"}
    answer = read(word)
    return {"missing": "garbled", "detail": f"nvidia-smi: {word[:40]}"} if answer is None else answer


def _field(fields: Fields, pattern: str | LazyPattern) -> str | None:
    path = _path(pattern, (*fields,))
    return None if path is None else fields[path]


@lru_cache(maxsize=1 << 12)
def _path(pattern: str | LazyPattern, paths: tuple[str, ...]) -> str | None:
    """The first that matches; the GPUs of a dump have the same."""
    pattern = LazyPattern(pattern) if isinstance(pattern, str) else pattern
    return next((path for path in paths if pattern.fullmatch(path)), None)


def _parts(fields: Fields, parts: Mapping[str, Part]) -> dict[str, Json]:
    """The answers of those that the dump has."""
    found = {name: (_field(fields, path), read) for name, (path, read) in parts.items()}
    return {name: _read(text, read) for name, (text, read) in found.items() if text is not None}


def _list_answer(
    fields: Fields, question: str, group: str, whole: bool, parts: Sequence[Part]
) -> Iterator[tuple[str, Json]]:
    if fields.get(group) == "N/A":
        yield question, UNSUPPORTED
        return
    read = _parts(fields, {str(number): part for number, part in enumerate(parts)})
    values = [read.get(str(number)) for number in range(len(parts))]
    gap = next((value for value in values if isinstance(value, dict)), None)
    if gap is not None and None not in values:
        yield question, gap
    elif gap is None and (all if whole else any)(isinstance(value, int) for value in values):
        yield question, values  # null for what a cut dump lacks


def _struct(
    fields: Fields, question: str, names: Mapping[str, Part], more: Mapping[str, Part]
) -> Iterator[tuple[str, Json]]:
    """A struct of numbers; the gap of any of its fields, as NVML answers all of them at once, nothing where the dump
    lacks one. ``more``: what newer drivers print."""
    also = {name: value for name, value in _parts(fields, more).items() if isinstance(value, int)}
    read = _parts(fields, names)
    gap = next((value for value in read.values() if isinstance(value, dict)), None)
    if gap is not None:
        yield question, gap
    elif len(read) == len(names) and (read or also):
        yield question, {**read, **also}


def _clock_event_reasons(fields: Fields) -> Iterator[tuple[str, Json]]:
    mask = fields.get("clocks event reasons mask", "")
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", mask):
        yield "CurrentClocksEventReasons", int(mask, 16)
        return
    states = {bit: _field(fields, pattern) for bit, pattern in THROTTLE}
    words = set(states.values()) - {None}
    if words & {"Active", "Not Active"}:
        active = sum(bit for bit, word in states.items() if word == "Active")
        cut = next(reversed(fields), "").startswith(("clocks throttle reasons/", "clocks event reasons/"))
        if not cut or states[SW_THERMAL] is not None or active & SLOWDOWNS:  # after it none that counts
            yield "CurrentClocksEventReasons", active
    elif words:
        yield "CurrentClocksEventReasons", _read(str(sorted(map(str, words))[0]), number)


def _ecc_totals(fields: Fields) -> Iterator[tuple[str, Json]]:
    """Totals of corrected and uncorrected errors; from Ampere on the sum of SRAM and DRAM."""
    for kind, bits, word in ((0, "single", "correctable"), (1, "double", "uncorrectable")):
        for when, period in ((0, "volatile"), (1, "aggregate")):
            total = _field(fields, f"ecc errors/{period}/{bits} bit/total")
            sums = re.compile(f"ecc errors/{period}/[sd]ram {word}.*")
            parts = [_read(value, number) for path, value in fields.items() if sums.fullmatch(path)]
            if total is not None:
                yield f"TotalEccErrors {kind} {when}", _read(total, number)
            elif parts and _field(fields, f"ecc errors/{period}/dram {word}") is not None:  # the last of the group
                yield f"TotalEccErrors {kind} {when}", _sum(parts)


def _sum(parts: Sequence[Json]) -> Json:
    """The sum of the numbers; where it is 0 and a part could not be read, why."""
    numbers = [part for part in parts if isinstance(part, int)]
    unread = [part for part in parts if not isinstance(part, int) and part != UNSUPPORTED]
    return unread[0] if unread and not sum(numbers) else sum(numbers) if numbers else UNSUPPORTED
