"""Advanced Error Reporting: the errors that each device and bridge counts, and the messages that root ports receive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.checks.engine.blame import itself, own_link
from dgxcheck.checks.engine.box import HOST, Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import (
    COUNTER_RESET,
    DAY_S,
    MIN_EVENTS,
    NO_EARLIER_READING,
    counter_growth,
    rate,
)
from dgxcheck.checks.engine.totals import is_short
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.pcie.aer_totals import KINDS, counters, is_told, told, totals_of
from dgxcheck.checks.pcie.control import subject_of
from dgxcheck.checks.pcie.root_ports import messages_from
from dgxcheck.components.component import Component
from dgxcheck.components.locate import links_at, links_below
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.pci import AerDevice, AerErrors

Judged = Iterator[tuple[Subject, Judgement]]


def _aer(box: Box) -> Judged:
    """By growth between two readings, and of readings that are not an hour apart by the totals."""
    growth = box.growth
    listed = [row for row in rows(box.snapshot.aer) if row.bdf in _bdfs(box)]
    totals = dict(totals_of(box, listed)) if is_short(growth) else {}
    if isinstance(growth, Growth):
        yield from _grown(box, growth, totals)
        return
    yield from ((subject_of(box, bdf), judgement) for bdf, judgement in totals.items())
    if not totals:
        yield HOST, growth


def _grown(box: Box, growth: Growth, totals: Mapping[str, Judgement]) -> Judged:
    listed = growth.new.aer
    if isinstance(listed, Missing):
        yield HOST, unjudged(listed)
        return
    earlier = rows(growth.old.aer)
    old = {row.bdf: row for row in earlier}
    bdfs = _bdfs(box)
    counting = [
        row for row in listed
        if row.bdf in bdfs and any(not isinstance(errors, Missing) for errors in _by_kind(row).values())
    ]  # fmt: skip
    by_port = dict(messages_from(box.topology, listed, earlier))
    for row in counting:
        judgement = _errors(box, growth, old.get(row.bdf), row)
        if judgement.status is Status.PASS and row.bdf in by_port:
            kind, messages = by_port[row.bdf]
            judgement = _of_messages(box, growth, row, kind, messages)
        if judgement.status in (Status.PASS, Status.SKIP):
            judgement = totals.get(row.bdf, judgement)
        yield subject_of(box, row.bdf), judgement
    if not counting:
        yield HOST, skip("not-supported", "no device or bridge counts PCIe errors")


def _bdfs(box: Box) -> set[str]:
    """Of the GPUs asked about and the bridges above them; with all GPUs, of every device."""
    if len(box.gpus) == len(box.topology.gpus):
        return set(box.topology.functions)
    return {bdf for gpu in box.gpus if not isinstance(gpu.path, Missing) for bdf in gpu.path[1:]}


def _by_kind(row: AerDevice) -> Mapping[str, AerErrors | Missing]:
    return {"fatal": row.fatal, "nonfatal": row.nonfatal, "correctable": row.correctable}


def _errors(box: Box, growth: Growth, old: AerDevice | None, new: AerDevice) -> Judgement:
    """The worst kind of error with new events, if any."""
    if old is None:
        return NO_EARLIER_READING
    before = _by_kind(old)
    for kind, after in _by_kind(new).items():
        if isinstance(after, Missing):
            continue
        events = _new_events(before[kind], after)
        if isinstance(events, Judgement):
            return events
        if events:
            names = ", ".join(f"{name} {number}" for name, number in events.items())
            message = f"{counted(sum(events.values()), KINDS[kind])} {growth.how}: {names}"
            return _judgement(box, growth, kind, sum(events.values()), message, counters(new, kind, after))
    return Judgement(Status.PASS, f"no new PCIe errors {growth.how}", 0, 0, "errors")


def _of_messages(box: Box, growth: Growth, port: AerDevice, kind: str, messages: int) -> Judgement:
    """Messages that reached a root port from devices below that count none themselves."""
    message = f"{counted(messages, KINDS[kind])} from below {growth.how}, which no device there counts"
    return _judgement(box, growth, kind, messages, message, told(port, kind))


def _judgement(box: Box, growth: Growth, kind: str, count: int, message: str, evidence: Evidence) -> Judgement:
    if kind != "correctable":
        status = Status.FAIL if kind == "fatal" else Status.WARN
        return Judgement(status, message, count, 0, "errors", (evidence,), fault=Fault.AER_UNCORRECTABLE)
    limit = box.settings.limit("kernel.corrected-pcie")
    message += f" ({limit:g} per day allowed)"
    if count >= MIN_EVENTS and rate(count, growth, DAY_S) > limit:
        return Judgement(Status.WARN, message, count, limit, "errors", (evidence,), fault=Fault.AER_CORRECTABLE)
    return Judgement(Status.PASS, message, count, limit, "errors", (evidence,))


def _new_events(old: AerErrors | Missing, new: AerErrors) -> dict[str, int] | Judgement:
    """New errors by name; the total where no single counter grew."""
    if isinstance(old, Missing):
        return NO_EARLIER_READING
    events = {name: count - old.counts.get(name, 0) for name, count in new.counts.items()}
    if any(count < 0 for count in events.values()):
        return COUNTER_RESET
    total = counter_growth(old.total, new.total)
    if not any(events.values()) and isinstance(total, int):
        events["total"] = total
    return {name: count for name, count in events.items() if count}


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The link above a GPU or HCA, then the HCA; the links at a bridge; of what a root port was told those below it."""
    if is_told(judgement):
        yield from (*links_at(box, subject.bdf or ""), *links_below(box, subject.bdf or ""))
        return
    yield from own_link(box, subject, judgement)
    if subject.kind == "hca":
        yield from itself(box, subject, judgement)


CHECKS = (
    Check(
        id="pcie.aer",
        rule="Fails on any new fatal error, warns on any new non-fatal error, and on 3 or more new correctable errors"
        " at more than {kernel.corrected-pcie} per day, at the GPU, HCA, switch or port that counts them, or at the"
        " root port that receives the messages of devices that count none. Without a second reading an hour"
        " or more later, also warns on fatal errors since boot (a link that a reset took down is none) and on"
        " correctable ones at more than that rate over the whole time since boot; where that time is not known, on ten"
        " times the limit and the usual total.",
        source="aer_dev_fatal, aer_dev_nonfatal, aer_dev_correctable and aer_rootport_total_err_* of"
        " /sys/bus/pci/devices; /proc/uptime",
        remedy="cold power cycle; if errors continue, reseat the device below the link (SXM: the vendor does) and check"
        " risers, cables and retimers",
        judge=_aer,
        witness="counters",
        blames=_blames,
    ),
)
