"""Errors of the drivers of GPUs and HCAs in words that no other module of this room reads."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import PATTERN, as_bdf, unplaced
from dgxcheck.kernel_messages.alarm import mentions_error
from dgxcheck.kernel_messages.forms import form_of
from dgxcheck.lazy_pattern import LazyPattern

NVIDIA, MLX5 = "nvidia", "mlx5_core"
_NVIDIA = LazyPattern(
    r"(?:NVRM:?(?: GPU(?P<number>\d{1,2})\b)?|nvidia(?:-uvm|-nvlink|-nvswitch\d{0,3}|-fs|_peermem)?)[ :]",
    flags=re.ASCII,
)
_MLX5 = LazyPattern("mlx5_(?:core|ib)[ :]")
_BDF = LazyPattern(PATTERN)
_HARMLESS = LazyPattern(
    r"^.{1,15}[\[(]\d{1,10}[\])]: |nv(?:Assert|Check)\w{0,24}:(?!.*NO_MEMORY)|: module verification failed: "
    r"|\bACPI\b|_DSM\b|corruption and stability problems|ACCESS_REG|_cmd_|Port module event"
)
"""What begins with the name of a program, which its user chooses; assertions, which a driver that works logs too
(https://github.com/NVIDIA/open-gpu-kernel-modules/issues/402); a module without a signature, which is loaded all the
same (kernel/module/signing.c); methods of a laptop's firmware; the console of a machine with a VGA driver; commands of
an HCA that a restricted function may not run."""
_LONGEST = 400


def driver_error(message: str) -> tuple[str, str] | None:
    """``nvidia-uvm: .. failed ..``: the driver, and the bdf of its device, empty where it names none."""
    of_gpus = _NVIDIA.match(message)
    shown = message[:_LONGEST]
    if not (of_gpus or _MLX5.match(message)) or not mentions_error(shown) or _HARMLESS.search(shown):
        return None
    found = form_of(message)
    if found is not None and not found[0].context:
        return None
    number, bdf = of_gpus["number"] if of_gpus else None, _BDF.search(shown)
    named = as_bdf(bdf[0]) if bdf is not None else unplaced(int(number)) if number else ""
    return NVIDIA if of_gpus else MLX5, named or ""
