"""What is wrong, in a clause: the device as people call it, what is and what should be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, against, counted
from dgxcheck.components.component import Component
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.bdf import shown
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import RMA_STEPS
from dgxcheck.output.health.finding_lines import component_name
from dgxcheck.output.health.sentences import device_list
from dgxcheck.output.plain_text import visible

_LONGEST_SIGN = 24
_LEAST_WORD = 2
BUS_ID = re.compile(r"(?<=\d) \([0-9a-f:.]+\)")
"""Of a device with a number."""
_ONLY_DOMAIN = re.compile(r"\b0000:")
_AROUND = ("driver", "switch", "host-bridge", "socket", "fabric", "subnet-manager", "nvswitch", "slot", "host")
_BEHIND: Mapping[str, str] = {"link": "PCIe link to", "bridge": "switch above", "switch": "switch above",
                              "host-bridge": "host bridge above"}  # fmt: skip


def problem(assessment: Assessment, cause: Cause, beside: str = "") -> str:
    """``GPU2 (0a:00.0): 88 °C (slowdown at 87 °C), clocks held down``; without a bus id that stands in ``beside``."""
    worst = _worst(assessment, cause)
    if not worst:
        return visible(_subject(assessment, cause.component, worst, beside, ""))
    gone = _gone(assessment, cause.component, worst)
    lead = gone[0] if gone else _lead(cause.component, worst)
    what = first_clause(lead.judgement.message)
    for other in worst:
        sign, _, figure = other.judgement.message.removeprefix("NVSwitch: ").partition(": ")
        is_known = other.subject != lead.subject or other.id == lead.id or sign in what
        if not is_known and len(sign) <= _LONGEST_SIGN and not figure[:1].isdigit():
            what = f"{what}, {sign}"
            break
    failing = [each for each in assessment.explained(cause) if each.status is worst[0].status]  # by a mere notice too
    who = _whose(cause.component, gone) or _subject(assessment, cause.component, failing, beside, what)
    who = _ONLY_DOMAIN.sub("", who)  # as lspci
    kind, colon, rest = what.partition(": ")
    if colon and who.startswith(kind):  # NVSwitch (c6:00.0): NVSwitch: fatal SXid
        what = rest
    if who.startswith("PCIe"):
        what = what.removeprefix("PCIe ")
    what = _of_all(what, lead, worst, cause.component)
    return visible(what if _names(what, lead, who) else f"{who}: {what}")


def _gone(assessment: Assessment, component: Component, worst: Sequence[Finding]) -> list[Finding]:
    """Of a missing device those that name it: its last words in the log, or what a baseline has of it."""
    known = assessment.topology.functions
    named = [each for each in worst if each.subject.bdf is not None and each.subject.bdf not in known]
    devices = [each for each in named if each.judgement.fault in (Fault.GPU_LOST, Fault.DRIFT)]
    return devices if component.part.startswith("missing") and known else []


def _whose(component: Component, gone: Sequence[Finding]) -> str:
    """``missing GPU (0b:00.0)``; the first two where more are."""
    device = component.part.removeprefix("missing ")
    names = {each.subject.bdf: each.subject.name if each.subject.name != each.subject.bdf else device for each in gone}
    known = [_named(name, bdf) for bdf, name in names.items()]
    return f"missing {' and '.join(known[:2])}{' ..' if known[2:] else ''}" if known else ""


def _names(what: str, lead: Finding, who: str) -> bool:
    """Does the message say itself what it is about?"""
    ends = [subject.name for subject in (lead.subject, lead.subject.peer) if subject is not None]
    if len(ends) > 1 and all(name in what for name in ends):
        return True
    return not who or what.lower().startswith(BUS_ID.sub("", who).lower())


def _of_all(what: str, lead: Finding, worst: Sequence[Finding], component: Component) -> str:
    """What is said of each of several devices behind a part, of all: ``2 GPUs lost, NVML cannot open them``."""
    kind = lead.subject.kind
    if lead.subject.peer:
        return _of_pairs(what, lead, worst, component)
    number = len({finding.subject.name for finding in worst if (finding.id, finding.subject.kind) == (lead.id, kind)})
    if number < 2 or kind not in ("gpu", "hca", "port") or component.kind not in _AROUND:
        return what
    what = re.sub(r"\bit\b", "them", what)
    if component.kind == "host":
        return what
    devices = counted(number, kind if kind == "port" else kind.upper())
    if what.startswith("port is"):
        return what.replace("port is", f"{devices} are", 1)
    return f"{devices}{' ' if what.startswith('lost') else ': '}{what}"


def _of_pairs(what: str, lead: Finding, worst: Sequence[Finding], component: Component) -> str:
    """Of one of several pairs, of all: ``GPU5 to 15 GPUs, P2P on: 96 GB/s``, ``16 pairs, P2P off: 2.6 GB/s``."""
    pairs = [{end.bdf for end in (each.subject, each.subject.peer) if end} for each in worst if each.id == lead.id]
    ends = lead.subject.peer and f"{lead.subject.name} to {lead.subject.peer.name}"
    if len(pairs) < 2 or not ends or component.kind in ("nvlink", "path"):
        return what
    of_one = component.kind == "gpu" and all(component.bdf in each for each in pairs)
    return what.replace(ends, f"{component.name} to {len(pairs)} GPUs" if of_one else f"{len(pairs)} pairs", 1)


def _worst(assessment: Assessment, cause: Cause) -> list[Finding]:
    """The findings that the cause explains, of the worst status; a mere notice tells nothing beside others."""
    explained = assessment.explained(cause)
    loud = [each for each in explained if each.judgement.fault is not Fault.XID_NOTICE] or [*explained]
    return [finding for finding in loud if finding.status is loud[0].status]


def _lead(component: Component, worst: Sequence[Finding]) -> Finding:
    """One about the component itself; of those that blame it alike, one of an RMA, or with a figure and a limit."""
    lead = next((finding for finding in worst if is_about(finding, component)), worst[0])
    alike = [finding for finding in worst if finding.subject == lead.subject and finding.blames[:1] == lead.blames[:1]]
    rma = [each for each in alike if each.judgement.fault is not None and each.judgement.fault.steps == RMA_STEPS]
    measured = lead.judgement.fault is None or lead.judgement.fault.category != "environment" or _figure(lead)
    return rma[0] if rma else lead if measured else next(filter(_figure, alike), lead)


def _figure(finding: Finding) -> str:
    judgement = finding.judgement
    return against(judgement.measured, judgement.expected, judgement.unit)


def is_about(finding: Finding, component: Component) -> bool:
    """Is the component the device that was judged?"""
    return finding.subject.bdf is not None and finding.subject.bdf in (component.bdf, component.peer_bdf)


def _subject(assessment: Assessment, component: Component, worst: Sequence[Finding], beside: str, what: str) -> str:
    """What people call it: of a link, port or switch the devices behind it; of the host the part alone, if ``what`` is
    wrong does not say it.
    """
    kind, part = component.kind, component.part
    if component.peer_bdf and kind == "nvswitch":
        return component_name(component)
    if kind in ("nvlink", "path"):
        return f"{'NVLinks' if kind == 'nvlink' else 'P2P'} {component.name.replace(' - ', '-')}"
    if kind == "socket-interconnect":
        return f"between {component.name}"
    if kind == "host":
        devices = "" if worst and worst[0].subject.peer else _failing(worst, component.key != NVSWITCHES.key)
        is_named = any(word.rstrip("s") in what.lower() for word in part.lower().split() if len(word) > _LEAST_WORD)
        return devices if is_named else f"{part or 'host'} of {devices}" if devices else part
    if kind == "gpus":
        several = len(component.shared_by) < len(assessment.topology.gpus)
        return _listed(component.shared_by) if several else f"all {len(component.shared_by)} GPUs"
    if kind == "subnet-manager" or (kind == "driver" and len(worst) > 1 and worst[0].subject.kind == "gpu"):
        return _failing(worst) if len(worst) == 1 else ""
    if part.startswith(("missing", "empty")):
        return f"{part} {component.name}".rstrip()
    if kind == "board" and component.shared_by:
        return f"board of {_listed(component.shared_by)}"
    if kind in _BEHIND:
        below = component.shared_by or tuple(d.name for d in assessment.topology.below(component.bdf or component.name))
        if len(below) == 1:
            device = assessment.topology.device(below[0])
            name = _named(below[0], device.bdf if device else None, beside)
            return name if kind == "link" else f"port above {name}"
        return f"{_BEHIND[kind]} {_listed(below)}" if below else component_name(component)
    disk = worst[0].subject.name if kind == "disk" and worst else component.name
    if disk != component.name:
        return f"{disk} of {component.name}"
    if kind in ("board", "nvswitch", "gpu", "hca", "port", "disk", "interface"):
        return _named(component.name, component.bdf, beside, kind)
    return component_name(component).removeprefix("the ")


def _failing(worst: Sequence[Finding], with_others: bool = False) -> str:
    """The devices that fail alike for what they have in common; with the others on PCIe, of several the number."""
    others = {each.subject.bdf for each in worst if each.subject.kind == "pci" and with_others} - {None}
    names = [*dict.fromkeys(each.subject.name for each in worst if each.subject.kind in ("gpu", "hca", "port"))]
    if names or not others:
        return _listed(names)
    return counted(len(others), "PCIe device") if len(others) > 1 else f"PCI function {shown(others.pop())}"


def _listed(names: Sequence[str]) -> str:
    """``GPU6 and GPU7``, ``GPU4 to GPU7, mlx5_2``, ``4 GPUs, 1 HCA``"""
    gpus = [name for name in names if name.startswith("GPU")]
    others = [name for name in names if name not in gpus]
    if len(names) == 2 and "@" not in "".join(names):
        return " and ".join(map(_named, names))
    text = ", ".join(filter(None, (device_list(gpus), device_list(others))))
    if "@" not in text and len(text) <= _LONGEST_SIGN:
        return text
    return ", ".join(counted(len(each), noun) for each, noun in ((gpus, "GPU"), (others, "HCA")) if each)


def _named(name: str, bdf: str | None = None, beside: str = "", kind: str = "gpu") -> str:
    """``GPU5 (85:00.0)``; without the domain 0000."""
    name, _, place = name.partition("@")
    where = shown(bdf) or place
    if name == bdf and kind == "hca":
        name = "HCA"
    if kind == "nvswitch" and where:
        name = "NVSwitch"
    if not where or (where in beside and name != "GPU") or where in name:
        return name
    return f"{name} ({where.removeprefix('0000:')})"


def first_clause(text: str) -> str:
    """Of a message or an instruction what comes before the first semicolon."""
    return text.partition("; ")[0]
