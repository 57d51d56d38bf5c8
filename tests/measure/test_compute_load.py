"""The load of the multiprocessors: which kernel it is, and that blocks which work out something else are found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from standin import cuda

HEAVIEST = """
import json, sys
from dgxcheck.cuda import compute
from dgxcheck.cuda.device import CudaGpu
from dgxcheck.cuda.driver import Driver
from dgxcheck.cuda.timing import Clock
driver = Driver(sys.argv[1])
driver.call("cuInit", 0)
gpu, clock = CudaGpu(driver, 0), Clock()
load = compute.heaviest(gpu, clock)
seconds = clock.seconds([load.flow], 1)[0]
print(json.dumps([round(load.flop / seconds / 1e12, 1), load.differing(), gpu.has_kernel("dgx_fma")]))
"""
SMS = 80
CHECKED = SMS * 8 * 256 * 4
"""Bytes: eight blocks a multiprocessor, 256 threads, a word each."""


@pytest.mark.parametrize(
    ("flags", "faults", "tflops", "wrong"),
    [
        ((), (), 14.0, 0), (("tensor",), (), 112.0, 0),
        ((), ("wrong-compute 0 0",), 14.0, 256), (("tensor",), ("wrong-compute 0 639",), 112.0, 256),
    ],
)  # fmt: skip
def test_tensor_cores_where_there_are_some(
    flags: tuple[str, ...], faults: tuple[str, ...], tflops: float, wrong: int, tmp_path: Path, cuda_library: Path
) -> None:
    """A GPU that cannot load their kernel runs the others, and one block of 256 words differs from all others."""
    (tmp_path / "box").write_text(cuda.describe([cuda.Gpu(sms=SMS, flags=flags)], faults=faults), encoding="utf-8")
    command = (sys.executable, "-c", HEAVIEST, str(cuda_library))
    environment = cuda.environment(cuda_library, tmp_path / "box")
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == [pytest.approx(tflops, rel=0.01), [wrong, CHECKED], True]
