"""Assign imported facts, whose subjects are indexes or names, to the GPUs of a known box."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.bdf import UNPLACED, as_bdf, is_unplaced, number_of, place_of
from dgxcheck.facts.ids import MOST_GPUS, NVLINK5_ERRORS, NVLINK_SPEED
from dgxcheck.facts.missing import BadInput, Json, members_of
from dgxcheck.facts.nvml.nvlink import CAPABILITIES, STATUSES
from dgxcheck.lazy_pattern import ascii_pattern
from dgxcheck.readers.listing import COUNT, INDEX, INIT, OF_LIST, numberless, printed_bdfs
from dgxcheck.readers.nvidia_smi.nvlink import KIND as NVLINK_ERRORS

NO_INDEXES = ("ring", "collective")
"""Kinds of measurement whose subjects are not GPU indexes."""
_WITH_SUBJECTS = ("nvml ", "measure ", "stated ")
_GPU = ascii_pattern(r"(?:GPU)?(\d{1,3})")
_P2P = {f"p2p-{name}": number for number, name in enumerate(CAPABILITIES)}
_STATE = "nvml nvmlDeviceGetNvLinkState"
_ERRORS = "nvml nvmlDeviceGetNvLinkErrorCounter"
LEAST_FIELD = min(NVLINK5_ERRORS.values())
_STATUS = "nvml nvmlDeviceGetP2PStatus"
_MIG = "nvml nvmlDeviceGetMigMode"
_FIELD = "nvml nvmlDeviceGetFieldValues"
_RATE = ascii_pattern(r"(\d{1,4}(?:\.\d{1,6})?) ?GB/s")
_NO_STATES = {"none": "no NVLink", "MIG": "no NVLink queries in MIG mode"}


def nvml_gpus(facts: Mapping[str, Json]) -> tuple[str, ...]:
    """The bdfs of NVML's list, in NVML's order; empty if the facts have none."""
    listed = (facts.get(f"{INDEX} {number}") for number in range(MOST_GPUS))
    return tuple(bdf for fact in listed if isinstance(fact, str) and (bdf := as_bdf(fact)))


def mismatch(facts: Mapping[str, Json], gpus: Mapping[int, str], whole: bool = True) -> str:
    """Why the facts cannot belong to a box with these GPUs (bdfs by NVML index); empty if they can.

    Where the GPUs are not the ``whole`` box but those that some outputs show, another output may number more or fewer.
    """
    last = max(gpus, default=-1)
    matrix = {word for key in facts if key.startswith(("stated label", "stated p2p")) for word in key.split()[2:]}
    indexes = sorted(int(word[3:]) for word in matrix if word.startswith("GPU") and word[3:].isdecimal())
    if whole and indexes and (len(indexes) != len(gpus) or indexes[-1] > last):
        count = "1 GPU" if len(indexes) == 1 else f"{len(indexes)} GPUs"
        return f"the matrix has {count} (up to GPU{indexes[-1]}), the box has {len(gpus)}"
    places = _places(facts, gpus)
    bdfs = {*gpus.values(), *numberless(facts)}
    for key in facts:
        if not key.startswith(_WITH_SUBJECTS):
            continue
        kind, *words = key.split()
        of_gpu = kind == "nvml" and words[1:] and ":" in words[1] and f"{kind} {words[0]}" != INDEX
        if of_gpu and places.get(words[1], words[1]) not in bdfs:
            if (number := number_of(words[1])) is not None:
                return f"GPU {number} does not exist; the last GPU of the box is GPU {last}"
            what = "a GPU without a bus id" if place_of(words[1]) is not None else f"GPU {words[1]}"
            return f"{what} in a dump is not one of the {len(gpus)} GPUs of the box"
        for word in _subjects(key):
            if whole and (match := _GPU.fullmatch(word)) and int(match[1]) not in gpus:
                return f"GPU {match[1]} does not exist; the last GPU of the box is GPU {last}"
    return ""


def rebase_indexes(facts: Mapping[str, Json], gpus: Mapping[int, str], whole: bool = True) -> dict[str, Json]:
    """The facts with bdfs in place of indexes and names; ``gpus`` are bdfs by NVML index. BadInput if they do not fit.

    Bus ids that p2pBandwidthLatencyTest prints take precedence. NVLink and P2P states become NVML's answers.
    """
    order = {**gpus, **printed_bdfs(facts)}
    if why := mismatch(facts, gpus, whole):
        raise BadInput(why)
    for index, bdf in order.items():
        if bdf not in gpus.values() and not all(map(is_unplaced, gpus.values())):
            raise BadInput(f"a tool prints bus id {bdf} for GPU {index}, which the box does not have")
    places = _places(facts, gpus)
    rebased: dict[str, Json] = {}
    for key, fact in facts.items():
        if key.startswith(OF_LIST) or key in (COUNT, INIT):
            continue
        if not key.startswith(_WITH_SUBJECTS):
            rebased[key] = fact
            continue
        words = [places.get(word, word) for word in key.split()]
        if subjects := _subjects(key):
            by_index = order if words[0] == "measure" else gpus
            words = [*words[:2], *(_bdf(word, by_index) for word in subjects), *words[2 + len(subjects) :]]
        collective = words[1:2] == ["collective"]
        rebased |= {" ".join(words): _with_bdfs(fact, order)} if collective else _as_nvml(words, fact)
    return rebased


def _places(facts: Mapping[str, Json], table: Mapping[int, str]) -> dict[str, str]:
    """The bus ids for GPUs of which the facts have the number alone; of a box with one GPU also for one without any."""
    numbers = {word: number for key in facts for word in key.split() if (number := number_of(word)) is not None}
    only = {UNPLACED: next(iter(table.values()))} if len(table) == 1 else {}
    return only | {word: table[number] for word, number in numbers.items() if number in table}


def _with_bdfs(fact: Json, order: Mapping[int, str]) -> Json:
    """The fact of a collective with bdfs in place of the tool's numbers of its devices, in other runs of it too."""
    changed = dict(members_of(fact))
    devices, also = changed.get("devices"), changed.get("also")
    if isinstance(devices, list):
        changed["devices"] = [order.get(one, one) if isinstance(one, int) else one for one in devices]
    if isinstance(also, list):
        changed["also"] = [_with_bdfs(run, order) for run in also]
    return changed


def _subjects(key: str) -> list[str]:
    """The words of a key that may name GPUs."""
    kind, what, *words = [*key.split(), "", ""]
    words = [word for word in words if word]
    if kind == "measure":
        return [] if what in NO_INDEXES else words
    if kind == "stated":
        return words[:1] if what.startswith(("nvlink", "nic-name", "report")) else words
    return []


def _bdf(word: str, table: Mapping[int, str]) -> str:
    match = _GPU.fullmatch(word)
    return table.get(int(match[1]), word) if match else word


def _as_nvml(words: list[str], fact: Json) -> dict[str, Json]:
    """A fact as NVML's answers, if the tool's text is equivalent to some; else unchanged."""
    kind, what, *rest = words
    if kind == "stated" and isinstance(fact, str):
        if what in _P2P and fact in STATUSES:
            return {f"{_STATUS} {' '.join(rest)} {_P2P[what]}": STATUSES.index(fact)}
        if what == "nvlink" and len(rest) == 2:
            return _link_answers(rest[0], rest[1], fact)
        if what == "nvlink" and fact == "all inactive":
            return {f"{_STATE} {rest[0]} 0": 0}
        if what == "nvlink" and fact in _NO_STATES:
            no_link: Json = {"missing": "unsupported", "detail": f"nvidia-smi: {_NO_STATES[fact]}"}
            return {f"{_STATE} {rest[0]} 0": no_link} | ({f"{_MIG} {rest[0]}": [1, None]} if fact == "MIG" else {})
        if what == "nvlink-remote" and len(rest) == 2 and (bdf := as_bdf(fact)) is not None:
            return {f"nvml nvmlDeviceGetNvLinkRemotePciInfo {rest[0]} {rest[1]}": {"busId": bdf}}
    if kind == "stated" and what == NVLINK_ERRORS and len(rest) == 3:
        return {f"{_ERRORS if int(rest[2]) < LEAST_FIELD else _FIELD} {' '.join(rest)}": fact}
    return {" ".join(words): fact}


def _link_answers(bdf: str, link: str, fact: str) -> dict[str, Json]:
    """State, and of a link that is up its rate in MB/s: ``25.781 GB/s``."""
    found: dict[str, Json] = {f"{_STATE} {bdf} {link}": 0 if fact == "<inactive>" else 1}
    if match := _RATE.fullmatch(fact):
        found[f"{_FIELD} {bdf} {link} {NVLINK_SPEED}"] = round(float(match[1]) * 1000)
    return found
