"""Every parser of the file probes gives a value or a Missing, whatever the text; and the texts of real kernels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.host import Flavour, NvidiaDriver
from dgxcheck.facts.infiniband import IbRate, PhysState, PortState
from dgxcheck.facts.missing import Gap, Missing
from probes.ask import cpulist, decimal, flag, hexadecimal, line, natural, signed
from probes.host.host import cpuinfo, mac, release, size_bytes, speed
from probes.host.memory import distances, mem_total_kb
from probes.host.software import driver_params, driver_version
from probes.infiniband import counter, guid, node_type, phys_state, port_state, rate
from probes.pci.config_space import errors
from probes.pci.functions import group_number, link_gen, link_width, resource
from probes.pci.tree import path

PARSERS: tuple[Callable[[str, str], object], ...] = (
    line,
    decimal,
    signed,
    hexadecimal,
    flag,
    cpulist,
    link_gen,
    link_width,
    resource,
    errors,
    group_number,
    distances,
    mem_total_kb,
    cpuinfo,
    driver_version,
    driver_params,
    release,
    port_state,
    phys_state,
    rate,
    guid,
    node_type,
    counter,
    speed,
    mac,
    size_bytes,
)
NEAR_MISSES = st.text(alphabet="0123456789abcdefxGT/s.,-: \n\t()XMemTotalkBprocess_١²\x00\x1b\u202e", max_size=60)


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@given(text=st.one_of(st.text(max_size=200), NEAR_MISSES))
def test_any_text_gives_a_value_or_a_gap_with_its_place(parse: Callable[[str, str], object], text: str) -> None:
    got = parse(text, "/here")
    if isinstance(got, Missing):
        assert got.where == "/here"
        assert got.gap in (Gap.GARBLED, Gap.ABSENT, Gap.UNSUPPORTED)
    else:
        assert got is not None


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
def test_very_long_numbers_are_no_trouble(parse: Callable[[str, str], object]) -> None:
    for text in ("9" * 10_000, "0x" + "f" * 10_000, "RxErr " + "1" * 10_000, "MemTotal: " + "1" * 10_000 + " kB"):
        parse(text, "")


@given(number=st.integers(0, 2**64 - 1))
def test_numbers_read_back(number: int) -> None:
    assert decimal(f"{number}\n", "") == number
    assert signed(f"-{number}\n", "") == -number
    assert hexadecimal(f"{number:#06x}\n", "") == number
    assert counter(str(number), "") == number


@pytest.mark.parametrize("text", ["1_0", "١", "²", "+1", "--1", "0x", "1e3", "184467440737095516150"])
def test_what_int_takes_and_the_kernel_never_prints_is_garbled(text: str) -> None:
    for parse in (decimal, signed, hexadecimal):
        got = parse(text, "/here")
        assert isinstance(got, Missing)
        assert got.gap is Gap.GARBLED


@pytest.mark.parametrize("text", ["", "\n", "  "])
def test_a_file_that_holds_nothing_tells_nothing(text: str) -> None:
    for parse in (decimal, signed, hexadecimal, link_gen):
        assert parse(text, "/here") == Missing(Gap.ABSENT, "/here", "empty")


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        ("2.5 GT/s", 1),
        ("5 GT/s\n", 2),
        ("5.0 GT/s PCIe\n", 2),
        ("8 GT/s\n", 3),
        ("8.0 GT/s PCIe", 3),
        ("16.0 GT/s PCIe", 4),
        ("32 GT/s", 5),
        ("64.0 GT/s PCIe", 6),
    ],
)
def test_link_gen(text: str, generation: int) -> None:
    assert link_gen(text, "") == generation


@pytest.mark.parametrize("text", ["Unknown", "Unknown speed\n", "9 GT/s", "66 MHz PCI-X", "8 GT/s AGP", "8"])
def test_link_gen_garbled(text: str) -> None:
    got = link_gen(text, "/speed")
    assert isinstance(got, Missing)
    assert (got.gap, got.where) == (Gap.GARBLED, "/speed")


@pytest.mark.parametrize("text", ["0\n", "63\n", "255\n", "3", "x16", ""])
def test_link_width_of_no_link_and_of_dead_devices_is_garbled(text: str) -> None:
    assert isinstance(link_width(text, ""), Missing)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 12, 16, 32])
def test_link_width(lanes: int) -> None:
    assert link_width(f"{lanes}\n", "") == lanes


@given(st.text(max_size=80), st.text(max_size=20))
def test_any_link_gives_a_path_or_a_gap(target: str, bdf: str) -> None:
    got = path(target, bdf, "/link")
    assert isinstance(got, Missing) or got[-1] == bdf


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (
            "../../../devices/pci0000:00/0000:00:02.0/0000:03:00.0",
            ("pci0000:00", "0000:00:02.0", "0000:03:00.0"),
        ),
        (
            "../../../devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/",
            ("pci10000:e0", "10000:e0:06.0"),
        ),
        (
            "../../../devices/LNXSYSTM:00/VMBUS:01/47505500-0001/pci52ce:00/52ce:00:00.0",
            ("pci52ce:00", "52ce:00:00.0"),
        ),
    ],
)
def test_path(target: str, expected: tuple[str, ...]) -> None:
    assert path(target, expected[-1], "") == expected


@pytest.mark.parametrize("target", ["", "0000:03:00.0", "devices/pci0000:00", "devices/pci0000:00/0000:04:00.0"])
def test_a_link_that_does_not_lead_to_the_function_is_garbled(target: str) -> None:
    assert isinstance(path(target, "0000:03:00.0", ""), Missing)


def test_states_need_number_and_name_to_agree() -> None:
    assert port_state("4: ACTIVE\n", "") is PortState.ACTIVE
    assert phys_state("5: LinkUp", "") is PhysState.LINK_UP
    assert phys_state("7: Phy Test", "") is PhysState.PHY_TEST
    assert isinstance(phys_state("4: ACTIVE", ""), Missing)
    assert isinstance(phys_state("9: <unknown>", ""), Missing)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100 Gb/sec (4X EDR)\n", IbRate(gbit_per_s=100, lanes=4, speed="EDR")),
        ("2.5 Gb/sec (1X SDR)", IbRate(gbit_per_s=2.5, lanes=1, speed="SDR")),
        ("10 Gb/sec (4X)", IbRate(gbit_per_s=10, lanes=4, speed="SDR")),
        ("40 Gb/sec (4X FDR10)", IbRate(gbit_per_s=40, lanes=4, speed="FDR10")),
        ("200 Gb/sec (2X NDR)", IbRate(gbit_per_s=200, lanes=2, speed="NDR")),
    ],
)
def test_rate(text: str, expected: IbRate) -> None:
    assert rate(text, "") == expected


def test_a_counter_without_performance_agent_is_unsupported_not_zero() -> None:
    got = counter("N/A (no PMA)\n", "/counter")
    assert isinstance(got, Missing)
    assert got.gap is Gap.UNSUPPORTED


def test_zeros_are_no_guid() -> None:
    assert guid("506b:4b03:003c:eee8\n", "") == "506b:4b03:003c:eee8"
    assert isinstance(guid("0000:0000:0000:0000", ""), Missing)
    assert isinstance(guid("506b:4b03:003c", ""), Missing)


@pytest.mark.parametrize(
    ("text", "version", "flavour"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  418.67  Sat Apr  6 03:07:24 CDT 2019\nGCC version: 7.4\n",
            "418.67",
            Flavour.PROPRIETARY,
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22)\n",
            "580.95.05",
            Flavour.OPEN,
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module  570.86.15  Release Build\n", "570.86.15", Flavour.OPEN),
    ],
)
def test_driver_version(text: str, version: str, flavour: Flavour) -> None:
    assert driver_version(text, "") == NvidiaDriver(version=version, flavour=flavour)


def test_cpulists() -> None:
    assert cpulist("0-19,40-59\n", "") == "0-19,40-59"
    assert cpulist("\n", "") == ""
    assert isinstance(cpulist("0-", ""), Missing)
    assert isinstance(cpulist("a-b", ""), Missing)


def test_natural_order() -> None:
    assert sorted(("mlx5_10", "mlx5_9", "mlx5_bond_0", "ib0"), key=natural) == [
        "ib0",
        "mlx5_9",
        "mlx5_10",
        "mlx5_bond_0",
    ]
