"""What to do about a component: the steps of its escalation, each with commands, instruction and what it disturbs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.box import Box, guest, mig_enabled
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.host_limits import in_container
from dgxcheck.components.component import EVERY_GPU, Component
from dgxcheck.components.containment import NVSWITCHES, functions_beside, gpus_behind
from dgxcheck.diagnosis import by_hand
from dgxcheck.diagnosis.action import Action, Instruction, Value, on_gpus, outside, urgency_of
from dgxcheck.diagnosis.change_setting import changed_by, setting
from dgxcheck.diagnosis.escalation import (
    ASK_FOR_RESET,
    FOLLOWING,
    escalation,
    for_a_warning,
    remedy_finding,
    without_reset,
)
from dgxcheck.diagnosis.form_factor import has_fabric_elsewhere, has_no_diagnostic, is_tray_of_a_rack
from dgxcheck.diagnosis.recurrence import Recurrence, recurrence_of, remaining_steps
from dgxcheck.diagnosis.reset_domain import can_reset, gpus_of, reset_domain
from dgxcheck.diagnosis.steps import (
    ask_subnet_manager,
    dcgm_diagnostic,
    drain,
    has_own_fabric,
    load,
    reset,
    restart,
    restart_imex,
    restarts_with_a_reset,
    stop_clients,
    stop_load,
    stop_programs,
)
from dgxcheck.diagnosis.waiting import given_back
from dgxcheck.facts.bdf import place_of
from dgxcheck.facts.faults import DEVICE_DEAD, GPU_DEAD, Fault
from dgxcheck.facts.faults.kind import RESET_STEPS, FaultKind, Scope, Step, Urgency
from dgxcheck.facts.record import replace

_DRAINED: tuple[Scope, ...] = ("jobs", "traffic", "host")
_ANY_TIME: tuple[Step, ...] = ("change-setting", "restart-service", "inspect", "check-program", "restart-program")
"""Steps that need not wait for a drain of this host if they disturb nothing on it."""
_BEFORE_A_RESTART: tuple[str, ...] = ("finding-remedy", "nvlink-setting")
"""Changes by hand, of the boot loader or a module's options."""
_IN_FIRMWARE: tuple[str, ...] = (
    "large-bars", "large-bars-in-guest", "pcie-setting", "memory-channels", "socket-links", "peer-through-root",
)  # fmt: skip
"""Settings of the system firmware, whose setup is a restart away."""
_BY_FIRMWARE = frozenset({Fault.LINK_SLOW, Fault.NUMA_UNKNOWN, Fault.NUMA_TABLES, Fault.NUMA_MODE})
"""The same, where the finding's remedy says it."""
_CONTACT_HOST = Action(step="contact-host", instruction=Instruction(code="contact-host"))
_ELSEWHERE: tuple[Step, ...] = ("contact-vendor", "contact-host")
_OVERHEATING = frozenset({Fault.OVERHEATING, Fault.THERMAL_SLOWDOWN})
_WITH_POWER_OFF: tuple[str, ...] = ("inspect-card-power",)
"""What is inspected with the machine open."""
_DOWN = frozenset({Fault.PORT_DOWN, Fault.PORT_DISABLED})
"""Of a port that carries no traffic."""


_CHOSEN = frozenset({Fault.POWER_CAPPED, Fault.CLOCKS_LOWERED})
"""Set alike on every GPU, by who runs them: as rack power and noise ask for."""
_RESETS = ASK_FOR_RESET | {Fault.XID}


def actions(
    box: Box, component: Component, explained: Sequence[Finding], dead: Collection[str | None]
) -> tuple[tuple[Action, ...], Recurrence | None]:
    """Never empty, and the recurrence that rules out the first steps.

    ``dead``: bus ids of all GPUs of the box that are lost or not started, None for one of which nothing says which it
    is; no reset touches them. The host is drained
    before the first step that disturbs jobs or traffic.
    """
    faults = {finding.judgement.fault for finding in explained}
    steps = escalation(component, faults)
    if "reset-gpu" in steps and not can_reset(box, component, dead):
        steps = without_reset(steps)
    resets_all = Fault.IMEX_RECOVERY not in faults and restarts_with_a_reset(box, component)
    if "restart-service" in steps and resets_all and not can_reset(box, NVSWITCHES, dead):
        steps = tuple(step for step in steps if step != "restart-service")
    elif "restart-service" in steps and resets_all and component.kind == "host":
        steps = tuple(step for step in steps if step != "reset-gpu")
    due: Urgency = urgency_of(explained)
    if component.kind == "gpus" and component.name == EVERY_GPU and faults <= _CHOSEN:
        due = "next-maintenance"
    if all(finding.status is Status.WARN for finding in explained):
        steps = for_a_warning(component, steps, due == "watch")
        by_words = place_of(component.bdf) is not None and {each.id for each in explained} == {"tools.reports"}
        if by_words and steps[0] != "watch":  # what names no GPU is confirmed before anything is disturbed
            steps = ("inspect", *(step for step in steps if step != "inspect"))
    steps = by_hand.feasible(box, component, _needed(box, component, steps))
    if faults & ASK_FOR_RESET and steps == ("inspect", "contact-vendor"):  # NVSwitches of a rack: the GPUs are here
        steps = ("inspect", *RESET_STEPS, "contact-vendor")
    tried = recurrence_of(box, explained)
    steps, recurrence = (steps, None) if tried is None else remaining_steps(steps, tried)
    fail = {each.subject.bdf for each in explained if each.status is Status.FAIL and each.judgement.fault in _RESETS}
    planned = [action for step in steps
               for action in _with_jobs_stopped(box, component, step, explained, fail, dead)]  # fmt: skip
    planned = [action for n, action in enumerate(planned) if action.step != "contact-host" or action not in planned[:n]]
    planned = given_back(box, component, planned, explained)
    if steps != ("stop-jobs",):
        acute = due == "now" and any(finding.status is Status.FAIL for finding in explained)
        planned = _drained(box, component, planned, explained, acute)
    drained = next((n for n, action in enumerate(planned) if action.step == "drain"), len(planned))
    planned = outside(component, planned) if in_container(box) else planned
    timed = (replace(action, urgency=_urgency(action, due, faults, n < drained)) for n, action in enumerate(planned))
    return tuple(timed), recurrence


def _drained(
    box: Box, component: Component, planned: list[Action], explained: Sequence[Finding], acute: bool
) -> list[Action]:
    """With the drain before the first step that disturbs jobs or traffic, and before a change that the reboot after it
    brings into effect; what only looks comes first. ``acute``: a failure that is due now, which is drained before the
    vendor too; what overheats then has its load stopped before anybody looks.
    """
    hot = [finding.subject for finding in explained if finding.judgement.fault in _OVERHEATING]
    if acute and hot:
        return [drain(box), stop_load(box, component, {at.name for at in hot if at.kind == "gpu"}), *planned]
    at = next((n for n, action in enumerate(planned) if action.scope in _DRAINED), None)
    if acute and at is None:
        at = next((n for n, action in enumerate(planned) if action.step in _ELSEWHERE), None)
    if at is None:
        return planned
    restarts = planned[at].step in ("reboot", "power-cycle")
    waits = [each.step == "change-setting" and each.instruction.code in _BEFORE_A_RESTART for each in planned]
    while at and restarts and waits[at - 1]:
        at -= 1
    return [*planned[:at], drain(box), *planned[at:]]


def _urgency(action: Action, due: Urgency, faults: Collection[FaultKind | None], before_drain: bool) -> Urgency:
    """A GPU that is to be drained takes no new job from now on; the jobs that it has go on to their end."""
    if action.step == "drain" and Fault.DRAIN_AND_RESET in faults:
        return "now"
    at_once = before_drain and action.scope in ("none", "fabric") and action.step in _ANY_TIME and due == "next-drain"
    return "now" if at_once else due


def _needed(box: Box, component: Component, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Less a mode that is set already and waits for the reset, and less the reset where a mode is taken back."""
    if component.part == "MIG mode" and setting(box, component, (), ()) is not None:
        return tuple(step for step in steps if step not in ("reset-gpu", "reboot", "power-cycle"))
    if component.part != "ECC mode":
        return steps
    to_set, to_reset = changed_by(box, component)
    unneeded = ("change-setting",) if not to_set else () if to_reset else ("reset-gpu", "power-cycle")
    return tuple(step for step in steps if step not in unneeded) or steps


def _with_jobs_stopped(
    box: Box, component: Component, step: Step, explained: Sequence[Finding], fail: Collection[str | None],
    dead: Collection[str | None],
) -> Iterator[Action]:  # fmt: skip
    """A step, and before a reset or a reload of the driver what keeps the GPUs open; GPUs with these bus ids ``fail``
    for errors of their own, and are reset too unless they are dead."""
    if step == "reset-gpu":
        domain, switches = reset_domain(box, component, {*fail} - {*dead}), _with_nvswitches(box, component)
        yield from (stop_clients(box, domain, with_switches=switches), reset(box, domain, with_switches=switches))
        return
    if step == "load-module" and _reload(box, component, explained) is not None:
        yield stop_clients(box, box.topology.gpus, with_switches=has_own_fabric(box))
    imex = any(finding.judgement.fault is Fault.IMEX_RECOVERY for finding in explained)
    if step == "restart-service" and not imex and restarts_with_a_reset(box, component):
        yield stop_clients(box, box.topology.gpus, with_switches=True)
    yield _action(box, component, step, explained, dead)


def _with_nvswitches(box: Box, component: Component) -> bool:
    """Is it an NVSwitch of this machine, or all of them? They are reset together with all GPUs, Fabric Manager stopped
    (DU-09883); those of a rack no command here resets."""
    them = component.kind == "nvswitch" or component.part == NVSWITCHES.part
    return them and not has_fabric_elsewhere(box)


def _reload(box: Box, component: Component, explained: Sequence[Finding]) -> Action | None:
    """None for a driver that is not loaded, and need not be unloaded."""
    absent = any(finding.judgement.fault is Fault.DRIVER_NOT_LOADED for finding in explained)
    return None if absent else load(box, component)


_PLAIN: Mapping[Step, str] = {
    "contact-host": "contact-host", "watch": "watch-counters", "restart-program": "restart-program",
    "check-program": "check-program",
}  # fmt: skip


def _action(
    box: Box, component: Component, step: Step, explained: Sequence[Finding], dead: Collection[str | None]
) -> Action:
    faults = {finding.judgement.fault for finding in explained}
    source = remedy_finding(component, explained, looks=step == "inspect")
    scope: Scope = "none" if source.judgement.fault is None else source.judgement.fault.disturbs
    finding_remedy = Action(
        step=step, instruction=Instruction(code="finding-remedy"), remedy_of=source.key, scope=scope,
        disturbs=(component.name,) if scope in ("jobs", "traffic", "device") else (),
    )  # fmt: skip
    if scope == "traffic" and component.kind == "hca":
        finding_remedy = _with_all_of_it(box, finding_remedy, [component.bdf])
    if step == "change-setting":
        if (change := setting(box, component, explained, dead)) is not None:
            in_firmware: Scope = "host" if change[1].code in _IN_FIRMWARE else "none"
            if in_firmware == "host" and guest(box) is not None and change[1].code != "large-bars-in-guest":
                return _CONTACT_HOST
            return Action(step=step, commands=change[0], instruction=change[1], scope=in_firmware)
        if source.judgement.fault in _BY_FIRMWARE and guest(box) is not None:
            return _CONTACT_HOST
        odd = [finding for finding in explained if finding.judgement.fault is Fault.HCA_FIRMWARE]
        hcas = {each.subject.name: each.subject.bdf for each in odd
                if each.judgement.measured != each.judgement.expected}  # fmt: skip
        change_of_all = replace(finding_remedy, scope="traffic", disturbs=(*hcas,))
        return _with_all_of_it(box, change_of_all, hcas.values()) if hcas else finding_remedy
    if step == "inspect":
        commands, instruction = by_hand.inspection(box, component, faults - FOLLOWING.get(component.kind, frozenset()))
        if component.kind == "subnet-manager":
            commands = ask_subnet_manager(box, source.subject.name)
        if instruction is None:
            return replace(finding_remedy, commands=commands)
        opened: Scope = "host" if instruction.code in _WITH_POWER_OFF else "none"
        return Action(step=step, commands=commands, instruction=instruction, scope=opened)
    if step == "stop-jobs" and Fault.WRONG_DATA in faults:
        ends = [end for finding in explained for end in (finding.subject, finding.subject.peer) if end is not None]
        names = tuple(dict.fromkeys(end.name for end in ends if end.kind == "gpu"))
        return replace(finding_remedy, scope="jobs", disturbs=names or tuple(gpu.name for gpu in box.topology.gpus))
    if step == "stop-jobs":
        return stop_programs(box, component) if gpus_of(box, component) else replace(finding_remedy, scope="programs")
    if step == "restart-service":
        return restart_imex(box) if Fault.IMEX_RECOVERY in faults else restart(box, component)
    if step == "load-module":
        absent = (each.key for each in explained if each.judgement.fault is Fault.DRIVER_NOT_LOADED)
        return _reload(box, component, explained) or replace(finding_remedy, remedy_of=next(absent, source.key))
    if step in ("reseat", "replace", "contact-vendor"):
        return _by_hand(box, component, step, explained)
    if step == "field-diagnostic":
        command, gpus = dcgm_diagnostic(box, component)
        hot = not _OVERHEATING.isdisjoint(faults)
        code = "field-diagnostic-cooled" if hot else "field-diagnostic"
        if has_no_diagnostic(box, component):
            command, gpus = ("dgxcheck", "health", "-e", "--long"), box.topology.gpus
            code = "field-diagnostic-by-load-cooled" if hot else "field-diagnostic-by-load"
        lost: dict[str, Value] = {"lost": 1} if faults & GPU_DEAD else {}
        bare: dict[str, Value] = {"bare": 1} if guest(box) is None else {}
        return on_gpus(step, code, gpus, (command,), {**_mig(box), **lost, **bare})
    if step == "reboot":
        instruction = Instruction(code="reboot", values=_mig(box))
        return Action(step=step, commands=(("reboot",),), instruction=instruction, scope="host")
    if step == "power-cycle":
        code = "power-cycle-tray" if is_tray_of_a_rack(box) else "power-cycle"
        return Action(step=step, instruction=Instruction(code=code), scope="host")
    asked: dict[str, Value] = {"lost": 1} if step == "contact-host" and faults & DEVICE_DEAD else {}
    return Action(step=step, instruction=Instruction(code=_PLAIN[step], values=asked))


def _with_all_of_it(box: Box, action: Action, adapters: Collection[str | None]) -> Action:
    """What resets adapters disturbs all their functions, and the GPUs whose PCIe switches they are."""
    gpus = gpus_behind(box.topology, adapters)
    disturbed = (*action.disturbs, *functions_beside(box.topology, adapters), *gpus)
    return replace(action, scope="jobs" if gpus else action.scope, disturbs=disturbed)


def _mig(box: Box) -> dict[str, Value]:
    """MIG instances outlive neither reset nor reboot (NVIDIA MIG user guide); DCGM's diagnostic answers ``CUDA does not
    support enumerating GPUs with MIG mode enabled``.
    """
    return {"mig": 1} if mig_enabled(box, *(gpu.bdf for gpu in box.topology.gpus)) else {}


def _by_hand(box: Box, component: Component, step: Step, explained: Sequence[Finding]) -> Action:
    """Cables outside and disks can be changed while the machine runs, and those of a port that is down disturb nothing,
    as does a call to the vendor.
    """
    faults = {finding.judgement.fault for finding in explained}
    if step == "contact-vendor":
        instruction = by_hand.vendor(box, component, faults)
    else:
        instruction = (by_hand.reseating if step == "reseat" else by_hand.replacing)(box, component, faults)
    if "members" in instruction.values:
        disks = dict.fromkeys(finding.subject.name for finding in explained if finding.subject.kind == "disk")
        members = tuple(name for name in disks if name != component.name)
        instruction = replace(instruction, values={**instruction.values, "members": members})
    outside: dict[str, Scope] = {"port": "traffic", "interface": "traffic", "fabric": "traffic", "disk": "device"}
    scope = outside.get(component.kind, "host")
    down = component.kind == "fabric" and {*faults} <= _DOWN
    down = down or (component.kind == "port" and not _DOWN.isdisjoint(faults))
    boot_mirror = component.kind == "disk" and step == "contact-vendor"  # changed with the power off
    if boot_mirror or instruction.code == "reassemble-array":
        scope = "host"
    elif down or step == "contact-vendor":
        scope = "none"
    disturbs = () if scope in ("host", "none") or component.kind == "fabric" else (component.name,)
    return Action(step=step, instruction=instruction, disturbs=disturbs, scope=scope)
