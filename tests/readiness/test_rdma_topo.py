"""GPUs and adapters belong together as ``rdma_topo topo`` of rdma-core (commit 691953d) prints for the same files."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import pytest
from rdma_box import pair
from read_box import box

from dgxcheck.assessment.machine import LAUNCH, examine
from dgxcheck.launch import placements
from dgxcheck.output import nccl_xml

GB300 = {"GPU1": "mlx5_0", "GPU0": "mlx5_1", "GPU3": "mlx5_2", "GPU2": "mlx5_3"}
B300 = {f"GPU{number}": f"mlx5_{10 + number}" for number in range(8)}
_NODES = (("GPU0", "GPU1"), ("mlx5_0", "mlx5_1")), (("GPU2", "GPU3"), ("mlx5_2", "mlx5_3"))
GB200 = {gpu: {*hcas} for gpus, hcas in _NODES for gpu in gpus}
"""NUMA-based: all of a node."""


@pytest.mark.parametrize(("name", "due"), [("gb300-nvl72", GB300), ("dgx-b300", B300)])
def test_the_own_adapter_of_a_gpu(name: str, due: dict[str, str]) -> None:
    machine = examine(name, LAUNCH)
    placed = placements(machine.snapshot, machine.topology)
    assert {each.gpu.name: each.ports for each in placed} == {gpu: (f"{hca}:1",) for gpu, hca in due.items()}


def test_every_adapter_of_the_node_of_a_gpu() -> None:
    of = box("gb200-nvl72")
    ready = {gpu: {hca for hca in ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3") if pair(of, gpu, hca).verdict == "ready"}
             for gpu in GB200}  # fmt: skip
    assert ready == GB200
    machine = examine("gb200-nvl72", LAUNCH)
    ports = {each.gpu.name: {port.partition(":")[0] for port in each.ports}
             for each in placements(machine.snapshot, machine.topology)}  # fmt: skip
    assert ports == GB200


def test_nccl_sees_a_direct_nic_twice_once_beside_its_gpu() -> None:
    machine = examine("gb300-nvl72", LAUNCH)
    placed = placements(machine.snapshot, machine.topology)
    system = fromstring(nccl_xml.render(machine.snapshot, machine.topology, placed))
    beside: dict[str, list[str | None]] = {}
    for top in system.findall("cpu/pci"):
        nets = [net.get("name") for net in top.iter("net")]
        beside |= {f"GPU{gpu.get('dev')}": nets for gpu in top.iter("gpu")}
    assert beside == {gpu: [f"{hca}_dma"] for gpu, hca in GB300.items()}
