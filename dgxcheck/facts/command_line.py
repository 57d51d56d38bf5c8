"""Parameters of the kernel command line (``/proc/cmdline``)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator


def parameters(cmdline: str) -> tuple[tuple[str, str], ...]:
    """``pci=nomsi,noaer quiet`` as ``(("pci", "nomsi"), ("pci", "noaer"), ("quiet", ""))``, in the kernel's order.

    What follows ``--`` is for init.
    """
    return tuple(_split(cmdline.partition(" -- ")[0]))


def _split(cmdline: str) -> Iterator[tuple[str, str]]:
    try:
        words = shlex.split(cmdline)
    except ValueError:
        words = cmdline.split()
    for word in words:
        name, _, value = word.partition("=")
        for each in value.split(",") if value else ("",):
            yield name, each
