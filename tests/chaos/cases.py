"""What is made sick: a case is one live run with one thing wrong."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from itertools import cycle, product
from typing import NamedTuple

from dgxcheck.facts.nvml.quantities import GROUPS
from dgxcheck.workers.nvml.plan import COUNTERS, HEALTH

GPUS = 3
CODES = (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 25, 26, 27, 28, 29, 999, -5, 12345)
"""Every nvmlReturn_t of nvml.h 13, and two that no header has."""
START = ("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
SILENT = (15, 999)
"""After these of a function that answers elsewhere no run may pass."""
VERSIONS = ("nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion", "nvmlSystemGetCudaDriverVersion")
"""After any error of these but that of a library without them (13) no run may pass."""
SOME_CODES = (3, 4, 13, 15, 16, 999)
PAIRS = (
    "nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetP2PStatus", "nvmlDeviceGetNvLinkRemotePciInfo",
    "nvmlDeviceGetNvLinkRemoteDeviceType",
)  # fmt: skip
"""What is asked of pairs of GPUs, and of the two ends of an NVLink."""
CHANGED = (
    *(f"nvmlDeviceGet{name} value 0" for name in ("Count", "NvLinkState")),
    *(f"nvmlDeviceGet{name} value 77" for name in (
        "Count", "TotalEccErrors", "MemoryErrorCounter", "PcieReplayCounter", "NvLinkErrorCounter")),
)  # fmt: skip
"""Second readings that are faults; a mode, a state or a counter that was reset may be another."""
COMMAND = ("health", "--profile", "none", "--format", "json")
FILES = (
    "/proc/cpuinfo", "/proc/meminfo", "/proc/cmdline", "/proc/version", "/proc/driver/nvidia/params",
    "/proc/driver/nvidia/version", "/sys/devices/system/cpu/online", "/sys/devices/system/node/node0/cpulist",
    "/sys/class/dmi/id/product_name", "/sys/module/nvidia/version", "/dev/kmsg", "/etc/os-release",
    "{gpu}/class", "{gpu}/config", "{gpu}/current_link_width", "{gpu}/numa_node", "{gpu}/resource",
    "{gpu}/aer_dev_correctable", "{hca}/node_guid", "{hca}/ports/1/rate", "{hca}/ports/1/state",
    "{hca}/ports/1/counters/symbol_error",
)  # fmt: skip
CONTENTS = ("absent", "empty", "binary", "10 MB", "directory", "fifo", "dangling link", "loop", "endless", "socket")
ERRNOS = (
    errno.EACCES, errno.EIO, errno.EINVAL, errno.ENODEV, errno.ENOMEM, errno.EMFILE, errno.EAGAIN,
    errno.ESTALE,
)  # fmt: skip
LIBRARIES = ("none", "junk", "empty", "directory", "fifo", "of another machine", "old")
SYSTEMS = (
    "stdout closed", "stderr closed", "stdin closed", "stdout full", "state read-only", "state full", "no HOME",
    "no environment", "16 descriptors", "1 GiB of memory", "no processes", "two at once", "SIGTERM", "SIGINT",
    "SIGHUP", "SIGKILL", "ordinary user", "COLUMNS=0", "no /proc", "no /sys",
)  # fmt: skip
HABITS = (
    "prints", "prints later", "prints an answer", "prints bytes later", "prints on stderr", "closes stdout",
    "closes stdout later", "closes all", "closes all later", "sends stdout elsewhere", "makes stdin of stdout later",
    "forks", "forks later", "leads a group", "leads a group later", "blocks signals",
    "ignores signals", "goes elsewhere", "empties the environment", "masks all modes", "speaks another language",
    "waits at exit", "starts threads", "takes memory", "allows no file", "allows no memory later", "sets an alarm",
    "stops", "stops later", "exits", "exits later", "leaves at once", "leaves at once later", "aborts later",
    "ends its parent's pipe later", "turns GPUs round", "floods", "floods later", "floods without an end later",
    "says half a line later", "says bytes later", "hangs", "hangs later", "becomes another program",
    "becomes another program later", "kills its group", "kills its group later", "ends its first thread",
    "ends its first thread later", "may only read and write later", "rounds down", "interrupts", "interrupts later",
    "burns the CPU", "has no CPU time", "has no CPU time later", "forgets its parent", "closes stdin later",
    "reads stdin later", "claims more", "claims more at once", "has no room", "leaves a daemon",
    "leaves a daemon later",
)  # fmt: skip
"""Of a library, in the words of ``standin/habits.h``: what it does to the process that has loaded it."""
FALSE_HABITS = (
    "has one GPU", "ends no text", "writes nothing",
    *(f"answers {code} later" for code in (1, 2, 3, 4, 6, 15, 16, 999)),
)
"""It says that it succeeded, and did not."""
LISTED = ("/bus/pci/devices", "/class/infiniband", "/sys/", "/ports/1")
"""Of folders so named a listing ends with an error after so many entries."""
CLOCK_STEPS = tuple((step, after) for step in (-86400, 86400, -(10**9)) for after in (0, 1, 3))
"""Seconds by which the clock is set, and after how many looks at it."""
FUTURE = (
    "nvmlDeviceGetBrand", "nvmlDeviceGetArchitecture", "nvmlDeviceGetComputeMode", "nvmlDeviceGetPerformanceState",
    "nvmlDeviceGetP2PStatus", "nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetNvLinkState",
    "nvmlDeviceGetNvLinkVersion", "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetEccMode",
    "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetPersistenceMode", "nvmlDeviceGetCudaComputeCapability",
)  # fmt: skip
"""What answers with an enum, a mask or a version: newer drivers know more of them."""
NEW_VALUES = (77, 255, 2**31 - 1)
GARBAGE = (0, 2**31 - 1, 2**32 - 1, 2**64 - 1)
"""What a call that says that it succeeded may leave behind, in every number of its answer."""
SIZES = ("1 of dgx-1-v100", "8 of dgx-1-v100", "16 of dgx-2", "10000 functions")
"""GPUs of a box, and PCI functions; 0 GPUs, and others than the driver counts, are in the row ``list``."""


class Case(NamedTuple):
    """One run."""

    row: str
    what: str
    fault: str = ""
    """In the words of ``standin/nvml.py``."""
    path: str = ""
    content: str = ""
    errno: int = 0
    must_not_pass: bool = False
    """On a box that answers the function."""
    seconds: float = 8
    """The deadline that is given to the command."""

    def __str__(self) -> str:
        return f"{self.row}: {self.what}"


def every(full: bool = False) -> Iterator[Case]:
    """All rows; ``full`` is every code of every function at every GPU: 9,000 runs, half an hour of two cores."""
    yield from _calls(full)
    yield from _pairs(CODES if full else SOME_CODES)
    yield from _again(CODES if full else SOME_CODES)
    yield from (Case("library", name) for name in LIBRARIES)
    yield from (Case("symbol", name, f"missing {name}") for name in _functions())
    for path in FILES:
        yield from (Case("file", f"{path} {content}", path=path, content=content) for content in CONTENTS)
        yield from (Case("errno", f"{path} {errno.errorcode[n]}", path=path, errno=n) for n in ERRNOS)
    yield from (Case("habit", name, seconds=6) for name in HABITS)
    yield from (Case("habit", name, must_not_pass=True) for name in FALSE_HABITS)
    yield from (Case("listing", f"{part} {most}") for part in LISTED for most in (0, 1, 7, 40))
    yield from (Case("torn", path, path=path) for path in FILES)
    yield from (Case("list", name) for name in ("not in sysfs", "not in NVML", "count too high", "none"))
    yield from (Case("system", name) for name in SYSTEMS)
    yield from (Case("clock", f"{step:+} s after {after}") for step, after in CLOCK_STEPS)
    yield from (Case("future", f"{function} {value}") for function in FUTURE for value in NEW_VALUES)
    values = cycle(GARBAGE)
    for function in _functions()[1:]:
        for value in GARBAGE if full else [next(values)]:
            yield Case("garbage", f"{function} {value}")
    yield from (Case("size", name, seconds=20) for name in SIZES)


def _functions(groups: Iterable[str] = HEALTH) -> tuple[str, ...]:
    return (*START, *dict.fromkeys(call.function for group in groups for call in GROUPS[group]))


def _pairs(codes: Iterable[int]) -> Iterator[Case]:
    """One GPU does not answer, and none does; the bus id also says what is at the end of an NVLink."""
    for function, code, at in product(PAIRS, codes, ("", 1)):
        yield Case("pair", f"{function} {code} {at}", f"error {code} {function} {at}",
                   must_not_pass=code in (15, 16) or (code != 13 and function != PAIRS[-1]))  # fmt: skip


def _again(codes: Iterable[int]) -> Iterator[Case]:
    """What answers at first and not when the counters are read again, or with another value then."""
    errors = [f"error {code}" for code in codes]
    for function, fault in product(_functions(COUNTERS), (*errors, "hang", "crash", "value 0", "value 77")):
        at = "" if function in START[:2] else " 1"
        due = (fault in errors and fault != "error 13") or f"{function} {fault}" in CHANGED
        yield Case("again", f"{function} {fault}{at}", f"again {fault} {function}{at}", must_not_pass=due)


def _calls(full: bool) -> Iterator[Case]:
    gpu = cycle(range(GPUS))
    codes = cycle(CODES)
    for function in _functions():
        of_no_gpu = function in START[:2] or function.startswith("nvmlSystem")
        for at in [""] if of_no_gpu else range(GPUS) if full else [next(gpu)]:
            for code in CODES if full else [next(codes) for _ in range(5)]:
                silent = (code in SILENT and function in START) or (code != 13 and function in VERSIONS)
                yield Case("error", f"{function} {code} {at}", f"error {code} {function} {at}", must_not_pass=silent)
            for kind in ("hang", "crash", "slow 0.3"):
                yield Case(kind.split()[0], f"{function} {at}", f"{kind} {function} {at}",
                           must_not_pass=kind == "hang" and function in START, seconds=4)  # fmt: skip
