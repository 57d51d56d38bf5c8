"""PCI functions that come and go while a box is under load, as udev tells."""

from __future__ import annotations

from typing import Any

TOLD = ("add", "remove")


class HotPlug:
    """Listens from when it is made; pyudev is imported here and nowhere else."""

    def __init__(self) -> None:
        self.trouble = ""
        """Why nothing is heard."""
        self._monitor: Any = None
        try:
            import pyudev

            monitor = pyudev.Monitor.from_netlink(pyudev.Context())
            monitor.filter_by("pci")
            monitor.start()
            self._monitor = monitor
        except (ImportError, OSError) as error:  # no libudev here, no netlink in this container
            self.trouble = f"PCI hot-plug is not watched: {error}"

    def events(self) -> list[tuple[str, str]]:
        """``add`` or ``remove`` and the bus id, since it was last asked."""
        found: list[tuple[str, str]] = []
        while self._monitor is not None:
            try:
                device = self._monitor.poll(timeout=0)
            except OSError as error:
                self.trouble = f"PCI hot-plug is not watched any more: {error}"
                self._monitor = None
                break
            if device is None:
                break
            if device.action in TOLD:
                found.append((device.action, str(device.sys_name)))
        return found
