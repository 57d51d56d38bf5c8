"""What devices share: the firmware, fans, board or switch of several is one cause, and the first step is about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_whole_devices import causes

from dgxcheck.facts.missing import Json


def port_down(*devices: str) -> dict[str, Json]:
    return {f"text /sys/class/infiniband/{device}/ports/1/{name}": text for device in devices
            for name, text in (("state", "1: DOWN\n"), ("phys_state", "2: Polling\n"))}  # fmt: skip


def dead(bdf: str) -> str:
    return f"mlx5_core {bdf}: poll_health:889:(pid 0): Fatal error 1 detected"


@pytest.mark.parametrize(("base", "device", "bdf"), [
    ("hgx-h100", "mlx5_2", "0000:4f:00.0"), ("dgx-b300", "mlx5_12", "0000:57:00.0"),
])  # fmt: skip
def test_firmware_that_is_dead_comes_before_its_port_that_is_down(
    base: str, device: str, bdf: str, tmp_path: Path
) -> None:
    (cause,) = causes(tmp_path, base, port_down(device), (dead(bdf),))
    assert cause["id"] == f"hca/{bdf}"
    assert [each["action"] for each in cause["actions"]][:3] == ["drain", "inspect", "power-cycle"]
    assert f"mstdump {bdf}" in cause["actions"][1]["text"]
