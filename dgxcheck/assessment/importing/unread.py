"""Unread lines of a text: the tool that they look most like, and those that belong to no known output.

A pattern matches only what that tool alone prints: naming no tool is better than naming the wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.alarming import mentions_trouble

_CELL = r"(?:X|NV\d{1,2}|PIX|PXB|PHB|SYS|SOC|NODE)"
_FIELDS = (r"(?:Product (?:Name|Brand|Architecture)|Persistence Mode|VBIOS Version|GPU UUID|Serial Number|Board ID"
           r"|Minor Number|Bus Id|Max Link Width|Pending Page Blacklist|Remapping Failure Occurred|GPU Current Temp"
           r"|Power Draw|Ecc Mode|Compute Mode|GPU Part Number|(?:SRAM|DRAM) (?:Unc|C)orrectable)")  # fmt: skip
_LABEL = r"(?:GPU|NIC|CPU|mlx|ib|rocep|bnxt_re|irdma)\w{0,16}"
_ANSWER = (r"(?:\[?N/A\]?|\[Not Supported\]|\d{1,7}(?:\.\d{1,2})? (?:MiB|W|%|MHz)|P\d{1,2}"
           r"|GPU-[0-9a-f]{8}-[0-9a-f-]{27})")  # fmt: skip
NEAREST: tuple[tuple[str, LazyPattern, str], ...] = (
    ("nvidia-smi topo -m", LazyPattern(rf"^\W{{0,8}}{_LABEL}(?:\s{{1,8}}{_CELL}){{2,40}}(?:\s.{{0,60}})?$",
                                       "X", "NV", "PIX", "PHB", "SYS", "SOC", "NODE"),
     "the line with the names of the columns, GPU0 GPU1 .."),
    ("nvidia-smi", LazyPattern(r"\d{1,6}MiB ?/ ?\d{1,6}MiB ?\| {1,12}\d{1,3}%|\bBus-Id\s{1,12}Disp\.A\b"),
     "a row with the number and bus id of a GPU"),
    ("nvidia-smi -q", LazyPattern(rf"^\s{{0,40}}{_FIELDS}\s{{1,40}}: ", ": "),
     "the line GPU 0000:.. above it, or a whole section"),
    ("nvidia-smi nvlink", LazyPattern(
        r"\bLink \d{1,2}: (?:<inactive>|\d{1,3}(?:\.\d{1,3})? GB/s|\w.{0,40}(?:Error|Count))"),
     "the line GPU 0: .. above the links"),
    ("nvidia-smi --query-gpu", LazyPattern(
        rf"^(?:.{{0,200}}, ?)?{_ANSWER}, ?(?:[^,]{{0,60}}, ?){{0,3}}{_ANSWER}(?:,|$)"
        r"|^(?:\d{1,2}, ?)?(?:NVIDIA|Tesla|GeForce|Quadro) [^,]{1,40}, ?\d{1,7}(?:,|$)", ","),
     "the head with the names of the columns, or the command"),
    ("nccl-tests", LazyPattern(r"^\s{0,20}\d{1,15}\s{1,20}\d{1,15}\s{1,20}(?:float|half|int8|bfloat16)\b"),
     "the head above the rows"),
    ("perftest", LazyPattern(
        r"\b(?:RDMA_\w{4,5}|Send) (?:Bidirectional )?(?:BW|Latency) Test\b"
        r"|^\s{0,20}(?:Dual-port|Number of qps|Connection type|TX depth|CQ Moderation|"
        r"Max inline data|rdma_cm QPs|Data ex\. method)\s{0,9}:", " Test", ":"),
     "rows of figures below the head, or the name of the HCA above them"),
    ("NCCL_DEBUG=INFO", LazyPattern(r"\bNCCL (?:INFO|WARN)\b"), "messages that tell of devices or errors"),
    ("lspci -vv", LazyPattern(r"^\s{0,40}Lnk(?:Cap|Sta):"), "the line with the bus id of the device above it"),
    ("the kernel log", LazyPattern(r"\bNVRM: |^(?:<\d{1,3}>)?\[ {0,9}\d{1,9}\.\d{6}\] |\bkernel: ",
                                   "NVRM: ", "] ", "kernel: "),
     "a message that tells of a device or a fault"),
    ("ibstat", LazyPattern(r"^\s{0,20}(?:Physical state|Base lid|Link layer): "),
     "the line CA '..' above it"),
    ("dcgmi", LazyPattern(
        r"\bgpuId \d|^\|.{0,80}\|\s{0,4}(?:Pass|Fail|Skip|Warn)\b.{0,40}\|$|\bDCGM (?:GPU )?Diagnostic\b"),
     "a table of results"),
    ("p2pBandwidthLatencyTest", LazyPattern(r"\bD\\D\b|\bP2P=(?:Enabled|Disabled)\b"),
     "the title above the matrix"),
    ("rocm-smi or amd-smi", LazyPattern(r"\bROCm (?:System Management Interface|SMI Log|version: )|^\W{1,4}AMD-SMI \d"),
     "an NVIDIA GPU, and dgxcheck judges no others"),
)  # fmt: skip
LONGEST = 400
MOST_LINES = 10_000


def nearest(lines: Sequence[str]) -> str:
    """``most like the output of nvidia-smi topo -m, but without ..``; empty where it is like none."""
    hits: dict[int, int] = {}
    for line in lines[:MOST_LINES]:
        for number, (_, pattern, _) in enumerate(NEAREST):
            if pattern.search(line[:LONGEST]):
                hits[number] = hits.get(number, 0) + 1
    if not hits:
        return ""
    tool, _, lacking = NEAREST[max(hits, key=lambda number: (hits[number], -number))]
    return f"most like the output of {tool}, but without {lacking}"


MOST_UNREAD = 10_000
"""More unread lines than that are no words about an output."""


def beside(lines: Sequence[str], unread: Sequence[int], outputs: Iterable[frozenset[int]]) -> frozenset[int]:
    """Those of the unread lines that are part of no known output, by their numbers from 0.

    ``outputs`` are the lines of each output that was read. A paragraph is beside them if it touches none, stands within
    none, resembles the output of no known tool and mentions no error.
    """
    spans: list[tuple[int, int]] = []
    for first, last in sorted((min(of_one) - 1, max(of_one) + 1) for of_one in outputs if of_one):
        joins = bool(spans) and first <= spans[-1][1]
        spans[-1:] = [(spans[-1][0], max(last, spans[-1][1]))] if joins else [*spans[-1:], (first, last)]
    if not spans or len(unread) > MOST_UNREAD:
        return frozenset()
    aside: set[int] = set()
    for paragraph in _paragraphs(lines, unread):
        touches = any(first <= paragraph[-1] and paragraph[0] <= last for first, last in spans)
        words = [lines[at] for at in paragraph]
        if not touches and not nearest(words) and not mentions_trouble(words):
            aside.update(paragraph)
    return frozenset(aside)


def _paragraphs(lines: Sequence[str], unread: Sequence[int]) -> Iterator[list[int]]:
    """Runs of unread lines without a blank one between them."""
    run: list[int] = []
    for at in unread:
        if run and (at != run[-1] + 1 or not lines[at].strip()):
            yield run
            run = []
        run.append(at)
    if run:
        yield run
