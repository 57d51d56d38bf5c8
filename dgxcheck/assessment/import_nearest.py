"""Of a text that no reader knows: whose output it is most like, and what a reader would have needed."""

from __future__ import annotations

import re
from collections.abc import Sequence

NEAREST: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (tool, re.compile(pattern), lacking)
    for tool, pattern, lacking in (
        ("nvidia-smi topo -m", r"\b(?:NV\d{1,2}|PIX|PXB|PHB|SYS|NODE)\b.{0,40}\b(?:NV\d{1,2}|PIX|PXB|PHB|SYS|NODE)\b",
         "the line with the names of the columns, GPU0 GPU1 .."),
        ("nvidia-smi", r"\d{1,6}MiB ?/ ?\d{1,6}MiB|\bBus-Id\b", "a row with the number and bus id of a GPU"),
        ("nvidia-smi -q", r"^\s{2,40}[A-Z][\w .-]{2,40} {2,40}: ", "the line GPU 0000:.. above it, or a whole section"),
        ("nvidia-smi nvlink", r"\bLink \d{1,2}: ", "the line GPU 0: .. above the links"),
        ("nvidia-smi --query-gpu", r"\bGPU-[0-9a-f]{8}-|^\d{1,2}, ",
         "the head with the names of the columns, or the command"),
        ("nccl-tests", r"^\s{0,20}\d{1,15}\s{1,20}\d{1,15}\s{1,20}(?:float|half|int8|bfloat16)\b",
         "the head above the rows"),
        ("perftest", r"\b(?:RDMA_\w{4,5}|Send) (?:Bidirectional )?(?:BW|Latency) Test\b"
         r"|^\s{0,20}(?:Dual-port|Number of qps|Connection type|TX depth|CQ Moderation|"
         r"Max inline data|rdma_cm QPs|Data ex\. method)\s{0,9}:",
         "rows of figures below the head, or the name of the HCA above them"),
        ("NCCL_DEBUG=INFO", r"\bNCCL (?:INFO|WARN)\b", "messages that tell of devices or errors"),
        ("lspci -vv", r"\bLnk(?:Cap|Sta):", "the line with the bus id of the device above it"),
        ("the kernel log", r"\bNVRM\b|\bXid\b|\bkernel: ", "a message that tells of a device or a fault"),
        ("ibstat", r"^\s{0,20}(?:Physical state|Base lid|Link layer): ", "the line CA '..' above it"),
        ("dcgmi", r"\b(?:dcgmi|DCGM|gpuId)\b", "a table of results"),
        ("p2pBandwidthLatencyTest", r"\bD\\D\b|P2P=(?:Enabled|Disabled)", "the title above the matrix"),
    )
)  # fmt: skip
LONGEST = 400
MOST_LINES = 10_000


def nearest(lines: Sequence[str]) -> str:
    """``nvidia-smi topo -m, but without the line with ..``; empty where it is like none."""
    hits: dict[int, int] = {}
    for line in lines[:MOST_LINES]:
        for number, (_, pattern, _) in enumerate(NEAREST):
            if pattern.search(line[:LONGEST]):
                hits[number] = hits.get(number, 0) + 1
    if not hits:
        return ""
    tool, _, lacking = NEAREST[max(hits, key=lambda number: (hits[number], -number))]
    return f"most like the output of {tool}, but without {lacking}"
