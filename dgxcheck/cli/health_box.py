"""What ``dgxcheck health`` judges: the facts of a source, and what they are held to."""

from __future__ import annotations

from math import inf

from dgxcheck.checks.catalogue import PROBES
from dgxcheck.checks.check import NO_GROWTH, Box, Growth
from dgxcheck.checks.finding import Judgement
from dgxcheck.cli.growth import since_last_run, within
from dgxcheck.cli.health_options import WINDOW, Asked
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.frozen import replace
from dgxcheck.profiles import library
from dgxcheck.reading import BadInput, Json, Missing
from dgxcheck.settings import Settings
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.survey import Snapshot, survey
from dgxcheck.topology.build import build

KERNEL_LOG = "kernel_log"
MEASUREMENT = "measurement"


def box(source: Source, asked: Asked, settings: Settings) -> Box:
    """Ask the source all that the checks want to know."""
    saved = None if asked.kernel_log is None else _saved(asked.kernel_log)
    unread = {KERNEL_LOG, MEASUREMENT} if asked.quick else {KERNEL_LOG} if saved is not None else set()
    facts = survey(source, [name for name in PROBES if name not in unread])
    if saved is not None:
        facts = replace(facts, kernel_log=saved)
    topology = build(facts.pci, facts.infiniband, facts.gpu, facts.nvlink, facts.gpu_pairs, facts.numa)
    choice = library.chosen(asked.profile, facts, topology)
    gpus = topology.gpus
    if asked.gpus:
        from dgxcheck.cli import select

        gpus = tuple(dict.fromkeys(select.gpus(topology, ",".join(asked.gpus))))
    return Box(
        snapshot=facts,
        topology=topology,
        gpus=gpus,
        settings=settings,
        choice=choice,
        boards={} if asked.profile == "none" else library.boards_for(choice),
        growth=NO_GROWTH if asked.quick else _growth(source, facts, asked),
    )


def _growth(source: Source, facts: Snapshot, asked: Asked) -> Growth | Judgement:
    """Counters at two times: in this run, in the recording, or against an earlier run."""
    if asked.window is not None:
        return within(source, asked.window)
    if source.origin.kind != "live":
        return within(source, inf)
    since = since_last_run(source, facts, asked.state)
    return within(source, WINDOW) if asked.extended and isinstance(since, Judgement) else since


def _saved(path: str) -> KernelLog | Missing:
    """A saved kernel log as facts."""
    from dgxcheck.source.kernel_log import kept
    from dgxcheck.source.recorded import RecordedSource
    from dgxcheck.source.saved_log import load

    if path == "-":
        raise BadInput("--kernel-log reads a file, not stdin; save the log as one first")
    lines: dict[str, Json] = {str(number): line for number, line in enumerate(kept(load(path)))}
    log = survey(RecordedSource({"kmsg": lines}, Origin("recording", path)), (KERNEL_LOG,)).kernel_log
    return replace(log, where=path)
