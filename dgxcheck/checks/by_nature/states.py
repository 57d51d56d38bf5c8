"""States that are not good by the row of the fact, where no check knows more than the row."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.by_nature.records import records
from dgxcheck.checks.by_nature.records import subject as subject_of
from dgxcheck.checks.engine.blame import component_of, host
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.wording import counted
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.nature import Fact
from dgxcheck.facts.record import Record
from dgxcheck.facts.values import Leaf, as_json, described, is_inside, leaves, text, where


def _judged_here(row: Fact) -> bool:
    return is_inside(row) or ("good" in row.more and "by" not in row.more and "differs" not in row.more)


def _states(box: Box) -> Judged:
    judged = 0
    bad: dict[Subject, list[tuple[Record, Leaf]]] = {}
    for keys, record in records(box.snapshot):
        for leaf in leaves(record, _judged_here):
            good = leaf[1][-1].more.get("good")
            if good is not None:
                judged += 1
                if leaf[2] not in good:
                    bad.setdefault(subject_of(box, keys, record), []).append((record, leaf))
    for subject, those in bad.items():
        prefix = f"{subject.part}: " if subject.kind == "host" and subject.part else ""
        words = (f"{described(of, value)}, not {' or '.join(text(of, each) for each in of[-1].more['good'])}"
                 for _, (_, of, value) in those)  # fmt: skip
        evidence = tuple(Evidence(where(record, leaf[1]), as_json(leaf[2])) for record, leaf in those)
        message = f"{prefix}{'; '.join(words)}"
        yield subject, Judgement(Status.WARN, message, evidence=evidence, fault=Fault.MODULE_STUCK)
    if not bad:
        yield HOST, Judgement(Status.PASS, f"{counted(judged, 'state')} as good as they can be") if judged else skip(
            "not-recorded", "no state was read that is judged here"
        )  # fmt: skip


def _blame(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    if subject.kind == "host":
        yield from host("kernel module")(box, subject, judgement)
    else:
        yield component_of(box, subject)


CHECKS = (
    Check(
        id="consistency.state",
        rule="Warns if a state is none of those that are good where no other check judges it: a kernel module that is"
        " stuck while it loads or goes.",
        source="the rows of the facts; linux/kernel/module/sysfs.c, show_initstate: live, coming, going",
        remedy="read in the kernel log what the module waits for (dmesg); it cannot be unloaded while it is so",
        judge=_states,
        blames=_blame,
    ),
)
