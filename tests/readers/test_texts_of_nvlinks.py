"""What nvidia-smi says of the links between GPUs: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from readers_text import assert_read
from test_texts_of_nvidia_smi import A100, GH200

C2C = GH200 + "\t C2C Link 0: 44.712 GB/s\n\t C2C Link 1: {}\n"
NO_C2C = GH200 + "NVML: Unable to retreive C2C Link information as all links are inActive\n"
ONE_LINK = A100 + "NVML: Unable to retrieve NVLink information for link 3 - inActive\n"
NAMED = "index, pci.bus_id, name, mig.mode.current\n" + "".join(
    f"{gpu}, 00000000:{gpu + 16:02x}:00.0, NVIDIA H100 80GB HBM3, Disabled\n" for gpu in range(8)
)


def joined(label: str, legend: str = "NV#  = Connection traversing a bonded set of # NVLinks") -> str:
    """The matrix of eight GPUs."""
    rows = "".join(f"GPU{a}\t{chr(9).join(' X ' if a == b else label for b in range(8))}\n" for a in range(8))
    legend = f"  {legend}\n"
    return "\n\t" + "\t".join(f"GPU{gpu}" for gpu in range(8)) + f"\n{rows}\nLegend:\n\n{legend}"


def allowed(cell: str, which: str = "r") -> str:
    """The matrix of access between eight GPUs."""
    return f"\n$ nvidia-smi topo -p2p {which}" + joined(cell, "OK   = Status Ok")


WIRED = "".join(
    f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-01234567-89ab-cdef-0123-45678900000{gpu})\n"
    + "".join(f"\t Link {link}: {'26.562 GB/s' if gpu or link else '{}'}\n" for link in range(18)) for gpu in range(8)
)  # fmt: skip
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "nvidia-smi nvlink -s, one link": (ONE_LINK, ("warn nvlink-down drain",)),
    "nvidia-smi c2c -s": (C2C.format("<inactive>"), ("warn c2c-down inspect",)),
    "nvidia-smi c2c -s, all links": (NO_C2C, ("fail c2c-down inspect",)),
    "nvidia-smi c2c -s, good": (C2C.format("44.712 GB/s"), ()),
    "nvidia-smi c2c -s on a line": (C2C.replace("\n\t ", "\t", 1).format("<Inactive>"), ("warn c2c-down inspect",)),
    "nvidia-smi topo -m, half of the NVLinks": (NAMED + joined("NV9"), ("warn nvlink-reported inspect",)),
    "nvidia-smi topo -m, no NVLink": (NAMED + joined("SYS"), ("warn nvlink-reported inspect",)),
    "nvidia-smi topo -m, no NVLink in MIG mode": (NAMED.replace("Disabled", "Enabled") + joined("SYS"), ()),
    "nvidia-smi topo -m, good": (NAMED + joined("NV18"), ()),
    "nvidia-smi topo -m of cards": (NAMED.replace("80GB HBM3", "PCIe") + joined("SYS"), ()),
    "nvidia-smi topo -p2p": (NAMED + allowed("CNS"), ("warn p2p-blocked change-setting",)),
    "nvidia-smi topo -p2p of NVLinks": (NAMED + allowed("NS", "n"), ("warn p2p-blocked change-setting",)),
    "nvidia-smi topo -p2p, good": (NAMED + allowed("OK"), ()),
    "nvidia-smi topo -p2p in MIG mode": (NAMED.replace("Disabled", "Enabled") + allowed("NS"), ()),
    "nvidia-smi topo -p2p of cards": (NAMED.replace("80GB HBM3", "PCIe") + allowed("CNS"), ()),
    "nvidia-smi topo -p2p of cards below a switch": (
        NAMED.replace("80GB HBM3", "PCIe") + joined("PIX") + allowed("CNS"), ("warn p2p-blocked change-setting",)),
    "nvidia-smi topo -p2p of GeForce below a switch": (
        NAMED.replace("H100 80GB HBM3", "GeForce RTX 4090") + joined("PIX") + allowed("CNS"), ()),
    "nvidia-smi topo -m and -p2p": (joined("NV4") + allowed("TNS"), ("warn p2p-blocked change-setting",)),
    "nvidia-smi topo -m and -p2p, good": (joined("NV4") + allowed("OK"), ()),
    "nvidia-smi nvlink -s": (WIRED.format("<inactive>"), ("fail nvlink-down drain",)),
    "nvidia-smi nvlink -s, good": (WIRED.format("26.562 GB/s"), ()),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    assert_read(EXPECTED[name], tmp_path)


def test_a_link_that_is_shown_alone_is_not_all_of_them(tmp_path: Path) -> None:
    _, found = of_text(ONE_LINK, tmp_path)
    assert "link 3 down, and all of this model are wired" in str(found["causes"][0])
