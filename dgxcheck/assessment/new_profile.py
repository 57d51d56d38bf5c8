"""A profile made from a machine that is known to be good."""

from __future__ import annotations

import re
import time

from dgxcheck.assessment.machine import topology_of
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS, PROBES
from dgxcheck.facts.missing import BadInput, text_of
from dgxcheck.facts.record import replace
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


def new_profile(source: Source, name: str) -> tuple[Profile, str, tuple[str, ...]]:
    """What this machine has as the profile for those like it, where its numbers were read, and which checks fail now.

    BadInput where NVML lists no GPU.
    """
    facts = survey(source, PROBES)
    topology = topology_of(facts)
    if not any(gpu.index is not None for gpu in topology.gpus):
        raise BadInput("--new: NVML lists no GPU, so no profile can be made")
    product = text_of(facts.known_host.dmi.product_name).strip()
    date = source.origin.recorded_at[:10] or time.strftime("%Y-%m-%d", time.gmtime())
    read = f"read from {source.origin.name or 'the box'} on {date}"
    box = Box(snapshot=facts, topology=topology, gpus=topology.gpus, boards=library.boards_for(None))
    judged = run(replace(box, choice=library.select("auto", facts, topology)), CHECKS)
    failed = dict.fromkeys(finding.id for finding in judged if finding.status is Status.FAIL)
    return profile_of(box, name, product or name, product, read), read, (*failed,)
