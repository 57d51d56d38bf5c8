"""NVML's list of GPUs, out of what several outputs say of it: numbers, bus ids, UUIDs, and GPUs that did not open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from dgxcheck.facts.bdf import bus_order, is_unplaced, unplaced
from dgxcheck.facts.missing import Json, members_of
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.lazy_pattern import ascii_pattern

INDEX = "nvml nvmlDeviceGetHandleByIndex"
COUNT = "nvml nvmlDeviceGetCount"
INIT = "nvml nvmlInit"
NO_HANDLE = "stated no-handle"
"""Begins the key of a GPU that nvidia-smi could not open: ``stated no-handle BDF``."""
WITHOUT_NUMBER = "stated gpu-without-number"
"""Begins the key of a GPU that NVML lists under an unknown number: ``stated gpu-without-number BDF``."""
ATTACHED = "stated gpus attached"
"""The key of how many GPUs NVML lists, of a text that shows fewer."""
OF_LIST = (INDEX, WITHOUT_NUMBER, ATTACHED)
"""Prefixes of the keys that describe NVML's list of GPUs."""
_UUID = "nvml nvmlDeviceGetUUID "
_NOT_SHOWN: Json = {"missing": "unasked", "detail": "no text shows this GPU"}
_OF_LINKS = ascii_pattern(r"stated nvlink[a-z-]{0,20} GPU(\d{1,2})(?: |$)")
_GPU = ascii_pattern(r"GPU\d{1,2}")


def handles(facts: Mapping[str, Json]) -> dict[int, str]:
    """Bus id by number, as one output has them."""
    numbers = {key.rpartition(" ")[2]: fact for key, fact in facts.items() if key.startswith(f"{INDEX} ")}
    return {int(number): str(bdf) for number, bdf in numbers.items() if number.isdecimal() and isinstance(bdf, str)}


def whole_list(bdfs: Mapping[int, str]) -> dict[str, Json]:
    """NVML's list of GPUs, of their bus ids by number; nothing where numbers are left out."""
    ordered = sorted(bdfs.items())
    return {f"{INDEX} {index}": bdf for index, bdf in ordered} if [*dict(ordered)] == [*range(len(bdfs))] else {}


def numberless(facts: Mapping[str, Json]) -> list[str]:
    """Bus ids of the GPUs with an unknown number, in bus order."""
    return sorted((key.rpartition(" ")[2] for key in facts if key.startswith(f"{WITHOUT_NUMBER} ")), key=bus_order)


def printed_bdfs(facts: Mapping[str, Json]) -> dict[int, str]:
    """Bus ids by CUDA's index, where a tool printed both."""
    bdfs: dict[int, str] = {}
    for key, fact in facts.items():
        index = key.removeprefix("measure device ")
        if index != key and index.isdecimal() and isinstance(bdf := members_of(fact).get("bdf"), str):
            bdfs[int(index)] = bdf
    return bdfs


def gpu_function(bdf: str) -> dict[str, Json]:
    """The files by which a PCI function is one of NVIDIA's GPUs, for a text that tells its bus id alone."""
    return {f"text {PCI_DEVICES}/{bdf}/class": "0x030200\n", f"text {PCI_DEVICES}/{bdf}/vendor": "0x10de\n"}


def placed(outputs: Iterable[Mapping[str, Json]]) -> list[dict[str, Json]]:
    """The facts of each output, with the bus ids of another for GPUs of which it has the UUID or the number alone.

    CUDA's numbers are NVML's where a program printed all GPUs in the order of their bus ids.
    """
    every = [*outputs]
    lists = [{number: bdf for number, bdf in handles(facts).items() if not is_unplaced(bdf)} for facts in every]
    numbers = _one_list(lists) or {}
    if not numbers:
        listed = {number for facts in every for number in handles(facts)}
        printed = {index: bdf for facts in every for index, bdf in printed_bdfs(facts).items()}
        in_bus_order = sorted(printed.values(), key=bus_order) == [printed[index] for index in sorted(printed)]
        numbers = printed if listed == printed.keys() and in_bus_order else {}
    uuids = {str(fact): key.rpartition(" ")[2] for facts in every for key, fact in facts.items()
             if key.startswith(_UUID) and not is_unplaced(key.rpartition(" ")[2])}  # fmt: skip
    return [_with_places(facts, numbers, uuids) for facts in every]


def _with_places(facts: Mapping[str, Json], numbers: Mapping[int, str], uuids: Mapping[str, str]) -> dict[str, Json]:
    places: dict[str, str] = {}
    for number, bdf in [*handles(facts).items(), *((None, bdf) for bdf in numberless(facts))]:
        if is_unplaced(bdf):
            uuid = facts.get(f"{_UUID}{bdf}")
            place = uuids.get(str(uuid)) if uuid is not None else None
            if place is None and number is not None and (uuid is None or uuid not in uuids):
                place = numbers.get(number)
            if place is not None:
                places[bdf] = place
    if not places:
        return dict(facts)
    moved = {key: places.get(str(fact), fact) if key.startswith(INDEX) else fact for key, fact in facts.items()}
    return {" ".join(places.get(word, word) for word in key.split(" ")): fact for key, fact in moved.items()}


def gpu_list(outputs: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """NVML's answers: GPUs under the numbers that were printed; in bus order where these contradict each other.

    The numbers between are of GPUs that no text shows.
    """
    lists = [handles(facts) for facts in outputs]
    numbers = _one_list(lists)
    if numbers is None:
        every = {bdf for one in lists for bdf in one.values()}
        numbers = dict(enumerate(sorted(every, key=bus_order)))
    without = {bdf for facts in outputs for bdf in numberless(facts)} - set(numbers.values())
    attached = max((fact for facts in outputs if isinstance(fact := facts.get(ATTACHED), int)), default=0)
    return answers(dict(numbers), without, attached)


def without_unplaced(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The facts without GPUs of which nothing tells the bus id."""
    if facts.get(COUNT) == 0 and not handles(facts):
        return dict(facts)
    real = {number: bdf for number, bdf in handles(facts).items() if not is_unplaced(bdf)}
    kept = {key: fact for key, fact in facts.items()
            if not key.startswith((INDEX, COUNT)) and not any(map(is_unplaced, key.split(" ")))}  # fmt: skip
    return kept | answers(dict(real), numberless(kept))


def with_numbers(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The facts with every GPU of which a text tells NVLinks in NVML's list, and those of a matrix beside it.

    Nothing tells the numbers of GPUs that a listing of PCI devices shows beside a matrix that has more or fewer.
    """
    listed = handles(facts)
    named = {int(match[1]) for key in facts if (match := _OF_LINKS.match(key))}
    matrix = gpus_of_matrix(facts)
    if (named or listed) and all(map(is_unplaced, listed.values())):
        named |= matrix
    if missing := named - listed.keys():
        unknown: dict[int, Json] = {number: unplaced(number) for number in missing}
        return {**facts, **answers({**listed, **unknown}, numberless(facts), count_of(facts))}
    without = {*numberless(facts)} | ({*gpus_on_pci(facts)} - {*listed.values()})
    beyond: dict[int, Json] = dict.fromkeys(matrix - listed.keys(), _NOT_SHOWN)
    if not (beyond and (listed or without)) or (not listed and len(without) == len(matrix)):
        return dict(facts)
    return {**facts, **answers({**listed, **beyond}, without, max(count_of(facts), len(matrix), len(without)))}


def of_functions(facts: Mapping[str, Json], kind: str, file: str) -> dict[str, str]:
    """By bus id: what a file or link of the PCI functions holds that some outputs show."""
    before, after = f"{kind} {PCI_DEVICES}/", f"/{file}"
    return {key[len(before) : -len(after)]: fact for key, fact in facts.items()
            if key.startswith(before) and key.endswith(after) and isinstance(fact, str)}  # fmt: skip


def gpus_on_pci(facts: Mapping[str, Json]) -> list[str]:
    """Bus ids of the GPUs whose PCI functions some outputs show."""
    vendors = of_functions(facts, "text", "vendor")
    return [bdf for bdf, kind in of_functions(facts, "text", "class").items()
            if kind.startswith("0x03") and vendors.get(bdf) == "0x10de\n"]  # fmt: skip


def gpus_of_matrix(facts: Mapping[str, Json]) -> set[int]:
    """The numbers of the GPUs that a matrix names."""
    words = {word for key in facts if key.startswith("stated label") for word in key.split()[2:]}
    return {int(word[3:]) for word in words if _GPU.fullmatch(word)}


def answers(numbers: Mapping[int, Json], without: Collection[str] = (), attached: int = 0) -> dict[str, Json]:
    """NVML's answers for a list of GPUs, or gaps, by number, and GPUs ``without`` any; ``attached`` are there at least.

    All GPUs without a number have that of their place in bus order where they and the others are all that there are.
    """
    if not (numbers or without):
        return {}
    count = max(max(numbers, default=-1) + 1, attached or len(numbers) + len(without))
    if without and count == attached == len(numbers) + len(without) and not any(map(is_unplaced, without)):
        free = [number for number in range(count) if number not in numbers]
        in_order: list[str] = sorted(without, key=bus_order)
        numbers, without = {**numbers, **dict(zip(free, in_order, strict=True))}, ()
    listed: dict[str, Json] = {f"{WITHOUT_NUMBER} {bdf}": True for bdf in sorted(without, key=bus_order)}
    return {INIT: True, COUNT: count, **listed} | {
        f"{INDEX} {number}": numbers.get(number, _NOT_SHOWN) for number in range(count)
    }


def count_of(facts: Mapping[str, Json]) -> int:
    return count if isinstance(count := facts.get(COUNT), int) else 0


def _one_list(lists: Sequence[Mapping[int, str]]) -> dict[int, str] | None:
    """All lists as one; None where they number a GPU differently, or two GPUs alike."""
    found: dict[int, str] = {}
    for one in lists:
        if any(found.get(number, bdf) != bdf for number, bdf in one.items()):
            return None
        found |= one
    return found if len(set(found.values())) == len(found) else None
