"""PCIe error counters of GPUs, NVSwitches, HCAs and the bridges above them."""

from __future__ import annotations

from functools import lru_cache

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import AerDevice, AerErrors, RootPortErrors
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import decimal, files, garbled, is_decimal
from probes.pci.tree import Roles, roles

# Kernels before 5.7 print the names of the ABI document, later ones the tokens of the kernel log.
_SHORT = {
    "Receiver Error": "RxErr", "Bad TLP": "BadTLP", "Bad DLLP": "BadDLLP", "RELAY_NUM Rollover": "Rollover",
    "Replay Timer Timeout": "Timeout", "Advisory Non-Fatal": "NonFatalErr", "Corrected Internal Error": "CorrIntErr",
    "Header Log Overflow": "HeaderOF", "Data Link Protocol": "DLP", "Surprise Down Error": "SDES",
    "Poisoned TLP": "TLP", "Flow Control Protocol": "FCP", "Completion Timeout": "CmpltTO",
    "Completer Abort": "CmpltAbrt", "Unexpected Completion": "UnxCmplt", "Receiver Overflow": "RxOF",
    "Malformed TLP": "MalfTLP", "Unsupported Request": "UnsupReq", "ACS Violation": "ACSViol",
    "Uncorrectable Internal Error": "UncorrIntErr", "MC Blocked TLP": "BlockedTLP",
    "AtomicOp Egress Blocked": "AtomicOpBlocked", "TLP Prefix Blocked Error": "TLPBlockedErr",
    "Poisoned TLP Blocked": "PoisonTLPBlocked",
}  # fmt: skip
_SEVERITIES = ("correctable", "nonfatal", "fatal")


def aer(source: Source) -> tuple[AerDevice, ...] | Missing:
    """``aer_dev_*`` of every device and bridge, ``aer_rootport_total_err_*`` of bridges on a root bus."""
    if isinstance(found := roles(source), Missing):
        return found
    ports = set(_root_ports(found))
    return tuple(_device(source, bdf, bdf in ports) for bdf in (*found.devices, *found.bridges))


def errors(text: str, where: str) -> AerErrors | Missing:
    """``RxErr 0`` or ``Receiver Error 0`` per line: names hold blanks, so the number is split off from the right."""
    counts, total, odd = _counted(text)
    if odd or not counts:
        return garbled(odd or text, where)
    return AerErrors(counts=counts, total=Missing(Gap.ABSENT, where, "no TOTAL_ERR line") if total is None else total)


@lru_cache(maxsize=64)
def _counted(text: str) -> tuple[dict[str, int], int | None, str]:
    """Counts, total and the first line that is neither; most devices of a machine have the same text."""
    counts: dict[str, int] = {}
    total = None
    for line in text.splitlines():
        name, _, number = line.rstrip().rpartition(" ")
        name = name.strip()
        if not name or not is_decimal(number):
            return {}, None, line
        if name.startswith("TOTAL_ERR"):
            total = int(number)
        else:
            counts[_SHORT.get(name, name)] = int(number)
    return counts, total, ""


def _root_ports(found: Roles) -> tuple[str, ...]:
    paths = ((bdf, found.paths[bdf]) for bdf in found.bridges)
    return tuple(bdf for bdf, path in paths if not isinstance(path, Missing) and len(path) == 2)


def _device(source: Source, bdf: str, is_root_port: bool) -> AerDevice:
    base = f"{PCI_DEVICES}/{bdf}"
    return AerDevice(
        bdf=bdf,
        **files(source, AerDevice, base, **dict.fromkeys(_SEVERITIES, errors)),
        root_port=RootPortErrors(**files(source, RootPortErrors, base, **dict.fromkeys(_SEVERITIES, decimal)))
        if is_root_port else None,
    )  # fmt: skip
