"""NVLinks of a GPU without a reference machine: judged by its siblings, and by what is wired on every such board."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.checks.engine.box import Box, guest, mig_enabled
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status
from dgxcheck.checks.engine.siblings import model_family, siblings
from dgxcheck.checks.engine.wording import counted
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device

_ALL_WIRED = re.compile(r"NVIDIA (?:A100-SXM4\b|H100(?: \d+GB)? HBM3|H200(?! NVL)|B[23]00|GB[23]00).*|NVIDIA H[12]00")
"""Models that exist only on baseboards where each of their NVLinks leads to a switch or another GPU (HGX A100 to B300,
GB200 NVL72); those of V100 and P100 boxes may lead nowhere."""


_SWITCHED = 8
"""GPUs of these models that only NVSwitches join; four may be joined by NVLinks alone (HGX A100 4-GPU)."""


def only_switches_join(box: Box) -> bool:
    """Must there be NVSwitches, which what is known of the machine does not show?"""
    models = [model_family(box, gpu) or "" for gpu in box.gpus]
    return isinstance(box.snapshot.pci, Missing) and len(models) >= _SWITCHED and all(map(_ALL_WIRED.fullmatch, models))


def states_of(box: Box, gpu: Device) -> Mapping[int, bool]:
    """By link position: is it up? Without positions that did not answer."""
    rows = box.snapshot.nvlink
    listed = () if isinstance(rows, Missing) else rows
    return {row.link: row.up for row in listed if row.bdf == gpu.bdf and isinstance(row.up, bool)}


def without_reference(box: Box, gpu: Device, evidence: tuple[Evidence, ...]) -> Judgement | None:
    """What is wrong with links that are down; None where they may be unused."""
    states = states_of(box, gpu)
    up, down = sum(states.values()), [link for link, state in states.items() if not state]
    if not down or mig_enabled(box, gpu.bdf) or guest(box) is not None:
        return None
    others = [sum(known.values()) for each in siblings(box, gpu) if (known := states_of(box, each))]
    links = f"{'link' if len(down) == 1 else 'links'} {', '.join(map(str, down))} down"
    more = [other for other in others if other > up]
    if 2 * len(more) > len(others):
        most = max(more)
        message = f"{counted(up, 'NVLink')} up, {most} at {counted(len(more), 'other GPU')} of the model; {links}"
        status = Status.WARN if up else Status.FAIL
        return Judgement(status, message, up, most, "links", evidence, fault=Fault.NVLINK_DOWN)
    model = model_family(box, gpu)
    if model is None and not up:
        message = f"none of {counted(len(states), 'NVLink')} is up; whether they are wired depends on the model"
        return Judgement(Status.UNKNOWN, message, evidence=evidence)
    if model is not None and up and not others and not _ALL_WIRED.fullmatch(model):
        message = f"{up} of {counted(len(states), 'NVLink')} up ({links}); how many are wired depends on the machine"
        return Judgement(Status.UNKNOWN, message, up, len(states), "links", evidence)
    if not _ALL_WIRED.fullmatch(model or "") or (up == len(states) and others):
        return None
    some = f"{up} of {counted(len(states), 'NVLink')} up ({links})" if up else "no NVLink up"
    message = f"{some}, and all of this model are wired on its board"
    status = Status.FAIL if up else Status.WARN
    return Judgement(status, message, up, len(states), "links", evidence, fault=Fault.NVLINK_DOWN)
