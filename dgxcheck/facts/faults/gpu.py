"""Faults of GPUs."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import (
    LINK_STEPS,
    RESET_STEPS,
    RMA_STEPS,
    FaultKind,
)


class Gpu:
    """In the order of the manual page."""

    # fmt: off
    # presence and identity of devices
    GPU_LOST = FaultKind("hardware", about=("gpu", ""))
    GPU_UNREADABLE = FaultKind("hardware", about=("gpu", ""), steps=("inspect", *RESET_STEPS, *LINK_STEPS))
    GPU_LOST_BEFORE = FaultKind("hardware", warns="watch", steps=("watch", *LINK_STEPS), alone=True)
    GPU_NOT_STARTED = FaultKind("hardware", about=("gpu", ""))
    GPU_UNPOWERED = FaultKind("hardware", steps=("inspect", *LINK_STEPS))
    GPU_STARTED_LATE = FaultKind("hardware", warns="watch", steps=("watch", *LINK_STEPS), alone=True)
    GPU_MISSING = FaultKind("hardware")
    MEMORY_HELD = FaultKind("program", steps=("inspect", "reset-gpu", "reboot"))
    WRONG_MODEL = FaultKind("hardware", warns="next-maintenance", fails="next-maintenance")
    DISAGREEMENT = FaultKind("software")
    CONTRADICTION = FaultKind("software")
    UNEQUAL = FaultKind("setting", warns="next-maintenance", fails="next-maintenance")
    DRIFT = FaultKind("setting", warns="next-maintenance")
    VERSION = FaultKind("software", warns="next-maintenance", fails="next-maintenance")
    MISPLACED = FaultKind("hardware", warns="next-maintenance", fails="next-maintenance")
    # a GPU's own parts
    RESET_REQUIRED = FaultKind("hardware", about=("gpu", ""))
    REBOOT_REQUIRED = FaultKind("hardware", about=("gpu", ""), steps=("reboot", "power-cycle", *RMA_STEPS))
    COMPUTE_PROHIBITED = FaultKind("setting")
    VGPU_UNLICENSED = FaultKind("setting", about=("host", "vGPU licence"), steps=("inspect",))
    VGPU_VERSION = FaultKind("software", about=("host", "vGPU software"), warns="now", steps=("inspect",))
    GPU_EXCLUDED = FaultKind("setting", about=("gpu", ""), steps=("inspect",))
    GPU_IN_USE = FaultKind("program", about=("gpu", ""), steps=("inspect", "reset-gpu", "reboot"))
    MIG_PENDING = FaultKind("setting", fails="next-drain")
    MIG_EMPTY = FaultKind("setting", steps=("inspect",))
    C2C_DOWN = FaultKind("hardware", steps=("inspect", "reboot", "field-diagnostic", "contact-vendor"))
    MEMORY_NODE = FaultKind("software", steps=("inspect", "reboot", "contact-vendor"))
    INFOROM = FaultKind("hardware", about=("gpu", "InfoROM"), warns="next-maintenance", fails="next-maintenance")
    ECC_OFF = FaultKind("setting", about=("gpu", "ECC mode"))
    ECC_PENDING = FaultKind("setting", about=("gpu", "ECC mode"), fails="next-drain")
    ECC_UNCORRECTED = FaultKind("hardware", about=("gpu", "memory"))
    ECC_CORRECTED = FaultKind("hardware", about=("gpu", "memory"), warns="watch", steps=("watch", *RMA_STEPS),
        alone=True)
    ECC_FLOOD = FaultKind("hardware", fails="next-drain", steps=RMA_STEPS)
    SRAM_EXCEEDED = FaultKind("hardware", about=("gpu", "memory"), steps=RMA_STEPS)
    MEMORY_FAULTY = FaultKind("hardware", about=("gpu", "memory"), steps=RMA_STEPS)
    RETIREMENT_PENDING = FaultKind("hardware", about=("gpu", "memory"), fails="next-drain", steps=RESET_STEPS,
        alone=True)
    PAGES_MANY = FaultKind("hardware", about=("gpu", "memory"), warns="watch", steps=("watch", *RMA_STEPS), alone=True)
    PAGES_GROWING = FaultKind("hardware", steps=RMA_STEPS)
    PAGES_EXHAUSTED = FaultKind("hardware", about=("gpu", "memory"), steps=RMA_STEPS)
    MEMORY_UNREPAIRABLE = FaultKind("hardware", about=("gpu", "memory"), steps=RMA_STEPS)
    REPAIR_PENDING = FaultKind("hardware", fails="next-drain", steps=RESET_STEPS, alone=True)
    REMAP_PENDING = FaultKind("hardware", about=("gpu", "memory"), fails="next-drain", steps=RESET_STEPS, alone=True)
    REMAP_DUE = FaultKind("hardware", steps=RESET_STEPS, alone=True)
    REMAP_FAILED = FaultKind("hardware", about=("gpu", "memory"), steps=RMA_STEPS)
    RETIREMENT_FAILED = FaultKind("hardware", about=("gpu", "memory"), steps=RMA_STEPS)
    ROWS_EXHAUSTED = FaultKind("hardware", about=("gpu", "memory"), steps=RMA_STEPS)
    ROWS_LOW = FaultKind("hardware", warns="watch", steps=("watch", *RMA_STEPS), alone=True)
    RECOVERY_REQUIRED = FaultKind("hardware", about=("gpu", ""), steps=("inspect", *RESET_STEPS))
    IMEX_RECOVERY = FaultKind("software", fails="next-drain", steps=("restart-service", "contact-vendor"))
    IMEX_DOWN = FaultKind("software", about=("host", "IMEX"), warns="next-maintenance", steps=("inspect",))
    IMEX_TWICE = FaultKind("software", about=("host", "IMEX"), warns="next-maintenance", steps=("inspect",))
    IMEX_NODES = FaultKind("environment", about=("host", "IMEX"), warns="next-maintenance", steps=("inspect",))
    DRAIN_AND_RESET = FaultKind("hardware", about=("gpu", ""), fails="next-drain", steps=(*RESET_STEPS, *RMA_STEPS),
        alone=True)
    DRAIN_REQUIRED = FaultKind("hardware", fails="next-drain", steps=("inspect", *RESET_STEPS), alone=True,
        disturbs="jobs")
    MEMORY_SIZE = FaultKind("hardware")
    OVERHEATING = FaultKind("environment", about=("gpu", "cooling"))
    HOTTER = FaultKind("environment", fails="next-drain")
    HEAT_SINK = FaultKind("environment", fails="next-drain", disturbs="host")
    THERMAL_SLOWDOWN = FaultKind("environment", about=("gpu", "cooling"))
    POWER_BRAKE = FaultKind("environment")
    HARDWARE_SLOWDOWN = FaultKind("hardware", about=("gpu", "cooling"))
    POWER_CAPPED = FaultKind("setting")
    POWER_LIMITED = FaultKind("setting", warns="next-maintenance")
    POWER_REACHED = FaultKind("hardware", steps=("inspect", *RMA_STEPS))
    POWER_VIOLATION = FaultKind("environment", about=("gpu", "power supply"))
    CLOCKS_STUCK = FaultKind("hardware", about=("gpu", ""), steps=("inspect", *RESET_STEPS, "power-cycle", *RMA_STEPS))
    CLOCKS_LOWERED = FaultKind("setting")
    CLOCKS_LIMITED = FaultKind("setting")
