"""What is due where Grace CPUs and GPUs share memory: NVLink-C2C in use, pages left where they are."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.check import Check, host, part, per_host, per_listed_gpu, setting_of_all
from dgxcheck.checks.engine.expected import is_coherent, is_joined_to_grace
from dgxcheck.checks.engine.finding import Evidence, Judgement, Subject, answered, judged, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.host_limits import driver_parameter
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, need, rows
from dgxcheck.topology.model import Device

_BALANCING = "/proc/sys/kernel/numa_balancing"
_NO_GRACE = skip("not-supported", "no GPU here is joined to a Grace CPU")
_A_CARD = skip("not-supported", "this GPU is not joined to a Grace CPU")


def _c2c(box: Box, gpu: Device) -> Judgement:
    """On Grace machines (GH200, GB200, GB300), fails if NVLink-C2C between a GPU and its CPU is not in use.

    Source: nvmlDeviceGetC2cModeInfo, drivers from R560 on

    GPUs without it, as a card beside them, answer "Disabled" (nvidia-smi -q of an H100, driver 590).
    """
    if not is_joined_to_grace(box, gpu):
        return _A_CARD if is_coherent(box) else _NO_GRACE
    board = need(box.gpu(gpu).board)
    used = need(board.c2c)
    evidence = (answered({"isC2cEnabled": int(used)}, "nvmlDeviceGetC2cModeInfo", board.bdf),)
    message = f"NVLink-C2C to the CPU is {'in' if used else 'not in'} use"
    return judged(Fault.C2C_DOWN, message, int(used), 1, "", evidence, fails=not used)


def _memory_node(box: Box, gpu: Device) -> Judgement:
    """On Grace machines, warns if the memory of a GPU is no NUMA node, or an empty one, while that of others is one, or
    while the driver is set to make it one. Not judged where the driver keeps GPU memory to itself (CDMM, the default
    from R615 on), nor in virtual machines.

    Source: nvmlDeviceGetNumaNodeId, /sys/devices/system/node, CoherentGPUMemoryMode of /proc/driver/nvidia/params;
    https://developer.nvidia.com/blog/understanding-memory-management-on-hardware-coherent-platforms/

    Drivers of R615 and later keep the memory to themselves unless told otherwise, older ones make it a node.
    """
    if not is_joined_to_grace(box, gpu):
        return _A_CARD if is_coherent(box) else _NO_GRACE
    if guest(box) is not None:
        return skip("not-visible", "a guest has the NUMA nodes that its host gives it")
    node = gpu.gpu_numa_id
    evidence = [answered(node if isinstance(node, int) else "none", "nvmlDeviceGetNumaNodeId", gpu.bdf or "")]
    if isinstance(node, int):
        memory = need(next((row.memory_kb for row in rows(box.snapshot.numa_memory) if row.node == node), 0))
        evidence += [Evidence(f"/sys/devices/system/node/node{node}/meminfo", memory or "none")]
        message = f"its memory is NUMA node {node}{'' if memory else ', which has no memory'}"
        return judged(Fault.MEMORY_NODE, message, int(memory > 0), 1, "", tuple(evidence), warns=not memory)
    if node is not None and node.gap is not Gap.UNSUPPORTED:
        return unjudged(node)
    mode = driver_parameter(box, "CoherentGPUMemoryMode")
    others = [other for other in box.topology.gpus if isinstance(other.gpu_numa_id, int)]
    if mode == "driver" or not (others or mode == "numa"):
        return skip("not-configured", "the driver keeps GPU memory to itself (CoherentGPUMemoryMode)", *evidence)
    evidence += [Evidence("/proc/driver/nvidia/params", f"CoherentGPUMemoryMode: {mode}")] if mode else []
    expected = f"as that of {others[0].name} is" if others else "as the driver is set to make it"
    message = f"its memory is no NUMA node, {expected}"
    return judged(Fault.MEMORY_NODE, message, 0, 1, "", tuple(evidence), warns=True)


def _balancing(box: Box) -> Judgement:
    """On Grace machines, warns if automatic NUMA balancing is on. Elsewhere it is a site's choice.

    Source: /proc/sys/kernel/numa_balancing; https://nvidia.github.io/grace-cpu-benchmarking-guide/platform/index.html
    """
    if not is_coherent(box):
        return _NO_GRACE
    mode = need(box.snapshot.known_host.numa_balancing)
    message = "automatic NUMA balancing is on: it unmaps pages that GPUs use" if mode else "no automatic NUMA balancing"
    return judged(Fault.NUMA_BALANCING, message, mode, 0, "", (Evidence(_BALANCING, mode),), warns=bool(mode))


def _of_the_node(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Memory that the CPU reaches through C2C is no node without it."""
    if any(row.bdf == subject.bdf and row.c2c is False for row in rows(box.snapshot.gpu_board)):
        yield from part("C2C")(box, subject, judgement)
    yield from part("memory node")(box, subject, judgement)


CHECKS = (
    Check("gpu.c2c", per_listed_gpu(_c2c), part("C2C"), setting_of_all("C2C")),
    Check("gpu.memory-node", per_listed_gpu(_memory_node), _of_the_node),
    Check("host.numa-balancing", per_host(_balancing), host("NUMA balancing")),
)  # fmt: skip
