"""Does the driver allow GPUs to access each other's memory where NVLink or a PCIe switch joins them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from dgxcheck.checks.driver import fabric_manager
from dgxcheck.checks.engine.box import Box, guest, mig_enabled, nvml_unavailable, pci_subject
from dgxcheck.checks.engine.check import Check, device_of, host_if_all, remedy_of
from dgxcheck.checks.engine.expected import between_all, model_family
from dgxcheck.checks.engine.finding import (
    Evidence,
    Judged,
    Judgement,
    Status,
    Subject,
    answered,
    as_evidence,
    counted,
    given,
    judged,
    skip,
    unless,
)
from dgxcheck.checks.engine.gaps import unjudged, unread
from dgxcheck.checks.pcie.isolation import between, most_blocking_settings
from dgxcheck.checks.peer_access import cuda
from dgxcheck.checks.peer_access.cuda import Blocker, blocker
from dgxcheck.components.component import Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.nvml.nvlink import CAPABILITIES, STATUSES, P2pStatus
from dgxcheck.facts.record import Record, replace
from dgxcheck.topology.model import Device, DevicePair, Link
from dgxcheck.topology.paths import NEAR

NEVER = ("GNS", "NS")
"""Not supported by the GPUs, or not at all: not a fault of this machine."""
_OF_THE_CHIPSET = ("CNS", "TNS")
_BY_KEY = "DR"
_MEANINGS = {
    "CNS": "chipset not supported", "GNS": "GPU not supported", "TNS": "topology not supported",
    _BY_KEY: "disabled by registry key", "NS": "not supported",
}  # fmt: skip
"""nvidia-smi topo -p2p"""


class Refusal(Record, kw_only=False):
    """A P2P capability that the driver refuses to a pair."""

    text: str
    measured: str
    """``CNS``; where the two directions differ ``OK, CNS``."""
    evidence: tuple[Evidence, ...]


def statuses(box: Box) -> dict[DevicePair, Judgement] | Judgement:
    """The judgement of every pair with a GPU that was asked about; a skip where no pair can be judged."""
    rows = box.snapshot.p2p
    listed = box.topology.listed_gpus
    if by_cuda := _by_cuda(box):
        return by_cuda
    if (unavailable := nvml_unavailable(box)) is not None:
        return unavailable
    if isinstance(rows, Missing) or len(listed) < 2:
        return unjudged(rows) if isinstance(rows, Missing) else skip("not-supported", "fewer than two GPUs")
    if fabric_manager.down(box):
        return skip("dependency-failed", "the NVSwitch fabric is down: see driver.fabric")
    by_pair = {(row.a, row.b): row for row in rows}
    of_text = _of_text(box, listed)
    return {
        (a, b): _judged(box, a, b, by_pair.get((a.bdf or "", b.bdf or "")), by_pair.get((b.bdf or "", a.bdf or "")),
                        of_text.get(frozenset((a.name, b.name))))
        for a, b in combinations(listed, 2)
        if a in box.gpus or b in box.gpus
    }


def _by_cuda(box: Box) -> dict[DevicePair, Judgement]:
    """What a tool printed of pairs, where a text has no status of NVML's for any."""
    listed = box.snapshot.p2p
    by_pair = rows(listed)
    facts = [getattr(row, name) for row in by_pair for name in CAPABILITIES[:3]] or [listed]
    return cuda.judged(box) if all(map(_is_unrecorded, facts)) else {}


def _status(box: Box) -> Judged:
    """Fails if two GPUs that NVLink or PCIe switches join (PIX, PXB) cannot read and write each other's memory, and for
    any pair whose two directions differ. Not judged: pairs without NVLink that do not support P2P (GNS, NS), other
    pairs further apart, GPUs in MIG mode and, in a virtual machine, what its hypervisor hides (CNS, TNS without
    NVLink). IOMMU translation and ACS redirection between the two are named. If all pairs behind one PCIe bridge fail
    alike, this is reported once, at the bridge. Of a text that does not show PCI, warns of pairs that its matrix joins
    by NVLink or one PCIe switch, or that NVSwitches join on boards of their model, and of a matrix alone if three
    quarters of its pairs have access. Imported text without that status is
    judged by CUDA's peer access: fails for pairs joined by NVLink, or by PCIe switches if similar pairs have access;
    warns of a GPU without access to at least four others of its model that all have access to each other, and of
    modules that NVSwitches join.

    Source: nvmlDeviceGetP2PStatus in both directions; in imported text cudaDeviceCanAccessPeer
    """
    unless(_stated(box))
    pairs = given(statuses(box))
    at_bridges = _at_bridges(box, pairs)
    for pair, judgement in pairs.items():
        where = next((name for name, below in at_bridges.items() if pair in below), None)
        yield box.pair(*pair), judgement if where is None else skip("dependency-failed", f"reported at {where}")
    for name, below in at_bridges.items():
        yield pci_subject(name), _below_bridge(box, {pair: pairs[pair] for pair in below})


def _of_text(box: Box, gpus: Sequence[Device]) -> dict[frozenset[str], Link]:
    """What joins pairs whose PCI tree is not shown: by the matrix beside it, else NVSwitches that boards of their model
    have. Cards of GeForce have no peer access, behind switches neither."""
    stated, switched = box.snapshot.stated, between_all(box, [gpu.name for gpu in gpus])
    unknown = {
        frozenset((a.name, b.name)): link for a, b in combinations(gpus, 2)
        if (link := box.topology.link(a, b)).nvlinks is None and link.pci is None
    }  # fmt: skip
    found = {pair: replace(link, nvlinks=switched) for pair, link in unknown.items() if switched}
    names = {gpu.bdf: gpu.name for gpu in gpus}
    for (a, b), label in ({} if isinstance(stated, Missing) else stated.labels).items():
        pair = frozenset((names.get(a, a), names.get(b, b)))
        if pair not in unknown or not isinstance(label, str):
            continue
        if label.startswith("NV"):
            found[pair] = replace(unknown[pair], nvlinks=int(label[2:]))
        elif label in NEAR and not switched and not any("GeForce" in model_family(box, gpu) for gpu in gpus):
            found[pair] = replace(unknown[pair], pci=label)
    return found


def _stated(box: Box) -> Judgement | None:
    """Of matrices without the GPUs' own facts: pairs to which one refuses access, and that another joins by NVLinks, or
    whose other direction or three quarters of all pairs have it."""
    stated = box.snapshot.stated
    if isinstance(stated, Missing) or box.topology.gpus:
        return None
    refused: dict[str, str] = {}
    for cells in (stated.p2p.get(name, {}) for name in ("", *CAPABILITIES[:3])):
        having = {a for (a, _), status in cells.items() if status == "OK"}  # a card of another kind has none
        among = [status for pair, status in cells.items() if having.issuperset(pair)]
        offered = having if 4 * among.count("OK") >= 3 * len(among) else set()
        refused |= {
            f"{a}-{b}": status for (a, b), status in cells.items() if status in _MEANINGS and
            ({a, b} <= offered or cells.get((b, a)) == "OK" or str(stated.labels.get((a, b))).startswith("NV"))
        }  # fmt: skip
    if not refused:
        all_have = {status for cells in stated.p2p.values() for status in cells.values()} == {"OK"}
        return Judgement(Status.PASS, "P2P OK for all pairs of the imported matrix") if all_have else None
    pair, status = next(iter(refused.items()))
    message = f"P2P is {_word(status)} for {pair}, OK expected as for others or by its NVLinks"
    evidence = (Evidence("nvidia-smi topo -p2p", ", ".join([*refused][:6])),)
    message += f"; {counted(len(refused), 'such cell')}"
    return judged(Fault.P2P_BLOCKED, message, status, "OK", evidence=evidence, warns=True)


def _judged(box: Box, a: Device, b: Device, there: P2pStatus | None, back: P2pStatus | None,
            of_text: Link | None) -> Judgement:
    link = of_text or box.topology.link(a, b)
    vm = guest(box)
    status = _pair(there, back, link, vm)
    if isinstance(status, Judgement):
        return status
    if mig_enabled(box, a.bdf, b.bdf):
        return skip("not-supported", f"{status.text}: MIG mode is on, which disables P2P", *status.evidence)
    if vm is not None and not link.nvlinks and status.measured in _OF_THE_CHIPSET:
        return skip("not-visible", f"{status.text}: {vm} hides the PCIe topology from its guest", *status.evidence)
    case = "registry key" if _BY_KEY in status.measured else "over NVLink" if link.nvlinks else "over PCIe"
    known = link.nvlinks or of_text or case == "registry key"
    blocked = Blocker("", remedy_of("p2p.status", case)) if known else blocker(box, a, b)
    message = f"{status.text}; blocked by {blocked.setting}" if blocked.setting else status.text
    facts = (status.measured, "OK", "", status.evidence)
    return judged(Fault.P2P_BLOCKED, message, *facts, warns=True, fails=of_text is None, remedy=blocked.remedy)


def _pair(there: P2pStatus | None, back: P2pStatus | None, link: Link, vm: str | None) -> Judgement | Refusal:
    """By the status of each capability in both directions. ``vm``: the hypervisor that this machine is a guest of."""
    if there is None or back is None:
        return skip("not-recorded", "its P2P status was not recorded")
    capabilities = CAPABILITIES[: 3 if link.nvlinks else 2]
    asked_of = {name: (getattr(there, name), getattr(back, name)) for name in capabilities}
    both = {name: pair for name, pair in asked_of.items() if not any(map(_is_unrecorded, pair))} or asked_of
    evidence = tuple(
        answered(STATUSES.index(status) if isinstance(status, str) else as_evidence(status), "nvmlDeviceGetP2PStatus",
                 f"{row.a} {row.b}", CAPABILITIES.index(name))
        for name in both for row, status in zip((there, back), both[name], strict=True)
    )  # fmt: skip
    near = link.nvlinks or link.pci in NEAR
    for name, (one, other) in both.items():
        for status in (one, other):
            if isinstance(status, Missing):
                return unread(status) if near and vm is None else unjudged(status)
        if "U" in (one, other):
            asked = next(each.where for each in evidence if each.value == STATUSES.index("U"))
            return unjudged(Missing(Gap.UNSUPPORTED, asked, "the driver reports U (unknown)"))
        if one != other:
            text = f"P2P {name} is {_word(one)} from {link.a} to {link.b}, {_word(other)} from {link.b} to {link.a}"
            return Refusal(text, f"{one}, {other}", evidence)
        if one in NEVER and near and not (link.nvlinks and vm is None):
            return skip("not-supported", f"P2P {name} is {_word(one)}: these GPUs do not support it", *evidence)
        if one != "OK" and not near and link.pci is None:
            return skip("not-recorded", f"P2P {name} is {_word(one)}: what joins the two is unknown", *evidence)
        if one != "OK" and near:
            text = f"P2P {name} is {_word(one)} between {link.a} and {link.b} ({link.label}), OK expected"
            return Refusal(text, one, evidence)
    summary = ", ".join(f"{name} {one}" for name, (one, _) in both.items())
    return Judgement(Status.PASS, f"P2P {summary}, in both directions", summary, evidence=evidence)


def _is_unrecorded(status: str | Missing) -> bool:
    return isinstance(status, Missing) and status.gap is Gap.UNRECORDED


def _word(status: str) -> str:
    return f"{status} ({_MEANINGS[status]})" if status in _MEANINGS else status


def _at_bridges(box: Box, pairs: Mapping[DevicePair, Judgement]) -> dict[str, list[DevicePair]]:
    """Pairs by the bridge behind which all pairs fail alike, the highest bridge first: all pairs below it, else those
    that it joins.
    """
    shared: dict[DevicePair, tuple[str, ...]] = {}
    for a, b in pairs:
        link = box.topology.link(a, b)
        above_both = tuple(one for one, other in zip(rows(a.path), rows(b.path), strict=False) if one == other)
        if above_both and link.pci in NEAR and not link.nvlinks:
            shared[a, b] = above_both
    groups: dict[str, list[DevicePair]] = {}
    for above in sorted({*shared.values()}, key=lambda path: (len(path), path)):
        grouped = {pair for group in groups.values() for pair in group}
        below = [pair for pair, path in shared.items() if pair not in grouped and above[-1] in path]
        for group in (below, [pair for pair in below if shared[pair] == above]):
            outcomes = {(pairs[pair].status, pairs[pair].measured) for pair in group}
            if len(group) > 1 and len(outcomes) == 1 and pairs[group[0]].status is Status.FAIL:
                groups[above[-1]] = group
                break
    return groups


def _below_bridge(box: Box, below: Mapping[DevicePair, Judgement]) -> Judgement:
    measured = next(iter(below.values())).measured
    names = ", ".join(f"{a.name}-{b.name}" for a, b in below)
    blockers = [blocker(box, *pair) for pair in below]
    settings = ", ".join(dict.fromkeys(each.setting for each in blockers if each.setting))
    blocked = f"; blocked by {settings}" if settings else ""
    message = f"P2P is {_word(str(measured))} between all GPUs that it joins, OK expected: {names}{blocked}"
    evidence = tuple(evidence for judgement in below.values() for evidence in judgement.evidence[:1])
    remedy = "; ".join(dict.fromkeys(each.remedy for each in blockers))
    return judged(Fault.P2P_BLOCKED, message, measured, "OK", evidence=evidence, fails=True, remedy=remedy)


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The driver's registry key where it says so; NVLinks of a pair, else the settings that block it, then the path and
    the GPUs; at a bridge the settings that block the most pairs below it.
    """
    a, b = device_of(box, subject), device_of(box, subject.peer)
    if a is None or b is None:
        yield from most_blocking_settings(box, subject.bdf)
        yield host_part("P2P setting")
        return
    if _BY_KEY in str(judgement.measured):
        yield host_part("P2P setting")
    yield from between(box, a, b)


CHECKS = (Check("p2p.status", _status, _blames, host_if_all("P2P setting")),)
