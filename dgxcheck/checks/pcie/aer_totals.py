"""What devices and bridges have counted of PCIe errors since boot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status
from dgxcheck.checks.engine.growth import DAY_S
from dgxcheck.checks.engine.totals import flood
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.pcie.root_ports import messages_from, total
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import AerDevice, AerErrors

KINDS = {"fatal": "fatal error", "nonfatal": "non-fatal error", "correctable": "correctable error"}
"""``aer_dev_*`` files, the worst first."""
_BY_A_RESET = ("SDES",)
"""A link that goes down when its device is reset or powered off (Surprise Down) counts as fatal."""
_DEVICES = "/sys/bus/pci/devices"
_TOLD: Mapping[str, str] = {"correctable": "cor", "nonfatal": "nonfatal", "fatal": "fatal"}


def totals_of(box: Box, rows: Sequence[AerDevice]) -> Iterator[tuple[str, Judgement]]:
    """By bus id: fatal errors, and corrected ones at more than the daily rate over all the time since boot."""
    counts = {row.bdf: total(row.correctable) for row in rows}
    by_port = dict(messages_from(box.topology, rows, kinds=("correctable",)))
    for row in rows:
        others = counts.values()
        judgement = _fatal(row) or _many(box, counts[row.bdf], others, counters(row, "correctable", row.correctable))
        if judgement is None and row.bdf in by_port:
            kind, messages = by_port[row.bdf]
            judgement = _many(box, messages, others, told(row, kind), "from below ")
        if judgement is not None:
            yield row.bdf, judgement


def _fatal(row: AerDevice) -> Judgement | None:
    counts = {} if isinstance(row.fatal, Missing) else row.fatal.counts
    count = sum(number for name, number in counts.items() if name not in _BY_A_RESET)
    if not count:
        return None
    message, evidence = f"{counted(count, KINDS['fatal'])} since boot", (counters(row, "fatal", row.fatal),)
    return Judgement(Status.WARN, message, count, 0, "errors", evidence, fault=Fault.AER_UNCORRECTABLE)


def _many(box: Box, count: int, others: Collection[int], evidence: Evidence, origin: str = "") -> Judgement | None:
    limit = box.settings.limit("kernel.corrected-pcie")
    since = flood(box, count, others, limit, DAY_S)
    if since is None:
        return None
    message = f"{counted(count, KINDS['correctable'])} {origin}{since} ({limit:g} per day allowed)"
    return Judgement(Status.WARN, message, count, limit, "errors", (evidence,), fault=Fault.AER_CORRECTABLE)


def counters(row: AerDevice, kind: str, errors: AerErrors | Missing) -> Evidence:
    """What a device counts of one kind."""
    where = f"{_DEVICES}/{row.bdf}/aer_dev_{kind}"
    return Evidence(where, errors.reason) if isinstance(errors, Missing) else Evidence(where, {**errors.counts})


def told(port: AerDevice, kind: str) -> Evidence:
    """The messages of one kind that a root port received."""
    return Evidence(f"{_DEVICES}/{port.bdf}/aer_rootport_total_err_{_TOLD[kind]}", getattr(port.root_port, kind))


def is_told(judgement: Judgement) -> bool:
    """Is it about messages that a root port received?"""
    return any("/aer_rootport_" in each.where for each in judgement.evidence)
