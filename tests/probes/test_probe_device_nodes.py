"""Device nodes: one per GPU of the PCI tree, every uverbs that is there."""

from __future__ import annotations

from fake_source import FakeSource, function

from dgxcheck.facts.host import DeviceNode
from dgxcheck.facts.missing import Gap, Missing
from probes.host.software import device_nodes

GPUS = function("0000:06:00.0", class_="0x030200", vendor="0x10de") | function(
    "0000:07:00.0", class_="0x030000", vendor="0x10de"
)
OTHERS = function("0000:07:00.1", class_="0x040300", vendor="0x10de") | function(
    "0000:09:00.0", class_="0x030000", vendor="0x1a03"
)
DENIED, LOST = False, Missing(Gap.LOST, "/dev/nvidia1", "No such device")


def opened(nodes: tuple[DeviceNode, ...] | Missing) -> dict[str, bool | Missing]:
    assert not isinstance(nodes, Missing)
    return {node.path: node.opens for node in nodes}


def test_a_node_for_every_gpu_and_for_no_other_function() -> None:
    source = FakeSource(
        GPUS | OTHERS,
        nodes={"/dev/nvidiactl": True, "/dev/nvidia-uvm": DENIED, "/dev/nvidia0": True, "/dev/nvidia1": LOST,
               "/dev/nvidia2": True},
    )  # fmt: skip
    got = device_nodes(source)
    assert (got.control, got.uvm) == (
        DeviceNode(path="/dev/nvidiactl", opens=True),
        DeviceNode(path="/dev/nvidia-uvm", opens=False),
    )
    assert opened(got.gpus) == {"/dev/nvidia0": True, "/dev/nvidia1": LOST}
    asked = [question for question in source.asked if question.startswith("opens ")]
    assert len(asked) == len(set(asked)) == 4


def test_a_gpu_without_a_node_is_absent() -> None:
    nodes = opened(device_nodes(FakeSource(GPUS, nodes={"/dev/nvidia0": True})).gpus)
    assert nodes == {"/dev/nvidia0": True, "/dev/nvidia1": Missing(Gap.ABSENT, "/dev/nvidia1")}


def test_uverbs_in_natural_order_and_nothing_else_of_that_directory() -> None:
    names = ("issm0", "rdma_cm", "umad0", "uverbs", "uverbs0", "uverbs10", "uverbs2", "uverbsX", "uverbs-1", "uverbs١")
    nodes = {f"/dev/infiniband/{name}": True for name in names}
    found = opened(device_nodes(FakeSource({}, nodes=nodes)).verbs)
    assert [*found] == [f"/dev/infiniband/uverbs{number}" for number in (0, 2, 10)]
    assert all(found.values())


def test_without_pci_and_without_infiniband() -> None:
    got = device_nodes(FakeSource({}, listings={"/dev/infiniband": Missing(Gap.DENIED, "/dev/infiniband")}))
    assert isinstance(got.gpus, Missing)
    assert isinstance(got.verbs, Missing)
    assert (got.gpus.gap, got.verbs.gap) == (Gap.ABSENT, Gap.DENIED)
    assert isinstance(got.control.opens, Missing)


def test_a_machine_without_gpus_has_no_nodes_for_them() -> None:
    assert device_nodes(FakeSource(OTHERS)).gpus == ()
