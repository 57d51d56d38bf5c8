"""What findings of one check have in common where every device that was judged has the fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.fault import DEVICE_DEAD
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.components.component import Component
from dgxcheck.components.locate import switch_above


def common_causes(box: Box, findings: Sequence[Finding]) -> Mapping[str, tuple[Component, ...]]:
    """By key of the finding: the setting that all devices of the box share, the switch that all devices below share.

    Only where all GPUs were asked about, and only where each was seen to be bad: what could not be read counts for the
    others.
    """
    common: dict[str, tuple[Component, ...]] = {}
    all_asked = len(box.gpus) == len(box.topology.gpus)
    by_check: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.subject.bdf and finding.subject.peer is None and finding.status in (Status.PASS, *BAD):
            by_check.setdefault(finding.id, []).append(finding)
    for judged in by_check.values():
        if all_asked and _all_bad(judged):
            common.update({finding.key: (finding.shared,) for finding in judged if finding.shared is not None})
        for switch, below in _by_switch(box, judged).items():
            for finding in below if _all_bad(below) else ():
                common[finding.key] = (*common.get(finding.key, ()), switch)
    return common


def _all_bad(judged: Sequence[Finding]) -> bool:
    bad = all(finding.status in (Status.FAIL, Status.WARN) for finding in judged)
    return bad and len({finding.subject.bdf for finding in judged}) > 1


def _by_switch(box: Box, judged: Sequence[Finding]) -> Mapping[Component, list[Finding]]:
    """Findings that a switch can cause, and passes beside them, by the switch that is nearest above their device."""
    if not any(_can_be_a_switch(finding) for finding in judged):
        return {}
    below: dict[Component, list[Finding]] = {}
    for finding in judged:
        device = box.topology.device(finding.subject.bdf or "")
        switch = switch_above(box, device) if device is not None else None
        if switch is not None and (finding.status is Status.PASS or _can_be_a_switch(finding)):
            below.setdefault(switch, []).append(finding)
    return below


def _can_be_a_switch(finding: Finding) -> bool:
    """A PCIe link is to blame, or a device as a whole is dead."""
    return finding.judgement.fault in DEVICE_DEAD or any(each.kind == "link" for each in finding.blames[:1])
