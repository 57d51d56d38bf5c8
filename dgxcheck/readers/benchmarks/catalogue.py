"""The readers of benchmark outputs, in the order in which they look at a text."""

from __future__ import annotations

from dgxcheck.readers.benchmarks import (
    cuda_bandwidth_test,
    gpu_burn,
    gpu_fryer,
    nccl_tests,
    nvbandwidth,
    nvbandwidth_json,
    p2p_bandwidth_latency,
    perftest,
    perftest_failures,
    simple_p2p,
    tartan,
)
from dgxcheck.readers.model import Reader

READERS: tuple[Reader, ...] = (
    p2p_bandwidth_latency.read,
    cuda_bandwidth_test.read,
    simple_p2p.read,
    nvbandwidth.read,
    nvbandwidth_json.read,
    nccl_tests.read,
    tartan.read,
    gpu_burn.read,
    gpu_fryer.read,
    perftest.read,
    perftest_failures.read,
)
