"""This machine as a container sees it: the host's files below a mount, NVML as the container was given it.

What the container lacks says nothing of its host: without the driver's library or its device nodes the answers are
unrecorded, as in a directory of files.
"""

from __future__ import annotations

import json
import os

from dgxcheck.facts.ids import NvmlReturn
from dgxcheck.facts.missing import NOT_LOADABLE, BadInput, Gap, Missing, question, rows
from dgxcheck.source.live import LiveSource
from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.keys import from_json
from dgxcheck.workers.nvml.supervisor import INIT

_CONTROL = "/dev/nvidiactl"
_CONTAINER = "/run/systemd/container"
"""Its content is what encloses this system; on a host there is no such file."""
_HOSTNAME = "/proc/sys/kernel/hostname"
_HOLDS = ("sys/bus/pci", "proc/sys/kernel", "dev")


def check_root(root: str) -> None:
    """BadInput where ``root`` is no machine's / with its /sys, /proc and /dev."""
    for folder in _HOLDS:
        if not os.path.isdir(os.path.join(root, folder)):
            top = folder.partition("/")[0]
            raise BadInput(f"--root {root}: no {folder} below it; mount the host's / there, and with it its /{top}")


class ContainedSource(LiveSource):
    """Answers of the machine that this container runs on; its / is mounted at ``root``."""

    def text(self, path: str) -> str | Missing:
        if path == _HOSTNAME:  # of whoever reads it, by its UTS namespace: kernel/utsname_sysctl.c
            name = super().text("/etc/hostname")
            return name if isinstance(name, str) else Missing(Gap.UNRECORDED, path, "this container has its own name")
        if path == _CONTAINER and self._sees_some_gpus_only():
            return "container\n"
        return super().text(path)

    def opens(self, path: str) -> bool | Missing:
        opens = super().opens(path)
        return opens if opens is not False else Missing(Gap.UNRECORDED, path, "this container is not given the device")

    def nvml(self, function: str, subject: str = "", *args: int) -> Json | Missing:
        answer = super().nvml(function, subject, *args)
        lacks = self._lacks() if isinstance(answer, Missing) else ""
        return Missing(Gap.UNRECORDED, question(function, subject, *args), lacks) if lacks else answer

    def _lacks(self) -> str:
        """What of the driver this container lacks; empty where it lacks nothing."""
        init = from_json(json.loads(self._nvml.answers.get(INIT, "true")), INIT)
        code = init.code if isinstance(init, Missing) else None
        if code in (NvmlReturn.LIBRARY_NOT_FOUND, NOT_LOADABLE):
            return "this container is not given the driver's library"
        if code == NvmlReturn.DRIVER_NOT_LOADED and not os.path.exists(_CONTROL):
            return f"this container is not given {_CONTROL}"
        return ""

    def _sees_some_gpus_only(self) -> bool:
        """Is one of the host's GPUs not given to this container? Then NVML does not list it, and it is not lost."""
        numbers = [name.removeprefix("nvidia") for name in rows(self.names("/dev"))]
        return any(super(ContainedSource, self).opens(f"/dev/nvidia{n}") is False for n in numbers if n.isdecimal())
