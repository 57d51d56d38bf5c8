"""The GPUs of one host in NCCL's log: which rank, which number of CUDA and of NVML, which bus id.

NVML's number is the one that nvidia-smi shows; CUDA's depends on CUDA_VISIBLE_DEVICES, so it makes no list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.bdf import as_bdf, number_of, unplaced
from dgxcheck.facts.missing import Json
from dgxcheck.readers.listing import INDEX, gpu_function
from dgxcheck.readers.values import gpu

_INIT = re.compile(
    r".{0,120}\brank \d{1,7} nranks \d{1,7} cudaDev (?P<cuda>\d{1,3})(?: nvmlDev (?P<nvml>\d{1,3}))?"
    r"(?: busId (?P<bus>[0-9a-f]{3,13}))?\b.{0,400}"
)
_SHORTEST_BUS_ID = 3
"""Digits: ``1e0`` is 00:1e.0; what is shorter is NVML's number."""


def bdf_of(bus_id: str) -> str | None:
    """``9b000`` is 0000:9b:00.0: the digits of a bdf without its separators and leading zeros."""
    digits = bus_id.lower().rjust(9, "0")
    return as_bdf(f"{digits[:-5]}:{digits[-5:-3]}:{digits[-3:-1]}.{digits[-1]}")


class Gpus:
    """What the lines of one host say of its GPUs."""

    def __init__(self) -> None:
        self._of_cuda: dict[int, set[str]] = {}
        self._of_nvml: dict[int, set[str]] = {}
        self._shown: dict[str, None] = {}

    def take(self, text: str) -> bool:
        """Is it a line about the start of a rank?"""
        init = _INIT.fullmatch(text)
        if init is None:
            return False
        nvml, cuda = gpu(init["nvml"] or ""), gpu(init["cuda"])
        bdf = bdf_of(init["bus"]) if init["bus"] else None
        place = bdf or (unplaced(nvml) if nvml is not None else None)
        if place is not None:
            self._shown[place] = None
            for numbers, number in ((self._of_nvml, nvml), (self._of_cuda, cuda)):
                if number is not None:
                    numbers.setdefault(number, set()).add(place)
        return True

    def named(self, device: str) -> str | None:
        """The GPU in the brackets of a channel: a bus id (``3b000``, 2.5 to 2.17) or NVML's number (``6``)."""
        number = gpu(device) if len(device) < _SHORTEST_BUS_ID else None
        place = bdf_of(device) if number is None else self._by_number(number)
        if place is not None:
            self._shown[place] = None
        return place

    def of_cuda(self, number: int | None) -> str | None:
        """The GPU with this number of CUDA, where all ranks agree on it."""
        places = self._of_cuda.get(-1 if number is None else number, set())
        return next(iter(places)) if len(places) == 1 else None

    def _by_number(self, number: int) -> str:
        places = self._of_nvml.get(number, set())
        return next(iter(places)) if len(places) == 1 else unplaced(number)

    def words(self, place: str) -> str:
        """``GPU3`` for people, else the bus id."""
        numbers = [number for number, places in self._of_nvml.items() if places == {place}]
        return f"GPU{numbers[0]}" if numbers else place

    def facts(self) -> Iterator[tuple[str, Json]]:
        """NVML's list as far as the log tells it, and the functions of the GPUs."""
        numbers = {number: next(iter(places)) for number, places in self._of_nvml.items() if len(places) == 1}
        numbers |= {number: place for place in self._shown if (number := number_of(place)) is not None}
        if len(set(numbers.values())) == len(numbers):
            yield from ((f"{INDEX} {number}", place) for number, place in sorted(numbers.items()))
        for place in self._shown:
            if number_of(place) is None:
                yield from gpu_function(place).items()
