"""What ``dgxcheck health`` judges: the facts of a source, and what they are held to."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS, PROBES
from dgxcheck.cli import xid_history
from dgxcheck.cli.growth import loaded, since_last_run, within
from dgxcheck.cli.health.options import WINDOW, Asked
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import BadInput, Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.profiles import library
from dgxcheck.settings import Settings
from dgxcheck.source import state_file
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.survey import Snapshot, survey
from dgxcheck.topology.build import build

if TYPE_CHECKING:
    from dgxcheck.difference.model import Compared
    from dgxcheck.source.debug_log import DebugLog

KERNEL_LOG = "kernel_log"
MEASUREMENT = "measurement"
LOADED = ("measure.", "pcie.width", "pcie.generation")
"""What the checks begin with that judge what was measured."""
BURN_IN = "measure.burn-in"


def box(
    source: Source, asked: Asked, settings: Settings, checks: Sequence[Check], root: str = "/",
    log: DebugLog | None = None,
) -> Box:  # fmt: skip
    """Ask the source all that the checks want to know; with ``-e``, measure the live machine, whose files are in
    ``root``. What happens during a burn-in goes to the ``log``.
    """
    saved = None if asked.kernel_log is None else _saved(asked.kernel_log)
    live = source.origin.kind == "live"
    unread = {name for name, is_so in ((KERNEL_LOG, asked.quick or saved is not None),
                                       (MEASUREMENT, asked.quick or live)) if is_so}  # fmt: skip
    facts = survey(source, [name for name in PROBES if name not in unread])
    if saved is not None:
        facts = replace(facts, kernel_log=saved)
    elif live and asked.state is not None and isinstance(facts.kernel_log, KernelLog):
        kept = state_file.read(asked.state)
        earlier = () if kept is None else xid_history.read(kept.xids, state_file.now()[1])
        facts = replace(facts, kernel_log=replace(facts.kernel_log, earlier=earlier))
    topology = build(facts.pci, facts.infiniband, facts.gpu, facts.nvlink, facts.gpu_pairs, facts.numa)
    choice = library.chosen(asked.profile, facts, topology)
    gpus = topology.gpus
    if asked.gpus:
        from dgxcheck.cli import device_ids

        gpus = tuple(dict.fromkeys(device_ids.gpus(topology, ",".join(asked.gpus))))
    found = Box(
        snapshot=facts,
        topology=topology,
        gpus=gpus,
        settings=settings,
        choice=choice,
        boards={} if asked.profile == "none" else library.boards_for(choice),
    )
    if live and asked.extended:
        found = _measured(found, source, asked, checks, root, log)
    if asked.baseline is not None:
        found = replace(found, drift=_drift(asked.baseline, source, found))
    if asked.quick or asked.duration is not None:
        return found
    return replace(found, growth=_growth(source, facts, asked))


def _drift(spec: str, source: Source, found: Box) -> Compared:
    """What differs from an earlier recording of this box."""
    from dgxcheck.cli.diff_sides import called_as, namespace, side_of
    from dgxcheck.difference.compare import compare
    from dgxcheck.difference.model import Side
    from dgxcheck.source.recording.shipped import open_source

    old = side_of(open_source(spec))
    new = Side(snapshot=found.snapshot, topology=found.topology, namespace=namespace(source))
    return compare(called_as(old, new.namespace), called_as(new, old.namespace))


def _measured(
    found: Box, source: Source, asked: Asked, checks: Sequence[Check], root: str, log: DebugLog | None
) -> Box:  # fmt: skip
    """The box with what was measured, and with a burn-in's growth of counters and kernel log."""
    from dgxcheck.cli import measuring

    judged = [check for check in CHECKS if check.id.startswith("measure.")]

    def with_facts(measurement: measuring.Measured) -> Box:
        return replace(found, snapshot=replace(found.snapshot, measurement=measurement))

    facts: dict[str, Json] = {}
    whole = True
    if any(check.id.startswith(LOADED) and check.id != BURN_IN for check in checks):
        facts, whole = measuring.measured(
            found.snapshot, found.topology, found.gpus, lambda facts: run(with_facts(facts), judged),
            asked.test_seconds, asked.long,
        )  # fmt: skip
    growth, kernel_log = found.growth, found.snapshot.kernel_log
    if asked.duration is not None:
        from dgxcheck.cli import burning

        if whole:
            asking = burning.Asking(seconds=asked.duration, test_seconds=asked.test_seconds, root=root, log=log)
            burned = burning.burned(found, source, asking, burning.refused(found, facts))
            facts |= burned.facts
            growth, kernel_log = burned.growth, burned.kernel_log
        else:
            facts |= burning.interrupted(asked.duration)
    if facts and whole:
        measuring.keep(found.snapshot, facts)
    if facts:
        found = with_facts(measuring.as_facts(facts))
    return replace(found, growth=growth, snapshot=replace(found.snapshot, kernel_log=kernel_log))


def _growth(source: Source, facts: Snapshot, asked: Asked) -> Growth | Judgement:
    """Counters at two times: in this run, in the recording, or against an earlier run."""
    if asked.window is not None:
        return within(source, asked.window)
    if source.origin.kind != "live":
        return within(source, inf)
    return loaded(source, facts, asked.state, WINDOW) if asked.extended else since_last_run(source, facts, asked.state)


def _saved(path: str) -> KernelLog | Missing:
    """A saved kernel log as facts."""
    from dgxcheck.source.kernel_log.kmsg import kept
    from dgxcheck.source.kernel_log.saved import load
    from dgxcheck.source.recording.replay import RecordedSource

    if path == "-":
        raise BadInput("--kernel-log cannot read '-'; save the log to a file first")
    lines: dict[str, Json] = {str(number): line for number, line in enumerate(kept(load(path)))}
    log = survey(RecordedSource({"kmsg": lines}, Origin("recording", path)), (KERNEL_LOG,)).kernel_log
    return replace(log, where=path)
