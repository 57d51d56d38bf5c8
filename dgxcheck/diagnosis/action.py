"""An action as data: the step, what to type, what to do by hand, what it disturbs and when it is due.

``output`` makes the English: no sentence stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.faults.kind import Step, Urgency
from dgxcheck.facts.record import Record

Scope = Literal["none", "programs", "jobs", "traffic", "fabric", "device", "host"]
"""What a step disturbs: jobs on the GPUs named, traffic of the HCAs or ports named, new connections in the fabric, the
devices named, or everything on the host."""
Code = Literal[
    "finding-remedy",  # the remedy of the finding ``remedy_of``
    # before anything that disturbs
    "drain-host", "drain-scheduler", "stop-gpu-clients", "stop-gpu-clients-and-display", "stop-gpu-programs",
    "stop-load",
    # resets and restarts
    "reset-one", "reset-named", "reset-together", "reset-with-fabric-manager", "reset-all-with-switches", "reboot",
    "power-cycle", "power-cycle-tray",
    "restart-fabric-manager", "restart-imex", "restart-subnet-manager", "reload-driver",
    # settings
    "command", "take-back-setting", "take-back-or-reset", "default-power-limit", "persistence", "large-bars",
    "pcie-setting", "nccl-settings", "nvlink-setting", "memory-channels", "driver-library",
    "enable-port",
    "disable-acs", "socket-links", "peer-traffic", "peer-through-root",
    # diagnostics
    "field-diagnostic", "watch-counters", "check-program", "restart-program",
    # what is looked at
    "inspect-link", "inspect-rack-fabric",
    "inspect-airflow", "inspect-water-cooling", "inspect-power", "inspect-dimms", "inspect-cabling",
    "inspect-far-end",
    # what is taken out
    "reseat-card", "reseat-dual-gpu-card", "reseat-carrier", "reseat-adapter", "reseat-cable", "reseat-disk",
    "reseat-dimms", "move-cards", "move-adapter", "reseat-part",
    "reseat-drive",
    "replace-card", "replace-dual-gpu-card", "replace-carrier", "replace-adapter", "replace-cable", "replace-disk",
    "replace-one-disk", "replace-dimms", "restore-array", "replace-part",
    # what only the vendor does
    "vendor-gpu-tray", "vendor-water-cooled", "vendor-board", "vendor-missing-device",
]  # fmt: skip
Value = str | int | tuple[str, ...]


class Instruction(Record):
    """What to do by hand or to know beside the commands, as a code with its parameters."""

    code: Code
    values: Mapping[str, Value] = {}
    """Names and figures that the sentence needs: ``slot``, ``gpus``, ``services`` ..."""


class Action(Record):
    """One step."""

    step: Step
    commands: tuple[tuple[str, ...], ...] = ()
    """What to type, in order, each as an argument list; empty where all is done by hand."""
    instruction: Instruction
    remedy_of: str = ""
    """Key of the finding whose remedy is the instruction (code ``finding-remedy``)."""
    disturbs: tuple[str, ...] = ()
    """Names of the devices whose jobs or traffic stop; empty for none, and for the whole host."""
    scope: Scope = "none"
    urgency: Urgency = "now"


PREPARATORY = ("drain", "stop-jobs")
"""Steps that cure nothing where another follows them."""


def first_remedy(actions: tuple[Action, ...]) -> Action:
    """The first action that can help: that after draining the host and stopping its jobs."""
    return next((action for action in actions if action.step not in PREPARATORY), actions[-1])
