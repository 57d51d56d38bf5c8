"""GPU memory as a NUMA node of a Grace machine: missing, empty, or the driver's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabric_box import bad
from test_health_checks import box, changed

from dgxcheck.facts.missing import Json

_GPUS = ("0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0")
_PARAMS = "text /proc/driver/nvidia/params"
_NONE: dict[str, Json] = {f"nvml nvmlDeviceGetNumaNodeId {bdf}": -1 for bdf in _GPUS}
_EMPTY: dict[str, Json] = {"text /sys/devices/system/node/node18/meminfo": "Node 18 MemTotal:       0 kB\n"}


@pytest.mark.parametrize(("facts", "found"), [
    ({}, ()), ({f"nvml nvmlDeviceGetNumaNodeId {_GPUS[1]}": -1}, _GPUS[1:2]), (_EMPTY, _GPUS[2:3]), (_NONE, ()),
    (_NONE | {_PARAMS: 'CoherentGPUMemoryMode: "driver"\n'}, ()),
    (_NONE | {_PARAMS: 'CoherentGPUMemoryMode: "numa"\n'}, _GPUS),
    (_NONE | {_PARAMS: {"missing": "denied"}}, ()), (_NONE | {"text /sys/hypervisor/type": "xen\n"}, ()),
])  # fmt: skip
def test_a_node_is_due_where_others_or_the_driver_say_so(
    facts: dict[str, Json], found: tuple[str, ...], tmp_path: Path
) -> None:
    of = box(changed(tmp_path, facts, "gb200-nvl72"))
    assert bad(of, "gpu.memory-node") == {("gpu.memory-node", bdf, "warn") for bdf in found}
