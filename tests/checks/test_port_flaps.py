"""An InfiniBand port that went down, by what the kernel logs of its state (drivers/infiniband/core/cache.c)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judging import judged

from dgxcheck.facts.missing import Json

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
UPTIME_S = 10 * DAY_S
"""Of the base."""
PORT = "mlx5_core 0000:c0:00.0 mlx5_9: Port: 1 Link "
STATE = "text /sys/class/infiniband/mlx5_9/ports/1/"


def of_port(folder: Path, lines: list[tuple[float, str]], facts: dict[str, Json] | None = None) -> dict[str, str]:
    """Status and message of what is found of the port, by check."""
    log = {f"kmsg {n}": f"{at:.6f};{line}" for n, (at, line) in enumerate(lines, 40)}
    path = folder / "flaps.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-h100", "facts": facts or {}, "add": log}))
    findings = judged(str(path))[1]["findings"]
    return {each["id"]: f"{each['status']}: {each['message']}" for each in findings
            if each["subject"]["name"] == "mlx5_9/1"}  # fmt: skip


def cycle(at: float) -> list[tuple[float, str]]:
    return [(at, f"{PORT}DOWN"), (at + 3, f"{PORT}INIT"), (at + 4, f"{PORT}ACTIVE")]


@pytest.mark.parametrize(("start", "apart", "number", "status"), [
    (UPTIME_S - HOUR_S, 10 * MINUTE_S, 3, "warn"),
    (UPTIME_S - HOUR_S, 10 * MINUTE_S, 2, "pass"),  # somebody moved the cable
    (UPTIME_S - HOUR_S, 10.0, 5, "pass"),  # at once
    (10.0, 40.0, 5, "pass"),  # while it comes up after boot
    (UPTIME_S - 5 * DAY_S, 10 * MINUTE_S, 9, "pass"),  # long over
])  # fmt: skip
def test_flaps(start: float, apart: float, number: int, status: str, tmp_path: Path) -> None:
    lines = [line for n in range(number) for line in cycle(start + n * apart)]
    assert of_port(tmp_path, lines)["kernel.port-module"].startswith(status)


def test_not_of_ethernet_nor_before_the_cable_was_replaced(tmp_path: Path) -> None:
    lines = [line for n in range(4) for line in cycle(UPTIME_S - HOUR_S + n * 5 * MINUTE_S)]
    ethernet: dict[str, Json] = {f"{STATE}link_layer": "Ethernet\n"}
    assert of_port(tmp_path, lines, ethernet)["kernel.port-module"].startswith("pass")
    plugged = "mlx5_core 0000:c0:00.0: Port module event: module 0, Cable plugged"
    assert of_port(tmp_path, [*lines, (UPTIME_S - MINUTE_S, plugged)])["kernel.port-module"].startswith("pass")


SINCE = UPTIME_S - 2 * HOUR_S
MODULE = "mlx5_core 0000:c0:00.0: Port module event: module 0, Cable "
NO_CABLE = ": no cable or transceiver is plugged in"


@pytest.mark.parametrize(("lines", "why"), [
    ([(SINCE, f"{PORT}DOWN")], ": it went down 2 hours ago"),
    ([(SINCE, f"{PORT}DOWN".replace("c0:00.0 mlx5_9", "18:00.0 mlx5_0"))], ""),
    ([(SINCE, f"{PORT}DOWN".replace("Port: 1", "Port: 2"))], ""),
    ([(SINCE, f"{PORT}ACTIVE")], ""),
    ([(SINCE, f"{MODULE}unplugged")], NO_CABLE), ([(SINCE, f"{MODULE}unplugged".replace("c0:", "18:"))], ""),
    ([(SINCE, f"{MODULE}unplugged"), (SINCE + 9, f"{MODULE}plugged")], ""),
    ([(SINCE, f"{MODULE}unplugged"), (SINCE + 9, f"{PORT}DOWN")], NO_CABLE),
])  # fmt: skip
def test_a_port_that_is_down_says_why_and_since_when(lines: list[tuple[float, str]], why: str, tmp_path: Path) -> None:
    facts: dict[str, Json] = {f"{STATE}state": "1: DOWN\n", f"{STATE}phys_state": "2: Polling\n"}
    assert of_port(tmp_path, lines, facts)["network.port-state"] == f"warn: port is DOWN (polling){why}"
