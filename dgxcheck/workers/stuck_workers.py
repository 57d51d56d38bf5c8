"""Workers that could not be killed: a list for the next run, so that it starts no more of them."""

from __future__ import annotations

import os
import re
import time

from dgxcheck.rootfs import decode, read_bytes

LIST = "left-behind"
_LINE = re.compile(r"(\d{1,10}) (\d{1,20}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) ([\w.]+)", re.ASCII)
"""pid, start time, since when it counts as stuck, module"""
Entry = tuple[str, str, str, str]


def note(pid: int, module: str, grace: float = 0.0) -> None:
    """Put a worker on the list, with its start time so that a reused pid is not taken for it.

    It counts as stuck after ``grace`` seconds: a worker that only leaves may have to wait for GPUs to power down.
    """
    directory = _directory(create=True)
    started = _start_time(str(pid))
    if directory is None or started is None:
        return
    since = _utc(time.time() + grace)
    entries = [entry for entry in _entries(directory) if _there(entry)]
    _write(directory, [*entries, (str(pid), started, since, module)])


def stuck(module: str) -> str | None:
    """What to say of a worker of this kind that an earlier run left behind and that is still there, or None."""
    directory = _directory(create=False)
    now = _utc(time.time())
    for entry in _entries(directory) if directory else []:
        pid, _, since, kind = entry
        if kind == module and since <= now and _there(entry):
            return f"an earlier worker (pid {pid}) has been stuck in the driver since {since}"
    return None


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _directory(create: bool) -> str | None:
    """``$XDG_RUNTIME_DIR/dgxcheck``, for root ``/run/dgxcheck``; it and what it stands in must be this user's own."""
    user = os.geteuid()
    base = os.environ.get("XDG_RUNTIME_DIR") or ("/run" if user == 0 else "")
    if not base.startswith("/"):
        return None
    directory = os.path.join(base, "dgxcheck")
    try:
        if create and os.stat(base).st_uid == user:
            os.makedirs(directory, mode=0o700, exist_ok=True)
        return directory if os.stat(base).st_uid == os.lstat(directory).st_uid == user else None
    except OSError:
        return None


def _entries(directory: str) -> list[Entry]:
    """What is no entry is left out, and so is a list that is no small file."""
    try:
        lines = read_bytes(os.path.join(directory, LIST), 1 << 16).decode("ascii", "replace").split("\n")
    except OSError:
        return []
    found = (_LINE.fullmatch(line) for line in lines)
    return [(match[1], match[2], match[3], match[4]) for match in found if match]


def _write(directory: str, entries: list[Entry]) -> None:
    path = os.path.join(directory, LIST)
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write("".join(f"{' '.join(entry)}\n" for entry in entries))
        os.rename(temporary, path)
    except OSError:
        return


def _there(entry: Entry) -> bool:
    return _start_time(entry[0]) == entry[1]


def _start_time(pid: str) -> str | None:
    """Field 22 of ``/proc/PID/stat``, clock ticks since boot; None for a process that is gone or a zombie."""
    try:
        fields = decode(read_bytes(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    except OSError:
        return None
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else None
