"""Kernel modules that are loaded."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.host import Modules


def loaded(box: Box, *names: str) -> list[str]:
    """Which of these modules the kernel has."""
    modules = box.snapshot.modules
    return [each.name for each in modules.modules if each.name in names and each.loaded is True] if isinstance(
        modules, Modules
    ) else []  # fmt: skip
