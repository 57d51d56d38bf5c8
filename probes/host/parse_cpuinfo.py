"""``/proc/cpuinfo`` of x86, ARM and POWER."""

from __future__ import annotations

from dgxcheck.facts.host import Cpu
from dgxcheck.facts.missing import Gap, Missing
from probes.parse_scalar import garbled, is_decimal


def cpuinfo(text: str, where: str) -> Cpu | Missing:
    """One block of ``name : value`` lines per online CPU; only x86 tells sockets, cores and flags."""
    threads = 0
    models: list[str] = []
    flags: list[str] = []
    sockets: set[str] = set()
    cores: set[tuple[str, str]] = set()
    socket = ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        name, value = name.rstrip(), value.strip()
        if name == "processor" and is_decimal(value):
            threads += 1
            socket = ""
        elif name in ("model name", "cpu") and value and not models:
            models.append(value)
        elif name in ("flags", "Features") and not flags:
            flags.append(value)
        elif name == "physical id":
            socket = value
            sockets.add(value)
        elif name == "core id" and socket:
            cores.add((socket, value))
    if not threads:
        return garbled(text, where)
    return Cpu(
        model=models[0] if models else Missing(Gap.UNSUPPORTED, where, "no model name"),
        sockets=len(sockets) or Missing(Gap.UNSUPPORTED, where, "no physical id"),
        cores=len(cores) or Missing(Gap.UNSUPPORTED, where, "no core id"),
        threads=threads,
        hypervisor="hypervisor" in flags[0].split() if flags else Missing(Gap.UNSUPPORTED, where, "no flags"),
    )
