"""At which ports an NVSwitch failed, and which GPUs its NVLinks lead to there."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.engine.finding import Finding
from dgxcheck.components.component import Component
from dgxcheck.facts.record import replace


def with_ports(component: Component, explained: Sequence[Finding]) -> Component:
    """An NVSwitch with the ports that its SXids name and the GPUs whose findings it explains: NVML does not say which
    port a GPU's NVLink leads to. Every other component as it is.
    """
    if component.kind != "nvswitch":
        return component
    events = [event for each in explained if each.subject.bdf == component.bdf for event in each.judgement.events]
    ports = sorted({event.link for event in events if event.kind == "nvswitch" and event.link is not None})
    gpus = dict.fromkeys(each.subject.name for each in explained if each.subject.kind == "gpu")
    return replace(component, position=", ".join(map(str, ports)), shared_by=tuple(gpus))
