"""Where two layers of a recording tell of the same thing, do they tell the same? Sysfs of both ends, NVML, procfs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.keys import GroupedFacts

PCI = "/sys/bus/pci/devices"
IB = "/sys/class/infiniband"
PREFETCHABLE = 0x2000
NODE = re.compile(r"/sys/devices/system/node/node\d+")
DEAD = ("0", "63", "255", "Unknown", "Unknown speed")
"""What is read of a link whose device does not answer."""
GENERATIONS = {"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32.0": 5}

EMULATED = "0x1b36"
"""QEMU's ports state what its command line says, not what the hardware has."""


class Layers:
    """A recording's facts by key; what is no value reads as None."""

    def __init__(self, lines: GroupedFacts) -> None:
        self.lines = lines

    def text(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        found = self._group(folder, "text").get(name)
        return found.strip() if isinstance(found, str) else None

    def number(self, path: str) -> int | None:
        found = self.text(path)
        return int(found.split()[0]) if found and found.split()[0].lstrip("-").isdecimal() else None

    def link(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        found = self._group(folder, "link").get(name)
        return found if isinstance(found, str) else None

    def names(self, path: str) -> list[str]:
        found = self.lines.get(path, {}).get("names")
        return [str(name) for name in found] if isinstance(found, list) else []

    def nvml(self, function: str, subject: str = "", *args: int) -> Json:
        group = self.lines.get(f"nvml nvmlDeviceGet{function} {subject}".rstrip(), {})
        found = group.get(" ".join(map(str, args)))
        return None if isinstance(found, dict) and "missing" in found else found

    def _group(self, line: str, kind: str) -> dict[str, Json]:
        found = self.lines.get(line, {}).get(kind)
        return found if isinstance(found, dict) else {}

    def links(self, folder: str) -> list[str]:
        return [*self._group(folder, "link")]

    def gpus(self) -> list[str]:
        handles = self.lines.get("nvml nvmlDeviceGetHandleByIndex", {})
        return [bdf for bdf in handles.values() if isinstance(bdf, str)]

    def above(self, bdf: str) -> str | None:
        """The port that a function is plugged into."""
        parts = (self.link(f"{PCI}/{bdf}") or "").split("/")
        return parts[-2] if len(parts) > 1 and ":" in parts[-2] and "." in parts[-2] else None


def disagreements(lines: GroupedFacts) -> list[str]:
    """One sentence for each pair of layers that tell different things."""
    box = Layers(lines)
    rules = (_links, _bars, _gpus, _nvlinks, _memory, _ports, _arrays, _interfaces, _versions, _peers)
    return sorted(chain.from_iterable(rule(box) for rule in rules))


def _gen(text: str | None) -> int | None:
    return GENERATIONS.get(text.split()[0]) if text else None


def _links(box: Layers) -> Iterator[str]:
    """A link has one width and one generation, whichever end is asked, and NVML sees the GPU's end."""
    for bdf in box.names(PCI):
        port = box.above(bdf)
        if port is None or bdf.rpartition(".")[2] != "0" or box.text(f"{PCI}/{port}/vendor") == EMULATED:
            continue
        inside = box.text(f"{PCI}/{bdf}/class") == box.text(f"{PCI}/{port}/class")  # ports of one switch
        for name in () if inside else ("current_link_width", "current_link_speed"):
            ends = box.text(f"{PCI}/{bdf}/{name}"), box.text(f"{PCI}/{port}/{name}")
            if None not in ends and ends[0] != ends[1] and ends[0] not in DEAD:
                yield f"{name}: {bdf} has {ends[0]}, the port above it {ends[1]}"
    for bdf in box.gpus():
        width, seen = box.nvml("CurrPcieLinkWidth", bdf), box.number(f"{PCI}/{bdf}/current_link_width")
        if isinstance(width, int) and seen is not None and width != seen:
            yield f"{bdf}: NVML says x{width}, sysfs x{seen}"
        gen, speed = box.nvml("CurrPcieLinkGeneration", bdf), _gen(box.text(f"{PCI}/{bdf}/current_link_speed"))
        if isinstance(gen, int) and speed is not None and gen != speed:
            yield f"{bdf}: NVML says generation {gen}, sysfs {speed}"


def _bars(box: Layers) -> Iterator[str]:
    for bdf in box.gpus():
        memory = box.nvml("BAR1MemoryInfo", bdf)
        total = memory.get("bar1Total") if isinstance(memory, dict) else None
        rows = [line.split() for line in (box.text(f"{PCI}/{bdf}/resource") or "").split("\n")]
        ranges = [[int(word, 16) for word in row] for row in rows if len(row) == 3]
        sizes = [end - start + 1 for start, end, flags in ranges if flags & PREFETCHABLE]
        if isinstance(total, int) and sizes and total != max(sizes):
            yield f"{bdf}: NVML's BAR1 has {total >> 20} MiB, the PCI function's {max(sizes) >> 20}"


def _gpus(box: Layers) -> Iterator[str]:
    count, gpus = box.nvml("Count"), box.gpus()
    handles = box.lines.get("nvml nvmlDeviceGetHandleByIndex", {})
    given = [each for each in handles.values() if isinstance(each, str) or _is_lost(each)]
    if isinstance(count, int) and count != len(given):
        yield f"NVML counts {count} GPUs and has {len(given)} answers for their handles"
    for bdf in gpus:
        if bdf not in box.names(PCI):
            yield f"{bdf} is NVML's, and not on the PCI tree"
    for name in box.links(PCI):
        if name not in box.names(PCI):
            yield f"{name} has a link and no name under {PCI}"


def _is_lost(fact: Json) -> bool:
    return isinstance(fact, dict) and fact.get("missing") == "lost"


def _nvlinks(box: Layers) -> Iterator[str]:
    """What one end says is up, the other end says is up too."""
    up: dict[tuple[str, str], int] = {}
    for bdf in box.gpus():
        for link, state in box.lines.get(f"nvml nvmlDeviceGetNvLinkState {bdf}", {}).items():
            info = box.nvml("NvLinkRemotePciInfo", bdf, int(link))
            if state == 1 and isinstance(info, dict) and str(info.get("busId", ""))[4:].lower() in box.gpus():
                pair = bdf, str(info["busId"])[4:].lower()
                up[pair] = up.get(pair, 0) + 1
    for (a, b), links in up.items():
        if links != up.get((b, a), 0):
            yield f"NVLinks up: {a} says {links} to {b}, that says {up.get((b, a), 0)}"


def _memory(box: Layers) -> Iterator[str]:
    total = _kb(box.text("/proc/meminfo"))
    nodes = [
        _kb(box.text(f"{line}/meminfo"))
        for line in box.lines
        if re.fullmatch(r"/sys/devices/system/node/node\d+", line)
    ]
    known = [kb for kb in nodes if kb is not None]
    guest = " hypervisor " in (box.text("/proc/cpuinfo") or "")  # its memory may come to the nodes as it is used
    differ = bool(total) and len(known) == len(nodes) and abs(sum(known) - (total or 0)) > (total or 0) / 50
    if known and differ and not (guest and sum(known) < (total or 0)):
        yield f"/proc/meminfo has {total} kB, its nodes {sum(known)}"
    controllers = [box.number(f"{line}/size_mb") for line in box.lines if re.fullmatch(r".*/edac/mc/mc\d+", line)]
    sizes = [mb for mb in controllers if mb is not None]
    if total and sizes and not 0.9 < total / 1024 / sum(sizes) <= 1:
        yield f"/proc/meminfo has {total >> 10} MiB, the memory controllers {sum(sizes)}"


def _kb(text: str | None) -> int | None:
    found = re.search(r"MemTotal:\s+(\d+) kB", text or "")
    return int(found[1]) if found else None


def _ports(box: Layers) -> Iterator[str]:
    """An active port is up physically, and so is the network interface on it."""
    for device in box.names(IB):
        state, phys = (box.text(f"{IB}/{device}/ports/1/{name}") for name in ("state", "phys_state"))
        if state and phys and (state[0] in "234") != (phys[0] == "5"):
            yield f"{device}/1: {state}, but {phys}"
        where = (box.link(f"{IB}/{device}/device") or "").rpartition("/")[2]
        for interface in box.names("/sys/class/net"):
            if (box.link(f"/sys/class/net/{interface}/device") or "").rpartition("/")[2] != where or not where:
                continue
            carrier = box.text(f"/sys/class/net/{interface}/carrier") == "1"
            if state and carrier != (state[0] == "4"):
                yield f"{device}/1 is {state}, the carrier of {interface} is {'on' if carrier else 'off'}"


def _arrays(box: Layers) -> Iterator[str]:
    blocks = box.names("/sys/class/block")
    for name in (each for each in blocks if each.startswith("md")):
        for entry in box.names(f"/sys/class/block/{name}/md"):
            if entry.startswith("dev-") and entry[4:] not in blocks:
                yield f"{name} has the member {entry[4:]}, which is no block device"


def _interfaces(box: Layers) -> Iterator[str]:
    for name in box.names("/sys/class/net"):
        state, carrier = (box.text(f"/sys/class/net/{name}/{each}") for each in ("operstate", "carrier"))
        if state in ("up", "down") and carrier is not None and (state == "up") != (carrier == "1"):
            yield f"{name} is {state}, its carrier {carrier}"


def _versions(box: Layers) -> Iterator[str]:
    loaded, proc = box.text("/sys/module/nvidia/version"), box.text("/proc/driver/nvidia/version")
    if loaded and proc and loaded not in proc:
        yield f"the module is {loaded}, /proc/driver/nvidia/version says {proc.split(chr(10))[0]}"


def _peers(box: Layers) -> Iterator[str]:
    """What uses ib_core is loaded, and what has registered for GPU memory uses it."""
    loaded, holders = box.names("/sys/module"), box.names("/sys/module/ib_core/holders")
    for name in holders:
        if name not in loaded:
            yield f"{name} uses ib_core and is not loaded"
    if box.names("/sys/kernel/mm/memory_peers") and not {"nvidia_peermem", "nv_peer_mem"} & {*holders}:
        yield "a memory peer is registered, and no module that could be"
