"""How much memory the process that asks and the jobs of this machine may lock, and what sets that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain, islice

from dgxcheck.facts.host import JobDaemon, Memlock, MemlockLimit, Setting
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.sysfs import SERVICE_GROUPS
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.source.protocol import Source
from probes.ask import ask, garbled, is_decimal, line

_LABEL = "Max locked memory "
DAEMONS = (("slurmd", "slurmd.service"), ("pbs_mom", "pbs.service"))
"""Name of the process, and of its unit. Containers are left out: whoever starts one gives it a limit."""
_MOST_PIDS, _MOST_FILES, _MOST_LINES, _LONGEST = 16, 100, 1000, 200
_PAM, _PAM_MORE = "/etc/security/limits.conf", "/etc/security/limits.d"
_SYSTEMD = "/etc/systemd/system.conf"
_UNITS = ("/usr/lib/systemd/system", "/etc/systemd/system")


def memlock(source: Source) -> Memlock:
    """``/proc/<pid>/limits`` of this process and of the daemons that start jobs; pam_limits and systemd set them."""
    daemons = tuple(_daemons(source))
    units = [daemon.unit for daemon in daemons]
    return Memlock(
        own=ask(source, "/proc/self/limits", max_locked_memory),
        daemons=daemons,
        settings=tuple(islice(chain(_of(source, of_pam, _PAM, _PAM_MORE), _of_units(source, units)), _MOST_LINES)),
    )


def max_locked_memory(text: str, where: str) -> MemlockLimit | Missing:
    """``Max locked memory         8388608              unlimited            bytes``."""
    line = next((line for line in text.splitlines() if line.startswith(_LABEL)), None)
    if line is None:
        return Missing(Gap.GARBLED, where, "no line of locked memory")
    words = line[len(_LABEL) :].split()
    if len(words) != 3 or words[2] != "bytes":
        return garbled(line, where)
    return MemlockLimit(soft=_bytes(words[0], where), hard=_bytes(words[1], where))


def _bytes(word: str, where: str) -> int | Missing | None:
    if word == "unlimited":
        return None
    return int(word) if is_decimal(word) else garbled(word, where)


def _daemons(source: Source) -> Iterator[JobDaemon]:
    """Those that run, known by the process of that name in the control group of their unit, or by their pid file."""
    for name, unit in DAEMONS:
        places = [f"{group}/{unit}/cgroup.procs" for group in SERVICE_GROUPS] + [f"/run/{name}.pid"]
        for pid in dict.fromkeys(pid for place in places for pid in _pids(source, place)):
            if ask(source, f"/proc/{pid}/comm", line) == name:
                yield JobDaemon(name=name, unit=unit, limit=ask(source, f"/proc/{pid}/limits", max_locked_memory))
                break


def _pids(source: Source, path: str) -> list[str]:
    text = source.text(path)
    words = [] if isinstance(text, Missing) else text.split(maxsplit=_MOST_PIDS)[:_MOST_PIDS]
    return [word for word in words if is_decimal(word)]


def _of_units(source: Source, units: list[str]) -> Iterator[Setting]:
    if not units:
        return
    yield from _of(source, of_systemd, _SYSTEMD, f"{_SYSTEMD}.d")
    for folder in _UNITS:
        for unit in units:
            yield from _of(source, of_systemd, f"{folder}/{unit}", f"{folder}/{unit}.d")


def _of(source: Source, limits_of: Callable[[str], Limits | None], file: str, folder: str) -> Iterator[Setting]:
    """What a file and the ``*.conf`` of a directory set; files that cannot be read set nothing that could be shown."""
    names = source.names(folder)
    more = () if isinstance(names, Missing) else tuple(name for name in names if name.endswith(".conf"))[:_MOST_FILES]
    for path in (file, *(f"{folder}/{name}" for name in more)):
        text = source.text(path)
        for number, row in enumerate(() if isinstance(text, Missing) else text.split("\n"), 1):
            if (limits := limits_of(row)) is not None:
                yield Setting(path=path, line=number, text=" ".join(row.split())[:_LONGEST], limits=limits)


Limits = tuple["int | None", ...]
_UNLIMITED = ("unlimited", "infinity", "-1")
_TYPES = ("soft", "hard", "-")
_KIB = 1024
_UNIT = LazyPattern(r"(?:Default)?LimitMEMLOCK\s*=\s*(?P<value>[^\s:]+)(?::(?P<hard>\S+))?\s*", flags=re.ASCII)
_SIZES = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = LazyPattern(r"(\d{1,18})([BKMGT]?)", flags=re.ASCII)


def of_pam(line: str) -> Limits | None:
    """``* hard memlock 64`` in KiB (limits.conf(5)); None for what sets no memlock."""
    words = line.partition("#")[0].split()
    if len(words) != 4 or words[1] not in _TYPES or words[2] != "memlock":
        return None
    if words[3] in _UNLIMITED:
        return (None,)
    return (int(words[3]) * _KIB,) if is_decimal(words[3]) else None


def of_systemd(line: str) -> Limits | None:
    """``LimitMEMLOCK=8M``, ``DefaultLimitMEMLOCK=64K:infinity`` (systemd.exec(5)); None for what sets no memlock."""
    match = _UNIT.fullmatch(line.strip())
    found = [] if match is None else [_size(match[part]) for part in ("value", "hard") if match[part]]
    return tuple(None if size < 0 else size for size in found if size is not None) or None


def _size(word: str) -> int | None:
    """Bytes, -1 for unlimited; None for what is no size."""
    if word in _UNLIMITED:
        return -1
    match = _SIZE.fullmatch(word)
    return int(match[1]) * _SIZES[match[2]] if match else None
