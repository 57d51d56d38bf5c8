"""What follows from a fault, and is found beside it, takes neither the place of its remedy nor a cause of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_public_reports import OFF, lost, xid
from test_whole_devices import DIED, causes

from dgxcheck.facts.missing import Json

PCI = "/sys/bus/pci/devices"


def all_ones(bdf: str) -> dict[str, Json]:
    return {f"data {PCI}/{bdf}/config": {"size": 64, "rows": {f"0{row}0": "f" * 32 for row in range(4)}},
            f"text {PCI}/{bdf}/current_link_speed": "Unknown\n", f"text {PCI}/{bdf}/current_link_width": "63\n"}


@pytest.mark.parametrize(("base", "bus", "index", "port"), [
    ("dgx-h100", "43", 1, "0000:42:00.0"), ("l40s-x8", "9b", 4, "0000:9a:00.0"),
])  # fmt: skip
def test_a_slot_whose_gpu_fell_off_the_bus_was_not_pulled(
    base: str, bus: str, index: int, port: str, tmp_path: Path
) -> None:
    """Linux drivers/pci/hotplug/pciehp_ctrl.c: whatever ends the link, the slot logs that its link and card are gone.
    NVIDIA's action for Xid 79 is RESTART_BM."""
    slot = f"pcieport {port}: pciehp: Slot(17): "
    log = (slot + "Link Down", slot + "Card not present", xid(bus, 79, OFF))
    (cause,) = causes(tmp_path, base, lost(bus, index), log)
    assert cause["id"] == f"gpu/0000:{bus}:00.0"
    assert [each["action"] for each in cause["actions"]][:3] == ["drain", "reboot", "power-cycle"]


def test_a_slot_that_lost_an_unknown_device_is_looked_at(tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, "l40s-x8", {}, ("pcieport 0000:9a:00.0: pciehp: Slot(5): Link Down",))
    assert (cause["action"]["action"], "pulled" in cause["action"]["text"]) == ("inspect", True)


def test_the_port_of_an_adapter_that_is_gone_needs_no_cable(tmp_path: Path) -> None:
    bdf, port = "0000:40:00.0", "/sys/class/infiniband/mlx5_3/ports/1"
    down = {f"text {port}/state": "1: DOWN\n", f"text {port}/phys_state": "2: Polling\n"}
    (cause,) = causes(tmp_path, "dgx-h100", {**all_ones(bdf), **down}, (f"mlx5_core {bdf}: {DIED[1]}",))
    assert (cause["id"], cause["action"]["action"]) == (f"hca/{bdf}", "inspect")
    assert "lspci -x" in cause["action"]["text"]
    assert "cable" not in cause["action"]["text"]
