"""One precondition of P2P or GPUDirect RDMA between a pair of devices: its state, and its judgement as a finding."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Literal, ParamSpec

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import Judgement, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.missing import Gap, Missing, NeededFact
from dgxcheck.facts.record import Record, replace

P = ParamSpec("P")
State = Literal["ready", "slow", "no", "?"]
"""Of a pair: direct transfers work; they work, but slowly or not by default; they do not work; undetermined."""
AS_ROOT = "run dgxcheck as root (in a container or a service: with CAP_SYS_ADMIN)"


class Precondition(Record, kw_only=False):
    """One precondition of a pair: its state, and the judgement that is printed as a finding."""

    state: State
    judgement: Judgement
    summary: str = ""
    """For one pair, where the judgement's message is about more than that; empty where the message serves."""


def deciding(
    preconditions: tuple[tuple[str, Precondition], ...], verdict: str, worst: tuple[tuple[State, str], ...]
) -> tuple[tuple[str, Precondition], ...]:
    """Those that the verdict of a pair comes from, by its state in ``worst``; none for any other verdict."""
    state = next((state for state, word in worst if word == verdict), None)
    return tuple(precondition for precondition in preconditions if precondition[1].state == state)


def needs_facts(rule: Callable[P, Precondition]) -> Callable[P, Precondition]:
    """A rule that calls ``need``: undetermined where the fact is missing."""

    @wraps(rule)
    def determined(*args: P.args, **kwargs: P.kwargs) -> Precondition:
        try:
            return rule(*args, **kwargs)
        except NeededFact as needed:
            return undetermined(needed.gap)

    return determined


def undetermined(gap: Missing) -> Precondition:
    """Of a fact that is missing; where root can read it the message says so."""
    message = f"{gap.where}: {gap}"
    judgement = unjudged(gap)
    if gap.gap is Gap.LOST:
        judgement = skip("dependency-failed", message, *judgement.evidence)
    if gap.gap is Gap.DENIED:
        judgement = skip("no-permission", f"{message}; {AS_ROOT}", *judgement.evidence)
        if gap.where.endswith("/config"):
            return Precondition("?", judgement, f"PCI configuration space is not readable: {AS_ROOT}")
    return Precondition("?", judgement)


def fails_elsewhere(message: str, check: str) -> Precondition:
    """A precondition that is not met, as another check reports."""
    return Precondition("no", skip("dependency-failed", f"{message}: see {check}"))


def in_guest(box: Box) -> Precondition | None:
    """What a virtual machine cannot see of its host; None on the host itself."""
    unknown = box.snapshot.known_host.vm
    if isinstance(unknown, Missing):
        message = f"this may be a virtual machine: {unknown.where}: {unknown}"
        return Precondition("?", replace(undetermined(unknown).judgement, message=message))
    vm = guest(box)
    if vm is None:
        return None
    return Precondition("?", skip("not-visible", f"a {vm} guest cannot see this setting of its host"))
