"""``/proc/cpuinfo`` of x86, ARM and POWER."""

from __future__ import annotations

from dgxcheck.facts.host import Cpu
from dgxcheck.facts.missing import Gap, Missing
from probes.parse_scalar import garbled, is_decimal


def cpuinfo(text: str, where: str) -> Cpu | Missing:
    """One block of ``name : value`` lines per online CPU; only x86 tells sockets, cores, flags and family."""
    threads = 0
    first: dict[str, str] = {}
    models: list[str] = []
    flags: list[str] = []
    sockets: set[str] = set()
    cores: set[tuple[str, str]] = set()
    socket = ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        name, value = name.rstrip(), value.strip()
        first.setdefault(name, value)
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
        vendor=first.get("vendor_id") or Missing(Gap.UNSUPPORTED, where, "no vendor_id"),
        family=_number(first, "cpu family", where),
        model_number=_number(first, "model", where),
        hypervisor="hypervisor" in flags[0].split() if flags else Missing(Gap.UNSUPPORTED, where, "no flags"),
    )


def _number(first: dict[str, str], name: str, where: str) -> int | Missing:
    """A decimal of the first CPU; POWER has names (``model : 8335-GTH``)."""
    value = first.get(name, "")
    return int(value) if is_decimal(value) else Missing(Gap.UNSUPPORTED, where, f"no {name}")
