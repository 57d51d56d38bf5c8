"""Multicast over NVSwitches (NVLS) in NCCL's log: which GPUs of a host have it."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.readers.nccl.gpus import Gpus
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import gpu

_NVLS = re.compile(r"NVLS multicast support is (?P<no>not )?available on dev (?P<dev>\d{1,3})\b.{0,80}")


class Multicast:
    """By CUDA's number of the GPU."""

    def __init__(self) -> None:
        self._with: set[int] = set()
        self._without: set[int] = set()

    def take(self, text: str) -> bool:
        """Does a line (without NCCL's prefix) say whether a GPU has it?"""
        match = _NVLS.fullmatch(text)
        number = gpu(match["dev"]) if match is not None else None
        if match is not None and number is not None:
            (self._without if match["no"] else self._with).add(number)
        return match is not None

    def report(self, gpus: Gpus, reports: Reports) -> None:
        """It belongs to the fabric: where some GPUs have it, those that do not have lost theirs."""
        for number in sorted(self._without - self._with) if self._with else ():
            text = "no multicast over NVSwitches, which other GPUs of the host have"
            reports.add(gpus.of_cuda(number) or f"GPU{number}", "nvls", "warn", Fault.FABRIC_FAILED, text)
