"""A box of the CUDA stand-in, measured: for tests of the worker, its plan and what becomes of the facts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import read_box
from standin import cuda

from dgxcheck.facts.missing import Json
from dgxcheck.measure import plan
from dgxcheck.measure.publishable import publishable_facts, wrong
from dgxcheck.topology.model import Device, Topology
from dgxcheck.workers.cuda.supervisor import CudaStage

Fact = Mapping[str, Any]
SMALL: dict[str, Json] = {"bytes": 1 << 20, "memory_mib": 64, "seconds": 0.05}
"""Real bytes are moved: so few of them that a test is quick. The virtual clock does not mind."""
SHIPPED = {"dgx-1-v100": cuda.dgx1_v100, "dgx-1-p100": cuda.dgx1_p100, "k80-x8": cuda.k80_box}


def wired(name: str) -> Topology:
    return read_box.box(name).topology


def first(name: str, gpus: int) -> tuple[Device, ...]:
    return wired(name).gpus[:gpus]


def bdf(gpu: int, name: str = "dgx-1-v100") -> str:
    return str(wired(name).gpus[gpu].bdf)


class Bed:
    """Where measurements run: the stand-in as the driver, a description of its box, a ledger."""

    def __init__(self, library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._library = library
        self._folder = folder
        self._patch = monkeypatch

    def stage(self, box: cuda.Box, *faults: str, seconds: float = 5.0, library: Path | None = None) -> CudaStage:
        description = self._folder / "cuda-box"
        description.write_text(box.text(*faults))
        self._patch.setenv("DGXCHECK_CUDA_BOX", str(description))
        self._patch.setenv("DGXCHECK_CUDA_LEDGER", str(self._folder / "ledger"))
        self._patch.setenv("XDG_RUNTIME_DIR", str(self._folder))
        return CudaStage(seconds, str(library or self._library))

    def facts(
        self, box: cuda.Box, *faults: str, name: str = "dgx-1-v100", gpus: int = 3, seconds: float = 5.0,
        kinds: tuple[str, ...] = (), library: Path | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """All that is measured of the first GPUs of a shipped box, as it is published."""
        stage = self.stage(box, *faults, seconds=seconds, library=library)
        steps = [step | SMALL for step in plan.steps(wired(name), first(name, gpus))]
        return publishable_facts(stage.run([each for each in steps if not kinds or kind_of(each["key"]) in kinds]))

    def left(self) -> dict[str, int]:
        """What the last worker that closed had not given back."""
        return cuda.read_ledger(self._folder / "ledger")


def kind_of(key: Any) -> str:
    return str(key).split(" ")[1]


def odd(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """What is not as on a healthy box: failures, gaps, wrong words; not what follows of them."""
    return {key: fact for key, fact in facts.items() if {"failed", "missing"} & fact.keys() or _wrong(fact)}


def _wrong(fact: Fact) -> bool:
    return fact.get("unit") == "words" and wrong(dict(fact))
