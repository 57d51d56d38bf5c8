"""The results of the Tartan suite, and all readers of benchmarks.

The Tartan suite: its sweep of p2pBandwidthLatencyTest over sizes, and what it cut out of NCCL's tests as CSV.

A copy goes from the column's GPU to the row's
(https://github.com/uuudown/Tartan/blob/957d8606979a7d4dbfa8176b8e7a8641a5af03b0/microbenchmark/scale_up_p2p_packet/p2pBandwidthLatencyTest.cu).
``run_test.py`` beside ``scale_up_cl/nccl-v2`` says what the CSV leaves out: ``Latency`` is ms at 8 bytes, ``Bandwidth``
the bus bandwidth at 1 GB, ``Packet`` was run on eight GPUs. It does not say which NCCL.
"""

from __future__ import annotations

from dgxcheck.facts.missing import Json
from dgxcheck.lazy_pattern import ascii_pattern
from dgxcheck.readers.benchmarks.p2p_bandwidth_latency import matrices, two_places
from dgxcheck.readers.combine import Figures, kinds
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import MOST_BYTES, MOST_GBS, MOST_GPUS, MOST_US, bare, bounded, integer, number, numbered

TOOL = "Tartan"
MOST_SIZES = 64
LATENCY_BYTES = 16
SIZE = ascii_pattern(r"===== (\d{1,13}) =====")
TABLES = kinds(TOOL)
HEADS = ("OP,GPU,Bandwidth", "OP,GPU,Latency", "OP,Packet,Bandwidth")
ROW = ascii_pattern(r"(all_gather|all_reduce|broadcast|reduce|reduce_scatter)_perf,(\d{1,13}),(\d{1,12}\.\d{2,3})")


def read_tartan(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``p2p``, ``p2p-off``, .. at the largest size and ``latency``, ``latency-off`` at 16 bytes, all ``sizes`` kept;
    ``collective`` and ``collective-latency``."""
    lines = bounded(lines)
    part = Figures(TOOL)
    _sweep(part, lines)
    _csv(part, lines)
    return part.imported()


def _sweep(part: Figures, lines: tuple[str, ...]) -> None:
    series: dict[tuple[str, int, int], list[tuple[int, float, int]]] = {}
    tables = matrices(lines, ("D\\D",))
    size: int | None = None
    kind: str | None = None
    for at, raw in enumerate(lines):
        line = bare(raw)
        if match := SIZE.fullmatch(line):
            size, kind = integer(match[1], MOST_BYTES), None
        elif size is not None and line in TABLES:
            kind = TABLES[line]
        elif at in tables and size is not None and kind is not None:
            cells, whole_lines = tables[at].cells(two_places(MOST_US if kind.startswith("latency") else MOST_GBS))
            for row, column, value, where in cells:
                series.setdefault((kind, column, row), []).append((size, value, where))
            part.lines |= whole_lines
            kind = None
            continue
        else:
            continue
        part.lines.add(at)
    for (kind, sender, receiver), steps in series.items():
        _figure(part, kind, sender, receiver, sorted(steps))


def _figure(part: Figures, kind: str, sender: int, receiver: int, steps: list[tuple[int, float, int]]) -> None:
    """One pair over all sizes."""
    latency, both = kind.startswith("latency"), kind.endswith("-both")
    size, value, at = min(steps, key=lambda step: abs(step[0] - LATENCY_BYTES)) if latency else steps[-1]
    sizes: list[Json] = [[bytes_, figure] for bytes_, figure, _ in steps[-MOST_SIZES:]]
    pair = (min(sender, receiver), max(sender, receiver)) if both else (sender, receiver)
    how = "both directions at once, sum" if both else "pulled by the receiver"
    method = f"cudaMemcpyPeerAsync, {how}, {size} bytes"
    part.measure(f"{kind} {pair[0]} {pair[1]}", value, "us" if latency else "GB/s", at, method, sizes=sizes)


def _csv(part: Figures, lines: tuple[str, ...]) -> None:
    steps: dict[str, list[tuple[int, float, int]]] = {}
    head = ""
    for at, line in numbered(lines, bare):
        if line in HEADS:
            head = line
        elif head and (row := ROW.fullmatch(line)):
            op, digits = row[1], len(row[3].partition(".")[2])
            if head == HEADS[2]:
                size, rate = integer(row[2], MOST_BYTES), number(row[3], MOST_GBS)
                if size is None or rate is None:
                    continue
                steps.setdefault(op, []).append((size, rate, at))
            elif (gpus := integer(row[2], MOST_GPUS)) is None:
                continue
            elif digits != (3 if head == HEADS[1] else 2):
                continue  # it lost some
            elif gpus < 2:
                pass  # with one GPU the program divides by a time near 0
            elif head == HEADS[1]:
                if (milliseconds := number(row[3], MOST_US / 1000)) is None:
                    continue
                time = round(milliseconds * 1000, 3)
                part.measure(f"collective-latency {op} {gpus}", time, "us", at, f"{op}, time at 8 bytes")
            elif (rate := number(row[3], MOST_GBS)) is None:
                continue
            else:
                part.measure(f"collective {op} {gpus}", rate, "GB/s", at, f"{op}, bus bandwidth at 1 GB")
        else:
            continue
        part.lines.add(at)
    for op, all_sizes in steps.items():
        size, rate, at = max(all_sizes)
        sizes: list[Json] = [[bytes_, None, None, value] for bytes_, value, _ in sorted(all_sizes)[-MOST_SIZES:]]
        part.measure(f"collective {op} 8", rate, "GB/s", at, f"{op}, bus bandwidth at {size} bytes", sizes=sizes)
