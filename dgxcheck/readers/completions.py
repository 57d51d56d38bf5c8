"""How a transfer of an HCA ended, by its status: enum ibv_wc_status of infiniband/verbs.h, ibv_poll_cq(3)."""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record
from dgxcheck.facts.tool_report import Outcome


class Completion(Record, kw_only=False):
    """What a status says of the machine."""

    words: str
    fault: FaultKind
    outcome: Outcome = "fail"
    follows: bool = False
    """Something else failed before it, here or at the other end."""


_ACCESS, _UNANSWERED, _FAILED = Fault.RDMA_ACCESS, Fault.TRANSFER_UNANSWERED, Fault.TRANSFER_FAILED
COMPLETIONS = {
    1: Completion("local length error", _FAILED),
    2: Completion("local queue pair error", _FAILED),
    4: Completion("local protection error: the HCA may not access the memory", _ACCESS),
    5: Completion("flushed: another transfer failed before it", _FAILED, "warn", True),
    6: Completion("memory window bind error", _FAILED),
    7: Completion("bad response", _FAILED),
    8: Completion("local access error", _ACCESS),
    9: Completion("remote invalid request", _FAILED),
    10: Completion("remote access error: the two ends do not agree on the memory", _FAILED),
    11: Completion("remote operation error: the other end failed", _FAILED, "warn", True),
    12: Completion("transport retries exceeded: no answer from the other end", _UNANSWERED),
    13: Completion("receiver not ready, retries exceeded: the program at the other end stopped", _FAILED, "warn", True),
}


def completion(code: int) -> tuple[Completion, str]:
    """What a status stands for, and the sentence for people."""
    known = COMPLETIONS.get(code) or Completion("see ibv_wc_status", _FAILED)
    return known, f"a transfer ended with status {code} ({known.words})"
