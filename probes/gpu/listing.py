"""What NVML lists: its GPUs, and the NVLink positions of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dgxcheck.facts.bdf import bus_order, is_bdf
from dgxcheck.facts.ids import MOST_GPUS, NVLINK_MAX_LINKS, NvmlReturn
from dgxcheck.facts.missing import Gap, Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.answers import as_bdf, garbled, number

T = TypeVar("T")
WITHOUT_NUMBER = "gpu-without-number"
_NO_NUMBER = Missing(Gap.UNRECORDED, "nvmlDeviceGetIndex", "the text does not tell the number")


def start(source: Source) -> Missing | None:
    """Why NVML cannot be used, or None where ``nvmlInit`` succeeded."""
    answer = source.nvml("nvmlInit")
    if isinstance(answer, Missing):
        return answer
    return None if answer is True else garbled("nvmlInit", answer)


def count(source: Source) -> int | Missing:
    """``nvmlDeviceGetCount``."""
    return number(source, "nvmlDeviceGetCount", high=MOST_GPUS)


def bdfs(source: Source) -> tuple[tuple[int | Missing, str | Missing], ...] | Missing:
    """Index and bdf of every GPU of ``nvmlDeviceGetHandleByIndex``; a gap for an index without a handle.

    Of an imported text a GPU may be known and its index not; it stands for one of the indexes that no text shows.
    """
    if (gap := start(source)) is not None:
        return gap
    total = count(source)
    if isinstance(total, Missing):
        return total
    listed: dict[str, int] = {}
    numbered = [(index, _handle(source, index, listed)) for index in range(total)]
    others = _without_number(source)
    not_shown = [row for row in numbered if isinstance(row[1], Missing) and row[1].gap is Gap.UNASKED]
    return (*(row for row in numbered if row not in not_shown[: len(others)]), *((_NO_NUMBER, bdf) for bdf in others))


def present(source: Source) -> tuple[str, ...] | Missing:
    """The GPUs that have a handle, in NVML's order."""
    listed = bdfs(source)
    if isinstance(listed, Missing):
        return listed
    return tuple(bdf for _, bdf in listed if isinstance(bdf, str))


def per_gpu(source: Source, read: Callable[[Source, str], T]) -> tuple[T, ...] | Missing:
    """``read`` for every GPU that has a handle."""
    gpus = present(source)
    return gpus if isinstance(gpus, Missing) else tuple(read(source, bdf) for bdf in gpus)


def per_link(source: Source, read: Callable[[Source, str, int, int | Missing], T]) -> tuple[T, ...] | Missing:
    """``read`` for every NVLink position and its state."""
    gpus = present(source)
    if isinstance(gpus, Missing):
        return gpus
    return tuple(read(source, bdf, link, state) for bdf in gpus for link, state in links(source, bdf))


def links(source: Source, bdf: str) -> tuple[tuple[int, int | Missing], ...]:
    """Position and ``nvmlDeviceGetNvLinkState`` of every NVLink that a GPU may have; none where it has no NVLink.

    Positions end where the driver calls the number an invalid argument. A GPU that says nothing at all about its last
    positions (lost, unrecorded ..) has one entry for all of these.
    """
    found: list[tuple[int, int | Missing]] = []
    for link in range(NVLINK_MAX_LINKS):
        state = number(source, "nvmlDeviceGetNvLinkState", bdf, link)
        if isinstance(state, Missing) and state.gap is Gap.UNSUPPORTED and (link == 0 or _invalid_argument(state)):
            break
        found.append((link, state))
    while len(found) > 1 and _silent(found[-1][1]) and _silent(found[-2][1]):
        found.pop()
    return tuple(found)


def _without_number(source: Source) -> list[str]:
    """The bdfs under ``stated gpu-without-number``."""
    stated = source.stated()
    keys = [key.split(" ") for key in (() if isinstance(stated, Missing) else stated)]
    return sorted({words[2] for words in keys if words[1:2] == [WITHOUT_NUMBER] and is_bdf(words[-1])}, key=bus_order)


def _handle(source: Source, index: int, listed: dict[str, int]) -> str | Missing:
    where = question("nvmlDeviceGetHandleByIndex", "", index)
    answer = source.nvml("nvmlDeviceGetHandleByIndex", "", index)
    if isinstance(answer, Missing):
        return answer
    if (bdf := as_bdf(answer)) is None:
        return garbled(where, answer)
    if listed.setdefault(bdf, index) != index:
        return Missing(Gap.GARBLED, where, f"{bdf} is index {listed[bdf]} already")
    return bdf


def _invalid_argument(state: Missing) -> bool:
    return state.code == NvmlReturn.INVALID_ARGUMENT


def _silent(state: int | Missing) -> bool:
    return isinstance(state, Missing) and state.gap is not Gap.UNSUPPORTED
