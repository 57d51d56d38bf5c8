"""What GPU and slot support, each: ports with fewer lanes than their GPUs, and ports that a hypervisor made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from changed_box import PCI, document
from judging import of_text

from dgxcheck.facts.missing import Json

PORTS = {f"0000:2{number}:00.0": f"0000:00:03.{number}" for number in (1, 2, 3, 4)}
GUESTS = [f"0000:{bus}:00.0" for bus in ("53", "64", "75", "86", "97", "a8", "b9", "ca")]
SPEEDS = {3: "8.0 GT/s PCIe\n", 4: "16.0 GT/s PCIe\n", 5: "32.0 GT/s PCIe\n"}


def bad(found: Any, check: str) -> list[Any]:
    return [each for each in found["findings"] if each["id"] == check and each["status"] in ("warn", "fail")]


def narrow(buses: tuple[str, ...], lanes: int) -> dict[str, Json]:
    ends = {f"0000:{bus}:00.0": PORTS[f"0000:{bus}:00.0"] for bus in buses}
    facts: dict[str, Json] = {f"text {PCI}/{end}/current_link_width": f"{lanes}\n" for ends_ in ends.items()
                              for end in ends_}  # fmt: skip
    facts |= {f"text {PCI}/{port}/max_link_width": f"{lanes}\n" for port in ends.values()}
    return facts | {f"nvml nvmlDeviceGetCurrPcieLinkWidth {gpu} ": lanes for gpu in ends}


@pytest.mark.parametrize(("buses", "lanes", "words"), [
    (("24",), 4, "GPU3 below supports x16"), (("22", "24"), 8, "GPU1, GPU3 below support x16"),
])  # fmt: skip
def test_a_slot_with_fewer_lanes_than_its_gpu(buses: tuple[str, ...], lanes: int, words: str, tmp_path: Path) -> None:
    found = document(tmp_path, "geforce-x4", narrow(buses, lanes))
    (uneven,) = bad(found, "pcie.uniform")
    assert words in uneven["message"]
    assert "bifurcation" in uneven["remedy"]
    widths = [each["message"] for each in found["findings"] if each["id"] == "pcie.width"]
    assert sum(f"the port supports x{lanes}, the device x16" in message for message in widths) == len(buses)


@pytest.mark.parametrize(("lanes", "due"), [(8, []), (4, ["link-unseen"])])
def test_a_guest_that_sees_no_port_above_its_gpu(lanes: int, due: list[str], tmp_path: Path) -> None:
    """Half of the lanes is what many slots have."""
    found = document(tmp_path, "h100", {"nvml nvmlDeviceGetCurrPcieLinkWidth 0000:00:06.0 ": lanes})
    assert [each["fault"] for each in bad(found, "pcie.width")] == due


def guests(gens: tuple[int, ...]) -> dict[str, Json]:
    """All at work, with the links that they have."""
    facts: dict[str, Json] = {}
    for bdf, gen in zip(GUESTS, gens, strict=True):
        nvml = "nvml nvmlDeviceGet"
        facts |= {f"{nvml}UtilizationRates {bdf} ": {"gpu": 97, "memory": 40},
                  f"{nvml}CurrentClocksEventReasons {bdf} ": 0, f"{nvml}CurrPcieLinkGeneration {bdf} ": gen,
                  f"text {PCI}/{bdf}/current_link_speed": SPEEDS[gen]}  # fmt: skip
    return facts


@pytest.mark.parametrize(("gens", "due"), [
    ((5, 5, 3, 5, 5, 5, 5, 5), [5]), ((5, 5, 4, 5, 5, 5, 5, 5), [5]), ((5,) * 8, []), ((4,) * 8, []),
    ((4, 4, 3, 4, 4, 4, 4, 4), [4]),
])  # fmt: skip
def test_a_virtual_port_says_nothing_of_the_slot(gens: tuple[int, ...], due: list[int], tmp_path: Path) -> None:
    """QEMU's root port prints 16 GT/s, whatever the host has; the other GPUs show what it has."""
    assert [each["expected"] for each in bad(document(tmp_path, "vm-h100-x8", guests(gens)), "pcie.generation")] == due


def by_nvml(widths: tuple[int, ...]) -> str:
    columns = "index, name, pci.bus_id, pcie.link.width.current, pcie.link.width.max"
    rows = "".join(f"{number}, NVIDIA H100 PCIe, 00000000:{17 + number}:00.0, {width}, 16\n"
                   for number, width in enumerate(widths))  # fmt: skip
    return f"$ nvidia-smi --query-gpu={columns.replace(' ', '')} --format=csv\n{columns}\n{rows}"


def by_lspci(widths: tuple[int, ...]) -> str:
    return "$ lspci -vv -d 10de:\n" + "".join(
        f"{17 + number}:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)\n"
        "\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+\n"
        "\tCapabilities: [68] Express (v2) Endpoint, MSI 00\n"
        "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
        f"\t\tLnkSta:\tSpeed 32GT/s, Width x{width}\n\tKernel driver in use: nvidia\n\n"
        for number, width in enumerate(widths)
    )


MOST = ", as most other GPUs have"


@pytest.mark.parametrize(("text", "due"), [
    (by_nvml((16, 16, 8)), {"19": f"fail link at x8, GPU and slot support x16{MOST}"}),
    (by_nvml((8, 16, 8)), dict.fromkeys(("17", "19"), "unknown link at x8, the GPU supports x16; what its slot supports"
                                                      " is not shown")),
    (by_nvml((8, 8, 16, 16)), dict.fromkeys(("17", "18"), "unknown link at x8, the GPU supports x16; what its slot"
                                                          " supports is not shown")),
    (by_lspci((16, 16, 8, 16)), {"19": f"warn link at x8, the GPU supports x16{MOST}"}),
    (by_lspci((16, 8, 16)), {"18": f"warn link at x8, the GPU supports x16{MOST}"}),
    (by_lspci((16, 8)), {"18": "unknown link at x8, the GPU supports x16; what its slot supports is not shown"}),
    (by_lspci((16, 8, 16)).replace("3D controller", "VGA compatible controller"),
     {"18": "unknown link at x8, the GPU supports x16; what its slot supports is not shown"}),
    (by_lspci((16, 8, 8, 16)), dict.fromkeys(("18", "19"), "unknown link at x8, the GPU supports x16; what its slot"
                                                           " supports is not shown")),
])  # fmt: skip
def test_lanes_of_a_slot_that_no_text_shows(text: str, due: dict[str, str], tmp_path: Path) -> None:
    found = {each["subject"]["bdf"][5:7]: f"{each['status']} {each['message']}"
             for each in of_text(text, tmp_path)[1]["findings"]
             if each["id"] == "pcie.width" and each["status"] != "skip"}  # fmt: skip
    assert found == due
