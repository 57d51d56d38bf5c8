"""``gpu_burn``, ``gpu-fryer`` and ``cuda_memtest``: load on every GPU, and wrong results.

gpu_burn: the verdict of each GPU, wrong results, and how fast each computed (https://github.com/wilicc/gpu-burn).

It prints ``OK`` even for a GPU that computed nothing, and numbers GPUs as ``nvidia-smi -L`` does. If none of them
computed anything and CUDA says why, no GPU is to blame, whichever the verdicts name: that is a fault of the host, as
where a driver did not start, or unknown, where memory is in use or the program was built for other GPUs.

gpu-fryer: how fast each GPU computed, and what held its clocks down (https://github.com/huggingface/gpu-fryer).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.typical import median
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.combine import Figures
from dgxcheck.readers.host.cuda import error_in
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart
from dgxcheck.readers.values import gpu, numbered
from dgxcheck.readers.wording import any_of
from dgxcheck.settings import THRESHOLDS

BURN_SLOW = 0.5
"""Of the median of the other GPUs of the same name."""
FEWEST = 3
"""GPUs of one name that can be compared."""
_PROGRESS = LazyPattern(
    r"\d{1,3}\.\d%\s{1,4}proc'd: (?P<done>-?\d{1,12} \(\d{1,9} Gflop/s\)(?: - -?\d{1,12} \(\d{1,9} Gflop/s\)){0,63})"
    r"\s{1,8}errors: (?P<errors>[^t%]{1,3000}?)\s{1,8}temps: (?P<temps>[^%\n]{1,1200}?)(?=\s{0,8}(?:$|\d{1,3}\.\d%))"
)
_DONE = LazyPattern(r"(?P<count>-?\d{1,12}) \((?P<rate>\d{1,9}) Gflop/s\)")
_TEMPERATURE = LazyPattern(r"(?P<celsius>\d{1,3}) C\b|--")
_ERRORS = LazyPattern(r"(?P<count>-?\d{1,12})(?:\s{1,4}\((?P<mark>WARNING|DIED)!\))?")
_TESTED = LazyPattern(r"Tested \d{1,3} GPUs?:")
_VERDICT = LazyPattern(r"GPU (?P<gpu>\d{1,3}): (?P<verdict>OK|FAULTY)")
_NAME = LazyPattern(r"GPU (?P<gpu>\d{1,3}): (?P<name>.{1,100}?) \(UUID: .{1,80}\)")
_FAILED = LazyPattern(r"(?:Couldn't init a GPU test|Failure during compute): (?P<why>.{1,200})")
_LOADS = 'Error in "load module"'
"""Of its own kernels, compare.ptx: https://github.com/wilicc/gpu-burn/issues/52"""
_FLOATS = LazyPattern(r"Initialized device \d{1,3} with .{1,120}, using FLOATS(?:, .{1,40})?")
_IN_MIG = LazyPattern(r"MIG \S{1,20} .{1,100}")
_BURN_CHATTER = LazyPattern(any_of("benchmarks/lines", "gpu_burn"))


class _Gpu:
    """What was printed of one GPU."""

    def __init__(self) -> None:
        self.done = 0
        """The most iterations of any line."""
        self.rate = 0
        """Gflop/s of the last line with any."""
        self.errors = 0
        self.died = False
        self.verdict = ""
        self.hottest = 0


def read_burn(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated report GPU3 gpu_burn-..`` for every GPU with a line of progress or a verdict."""
    gpus: dict[int, _Gpu] = {}
    names: dict[int, str] = {}
    part = Figures("gpu_burn")
    why = ""
    tested = floats = shared = False
    for number, line in numbered(lines):
        floats, shared = floats or bool(_FLOATS.fullmatch(line)), shared or bool(_IN_MIG.match(line))
        progress = [*_PROGRESS.finditer(line)] if "proc'd" in line else []
        for match in progress:
            _progress(gpus, match)
        if progress:
            part.lines.add(number)
        elif _TESTED.fullmatch(line):
            tested = True
            part.lines.add(number)
        elif tested and (verdict := _VERDICT.fullmatch(line)) and (index := gpu(verdict["gpu"])) is not None:
            gpus.setdefault(index, _Gpu()).verdict = verdict["verdict"]
            part.lines.add(number)
        elif (named := _NAME.fullmatch(line)) and (index := gpu(named["gpu"])) is not None:
            names[index] = named["name"]
        elif failed := _FAILED.fullmatch(line):
            why = why or failed["why"].strip(" :")
            part.beside.add(number)
        elif _BURN_CHATTER.fullmatch(line):
            part.beside.add(number)
    _judge_burn(part, gpus, names, why)
    for index, one in gpus.items() if floats and not shared else ():
        if one.rate:
            part.measure(f"compute {index}", one.rate / 1000, "TFLOP/s", max(part.lines), "cublasSgemm")
    return part.imported() if gpus else ()


def _progress(gpus: dict[int, _Gpu], match: re.Match[str]) -> None:
    for index, done in enumerate(_DONE.finditer(match["done"])):
        one = gpus.setdefault(index, _Gpu())
        one.done = max(one.done, int(done["count"]))
        one.rate = int(done["rate"]) or one.rate
    for index, errors in enumerate(_ERRORS.finditer(match["errors"])):
        if (of := gpus.get(index)) is None:
            continue
        if errors["mark"] == "DIED":
            of.died = True
        else:
            of.errors = max(of.errors, abs(int(errors["count"])))
    for index, shown in enumerate(_TEMPERATURE.finditer(match["temps"])):
        if (hot := gpus.get(index)) is not None:
            hot.hottest = max(hot.hottest, int(shown["celsius"] or 0))


def _judge_burn(reports: Reports, gpus: Mapping[int, _Gpu], names: Mapping[int, str], why: str) -> None:
    because = f" ({why})" if why else ""
    error = error_in(why)
    of_host = _LOADS in why if error is None else not error.of_gpu
    if of_host and not any(one.done or one.errors for one in gpus.values()):
        text = f"nothing was computed on any GPU{because}, whatever is called OK"
        fault = error.fault if error and error.fault is not None and error.fault.category != "program" else None
        reports.add(HOST, "run", "unknown" if fault is None else "fail", fault, text)
        return
    computed = any(one.done for one in gpus.values())
    if len(gpus) > 1 and not computed and all(one.died and not one.errors for one in gpus.values()):
        text = f"its process ended on every GPU before anything was computed{because}: see the kernel log"
        reports.add(HOST, "run", "unknown", None, text)
        return
    for index, one in sorted(gpus.items()):
        subject = f"GPU{index}"
        if one.hottest >= THRESHOLDS["thermal.hot"].value:  # no slowdown temperature is printed
            text = f"{one.hottest} °C under load, at which most data center boards slow down"
            reports.add(subject, "temperature", "warn", Fault.OVERHEATING, text)
        if one.errors:
            reports.add(subject, "compare", "fail", Fault.WRONG_DATA, "wrong results under load")
        elif one.died:
            reports.add(subject, "run", "fail", Fault.TEST_FAILED, f"its process ended{because}: see the kernel log")
        elif one.verdict == "FAULTY":
            reports.add(subject, "verdict", "fail", Fault.TEST_FAILED, f"called FAULTY{because}")
        elif not one.done:
            text = f"nothing was computed on it{because}" + (", though it is called OK" if one.verdict == "OK" else "")
            reports.add(subject, "run", "unknown" if computed or not why else "fail", Fault.TEST_FAILED, text)
        elif not _is_slow(reports, subject, one.rate, _others(gpus, names, index), BURN_SLOW):
            reports.add(subject, "compare", "pass")


def _others(gpus: Mapping[int, _Gpu], names: Mapping[int, str], index: int) -> list[int]:
    """Gflop/s of the other GPUs of the same name; none where these are too few."""
    alike = [one for other, one in gpus.items() if other != index and names.get(other) == names.get(index)]
    rates = [one.rate for one in alike if one.rate]
    return rates if len(rates) >= FEWEST - 1 else []


def _is_slow(reports: Reports, subject: str, rate: float, others: Sequence[float], share: float) -> bool:
    """Is it below this share of the median of the others? Then it is reported."""
    slow = bool(others) and rate < share * median(others)
    if slow:
        text = f"{rate:.0f} Gflop/s, median of the other GPUs {median(others):.0f} Gflop/s"
        reports.add(subject, "rate", "warn", Fault.SLOW, text)
    return slow


FRYER_SLOW = 0.85
"""Of the median of the other GPUs; the tool itself takes 90 % of the fastest."""
_RATE = LazyPattern(r"GPU #(?P<gpu>\d{1,3}): {1,4}(?P<rate>\d{1,9}(?:\.\d{1,3})?) Gflops/s \(min: .{1,120}\)")
_THROTTLING = LazyPattern(
    r"Throttling HW: (?P<hw>true|false), Thermal SW: (?P<sw>true|false), Thermal HW: (?P<hot>true|false)"
)
_FRYER_CHATTER = LazyPattern(any_of("benchmarks/lines", "gpu-fryer"))


def read_fryer(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated report GPU3 gpu-fryer-..``: throttled, slower than the others, or neither."""
    rates: dict[int, float] = {}
    throttled: dict[int, FaultKind | None] = {}
    part = ToolPart("gpu-fryer")
    index: int | None = None
    for number, line in numbered(lines):
        if (match := _RATE.fullmatch(line)) and (index := gpu(match["gpu"])) is not None:
            rates[index] = float(match["rate"])
        elif index is not None and (held := _THROTTLING.fullmatch(line)):
            thermal = "true" in (held["sw"], held["hot"])
            by_hardware = Fault.HARDWARE_SLOWDOWN if held["hw"] == "true" else None
            throttled[index] = Fault.THERMAL_SLOWDOWN if thermal else by_hardware
        else:
            part.beside |= {number} if _FRYER_CHATTER.fullmatch(line) else set()
            continue
        part.lines.add(number)
    _judge_rates(part, rates, throttled)
    return part.imported() if rates else ()


_ENDING = LazyPattern(
    r"GEMM \[I\] \(ADAPTER#(?P<gpu>\d{1,3})\) {1,4}Ending with (?P<rate>\d{1,9}(?:\.\d{1,12})?) GFlops"
)


def read_ubergemm(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The same of DCGM's program (https://github.com/NVIDIA/DCGM/issues/122)."""
    part = ToolPart("ubergemm")
    rows = part.matches(_ENDING, numbered(lines))
    _judge_rates(part, {number: float(row["rate"]) for row in rows if (number := gpu(row["gpu"])) is not None}, {})
    return part.imported()


_OF_MEMTEST = LazyPattern(
    r"\[[\d/]{8,10} [\d:]{5,8}\]\[[^\[\]]{1,64}\]\[(?P<gpu>\d{1,2})\]: ?(?P<text>(?:ERROR: (?:\((?P<test>.{1,80})\) )?"
    r"(?P<errors>\d{1,10}) errors found in block)?.{0,1000})",
    "]:",
)
_TEST_FINISHED = LazyPattern(r"Test\d{1,2} finished in [\d.]{1,12} seconds")
_BROKE = LazyPattern(r"ERROR: CUDA error.{0,300}")


def read_memtest(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Errors of memory by GPU (https://github.com/ComputationalRadiationPhysics/cuda_memtest, tests.cu)."""
    part = ToolPart("cuda_memtest")
    errors: dict[int, int] = {}
    broke = set[int]()
    for row in part.matches(_OF_MEMTEST, numbered(lines)):
        if (index := gpu(row["gpu"])) is not None and (row["errors"] or _TEST_FINISHED.fullmatch(row["text"])):
            errors[index] = errors.get(index, 0) + int(row["errors"] or 0)
        elif index is not None and _BROKE.fullmatch(row["text"]):
            broke.add(index)
    for index in broke - {index for index, many in errors.items() if many}:
        errors.pop(index, None)
        part.add(f"GPU{index}", "memory", "unknown", Fault.TEST_FAILED, "an error of CUDA ended the test")
    for index, many in errors.items():
        text = f"errors of memory: {many}" if many else ""
        part.add(f"GPU{index}", "memory", "fail" if many else "pass", Fault.MEMORY_FAULTY if many else None, text)
    return part.imported() if errors or broke else ()


def _judge_rates(reports: Reports, rates: Mapping[int, float], throttled: Mapping[int, FaultKind | None]) -> None:
    for index, rate in rates.items():
        others = [value for other, value in rates.items() if other != index]
        if fault := throttled.get(index):
            reports.add(f"GPU{index}", "throttling", "warn", fault, "its clocks were held down under load")
        elif not _is_slow(reports, f"GPU{index}", rate, others if len(others) > 1 else [], FRYER_SLOW):
            reports.add(f"GPU{index}", "rate", "pass")
