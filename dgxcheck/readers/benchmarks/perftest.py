"""perftest's ``ib_write_bw`` and its siblings: what a port moves between two hosts, or through a cable to itself.

``Gb/sec`` counts 1e9 bits; ``MB/sec`` of older releases and ``MiB/sec`` of today's both count 2**20 bytes
(``format_factor`` in https://github.com/linux-rdma/perftest/blob/00b55b6/src/perftest_parameters.c). The figure judged
by people is ``BW average``: ``BW peak`` is 0 where the test ran by time.
"""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.merge import merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import MOST_GBS, MOST_US, bare, bounded, imported, integer, number

TOOL = "perftest"
MOST_BYTES = 1 << 40
MOST_SIZES = 64
GBS = {"Gb/sec": 0.125, "MB/sec": 1.048576e-3, "MiB/sec": 1.048576e-3}
TITLE = re.compile(r"(RDMA_Write|RDMA_Read|Send)(?: (Bidirectional))?(?: Post List)? (BW|Latency) Test")
DEVICE = re.compile(r"Dual-port : (?:ON|OFF) Device : ([A-Za-z0-9_.-]{1,64})")
BANDWIDTH = re.compile(r"bytes #iterations BW peak\[(Gb/sec|MB/sec|MiB/sec)\] BW average\[(?:\1)\] MsgRate\[Mpps\].*")
LATENCY = re.compile(r"bytes #iterations t_min\[usec\] t_max\[usec\] t_typical\[usec\].*")
KINDS = {"RDMA_Write": "rdma-write", "RDMA_Read": "rdma-read", "Send": "rdma-send"}
CHATTER = re.compile(
    r"-{20,200}|Waiting for client to connect\.\.\.|(?:local|remote) address: LID .*|GID: [0-9a-f:]+"
    r"|(?:Number of qps|Connection type|PCIe relax order|ibv_wr\* API|TX depth|RX depth|CQ Moderation|CQE Poll Batch"
    r"|Mtu|Link type|GID index|Max inline data|Outstand reads|rdma_cm QPs|Data ex\. method|Post List|Use ROCm memory)"
    r" ?: .*|WARNING: BW peak won't be measured in this run\.?"
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``rdma-write HCA``, ``rdma-read``, ``rdma-send`` in GB/s at the largest message (``-both`` where both directions
    ran, their sum), and ``..-latency`` in us: the typical time of one direction at the smallest message."""
    facts: list[tuple[str, Json]] = []
    understood: set[int] = set()
    title: re.Match[str] | None = None
    device = unit = ""
    rows: list[tuple[int, float, int]] = []

    def close() -> None:
        if rows and title is not None and device:
            facts.append(_fact(title, device, rows))
            understood.update(at for _, _, at in rows)
        rows.clear()

    for at, raw in enumerate(bounded(lines)):
        line = " ".join(bare(raw).split())
        if match := TITLE.fullmatch(line):
            close()
            title, device, unit = match, "", ""
        elif named := DEVICE.fullmatch(line):
            close()
            device, unit = named[1], ""
        elif heading := BANDWIDTH.fullmatch(line):
            close()
            unit = heading[1]
        elif LATENCY.fullmatch(line):
            close()
            unit = "usec"
        elif unit and (row := _row(line, unit)) is not None:
            rows.append((*row, at))
            continue
        elif not (title is not None and CHATTER.fullmatch(line)):
            continue
        understood.add(at)
    close()
    return (Imported(tool=TOOL, facts=merge_runs(facts), understood=frozenset(understood)),) if facts else ()


def _row(line: str, unit: str) -> tuple[int, float] | None:
    """Bytes of a message and GB/s, or us."""
    words = line.split()
    if not 5 <= len(words) <= 9 or any(number(word, 1e15) is None for word in words):
        return None
    size = integer(words[0], MOST_BYTES)
    most = MOST_US if unit == "usec" else MOST_GBS / GBS[unit]
    value = number(words[4] if unit == "usec" else words[3], most)
    if size is None or value is None:
        return None
    return size, value if unit == "usec" else round(value * GBS[unit], 4)


def _fact(title: re.Match[str], device: str, rows: list[tuple[int, float, int]]) -> tuple[str, Json]:
    latency = title[3] == "Latency"
    size, value, at = min(rows) if latency else max(rows)
    kind = KINDS[title[1]] + ("-both" if title[2] else "") + ("-latency" if latency else "")
    sizes: list[Json] = [[bytes_, figure] for bytes_, figure, _ in sorted(rows)[-MOST_SIZES:]]
    method = f"{title[0]}, {'typical' if latency else 'average'}, messages of {size} bytes"
    more: dict[str, Json] = {"sizes": sizes} if len(sizes) > 1 else {}
    unit = "us" if latency else "GB/s"
    return f"measure {kind} {device}", imported(value, unit, tool=TOOL, line=at, method=method, **more)
