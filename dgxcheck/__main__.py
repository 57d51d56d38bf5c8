"""The installed command: start the NVML worker, then import the rest, run, and leave without waiting for anything."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.workers.nvml.supervisor import NvmlStage

# What each command asks NVML: names of tuples in workers/nvml/plan.py
_PLANS = {"topo": "TOPOLOGY", "health": "HEALTH", "list": "IDENTITY", "record": "EVERYTHING", "diff": "EVERYTHING"}
_PLANS_OF_TOPO = {"-p2p": "P2P", "--p2pstatus": "P2P", "--peers": "PEERS", "--rdma": "RDMA"}
_NO_MACHINE = ("-h", "--help", "-H", "--detailed-help", "-V", "--version")


def run(root: str = "/") -> None:
    """Entry point of the console script; ``root`` is where the running machine's files are."""
    code = 3
    try:
        _fill_stdio()
        gc.disable()  # a run is short and holds little: collecting costs it a tenth of its time
        stage = _early(sys.argv[1:])
        import gettext

        gettext.gettext = _untranslated  # click would look for a file of translations at each of its texts
        from dgxcheck.cli import main

        code = main(sys.argv[1:], stage, root)
    except KeyboardInterrupt:
        os.write(2, b"dgxcheck: interrupted\n")
    finally:
        # interpreter shutdown could wait for what a sick driver holds
        os._exit(code)


def _untranslated(message: str) -> str:
    return message


def _early(argv: list[str]) -> NvmlStage | None:
    """Start asking NVML before click is imported, where the command line is plainly a live one."""
    plan = _PLANS.get(argv[0]) if argv else None
    if plan is None or (argv[0] == "diff" and "live" not in argv):
        return None
    if any(word.startswith("--from") or word in _NO_MACHINE for word in argv):
        return None
    import signal

    from dgxcheck.workers.nvml import plan as nvml_plan
    from dgxcheck.workers.nvml.supervisor import NvmlStage

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, signal.default_int_handler)  # as Ctrl-C: workers are ended, or noted for the next run
    of_option = (_PLANS_OF_TOPO[word] for word in (each.partition("=")[0] for each in argv) if word in _PLANS_OF_TOPO)
    groups: tuple[str, ...] = getattr(nvml_plan, next(of_option, plan))
    return NvmlStage(groups)


def _fill_stdio() -> None:
    """Fill closed standard descriptors, so that no pipe of ours lands on 0, 1 or 2 (cron, a broken shell)."""
    while (fd := _nowhere()) < 3:
        os.set_inheritable(fd, True)
    os.close(fd)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:  # it was closed when the interpreter started
            file = open(number, mode, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115 -- it stays open
            setattr(sys, name, file)


def _nowhere() -> int:
    """A descriptor of the lowest free number that takes and gives nothing."""
    try:
        return os.open(os.devnull, os.O_RDWR)
    except OSError:  # a chroot without /dev
        return os.memfd_create("dgxcheck")


if __name__ == "__main__":
    run()
