"""``nvidia-healthmon.conf``, the limits of nvidia-healthmon: what of dgxcheck replaces each key.

Sections are ``[global]`` and the names of GPUs, ``;`` begins a comment; bandwidths are in MB/s. Source: the file that
came with the tool, kept in https://github.com/Microway/MCMS-OpenHPC-Recipe (dependencies/etc/nvidia-healthmon.conf).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded

TOOL = "nvidia-healthmon.conf"
_COPIES = "profile keys pcie.host-to-device and pcie.device-to-host (GB/s)"
_PEERS = "profile keys pcie.p2p-pix, pcie.p2p-soc .. (GB/s)"
REPLACED_BY: Mapping[str, str] = {
    "devices.tesla.count": "profile key gpu.count",
    "drivers.blacklist": "check driver.nouveau, which needs no setting",
    "bandwidth.warn": f"{_COPIES}, threshold measure.warn",
    "bandwidth.min": f"{_COPIES}, threshold measure.fail",
    "peer.bandwidth.warn": f"{_PEERS}, threshold measure.warn",
    "peer.bandwidth.min": f"{_PEERS}, threshold measure.fail",
    "pci.gen": "checks pcie.generation and pcie.path, which need no setting",
    "pci.width": "checks pcie.width and pcie.path, which need no setting",
    "temperature.warn": "threshold thermal.margin, below each GPU's own limit",
}
"""By key; profile keys: dgxcheck profiles --new; thresholds: dgxcheck-config(5)."""
_SECTION = re.compile(r"\[(?:global|(?:NVIDIA |Tesla |Quadro |GeForce )?[A-Z][\w. -]{1,60})\]")
_KEY = re.compile(r"(?P<key>[a-z][a-z.]{2,40})\s{0,40}=\s{0,40}(?P<value>\S.{0,200}|)")
_COMMENT = re.compile(r";.*")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One entry without facts for every key, which names its replacement; comments and sections belong to the first."""
    keys: dict[str, set[int]] = {}
    rest: set[int] = set()
    in_section = False
    for number, line in enumerate(bounded(lines)):
        text = line.strip()
        if _SECTION.fullmatch(text) or _COMMENT.fullmatch(text):
            in_section = in_section or text.startswith("[")
            rest.add(number)
        elif in_section and (match := _KEY.fullmatch(text)) and match["key"] in REPLACED_BY:
            keys.setdefault(match["key"], set()).add(number)
    if keys:
        keys[next(iter(keys))] |= rest
    return tuple(
        Imported(tool=f"{TOOL} ({key}: now {REPLACED_BY[key]})", facts={}, understood=frozenset(at))
        for key, at in keys.items()
    )
