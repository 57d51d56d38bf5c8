"""Devices that the kernel adds or removes, as events."""

from __future__ import annotations

from collections.abc import Collection

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.bdf import is_bdf
from dgxcheck.measure.burn_in.hot_plug import Change
from dgxcheck.watch.event import Event

SUBSYSTEMS = ("pci", "infiniband", "drm")


def hot_plug(change: Change, watched: Collection[str]) -> Event:
    """``watched`` are the bus ids of GPUs, NVSwitches and adapters: that anything else goes is no trouble."""
    parts = [part for part in change.path.split("/") if is_bdf(part)]
    bdf = parts[-1] if parts else ""
    device = f"PCI function {bdf}" if change.subsystem == "pci" else f"{change.subsystem} device {change.name}"
    removed = change.action == "remove"
    return Event(
        kind="hot-plug", status=Status.WARN if removed and bdf in watched else Status.PASS, bdf=bdf,
        code=f"{change.action} {change.subsystem}", text=f"{device} {'removed' if removed else 'added'}",
    )  # fmt: skip
