"""What is due where Grace CPUs and GPUs share memory: NVLink-C2C in use, pages left where they are."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import host, part
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, per_gpu, per_host
from dgxcheck.checks.engine.finding import Evidence, Judgement, answered, judged, skip
from dgxcheck.checks.pcie.isolation import is_coherent
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.gpu import GpuBoard
from dgxcheck.facts.missing import need

_BALANCING = "/proc/sys/kernel/numa_balancing"
_NO_GRACE = skip("not-supported", "no GPU here is joined to a Grace CPU")


def _c2c(box: Box, board: GpuBoard) -> Judgement:
    if not is_coherent(box):
        return _NO_GRACE
    used = need(board.c2c)
    evidence = (answered({"isC2cEnabled": int(used)}, "nvmlDeviceGetC2cModeInfo", board.bdf),)
    message = f"NVLink-C2C to the CPU is {'in' if used else 'not in'} use"
    return judged(Fault.C2C_DOWN, message, int(used), 1, "", evidence, fails=not used)


def _balancing(box: Box) -> Judgement:
    if not is_coherent(box):
        return _NO_GRACE
    mode = need(need(box.snapshot.host).numa_balancing)
    message = "automatic NUMA balancing is on: it unmaps pages that GPUs use" if mode else "no automatic NUMA balancing"
    return judged(Fault.NUMA_BALANCING, message, mode, 0, "", (Evidence(_BALANCING, mode),), warns=bool(mode))


CHECKS = (
    Check(
        id="gpu.c2c",
        rule="On Grace machines (GH200, GB200, GB300), fails if NVLink-C2C between a GPU and its CPU is not in use.",
        source="nvmlDeviceGetC2cModeInfo, drivers from R560 on",
        remedy="check the links with nvidia-smi c2c -s; reboot; if C2C stays off, call the vendor",
        judge=per_gpu("gpu_board", _c2c),
        blames=part("C2C"),
    ),
    Check(
        id="host.numa-balancing",
        rule="On Grace machines, warns if automatic NUMA balancing is on. Elsewhere it is a site's choice.",
        source=f"{_BALANCING}; https://nvidia.github.io/grace-cpu-benchmarking-guide/platform/index.html",
        remedy="sysctl kernel.numa_balancing=0; for good, boot with numa_balancing=disable",
        judge=per_host(_balancing),
        blames=host("NUMA balancing"),
    ),
)
