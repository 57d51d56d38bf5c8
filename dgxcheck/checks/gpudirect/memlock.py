"""GPUDirect RDMA: may those who use it lock the memory that they register?"""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.checks.engine.precondition import Said, unsaid
from dgxcheck.checks.gpudirect.preconditions import of_box, wanted
from dgxcheck.facts.host import JobDaemon, Limit, Memlock, Setting
from dgxcheck.facts.missing import Missing

_OWN = "/proc/self/limits"
_SYSTEM = "/etc/systemd/system.conf"
_RESTARTED = {"slurmd": "{}; running jobs go on, under the old limit"}
_DRAINED = "drain this node and run {}"


def memlock(box: Box) -> Said:
    """Neither this session nor the jobs of a daemon here may be held back; no limit holds root."""
    facts = box.snapshot.memlock
    if isinstance(facts, Missing):
        return unsaid(facts)
    for daemon in facts.daemons:
        hard = daemon.limit.hard if isinstance(daemon.limit, Limit) else None
        if isinstance(hard, int) and not _enough(box, hard):
            return _of_jobs(box, facts, daemon, hard)
    own = facts.own
    if isinstance(own, Missing):
        return unsaid(own)
    if isinstance(own.soft, Missing):
        return unsaid(own.soft)
    if own.soft is None:
        evidence = Evidence(_OWN, "unlimited")
        return Said("ready", Judgement(Status.PASS, "no limit on locked memory", evidence=(evidence,)))
    return _of_session(box, facts, own.soft)


def _of_session(box: Box, facts: Memlock, soft: int) -> Said:
    evidence = Evidence(_OWN, soft)
    message = f"this session may lock {soft >> 10} KiB of memory"
    if _enough(box, soft):
        return Said("ready", Judgement(Status.PASS, f"{message}, more than a GPU has", evidence=(evidence,)))
    if _is_root(box):
        held = f"{message}, which does not hold root"
        free = [daemon for daemon in facts.daemons if isinstance(daemon.limit, Limit) and daemon.limit.hard is None]
        if free:
            message = f"{held}; jobs of {free[0].name} have no limit"
            return Said("ready", Judgement(Status.PASS, message, evidence=(evidence,)))
        message = f"{held}; jobs have the limit of their own session or daemon"
        return Said("ready", skip("not-configured", message, evidence))
    if not wanted(box):
        return Said("no", skip("not-configured", message, evidence))
    line = _set_by(facts, soft)
    remedy = f"put unlimited in {_place(line)}, then log in anew" if line is not None and not _of_unit(line) else ""
    return _low(message, soft, (evidence,), line, remedy)


def _of_jobs(box: Box, facts: Memlock, daemon: JobDaemon, hard: int) -> Said:
    """Of a job slurmd sets the soft limit alone (Slurm src/slurmd/slurmstepd/ulimits.c), pbs_mom hands on its own."""
    evidence = Evidence(f"hard limit in /proc/<pid of {daemon.name}>/limits", hard)
    message = f"jobs of {daemon.name} may lock {hard >> 10} KiB of memory at most"
    if not wanted(box):
        return Said("no", skip("not-configured", message, evidence))
    line = _set_by(facts, hard)
    own = line is not None and _of_unit(line) and not line.path.startswith(_SYSTEM)
    how = f"in {_place(line)}" if line is not None and own else f"under [Service] by systemctl edit {daemon.unit}"
    restart = f"systemctl daemon-reload; systemctl restart {daemon.unit}"
    remedy = f"put LimitMEMLOCK=infinity {how}, then {_RESTARTED.get(daemon.name, _DRAINED).format(restart)}"
    return _low(message, hard, (evidence,), line if line is not None and _of_unit(line) else None, remedy)


def _low(message: str, limit: int, seen: tuple[Evidence, ...], line: Setting | None, remedy: str) -> Said:
    if line is not None:
        message = f"{message}, as {_place(line)} says"
        seen = (*seen, Evidence(_place(line), line.text))
    return Said("no", Judgement(Status.WARN, message, limit, "unlimited", "bytes", seen, remedy=remedy))


def _set_by(facts: Memlock, limit: int) -> Setting | None:
    """The last line that sets just this limit."""
    return next((each for each in reversed(facts.settings) if limit in each.limits), None)


def _of_unit(line: Setting) -> bool:
    return "/systemd/" in line.path


def _place(line: Setting) -> str:
    return f"line {line.line} of {line.path}"


def _enough(box: Box, limit: int) -> bool:
    """Is it more than the memory of the largest GPU?"""
    rows = box.snapshot.gpu_memory
    totals = [] if isinstance(rows, Missing) else [row.total for row in rows if not isinstance(row.total, Missing)]
    return bool(totals) and limit >= max(totals)


def _is_root(box: Box) -> bool:
    """Configuration space beyond its header is for root alone."""
    rows = box.snapshot.config_space
    return not isinstance(rows, Missing) and any(not isinstance(row.express, Missing) for row in rows)


CHECKS = (
    Check(
        id="gdr.memlock",
        rule="Warns where a peer-memory module is loaded, and the user who runs this, or the jobs of slurmd or pbs_mom,"
        " may lock less memory than a GPU has. Root's own limit is not judged: it does not hold root, and jobs have"
        " another. A line of limits.conf, limits.d or systemd's files that sets this very limit is named.",
        source="Max locked memory in /proc/self/limits and, the hard one, in those of the daemons; ib_umem_get in Linux"
        " drivers/infiniband/core/umem.c; limits.conf(5), systemd.exec(5)",
        remedy="set memlock unlimited in /etc/security/limits.d, LimitMEMLOCK=infinity in the units that start jobs,"
        " --ulimit memlock=-1 for containers",
        judge=of_box(memlock),
    ),
)
