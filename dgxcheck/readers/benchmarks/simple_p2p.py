"""simpleP2P of the CUDA samples: one pair, copied to and fro, then written through by a kernel on each side.

It prints ``GB/s`` and divides by 1024 three times, so one of its is 2**30 bytes
(https://github.com/NVIDIA/cuda-samples/blob/ca37378cb454b74e3979fa7a14c110045d3c4437/Samples/0_Introduction/simpleP2P/simpleP2P.cu).
Its verdict is of both directions together: each GPU's kernel reads what the other GPU holds, and the host compares.
"""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.merge import merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import MOST_GBS, bare, bounded, gpu, imported, number

TOOL = "simpleP2P"
GIB = 1.073741824
MIB = 1 << 20
ACCESS = re.compile(r"Peer access from .{1,100} \(GPU(\d{1,3})\) ?-> .{1,100} \(GPU(\d{1,3})\) ?: (Yes|No)")
RATE = re.compile(
    r"cudaMemcpyPeer / cudaMemcpy between GPU(\d{1,3}) and GPU(\d{1,3}): (\d{1,9}\.\d\d) ?GB/s",
    re.ASCII,
)
PAIR = re.compile(r"Enabling peer access between GPU(\d{1,3}) and GPU(\d{1,3})\.\.\.")
BUFFERS = re.compile(r"Allocating buffers \((\d{1,6})MB on GPU\d{1,3}, GPU\d{1,3} and CPU Host\)\.\.\.", re.ASCII)
WRONG = re.compile(r"Verification error @ element (\d{1,12}): .{1,100}", re.ASCII)
VERDICT = re.compile(r"Test (passed|failed!?)")
CHATTER = re.compile(
    r"\[\S{0,200}simpleP2P\S{0,20}\] - Starting\.\.\.|Checking for multiple GPUs\.\.\."
    r"|CUDA-capable device count: \d{1,3}"
    r"|GPU\d{1,3} = \" ?.{1,60}\" (?:IS|NOT|IS NOT) +capable of Peer-to-Peer \(P2P\)"
    r"|Checking GPU\(s\) for support of peer to peer memory access\.\.\."
    r"|Checking GPU\d{1,3} and GPU\d{1,3} for UVA capabilities\.\.\.|.{1,100} \(GPU\d{1,3}\) supports UVA: (?:Yes|No)"
    r"|Both GPUs can support UVA, enabling\.\.\.|Creating event handles\.\.\."
    r"|Preparing host buffer and memcpy to GPU\d{1,3}\.\.\."
    r"|Run kernel on GPU\d{1,3}, taking source data from GPU\d{1,3} and writing to GPU\d{1,3}\.\.\."
    r"|Copy data back to host from GPU\d{1,3} and verify results\.\.\."
    r"|Disabling peer access\.\.\.|Shutting down\.\.\."
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``access``, ``p2p-alternating`` (one copy at a time, to and fro) in GB/s, and ``p2p-integrity`` of both ways."""
    facts: list[tuple[str, Json]] = []
    understood: set[int] = set()
    pair: tuple[int, int] | None = None
    size = 0
    wrong: list[int] = []
    for at, raw in enumerate(bounded(lines)):
        line = " ".join(bare(raw).split())
        if access := ACCESS.fullmatch(line):
            if both := _pair(access[1], access[2]):
                fact = imported(access[3] == "Yes", "", tool=TOOL, line=at, method="cudaDeviceCanAccessPeer")
                facts.append((f"measure access {both[0]} {both[1]}", fact))
                understood.add(at)
        elif begun := PAIR.fullmatch(line):
            pair, size, wrong = _pair(begun[1], begun[2]), 0, []
            understood.add(at)
        elif rate := RATE.fullmatch(line):
            both, value = _pair(rate[1], rate[2]), number(rate[3], MOST_GBS)
            if both and value is not None:
                pair = both
                fact = imported(
                    round(value * GIB, 4), "GB/s", tool=TOOL, line=at, method="cudaMemcpy, alternating directions"
                )
                facts.append((f"measure p2p-alternating {min(both)} {max(both)}", fact))
                understood.add(at)
        elif buffers := BUFFERS.fullmatch(line):
            size = int(buffers[1]) * MIB
            understood.add(at)
        elif error := WRONG.fullmatch(line):
            wrong.append(int(error[1]))
            understood.add(at)
        elif verdict := VERDICT.fullmatch(line):
            if pair is not None:
                facts += _integrity(pair, wrong, verdict[1] == "passed", size, at)
                understood.add(at)
            pair, wrong = None, []
        elif CHATTER.fullmatch(line):
            understood.add(at)
    return (Imported(tool=TOOL, facts=merge_runs(facts), understood=frozenset(understood)),) if facts else ()


def _pair(a: str, b: str) -> tuple[int, int] | None:
    first, second = gpu(a), gpu(b)
    return None if first is None or second is None or first == second else (first, second)


def _integrity(pair: tuple[int, int], wrong: list[int], passed: bool, size: int, at: int) -> list[tuple[str, Json]]:
    """Nothing where the verdict contradicts the errors above it: then lines are missing or not of one run."""
    if passed == bool(wrong):
        return []
    fact = imported(
        len(wrong),
        "words",
        tool=TOOL,
        line=at,
        method="kernels of both GPUs read each other's memory; at most 12 wrong words are reported",
        checked=size,
        first=min(wrong) * 4 if wrong else None,
    )
    a, b = pair
    return [(f"measure p2p-integrity {a} {b}", fact), (f"measure p2p-integrity {b} {a}", dict(fact))]
