"""Words by which a line tells of an error; errors of the drivers of GPUs and HCAs that no other module here reads."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.bdf import PATTERN, as_bdf, unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import GPU_DRIVER
from dgxcheck.kernel_messages.forms import form_of
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.package_files import table

ALARM = LazyPattern(
    r"\b(?:errors?|err!|fail(?:ed|ing|ure|ures|s)?|fatal|critical|panic|uncorrect(?:ed|able)|corrupt(?:ed|ion)?"
    r"|fallen off|is lost|unhealthy|degraded|timed ?out|abort(?:ed|ing)?|unable to|denied|not responding"
    r"|unresponsive)\b"
    r"|Fehler|错误|失败|故障|에러|오류|エラー",
    flags=re.IGNORECASE,
)
_NONE = LazyPattern(
    r"(?<!gpu )(?<!device )(?<!port )(?<!link )(?<!\.)\b(?:no|0|zero|without(?: any)?|free of)"
    r" (?:[\w-]{1,20} ){0,2}(?:errors?|failures?|failed)\b"
    r"|\b(?:errors?|failures?|failed|corrected|uncorrect(?:ed|able)|timeouts?)\b[\w .()/-]{0,30}?[:=|\t]\s{0,40}"
    r"(?:0x)?(?:0+|n/?a|none|no|disabled|supported|not supported|pass(?:ed)?)\b"
    r"|\b(?:errors?|failures?) {1,8}0\b"
    r"|\bpass(?:ed)?\b.{0,60}\b(?:failed|failures?)\W{1,3}0\b",
    flags=re.IGNORECASE,
)
"""Counts of zero."""


def mentions_error(line: str) -> bool:
    """Does it, other than as a count of zero?"""
    return ALARM.search(line) is not None and ALARM.search(_NONE.sub("", line)) is not None


MLX5, EFA = "mlx5_core", "efa"
_NVIDIA = LazyPattern(
    r"(?:NVRM:?(?: GPU(?P<number>\d{1,2})\b)?|nvidia(?:-uvm|-nvlink|-nvswitch\d{0,3}|-fs|_peermem)?|gdrdrv)[ :]",
    flags=re.ASCII,
)
_HCAS: Mapping[str, LazyPattern] = {
    MLX5: LazyPattern("mlx5_(?:core|ib)[ :]"), EFA: LazyPattern(rf"efa {PATTERN}[ :]|infiniband (?:efa_|rdmap)\d"),
}  # fmt: skip
_BDF = LazyPattern(PATTERN)
_NO_ERROR = LazyPattern("|".join(row["words"] for row in table("kernel_messages/harmless.tsv")))
_FINAL: Mapping[LazyPattern, FaultKind] = {
    LazyPattern(r"fatal error .{0,40}requiring (?:os )?reboot"): Fault.DRIVER_REBOOT,
    LazyPattern(r"confComputeSetErrorState\w{0,12}: ConfCompute: Fatal error hit!"):
        Fault.CONFIDENTIAL_COMPUTING,
}
"""What a driver says when it works no more until it is loaded again: nvGpuOpsReportFatalError (nv_gpu_ops.c),
confComputeSetErrorState (conf_compute.c)."""
_QUEUE = LazyPattern(
    r"\bERR CQE on SQ\b|Wait for completion \(polling\) timeout|didn't send any completion for admin cmd"
    r"|Admin queue is closed|Reset indication didn't turn o|Device isn't ready, "
)
"""Of mlx5 (en/reporter_tx.c): a send queue got an error instead of a completion; of EFA (drivers/infiniband/hw/efa/
efa_com.c): the adapter answers no command, or does not reset."""
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
    return driver, named or ""


def final_fault(message: str) -> FaultKind | None:
    """Of ``NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover.``;
    None where the driver goes on."""
    return next((fault for words, fault in _FINAL.items() if words.search(message[:_SEARCHED])), None)
