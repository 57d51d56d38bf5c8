"""GPU memory as a NUMA node of a Grace machine: missing, empty, or the driver's own; a card beside such GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabric_box import bad, said
from test_health_checks import box, changed

from dgxcheck.facts.missing import Json
from dgxcheck.output.topo.matrix import matrix

_GPUS = ("0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0")
_PARAMS = "text /proc/driver/nvidia/params"
_NONE: dict[str, Json] = {f"nvml nvmlDeviceGetNumaNodeId {bdf}": -1 for bdf in _GPUS}
_MEMINFO = "text /sys/devices/system/node/node18/meminfo"
_EMPTY: dict[str, Json] = {_MEMINFO: "Node 18 MemTotal:       0 kB\n"}


@pytest.mark.parametrize(("facts", "found"), [
    ({}, ()), ({f"nvml nvmlDeviceGetNumaNodeId {_GPUS[1]}": -1}, _GPUS[1:2]), (_EMPTY, _GPUS[2:3]), (_NONE, ()),
    ({_MEMINFO: {"missing": "unrecorded"}}, ()),
    (_NONE | {_PARAMS: 'CoherentGPUMemoryMode: "driver"\n'}, ()),
    (_NONE | {_PARAMS: 'CoherentGPUMemoryMode: "numa"\n'}, _GPUS),
    (_NONE | {_PARAMS: {"missing": "denied"}}, ()), (_NONE | {"text /sys/hypervisor/type": "xen\n"}, ()),
])  # fmt: skip
def test_a_node_is_due_where_others_or_the_driver_say_so(
    facts: dict[str, Json], found: tuple[str, ...], tmp_path: Path
) -> None:
    of = box(changed(tmp_path, facts, "gb200-nvl72"))
    assert bad(of, "gpu.memory-node") == {("gpu.memory-node", bdf, "warn") for bdf in found}


def test_a_card_beside_gpus_of_grace_has_neither_a_node_nor_c2c(tmp_path: Path) -> None:
    card = _GPUS[1]
    facts: dict[str, Json] = {
        f"nvml nvmlDeviceGetName {card}": "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        f"nvml nvmlDeviceGetNumaNodeId {card}": {"missing": "unsupported", "detail": "NVML 3: Not Supported"},
        f"nvml nvmlDeviceGetC2cModeInfo {card}": {"isC2cEnabled": 0},
    }  # fmt: skip
    of = box(changed(tmp_path, facts, "gb200-nvl72"))
    for check in ("gpu.memory-node", "gpu.c2c"):
        assert said(of, check, card) == ["skip not-supported"]
    assert said(of, "gpu.memory-node", _GPUS[0]) == ["pass"]
    rows = matrix(of.topology, False, "soc", None, ()).splitlines()
    assert [row.split()[-1] for row in rows[1:5]] == ["2", "N/A", "18", "26"]
