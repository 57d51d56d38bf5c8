"""The Xids that a run leaves in its state file, for one after a reset or a reboot to know them again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dgxcheck.diagnosis.recurrence import escalates
from dgxcheck.facts.kernel_log import OFF_BUS, EarlierXid, KernelLog
from dgxcheck.facts.record import replace
from dgxcheck.source import state_file
from dgxcheck.source.kernel_log.kmsg import NO_BOOT, earlier, line, with_earlier
from dgxcheck.source.recording.keys import DEVICE
from dgxcheck.survey import Snapshot, log_facts
from dgxcheck.xid.relations import FATAL

_BOOT = re.compile(r"[\w-]{1,64}", re.ASCII)
_UUID = re.compile(r"GPU-[\w-]{1,64}", re.ASCII)


def read(xids: Iterable[str], date: str) -> tuple[EarlierXid, ...]:
    """What a state file holds, less what is long ago or makes no sense."""
    lines = with_earlier((line(0.0, NO_BOOT),), state_file.recent(xids, date))
    log = log_facts(lines)
    return log.earlier if isinstance(log, KernelLog) else ()


def remembered(old: Iterable[str], facts: Snapshot, date: str) -> tuple[str, ...]:
    """What was known, less what is long ago, and the Xids of this boot, once for each GPU and number.

    A saved log is that of another time or machine; nothing is kept of it.
    """
    xids = [*read(old, date)]
    log, boot = facts.kernel_log, facts.known_host.boot_id
    if isinstance(log, KernelLog) and log.where == DEVICE and isinstance(boot, str) and _BOOT.fullmatch(boot):
        xids += _of_log(log, boot, date, _uuids(facts, [seen for seen in xids if seen.boot == boot]))
    first: dict[tuple[str, int, str], EarlierXid] = {}
    for seen in xids:
        key = (seen.uuid or seen.bdf, seen.number, seen.boot)
        first[key] = replace(first[key], begun_s=min(first[key].begun_s, seen.begun_s)) if key in first else seen
    newest = sorted(first.values(), key=lambda seen: seen.date)[-state_file.MOST_XIDS :]
    return tuple(map(earlier, newest))


def _of_log(log: KernelLog, boot: str, date: str, uuids: dict[str, str]) -> Iterator[EarlierXid]:
    for xid in log.xids:
        if xid.number != OFF_BUS and escalates(xid.number, xid.text):
            text = "Fatal" if FATAL.search(xid.text) else ""
            yield EarlierXid(
                bdf=xid.bdf, number=xid.number, boot=boot, begun_s=xid.begun_s, text=text, date=date,
                uuid=uuids.get(xid.bdf, ""),
            )  # fmt: skip
    for event in log.off_bus:
        uuid = uuids.get(event.bdf, "")
        yield EarlierXid(bdf=event.bdf, number=OFF_BUS, boot=boot, begun_s=event.begun_s, date=date, uuid=uuid)


def _uuids(facts: Snapshot, seen: Iterable[EarlierXid]) -> dict[str, str]:
    """By bus id: of GPUs that are lost, what they told earlier in this boot."""
    known = {xid.bdf: xid.uuid for xid in seen if xid.uuid}
    uuids = ((gpu.bdf, gpu.uuid) for gpu in facts.listed_gpus)
    return known | {bdf: uuid for bdf, uuid in uuids if isinstance(uuid, str) and _UUID.fullmatch(uuid)}
