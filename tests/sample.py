"""Recordings that ship, by name; for tests that look at each finding's form, boxes and one fault of each kind."""

from __future__ import annotations

from pathlib import Path

from dgxcheck.source.recording.shipped import shipped

BY_NAME = dict(shipped())
FAULTS = {name: path for name, path in BY_NAME.items() if "faults" in Path(path).parts}
BOXES = [name for name in BY_NAME if name not in FAULTS]
SAMPLE = [
    *BOXES, "dgx-1-v100-container", "dgx-1-v100-disk-missing", "dgx-1-v100-ecc-aggregate", "dgx-1-v100-edac-corrected",
    "dgx-1-v100-gpu-lost", "dgx-1-v100-gpu-x8", "dgx-1-v100-hot", "dgx-1-v100-mismatch", "dgx-1-v100-no-nvml",
    "dgx-1-v100-nvlink-down", "dgx-1-v100-port-down", "dgx-1-v100-switch-aer", "dgx-1-v100-xid-48",
    "k80-x8-driver-hangs",
]  # fmt: skip
"""Findings of GPUs, pairs, ports, HCAs, bridges, disks, memory controllers and the host; every status."""
