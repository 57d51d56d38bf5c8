"""Words by which a line tells of an error; errors of the drivers of GPUs and HCAs that no other module here reads."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.bdf import PATTERN, as_bdf, unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import GPU_DRIVER
from dgxcheck.kernel_messages.forms import form_of
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.package_files import table


def _any_of(of: str) -> str:
    return "|".join(row["words"] for row in table("kernel_messages/driver_errors.tsv", of))


ALARM = caseless_pattern(rf"\b(?:{_any_of('word')})\b|{_any_of('foreign word')}")
_NONE = caseless_pattern(_any_of("none"))


def mentions_error(line: str) -> bool:
    """Does it, other than as a count of zero?"""
    return ALARM.search(line) is not None and ALARM.search(_NONE.sub("", line)) is not None


MLX5, EFA = "mlx5_core", "efa"
_NVIDIA = LazyPattern(
    r"(?:NVRM:?(?: GPU(?P<number>\d{1,2})\b)?|nvidia(?:-uvm|-nvlink|-nvswitch\d{0,3}|-fs|_peermem)?|gdrdrv)[ :]",
    "NVRM", "nvidia", "gdrdrv", flags=re.ASCII,
)
_HCAS: Mapping[str, LazyPattern] = {
    MLX5: LazyPattern("mlx5_(?:core|ib)[ :]"), EFA: LazyPattern(rf"efa {PATTERN}[ :]|infiniband (?:efa_|rdmap)\d"),
}  # fmt: skip
_BDF = LazyPattern(PATTERN)
_NO_ERROR = LazyPattern(_any_of("harmless"))
_FINAL: Mapping[LazyPattern, FaultKind] = {
    LazyPattern(r"fatal error .{0,40}requiring (?:os )?reboot"): Fault.DRIVER_REBOOT,
    LazyPattern(r"confComputeSetErrorState\w{0,12}: ConfCompute: Fatal error hit!"):
        Fault.CONFIDENTIAL_COMPUTING,
}
"""What a driver says when it works no more until it is loaded again: nvGpuOpsReportFatalError (nv_gpu_ops.c),
confComputeSetErrorState (conf_compute.c)."""
_QUEUE = LazyPattern(_any_of("queue"))
_SEARCHED = 400


def driver_error(message: str) -> tuple[str, str] | None:
    """``nvidia-uvm: .. failed ..``: the driver, and the bdf of its device, empty where it names none."""
    of_gpus = _NVIDIA.match(message)
    shown = message[:_SEARCHED]
    driver = GPU_DRIVER if of_gpus else next((name for name, begins in _HCAS.items() if begins.match(message)), "")
    if not driver or not (mentions_error(shown) or _QUEUE.search(shown)) or _NO_ERROR.search(shown):
        return None
    found = form_of(message)
    if found is not None and not found[0].context:
        return None
    number, bdf = of_gpus["number"] if of_gpus else None, _BDF.search(shown)
    named = as_bdf(bdf[0]) if bdf is not None else unplaced(int(number)) if number else ""
    if named is None and not of_gpus:
        return None  # no adapter has that bus id
    return driver, named or ""


def final_fault(message: str) -> FaultKind | None:
    """Of ``NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover.``;
    None where the driver goes on."""
    return next((fault for words, fault in _FINAL.items() if words.search(message[:_SEARCHED])), None)
