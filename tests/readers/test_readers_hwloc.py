"""hwloc's XML and bytes of configuration space: paths, NUMA nodes, links, HCAs and NVML's order, as sysfs has them."""

from __future__ import annotations

import pytest
from readers_text import one, unread

from dgxcheck.readers import formats
from dgxcheck.readers.host import hwloc_xml
from dgxcheck.readers.lspci.registers import is_dead, link, secondary_bus
from dgxcheck.readers.network import files
from dgxcheck.readers.values import bits

D = "/sys/bus/pci/devices"
GPU = (
    '<object type="PCIDev" pci_busid="0000:04:00.0" pci_type="0302 [10de:15f8] [10de:118f] a1">\n'
    '<object type="OSDev" name="nvml0" osdev_type="1"/>\n</object>'
)
HCA = (
    '<object type="PCIDev" pci_busid="0000:05:00.0" pci_type="0207 [15b3:1013] [0000:0000] 00">\n'
    '<object type="OSDev" name="mlx5_0" osdev_type="3"/>\n</object>'
)
TEXT = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
<object type="Machine" cpuset="0xffffffff" nodeset="0x00000003">
<object type="Package" os_index="1" cpuset="0x0000000f,,0xf0000000" nodeset="0x00000002">
<object type="NUMANode" os_index="1" cpuset="0x0000000f,,0xf0000000" nodeset="0x00000002"/>
<object type="Bridge" bridge_type="0-1" bridge_pci="0000:[80-85]">
<object type="Bridge" bridge_type="1-1" pci_busid="0000:80:02.0" pci_type="0604 [8086:6f04] 01">
{GPU}
{HCA}
</object>
</object>
</object>
</object>
</topology>
"""


def test_paths_nodes_and_devices() -> None:
    found = one(hwloc_xml.read, TEXT)
    assert unread([found], TEXT) == []
    blank = TEXT.replace("</object>\n</topology>", "</object>\n\n</topology>")
    assert len(one(hwloc_xml.read, blank).understood) == len(found.understood)
    facts = found.facts
    assert facts[f"link {D}/0000:04:00.0"] == "../../../devices/pci0000:80/0000:80:02.0/0000:04:00.0"
    assert facts[f"text {D}/0000:04:00.0/class"] == "0x030200\n"
    assert facts[f"text {D}/0000:04:00.0/numa_node"] == "1\n"
    assert facts[f"text {D}/0000:04:00.0/local_cpulist"] == "28-31,64-67\n"
    assert facts["link /sys/class/infiniband/mlx5_0/device"] == "../../../0000:05:00.0"
    assert facts["nvml nvmlDeviceGetHandleByIndex 0"] == "0000:04:00.0"
    assert facts["names /sys/devices/system/node"] == ["node1"]
    assert f"text {D}/0000:05:00.0/subsystem_vendor" not in facts


@pytest.mark.parametrize("cut", range(0, len(TEXT), 61))
def test_a_cut_file_gives_no_path_that_the_whole_does_not(cut: int) -> None:
    whole = one(hwloc_xml.read, TEXT).facts
    for text in (TEXT[:cut], TEXT[cut:]):
        for part in hwloc_xml.read(tuple(text.splitlines())):
            links = {key: fact for key, fact in part.facts.items() if key.startswith("link ")}
            assert all(whole[key] == fact for key, fact in links.items())


@pytest.mark.parametrize(("old", "new", "key"), [
    ("nvml0", "nvml64", "nvml nvmlDeviceGetHandleByIndex 0"), ("mlx5_0", "../mlx5", "names /sys/class/infiniband"),
    ('"mlx5_0" osdev_type="3"', '"eth0" osdev_type="2"', "names /sys/class/infiniband"),
    ('bridge_type="0-1"', 'bridge_type="0-9"', f"link {D}/0000:04:00.0"),
    ('busid="0000:80:02.0"', 'busid="?"', f"link {D}/0000:04:00.0"),
    ('busid="0000:04:00.0"', 'busid="?"', f"text {D}/0000:04:00.0/class"),
    ('nodeset="0x00000002">', 'nodeset="0x00000006">', f"text {D}/0000:04:00.0/numa_node"),
    ('nodeset="0x00000002">', 'nodeset="?">', f"text {D}/0000:04:00.0/numa_node"),
    ('cpuset="0x0000000f,,0xf0000000" nodeset="0x00000002">', 'nodeset="0x00000002">',
     f"text {D}/0000:04:00.0/local_cpulist"),
    ('cpuset="0x0000000f,,0xf0000000" nodeset="0x00000002"/>', '/>', "text /sys/devices/system/node/node1/cpulist"),
    ('os_index="1" c', 'os_index="12345" c', "names /sys/devices/system/node"),
    ('os_index="1" c', 'os_index="\u0661" c', "names /sys/devices/system/node"),
])  # fmt: skip
def test_names_and_numbers_that_are_none(old: str, new: str, key: str) -> None:
    assert key in one(hwloc_xml.read, TEXT).facts
    assert key not in one(hwloc_xml.read, TEXT.replace(old, new)).facts


BEFORE_LAST = len(one(hwloc_xml.read, TEXT).facts) - 4
"""Facts of all objects but the HCA's last one, without the three lists."""


@pytest.mark.parametrize(("limit", "most", "is_whole"), [
    ("DEEPEST", 6, True), ("DEEPEST", 5, False), ("MOST_DEVICES", (BEFORE_LAST + 1) / 16, True),
    ("MOST_DEVICES", BEFORE_LAST / 16, False),
])  # fmt: skip
def test_a_tree_has_limits(limit: str, most: float, is_whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = one(hwloc_xml.read, TEXT).facts
    monkeypatch.setattr(formats if limit == "DEEPEST" else hwloc_xml, limit, most)
    assert (one(hwloc_xml.read, TEXT).facts == whole) == is_whole


def _config(size: int, secondary: int = 5) -> bytes:
    """A bridge's, with its PCI Express capability at 0x40."""
    config = bytearray(256)
    config[0x06], config[0x0E], config[0x19], config[0x34], config[0x40] = 0x10, 1, secondary, 0x40, 0x10
    config[0x4C], config[0x52], config[0x6C] = 3, 2, 1 << 5  # at most 8, now 5 and by the second register 32 GT/s
    return bytes(config[:size])


@pytest.mark.parametrize(("size", "most", "now"), [
    (0x6E, "32.0", "5.0"), (0x6D, "8.0", "5.0"), (0x54, "8.0", "5.0"), (0x53, "2.5", "2.5"), (0, "2.5", "2.5"),
])  # fmt: skip
def test_a_link_is_read_of_the_bytes_that_are_shown(size: int, most: str, now: str) -> None:
    words = ("LnkCap: Port #0, Speed 2.5GT/s, Width x8, ASPM", "LnkSta: Speed 2.5GT/s, Width x8")
    found = link(_config(size), words)
    assert found["max_link_speed"] == f"{most} GT/s PCIe"
    assert found["current_link_speed"] == f"{now} GT/s PCIe"


@pytest.mark.parametrize(("config", "bus"), [
    (_config(0x1A), "05"), (_config(0x19), "07"), (_config(0x1A, 0), None), (b"\xff" * 64, "07"), (b"\xff" * 3, "07"),
])  # fmt: skip
def test_the_bus_behind_a_bridge(config: bytes, bus: str | None) -> None:
    assert secondary_bus(config, ("Bus: primary=00, secondary=07, subordinate=07",)) == bus
    assert is_dead(config) == (config == b"\xff" * 64)


@pytest.mark.parametrize(("words", "number"), [
    ("12", "0xc"), (" 0XC ", "0xc"), ("65535", "0xffff"), ("65536", None), ("0xffff", "0xffff"), ("0x10000", None),
    ("\u0661", None), ("1_0", None), ("-1", None), ("", None), ("0x", None),
])  # fmt: skip
def test_a_lid(words: str, number: str | None) -> None:
    assert files.lid(words) == number


@pytest.mark.parametrize(
    ("mask", "wanted"),
    [
        ("0x000000f0", [range(4, 8)]),
        ("ff,00000000", [range(32, 40)]),
        ("0xf...f", None),
        ("", None),
        ("0x1,,0x1", [range(1), range(64, 65)]),
    ],
)
def test_masks(mask: str, wanted: list[range] | None) -> None:
    assert bits(mask) == wanted
