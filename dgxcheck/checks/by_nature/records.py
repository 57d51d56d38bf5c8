"""Every record of a snapshot that is of a device or of the host, whichever field holds it: a new one is found by
itself. States that are not good by the row of the fact, where no check knows more than the row."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import host, itself
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.wording import counted
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.nature import Fact
from dgxcheck.facts.record import Record, fields, remembered, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.facts.values import as_json, described, held, is_inside, leaves, text, where
from dgxcheck.survey import NO_DEVICES, Snapshot

Owned = tuple[tuple[str, ...], Record]
"""A record with the keys that say of which device it is, empty for the host. A BAR has those of its device too."""


@remembered(1)
def records(facts: Snapshot) -> tuple[Owned, ...]:
    """Those of the fields, and those in the tuples that they hold; a record in a field is part of its holder."""
    listed = (getattr(facts, name) for name in fields(facts) if name not in NO_DEVICES)
    return tuple((tuple(keys.values()), record) for field in listed for keys, record in held(field))


def subject(box: Box, keys: tuple[str, ...], record: Record) -> Subject:
    """The GPU, adapter or PCI function that a record is of; else the host, with the keys as its part."""
    bdf = getattr(record, "bdf", next((key for key in keys if key in box.topology.functions), None))
    return box.subject_at(bdf) if isinstance(bdf, str) else replace(HOST, part=" ".join(keys))


def _judged_here(row: Fact) -> bool:
    return is_inside(row) or ("good" in row.more and "by" not in row.more and "differs" not in row.more)


def _states(box: Box) -> Judged:
    """Warns if a state is none of those that are good where no other check judges it: a kernel module that is stuck
    while it loads or goes.

    Source: the rows of the facts; linux/kernel/module/sysfs.c, show_initstate: live, coming, going
    """
    states = [(keys, record, leaf) for keys, record in records(box.snapshot) for leaf in leaves(record, _judged_here)]
    judged = [each for each in states if each[2][1][-1].more.get("good") is not None]
    bad = gathered((subject(box, keys, record), (record, leaf)) for keys, record, leaf in judged
                   if leaf[2] not in leaf[1][-1].more["good"])  # fmt: skip
    for at, those in bad.items():
        prefix = f"{at.part}: " if at.part else ""
        words = (f"{described(of, value)}, not {' or '.join(text(of, each) for each in of[-1].more['good'])}"
                 for _, (_, of, value) in those)  # fmt: skip
        evidence = tuple(Evidence(where(record, leaf[1]), as_json(leaf[2])) for record, leaf in those)
        message = f"{prefix}{'; '.join(words)}"
        yield at, Judgement(Status.WARN, message, evidence=evidence, fault=Fault.MODULE_STUCK)
    if not bad:
        good = Judgement(Status.PASS, f"{counted(len(judged), 'state')} as good as they can be")
        yield HOST, good if judged else skip("not-recorded", "no state was read that is judged here")


CHECKS = (
    Check("consistency.state", _states,
        lambda box, at, judgement: (host("kernel module") if at.kind == "host" else itself)(box, at, judgement),
        remedy="read in the kernel log what the module waits for (dmesg); it cannot be unloaded while it is so"),
)  # fmt: skip
