"""A profile made from a machine that is known to be good."""

from __future__ import annotations

import re
import time

from dgxcheck.assessment.machine import topology_of
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.registry import PROBES
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.profiles import library
from dgxcheck.profiles.model import Profile
from dgxcheck.score.new_profile import profile_of
from dgxcheck.source.protocol import Source
from dgxcheck.survey import survey

NAME = re.compile("[a-z0-9][a-z0-9._-]*")


def check_name(name: str) -> None:
    """BadInput for what is no name of a profile."""
    if not NAME.fullmatch(name):
        raise BadInput(f"--new {name!r}: a name may contain only lower-case letters, digits, '.', '-' and '_'")


def new_profile(source: Source, name: str) -> tuple[Profile, str]:
    """What this machine has as the profile for those like it, and where its numbers were read.

    BadInput where NVML lists no GPU.
    """
    facts = survey(source, PROBES)
    topology = topology_of(facts)
    if not any(gpu.index is not None for gpu in topology.gpus):
        raise BadInput("--new: NVML lists no GPU, so no profile can be made")
    host = facts.host
    firmware_name = host.dmi.product_name if isinstance(host, Host) else host
    product = "" if isinstance(firmware_name, Missing) else firmware_name.strip()
    date = source.origin.recorded_at[:10] or time.strftime("%Y-%m-%d", time.gmtime())
    read = f"read from {source.origin.name or 'the box'} on {date}"
    box = Box(snapshot=facts, topology=topology, gpus=topology.gpus, boards=library.boards_for(None))
    return profile_of(box, name, product or name, product, read), read
