"""The wiring of PCI functions of interest and of the bridges above them."""

from __future__ import annotations

from collections import ChainMap

import pytest
from fake_source import PCI, FakeSource, dgx_corner, function

from dgxcheck.facts.missing import Gap, Missing
from probes.pci.functions import pci
from probes.pci.tree import roles


def test_functions_of_interest_and_their_bridges_in_the_order_of_names() -> None:
    got = pci(dgx_corner())
    assert not isinstance(got, Missing)
    assert [each.bdf for each in got] == [
        "0000:00:02.0",
        "0000:03:00.0",
        "0000:04:04.0",
        "0000:04:08.0",
        "0000:05:00.0",
        "0000:06:00.0",
    ]
    gpu = got[-1]
    assert gpu.path == ("pci0000:00", "0000:00:02.0", "0000:03:00.0", "0000:04:08.0", "0000:06:00.0")
    assert (gpu.class_code, gpu.vendor, gpu.device) == (0x030200, 0x10DE, 0x1DB1)
    assert (gpu.link_gen, gpu.link_width, gpu.max_link_gen, gpu.max_link_width) == (3, 16, 3, 16)
    assert (gpu.numa_node, gpu.local_cpulist, gpu.driver) == (0, "0-19,40-59", "nvidia")
    assert isinstance(gpu.subsystem_vendor, Missing)
    assert got[0].path == ("pci0000:00", "0000:00:02.0")
    assert got[0].driver is None


def test_every_file_is_read_once_and_nothing_but_the_class_of_what_is_of_no_interest() -> None:
    box = dgx_corner()
    pci(box)
    assert len(box.asked) == len(set(box.asked))
    assert [asked for asked in box.asked if "0000:00:1f.0" in asked] == [f"file {PCI}/0000:00:1f.0/class"]


@pytest.mark.parametrize("code", ["0x010802", "0x020000", "0x030000", "0x0b4000", "0x120000"])
def test_base_classes_of_interest(code: str) -> None:
    got = pci(FakeSource(function("0000:01:00.0", class_=code, vendor="0x1234")))
    assert not isinstance(got, Missing)
    assert [each.bdf for each in got] == ["0000:01:00.0"]


def test_a_bridge_of_class_0680_counts_if_it_is_nvidias() -> None:
    files = function("0000:c4:00.0", class_="0x068000", vendor="0x10de")
    files |= function("0000:c5:00.0", class_="0x068000", vendor="0x8086")
    got = pci(FakeSource(files))
    assert not isinstance(got, Missing)
    assert [each.bdf for each in got] == ["0000:c4:00.0"]


def test_a_function_that_cannot_be_read_is_shown_and_hides_no_other() -> None:
    lost = Missing(Gap.LOST, "x", "No such device")
    files = function("0000:01:00.0", class_=lost, vendor=lost, current_link_width=lost)
    files |= function("0000:02:00.0", class_="0x030200", vendor="0x10de", current_link_width="255")
    got = pci(FakeSource(files, {f"{PCI}/0000:02:00.0/driver": Missing(Gap.DENIED, "d")}))
    assert not isinstance(got, Missing)
    first, second = got
    assert (first.class_code, first.link_width) == (lost, lost)
    assert second.vendor == 0x10DE
    assert isinstance(second.link_width, Missing)
    assert isinstance(second.path, Missing)
    assert isinstance(second.driver, Missing)


def test_a_bridge_that_is_not_listed_still_appears() -> None:
    files = function("0000:02:00.0", class_="0x030200")
    got = pci(FakeSource(files, {f"{PCI}/0000:02:00.0": "../../../devices/pci0000:00/0000:00:01.0/0000:02:00.0"}))
    assert not isinstance(got, Missing)
    assert [each.bdf for each in got] == ["0000:02:00.0", "0000:00:01.0"]
    assert isinstance(got[1].class_code, Missing)


def test_names_that_are_no_function_are_passed_over() -> None:
    got = pci(FakeSource({f"{PCI}/uevent/class": "0x030200", f"{PCI}/10000:e1:00.0/class": "0x010802"}))
    assert not isinstance(got, Missing)
    assert [each.bdf for each in got] == ["10000:e1:00.0"]


def test_no_pci_at_all() -> None:
    got = pci(FakeSource({}))
    assert isinstance(got, Missing)
    assert got.gap is Gap.ABSENT


@pytest.mark.parametrize("vf", ["0000:06:00.4", "0000:06:01.0"])
def test_virtual_functions_of_gpus_are_none_of_this_machine_and_gpus_side_by_side_are(vf: str) -> None:
    gpus = ("0000:06:00.0", vf, "0000:07:00.0", "0000:07:01.0")
    files = dict(ChainMap(*(function(bdf, class_="0x030200", vendor="0x10de") for bdf in gpus)))
    box = FakeSource(files, {f"{PCI}/{vf}/physfn": "../0000:06:00.0"})
    got, found = pci(box), roles(box)
    assert not isinstance(got, Missing)
    assert not isinstance(found, Missing)
    assert [each.bdf for each in got] == [*found.gpus] == [bdf for bdf in gpus if bdf != vf]
