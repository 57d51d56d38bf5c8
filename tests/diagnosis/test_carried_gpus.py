"""What resets or burns an adapter that is the PCIe switch of a GPU disturbs that GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from changed_box import causes, document

from dgxcheck.facts.missing import Json

DIED = "mlx5_core {}: poll_health:835:(pid 0): device's health compromised - reached miss count"
CLASS = "/sys/class/infiniband"


def disturbing(cause: Any) -> list[dict[str, Any]]:
    return [action for action in cause["actions"] if action["instruction"] == "finding-remedy"]


@pytest.mark.parametrize(("base", "bdf", "disturbed"), [
    ("dgx-b300", "0000:97:00.0", ["mlx5_14", "GPU4"]),
    ("gb300-nvl72", "0010:03:00.0", ["mlx5_2", "GPU3"]),  # by its DMA function
    ("dgx-h100", "0000:29:00.0", ["mlx5_1", "mlx5_2"]),
    ("hgx-h100", "0000:4f:00.0", ["mlx5_2"]),  # below the same switch, which is not its own
])  # fmt: skip
def test_a_reset_of_an_adapter(base: str, bdf: str, disturbed: list[str], tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, base, {}, (DIED.format(bdf),))
    (action,) = disturbing(cause)
    assert action["disturbs"] == disturbed
    assert (f"end the work on {disturbed[-1]}" in action["text"]) == disturbed[-1].startswith("GPU")
    steps = [each["action"] for each in cause["actions"]]
    assert steps.index("drain") < steps.index("inspect")


def test_new_firmware_for_an_adapter(tmp_path: Path) -> None:
    facts: dict[str, Json] = {f"text {CLASS}/mlx5_{number}/fw_ver": "40.47.1026\n" for number in range(10, 18)}
    facts |= {f"text {CLASS}/mlx5_{number}/board_id": "NVD0000000060\n" for number in range(10, 18)}
    facts[f"text {CLASS}/mlx5_14/fw_ver"] = "40.44.1036\n"
    found = document(tmp_path, "dgx-b300", facts)
    (cause,) = found["causes"]
    (action,) = disturbing(cause)
    assert action["disturbs"] == ["mlx5_14", "GPU4"]
    (told,) = (each for each in found["findings"] if each["id"] == "network.firmware" and each["status"] == "warn")
    assert "GPU4" in told["remedy"]
