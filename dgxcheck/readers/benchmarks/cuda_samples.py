"""``bandwidthTest`` and ``simpleP2P`` of NVIDIA's samples.

bandwidthTest of the CUDA samples up to 12.8: quick, range and shmoo mode, tables and CSV.

The unit changed. Samples that print ``GB/s`` count 1e9 bytes
(https://github.com/NVIDIA/cuda-samples/blob/306af8d2755e712ffcb0b16a585da61bd1956303/Samples/1_Utilities/bandwidthTest/bandwidthTest.cu);
those of CUDA 5 to 10.0 print ``MB/s`` and compute ``1024 * bytes / ms / 2**20``, so that one of theirs is 1,024,000
bytes a second
(https://github.com/exitstop/cuda_toolkit_8_0_example/blob/6c40e961a95718d712fedd549b18f2df81778d37/1_Utilities/bandwidthTest/bandwidthTest.cu).
Copies inside a device count what is read and what is written in both.

simpleP2P of the CUDA samples: one pair, copied to and fro, then written through by a kernel on each side.

It prints ``GB/s`` and divides by 1024 three times, so one of its is 2**30 bytes
(https://github.com/NVIDIA/cuda-samples/blob/ca37378cb454b74e3979fa7a14c110045d3c4437/Samples/0_Introduction/simpleP2P/simpleP2P.cu).
Its verdict is of both directions together: each GPU's kernel reads what the other GPU holds, and the host compares.
"""

from __future__ import annotations

from itertools import permutations

from dgxcheck.facts.missing import Json
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.combine import Figures, by_size, kinds
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import MOST_BYTES, MOST_GBS, gpu, integer, number, numbered, squeezed
from dgxcheck.readers.wording import any_of

BANDWIDTH_TOOL = "bandwidthTest"
GBS = {"MB/s": 1.024e-3, "GB/s": 1.0}
KINDS = kinds(BANDWIDTH_TOOL)
MOST_SIZES = 128
SECTION = LazyPattern(r"(Host to Device|Device to Host|Device to Device) Bandwidth, (\d{1,3}) Device\(s\).{0,80}")
COLUMNS = LazyPattern(
    r"(?:Write-Combined Memory Writes are Enabled ?)?Transfer Size \(Bytes\) ?Bandwidth\((MB/s|GB/s)\)"
)
DEVICE = LazyPattern(r"Device (\d{1,3}): (.{1,100})")
ROW = ascii_pattern(r"(\d{1,13}) (\d{1,9}\.\d)")
CSV = ascii_pattern(
    r"bandwidthTest-(H2D|D2H|D2D)(-Paged|-Pinned)?(-WriteCombined)?, Bandwidth = (\d{1,9}\.\d) (MB/s|GB/s), "
    r"Time = \d{1,9}\.\d{1,9} s, Size = (\d{1,13}) bytes, NumDevsUsed = (\d{1,3})"
)
BANDWIDTH_CHATTER = LazyPattern(any_of("benchmarks/lines", "bandwidthTest"))
MEMORY = LazyPattern(r"(PINNED|PAGEABLE) Memory Transfers")


def read_bandwidth(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``host-to-device``, ``device-to-host`` (``pageable-..`` too) and ``device-copy``, at the largest size; all sizes
    are kept. Where no device is named it is 0, the sample's default; the sum of ``--device=all`` is of ``all``."""
    part = _Bandwidth(BANDWIDTH_TOOL)
    part.lines.update(at for at, line in numbered(lines, squeezed) if line and part.takes(at, line))
    part.close()
    return part.imported()


class _Bandwidth(Figures):
    """Where in an output the reading is: which device, which copies, which unit."""

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self._devices: list[tuple[int, str]] = []
        self._listing = False  # between "Running on..." and the first table
        self._kind = ""
        self._count = 1
        self._memory = "PINNED"
        self._unit = ""
        self._rows: list[tuple[int, float, int]] = []

    def takes(self, at: int, line: str) -> bool:
        """Whether the line, numbered from 0, is the tool's."""
        if row := ROW.fullmatch(line):
            return bool(self._unit) and self._row(at, row[1], row[2], self._unit)
        if line == "Running on...":
            self.close()
            self._devices, self._listing = [], True
        elif section := SECTION.fullmatch(line):
            self.close()
            self._kind, self._count, self._listing = KINDS[section[1]], int(section[2]), False
            self._memory = "PAGEABLE" if "page" in line.lower() else "PINNED"
        elif memory := MEMORY.fullmatch(line):
            self._memory = memory[1]
        elif (columns := COLUMNS.fullmatch(line)) and self._kind:
            self._unit = columns[1]
        elif csv := CSV.fullmatch(line):
            self.close()
            self._kind, self._count = KINDS[csv[1]], int(csv[7])
            self._memory = "PAGEABLE" if csv[2] == "-Paged" else "PINNED"
            return self._row(at, csv[6], csv[4], csv[5])
        elif self._listing and (device := DEVICE.fullmatch(line)) and (index := gpu(device[1])) is not None:
            self._devices.append((index, device[2]))
        else:
            return BANDWIDTH_CHATTER.fullmatch(line) is not None
        return True

    def _row(self, at: int, size: str, rate: str, unit: str) -> bool:
        bytes_, value = integer(size, MOST_BYTES), number(rate, MOST_GBS / GBS[unit])
        if bytes_ is None or value is None:
            return False
        self._rows.append((bytes_, round(value * GBS[unit], 4), at))
        return True

    def close(self) -> None:
        """Ends a table: its fact is that of the largest size."""
        if self._rows:
            size, rate, at = max(self._rows)
            pageable = "pageable-" if self._memory == "PAGEABLE" and self._kind != "device-copy" else ""
            device, name = self._devices[0] if self._devices else (0, "")
            of_all = self._count > 1 or len(self._devices) > 1
            more: dict[str, Json] = {"name": name} if name and not of_all else {}
            method = f"cudaMemcpyAsync, {self._memory.lower()} memory, {size} bytes"
            what = f"{pageable}{self._kind} {'all' if of_all else device}"
            self.measure(what, rate, "GB/s", at, method, **by_size(self._rows, MOST_SIZES), **more)
        self._rows, self._unit, self._kind = [], "", ""


SIMPLE_P2P_TOOL = "simpleP2P"
GIB = 1.073741824
MIB = 1 << 20
ACCESS = LazyPattern(r"Peer access from .{1,100} \(GPU(\d{1,3})\) ?-> .{1,100} \(GPU(\d{1,3})\) ?: (Yes|No)")
RATE = ascii_pattern(r"cudaMemcpyPeer / cudaMemcpy between GPU(\d{1,3}) and GPU(\d{1,3}): (\d{1,9}\.\d\d) ?GB/s")
PAIR = LazyPattern(r"Enabling peer access between GPU(\d{1,3}) and GPU(\d{1,3})\.\.\.")
BUFFERS = ascii_pattern(r"Allocating buffers \((\d{1,6})MB on GPU\d{1,3}, GPU\d{1,3} and CPU Host\)\.\.\.")
WRONG = ascii_pattern(r"Verification error @ element (\d{1,12}): .{1,100}")
VERDICT = LazyPattern(r"Test (passed|failed!?)")
SIMPLE_P2P_CHATTER = LazyPattern(any_of("benchmarks/lines", "simpleP2P"))


def read_simple_p2p(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``access``, ``p2p-alternating`` (one copy at a time, to and fro) in GB/s, and ``p2p-integrity`` of both ways."""
    part = Figures(SIMPLE_P2P_TOOL)
    pair: tuple[int, int] | None = None
    size = 0
    wrong: list[int] = []
    for at, line in numbered(lines, squeezed):
        if access := ACCESS.fullmatch(line):
            if not (both := _pair(access[1], access[2])):
                continue
            part.measure(f"access {both[0]} {both[1]}", access[3] == "Yes", "", at, "cudaDeviceCanAccessPeer")
        elif begun := PAIR.fullmatch(line):
            pair, size, wrong = _pair(begun[1], begun[2]), 0, []
        elif rate := RATE.fullmatch(line):
            both, value = _pair(rate[1], rate[2]), number(rate[3], MOST_GBS)
            if not both or value is None:
                continue
            pair, what = both, f"p2p-alternating {min(both)} {max(both)}"
            part.measure(what, round(value * GIB, 4), "GB/s", at, "cudaMemcpy, alternating directions")
        elif buffers := BUFFERS.fullmatch(line):
            size = int(buffers[1]) * MIB
        elif error := WRONG.fullmatch(line):
            wrong.append(int(error[1]))
        elif verdict := VERDICT.fullmatch(line):
            judged, pair, failures, wrong = pair, None, wrong, []
            if judged is None:
                continue
            _integrity(part, judged, failures, verdict[1] == "passed", size, at)
        elif not SIMPLE_P2P_CHATTER.fullmatch(line):
            continue
        part.lines.add(at)
    return part.imported()


def _pair(a: str, b: str) -> tuple[int, int] | None:
    first, second = gpu(a), gpu(b)
    return None if first is None or second is None or first == second else (first, second)


def _integrity(part: Figures, pair: tuple[int, int], wrong: list[int], passed: bool, size: int, at: int) -> None:
    """Nothing where the verdict contradicts the errors above it: then lines are missing or not of one run."""
    if passed == bool(wrong):
        return
    method = "kernels of both GPUs read each other's memory; at most 12 wrong words are reported"
    first = min(wrong) * 4 if wrong else None
    for a, b in permutations(pair):
        part.measure(f"p2p-integrity {a} {b}", len(wrong), "words", at, method, checked=size, first=first)
