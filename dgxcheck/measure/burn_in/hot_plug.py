"""Devices added or removed while a machine is watched, from udev or from the kernel itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dgxcheck.facts.record import Record

ACTIONS = ("add", "remove")


class Change(Record, kw_only=False):
    """One device that came or went."""

    action: str
    subsystem: str
    name: str
    """``0000:0a:00.0``, ``mlx5_0``, ``card1``"""
    path: str
    """``/devices/pci0000:00/0000:00:02.0/0000:0a:00.0/drm/card1``"""


class HotPlug:
    """Receives events from its construction on. Only this class imports pyudev."""

    def __init__(self, subsystems: Sequence[str] = ("pci",), source: Literal["udev", "kernel"] = "udev") -> None:
        """``kernel``: as the kernel sends them, without udevd, which can be delayed or absent."""
        self.trouble = ""
        """Why no events are received; empty if they are."""
        self.lost = False
        """Were events received, and are not any more?"""
        self._monitor: Any = None
        try:
            import pyudev

            monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source=source)
            for subsystem in subsystems:
                monitor.filter_by(subsystem)
            monitor.start()
            self._monitor = monitor
        except (ImportError, OSError) as error:  # no libudev here, no netlink in this container
            self.trouble = f"PCI hot-plug events not monitored: {error}"

    def fileno(self) -> int:
        """Readable when there is an event; -1 where none are received."""
        return -1 if self._monitor is None else int(self._monitor.fileno())

    def changes(self) -> list[Change]:
        """Since it was last asked."""
        found: list[Change] = []
        while self._monitor is not None:
            try:
                device = self._monitor.poll(timeout=0)
            except OSError as error:
                self.trouble = f"PCI hot-plug events no longer monitored: {error}"
                self._monitor, self.lost = None, True
                break
            if device is None:
                break
            if device.action in ACTIONS:
                names = (device.subsystem, device.sys_name, device.device_path)
                found.append(Change(str(device.action), *map(str, names)))
        return found
