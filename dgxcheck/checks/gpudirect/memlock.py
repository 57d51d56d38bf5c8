"""GPUDirect RDMA: whether its users may lock the memory that they register."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.checks.engine.precondition import Precondition, needs_facts
from dgxcheck.checks.gpudirect.preconditions import of_host, rdma_configured
from dgxcheck.facts.host import JobDaemon, Limit, Memlock, Setting
from dgxcheck.facts.missing import Missing, need

_OWN = "/proc/self/limits"
_SYSTEM = "/etc/systemd/system.conf"
_RESTART = {"slurmd": "run {} (running jobs continue with the old limit)"}
_DRAIN = "drain this node and run {}"


@needs_facts
def memlock(box: Box) -> Precondition:
    """The limits of this session and of the jobs of each daemon; root itself is not limited."""
    facts = need(box.snapshot.memlock)
    for daemon in facts.daemons:
        hard = daemon.limit.hard if isinstance(daemon.limit, Limit) else None
        if isinstance(hard, int) and not _covers_gpu(box, hard):
            return _jobs(box, facts, daemon, hard)
    soft = need(need(facts.own).soft)
    if soft is None:
        evidence = Evidence(_OWN, "unlimited")
        return Precondition("ready", Judgement(Status.PASS, "locked memory is unlimited", evidence=(evidence,)))
    return _session(box, facts, soft)


def _session(box: Box, facts: Memlock, soft: int) -> Precondition:
    evidence = Evidence(_OWN, soft)
    message = f"locked memory of this session is limited to {soft >> 10} KiB"
    if _covers_gpu(box, soft):
        message += ", more than a GPU's memory"
        return Precondition("ready", Judgement(Status.PASS, message, evidence=(evidence,)))
    if _is_root(box):
        message += ", which does not apply to root"
        free = [daemon for daemon in facts.daemons if isinstance(daemon.limit, Limit) and daemon.limit.hard is None]
        if free:
            message += f"; jobs of {free[0].name} have no limit"
            return Precondition("ready", Judgement(Status.PASS, message, evidence=(evidence,)))
        message += "; jobs have the limit of their own session or daemon"
        return Precondition("ready", skip("not-configured", message, evidence))
    if not rdma_configured(box):
        return Precondition("no", skip("not-configured", message, evidence))
    line = _line_with(facts, soft)
    of_limits = line is not None and not _is_unit(line)
    remedy = f"set unlimited in {_place(line)}, then log in again" if line is not None and of_limits else ""
    return _too_low(message, soft, evidence, line, remedy)


def _jobs(box: Box, facts: Memlock, daemon: JobDaemon, hard: int) -> Precondition:
    """Of a job slurmd sets the soft limit alone (Slurm src/slurmd/slurmstepd/ulimits.c), pbs_mom passes on its own."""
    evidence = Evidence(f"hard limit in /proc/<pid of {daemon.name}>/limits", hard)
    message = f"locked memory of jobs of {daemon.name} is limited to {hard >> 10} KiB"
    if not rdma_configured(box):
        return Precondition("no", skip("not-configured", message, evidence))
    line = _line_with(facts, hard)
    line = line if line is not None and _is_unit(line) else None
    own = line is not None and not line.path.startswith(_SYSTEM)
    where = f"in {_place(line)}" if line is not None and own else f"under [Service] by systemctl edit {daemon.unit}"
    restart = f"systemctl daemon-reload; systemctl restart {daemon.unit}"
    remedy = f"set LimitMEMLOCK=infinity {where}, then {_RESTART.get(daemon.name, _DRAIN).format(restart)}"
    return _too_low(message, hard, evidence, line, remedy)


def _too_low(message: str, limit: int, evidence: Evidence, line: Setting | None, remedy: str) -> Precondition:
    of_line = () if line is None else (Evidence(_place(line), line.text),)
    return Precondition("no", Judgement(
        Status.WARN, message if line is None else f"{message} by {_place(line)}", limit, "unlimited", "bytes",
        (evidence, *of_line), remedy=remedy, fault=Fault.MEMLOCK,
    ))  # fmt: skip


def _line_with(facts: Memlock, limit: int) -> Setting | None:
    """The last line that sets exactly this limit."""
    return next((line for line in reversed(facts.settings) if limit in line.limits), None)


def _is_unit(line: Setting) -> bool:
    return "/systemd/" in line.path


def _place(line: Setting) -> str:
    return f"line {line.line} of {line.path}"


def _covers_gpu(box: Box, limit: int) -> bool:
    """Is it at least the memory of the largest GPU?"""
    rows = box.snapshot.gpu_memory
    totals = [] if isinstance(rows, Missing) else [row.total for row in rows if not isinstance(row.total, Missing)]
    return bool(totals) and limit >= max(totals)


def _is_root(box: Box) -> bool:
    """Only root can read configuration space beyond its header."""
    rows = box.snapshot.config_space
    return not isinstance(rows, Missing) and any(not isinstance(row.express, Missing) for row in rows)


CHECKS = (
    Check(
        id="gdr.memlock",
        rule="Warns if a peer memory module is loaded and the user who runs dgxcheck, or the jobs of slurmd or pbs_mom,"
        " may lock less memory than a GPU has. Root's own limit is not judged: it does not apply to root, and jobs have"
        " another. A line of limits.conf, limits.d or systemd's files that sets this very limit is named.",
        source="Max locked memory in /proc/self/limits and, the hard one, in those of the daemons; ib_umem_get in Linux"
        " drivers/infiniband/core/umem.c; limits.conf(5), systemd.exec(5)",
        remedy="set memlock to unlimited in /etc/security/limits.d, LimitMEMLOCK=infinity in the units that start jobs,"
        " and --ulimit memlock=-1 for containers",
        judge=of_host(memlock),
        blames=host("memlock limit"),
    ),
)
