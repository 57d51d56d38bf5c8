"""What the messages of DCGM's tests and health watches say, and words of other tools for the same faults.

Messages: https://github.com/NVIDIA/DCGM/blob/master/dcgmlib/dcgm_errors.h
"""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.wording import any_of, wordings
from dgxcheck.xid.relations import xid_fault
from dgxcheck.xid.table import Response, architecture_of, meaning

OUTCOMES: dict[str, Outcome] = {
    "warn": "warn", "warning": "warn", "fail": "fail", "failure": "fail", "error": "fail", "fatal": "fail",
}  # fmt: skip
"""What DCGM's words in small letters stand for, where all is not well."""
_WITHOUT_COUNTERS: Mapping[Response, FaultKind] = {"memory": Fault.ECC_UNCORRECTED}
"""What such an Xid is where no counter of ECC is beside it; all else is as of the kernel log's."""


def of_xid(number: int, model: str = "") -> tuple[Outcome, FaultKind | None]:
    """What an Xid that a tool names stands for: a note where programs cause it. A GPU off the bus stays so until a
    reboot, which ends what the tools remember; another may be of long ago."""
    entry = meaning(number, architecture(model))
    if entry.severity in ("application", "information"):
        return "note", None
    fault = _WITHOUT_COUNTERS.get(entry.response) or xid_fault(entry.response)
    return "fail" if fault is Fault.GPU_LOST else "warn", fault


def architecture(model: str) -> int | None:
    """Of a GPU by its name; None where that is not known."""
    try:
        return architecture_of(model)[1]
    except BadInput:
        return None


XID_NUMBER = LazyPattern(
    r"(?:\bX[Ii][Dd](?:(?: [Ee]rrors?)?[ :=_#]{0,3}|\w{0,20} is True \(\{\"| \([\w:. ]{7,40}\): )"
    r"|\bNvidiaXID(?=\d{1,3}(?:Error|Warning)\b))"
    r"(?P<number>\d{1,3})(?:\b|(?=[EW]))"
)
"""The second form is that of GKE, ``XidCriticalError`` with the reason ``{"48":true}``, the third the driver's, the
last the reason of EKS."""
_FORMS = wordings("dcgm/messages")
_DID_NOT_RUN = caseless_pattern(any_of("dcgm/lines", "a test that did not run"))
"""A test that another program or a setting kept from running is no evidence about the hardware."""
_MOMENT = LazyPattern(r"\bviolations totaling 0\.0 seconds")
"""Of heat; DCGM fails a test for it all the same (https://github.com/NVIDIA/DCGM/issues/242)."""


def judged(outcome: Outcome, message: str) -> tuple[Outcome, FaultKind | None]:
    """The outcome and the fault of a test that did not pass, by its message: unknown if it did not run."""
    if _DID_NOT_RUN.search(message):
        return "unknown", None
    if outcome == "fail" and _MOMENT.search(message):
        outcome = "warn"
    return outcome, fault_of(message)


def fault_of(message: str) -> FaultKind:
    """The fault that a message tells, by the Xid that it names, else by its words; a failed test where neither does."""
    if xid := XID_NUMBER.search(message):
        return of_xid(int(xid["number"]))[1] or Fault.XID_APPLICATION
    return next((row.fault for row in _FORMS if row.fault and row.words.search(message)), Fault.TEST_FAILED)
