"""Advanced Error Reporting: the errors that each device and bridge counts, and the messages that root ports receive."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf

from dgxcheck.checks.engine.box import HOST, Box, Growth
from dgxcheck.checks.engine.check import Check, itself, own_link, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, counted, given, judged, skip
from dgxcheck.checks.engine.growth import (
    COUNTER_RESET,
    DAY_S,
    HOUR_S,
    MANY,
    MIN_EVENTS,
    NO_EARLIER_READING,
    counter_growth,
    flood,
    or_total,
    rate,
    uptime,
)
from dgxcheck.components.component import Component
from dgxcheck.components.locate import links_at, links_below
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Missing, need, rows
from dgxcheck.facts.pci import AerDevice, AerErrors, counter_row
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.topology.model import Topology

KINDS = {"fatal": "fatal error", "nonfatal": "non-fatal error", "correctable": "correctable error"}
"""``aer_dev_*`` files, the worst first."""


def messages_from(
    topology: Topology, rows: Collection[AerDevice], earlier: Collection[AerDevice] = (),
    kinds: Iterable[str] = KINDS,
) -> Iterator[tuple[str, tuple[str, int]]]:  # fmt: skip
    """By bus id of each root port the worst kind of error and how many messages of it; new ones where ``earlier``
    counted some already.

    A device sends a message per error, or one for several that it counts: what port and devices below count explains
    as many messages. Where a device below is not read at all its counters are not known, and its messages stand here.
    """
    old = {row.bdf: row for row in earlier}
    for row in rows:
        if row.root_port is None:
            continue
        before = old.get(row.bdf)
        for kind in kinds:
            now = getattr(row.root_port, kind)
            was = 0 if before is None or before.root_port is None else getattr(before.root_port, kind)
            if isinstance(now, Missing) or isinstance(was, Missing) or (earlier and before is None) or now <= was:
                continue
            own = [device for device in rows if _is_below(topology, device.bdf, row.bdf)]
            counted = sum(total(getattr(device, kind)) for device in own)
            counted -= sum(total(getattr(old[device.bdf], kind)) for device in own if device.bdf in old)
            if now - was > max(counted, 0):
                yield row.bdf, (kind, now - was - max(counted, 0))
                break


def _is_below(topology: Topology, bdf: str, port: str) -> bool:
    """Is it the port itself, or a function below it?"""
    function = topology.functions.get(bdf)
    return bdf == port or (function is not None and port in rows(function.path))


def total(errors: AerErrors | Missing) -> int:
    """All errors of one kind; 0 where they are not counted."""
    if isinstance(errors, Missing):
        return 0
    return max(sum(errors.counts.values()), errors.total if isinstance(errors.total, int) else 0)


_SUFFIXES: Mapping[str, str] = {"correctable": "cor", "nonfatal": "nonfatal", "fatal": "fatal"}


def totals_of(box: Box, rows: Sequence[AerDevice]) -> Iterator[tuple[str, Judgement]]:
    """By bus id: uncorrected errors, and corrected ones at more than the daily rate over all the time since boot.

    Of what a root port received no name tells the non-fatal ones of probing at boot.
    """
    counts = {row.bdf: total(row.correctable) for row in rows}
    by_port = dict(messages_from(box.topology, rows, kinds=("fatal", "correctable")))
    for row in rows:
        others = counts.values()
        own = counters(row, "correctable", row.correctable)
        judgement = _uncorrected(row) or _many(box, counts[row.bdf], others, own)
        if judgement is None and row.bdf in by_port:
            kind, messages = by_port[row.bdf]
            evidence = received(row, kind)
            if kind == "correctable":
                judgement = _many(box, messages, others, evidence, "from below ")
            else:
                message = f"{counted(messages, KINDS[kind])} from below since boot, which no device there counts"
                judgement = _removed_below(box, row.bdf, message, evidence) or judged(
                    Fault.AER_UNCORRECTABLE, message, messages, 0, "errors", (evidence,), warns=True
                )
        if judgement is not None:
            yield row.bdf, judgement


def _removed_below(box: Box, port: str, message: str, evidence: Evidence) -> Judgement | None:
    """Not judged where a device below was removed since boot: what it counted went with the kernel's device."""
    slots = (each for each in box.log.host if each.trouble == "unplugged")
    gone = [each.line for each in slots if _is_below(box.topology, each.part, port)]
    if not gone:
        return None
    return skip("no-history", f"{message}; one below was removed since", evidence, Evidence("kernel log", gone[-1]))


def _uncorrected(row: AerDevice) -> Judgement | None:
    """Those whose total says something: a reset and what asks for absent functions at boot count as well."""
    for kind in ("fatal", "nonfatal"):
        errors = _by_kind(row)[kind]
        counts = {} if isinstance(errors, Missing) else errors.counts
        if count := sum(number for name, number in counts.items() if "any" not in counter_row(name).more):
            message, evidence = f"{counted(count, KINDS[kind])} since boot", (counters(row, kind, errors),)
            return judged(Fault.AER_UNCORRECTABLE, message, count, 0, "errors", evidence, warns=True)
    return None


def _many(box: Box, count: int, others: Collection[int], evidence: Evidence, origin: str = "") -> Judgement | None:
    limit = box.settings.limit("kernel.corrected-pcie")
    since = flood(box, count, others, limit, DAY_S)
    if since is None:
        return None
    message = f"{counted(count, KINDS['correctable'])} {origin}{since} ({limit:g} per day allowed)"
    fault = _fault(count, uptime(box) or inf, limit)
    return Judgement(Status.WARN, message, count, limit, "errors", (evidence,), fault=fault)


def counters(row: AerDevice, kind: str, errors: AerErrors | Missing) -> Evidence:
    """What a device counts of one kind."""
    where = f"{PCI_DEVICES}/{row.bdf}/aer_dev_{kind}"
    return Evidence(where, errors.reason) if isinstance(errors, Missing) else Evidence(where, {**errors.counts})


def received(port: AerDevice, kind: str) -> Evidence:
    """The messages of one kind that a root port received."""
    return Evidence(f"{PCI_DEVICES}/{port.bdf}/aer_rootport_total_err_{_SUFFIXES[kind]}", getattr(port.root_port, kind))


def is_received(judgement: Judgement) -> bool:
    """Is it about messages that a root port received?"""
    return any("/aer_rootport_" in evidence.where for evidence in judgement.evidence)


def _aer(box: Box) -> Judged:
    """Fails on any new fatal error, warns on any new non-fatal error, and on 3 or more new correctable errors at more
    than {kernel.corrected-pcie} per day (ten times that number an hour is a storm, a hundred times that number an hour
    at once), at the GPU, HCA, switch or port that counts them, or at the root port that receives the messages of
    devices that count none. Where growth over an hour or more is not known, also warns on fatal and non-fatal errors
    since boot (a link that a reset took down is none, nor is a request that nobody supports, as at boot, nor what a
    device counted that was removed since) and on correctable ones at more than that rate over the whole time since
    boot; where that time is not known, on ten times the limit and the usual total.

    Source: aer_dev_fatal, aer_dev_nonfatal, aer_dev_correctable and aer_rootport_total_err_* of /sys/bus/pci/devices;
    /proc/uptime

    By growth between two readings; of those that are not an hour apart, and of counters that were reset, by totals.
    """
    growth = box.growth
    listed = [row for row in rows(box.snapshot.aer) if row.bdf in _bdfs(box)]
    totals = dict(totals_of(box, listed))
    if isinstance(growth, Growth):
        yield from _grown(box, growth, totals)
        return
    yield from ((box.subject_at(bdf), judgement) for bdf, judgement in totals.items())
    if not totals:
        yield HOST, growth


def _grown(box: Box, growth: Growth, totals: Mapping[str, Judgement]) -> Judged:
    listed = need(growth.new.aer)
    earlier = rows(growth.old.aer)
    old = {row.bdf: row for row in earlier}
    bdfs = _bdfs(box)
    own = (row for row in listed if row.bdf in bdfs)
    counting = [row for row in own if any(not isinstance(errors, Missing) for errors in _by_kind(row).values())]
    by_port = dict(messages_from(box.topology, listed, earlier))
    for row in counting:
        judgement = ruled(_errors, box, growth, old.get(row.bdf), row)
        if judgement.status is Status.PASS and row.bdf in by_port:
            kind, number = by_port[row.bdf]
            message = f"{counted(number, KINDS[kind])} from below {growth.how}, which no device there counts"
            judgement = _judgement(box, growth, kind, number, message, received(row, kind))
        yield box.subject_at(row.bdf), or_total(growth, judgement, totals.get(row.bdf))
    if not counting:
        yield HOST, skip("not-supported", "no device or bridge counts PCIe errors")


def _bdfs(box: Box) -> set[str]:
    """Of the GPUs asked about and the bridges above them; with all GPUs, of every device."""
    if len(box.gpus) == len(box.topology.gpus):
        return set(box.topology.functions)
    return {bdf for gpu in box.gpus for bdf in rows(gpu.path)[1:]}


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
        if events := given(_new_events(before[kind], after)):
            names = ", ".join(f"{name} {number}" for name, number in events.items())
            message = f"{counted(sum(events.values()), KINDS[kind])} {growth.how}: {names}"
            return _judgement(box, growth, kind, sum(events.values()), message, counters(new, kind, after))
    return Judgement(Status.PASS, f"no new PCIe errors {growth.how}", 0, 0, "errors")


def _judgement(box: Box, growth: Growth, kind: str, count: int, message: str, evidence: Evidence) -> Judgement:
    if kind != "correctable":
        facts, fails = (count, 0, "errors", (evidence,)), kind == "fatal"
        return judged(Fault.AER_UNCORRECTABLE, message, *facts, warns=True, fails=fails)
    limit = box.settings.limit("kernel.corrected-pcie")
    message += f" ({limit:g} per day allowed)"
    many = count >= MIN_EVENTS and rate(count, growth, DAY_S) > limit
    fast = count > limit and count * HOUR_S > MANY * MANY * limit * growth.seconds
    fault = Fault.AER_STORM if fast else _fault(count, growth.seconds, limit)
    return judged(fault, message, count, limit, "errors", (evidence,), warns=many)


def _fault(count: int, seconds: float, limit: float) -> FaultKind:
    """A storm at more than ten times the limit of a day in each hour, however long the time; never for less in all.

    Links count errors when they train; those that grow ten times as fast between two readings are one from a day's
    number on.
    """
    storm = MANY * limit
    return Fault.AER_STORM if count > storm and count * HOUR_S > storm * seconds else Fault.AER_CORRECTABLE


def _new_events(old: AerErrors | Missing, new: AerErrors) -> dict[str, int] | Judgement:
    """New errors by name; the total where no single counter grew."""
    if isinstance(old, Missing):
        return NO_EARLIER_READING
    if old == new:
        return {}
    events = {name: count - old.counts.get(name, 0) for name, count in new.counts.items()}
    if any(count < 0 for count in events.values()):
        return COUNTER_RESET
    total = counter_growth(old.total, new.total)
    if not any(events.values()) and isinstance(total, int):
        events["total"] = total
    return {name: count for name, count in events.items() if count}


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The link above a GPU or HCA, then the HCA; the links at a bridge; of what a root port received those below it."""
    if is_received(judgement):
        yield from (*links_at(box, subject.bdf or ""), *links_below(box, subject.bdf or ""))
        return
    yield from own_link(box, subject, judgement)
    if subject.kind == "hca":
        yield from itself(box, subject, judgement)


CHECKS = (Check("pcie.aer", _aer, _blames, counters=True),)
