"""perftest's ``ib_write_bw`` and its siblings: what a port moves between two hosts, or through a cable to itself.

``Gb/sec`` counts 1e9 bits; ``MB/sec`` of older releases and ``MiB/sec`` of today's both count 2**20 bytes
(``format_factor`` in https://github.com/linux-rdma/perftest/blob/00b55b6/src/perftest_parameters.c). The figure judged
by people is ``BW average``: ``BW peak`` is 0 where the test ran by time.
"""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.readers.benchmarks.perftest_gpus import GpuMemory
from dgxcheck.readers.merge import merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import MOST_GBS, MOST_US, bare, bounded, imported, integer, number, too_small

TOOL = "perftest"
MOST_BYTES = 1 << 40
MOST_SIZES = 64
GBS = {"Gb/sec": 0.125, "MB/sec": 1.048576e-3, "MiB/sec": 1.048576e-3}
TITLE = re.compile(r"(RDMA_Write|RDMA_Read|Send)(?: (Bidirectional))?(?: Post List)? (BW|Latency) Test")
DEVICE = re.compile(r"(?:Dual-port : (?:ON|OFF) )?Device : ([A-Za-z0-9_.-]{1,64})")
BANDWIDTH = re.compile(
    r"bytes #iterations BW peak\[(Gb/sec|MB/sec|MiB/sec)\] BW average\[(?:\1)\](?: MsgRate\[Mpps\].*)?"
)
LATENCY = re.compile(r"bytes #iterations t_min\[usec\] t_max\[usec\] t_typical\[usec\].*")
MEAN_LATENCY = re.compile(r"bytes #iterations t_avg\[usec\] tps average")
"""Of a run by time (``-D``)."""
KINDS = {"RDMA_Write": "rdma-write", "RDMA_Read": "rdma-read", "Send": "rdma-send"}
CHATTER = re.compile(
    r"-{20,200}|Waiting for client to connect\.\.\.|(?:local|remote) address: LID .*|GID: [0-9a-f:]+"
    r"|(?:Number of qps|Connection type|PCIe relax order|ibv_wr\* API|TX depth|RX depth|CQ Moderation|CQE Poll Batch"
    r"|Mtu|Link type|GID index|Max inline data|Outstand reads|rdma_cm QPs|Data ex\. method|Post List|Use ROCm memory"
    r"|Using DDP|Lock-free) ?: .*"
    r"|WARNING: BW peak won't be measured in this run\.?|Requested mtu is higher than active mtu"
    r"|Changing to active mtu - \d|Device not recognized to implement inline feature\. Disabling it"
)
OF_ITSELF = re.compile(
    r"Conflicting CPU frequency values detected: .*|Perftest doesn't supports CUDA tests with inline messages: .*"
)
"""Sentences that no other program prints, also amid the figures."""


class Column(Record, kw_only=False):
    """Of a row: which of its columns counts, from 0, and what it holds."""

    index: int
    figure: str
    """``average``, ``typical``, ``mean``"""
    scale: float
    """GB/s or us for one of its unit."""
    most: float


TYPICAL, MEAN = Column(4, "typical", 1, MOST_US), Column(2, "mean", 1, MOST_US)
_FEWEST_WORDS = 4


class Run(Record, kw_only=True):
    """A test, as its title or its command names it."""

    verb: str
    """``RDMA_Write``"""
    both: bool
    latency: bool
    words: str
    memory: int | None = None
    """The GPU whose memory is used; None for host memory."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``rdma-write HCA``, ``rdma-read``, ``rdma-send`` in GB/s at the largest message (``-both`` where both directions
    ran, their sum), and ``..-latency`` in us: the typical time of one direction at the smallest message. A member
    ``memory`` is the GPU whose memory was used, by CUDA's number."""
    facts: list[tuple[str, Json]] = []
    understood: set[int] = set()
    run: Run | None = None
    device = ""
    column: Column | None = None
    gpus = GpuMemory()
    rows: list[tuple[int, float, int]] = []

    def close() -> None:
        if rows and run is not None and column is not None and device:
            facts.append(_fact(run, device, column, rows))
            understood.update(at for _, _, at in rows)
            gpus.forget()
        rows.clear()

    for at, raw in enumerate(bounded(lines)):
        line = " ".join(bare(raw).split())
        if (called := command(line)) is not None:
            close()
            (run, device), column = called, None
            continue
        if match := TITLE.fullmatch(line):
            close()
            both, latency = bool(match[2]), match[3] == "Latency"
            run, column = Run(verb=match[1], both=both, latency=latency, words=match[0], memory=gpus.number), None
        elif (named := DEVICE.fullmatch(line)) and (run is not None or line.startswith("Dual")):
            close()
            device, column = named[1], None
        elif heading := BANDWIDTH.fullmatch(line):
            close()
            column = Column(3, "average", GBS[heading[1]], MOST_GBS)
        elif LATENCY.fullmatch(line) or MEAN_LATENCY.fullmatch(line):
            close()
            column = TYPICAL if LATENCY.fullmatch(line) else MEAN
        elif column is not None and (row := _row(line, column)) is not None:
            rows.append((*row, at))
            continue
        elif gpus.speaks(line):
            close()
            gpus.take(line, at)
        elif not (OF_ITSELF.fullmatch(line) or ((run is not None or column is not None) and CHATTER.fullmatch(line))):
            continue
        understood.add(at)
    close()
    facts += gpus.facts()
    return (Imported(tool=TOOL, facts=merge_runs(facts), understood=frozenset(understood)),) if facts else ()


_COMMAND = re.compile(r"(?:\S{1,120}/)?ib_(?P<verb>write|read|send)_(?P<what>bw|lat)(?P<options>(?: \S{1,120}){0,40})")
_VERBS = {"write": "RDMA_Write", "read": "RDMA_Read", "send": "Send"}
_WITH_DEVICE = re.compile(r" (?:-d ?|--ib-dev[= ])(?P<device>[A-Za-z][\w.-]{0,63})(?= |$)", re.ASCII)


def command(line: str) -> tuple[Run, str] | None:
    """What ``ib_write_bw -d mlx5_0 -b host`` will measure, and at which HCA; empty where it names none."""
    match = _COMMAND.fullmatch(line)
    if match is None:
        return None
    options = match["options"]
    named = _WITH_DEVICE.search(options)
    both = " -b " in f"{options} " or "--bidirectional" in options
    words = f"ib_{match['verb']}_{match['what']}{' -b' if both else ''}"
    run = Run(verb=_VERBS[match["verb"]], both=both, latency=match["what"] == "lat", words=words)
    return run, named["device"] if named else ""


def _row(line: str, column: Column) -> tuple[int, float] | None:
    """Bytes of a message and GB/s, or us."""
    words = line.split()
    if not max(column.index + 1, _FEWEST_WORDS) <= len(words) <= 9 or any(number(word, 1e15) is None for word in words):
        return None
    size = integer(words[0], MOST_BYTES)
    value = number(words[column.index], column.most / column.scale)
    if size is None or value is None:
        return None
    return size, value if column.scale == 1 else round(value * column.scale, 4)


def _fact(run: Run, device: str, column: Column, rows: list[tuple[int, float, int]]) -> tuple[str, Json]:
    size, value, at = min(rows) if run.latency else max(rows)
    kind = KINDS[run.verb] + ("-both" if run.both else "") + ("-latency" if run.latency else "")
    sizes: list[Json] = [[bytes_, figure] for bytes_, figure, _ in sorted(rows)[-MOST_SIZES:]]
    method = f"{run.words}, {column.figure}, messages of {size} bytes"
    more: dict[str, Json] = {"sizes": sizes} if len(sizes) > 1 else {}
    if run.memory is not None:
        method, more = f"{method}, memory of GPU {run.memory}", more | {"memory": run.memory}
    unit = "us" if run.latency else "GB/s"
    fact = imported(value, unit, tool=TOOL, line=at, method=method, **more)
    return f"measure {kind} {device}", fact if run.latency else too_small(size, fact)
