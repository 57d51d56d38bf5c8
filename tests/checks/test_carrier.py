"""An Ethernet port that flaps: between two readings, and by the kernel log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from gpu_box import grown
from judging import judged, of_text

from dgxcheck.checks.engine.box import Growth
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace

NET = "/sys/class/net/{}"
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
E1 = "mlx5_core 0000:e1:00.0 eth0: Link down"


def carriers(
    folder: Path, base: str, lines: dict[float, str], now: dict[str, str], later: dict[str, str],
    more: Mapping[str, Json] | None = None,
) -> list[str]:  # fmt: skip
    """The warnings of host.carrier, by interface."""
    log: dict[str, Json] = {f"kmsg {n}": f"{at:.6f};{line}" for n, (at, line) in enumerate(lines.items(), 40)}
    facts: dict[str, Json] = {f"text {NET.format(name)}/carrier_down_count": f"{count}\n"
                              for name, count in now.items()}  # fmt: skip
    facts |= more or {}
    second = {NET.format(name): {"text": {"carrier_down_count": f"{count}\n"}} for name, count in later.items()}
    document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, "add": log}
    path = folder / "flaps.json"
    path.write_text(json.dumps(document | ({"later": [{"at_s": 60, "facts": second}]} if later else {})))
    findings = judged(str(path))[1]["findings"]
    return [each["subject"]["name"] for each in findings if each["id"] == "host.carrier" and each["status"] == "warn"]


@pytest.mark.parametrize(("base", "name", "now", "later", "due"), [
    ("gb200-nvl72", "eth4", "40", "46", ["eth4"]), ("dgx-b300", "eth0", "40", "46", ["eth0"]),
    ("dgx-b300", "eth0", "40", "45", []),
    ("dgx-b300", "eth0", "40", "2", []),  # its driver was loaded again
    ("dgx-b300", "eth0", "2", "2", []),
])  # fmt: skip
def test_between_two_readings(
    base: str, name: str, now: str, later: str, due: list[str], tmp_path: Path
) -> None:
    assert carriers(tmp_path, base, {}, {name: now}, {name: later}) == due


@pytest.mark.parametrize(("logged", "due"), [(0, []), (6, []), (50, []), (51, ["eth0"])])
def test_what_its_driver_did_not_log_was_the_driver_itself(logged: int, due: list[str], tmp_path: Path) -> None:
    """As for a new MTU, or another number of channels: it is the link only if that went down five times a day, too."""
    lines = {HOUR_S + n * 4 * HOUR_S: E1 if n % 2 else E1.replace("eth0", "renamed") for n in range(logged)}
    others = ("mlx5_core 0000:e2:00.0 eth9: Link down", "NETDEV WATCHDOG: eth9 (igb): transmit queue 3 timed out")
    lines |= {HOUR_S + n * HOUR_S + 60 * at: line for n in range(99) for at, line in enumerate(others, 1)}
    assert carriers(tmp_path, "dgx-b300", lines, {"eth0": "100"}, {}) == due


@pytest.mark.parametrize(("logged", "due"), [(0, []), (6, ["warn"])])
def test_since_the_last_run_its_driver_logged_them_or_was_it_itself(
    logged: int, due: list[str], tmp_path: Path
) -> None:
    carriers(tmp_path, "dgx-b300", {UPTIME_S - HOUR_S + n * MINUTE_S: E1 for n in range(logged)}, {"eth0": "40"},
             {"eth0": "46"})  # fmt: skip
    machine = grown(str(tmp_path / "flaps.json"))
    assert isinstance(machine.growth, Growth)
    since = replace(machine, growth=replace(machine.growth, seconds=2 * HOUR_S, logged=True))
    (check,) = [each for each in CHECKS if each.id == "host.carrier"]
    assert [each.status.value for each in run(since, [check]) if each.subject.name == "eth0"] == (due or ["pass"])


UPTIME_S = 10 * DAY_S
"""Of the base."""


@pytest.mark.parametrize(("start", "apart", "number", "due"), [
    (UPTIME_S - 3 * HOUR_S, 10 * MINUTE_S, 12, ["eth0"]),
    (UPTIME_S - 3 * HOUR_S, 10 * MINUTE_S, 5, []),
    (UPTIME_S - HOUR_S, 5.0, 200, ["eth0"]),
    (UPTIME_S - HOUR_S, 5.0, 20, []),  # a driver whose settings were changed
    (UPTIME_S - 3 * DAY_S, 10 * MINUTE_S, 12, []),  # over since days
    (20.0, 20.0, 12, []),  # while it comes up
    (UPTIME_S - 3 * DAY_S, DAY_S / 4, 12, []),  # five a day
])  # fmt: skip
def test_by_the_kernel_log(start: float, apart: float, number: int, due: list[str], tmp_path: Path) -> None:
    lines = {start + n * apart: E1 for n in range(number)}
    assert carriers(tmp_path, "dgx-b300", lines, {}, {}) == due


def test_an_interface_that_was_set_down(tmp_path: Path) -> None:
    lines = {UPTIME_S - HOUR_S + n * 5 * MINUTE_S: E1 for n in range(12)}
    down: dict[str, Json] = {f"text {NET.format('eth0')}/carrier": {"missing": "unsupported"}}
    assert not carriers(tmp_path, "dgx-b300", lines, {}, {}, down)


def test_a_link_that_flapped_and_is_down_now(tmp_path: Path) -> None:
    said = "ixgbe 0000:02:00.1 enp2s0f1: NIC Link is Down"
    lines = {UPTIME_S - 3 * HOUR_S + n * 10 * MINUTE_S: said for n in range(12)}
    down: dict[str, Json] = {f"text {NET.format('enp2s0f1')}/carrier": "0\n"}
    assert carriers(tmp_path, "dgx-1-v100", lines, {}, {}, down) == ["enp2s0f1"]
    assert not carriers(tmp_path, "dgx-1-v100", {}, {}, {}, down)


@pytest.mark.parametrize(("lines", "due"), [
    (("NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 0 timed out",), ["eth0"]),
    (("NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 0 timed out",
      "mlx5_core 0000:0c:00.0 eth0: TX timeout detected"), []),  # the adapter stands for it
])  # fmt: skip
def test_of_a_log_alone_a_queue_is_that_of_its_adapter(lines: tuple[str, ...], due: list[str], tmp_path: Path) -> None:
    text = "".join(f"[  100.{at:06d}] {line}\n" for at, line in enumerate(lines))
    found = of_text(text, tmp_path)[1]["findings"]
    of_carrier = [each for each in found if (each["id"], each["status"]) == ("host.carrier", "warn")]
    assert [each["subject"]["name"] for each in of_carrier] == due


QUEUE = "NETDEV WATCHDOG: enp226s0 (igb): transmit queue 3 timed out"


@pytest.mark.parametrize(("base", "line", "due"), [
    ("dgx-1-v100", "NETDEV WATCHDOG: ib1 (mlx5_core): transmit queue 0 timed out", ["ib1"]),
    ("dgx-a100", "mlx5_core 0000:0c:00.0 ib0: NETDEV WATCHDOG: CPU: 7: transmit queue 3 timed out 5124 ms", ["ib0"]),
    ("dgx-a100", "NETDEV WATCHDOG: ib44 (mlx5_core): transmit queue 0 timed out", []),
    ("dgx-a100", QUEUE, ["enp226s0"]),
])  # fmt: skip
def test_a_queue_of_ipoib_that_timed_out(base: str, line: str, due: list[str], tmp_path: Path) -> None:
    assert carriers(tmp_path, base, {3600.0: line}, {}, {}) == due


@pytest.mark.parametrize(("line", "due"), [
    ("INFO: task rsync:471 blocked for more than 120 seconds.", ["enp226s0"]),
    ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kworker/3:1:471]", []),
    ("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", []),
])  # fmt: skip
def test_a_queue_stalls_with_the_cpus(line: str, due: list[str], tmp_path: Path) -> None:
    assert carriers(tmp_path, "dgx-a100", {3600.0: line, 3610.0: QUEUE}, {}, {}) == due


@pytest.mark.parametrize(("down", "due"), [(("eth0",), ["eth0"]), (("eth1",), ["eth1"]), (("eth0", "eth1"), [])])
def test_a_link_of_a_bond_is_missed(down: tuple[str, ...], due: list[str], tmp_path: Path) -> None:
    """The RDMA device of the bond stays up on the other; without both network.port-state judges it."""
    facts: dict[str, Json] = {f"text {NET.format(name)}/carrier": "0\n" for name in down}
    assert carriers(tmp_path, "dgx-b300", {}, {}, {}, facts) == due
