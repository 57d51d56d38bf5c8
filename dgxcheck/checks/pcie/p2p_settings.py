"""Settings between two GPUs that keep them from each other: the IOMMU's, and ACS of ports on their way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.pcie.acs import redirecting, redirects
from dgxcheck.checks.pcie.iommu import translated
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.locate import bridge_setting, is_below
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device


def stops(box: Box, a: Device, b: Device) -> Iterator[Component]:
    """The IOMMU first: while it translates the kernel needs the redirection."""
    if {a, b} & {*translated(box)}:
        yield host_part("IOMMU setting")
    ports = redirecting(box, a, b)
    for port in () if isinstance(ports, Missing) else ports:
        yield bridge_setting(port)
    if not isinstance(ports, Missing) and ports and _everywhere(box):
        yield host_part("ACS setting")


def _everywhere(box: Box) -> bool:
    """Do the ports above all GPUs redirect? Then firmware or kernel has told them to."""
    above = {gpu.path[-2] for gpu in box.topology.gpus if not isinstance(gpu.path, Missing) and len(gpu.path) > 2}
    return all(redirects(box, port) for port in above)


def stop_most(box: Box, below: str | None = None) -> list[Component]:
    """Of all GPUs that no NVLink joins, or of those below one bridge: the settings that stop the most pairs first."""
    gpus = [gpu for gpu in box.topology.gpus if below is None or is_below(gpu, below)]
    pairs = [(a, b) for a, b in combinations(gpus, 2) if not box.topology.link(a, b).nvlinks]
    return [setting for setting, _ in Counter(each for a, b in pairs for each in stops(box, a, b)).most_common()]
