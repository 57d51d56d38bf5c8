"""bandwidthTest of the CUDA samples up to 12.8: quick, range and shmoo mode, tables and CSV.

The unit changed. Samples that print ``GB/s`` count 1e9 bytes
(https://github.com/NVIDIA/cuda-samples/blob/306af8d2755e712ffcb0b16a585da61bd1956303/Samples/1_Utilities/bandwidthTest/bandwidthTest.cu);
those of CUDA 5 to 10.0 print ``MB/s`` and compute ``1024 * bytes / ms / 2**20``, so that one of theirs is 1,024,000
bytes a second
(https://github.com/exitstop/cuda_toolkit_8_0_example/blob/6c40e961a95718d712fedd549b18f2df81778d37/1_Utilities/bandwidthTest/bandwidthTest.cu).
Copies inside a device count what is read and what is written in both.
"""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.merge import merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import MOST_GBS, bare, bounded, gpu, imported, integer, number

TOOL = "bandwidthTest"
GBS = {"MB/s": 1.024e-3, "GB/s": 1.0}
KINDS = {
    "Host to Device": "host-to-device",
    "Device to Host": "device-to-host",
    "Device to Device": "device-copy",
    "H2D": "host-to-device",
    "D2H": "device-to-host",
    "D2D": "device-copy",
}
MOST_BYTES = 1 << 40
MOST_SIZES = 128
SECTION = re.compile(r"(Host to Device|Device to Host|Device to Device) Bandwidth, (\d{1,3}) Device\(s\).{0,80}")
COLUMNS = re.compile(
    r"(?:Write-Combined Memory Writes are Enabled ?)?Transfer Size \(Bytes\) ?Bandwidth\((MB/s|GB/s)\)"
)
DEVICE = re.compile(r"Device (\d{1,3}): (.{1,100})")
ROW = re.compile(r"(\d{1,13}) (\d{1,9}\.\d)", re.ASCII)
CSV = re.compile(
    r"bandwidthTest-(H2D|D2H|D2D)(-Paged|-Pinned)?(-WriteCombined)?, Bandwidth = (\d{1,9}\.\d) (MB/s|GB/s), "
    r"Time = \d{1,9}\.\d{1,9} s, Size = (\d{1,13}) bytes, NumDevsUsed = (\d{1,3})",
    re.ASCII,
)
CHATTER = re.compile(
    r"\[?CUDA Bandwidth Test\] - Starting\.\.\.|(?:Quick|Range|Shmoo) Mode|\.{2,500}|!!!!!Cumulative Bandwidth to be .*"
    r"|Result = (?:PASS|FAIL)|NOTE: The CUDA Samples are not meant for performance.*|Write-Combined Memory Writes .*"
)
MEMORY = re.compile(r"(PINNED|PAGEABLE) Memory Transfers")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``host-to-device``, ``device-to-host`` (``pageable-..`` too) and ``device-copy``, at the largest size; all sizes
    are kept. Where no device is named it is 0, the sample's default; the sum of ``--device=all`` is of ``all``."""
    lines = bounded(lines)
    scan = _Scan()
    for at, raw in enumerate(lines):
        line = " ".join(bare(raw).split())
        if line and scan.line(at, line):
            scan.understood.add(at)
    scan.close()
    if not scan.facts:
        return ()
    return (Imported(tool=TOOL, facts=merge_runs(scan.facts), understood=frozenset(scan.understood)),)


class _Scan:
    """Where in an output the reading is: which device, which copies, which unit."""

    def __init__(self) -> None:
        self.facts: list[tuple[str, Json]] = []
        self.understood: set[int] = set()
        self.devices: list[tuple[int, str]] = []
        self.listing = False  # between "Running on..." and the first table
        self.kind = ""
        self.count = 1
        self.memory = "PINNED"
        self.unit = ""
        self.rows: list[tuple[int, float, int]] = []

    def line(self, at: int, line: str) -> bool:
        """Whether the line, numbered from 0, is the tool's."""
        if row := ROW.fullmatch(line):
            return bool(self.unit) and self.row(at, row[1], row[2], self.unit)
        if line == "Running on...":
            self.close()
            self.devices, self.listing = [], True
        elif section := SECTION.fullmatch(line):
            self.close()
            self.kind, self.count, self.listing = KINDS[section[1]], int(section[2]), False
            self.memory = "PAGEABLE" if "Paged" in line or "PAGEABLE" in line else "PINNED"
        elif memory := MEMORY.fullmatch(line):
            self.memory = memory[1]
        elif (columns := COLUMNS.fullmatch(line)) and self.kind:
            self.unit = columns[1]
        elif csv := CSV.fullmatch(line):
            self.close()
            self.kind, self.count = KINDS[csv[1]], int(csv[7])
            self.memory = "PAGEABLE" if csv[2] == "-Paged" else "PINNED"
            return self.row(at, csv[6], csv[4], csv[5])
        elif self.listing and (device := DEVICE.fullmatch(line)) and (index := gpu(device[1])) is not None:
            self.devices.append((index, device[2]))
        else:
            return CHATTER.fullmatch(line) is not None
        return True

    def row(self, at: int, size: str, rate: str, unit: str) -> bool:
        bytes_, value = integer(size, MOST_BYTES), number(rate, MOST_GBS / GBS[unit])
        if bytes_ is None or value is None:
            return False
        self.rows.append((bytes_, round(value * GBS[unit], 4), at))
        return True

    def close(self) -> None:
        """Ends a table: its fact is that of the largest size."""
        if self.rows and self.kind:
            largest = max(self.rows)
            pageable = self.memory == "PAGEABLE" and self.kind != "device-copy"
            named = self.devices[0] if self.devices else (0, "")
            subject = "all" if self.count > 1 or len(self.devices) > 1 else str(named[0])
            sizes: list[Json] = [[size, value] for size, value, _ in sorted(self.rows)[-MOST_SIZES:]]
            more: dict[str, Json] = {"sizes": sizes} if len(sizes) > 1 else {}
            if subject != "all" and named[1]:
                more["name"] = named[1]
            fact = imported(
                largest[1],
                "GB/s",
                tool=TOOL,
                line=largest[2],
                method=f"cudaMemcpyAsync, {self.memory.lower()} memory, {largest[0]} bytes",
                **more,
            )
            self.facts.append((f"measure {'pageable-' if pageable else ''}{self.kind} {subject}", fact))
        self.rows, self.unit, self.kind = [], "", ""
