"""What keeps the CPUs below their highest clock, and what the kernel takes the time from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import HOST, Box, guest
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.checks.engine.wording import counted, first_of
from dgxcheck.facts.host import CpuPolicy, Host
from dgxcheck.facts.missing import Missing, need, rows

Judged = Iterator[tuple[Subject, Judgement]]
_POLICIES = "/sys/devices/system/cpu/cpufreq"
_SLOW_SOURCES = ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies")
"""Each read of these takes a microsecond or more, where the time stamp counter takes 20 ns."""


def _clock(box: Box) -> Judged:
    yield HOST, ruled(_limits, box)


def _limits(box: Box) -> Judgement:
    facts = need(box.snapshot.host)
    if isinstance(facts.cpu_policies, Missing) and isinstance(facts.cpu_boost, Missing):
        need(facts.cpu_policies)
    policies = rows(facts.cpu_policies)
    wrong = [*_boost(facts), *_lowered(policies), *_governors(policies)]
    if not wrong:
        return Judgement(Status.PASS, "no setting keeps CPUs below their highest clock")
    message = "; ".join(text for text, _ in wrong)
    return Judgement(Status.WARN, message, evidence=tuple(fact for _, fact in wrong), fault=Fault.CPU_CLOCK)


def _boost(facts: Host) -> Iterator[tuple[str, Evidence]]:
    if facts.cpu_boost is False:
        yield "boost (turbo) is off", Evidence(f"{_POLICIES}/boost", False)


def _lowered(policies: Sequence[CpuPolicy]) -> Iterator[tuple[str, Evidence]]:
    """CPUs whose limit is below what they can do; cores of one kind can have different highest clocks."""
    low = {
        policy.name: policy.limit_khz
        for policy in policies
        if isinstance(policy.limit_khz, int) and isinstance(policy.highest_khz, int)
        if policy.limit_khz < policy.highest_khz
    }
    if low:
        ghz = min(low.values()) / 1e6
        yield f"{first_of([*low])} limited to {ghz:g} GHz", Evidence(f"{_POLICIES}/*/scaling_max_freq", {**low})


def _governors(policies: Sequence[CpuPolicy]) -> Iterator[tuple[str, Evidence]]:
    """A governor that differs from that of most CPUs; what most have is host.governor's."""
    known = {policy.name: policy.governor for policy in policies if isinstance(policy.governor, str)}
    if len({*known.values()}) > 1:
        usual, _ = Counter(known.values()).most_common(1)[0]
        odd = {name: governor for name, governor in known.items() if governor != usual}
        words = ", ".join(dict.fromkeys(odd.values()))
        text = f"{first_of([*odd])} with governor {words}, {counted(len(known) - len(odd), 'other')} with {usual}"
        yield text, Evidence(f"{_POLICIES}/*/scaling_governor", {**odd})


def _source(box: Box) -> Judged:
    yield HOST, ruled(_clock_source, box)


def _clock_source(box: Box) -> Judgement:
    name = need(need(box.snapshot.host).clock_source)
    evidence = (Evidence("/sys/devices/system/clocksource/clocksource0/current_clocksource", name),)
    if (vm := guest(box)) is not None:
        return skip("not-visible", f"{vm} gives its guest a clock of its own: {name}", *evidence)
    slow = name in _SLOW_SOURCES
    status, fault = (Status.WARN, Fault.CLOCK_SOURCE) if slow else (Status.PASS, None)
    message = f"clock source {name}" + (", expected tsc" if slow else "")
    return Judgement(status, message, name, "tsc" if slow else None, evidence=evidence, fault=fault)


CHECKS = (
    Check(
        id="host.cpu-clock",
        rule="Warns if boost is off, if the limit of a CPU's clock is below its highest clock, and if some CPUs have"
        " another governor than most.",
        source="cpufreq/boost, intel_pstate/no_turbo and cpufreq/policy* of /sys/devices/system/cpu",
        remedy="if this was not intended, cpupower frequency-set with the highest clock as -u and one governor for all"
        " CPUs, and enable boost (echo 1 > cpufreq/boost, echo 0 > intel_pstate/no_turbo, or the firmware's setting)",
        judge=_clock,
        blames=host("CPU clock setting"),
    ),
    Check(
        id="host.clock-source",
        rule="Warns if the kernel does not take the time from the CPU's time stamp counter but from a slow timer of the"
        " chip set: it found the counter unstable, or a parameter chose it. Not judged in virtual machines.",
        source="current_clocksource of /sys/devices/system/clocksource; Meta GCM checks it",
        remedy="look for 'Marking clocksource tsc unstable' in the kernel log and for clocksource= and tsc= on the"
        " kernel command line; update the system firmware, then reboot",
        judge=_source,
        blames=host("clock source"),
    ),
)
