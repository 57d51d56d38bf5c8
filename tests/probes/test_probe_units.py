"""systemd units: which run, by their control groups, and which a target wants."""

from __future__ import annotations

import pytest
from fake_source import FakeSource

from dgxcheck.facts.host import Unit
from dgxcheck.facts.missing import Gap, Missing
from probes.host.software import SERVICES, units

WANTS = "/etc/systemd/system/multi-user.target.wants"


def by_name(source: FakeSource) -> dict[str, Unit]:
    return {unit.name: unit for unit in units(source)}


@pytest.mark.parametrize("slice_", ["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice"])
def test_a_unit_runs_while_it_has_a_control_group(slice_: str) -> None:
    groups = ("systemd-journald", "nvidia-persistenced")
    found = by_name(FakeSource({f"{slice_}/{name}.service/cgroup.procs": "1\n" for name in groups}))
    assert {name for name, unit in found.items() if unit.running is True} == {"nvidia-persistenced"}
    assert {unit.running for unit in found.values()} == {True, False}


def test_where_the_groups_of_the_host_are_not_seen_nothing_is_known_to_stand_still() -> None:
    found = by_name(FakeSource({"/sys/fs/cgroup/memory.stat": "0\n"}))
    assert found.keys() == {*SERVICES}
    for unit in found.values():
        assert isinstance(unit.running, Missing)
        assert unit.running.gap is Gap.UNRECORDED


def test_a_unit_is_enabled_where_a_target_wants_it() -> None:
    denied = Missing(Gap.DENIED, f"{WANTS}/pbs.service")
    links: dict[str, str | Missing] = {
        f"{WANTS}/slurmd.service": "/usr/lib/systemd/system/slurmd.service", f"{WANTS}/pbs.service": denied,
    }  # fmt: skip
    found = {name: unit.enabled for name, unit in by_name(FakeSource({}, links)).items()}
    assert (found["slurmd"], found["kubelet"], found["pbs"]) == (True, False, denied)


def test_no_unit_is_asked_for_that_is_not_watched() -> None:
    source = FakeSource({})
    by_name(source)
    asked = {question.rpartition("/")[2].removesuffix(".service") for question in source.asked}
    assert asked == {*SERVICES, "systemd-journald"}
