"""Hops of PCIe paths."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_boxes import GPU, NO_FILE, Box, dgx1, function, gpu_at, ib, nic_at, nodes, nvml, tree

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Topology
from dgxcheck.topology.paths import hops_above, hops_between, meeting_point, pcie_gbs, sharers

PEX = (0x1000, 0xC030)


def hops(topology: Topology, a: str, b: str) -> list[str]:
    one, other = topology.device(a), topology.device(b)
    assert one is not None
    assert other is not None
    found = hops_between(one, other, topology.functions)
    assert not isinstance(found, Missing)
    return [str(hop) for hop in found]


def joined(topology: Topology, a: str, b: str) -> str | Missing:
    one, other = topology.device(a), topology.device(b)
    assert one is not None
    assert other is not None
    return meeting_point(one, other, topology.links[a, b], topology.functions)


def changed(box: Box, bdf: str, change: Callable[[PciFunction], PciFunction]) -> Box:
    assert not isinstance(box.functions, Missing)
    return box._replace(functions=tuple(change(it) if it.bdf == bdf else it for it in box.functions))


@pytest.mark.parametrize(
    ("gen", "width", "gbs"),
    [(1, 16, 4.0), (2, 8, 4.0), (3, 16, 15.75), (3, 8, 7.88), (4, 16, 31.51), (5, 16, 63.02), (6, 16, 121.0)],
)
def test_line_rates(gen: int, width: int, gbs: float) -> None:
    assert pcie_gbs(gen, width) == pytest.approx(gbs, abs=0.01)


def test_no_rate_where_a_part_is_not_known() -> None:
    assert pcie_gbs(NO_FILE, 16) is NO_FILE
    assert pcie_gbs(3, NO_FILE) is NO_FILE
    assert isinstance(pcie_gbs(9, 16), Missing)


def test_paths_of_a_dgx1() -> None:
    topology = dgx1().topology()
    assert hops(topology, "GPU0", "GPU1") == ["0000:04:0c.0 - 0000:06:00.0", "0000:04:10.0 - 0000:07:00.0"]
    assert hops(topology, "GPU0", "GPU2") == [
        "0000:04:0c.0 - 0000:06:00.0",
        "0000:00:02.0 - 0000:03:00.0",
        "0000:00:03.0 - 0000:08:00.0",
        "0000:09:0c.0 - 0000:0a:00.0",
    ]
    assert joined(topology, "GPU0", "mlx5_0") == "PCIe switch 0000:03:00.0 (10b5:8764)"
    assert joined(topology, "GPU0", "GPU2") == "host bridge pci0000:00"
    assert joined(topology, "GPU0", "GPU4") == (
        "socket interconnect between NUMA nodes 0 (pci0000:00) and 1 (pci0000:80)"
    )


def test_a_device_on_the_root_bus_has_no_link() -> None:
    assert hops_above(("pci0000:00", "0000:00:04.0"), {}) == ()


def test_two_functions_of_one_card_share_its_link() -> None:
    ends = [nic_at("pci0000:00", "0000:00:01.0", f"0000:86:00.{i}") for i in range(2)]
    topology = Box(functions=tree(ends), ib=tuple(ib(end.bdf, end.bdf) for end in ends)).topology()
    assert hops(topology, *(end.bdf for end in ends)) == []
    assert joined(topology, *(end.bdf for end in ends)) == "PCIe port 0000:00:01.0 (10b5:8764)"


def test_a_function_behind_conventional_pci_has_no_link_of_its_own() -> None:
    path = ("pci0000:00", "0000:00:1c.2", "0000:0a:00.0", "0000:0b:00.0")
    assert [str(hop) for hop in hops_above(path, {})] == ["0000:00:1c.2 - 0000:0a:00.0"]


def test_the_yardstick_is_the_lower_of_both_ends() -> None:
    """A card for 16 lanes in a slot of 8 is not narrow; one that trained 4 of them is."""
    port = function("pci0000:00", "0000:00:01.0", most=(3, 8), now=(3, 8))
    card = function("pci0000:00", "0000:00:01.0", "0000:01:00.0", code=GPU, most=(4, 16), now=(1, 8))
    (hop,) = hops_above(("pci0000:00", port.bdf, card.bdf), {port.bdf: port, card.bdf: card})
    assert (hop.max_gen, hop.max_width, hop.narrow, hop.slow) == (3, 8, False, True)
    assert hop.max_gbs == pytest.approx(7.88, abs=0.01)
    assert hop.gbs == pytest.approx(2.0)
    (hop,) = hops_above(("pci0000:00", port.bdf, card.bdf), {port.bdf: port, card.bdf: replace(card, link_width=4)})
    assert hop.narrow is True


def test_a_hop_without_link_files_claims_nothing() -> None:
    """The DGX Station's kernel shows none."""
    port = function("pci0000:00", "0000:00:01.0", now=None, most=None)
    card = function("pci0000:00", "0000:00:01.0", "0000:01:00.0", code=GPU, now=None, most=None)
    for functions in ({port.bdf: port, card.bdf: card}, {card.bdf: card}, {}):
        (hop,) = hops_above(("pci0000:00", port.bdf, card.bdf), functions)
        for fact in (hop.narrow, hop.slow, hop.gbs, hop.max_gbs):
            assert isinstance(fact, Missing)


def h100() -> Box:
    """Two GPUs below one Broadcom chip that shows two levels of bridges; its upstream port claims 5 GT/s."""
    top = ("pci0000:07", "0000:07:01.0", "0000:08:00.0")
    ends = [
        gpu_at(*top, "0000:09:00.0", "0000:0d:00.0", "0000:0e:00.0", "0000:0f:00.0", node=0),
        nic_at(*top, "0000:09:01.0", "0000:0a:00.0", "0000:0b:00.0", "0000:0c:00.0", node=0),
    ]
    functions = tuple(replace(it, link_gen=5, max_link_gen=5) for it in tree(ends, PEX))
    box = Box(functions=functions, nvml=nvml(["0000:0f:00.0"]), nvlinks=(), numa=nodes(2))
    box = changed(box, "0000:07:01.0", lambda it: replace(it, vendor=0x8086, device=0x352A))
    return changed(box, "0000:08:00.0", lambda it: replace(it, link_gen=2, max_link_gen=2))


def test_ports_inside_a_broadcom_switch_are_not_judged() -> None:
    topology = h100().topology()
    path = topology.gpus[0].path
    assert not isinstance(path, Missing)
    first, inner, last = hops_above(path, topology.functions)
    assert (first.skip_reason, inner.skip_reason) == ("a synthetic port of the switch", "ports inside one switch")
    assert (last.skip_reason, last.narrow) == ("", False)
    assert isinstance(inner.narrow, Missing)
    assert isinstance(first.slow, Missing)


def test_sharers_of_an_uplink() -> None:
    topology = dgx1().topology()
    path = topology.gpus[2].path
    assert not isinstance(path, Missing)
    uplink, own = hops_above(path, topology.functions)
    assert sharers(uplink, topology) == ("GPU2", "GPU3", "mlx5_1")
    assert sharers(own, topology) == ("GPU2",)


def chain(bus: str, most: int) -> st.SearchStrategy[list[str]]:
    return st.integers(0, most).map(lambda length: [f"0000:{bus}:{i:02x}.0" for i in range(length)])


@given(chain("01", 4), chain("02", 5), chain("03", 5))
def test_the_way_back_is_the_way_there(above: list[str], left: list[str], right: list[str]) -> None:
    ends = [gpu_at("pci0000:00", *above, *path, bdf) for path, bdf in ((left, "0000:aa:00.0"), (right, "0000:bb:00.0"))]
    topology = Box(functions=tree(ends)).topology()
    there, back = hops(topology, "GPU0", "GPU1"), hops(topology, "GPU1", "GPU0")
    assert there == back[::-1]
    assert len(set(there)) == len(there)


@given(chain("01", 9))
def test_every_second_step_is_a_link(bridges: list[str]) -> None:
    found = hops_above(("pci0000:00", *bridges), {})
    assert len(found) == len(bridges) // 2
    assert all(hop.device != later.port for hop, later in pairwise(found))
