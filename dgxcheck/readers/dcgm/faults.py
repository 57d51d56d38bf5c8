"""DCGM's messages by what they say of a GPU (https://github.com/NVIDIA/DCGM/blob/master/dcgmlib/dcgm_errors.h)."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_report import Outcome

_FORMS = (
    (Fault.GPU_LOST, r"fell(?:en)? off the bus|GPU is lost|not be detected|unable to communicate"),
    (Fault.REMAP_FAILED, r"row remap\w* (?:has )?fail|failed to remap"),
    (Fault.REMAP_PENDING, r"(?:row remap\w*|remapp\w*)[\w ]{0,24}pending|pending row remap"),
    (Fault.RETIREMENT_PENDING, r"(?:page retire\w*|retired pages)[\w ]{0,24}pending|pending page retire"),
    (Fault.PAGES_EXHAUSTED, r"(?:retired|page retire)[\w ]{0,60}(?:limit|more than|maximum)"),
    (Fault.ECC_UNCORRECTED, r"uncorrectable|double[- ]bit|\bDBEs?\b"),
    (Fault.ECC_CORRECTED, r"single[- ]bit|\bSBEs?\b"),
    (Fault.ECC_OFF, r"ECC (?:mode )?is (?:disabled|not enabled)"),
    (Fault.THERMAL_SLOWDOWN, r"thermal violation|thermal slowdown|clocks? (?:event|throttl)\w*.{0,40}thermal"),
    (Fault.OVERHEATING, r"temperature"),
    (Fault.NVLINK_REPORTED, r"NV_?Link link \d{1,2} is (?:currently )?down|NVLinks? (?:is|are) down"),
    (Fault.NVLINK_ERRORS, r"NV_?Link.{0,80}error|error.{0,40}NV_?Link"),
    (Fault.FABRIC_MANAGER_DOWN, r"fabric ?manager"),
    (Fault.PCIE_REPLAYS, r"PCIe? replay"),
    (Fault.LINK_DEGRADED, r"PCIe.{0,40}(?:generation|link (?:width|speed))"),
    (Fault.POWER_VIOLATION, r"power violation|power brake"),
    (Fault.INFOROM, r"inforom"),
    (Fault.PERSISTENCE_OFF, r"persistence mode"),
)  # fmt: skip
_DID_NOT_RUN = re.compile(
    r"busy or unavailable|exclusive(?:[- ]process)? (?:compute )?mode|(?:is|are) in use by|resource (?:is )?in use"
    r"|other (?:compute )?process(?:es)? (?:is|are) running|(?:not enough|insufficient|out of) (?:free )?memory"
    r"|(?:could not|unable to|failed to) allocate|incompatible with the diagnostic", re.IGNORECASE,
)  # fmt: skip
"""A test that another program or a setting kept from running is no evidence about the hardware."""
_COMPILED = tuple((fault, re.compile(words, re.IGNORECASE)) for fault, words in _FORMS)


def judged(outcome: Outcome, message: str) -> tuple[Outcome, FaultKind | None]:
    """The outcome and the fault of a test with this message: unknown, without a fault, where it did not run."""
    if outcome != "pass" and _DID_NOT_RUN.search(message[:2000]):
        return "unknown", None
    return outcome, fault_of(message)


def fault_of(message: str) -> FaultKind:
    """The fault of a failed test where the message names no other."""
    return next((fault for fault, words in _COMPILED if words.search(message[:2000])), Fault.TEST_FAILED)
