"""What an earlier run left in the state directory, as small recordings: counters, Xids and how many devices the host
has, so that the next run can tell what grew, what is there again and what is missing, and what was measured, so that
``record`` keeps it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from dgxcheck.facts.inventory import Count, Remembered
from dgxcheck.facts.kernel_log import EARLIER_DAYS
from dgxcheck.facts.missing import BadInput, is_number, items_of, members_of
from dgxcheck.facts.record import Record, replace
from dgxcheck.input_file import read_input
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.limits import RECORDING_BYTES
from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.keys import GroupedFacts
from dgxcheck.source.recording.load import SCHEMA, parsed, recording
from dgxcheck.source.recording.save import replace_file, written

NAME = "counters.json"
MEASURED = "measured.json"
DATE = "%Y-%m-%dT%H:%M:%SZ"
"""Of UTC."""
MOST_XIDS = 256
MOST_HOSTS = 256
"""A home directory may serve a whole cluster."""
_MOST_S = 1e12
"""Since boot."""
_DATE = LazyPattern(
    r"(?:[1-9]\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))|[1-9]\d(?:0[48]|[2468][048]|[13579][26])-02-29|(?:[2468][048]|[13579][26])00-02-29)"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ",
    flags=re.ASCII,
)
"""``time.strptime`` takes ten times as long."""
_DAY = LazyPattern(r"\d{4}-\d\d-\d\d", flags=re.ASCII)
_SEEN = LazyPattern(r", at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)[,:]", flags=re.ASCII)


class Damaged(BadInput):
    """A file that could be read, and is no state file."""


class Newer(Record):
    """A reading after another one of the same boot and driver."""

    changed: GroupedFacts
    """Lines that differ; one that it lacks is as it was."""
    at_s: float
    date: str


class Reading(Record):
    """Facts that were read, or measured, once."""

    lines: GroupedFacts
    boot_id: str
    driver: str
    """Version; another driver starts its counters from zero."""
    at_s: float
    """Seconds since boot, suspended ones included (``CLOCK_BOOTTIME``): no clock that is set can shift it."""
    date: str
    """UTC, for people."""
    xids: tuple[str, ...] = ()
    """What this run and those before it saw of Xids, as ``source/kernel_log/kmsg.py`` words it."""
    kept: Remembered | None = None
    """What this host consists of."""
    inventories: Mapping[str, Mapping[str, Count]] = {}
    """The most that each host had of each kind of device, by the mark of the host."""
    newer: Newer | None = None
    """The counters an hour or more later: they are compared with once they are an hour old themselves."""
    damaged: int = 0
    """Entries of the file that were none, and are gone."""


def default_path(name: str = NAME) -> str:
    """``$STATE_DIRECTORY`` as systemd gives it, for root ``/var/lib/dgxcheck``, else under ``$XDG_STATE_HOME``."""
    if given := os.environ.get("STATE_DIRECTORY", "").partition(":")[0]:
        return os.path.join(given, name)
    if os.geteuid() == 0:
        return os.path.join("/var/lib/dgxcheck", name)
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "dgxcheck", name)


def now() -> tuple[float, str]:
    """Seconds since boot, and the date."""
    return time.clock_gettime(time.CLOCK_BOOTTIME), time.strftime(DATE, time.gmtime())


def is_date(text: str) -> bool:
    """In that one form, so that dates sort as text. ``strftime`` of a clock of Linux never has a second 60."""
    return _DATE.fullmatch(text) is not None


def seconds_of(date: str) -> int:
    """Since 1970."""
    from calendar import timegm  # reads the locale's names of days

    return timegm(time.strptime(date, DATE))


def read(path: str) -> Reading | None:
    """What an earlier run wrote; None where none did. Damaged for a file that is something else."""
    if not os.path.lexists(path):
        return None
    raw = read_input(path, RECORDING_BYTES)
    try:
        return _reading(parsed(raw, path), path)
    except BadInput:
        raise Damaged(f"{path}: not a state file of dgxcheck health, or a damaged one") from None


def _reading(document: dict[str, Json], path: str) -> Reading:
    """BadInput without facts, time and date; what else is damaged is dropped and counted."""
    if document.get("schema") != SCHEMA or not isinstance(state := document.get("state"), dict):
        raise BadInput(path)
    texts = {key: value for key, value in state.items() if isinstance(value, str)}
    at_s = state.get("at_s")
    if not is_number(at_s) or not 0 <= at_s < _MOST_S:
        raise BadInput(path)
    if not {"boot_id", "driver"} <= texts.keys() or not is_date(texts.get("date", "")):
        raise BadInput(path)
    valid = [xid for xid in items_of(state.get("xids")) if isinstance(xid, str) and _SEEN.search(xid)]
    reading = Reading(
        lines=recording(document, path).lines, boot_id=texts["boot_id"], driver=texts["driver"], at_s=float(at_s),
        date=texts["date"], xids=tuple(valid)[:MOST_XIDS],
        inventories=_inventories(state.get("inventory")), kept=_kept(state.get("kept")),
        newer=_newer(state.get("newer"), at_s),
    )  # fmt: skip
    return replace(reading, damaged=_lost(state, _state(reading)))


def _lost(given: Json, good: Json) -> int:
    """How many entries of a state were none."""
    if isinstance(given, dict) and isinstance(good, dict):
        return sum(_lost(value, good.get(name)) for name, value in given.items())
    if isinstance(given, list) and isinstance(good, list) and len(given) > len(good):
        return len(given) - len(good)
    return int(given != good and given not in (None, [], {}))


def _kept(member: Json) -> Remembered | None:
    """None for what is no such member; values that are none are dropped."""
    match member:
        case {"mark": str(mark), "date": str(date), "changed": str(changed), "values": dict(owners)}:
            values = {
                owner: {name: value for name, value in facts.items() if not isinstance(value, dict)}
                for owner, facts in owners.items() if isinstance(facts, dict)
            }  # fmt: skip
            return Remembered(mark, date, values, changed) if is_date(date) and is_date(changed or date) else None
    return None


def _newer(member: Json, after_s: float) -> Newer | None:
    """None for what is no such member."""
    match member:
        case {"at_s": at_s, "date": str(date), "facts": dict(facts)}:
            if is_number(at_s) and after_s < at_s < _MOST_S and is_date(date):
                with suppress(BadInput):
                    return Newer(changed=recording({"facts": facts}, "").lines, at_s=float(at_s), date=date)
    return None


def _inventories(member: Json) -> dict[str, dict[str, Count]]:
    """Without what is no count of a host."""
    hosts = list(members_of(member).items())[-MOST_HOSTS:]
    return {mark: _counts(kinds) for mark, kinds in hosts if isinstance(kinds, dict)}


def _counts(kinds: dict[str, Json]) -> dict[str, Count]:
    found: dict[str, Count] = {}
    for kind, value in kinds.items():
        match value:
            case [int(number), str(date)] if not isinstance(number, bool) and number >= 0 and _DAY.fullmatch(date):
                found[kind] = Count(number, date)
    return found


def recent(xids: Iterable[str], date: str) -> tuple[str, ...]:
    """Those that were seen not long before the date."""
    return tuple(xid for xid in xids if (seen := _SEEN.search(xid)) and is_recent(seen[1], date))


def is_recent(date: str, now: str) -> bool:
    """Is the date within the last days of which Xids of earlier boots count? Dates of this form sort as text."""
    from datetime import datetime, timedelta

    since = datetime.fromisoformat(now.removesuffix("Z")) - timedelta(days=EARLIER_DAYS)
    return date >= f"{since.isoformat()}Z"


def write(path: str, reading: Reading) -> None:
    """Replace the file whole; anyone may read it. OSError where it cannot be written, or is a link or special file."""
    make_folder(path)
    text = written({"schema": SCHEMA, "state": _state(reading)}, reading.lines, ())
    replace_file(path, text, 0o644, exactly=True, regular=True)


def _state(reading: Reading) -> dict[str, Json]:
    state: dict[str, Json] = {
        "boot_id": reading.boot_id, "driver": reading.driver, "at_s": reading.at_s, "date": reading.date,
    }  # fmt: skip
    if reading.xids:
        state["xids"] = [*reading.xids]
    if reading.inventories:
        state["inventory"] = {
            mark: {kind: [count.number, count.date] for kind, count in kinds.items()}
            for mark, kinds in reading.inventories.items()
        }
    if (newer := reading.newer) is not None:
        state["newer"] = {"at_s": newer.at_s, "date": newer.date, "facts": dict(newer.changed)}
    if reading.kept is not None:
        kept = reading.kept
        values: dict[str, Json] = {owner: {**facts} for owner, facts in kept.values.items()}
        state["kept"] = {"mark": kept.mark, "date": kept.date, "changed": kept.changed, "values": values}
    return state


def make_folder(path: str) -> None:
    """Make the folder of a file, if it is not there, as one that anyone may look into; folders above it that are made
    for it are this user's alone (XDG)."""
    folder = os.path.dirname(path) or "."
    if (above := os.path.dirname(folder)) and not os.path.isdir(above):
        make_folder(folder)
        if os.geteuid() != 0:
            os.chmod(above, 0o700)
    os.makedirs(folder, mode=0o755, exist_ok=True)
