"""States that are not good by the row of the fact, where no check knows more than the row."""

from __future__ import annotations

from dgxcheck.checks.by_nature.records import records
from dgxcheck.checks.by_nature.records import subject as subject_of
from dgxcheck.checks.engine.blame import host, itself
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.wording import counted
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.nature import Fact
from dgxcheck.facts.record import Record
from dgxcheck.facts.values import Leaf, as_json, described, is_inside, leaves, text, where


def _judged_here(row: Fact) -> bool:
    return is_inside(row) or ("good" in row.more and "by" not in row.more and "differs" not in row.more)


def _states(box: Box) -> Judged:
    states = [(keys, record, leaf) for keys, record in records(box.snapshot) for leaf in leaves(record, _judged_here)]
    judged = [each for each in states if each[2][1][-1].more.get("good") is not None]
    bad: dict[Subject, list[tuple[Record, Leaf]]] = {}
    for keys, record, leaf in judged:
        if leaf[2] not in leaf[1][-1].more["good"]:
            bad.setdefault(subject_of(box, keys, record), []).append((record, leaf))
    for subject, those in bad.items():
        prefix = f"{subject.part}: " if subject.kind == "host" and subject.part else ""
        words = (f"{described(of, value)}, not {' or '.join(text(of, each) for each in of[-1].more['good'])}"
                 for _, (_, of, value) in those)  # fmt: skip
        evidence = tuple(Evidence(where(record, leaf[1]), as_json(leaf[2])) for record, leaf in those)
        message = f"{prefix}{'; '.join(words)}"
        yield subject, Judgement(Status.WARN, message, evidence=evidence, fault=Fault.MODULE_STUCK)
    if not bad:
        good = Judgement(Status.PASS, f"{counted(len(judged), 'state')} as good as they can be")
        yield HOST, good if judged else skip("not-recorded", "no state was read that is judged here")


CHECKS = (
    Check(
        id="consistency.state",
        rule="Warns if a state is none of those that are good where no other check judges it: a kernel module that is"
        " stuck while it loads or goes.",
        source="the rows of the facts; linux/kernel/module/sysfs.c, show_initstate: live, coming, going",
        remedy="read in the kernel log what the module waits for (dmesg); it cannot be unloaded while it is so",
        judge=_states,
        blames=lambda box, at, judgement: (host("kernel module") if at.kind == "host" else itself)(box, at, judgement),
    ),
)
