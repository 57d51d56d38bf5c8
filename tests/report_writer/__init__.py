"""``nvidia-bug-report.log.gz`` of a recorded machine, in the format of the script as public reports show it."""

from __future__ import annotations

import gzip
import time

from dgxcheck.facts.missing import Missing, rows
from dgxcheck.source.protocol import Source
from report_writer.lspci import listing, listing_of_vendor, numbers, tree
from report_writer.nvidia_smi import bound, error_counters, gpus, query, remote_ends, status

LINE = "_" * 44
_FILES = ("/etc/os-release", "/etc/dgx-release", "/proc/cmdline", "/proc/cpuinfo", "/proc/meminfo", "/proc/version",
          "/proc/driver/nvidia/version", "/proc/driver/nvidia/params", "/proc/sys/kernel/numa_balancing")  # fmt: skip
_BITS = "/sys/bus/pci/devices"
_NODES = "/sys/devices/system/node"
_DMI = "/sys/class/dmi/id"
HEAD = """\
Start of NVIDIA bug report log file.  Please include this file, along
with a detailed description of your problem, when reporting a graphics
driver bug via the NVIDIA Linux forum (see forums.developer.nvidia.com)
or by sending email to 'linux-bugs@nvidia.com'.

nvidia-bug-report.sh Version: {version}

Date: Mon 23 Nov 2026 10:00:00 AM CET
uname: Linux {host} {release} #1 SMP x86_64 GNU/Linux
command line flags:
"""


def report(source: Source, old: bool = False) -> bytes:
    """The packed report; ``old``: as scripts until 2022 wrote it, with the bytes of NVIDIA's functions alone."""
    return b"".join(gzip.compress(section.encode(), 1) for section in sections(source, old))


def sections(source: Source, old: bool) -> list[str]:
    """Each section with the line above it, in the order of the script."""
    found = [HEAD.format(version=28893081 if old else 38278083, host=_line(source, "/proc/sys/kernel/hostname"),
                         release=_line(source, "/proc/sys/kernel/osrelease"))]  # fmt: skip
    found += [_file(source, path) for path in _FILES[:2]]
    if old:
        found += [f'/usr/bin/lspci -d "10de:*" -v -xxx\n\n{listing_of_vendor(source, 0x10DE)}',
                  f'/usr/bin/lspci -d "10b5:*" -v -xxx\n\n{listing_of_vendor(source, 0x10B5)}',
                  f"/usr/bin/lspci -t\n\n{tree(source)}", f"/usr/bin/lspci -nn\n\n{numbers(source)}"]  # fmt: skip
    else:
        found += [f"/usr/bin/lspci -nntv\n\n{tree(source)}", f"/usr/bin/lspci -nn\n\n{numbers(source)}",
                  f"/usr/bin/lspci -nnDvvvxxxx\n\n{listing(source)}"]  # fmt: skip
    found += [_file(source, f"{_NODES}/{name}") for name in ("online",)]
    found += [
        _file(source, f"{_BITS}/{gpu}/{name}") for gpu in _gpus(source) for name in ("local_cpulist", "numa_node")
    ]
    found += [f"/sbin/dmidecode\n\n{_dmi(source)}", f"/usr/bin/numactl -H\n\n{_numa(source)}"]
    found += [f"Scanning kernel log files for NVIDIA kernel messages:\n\n  journalctl -b -0:\n{_journal(source)}"]
    found += [f"dmesg:\n\n{_dmesg(source)}"]
    found += [_file(source, path) for path in _FILES[2:]]
    found += [f"*** /proc/modules\n*** ls: -r--r--r-- 1 root root 0 2026-11-23 10:00:00.0 +0100 x\n{_modules(source)}"]
    found += [_held(gpu) for gpu in _listed(source)]
    smi = [f"/usr/bin/nvidia-smi --query\n\n{query(source)}", "/usr/bin/nvidia-smi --query --unit\n"]
    smi += [f"/usr/bin/nvidia-smi nvlink --errorcounters\n\n{error_counters(source)}",
            f"/usr/bin/nvidia-smi nvlink --remotelinkinfo\n\n{remote_ends(source)}",
            f"/usr/bin/nvidia-smi nvlink --status\n\n{status(source)}"]  # fmt: skip
    found += ["\n\n".join(smi)] if not old else ["\n\n".join(smi[:2])]
    found += [f"/usr/sbin/ibstat\n\n{_ibstat(source)}"] if not old else []
    return [f"{LINE}\n\n{text}\n" for text in (*found, "End of NVIDIA bug report log file.")]


def _line(source: Source, path: str) -> str:
    text = source.text(path)
    return "unknown" if isinstance(text, Missing) else text.strip()


def _file(source: Source, path: str) -> str:
    text = source.text(path)
    if isinstance(text, Missing):
        return f"*** {path} does not exist"
    return f"*** {path}\n*** ls: -r--r--r-- 1 root root 4096 2026-11-23 10:00:00.123456789 +0100 {path}\n{text}"


def _listed(source: Source) -> list[str]:
    """What the driver's directory shows: all its GPUs, or in a container those that it was given."""
    return bound(source) if isinstance(source.text("/.dockerenv"), Missing) else gpus(source)


def _held(gpu: str) -> str:
    path = f"/proc/driver/nvidia/gpus/{gpu}/information"
    return f"*** {path}\n*** ls: -r--r--r-- 1 root root 0 2026-11-23 10:00:00.0 +0100 {path}\nBus Location: \t {gpu}"


def _gpus(source: Source) -> list[str]:
    names = source.names(_BITS)
    if isinstance(names, Missing):
        return []
    classes = {name: source.text(f"{_BITS}/{name}/class") for name in names}
    displays = [name for name, code in classes.items() if isinstance(code, str) and code.startswith("0x03")]
    return [name for name in displays if _line(source, f"{_BITS}/{name}/vendor") == "0x10de"]


def _dmi(source: Source) -> str:
    def rows(*pairs: tuple[str, str]) -> str:
        texts = ((label, source.text(f"{_DMI}/{file}")) for label, file in pairs)
        return "".join(f"\t{label}: {text.strip()}\n" for label, text in texts if isinstance(text, str))

    return (
        "# dmidecode 3.3\nGetting SMBIOS data from sysfs.\n\nHandle 0x0000, DMI type 0, 26 bytes\nBIOS Information\n"
        + rows(("Vendor", "bios_vendor"), ("Version", "bios_version"), ("Release Date", "bios_date"))
        + "\nHandle 0x0001, DMI type 1, 27 bytes\nSystem Information\n"
        + rows(("Manufacturer", "sys_vendor"), ("Product Name", "product_name"), ("Version", "product_version"),
               ("Serial Number", "product_serial"))
        + "\nHandle 0x0002, DMI type 2, 15 bytes\nBase Board Information\n"
        + rows(("Manufacturer", "board_vendor"), ("Product Name", "board_name"))
    )  # fmt: skip


def _numa(source: Source) -> str:
    names = source.names(_NODES)
    nodes = [] if isinstance(names, Missing) else sorted(name for name in names if name[4:].isdecimal())
    rows = [f"available: {len(nodes)} nodes (0-{len(nodes) - 1})"]
    for name in nodes:
        cpus = source.text(f"{_NODES}/{name}/cpulist")
        if isinstance(cpus, Missing):
            continue
        runs = [run.partition("-") for run in cpus.strip().split(",") if run]
        numbers = [cpu for first, _, last in runs for cpu in range(int(first), int(last or first) + 1)]
        rows.append(f"node {name[4:]} cpus:{''.join(f' {cpu}' for cpu in numbers)}")
    distances = {name: source.text(f"{_NODES}/{name}/distance") for name in nodes}
    rows += ["node distances:", "node  " + "  ".join(f"{name[4:]:>2}" for name in nodes)]
    rows += [f"{name[4:]:>3}: {text.strip()}" for name, text in distances.items() if isinstance(text, str)]
    return "\n".join(rows) + "\n"


def _own(line: str) -> bool:
    return ";dgxcheck: " in line


def _dmesg(source: Source) -> str:
    log = source.kernel_log()
    if isinstance(log, Missing):
        return ""
    rows = [line.partition(";") for line in log if not _own(line)]
    begin = float(log[0].partition(";")[0])
    start = [f"[{begin:12.6f}] Linux version 5.4.0-generic"] if begin == 0.0 else []
    start += [f"[    0.400000] iommu: Default domain type: {words} " for words in _domains(source)]
    return "\n".join([*start, *(f"[{float(seconds):12.6f}] {message}" for seconds, _, message in rows)]) + "\n"


def _domains(source: Source) -> list[str]:
    links = [source.link(f"{_BITS}/{gpu}/iommu_group") for gpu in _gpus(source)]
    groups = {link.rpartition("/")[2] for link in links if isinstance(link, str)}
    types = {_line(source, f"/sys/kernel/iommu_groups/{group}/type") for group in groups}
    return [word for name, word in (("DMA", "Translated"), ("identity", "Passthrough")) if types == {name}]


def _journal(source: Source) -> str:
    """The driver's lines of the same boot again, dated."""
    log = source.kernel_log()
    rows = [] if isinstance(log, Missing) else [line.partition(";") for line in log if not _own(line)]
    return "".join(
        f"Nov 23 {time.strftime('%H:%M:%S', time.gmtime(32400 + float(seconds) % 36000))} box kernel: {message}\n"
        for seconds, _, message in rows if "NVRM" in message or "nvidia-" in message
    )  # fmt: skip


def _modules(source: Source) -> str:
    names = source.names("/sys/module")
    return (
        "" if isinstance(names, Missing) else "".join(f"{name} 16384 0 - Live 0xffffffffc0000000\n" for name in names)
    )


def _ibstat(source: Source) -> str:
    base = "/sys/class/infiniband"
    names = source.names(base)
    listed = []
    for name in rows(names):
        guid = _line(source, f"{base}/{name}/node_guid").replace(":", "")
        listed += [f"CA '{name}'", f"\tCA type: {_line(source, f'{base}/{name}/hca_type')}",
                 f"\tFirmware version: {_line(source, f'{base}/{name}/fw_ver')}", f"\tNode GUID: 0x{guid}"]  # fmt: skip
        ports = source.names(f"{base}/{name}/ports")
        for port in rows(ports):
            at = f"{base}/{name}/ports/{port}"
            state = _line(source, f"{at}/state").partition(": ")[2]
            words = {"ACTIVE": "Active", "DOWN": "Down", "INIT": "Initializing", "ARMED": "Armed"}
            listed += [f"\tPort {port}:", f"\t\tState: {words.get(state, state)}",
                     f"\t\tPhysical state: {_line(source, f'{at}/phys_state').partition(': ')[2]}",
                     f"\t\tRate: {_line(source, f'{at}/rate').partition(' ')[0]}",
                     f"\t\tSM lid: {int(_line(source, f'{at}/sm_lid').replace('unknown', '0'), 16)}",
                     f"\t\tLink layer: {_line(source, f'{at}/link_layer')}"]  # fmt: skip
    return "\n".join(listed) + "\n"
