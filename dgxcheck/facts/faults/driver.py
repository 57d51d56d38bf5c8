"""Faults of the driver, its library and its services."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import FaultKind


class Driver:
    """In the order of the manual page."""

    # fmt: off
    LIBRARY_MISSING = FaultKind("software", steps=("change-setting",))
    LIBRARY_BROKEN = FaultKind("software", steps=("change-setting",))
    MODULE_REFUSED = FaultKind("software", steps=("change-setting", "load-module", "reboot"))
    MODULE_UNSIGNED = FaultKind("software", steps=("change-setting", "load-module", "reboot"))
    MODULE_NOT_BUILT = FaultKind("software", steps=("change-setting", "load-module", "reboot"))
    ADD_ON_MODULE = FaultKind("software", about=("host", "add-on modules"), steps=("change-setting",))
    GPU_REFUSED = FaultKind("software", steps=("change-setting", "reboot"))
    GPU_UNRECOGNISED = FaultKind("hardware", steps=("inspect", "power-cycle", "contact-vendor"))
    START_MEMORY = FaultKind("program", steps=("inspect", "load-module", "reboot"))
    DRIVER_NOT_LOADED = FaultKind("software", steps=("load-module", "reboot"))
    DRIVER_FAILED = FaultKind("software", steps=("inspect", "load-module", "reboot"))
    DRIVER_UNRESPONSIVE = FaultKind("software", steps=("reboot", "power-cycle"))
    DRIVER_MISMATCH = FaultKind("software", steps=("inspect", "load-module", "reboot"))
    CLIENT_MISMATCH = FaultKind("software")
    CUDA_TOO_NEW = FaultKind("program", about=("host", "CUDA of programs"), steps=("inspect",))
    GPU_BUSY = FaultKind("program", about=("host", "programs"), warns="watch", steps=("inspect",))
    NOUVEAU = FaultKind("software", steps=("change-setting", "reboot"))
    DRIVER_UNBOUND = FaultKind("software", steps=("load-module", "reboot"))
    DRIVER_OTHER = FaultKind("setting", warns="next-maintenance", steps=("change-setting",))
    MODULE_NOT_LOADED = FaultKind("software", warns="now", steps=("load-module",))
    PERSISTENCE_OFF = FaultKind("setting", about=("gpu", "persistence mode"))
    PERSISTENCE_UNSET = FaultKind("setting", warns="next-maintenance", fails="next-maintenance")
    DEVICE_NODE = FaultKind("software")
    FABRIC_MANAGER_VERSION = FaultKind("software", about=("fabric-manager", ""),
        steps=("change-setting", "restart-service", "reboot"))
    FABRIC_MANAGER_DOWN = FaultKind("software", about=("fabric-manager", ""),
        steps=("inspect", "restart-service", "reboot"))
    FABRIC_MANAGER_ERROR = FaultKind("software", about=("fabric-manager", ""))
    UMAD_MISSING = FaultKind("software", about=("fabric-manager", ""),
        steps=("load-module", "restart-service", "reboot"))
    FABRIC_FAILED = FaultKind("hardware", about=("gpu", "fabric"),
        steps=("inspect", "reset-gpu", "restart-service", "reboot"))
    NOT_READY = FaultKind("software")
