"""DCGM's messages by what they say of a GPU (https://github.com/NVIDIA/DCGM/blob/master/dcgmlib/dcgm_errors.h)."""

from __future__ import annotations

import re

from dgxcheck.facts.tool_report import Outcome

_FORMS = (
    ("gpu-lost", r"fell(?:en)? off the bus|GPU is lost|not be detected|unable to communicate"),
    ("remap-failed", r"row remap\w* (?:has )?fail|failed to remap"),
    ("remap-pending", r"(?:row remap\w*|remapp\w*)[\w ]{0,24}pending|pending row remap"),
    ("retirement-pending", r"(?:page retire\w*|retired pages)[\w ]{0,24}pending|pending page retire"),
    ("pages-exhausted", r"(?:retired|page retire)[\w ]{0,60}(?:limit|more than|maximum)"),
    ("ecc-uncorrected", r"uncorrectable|double[- ]bit|\bDBEs?\b"),
    ("ecc-corrected", r"single[- ]bit|\bSBEs?\b"),
    ("ecc-off", r"ECC (?:mode )?is (?:disabled|not enabled)"),
    ("thermal-slowdown", r"thermal violation|thermal slowdown|clocks? (?:event|throttl)\w*.{0,40}thermal"),
    ("overheating", r"temperature"),
    ("nvlink-reported", r"NV_?Link link \d{1,2} is (?:currently )?down|NVLinks? (?:is|are) down"),
    ("nvlink-errors", r"NV_?Link.{0,80}error|error.{0,40}NV_?Link"),
    ("fabric-manager-down", r"fabric ?manager"),
    ("pcie-replays", r"PCIe? replay"),
    ("link-degraded", r"PCIe.{0,40}(?:generation|link (?:width|speed))"),
    ("power-violation", r"power violation|power brake"),
    ("inforom", r"inforom"),
    ("persistence-off", r"persistence mode"),
)  # fmt: skip
_DID_NOT_RUN = re.compile(
    r"busy or unavailable|exclusive(?:[- ]process)? (?:compute )?mode|(?:is|are) in use by|resource (?:is )?in use"
    r"|other (?:compute )?process(?:es)? (?:is|are) running|(?:not enough|insufficient|out of) (?:free )?memory"
    r"|(?:could not|unable to|failed to) allocate|incompatible with the diagnostic", re.IGNORECASE,
)  # fmt: skip
"""A test that another program or a setting kept from running is no evidence about the hardware."""
TEST_FAILED = "test-failed"
"""The fault of a message that names no other."""
_COMPILED = tuple((fault, re.compile(words, re.IGNORECASE)) for fault, words in _FORMS)


def judged(outcome: Outcome, message: str) -> tuple[Outcome, str]:
    """The outcome and the fault of a test with this message: unknown, without a fault, where it did not run."""
    if outcome != "pass" and _DID_NOT_RUN.search(message[:2000]):
        return "unknown", ""
    return outcome, fault_of(message)


def fault_of(message: str) -> str:
    """A word of ``checks/engine/fault.py``; that of a failed test where the message is none of the known ones."""
    return next((fault for fault, words in _COMPILED if words.search(message[:2000])), TEST_FAILED)
