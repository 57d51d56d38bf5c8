"""hwloc's XML: paths with root buses, NUMA nodes, HCAs and NVML's order, as sysfs has them."""

from __future__ import annotations

import pytest
from readers_text import one, unread

from dgxcheck.readers.host import hwloc_xml
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
