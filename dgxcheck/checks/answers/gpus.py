"""Does every GPU and HCA answer what it must: what its model answers, its siblings, and itself a moment before?

Other checks skip what a driver calls unsupported, absent or not permitted. Where the device is known to have it that is
no property of the device but a fault of the device, its driver or this user's rights, and nothing is known of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain

from dgxcheck.checks.answers.capability import GEFORCE, is_answered
from dgxcheck.checks.engine.box import HOST, Box, Growth, gpu_unavailable, guest
from dgxcheck.checks.engine.check import Check, itself, remedy_of, ruled
from dgxcheck.checks.engine.expected import model_family
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, of_gaps, skip, unless
from dgxcheck.checks.engine.gaps import is_driver_query
from dgxcheck.checks.engine.host_limits import is_assigned
from dgxcheck.components.component import Component
from dgxcheck.components.device_facts import changed_facts, facts_of, row_of
from dgxcheck.facts.bdf import is_unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import PASSED_THROUGH, NvmlReturn
from dgxcheck.facts.missing import Gap, Missing, text_of
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.facts.record import replace
from dgxcheck.profiles.library import board_id, boards_for
from dgxcheck.topology.model import Device

Facts = Mapping[str, object]
Gaps = Mapping[str, Missing]


def gaps_in(facts: Facts) -> Gaps:
    """Those of a device, by path."""
    return {path: fact for path, fact in facts.items() if isinstance(fact, Missing)}


class Group:
    """Devices that are expected to have the same facts."""

    def __init__(self) -> None:
        self._members: list[Facts] = []
        self._gaps: list[Gaps] = []

    def __len__(self) -> int:
        return len(self._members)

    def add(self, facts: Facts, gaps: Gaps) -> None:
        """One more device."""
        self._members.append(facts)
        self._gaps.append(gaps)

    @cached_property
    def usual(self) -> frozenset[str]:
        """Of what one of these devices has no value, that of which at least half of the others have one."""
        times = Counter(chain.from_iterable(self._members))
        times.subtract(chain.from_iterable(self._gaps))
        others = len(self) - 1
        return frozenset(path for path, answered in times.items() if 2 * answered >= others > 0)

    @cached_property
    def recorded(self) -> Counter[str]:
        """How many of them have it in the recording, of what NVML answers."""
        times = Counter(path for path in chain.from_iterable(self._members) if path.startswith(_OF_NVML))
        times.subtract(path for gaps in self._gaps for path in unrecorded(gaps) if path.startswith(_OF_NVML))
        return times


def unrecorded(gaps: Gaps) -> set[str]:
    """Those that are gaps of the recording."""
    return {path for path, gap in gaps.items() if gap.gap is Gap.UNRECORDED}


Mode = tuple[object, ...]
"""A model, and by which modes its GPUs answer differently."""
_SILENT = (Gap.ABSENT, Gap.UNSUPPORTED, Gap.DENIED, Gap.GARBLED)
_REPORTED = (Gap.LOST, Gap.TIMEOUT)
"""Of the driver gpu.lost and driver.responsive report these."""
_MODES = ("gpu_modes.mig", "gpu_memory.ecc")
"""What a GPU answers depends on these: a sibling in another mode says nothing."""
_VARIES = (
    "gpu_board.part_number",  # some InfoROMs of one model have none
    "gpu_thermal.fan_percent",
    "gpu.gpu_numa_id",
    "aer.",  # absent below a host bridge of which the firmware keeps AER for itself
    "bars.", "config_space.acs",  # see pcie.bar1
    "ib_ports.ports.", "infiniband.",  # InfiniBand and Ethernet ports have other files
)  # fmt: skip
"""Facts that one device may have and its equal sibling not; a driver says so, and gives no other error."""
_ERRORS = (NvmlReturn.DRIVER_NOT_LOADED, NvmlReturn.LIBRARY_NOT_FOUND)
_ALWAYS = ("gpu.name", "gpu.uuid")
"""What NVML knows of any GPU, by any driver."""
_MUCH, _OF_ONE = 0.25, 0.5
"""Of what a GPU should tell, the part without which nothing is known of it."""
_READINGS = ("gpu_clocks.performance_state", "gpu_thermal.gpu_c", "gpu_power.usage_mw")
"""What every GPU measures, and the driver reads from it each time."""
_VIRTUALIZATION = "gpu_board.virtualization"
_OF_NVML = "gpu"
"""Begins the paths of what NVML answers; of NVLinks it depends on their state how much that is."""


def _answers(box: Box) -> Judged:
    """Fails if NVML answers with unknown errors for state, temperature and power of a GPU. Unknown if it answers by an
    invalid value or an error that is none of the GPU's properties, or if NVML or sysfs has no value of a GPU (not
    supported, not permitted, not there) where every GPU has one (name, UUID), where its model is known to, where at
    least half of the other GPUs of its model in the same ECC and MIG mode have one, or where it had one at the first
    reading; and if much of what such a GPU answers is not in a recording.

    Source: nvml-api, the functions' supported devices; dgxcheck/checks/answers/capability.py
    """
    if not box.boards:  # --profile none expects no numbers; what a model answers is no number
        box = replace(box, boards=boards_for(None))
    listed = box.topology.listed_gpus
    facts = {gpu.name: facts_of(box.snapshot, gpu.bdf or "") for gpu in listed}
    gaps = {name: gaps_in(own) for name, own in facts.items()}
    modes = {gpu.name: _mode(box, gpu, facts[gpu.name]) for gpu in listed}
    groups = {mode: Group() for mode in modes.values()}
    for mode, group in groups.items():
        for name, other in modes.items():
            if _alike(mode, other):
                group.add(facts[name], gaps[name])
    for gpu in box.gpus:
        unavailable, name = gpu_unavailable(box, gpu), gpu.name
        yield box.subject(gpu), unavailable or ruled(_of_gpu, box, gpu, facts[name], gaps[name], groups[modes[name]])
    pci = box.snapshot.pci
    if isinstance(pci, Missing) and pci.gap not in (Gap.UNRECORDED, Gap.UNASKED) and listed:
        yield HOST, _without_pci(box, pci)


def _without_pci(box: Box, pci: Missing) -> Judgement:
    if is_assigned(box):
        return skip("not-visible", f"the PCI tree is hidden: {pci}")
    message = f"NVML lists GPUs and the PCI tree cannot be read: {pci}"
    remedy = remedy_of("driver.answers", "no PCI tree")
    return Judgement(Status.UNKNOWN, message, evidence=of_gaps([pci]), remedy=remedy)


def _mode(box: Box, gpu: Device, facts: Facts) -> Mode:
    """Model and modes, None for a mode that is not known; the model by the PCI ids, which the driver cannot withhold,
    without the PCI tree by its name."""
    modes = (facts.get(path) for path in _MODES)
    return board_id(gpu) or model_family(box, gpu), *(each if isinstance(each, bool) else None for each in modes)


def _alike(own: Mode, other: Mode) -> bool:
    """The same known model, and no mode that differs."""
    same = (a is None or b is None or a == b for a, b in zip(own[1:], other[1:], strict=True))
    return bool(own[0]) and own[0] == other[0] and all(same)


def _of_gpu(box: Box, gpu: Device, own: Facts, missing: Gaps, alike: Group) -> Judgement:
    silent = {path: gap for path, gap in missing.items() if _is_silent(path, gap)}
    model = _documented(box, gpu, own)
    required = {path: gap for path, gap in silent.items() if _is_required(path, own, alike, model)}
    required |= _not_on_pci(box, gpu)
    gone = _gone(box, gpu, own)
    if not required and not gone:
        unless(_cut(box, own, missing, alike))
        what = "its model and " if box.board(gpu) is not None and box.board_id(gpu) else ""
        if not what and len(alike) < 2:
            return skip("no-reference", "its model is not known, and there is no other GPU of it")
        return Judgement(Status.PASS, f"answers what {what}the other GPUs of its model answer")
    gaps = [*{**required, **gone}.values()]
    since = "" if required else " at the second reading"
    queries = counted(len(gaps), "query", "queries")
    message = f"no answer to {queries} that this GPU must answer{since}, first {gaps[0].where}: {gaps[0]}"
    unreadable = all(_is_error(own.get(path)) for path in _READINGS)
    status, fault = (Status.FAIL, Fault.GPU_UNREADABLE) if unreadable else (Status.UNKNOWN, None)
    facts, remedy = (len(gaps), 0, "queries", of_gaps(gaps)), remedy_of("driver.answers")
    return Judgement(status, message, *facts, fault=fault, remedy=remedy)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    if judgement.fault is not None:
        yield from itself(box, at, judgement)


def _cut(box: Box, own: Facts, missing: Gaps, alike: Group) -> Judgement | None:
    """A recording that lacks much of what one GPU answers: of what the others of its model answer there, or where there
    are none and NVML itself was asked, of what is asked of any."""
    cut = unrecorded(missing)
    others = len(alike) - 1
    by_nvml = isinstance(box.nvml, Nvml) and isinstance(box.nvml.nvml_version, str)
    if not cut or not (others > 0 or by_nvml):
        return None
    if others > 0:
        asked = alike.recorded
        lacking = {path for path in (asked.keys() - own.keys()) | cut if 2 * asked[path] >= others}
        recorded = own.keys() - cut
        expected = sum(2 * (times - (path in recorded)) >= others for path, times in asked.items())
    else:
        lacking = {path for path in own if path.startswith(_OF_NVML)}
        expected = len(lacking)
    unasked = sum(not cut.isdisjoint(_and_above(path)) for path in lacking)
    if unasked <= expected * (_MUCH if others > 0 else _OF_ONE):
        return None
    message = f"{unasked} of {expected} answers of this GPU are not in this recording"
    return Judgement(Status.UNKNOWN, message, unasked, 0, "answers", remedy=remedy_of("driver.answers", "not recorded"))


def _and_above(path: str) -> Iterator[str]:
    """``gpu_ecc.retired.double`` and the record that it is in, which may be missing as a whole."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _not_on_pci(box: Box, gpu: Device) -> dict[str, Missing]:
    """A GPU that NVML lists and the PCI tree of this host does not have."""
    placed = gpu.function is not None or is_unplaced(gpu.bdf)
    hidden = isinstance(box.snapshot.pci, Missing) or is_assigned(box)
    return {} if placed or hidden else {"pci": Missing(Gap.ABSENT, f"/sys/bus/pci/devices/{gpu.bdf}")}


def _is_silent(path: str, gap: Missing) -> bool:
    """Is it one that no other check reports?"""
    if gap.code == NvmlReturn.CORRUPTED_INFOROM:
        return False
    if path.startswith(_VARIES) and gap.gap is not Gap.GARBLED:
        return False
    return gap.gap in _SILENT or (gap.gap in _REPORTED and not is_driver_query(gap))


def _is_error(gap: object) -> bool:
    """Is it no property of the GPU: an invalid value, or another error than "not supported", "not permitted" or so?"""
    return isinstance(gap, Missing) and (gap.gap is Gap.GARBLED or gap.code in _ERRORS) and is_driver_query(gap)


def _is_required(path: str, own: Facts, alike: Group, model: tuple[str, int, bool] | None) -> bool:
    far_end = path.endswith(".remote_bdf")
    if far_end and own.get(f"{path.rpartition('.')[0]}.up") is not True:
        return False
    unseen = far_end and own.get(_VIRTUALIZATION) == PASSED_THROUGH  # the NVSwitches are the host's
    documented = model is not None and not unseen and is_answered(path, *model)
    return path in _ALWAYS or _is_error(own[path]) or documented or path in alike.usual


def _documented(box: Box, gpu: Device, own: Facts) -> tuple[str, int, bool] | None:
    """Model, driver branch (0 where it is not known) and whether ECC is on, of a GPU whose answers are documented."""
    board, family = box.board(gpu), model_family(box, gpu)
    is_known = box.board_id(gpu) or GEFORCE[0] in family
    is_part = guest(box) is not None and own.get(_VIRTUALIZATION) != PASSED_THROUGH
    if not is_known or is_part or own.get("gpu_modes.mig") is True:
        return None
    number = text_of(box.snapshot.driver_version).partition(".")[0]
    branch = int(number[:4]) if number.isdecimal() else 0
    return board.name if board is not None else family, branch, own.get("gpu_memory.ecc") is not False


def _gone(box: Box, gpu: Device, own: Facts) -> dict[str, Missing]:
    """Counters that the GPU told at the first reading and not at the second; MIG mode takes some of them away."""
    if not isinstance(box.growth, Growth) or own.get("gpu_modes.mig") is True:
        return {}
    old, new = changed_facts(box.growth.old, box.growth.new, gpu.bdf or "")
    still_listed = not isinstance(row_of(box.growth.new.gpu_counters, gpu.bdf), Missing)
    gone = sorted(old.keys() - new.keys()) if still_listed else []
    left_out = {path: Missing(Gap.ABSENT, path, "not read again") for path in gone}
    return {
        path: gap for path, gap in gaps_in({**new, **left_out}).items()
        if _is_silent(path, gap) and not isinstance(old.get(path, gap), Missing)
    }  # fmt: skip


CHECKS = (Check("driver.answers", _answers, _blames),)
