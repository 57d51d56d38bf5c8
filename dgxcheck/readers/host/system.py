"""CPUs, NUMA nodes, kernel modules and versions: lscpu, numactl, lsmod, uname, the driver's version file; file systems
that are full, and whether the clock is synchronised: df, chronyc, timedatectl."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import OF_THE_KERNEL
from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import NODES, cpulist, ranges, runs_of
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import bare, bounded, integer, numbered
from dgxcheck.readers.wording import any_of, results, wordings

_MEMBER = LazyPattern(r"(?P<name>[A-Z][\w ().,/-]{1,50}?):\s{0,60}(?P<value>.{0,4000})")
_NODE = LazyPattern(r"NUMA node(?P<node>\d{1,4}) CPU\(s\)")
_LABELS = LazyPattern(any_of("host/lines", "lscpu"))


def read_lscpu(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The nodes; their list only where as many are shown as lscpu counts. Of x86 alone lscpu sees every hypervisor."""
    part = ToolPart("lscpu")
    nodes: list[str] = []
    values: dict[str, str] = {}
    for number, raw in enumerate(bounded(lines)):
        member = _MEMBER.fullmatch(bare(raw)) if ":" in raw else None
        if member is None or not _LABELS.fullmatch(member["name"].strip()):
            continue
        name, value = member["name"].strip(), member["value"].strip()
        part.lines.add(number)
        values[name] = value
        if (node := _NODE.fullmatch(name)) and ranges(value) is not None:
            nodes.append(f"node{node['node']}")
            part.found[f"text {NODES}/node{node['node']}/cpulist"] = f"{value}\n"
        elif name == "On-line CPU(s) list" and ranges(value):
            part.found["text /sys/devices/system/cpu/online"] = f"{value}\n"
    count, sockets = (integer(values.get(name, ""), 1024) for name in ("NUMA node(s)", "Socket(s)"))
    if nodes and count == len(set(nodes)):
        part.found[f"names {NODES}"] = [*dict.fromkeys(nodes)]
    online, offline = (ranges(values.get(f"O{word}-line CPU(s) list", "")) for word in ("n", "ff"))
    if offline and online and offline[0][0] < online[-1][-1]:  # those above may be threads, with SMT off
        part.add(HOST, "cpus", "warn", Fault.CPU_OFFLINE, f"CPUs {values['Off-line CPU(s) list']} are offline")
    host = values.get("Vendor ID") in ("GenuineIntel", "AuthenticAMD") and "Hypervisor vendor" not in values
    if host and count and sockets and count < sockets:
        text = f"{count} NUMA node{'s' * (count > 1)} for {sockets} sockets"
        part.add(HOST, "numa", "warn", Fault.NUMA_TABLES, text)
    return part.imported() if part.found else ()


_NUMACTL_HEAD = ascii_pattern(r"available: (\d{1,4}) nodes? \(.{1,200}\)")
_CPUS = ascii_pattern(r"node (\d{1,4}) cpus:((?: \d{1,5}){0,8192})")
_SIZE = ascii_pattern(r"node (\d{1,4}) size: (\d{1,12}) MB")
_FREE = ascii_pattern(r"node \d{1,4} free: \d{1,12} MB|No distance information available\.")
_TITLES = ascii_pattern(r"node distances:|node(?:\s+\d{1,4}){1,256}")
_DISTANCES = ascii_pattern(r"(\d{1,4}):((?:\s+\d{1,3}){1,256})")


def read_numactl(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The nodes; their list is given only where as many are shown as the head says."""
    part = ToolPart("numactl -H")
    nodes: list[str] = []
    below = False
    total: int | None = None
    for number, line in numbered(lines, bare):
        if match := _NUMACTL_HEAD.fullmatch(line):
            total = int(match[1])
        elif match := _CPUS.fullmatch(line):
            nodes.append(f"node{match[1]}")
            runs = runs_of(sorted({*map(int, match[2].split())}))
            part.found[f"text {NODES}/node{match[1]}/cpulist"] = f"{cpulist(runs)}\n"
        elif match := _SIZE.fullmatch(line):
            kib = int(match[2]) * 1024
            part.found[f"text {NODES}/node{match[1]}/meminfo"] = f"Node {match[1]} MemTotal: {kib} kB\n"
        elif nodes and _TITLES.fullmatch(line):
            below = True
        elif below and (match := _DISTANCES.fullmatch(line)):
            part.found[f"text {NODES}/node{match[1]}/distance"] = f"{' '.join(match[2].split())}\n"
        elif not (nodes and _FREE.fullmatch(line)):
            continue
        part.lines.add(number)
    if total is None or total == len(set(nodes)):
        part.found[f"names {NODES}"] = [*dict.fromkeys(nodes)]
    return part.imported() if nodes else ()


MODULES_TOOL = "lsmod"
_NAME = ascii_pattern(r"[\w-]{1,64}")
_OF_ALL = ascii_pattern(
    r"(?P<name>[\w-]{1,64})\s+-?\d{1,9}\s+(?P<count>-?\d{1,9})(?:\s+(?P<users>\S+))?"
    r"(?:\s+(?P<state>Live|Loading|Unloading)(?:\s+\S+){0,2})?"
)
_ROW = ascii_pattern(
    rf"(?P<name>{any_of('host/lines', 'modules')}) {{1,40}}\d{{3,9}} {{1,8}}-?\d{{1,5}}(?: {{1,4}}[\w,-]{{1,400}})?"
)
"""Of ``lsmod | grep``: the modules that are asked for."""
_MODULES_HEAD = ["Module", "Size", "Used", "by"]


def read_modules(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """All modules: rows below lsmod's head, or those of the file, which say ``Live``.

    Drivers that are built into the kernel are in ``/sys/module`` alone, so not among these. Rows without a head that
    are not the file's (``lsmod | grep``) tell only that these modules are loaded: what they leave out may be, too.
    """
    return _all(lines) or _some(lines)


def _all(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    part = ToolPart(MODULES_TOOL)
    names: list[str] = []
    below = False
    for number, line in numbered(lines):
        row = _OF_ALL.fullmatch(line)
        if line.split() == _MODULES_HEAD:
            below = True
        elif row and (row["state"] or below):
            name, users = row["name"], (row["users"] or "").split(",")
            names.append(name)
            part.found[f"text /sys/module/{name}/refcnt"] = f"{row['count']}\n"
            if row["state"]:
                part.found[f"text /sys/module/{name}/initstate"] = f"{row['state'].lower()}\n"
            part.found[f"names /sys/module/{name}/holders"] = [*sorted(set(filter(_NAME.fullmatch, users)) - {"-"})]
        else:
            below = below and not line
            continue
        part.lines.add(number)
    part.found["names /sys/module"] = [*sorted(names)]
    _other_driver(part, names)
    return part.imported() if names else ()


def _other_driver(part: ToolPart, names: Collection[str]) -> None:
    """The kernel loads its own driver for an NVIDIA GPU; while it has that, NVIDIA's cannot."""
    if "nvidia" not in names and (own := next((name for name in names if name in OF_THE_KERNEL.values()), "")):
        part.add(HOST, "modules", "warn", Fault.NOUVEAU, f"{own} is loaded, which keeps NVIDIA's driver from the GPUs")


def _some(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Rows of modules for GPUs and HCAs that were taken out of the list."""
    part = ToolPart(MODULES_TOOL)
    found = {number: row["name"] for number, text in numbered(lines) if (row := _ROW.fullmatch(text))}
    for name in dict.fromkeys(found.values()):
        part.add(HOST, "modules", "pass", text=f"{name} is loaded")
    _other_driver(part, found.values())
    part.lines.update(found)
    return part.imported()


FILE = "/proc/driver/nvidia/version"
_MODULE = LazyPattern(r"NVRM version: NVIDIA UNIX .{0,60}Kernel Module .{0,60}\d{3}\.\d{1,4}.{0,120}")
_COMPILER = LazyPattern(r"GCC version: .{1,200}")


def read_driver_version(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Nothing of texts that show two modules: which of them is loaded is not known."""
    found = {number: text for number, text in numbered(lines) if _MODULE.fullmatch(text)}
    if len(set(found.values())) != 1:
        return ()
    behind = {at + 1 for at in found if _COMPILER.fullmatch("".join(lines[at + 1 : at + 2]).strip())}
    facts: dict[str, Json] = {f"text {FILE}": f"{text}\n" for text in found.values()}
    return (Imported(tool=FILE, facts=facts, understood=frozenset({*found} | behind)),)


TEGRA_FILE = "/etc/nv_tegra_release"
_TEGRA = LazyPattern(any_of("host/lines", "Jetson"))
"""The file, and what tegrastats prints."""


def read_tegra(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The release of the system of a Jetson; of tegrastats no more than that it is one."""
    part = ToolPart(TEGRA_FILE)
    part.found |= {f"text {TEGRA_FILE}": f"{match[0]}\n" for match in part.matches(_TEGRA, numbered(lines))}
    return part.imported()


_DF_HEAD = LazyPattern(r"(?:Filesystem|Dateisystem|Sys\. de fichiers|S\.ficheros)\s.{0,80}\w%\s{1,8}\S.{3,20}")
_DF_ROW = LazyPattern(
    r"(?P<source>\S{1,255})\s{1,80}(?:[a-z][\w.-]{1,20}\s{1,20})?[\d.,]{1,20}[KMGTP]?\s{1,20}[\d.,]{1,20}[KMGTP]?\s{1,20}"
    r"(?P<left>[\d.,]{1,20}[KMGTP]?)\s{1,20}(?P<use>\d{1,3}|-)%?\s{1,20}(?P<at>/.{0,255})"
)
_READ_ONLY = LazyPattern(r"/dev/loop\d{1,3}|squashfs|efivarfs|/dev/sr\d")
"""Images and such, which are as large as what they hold."""
_FULL = 100


def read_file_systems(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``df``: those that are full; ``/dev/shm`` is shared memory, and another directory's is of its programs."""
    part = ToolPart("df")
    inside = False
    for number, text in numbered(lines):
        if _DF_HEAD.fullmatch(text):
            inside = True
        elif inside and (row := _DF_ROW.fullmatch(text)):
            if row["use"].isdecimal() and int(row["use"]) >= _FULL and not _READ_ONLY.fullmatch(row["source"]):
                fault = Fault.SHARED_MEMORY if row["at"] == "/dev/shm" else Fault.DISK_FULL
                part.add(HOST, "full", "warn", fault, f"{row['at']} ({row['source']}) is full: {row['left']} left")
        else:
            inside = False
            continue
        part.lines.add(number)
    return part.imported(sound="space")


_CLOCK = wordings("host/results", "clock")
_OF_CLOCK = LazyPattern(any_of("host/lines", "clock"))


def read_clock(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``chronyc tracking`` and ``timedatectl``."""
    return results("clock", _CLOCK, numbered(lines), beside=_OF_CLOCK)


_UNAME = LazyPattern(r"(?:uname: )?Linux (?P<host>\S{1,255}) (?P<release>\d\S{0,100}) #\S.*")


def read_uname(lines: Iterable[str]) -> dict[str, Json]:
    """Name of the host and release of its kernel, of the first line that has them."""
    match = next(filter(None, map(_UNAME.match, lines)), None)
    if match is None:
        return {}
    return {"text /proc/sys/kernel/hostname": f"{match['host']}\n",
            "text /proc/sys/kernel/osrelease": f"{match['release']}\n"}  # fmt: skip
