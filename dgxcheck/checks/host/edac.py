"""Errors of the host's memory, as EDAC drivers count them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dgxcheck.checks.engine.box import HOST, Box, Growth
from dgxcheck.checks.engine.check import Check, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Subject, judged, skip
from dgxcheck.checks.engine.growth import DAY_S, counter_growth, flood, is_short, rate
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.host.memory import controllers_of, name_of
from dgxcheck.components.component import Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.memory import MemoryController
from dgxcheck.facts.missing import Missing, need, rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import EDAC
from dgxcheck.lazy_pattern import LazyPattern

_SOCKET = LazyPattern(r"(?:SrcID|Socket) ?#(\d{1,3})(?!\d)", flags=re.IGNORECASE)
"""In the names that EDAC drivers give to controllers and DIMMs: ``Skylake Socket#0 IMC#1``, ``CPU_SrcID#1_Ha#0``."""


def _edac(box: Box) -> Judged:
    """Per memory controller: fails if any uncorrected error was counted since the EDAC driver was loaded; warns if
    corrected errors grew by more than {host.edac-corrected} (without a second reading an hour or more later: also over
    the whole time since boot).

    Source: ue_count and ce_count of /sys/devices/system/edac/mc
    """
    controllers = need(box.snapshot.edac)
    if not controllers:
        yield HOST, skip("not-supported", "no EDAC driver counts memory errors on this machine")
    yield from ((replace(HOST, part=each.name), ruled(_errors, box, each)) for each in controllers)


def _errors(box: Box, now: MemoryController) -> Judgement:
    growth, name, limit = box.growth, name_of(now), box.settings.limit("host.edac-corrected")
    new = now if isinstance(growth, Judgement) else _row(growth.new.edac, now.name) or now
    uncorrected, corrected = need(new.uncorrected), need(new.corrected)
    evidence = (
        Evidence(f"{EDAC}/{now.name}/ue_count", uncorrected),
        Evidence(f"{EDAC}/{now.name}/ce_count", corrected),
    )
    fault, remedy = Fault.DIMM_ERRORS, REPLACE_DIMM
    if not isinstance(growth, Judgement) and (grew := _grew(growth, new)) is not None:
        more_uncorrected, more_corrected = grew
        if more_uncorrected > 0:
            message = f"{name}: {counted(more_uncorrected, 'new uncorrected error')} {growth.how}"
            return judged(fault, message, more_uncorrected, 0, "errors", evidence, fails=True, remedy=remedy)
        if rate(more_corrected, growth, DAY_S) > limit and uncorrected == 0:
            message = f"{name}: {counted(more_corrected, 'new corrected error')} {growth.how}, limit {limit:g} a day"
            return judged(fault, message, more_corrected, limit, "errors", evidence, warns=True)
    counts = [other.corrected for other in controllers_of(box) if other.name != new.name]
    others = [count for count in counts if isinstance(count, int)]
    if is_short(growth) and not uncorrected and (flooded := flood(box, corrected, others, limit, DAY_S)) is not None:
        message = f"{name}: {counted(corrected, 'corrected error')} {flooded}, limit {limit:g} a day"
        return judged(fault, message, corrected, limit, "errors", evidence, warns=True)
    totals = f"{counted(uncorrected, 'uncorrected error')}, {counted(corrected, 'corrected error')}"
    message = f"{name}: {totals}; since the EDAC driver was loaded"
    return judged(fault, message, uncorrected, 0, "errors", evidence, fails=bool(uncorrected), remedy=remedy)


def slots(box: Box) -> Mapping[str, str]:
    """Those of the DIMMs of SMBIOS, by the names that the kernel gives them: with and without their bank.

    Linux drivers/edac/ghes_edac.c, drivers/firmware/efi/cper.c; edac-ctl(8), --register-labels.
    """
    dimms = rows(box.snapshot.dimms)
    return {f"{dimm.bank} {dimm.slot}": dimm.slot for dimm in dimms} | {dimm.slot: dimm.slot for dimm in dimms}


def memory_modules(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The DIMMs of the memory controller or slot that a finding names, or that the log names, and of its socket."""
    dimms, events = slots(box), [event for event in box.log.host if event.group == at.part]
    named = [*dict.fromkeys(dimms.get(event.part, event.part) for event in events if event.part not in _ANY_DIMM)]
    yield host_part("memory", named[0] if len(named) == 1 else at.part)
    yield from (host_part("memory", slot) for slot in named if slot in dimms)
    controller = next((each.mc_name for each in controllers_of(box) if each.name == at.part), at.part)
    socket = _SOCKET.search(controller) if isinstance(controller, str) else None
    if socket is not None:
        yield host_part("memory", f"socket {int(socket[1])}")


_ANY_DIMM = ("", "any memory", "unknown memory", "unknown label")
"""Linux drivers/edac/edac_mc.c, where an error is of no DIMM that is known."""
REPLACE_DIMM = (
    "find the DIMM (ras-mc-ctl --errors, edac-util -v, the BMC's event log), drain the node and replace it; uncorrected"
    " errors can corrupt data or halt the host"
)


def _grew(growth: Growth, new: MemoryController) -> tuple[int, int] | None:
    """By how many uncorrected and corrected errors; None where they were not counted before, or were reset."""
    old = _row(growth.old.edac, new.name)
    if old is None:
        return None
    uncorrected = counter_growth(old.uncorrected, new.uncorrected)
    corrected = counter_growth(old.corrected, new.corrected)
    return (uncorrected, corrected) if isinstance(uncorrected, int) and isinstance(corrected, int) else None


def _row(controllers: tuple[MemoryController, ...] | Missing, name: str) -> MemoryController | None:
    return next((row for row in rows(controllers) if row.name == name), None)


CHECKS = (
    Check("host.edac", _edac, memory_modules,
        remedy="find the DIMM (ras-mc-ctl --errors, edac-util -v, the BMC's event log); replace it at the next"
        " maintenance if errors continue"),
)  # fmt: skip
