"""PCI functions added or removed while a box is under load, from udev."""

from __future__ import annotations

from typing import Any

TOLD = ("add", "remove")


class HotPlug:
    """Receives events from its construction on. Only this class imports pyudev."""

    def __init__(self) -> None:
        self.trouble = ""
        """Why no events are received; empty if they are."""
        self._monitor: Any = None
        try:
            import pyudev

            monitor = pyudev.Monitor.from_netlink(pyudev.Context())
            monitor.filter_by("pci")
            monitor.start()
            self._monitor = monitor
        except (ImportError, OSError) as error:  # no libudev here, no netlink in this container
            self.trouble = f"PCI hot-plug events not monitored: {error}"

    def events(self) -> list[tuple[str, str]]:
        """``add`` or ``remove`` and the bus id, since it was last asked."""
        changes: list[tuple[str, str]] = []
        while self._monitor is not None:
            try:
                device = self._monitor.poll(timeout=0)
            except OSError as error:
                self.trouble = f"PCI hot-plug events no longer monitored: {error}"
                self._monitor = None
                break
            if device is None:
                break
            if device.action in TOLD:
                changes.append((device.action, str(device.sys_name)))
        return changes
