"""Start and stop a worker: a Python child in its own process group that holds nothing of the caller's."""

from __future__ import annotations

import os
import sys

from dgxcheck.package_files import FOLDER

# Paths come as an argument, and -I -S leave out the caller's directory, .pth hooks and PYTHON* settings
_BOOT = """\
import gc, os, sys
gc.disable()
from ctypes import CDLL
CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: a parent that is killed ends nothing itself
if os.getppid() != int(sys.argv.pop(1)):
    os._exit(1)
os.chdir("/")
try:
    names = os.listdir("/proc/self/fd")
except OSError:
    names = range(3, 1024)
for name in names:
    try:
        int(name) > 2 and os.close(int(name))
    except OSError:
        pass
os.dup2(1, 3, inheritable=False)
os.dup2(2, 1)
sys.path[:] = sys.argv.pop(1).split(os.pathsep)
import importlib
importlib.import_module(sys.argv[1]).main()
"""


def start(module: str) -> tuple[int, int, int]:
    """Start ``module``'s ``main``; its pid, the write end of its stdin, the read end of its stdout, neither blocking.

    OSError where the system lets no process start (a limit on processes or open files, no memory).
    """
    argv = [sys.executable, "-I", "-S", "-c", _BOOT, str(os.getpid()), os.pathsep.join(_search_path()), module]
    ends: list[int] = []
    try:
        ends += os.pipe()
        ends += os.pipe()
        plan_read, plan_write, said_read, said_write = ends
        actions = [(os.POSIX_SPAWN_DUP2, plan_read, 0), (os.POSIX_SPAWN_DUP2, said_write, 1),
                   (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
        pid = os.posix_spawn(sys.executable, argv, _environment(), file_actions=actions, setpgroup=0, setsigmask=())
    except OSError:
        for end in ends:
            os.close(end)
        raise
    os.close(plan_read)
    os.close(said_write)
    os.set_blocking(said_read, False)
    os.set_blocking(plan_write, False)
    return pid, plan_write, said_read


def _environment() -> dict[str, str]:
    """The caller's; of its library path only absolute folders, for the loader takes any other from where it stands."""
    if (path := os.environ.get("LD_LIBRARY_PATH")) is None:
        return dict(os.environ)
    folders = (folder for part in path.split(":") for folder in part.split(";") if folder.startswith("/"))
    return dict(os.environ) | {"LD_LIBRARY_PATH": ":".join(folders)}


def _search_path() -> list[str]:
    """Where this interpreter finds modules, but for the caller's current directory."""
    return [os.path.dirname(FOLDER), *(os.path.abspath(path) for path in sys.path if path)]


def kill(pid: int) -> None:
    """SIGKILL to the worker's group; a worker that is gone already is fine."""
    from signal import SIGKILL

    try:
        os.killpg(pid, SIGKILL)
    except ProcessLookupError:
        return


def killed_from_outside(status: int) -> bool:
    """Was it no fault of the code that ran? A driver's crash ends in another signal.

    The kernel sends SIGKILL where memory runs out; an interpreter that cannot get what it needs exits.
    """
    from signal import SIGKILL

    code = os.waitstatus_to_exitcode(status)
    return code >= 0 or code == -SIGKILL


def exit_text(status: int) -> str:
    """How a waited-for child ended: ``exit 1`` or ``SIGSEGV``."""
    from signal import Signals

    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit {code}"
    try:
        return Signals(-code).name
    except ValueError:
        return f"signal {-code}"
