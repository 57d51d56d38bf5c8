"""``ib_write_bw`` and the others of perftest: rates between HCAs, GPU memory, failures.

What perftest prints where it uses the memory of a GPU (``--use_cuda``): the GPUs of the host, and which one.

Since 4.5; bus ids come without their domain (https://github.com/linux-rdma/perftest/blob/master/src/cuda_memory.c).

perftest's ``ib_write_bw`` and its siblings: what a port moves between two hosts, or through a cable to itself.

``Gb/sec`` counts 1e9 bits; ``MB/sec`` of older releases and ``MiB/sec`` of today's both count 2**20 bytes
(``format_factor`` in https://github.com/linux-rdma/perftest/blob/00b55b6/src/perftest_parameters.c). The figure judged
by people is ``BW average``: ``BW peak`` is 0 where the test ran by time.
"""

from __future__ import annotations

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record, replace
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.combine import Figures, by_size
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.network.files import completion
from dgxcheck.readers.values import (
    LEAST_BYTES,
    MOST_BYTES,
    MOST_GBS,
    MOST_US,
    bare,
    gpu,
    integer,
    number,
    numbered,
    squeezed,
)
from dgxcheck.readers.wording import any_of, wordings

_LISTED = LazyPattern(r"CUDA device (?P<number>\d{1,3}): PCIe address is (?P<place>[0-9A-Fa-f]{1,2}:[0-9A-Fa-f]{1,2})")
_PICKED = LazyPattern(r"Picking (?:device No\. (?P<number>\d{1,3})|CUDA device number (?P<other>\d{1,3})).{0,80}")
_NAMED = LazyPattern(r"\[pid = \d{1,10}, dev = (?P<number>\d{1,3})\] device name = \[(?P<name>[^\[\]]{1,80})\]")
_PERFTEST_GPUS_CHATTER = LazyPattern(any_of("benchmarks/lines", "perftest, GPUs"), "device", "buffer", "CUDA")


class GpuMemory:
    """The GPUs of one host, by CUDA's number."""

    def __init__(self) -> None:
        self.number: int | None = None
        """Whose memory the test uses that is printed now."""
        self._places: dict[int, tuple[str, int]] = {}
        self._names: dict[int, str] = {}

    @staticmethod
    def speaks(line: str) -> bool:
        """Is it a line about GPUs?"""
        return any(form.fullmatch(line) for form in (_LISTED, _PICKED, _NAMED, _PERFTEST_GPUS_CHATTER))

    def take(self, line: str, at: int) -> None:
        """One such line."""
        if listed := _LISTED.fullmatch(line):
            number, bdf = gpu(listed["number"]), as_bdf(listed["place"], short=True)
            if number is not None and bdf is not None:
                self._places[number] = (bdf, at)
        elif picked := _PICKED.fullmatch(line):
            self.number = gpu(picked["number"] or picked["other"])
        elif (named := _NAMED.fullmatch(line)) and (number := gpu(named["number"])) is not None:
            self.number, self._names[number] = number, named["name"]

    def report(self, part: Figures) -> None:
        """``measure device N``: where each sits."""
        for device, (bdf, at) in self._places.items():
            name: dict[str, Json] = {"name": self._names[device]} if device in self._names else {}
            part.device(device, at, bdf=bdf, **name)


TOOL = "perftest"
GBS = {"Gb/sec": 0.125, "MB/sec": 1.048576e-3, "MiB/sec": 1.048576e-3}
TITLE = LazyPattern(r"(RDMA_Write|RDMA_Read|Send)(?: (Bidirectional))?(?: Post List)? (BW|Latency) Test")
DEVICE = LazyPattern(r"(?:Dual-port : (?:ON|OFF) )?Device : ([A-Za-z0-9_.-]{1,64})")
BANDWIDTH = LazyPattern(
    r"bytes #iterations BW peak\[(Gb/sec|MB/sec|MiB/sec)\] BW average\[(?:\1)\](?: MsgRate\[Mpps\].*)?"
)
LATENCY = LazyPattern(r"bytes #iterations t_min\[usec\] t_max\[usec\] t_typical\[usec\].*")
MEAN_LATENCY = LazyPattern(r"bytes #iterations t_avg\[usec\] tps average")
"""Of a run by time (``-D``)."""
ETHERNET = LazyPattern(r"Link type : Ethernet")
CHATTER = LazyPattern(any_of("benchmarks/lines", "perftest"))
OF_ITSELF = LazyPattern(
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
_ETHERNET = " over Ethernet"


class Run(Record, kw_only=True):
    """A test, as its title or its command names it."""

    verb: str
    """``write``"""
    both: bool
    latency: bool
    words: str
    memory: int | None = None
    """The GPU whose memory is used; None for host memory."""


def read_perftest(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``rdma-write HCA``, ``rdma-read``, ``rdma-send`` in GB/s at the largest message (``-both`` where both directions
    ran, their sum), and ``..-latency`` in us: the typical time of one direction at the smallest message. A member
    ``memory`` is the GPU whose memory was used, by CUDA's number."""
    part = Figures(TOOL)
    run: Run | None = None
    device = ""
    column: Column | None = None
    gpus = GpuMemory()
    rows: list[tuple[int, float, int]] = []

    def close() -> None:
        if rows and run is not None and column is not None and device:
            _measure(part, run, device, column, rows)
            part.lines.update(at for _, _, at in rows)
            gpus.number = None  # the next one may use host memory
        rows.clear()

    for at, line in numbered(lines, squeezed):
        if (called := command(line)) is not None:
            close()
            (run, device), column = called, None
            continue
        if match := TITLE.fullmatch(line):
            close()
            both, latency = bool(match[2]), match[3] == "Latency"
            verb, column = match[1].removeprefix("RDMA_").lower(), None
            run = Run(verb=verb, both=both, latency=latency, words=match[0], memory=gpus.number)
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
        elif run is not None and ETHERNET.fullmatch(line):
            run = replace(run, words=f"{run.words.removesuffix(_ETHERNET)}{_ETHERNET}")
        elif gpus.speaks(line):
            close()
            gpus.take(line, at)
        elif not (OF_ITSELF.fullmatch(line) or ((run is not None or column is not None) and CHATTER.fullmatch(line))):
            continue
        part.lines.add(at)
    close()
    gpus.report(part)
    return part.imported()


_COMMAND = LazyPattern(r"(?:\S{1,120}/)?ib_(?P<verb>write|read|send)_(?P<what>bw|lat)(?P<options>(?: \S{1,120}){0,40})")
_WITH_DEVICE = ascii_pattern(r" (?:-d ?|--ib-dev[= ])(?P<device>[A-Za-z][\w.-]{0,63})(?= |$)")


def command(line: str) -> tuple[Run, str] | None:
    """What ``ib_write_bw -d mlx5_0 -b host`` will measure, and at which HCA; empty where it names none."""
    if (match := _COMMAND.fullmatch(line)) is None:
        return None
    options = match["options"]
    named = _WITH_DEVICE.search(options)
    both = " -b " in f"{options} " or "--bidirectional" in options
    words = f"ib_{match['verb']}_{match['what']}{' -b' if both else ''}"
    run = Run(verb=match["verb"], both=both, latency=match["what"] == "lat", words=words)
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


def _measure(part: Figures, run: Run, device: str, column: Column, rows: list[tuple[int, float, int]]) -> None:
    size, value, at = min(rows) if run.latency else max(rows)
    kind = f"rdma-{run.verb}" + ("-both" if run.both else "") + ("-latency" if run.latency else "")
    method = f"{run.words}, {column.figure}, messages of {size} bytes"
    more = by_size(rows)
    if run.memory is not None:
        method, more = f"{method}, memory of GPU {run.memory}", more | {"memory": run.memory}
    unit, message = ("us", LEAST_BYTES) if run.latency else ("GB/s", size)
    part.measure(f"{kind} {device}", value, unit, at, method, message, **more)


_STATUS = ascii_pattern(r"Failed status (?P<code>\d{1,3}): wr_id \d{1,20} syndrom 0x[0-9a-f]{1,8}")
_FAILURES = wordings("benchmarks/perftest")
"""perftest_communication.c, perftest_parameters.c, perftest_resources.c."""
_FAILURES_CHATTER = LazyPattern(any_of("benchmarks/lines", "perftest, failures"))


def read_failures(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Failed transfers of the host; which HCA they are of stands nowhere."""
    part = ToolPart(TOOL)
    for at, line in numbered(lines, bare):
        if match := _STATUS.fullmatch(line):
            ended, text = completion(int(match["code"]))
            part.add(HOST, "status", ended.outcome, ended.fault, text)
        elif row := next((row for row in _FAILURES if row.words.fullmatch(line)), None):
            subject = "HCA" if row.fault is Fault.PORT_DOWN else HOST
            part.add(subject, row.fault.word if row.fault else "", "fail", row.fault, row.text)
        else:
            part.beside |= {at} if _FAILURES_CHATTER.fullmatch(line) else set()
            continue
        part.lines.add(at)
    return part.imported() if part else ()
