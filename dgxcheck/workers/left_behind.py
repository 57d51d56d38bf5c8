"""Workers that could not be killed: a list for the next run, so that it starts no more of them."""

from __future__ import annotations

import os
import time

LIST = "left-behind"


def note(pid: int, module: str) -> None:
    """Put a worker on the list, with its start time so that a reused pid is not taken for it."""
    directory = _directory(create=True)
    started = _start_time(pid)
    if directory is None or started is None:
        return
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    lines = [line for line in _lines(directory) if _stuck(line)]
    _write(directory, [*lines, f"{pid} {started} {since} {module}"])


def stuck(module: str) -> str | None:
    """What to say of a worker of this kind that an earlier run left behind and that is still there, or None."""
    directory = _directory(create=False)
    lines = _lines(directory) if directory else []
    for line in lines:
        if line.endswith(f" {module}") and _stuck(line):
            pid, _, since, _ = line.split(" ")
            return f"an earlier worker (pid {pid}) has been stuck in the driver since {since}"
    return None


def _directory(create: bool) -> str | None:
    base = "/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "")
    if "XDG_RUNTIME_DIR" in os.environ:
        base = os.environ["XDG_RUNTIME_DIR"]
    if not base.startswith("/"):
        return None
    directory = os.path.join(base, "dgxcheck")
    try:
        if create:
            os.makedirs(directory, mode=0o700, exist_ok=True)
        return directory if os.stat(directory).st_uid == os.geteuid() else None
    except OSError:
        return None


def _lines(directory: str) -> list[str]:
    try:
        with open(os.path.join(directory, LIST), encoding="ascii") as file:
            return [line for line in file.read(65536).splitlines() if line.count(" ") == 3]
    except (OSError, UnicodeDecodeError):
        return []


def _write(directory: str, lines: list[str]) -> None:
    path = os.path.join(directory, LIST)
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write("".join(f"{line}\n" for line in lines))
        os.rename(temporary, path)
    except OSError:
        return


def _stuck(line: str) -> bool:
    pid, started, _, _ = line.split(" ")
    return pid.isdecimal() and _start_time(int(pid)) == started


def _start_time(pid: int) -> str | None:
    """Field 22 of ``/proc/PID/stat``, clock ticks since boot; None for a process that is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else None
