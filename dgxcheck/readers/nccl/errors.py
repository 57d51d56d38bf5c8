"""The warnings of NCCL, by what they say of the machine.

Their texts: https://github.com/NVIDIA/nccl/tree/master/src (misc/ibvwrap.cc, transport/net_ib.cc, transport/p2p.cc).
"""

from __future__ import annotations

import re

from dgxcheck.facts.record import Record
from dgxcheck.facts.tool_report import Outcome


class Form(Record, kw_only=False):
    """A warning's words, and what they stand for."""

    words: re.Pattern[str]
    topic: str
    outcome: Outcome
    fault: str
    text: str
    """May name groups of ``words``."""
    of_host: bool = False
    """Not about the GPU of the rank that logs it."""


COMPLETIONS = {
    4: "local protection error", 5: "flushed after an earlier error", 9: "remote invalid request",
    10: "remote access error", 11: "remote operation error",
    12: "transport retries exceeded: no answer from the other end", 13: "receiver not ready, retries exceeded",
}  # fmt: skip
"""enum ibv_wc_status (infiniband/verbs.h)."""
_FORMS = (
    Form(re.compile(r"NET/IB ?: ?Got completion.{0,120}?with (?:error|status=)\D{0,24}(?P<code>\d{1,3})"),
         "ib-completion", "fail", "transfer-failed",
         "a transfer over InfiniBand or RoCE ended with status {code}", True),
    Form(re.compile(r"NET/IB ?: ?.{0,80}Got async event ?: ?(?P<event>[\w ]{1,60})"),
         "ib-event", "warn", "transfer-failed", "an HCA reported: {event}", True),
    Form(re.compile(r"Call to (?P<call>ibv_(?:reg_mr|create_qp|create_cq)\w{0,20}) failed with error Cannot allocate"),
         "memlock", "fail", "memlock",
         "{call} failed: cannot allocate memory, as where the limit of locked memory is low", True),
    Form(re.compile(r"Call to (?P<call>ibv_\w{1,40}) failed(?: with error (?P<why>[\w ]{1,60}))?"),
         "ib-call", "fail", "transfer-failed", "{call} failed: {why}", True),
    Form(re.compile(r"P2P is disabled between NVLINK connected GPUs (?P<a>\d{1,3}) and (?P<b>\d{1,3})"),
         "p2p", "fail", "p2p-blocked", "P2P is disabled between GPU{a} and GPU{b}, which NVLinks join", True),
    Form(re.compile(r"Cuda failure (?:\d{1,4} )?'uncorrectable ECC error encountered'"),
         "ecc", "fail", "ecc-uncorrected", "CUDA reports an uncorrectable ECC error"),
    Form(re.compile(r"Cuda failure (?:\d{1,4} )?'system not yet initialized|Cuda failure 802\b"),
         "fabric", "fail", "fabric-manager-down", "CUDA reports that the NVSwitch fabric is not initialised", True),
    Form(re.compile(r"transport/nvls\.cc|NVLink SHARP"),
         "nvls", "warn", "fabric-failed", "multicast memory of NVLink SHARP cannot be bound to this GPU"),
    Form(re.compile(r"Cuda failure (?:(?P<number>\d{1,4}) )?'(?P<words>[\w ,.'-]{1,120})'"),
         "cuda", "warn", "tool-error", "CUDA failure: {words}", True),
    Form(re.compile(r"creating shared memory segment|Call to (?:posix_fallocate|ftruncate|shm_open) failed"
                    r"|No space left on device"),
         "shm", "fail", "tool-error", "shared memory cannot be allocated: /dev/shm is too small", True),
    Form(re.compile(r"[Cc]onnect(?:ion)? (?:to|from).{0,80}(?P<why>refused|timed out|No route to host)"),
         "socket", "fail", "transfer-failed", "no TCP connection to another rank: {why}", True),
    Form(re.compile(r"[Cc]onnection closed by (?:remote )?peer|socketProgress: "),
         "peer-gone", "warn", "transfer-failed", "another rank closed its connection", True),
)  # fmt: skip


def classified(text: str) -> tuple[Form, str]:
    """The form of a warning, which may have its file and line before it, and the text for people."""
    for form in _FORMS:
        if match := form.words.search(text[:600]):
            values = {name: value or "no reason given" for name, value in match.groupdict().items()}
            shown = form.text.format(**values)
            code = values.get("code", "")
            return form, f"{shown} ({COMPLETIONS[int(code)]})" if code and int(code) in COMPLETIONS else shown
    return _OTHER, _OTHER.text


_OTHER = Form(re.compile(""), "warning", "warn", "tool-error", "a warning of another kind, see the log", True)
