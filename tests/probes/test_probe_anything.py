"""No probe raises, whatever the machine answers, and each works with any file absent."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from fake_source import FakeSource
from hypothesis import given, settings
from hypothesis import strategies as st

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.source.protocol import Source
from probes.host.host import host, network, storage
from probes.host.memory import numa
from probes.host.software import device_nodes, modules
from probes.infiniband import ib_ports, infiniband
from probes.pci.config_space import aer, config_space
from probes.pci.functions import bars, iommu, pci, slots

PROBES: tuple[Callable[[Source], object], ...] = (
    pci,
    bars,
    aer,
    config_space,
    iommu,
    numa,
    infiniband,
    ib_ports,
    modules,
    host,
    network,
    storage,
    slots,
    device_nodes,
)
TEXTS = (
    "",
    "\n",
    "0\n",
    "-1\n",
    "16\n",
    "0x030200\n",
    "0x068000",
    "0x060400\n",
    "0x10de\n",
    "0xffff",
    "8.0 GT/s PCIe\n",
    "Unknown\n",
    "4: ACTIVE\n",
    "D3cold\n",
    "\ufffd\x1b[31m\x00",
    "x" * 5000,
    "RxErr 1\nTOTAL_ERR_COR x\n",
    "processor : 0\nprocessor : z\ncpu\n",
)
TARGETS = (
    "",
    "/",
    "../../../devices/pci0000:00/0000:00:02.0/0000:06:00.0",
    "../../../devices/pci0000:00/0000:06:00.0",
    "../../../0000:05:00.0",
    "../../../../kernel/iommu_groups/7",
    "../nvidia",
    "\ufffd",
)
NAMES = (
    "0000:06:00.0",
    "0000:05:00.0",
    "0000:00:02.0",
    "10000:e1:00.0",
    "mlx5_0",
    "mlx5_10",
    "1",
    "node0",
    "md0",
    "md0p1",
    "nvidia",
    "mc0",
    "lifespan",
    "uverbs0",
    "uverbs10",
    "\ufffd",
    "..",
)
MISSING = tuple(Missing(gap, "somewhere") for gap in Gap)


class Anything(FakeSource):
    """Answers every question at random, the same question always alike."""

    def __init__(self, seed: int) -> None:
        super().__init__({})
        self._seed = seed

    def text(self, path: str) -> str | Missing:
        answers: tuple[str | Missing, ...] = (*TEXTS, *MISSING)
        return self._dice(f"text {path}").choice(answers)

    def data(self, path: str) -> bytes | Missing:
        dice = self._dice(f"data {path}")
        size = dice.choice((0, 3, 64, 256, 4096))
        answers: tuple[bytes | Missing, ...] = (b"\xff" * size, bytes(size), dice.randbytes(size), *MISSING)
        return dice.choice(answers)

    def link(self, path: str) -> str | Missing:
        answers: tuple[str | Missing, ...] = (*TARGETS, *MISSING)
        return self._dice(f"link {path}").choice(answers)

    def names(self, path: str) -> tuple[str, ...] | Missing:
        dice = self._dice(f"names {path}")
        if dice.random() < 0.1:
            return dice.choice(MISSING)
        return tuple(sorted(dice.sample(NAMES, dice.randrange(len(NAMES)))))

    def opens(self, path: str) -> bool | Missing:
        answers: tuple[bool | Missing, ...] = (True, False, *MISSING)
        return self._dice(f"opens {path}").choice(answers)

    def _dice(self, question: str) -> random.Random:
        return random.Random(f"{self._seed} {question}")


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__module__)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_whatever_the_machine_answers_the_probe_says_the_same_twice(
    probe: Callable[[Source], object], seed: int
) -> None:
    assert probe(Anything(seed)) == probe(Anything(seed))


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__module__)
@pytest.mark.parametrize("gap", list(Gap))
def test_a_machine_that_answers_nothing(probe: Callable[[Source], object], gap: Gap) -> None:
    class Silent(FakeSource):
        def text(self, path: str) -> str | Missing:
            return Missing(gap, path)

        def data(self, path: str) -> bytes | Missing:
            return Missing(gap, path)

        def link(self, path: str) -> str | Missing:
            return Missing(gap, path)

        def names(self, path: str) -> tuple[str, ...] | Missing:
            return Missing(gap, path)

        def opens(self, path: str) -> bool | Missing:
            return Missing(gap, path)

    got = probe(Silent({}))
    assert got is not None
    if isinstance(got, Missing):
        assert got.gap is gap
