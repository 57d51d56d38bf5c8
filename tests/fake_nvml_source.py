"""A machine of which only NVML answers, from a function or from a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.source.protocol import Json, Origin, Source

Question = tuple[str, str, tuple[int, ...]]

INVALID = Missing(Gap.UNSUPPORTED, "", "NVML 2: invalid argument", 2)
NOT_SUPPORTED = Missing(Gap.UNSUPPORTED, "", "NVML 3: not supported", 3)
LOST = Missing(Gap.LOST, "", "NVML 15: GPU is lost", 15)
MIB = 1 << 20


class FakeNvml:
    """Answers NVML questions through ``answer`` and keeps every question that was asked."""

    origin = Origin("recording")
    at_s = 0.0

    def __init__(self, answer: Callable[[str, str, tuple[int, ...]], Json | Missing]) -> None:
        self._answer = answer
        self.asked: list[Question] = []

    def nvml(self, function: str, subject: str = "", *args: int) -> Json | Missing:
        self.asked.append((function, subject, args))
        return self._answer(function, subject, args)

    def text(self, path: str) -> str | Missing:
        return self._unasked(path)

    def data(self, path: str) -> bytes | Missing:
        return self._unasked(path)

    def link(self, path: str) -> str | Missing:
        return self._unasked(path)

    def names(self, path: str) -> tuple[str, ...] | Missing:
        return self._unasked(path)

    def opens(self, path: str) -> bool | Missing:
        return self._unasked(path)

    def name(self, table: str, key: str) -> str | Missing:
        return self._unasked(f"{table} {key}")

    def kernel_log(self) -> tuple[str, ...] | Missing:
        return self._unasked("/dev/kmsg")

    def measured(self) -> Mapping[str, Json] | Missing:
        return self._unasked("measure")

    def stated(self) -> Mapping[str, Json] | Missing:
        return Missing(Gap.UNRECORDED, "stated")

    def later(self, seconds: float) -> Source | Missing:
        return self._unasked(f"later {seconds}")

    def _unasked(self, where: str) -> Missing:
        raise AssertionError(f"an NVML probe asked for {where}")


def box(*gpus: str, answers: Mapping[str, Json | Missing]) -> FakeNvml:
    """A machine of equal GPUs, from answers by ``FUNCTION [ARG ..]``; what they do not hold is ``NVML 3``."""
    table: dict[str, Json | Missing] = {
        "nvmlInit": True,
        "nvmlDeviceGetCount": len(gpus),
        **{f"nvmlDeviceGetHandleByIndex {index}": bdf for index, bdf in enumerate(gpus)},
        **answers,
    }
    linked = any(key.startswith("nvmlDeviceGetNvLinkState") for key in table)

    def answer(function: str, subject: str, args: tuple[int, ...]) -> Json | Missing:
        beyond = INVALID if linked and function == "nvmlDeviceGetNvLinkState" else NOT_SUPPORTED
        return table.get(" ".join((function, *map(str, args))), beyond)

    return FakeNvml(answer)
