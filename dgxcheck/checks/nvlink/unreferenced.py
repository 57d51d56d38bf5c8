"""NVLinks of a GPU without a reference machine: judged by its siblings, and by what is wired on every such board."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.box import Box, guest, mig_enabled
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status
from dgxcheck.checks.engine.siblings import model_family, siblings
from dgxcheck.checks.engine.wording import counted
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.topology.model import Device

_ALL_WIRED = re.compile(r"NVIDIA (?:A100-SXM4\b|H100(?: \d+GB)? HBM3|H200(?! NVL)|B[23]00|GB[23]00).*|NVIDIA H[12]00")
"""Models that exist only on baseboards where each of their NVLinks leads to a switch or another GPU (HGX A100 to B300,
GB200 NVL72); those of V100 and P100 boxes may lead nowhere."""


_ASK_MODEL = (
    "look up the model (nvidia-smi -L): on SXM boards all NVLinks are wired, so restart nvidia-fabricmanager where the"
    " machine has NVSwitches, then reset the GPUs; PCIe cards have links up through a bridge alone"
)
_ASK_OTHERS = (
    "compare with the other GPUs (nvidia-smi nvlink -s) and see what should be joined (nvidia-smi topo -m); where they"
    " have more links up, check the kernel log for Xid 74, then reset the GPUs to retrain the links"
)
_SWITCHED = 8
"""GPUs of these models that only NVSwitches join; four may be joined by NVLinks alone (HGX A100 4-GPU)."""


def only_switches_join(box: Box) -> bool:
    """Must there be NVSwitches, which what is known of the machine does not show?"""
    models = [model_family(box, gpu) or "" for gpu in box.gpus]
    return isinstance(box.snapshot.pci, Missing) and len(models) >= _SWITCHED and all(map(_ALL_WIRED.fullmatch, models))


def states_of(box: Box, gpu: Device) -> Mapping[int, bool]:
    """By link position: is it up? Without positions that did not answer."""
    listed = rows(box.snapshot.nvlink)
    return {row.link: row.up for row in listed if row.bdf == gpu.bdf and isinstance(row.up, bool)}


def without_reference(box: Box, gpu: Device, evidence: tuple[Evidence, ...]) -> Judgement | None:
    """Judged by the link states in imported text; None if links that are down may be unused, or some are not shown."""
    states = states_of(box, gpu)
    up, down = sum(states.values()), [link for link, state in states.items() if not state]
    if mig_enabled(box, gpu.bdf) or guest(box) is not None:
        return None
    listed = [known for each in siblings(box, gpu) if (known := states_of(box, each))]
    if not down:
        return _all_up(box, gpu, up, [len(known) for known in listed], evidence)
    others = [sum(known.values()) for known in listed]
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
        return Judgement(Status.UNKNOWN, message, evidence=evidence, remedy=_ASK_MODEL)
    if model is not None and up and not others and not _ALL_WIRED.fullmatch(model):
        message = f"{up} of {counted(len(states), 'NVLink')} up ({links}); how many are wired depends on the machine"
        return Judgement(Status.UNKNOWN, message, up, len(states), "links", evidence, remedy=_ASK_OTHERS)
    if not _ALL_WIRED.fullmatch(model or "") or (up == len(states) and others):
        return None
    some = f"{up} of {counted(len(states), 'NVLink')} up ({links})" if up else "no NVLink up"
    message = f"{some}, and all of this model are wired on its board"
    status = Status.FAIL if up else Status.WARN
    return Judgement(status, message, up, len(states), "links", evidence, fault=Fault.NVLINK_DOWN)


def _all_up(box: Box, gpu: Device, up: int, others: Sequence[int], evidence: tuple[Evidence, ...]) -> Judgement | None:
    """Every link that is shown is up; None where the model, or another GPU of it, has more: the text is cut."""
    board = box.board(gpu)
    number = board.numbers.get("nvlinks") if board is not None else None
    due = max([*others, int(number.value) if number is not None else 0])
    if not up or up < due:
        return None
    which = "all of this model" if number is not None else "none down"
    return Judgement(Status.PASS, f"{counted(up, 'NVLink')} up, {which}", up, due or None, "links", evidence)
