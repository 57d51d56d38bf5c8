"""Limits of the CPUs' clocks, the clock source, and CPUs that are offline by the kernel's own lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_health_checks import changed, status

from dgxcheck.facts.missing import Json

CPU = "/sys/devices/system/cpu"
SOURCE = "text /sys/devices/system/clocksource/clocksource0/current_clocksource"


def policies(*rows: tuple[str, int, int]) -> dict[str, Json]:
    """Governor, limit and highest clock in kHz of each."""
    facts: dict[str, Json] = {f"names {CPU}/cpufreq": [f"policy{number}" for number in range(len(rows))]}
    for number, (governor, limit, highest) in enumerate(rows):
        facts[f"text {CPU}/cpufreq/policy{number}/scaling_governor"] = f"{governor}\n"
        facts[f"text {CPU}/cpufreq/policy{number}/scaling_max_freq"] = f"{limit}\n"
        facts[f"text {CPU}/cpufreq/policy{number}/cpuinfo_max_freq"] = f"{highest}\n"
    return facts


FULL = ("performance", 3600000, 3600000)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, "skip not-supported"),
        (policies(FULL, FULL, FULL), "pass"),
        (policies(FULL, FULL, ("performance", 2200000, 3600000)), "warn"),
        (policies(FULL, FULL, ("powersave", 3600000, 3600000)), "warn"),
        (policies(FULL, ("performance", 2600000, 2600000)), "pass"),
        (policies(FULL) | {f"text {CPU}/cpufreq/boost": "0\n"}, "warn"),
        (policies(FULL) | {f"text {CPU}/cpufreq/boost": "1\n"}, "pass"),
        (policies(FULL) | {f"text {CPU}/intel_pstate/no_turbo": "1\n"}, "warn"),
        (policies(FULL) | {f"text {CPU}/intel_pstate/no_turbo": "0\n"}, "pass"),
        (policies(FULL) | {f"text {CPU}/cpufreq/policy0/scaling_max_freq": {"missing": "denied"}}, "pass"),
    ],
)  # fmt: skip
def test_limits(facts: dict[str, Json], expected: str, tmp_path: Path) -> None:
    path = Path(changed(tmp_path, {key: fact for key, fact in facts.items() if "/policy" not in key}))
    new = {key: fact for key, fact in facts.items() if "/policy" in key}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"add": new}))
    assert status(str(path), "host.cpu-clock", None) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, "skip not-recorded"), ({SOURCE: "tsc\n"}, "pass"), ({SOURCE: "hpet\n"}, "warn"),
        ({SOURCE: "acpi_pm\n"}, "warn"), ({SOURCE: "arch_sys_counter\n"}, "pass"), ({SOURCE: "kvm-clock\n"}, "pass"),
        ({SOURCE: "hpet\n", "text /sys/hypervisor/type": "xen\n"}, "skip not-visible"),
    ],
)  # fmt: skip
def test_clock_source(facts: dict[str, Json], expected: str, tmp_path: Path) -> None:
    assert status(changed(tmp_path, facts), "host.clock-source", None) == expected


@pytest.mark.parametrize(
    ("online", "present", "smt", "expected"),
    [
        ("0-79", "0-79", "on", "skip no-reference"),
        ("0-71", "0-79", "on", "warn"),
        ("0-79", "0-127", "on", "warn"),
        ("0-79", "0-79", None, "skip no-reference"),
    ],
)
def test_offline_cpus(online: str, present: str, smt: str | None, expected: str, tmp_path: Path) -> None:
    """Without a reference machine, the last ones too."""
    facts: dict[str, Json] = {f"text {CPU}/online": f"{online}\n", f"text {CPU}/present": f"{present}\n"}
    facts |= {} if smt is None else {f"text {CPU}/smt/control": f"{smt}\n"}
    assert status(changed(tmp_path, facts), "host.cpu", None) == expected


def test_second_threads_that_are_off_are_no_fault(tmp_path: Path) -> None:
    cpuinfo = "".join(f"processor\t: {n}\nphysical id\t: {n // 20}\ncore id\t: {n}\n\n" for n in range(40))
    facts: dict[str, Json] = {
        "text /proc/cpuinfo": cpuinfo, f"text {CPU}/online": "0-39\n", f"text {CPU}/present": "0-79\n",
    }  # fmt: skip
    for smt in ("off", "forceoff"):
        spec = changed(tmp_path, {**facts, f"text {CPU}/smt/control": f"{smt}\n"})
        assert status(spec, "host.cpu", None) == "skip no-reference"
    assert status(changed(tmp_path, {**facts, f"text {CPU}/smt/control": "on\n"}), "host.cpu", None) == "warn"
