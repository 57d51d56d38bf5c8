"""What UCX, libfabric and libibverbs log in programs of several hosts, a BlueField of its boot, devlink of an adapter.

https://github.com/openucx/ucx/blob/master/src/uct/ib/base/ib_log.c, ib_md.c;
https://github.com/linux-rdma/rdma-core/blob/master/libibverbs/init.c: check_memlock_limit;
https://github.com/ofiwg/libfabric, src/log.c and prov/efa/src.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.network.files import EFA_ENDINGS, NAME, completion
from dgxcheck.readers.values import bare, numbered
from dgxcheck.readers.wording import is_entered, wordings

TOOL = "UCX"
_FILE = r"\w{1,60}(?:\.c:|\.cc:|\.h:|\.inl:)\d{1,6}"
_UCX = LazyPattern(
    rf"(?:.{{0,80}} )?(?:\[\d{{1,12}}\.\d{{1,9}}\] {{1,4}}\[(?P<host>[^\]:]{{1,80}})(?::[^\]]{{0,40}})?\]"
    rf" {{1,20}}{_FILE} {{1,4}}UCX {{1,4}}(?P<level>[A-Z]{{2,6}})"
    rf"|\[(?P<dying>[^\]:]{{1,80}})(?::\d{{1,10}} {{0,6}}){{3}}\] {{1,20}}{_FILE})"
    r" {1,4}(?P<text>\S.{0,400})"
)
"""A message without level is fatal, and has no time."""
_TRACED = LazyPattern(
    r"={4} backtrace \(tid: {0,6}\d{1,10}\) ={4}|={30,40}|\d{1,3} {1,4}\S{1,600} \[0x[0-9a-f]{4,16}\]"
)
"""Calls that led there: src/ucs/debug/debug.c."""
_ENDED = LazyPattern(
    rf".{{4,60}} on (?P<device>{NAME}):(?P<port>\d{{1,3}})/\w{{1,12}} \(synd 0x(?P<code>[0-9a-f]{{1,2}}) .*"
)
_UNREACHED = LazyPattern(rf"ibv_create_ah\(.* on (?P<device>{NAME}) failed: (?P<why>.{{1,60}})")
_UNLOCKED = LazyPattern(
    r"(?P<call>ibv_\w{2,30})\(.{0,200}failed: Cannot allocate memory ?[.:] Please set max locked memory"
    r" \(ulimit -l\).*"
)
"""UCX adds that to ENOMEM where the limit of its process is not unlimited."""
_LIMIT = wordings("network/results", TOOL)
_GOES_ON = LazyPattern(r"(?:.{0,80} )?This will severely limit memory registrations\.")
_SYNDROMES = {0x10: 7, 0x11: 8, 0x12: 9, 0x13: 10, 0x14: 11, 0x15: 12, 0x16: 13}
"""Of mlx5, as statuses of verbs; smaller ones are the same."""


def read_ucx(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Transfers that ended with an error, by port (https://github.com/openucx/ucx/issues/6000), and a limit of locked
    memory that is too low for RDMA; where several hosts log, one part for each that has results."""
    whole = ToolPart(TOOL)
    logged: list[tuple[str, re.Match[str]]] = []
    for at, line in numbered(lines):
        if not is_entered(whole, _LIMIT, at, line) and _GOES_ON.fullmatch(line):
            whole.lines.add(at)
        if whole.lines and _TRACED.fullmatch(line):
            whole.beside.add(at)
        if match := _UCX.fullmatch(line):
            whole.lines.add(at)
            logged.append(((match["host"] or match["dying"]).partition(".")[0], match))
    hosts = {name: ToolPart(TOOL) for name, _ in logged}
    for name, match in logged:
        _take(hosts[name] if len(hosts) > 1 else whole, match)
    understood = frozenset(whole.lines)
    return (*whole.imported(), *(
        Imported(tool=TOOL, facts=facts, understood=understood, host=name)
        for name, part in hosts.items() if (facts := part.facts())
    ))  # fmt: skip


def _take(part: ToolPart, logged: re.Match[str]) -> None:
    text = logged["text"]
    if match := _ENDED.fullmatch(text):
        ended, words = completion(_SYNDROMES.get(code := int(match["code"], 16), code))
        part.add(f"{match['device']}/{int(match['port'])}", "status", ended.outcome, ended.fault, words)
    elif match := _UNREACHED.fullmatch(text):
        words = f"no address of the other end was found: {match['why']}"
        part.add(match["device"], "status", "fail", Fault.TRANSFER_UNANSWERED, words)
    elif match := _UNLOCKED.fullmatch(text):
        words = f"{match['call']} failed: cannot allocate memory; the limit of locked memory is low"
        part.add(HOST, "memlock", "fail", Fault.MEMLOCK, words)
    elif logged["level"] in (None, "ERROR", "FATAL") and " QP 0x" not in text:
        part.add(HOST, "error", "note", None, text)


_LIBFABRIC = LazyPattern(
    r"(?:.{0,200}[ >\]])?libfabric:\d{1,10}:(?:\d{1,12}:(?:\w{0,30}:)?)?[\w;]{1,30}:\w{1,20}:\w{1,80}\(\):\d{1,6}"
    r"<(?P<level>\w{4,8})> ?(?P<text>.{0,800})"
)
_OF_EFA = tuple((LazyPattern(words), ended) for words, ended in EFA_ENDINGS)
_REFUSED = LazyPattern(r"(?P<what>Unable to register (?:MR|efa_\w{0,6}mr).{0,60}?): (?P<why>[A-Z][\w ]{4,60})")
_ENDS = LazyPattern(r"err: \d{1,6}, message: |Encountered error during CQ polling")


def read_libfabric(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Transfers that ended with an error, and memory that it could not register; whatever else it logs is no fault."""
    part = ToolPart("libfabric")
    for number, line in numbered(lines):
        if (logged := _LIBFABRIC.fullmatch(line)) is None:
            continue
        text = logged["text"]
        if _ENDS.match(text):
            ended = next((ended for words, ended in _OF_EFA if words.search(text)), None)
            fault, outcome = (ended.fault, ended.outcome) if ended else (Fault.TRANSFER_FAILED, "fail")
            part.add(HOST, "transfer", outcome, fault, f"a transfer ended: {ended.words if ended else text}")
        elif refused := _REFUSED.match(text):
            fault = Fault.MEMLOCK if refused["why"] == "Cannot allocate memory" else Fault.RDMA_ACCESS
            part.add(HOST, "memory", "fail", fault, f"{refused['what']}: {refused['why']}")
        elif logged["level"] == "warn":
            continue
        part.lines.add(number)
    return part.imported()


_RSHIM_HEAD = LazyPattern(r"DISPLAY_LEVEL {1,20}\d \(0:basic.{0,60}")
_RSHIM_MEMBER = LazyPattern(r"(?P<name>[A-Z][A-Z0-9_]{3,30}) {1,24}(?P<value>\S.{0,120})|-{20,80}|Log Messages")
_LOGGED = LazyPattern(r"(?P<level>INFO|WARN|ERR|ASSERT|PANIC)\[(?P<stage>[\w .-]{1,20})\]: ?(?P<text>.{1,300})")
_BAD = ("ERR", "ASSERT", "PANIC")


def read_rshim(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``/dev/rshim0/misc``: an error of the boot; the device is that of the rshim, a function beside the adapter's.

    With DISPLAY_LEVEL 2 it has the log: https://github.com/Mellanox/rshim-user-space, rshim.8.
    """
    part, at = ToolPart("rshim"), ""
    for number, text in numbered(lines):
        if _RSHIM_HEAD.fullmatch(text):
            at = ""
        elif not part.lines:
            continue
        elif logged := _LOGGED.fullmatch(text):
            if logged["level"] in _BAD:
                part.add("BlueField", "boot", "warn", Fault.HCA_BOOT, f"{logged['stage']}: {logged['text']}{at}")
        elif member := _RSHIM_MEMBER.fullmatch(text):
            at = f" (rshim at {member['value']})" if member["name"] == "DEV_NAME" else at
        else:
            continue
        part.lines.add(number)
    return part.imported(sound="boot")


_INSTANCE = LazyPattern(r"pci/(?P<bdf>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?:/\d{1,5})?:")
_REPORTER = LazyPattern(
    r"(?:(?:reporter|name) (?P<name>\w{1,40}))?(?: ?state (?P<state>\w{1,20}) error \d{1,10} recover \d{1,10}"
    r"(?: .{0,300})?)?"
)
_REPORTERS: Mapping[str, tuple[Outcome, FaultKind]] = {
    "fw_fatal": ("fail", Fault.HCA_FATAL), "tx": ("warn", Fault.HCA_STALLED),
}  # fmt: skip


def read_devlink(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``devlink health show``: reporters whose last error was not recovered.

    https://www.kernel.org/doc/html/latest/networking/devlink/devlink-health.html
    """
    part = ToolPart("devlink health")
    bdf = name = ""
    for number, line in numbered(lines, bare):
        if instance := _INSTANCE.fullmatch(line):
            bdf, name = instance["bdf"], ""
        elif bdf and line and (row := _REPORTER.fullmatch(line)):
            name = row["name"] or name
            if row["state"] == "error":
                outcome, fault = _REPORTERS.get(name, ("warn", Fault.HCA_HEALTH))
                text = f"reporter {name} of its driver has an error that was not recovered"
                part.add(bdf.replace(":", "."), name, outcome, fault, text)
        else:
            bdf = ""
            continue
        part.lines.add(number)
    return part.imported(sound="health")
