"""Lines of the kernel log about PCIe errors (Linux drivers/pci/pcie/aer.c, dpc.c), old and new spellings."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import PATTERN, is_bdf
from dgxcheck.facts.kernel_log import Severity

_HOW_BAD = r"(?:Correct(?:ed|able)|Uncorrect(?:ed|able) \((?P<uncorrected>Non-Fatal|Fatal)\))"
_ERROR = re.compile(rf"[^ :]{{1,64}} (?P<bdf>{PATTERN}): (?:AER: )?PCIe Bus Error: severity={_HOW_BAD}")
_DETAIL = re.compile(
    rf"[^ :]{{1,64}} (?P<bdf>{PATTERN}): {{1,16}}\[ ?\d{{1,2}}\]"
    r" (?P<name>[A-Za-z][A-Za-z ]{0,39}?) {0,64}(?:\(First\))?\s{0,64}$"
)
_GIVEN_UP = re.compile(rf"[^ :]{{1,64}} (?P<bdf>{PATTERN}): AER: (?:can't recover|device recovery failed)")
_CONTAINED = re.compile(rf"pcieport (?P<bdf>{PATTERN}): DPC: containment event, status:0x[0-9a-f]{{1,4}}\b")
_NOBODY = ":00:00.0"
_ANNOUNCED = re.compile(
    rf"[^ :]{{1,64}} (?P<port>{PATTERN}): AER: (?:Multiple )?{_HOW_BAD} error (?:message )?received(?::| from)"
    rf" (?:id=(?P<id>[0-9a-f]{{4}})|(?P<bdf>{PATTERN}))"
)


def error(message: str) -> tuple[str, Severity] | None:
    """``nvidia 0000:06:00.0: PCIe Bus Error: severity=Corrected, type=..``: bdf and severity."""
    match = _ERROR.match(message)
    return (match["bdf"], _severity(match["uncorrected"])) if match is not None and is_bdf(match["bdf"]) else None


def announced(message: str) -> tuple[str, Severity] | None:
    """``pcieport 0000:00:02.0: AER: Corrected error received: 0000:06:00.0``, of old ``id=0010``: whose, and severity.

    Most are followed by a line that ``error`` knows; where the device cannot be asked any more there is none. An ID of
    0, that of the host bridge, is what root ports hold that were told none: then it is the port's own error. A port
    that contained an error (``pcieport 0000:80:02.0: DPC: containment event, ..``, drivers/pci/pcie/dpc.c) took the
    link below it down.
    """
    if (contained := _CONTAINED.match(message)) is not None:
        return (contained["bdf"], "fatal") if is_bdf(contained["bdf"]) else None
    match = _ANNOUNCED.match(message)
    if match is None:
        return None
    bdf = match["bdf"]
    if bdf is None:
        number = int(match["id"], 16)
        bdf = f"{match['port'].partition(':')[0]}:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"
    if bdf.endswith(_NOBODY):
        bdf = match["port"]
    return (bdf, _severity(match["uncorrected"])) if is_bdf(bdf) else None


def error_bit(message: str) -> tuple[str, str] | None:
    """``nvidia 0000:06:00.0:    [ 6] BadTLP                 (First)``: bdf and name of the bit."""
    match = _DETAIL.match(message)
    return (match["bdf"], match["name"]) if match is not None and is_bdf(match["bdf"]) else None


def given_up(message: str) -> str | None:
    """``nvidia 0000:06:00.0: AER: can't recover (no error_detected callback)``: the bdf."""
    match = _GIVEN_UP.match(message)
    return match["bdf"] if match is not None and is_bdf(match["bdf"]) else None


def _severity(uncorrected: str | None) -> Severity:
    return "corrected" if uncorrected is None else "fatal" if uncorrected == "Fatal" else "nonfatal"
