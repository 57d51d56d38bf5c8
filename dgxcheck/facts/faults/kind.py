"""What is known of a kind of fault, whoever finds it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from dgxcheck.facts.record import Record
from dgxcheck.package_files import table

Category = Literal["hardware", "setting", "software", "program", "environment"]
"""Whose it is to put right. Environment: air, power, cables, switches and other hosts."""
Step = Literal[
    "watch", "inspect", "check-program", "restart-program", "drain", "stop-jobs", "restart-service", "load-module",
    "change-setting", "reset-gpu", "reboot", "power-cycle", "reseat", "field-diagnostic", "replace", "contact-vendor",
    "contact-host",
]  # fmt: skip
"""What is done, roughly from the least disruptive up."""
Steps = tuple[Step, ...]
Urgency = Literal["now", "next-drain", "next-maintenance", "watch"]
"""When a step is due; ``watch``: when it gets worse."""
Scope = Literal["none", "programs", "jobs", "traffic", "fabric", "device", "host"]
"""What a step disturbs: jobs on the GPUs named, traffic of the HCAs or ports named, new connections in the fabric, the
devices named, or everything on the host."""
About = Literal["", "gpu", "host", "link", "fabric-manager", "subnet-manager"]

RMA_STEPS: Steps = ("field-diagnostic", "replace")
"""Nothing is replaced before a field diagnostic (https://docs.nvidia.com/deploy/rma-process/index.html)."""
LINK_STEPS: Steps = ("power-cycle", "reseat", *RMA_STEPS)
ADAPTER_STEPS: Steps = ("power-cycle", "reseat", "replace")
RESET_STEPS: Steps = ("reset-gpu", "reboot")
NVSWITCH_STEPS: Steps = ("reboot", "power-cycle", "field-diagnostic", "contact-vendor")

NVLINK_XIDS = "Xid 74 (NVLink 5: 144 to 150)"
"""https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"""
NVSWITCHES_ON_PCI = "lspci -d 10de::0680; HGX B200 and later have them behind ConnectX adapters"
"""NVIDIA Fabric Manager guide (DU-09883), systems with NVSwitches of the fourth generation."""
OUTSIDE = (
    "run nvidia-smi on the host itself: if it works there and not in a container, restart the container (systemctl"
    " daemon-reload removes its access to /dev/nvidia*)"
)
FIELD_DIAGNOSTIC = "run the vendor's field diagnostic (or dcgmi diag -r 3); if it fails, ask for a replacement"

RMA = "https://docs.nvidia.com/deploy/rma-process/index.html"
DEBUG = "https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html"
MEMORY = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"
PAGES = "https://docs.nvidia.com/deploy/dynamic-page-retirement/index.html"
XIDS = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
FM = "NVIDIA Fabric Manager guide (DU-09883)"
README = "NVIDIA driver README"
NCCL = "NVIDIA NCCL user guide, troubleshooting"
NVML = "nvml.h"
SMI = "nvidia-smi(1), GPU Recovery Action"
OWN = "dgxcheck's own"


SOLDERED = (
    "read what the BMC logged of the memory (ipmitool sel elist); it is soldered beside the CPU: with it the vendor"
    " replaces the tray or its board"
)


class FaultKind(Record, kw_only=False, many=True):
    """One row of the table, whose texts are in ``texts.tsv``. Each kind exists once, as a constant of ``Fault``, and is
    compared as such.
    """

    category: Category
    about: tuple[About, str] = ("", "")
    """Whose, and which part of it, where another tool reports the fault of a GPU or host as a whole."""
    warns: Urgency = "next-drain"
    """When it is due where it only warns."""
    fails: Urgency = "now"
    steps: Steps = ()
    """Empty: those of the component to blame."""
    alone: bool = False
    """Do the steps hold only where nothing else is wrong with the component?"""
    soldered: str = ""
    """The remedy where it is memory that is soldered beside the CPU, as LPDDR5X of a Grace: others have DIMMs."""
    disturbs: Scope = "none"
    """What the remedy disturbs, where it does more than look or set."""
    word: str = ""
    """The name of the constant, as in the JSON member ``fault``; dgxcheck-health(1) lists all."""

    @property
    def meaning(self) -> str:
        """In a few words."""
        return self._text("meaning")

    @property
    def remedy(self) -> str:
        """That of a finding whose check knows no better; empty: that of the check."""
        return self._text("remedy")

    @property
    def source(self) -> str:
        """Of steps and remedy."""
        return self._text("source")

    def _text(self, column: str) -> str:
        return _texts(self.word)[column].format_map(globals())

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "word", name.lower().replace("_", "-"))

    def __hash__(self) -> int:
        return hash(self.word)


@cache
def _texts(word: str) -> Mapping[str, str]:
    """The row of a fault; read when one is asked for."""
    return next(table("facts/faults/texts.tsv", word))
