"""What programs on GPUs say, NCCL among them: what health finds, its first step, and that all is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from judging import of_text
from readers_text import assert_read, left_over

from dgxcheck.readers.benchmarks.gpu_burn import read_memtest
from dgxcheck.readers.host.cuda import read_cuda_errors

UNKNOWN = """\
RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable
"""
OLLAMA = """\
level=WARN source=gpu.go:220 msg="error initializing, cuda driver library init failure: 802. see docs"
"""
DSO = """\
E cuda_diagnostics.cc:309] kernel version 535.104.5 does not match DSO version 535.129.3 -- cannot find working devices
"""
MULTINODE = """\
Running multinode_device_to_device_memcpy_read_ce.
[CUDA_ERROR_INVALID_VALUE] invalid argument in expression cuMemSetAccess(buffer) on node0, rank = 8 in F() : /m.cpp:76
"""
RAS_TABLE = """\
  Nodes  Processes         GPUs
          per node  per process
      1          2            1

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    2         4         0         0         0         0    NOCOMM  {}
"""
MEMTEST = """\
[10/23/2023 10:02:11][node7][2]:Running cuda memtest, version 1.2.3
[10/23/2023 10:02:11][node7][2]:Test6 [Moving inversions, 32 bit pattern]
[10/23/2023 10:02:19][node7][2]:ERROR: The unit serial number is unknown (no NVML found)
[10/23/2023 10:02:19][node7][2]:ERROR: (move_inv_read) 121 errors found in block 13
[10/23/2023 10:02:19][node7][2]:ERROR: the last 2 error addresses are:\t0x7f9a40012340\t0x7f9a40012344
[10/23/2023 10:02:19][node7][2]:ERROR: 0th error, expected value=0x1, current value=0x3, diff=0x2 (second_read=0x1)
[10/23/2023 10:02:19][node7][2]:Test6 finished in 22.1 seconds
"""
RACK = """\
nvbandwidth Version: v0.8
Process 3 (worker-1): device 1: HGX GB200 (00000009:01:00)

Running multinode_device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2         3
 0       N/A    798.02    798.25    {0:.2f}
 1    798.10       N/A    797.80    {0:.2f}
 2    797.95    797.95       N/A    {0:.2f}
 3    {0:.2f}    {0:.2f}    {0:.2f}       N/A

SUM multinode_device_to_device_memcpy_read_ce 9576.12
"""
"""README.md of https://github.com/NVIDIA/nvbandwidth: each process has one GPU."""
BURNT = "".join(f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-{gpu})\n" for gpu in range(2)) + (
    "Initialized device 0 with 81089 MB of memory (80000 MB available, using 72000 MB of it), using {0}\n"
    "100.0%  proc'd: 9 ({1} Gflop/s) - 9 ({1} Gflop/s)   errors: 0 - 0   temps: 60 C - 61 C\n"
)
OF_VLLM = """\
ERROR 03-28 21:38:23 ray_utils.py:44] NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled cuda error, NCCL version 2.18
ERROR 03-28 21:38:23 ray_utils.py:44] ncclUnhandledCudaError: Call to CUDA function failed.
ERROR 03-28 21:38:23 ray_utils.py:44] Last error:
ERROR 03-28 21:38:23 ray_utils.py:44] Cuda failure 'invalid argument'
"""
NO_PEER = "Failed: Cuda error /workspace/csrc/all.cuh:3 'peer access is not supported between these two devices'\n"
GPU_TOOLS = """\
NVIDIA GPU Tools version 535.86.06
Topo:
  PCI 0000:40:01.1 0x1022:0x14ab
   GPU 0000:44:00.0 H100-PCIE 0x2331 BAR0 0x50042000000
2025-01-08,02:55:03.995 INFO     Selected GPU 0000:44:00.0 H100-PCIE 0x2331 BAR0 0x50042000000
"""
CONTAINER_CLI = """\
I1128 17:35:08.651661 1737 nvc.c:376] initializing library context (version=1.14.3, build=1eb5a30a)
I1128 17:35:08.652188 1737 nvc.c:395] dxcore initialization failed, continuing assuming a non-WSL environment
W1128 17:35:08.654012 1738 nvc.c:273] failed to set inheritable capabilities
I1128 17:35:08.773002 1737 nvc_info.c:173] selecting /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.86.05
W1128 17:35:08.773401 1737 nvc_info.c:399] missing library libnvidia-nscq.so
W1128 17:35:08.773512 1737 nvc_info.c:403] missing compat32 library libnvidia-ml.so
"""
OF_XLA = (
    "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: NCCL operation ncclGroupEnd() failed: remote process exited or"
    " there was a network error. Last NCCL warning(error) log entry (may be unrelated) 'NET/IB : Got completion from"
    " peer 10.0.0.2<50123> with error 12, opcode 3, len 0, vendor err 129'.\n"
)
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "PyTorch": (UNKNOWN, ("warn driver-failed inspect",)),
    "Ollama": (OLLAMA, ("fail fabric-manager-down inspect",)),
    "XLA, with the last words of NCCL": (OF_XLA, ("fail transfer-unanswered inspect",)),
    "ncclras, cut below a heading": (
        RAS_TABLE.format("INCOMPLETE") + "\n#0-0 (a1b2c3d4e5f60718) INCOMPLETE\n",
        ("warn collective-timeout inspect",)),
    "CUDA, no peer access": (NO_PEER, ()),
    "NCCL, no peer access": (
        "n1:11:22 [0] p2p.cc:2 NCCL WARN Cuda failure 'peer access is not supported between these two devices'\n",
        ()),
    "NVIDIA GPU Tools": (GPU_TOOLS, ()),
    "nvidia-container-cli -k -d": (CONTAINER_CLI, ()),
    "TensorFlow": (DSO, ("fail driver-mismatch inspect",)),
    "nvbandwidth between nodes": (MULTINODE, ()),
    "ncclras, two errors of a group": (RAS_TABLE.format("INCOMPLETE,MISMATCH"), ("warn collective-timeout inspect",)),
    "ncclras, good": (RAS_TABLE.format("OK"), ()),
    "gpu_burn": (BURNT.format("FLOATS", 8200), 2 * ("fail slow inspect",)),
    "gpu_burn, good": (BURNT.format("FLOATS", 48231), ()),
    "gpu_burn of doubles": (BURNT.format("DOUBLES", 8200), ()),
    "gpu_burn of a part": (
        BURNT.replace("\n", "\n  MIG 1g.10gb     Device  0: (UUID: MIG-c6d4)\n", 1).format("FLOATS", 8200), ()),
    "cuda_memtest": (MEMTEST, ("fail memory-faulty drain",)),
    "cuda_memtest, good": ("".join(MEMTEST.splitlines(keepends=True)[i] for i in (0, 1, 6)), ()),
    "a rack": (RACK.format(797.8), ()),
    "a rack with a slow GPU": (RACK.format(391.2), ("warn slow inspect",)),
    "a rack with a GPU that copies nothing": (RACK.format(0), ("warn slow inspect",)),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    assert_read(EXPECTED[name], tmp_path)


@pytest.mark.parametrize(("text", "line"), [
    (GPU_TOOLS, "2025-01-08,02:55:04.001 WARNING  GPU 0000:44:00.0 H100-PCIE 0x2331 fell off the bus"),
    (GPU_TOOLS, "2025-01-08,02:55:04.001 ERROR    GPU 0000:44:00.0 H100-PCIE 0x2331 not booted"),
    (CONTAINER_CLI, "detected GPU is lost, Xid 79"), (CONTAINER_CLI, "missing library libnvidia-ml.so"),
    (CONTAINER_CLI, "missing library libcuda.so"),
])
def test_a_log_that_is_known_has_lines_that_are_not(text: str, line: str) -> None:
    assert left_over(text + line) == [line]


def test_a_date_is_no_number_of_an_error(tmp_path: Path) -> None:
    """vLLM of before wrote the file without a bracket before it."""
    assert "initialization error" not in str(of_text(OF_VLLM, tmp_path)[1]["findings"])
    assert read_cuda_errors(("ERROR 03-28 21:38:23 x.py:44 the CUDA error is not known",)) == ()


@pytest.mark.parametrize(("last", "outcomes"), [
    ("Test7 [Random blocks]", []), ("Test7 finished in 1.2 seconds", ["pass"]),
    ("ERROR: CUDA error: misaligned address, line 9", ["unknown"]),
])  # fmt: skip
def test_a_test_of_memory_passes_once_it_is_finished(last: str, outcomes: list[str]) -> None:
    head, *_ = MEMTEST.splitlines()
    (*found,) = read_memtest((head, head.replace(head.partition("]:")[2], last)))
    assert re.findall("'outcome': '([a-z]+)'", str(found)) == outcomes
