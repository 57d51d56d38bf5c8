"""The most that each loader reads, under 1 GiB and 30 s of CPU time: ``python tests/loader_costs.py`` measures.

The worst that each kind of input was seen to cost is in dgxcheck-recording(5), LIMITS.
"""

from __future__ import annotations

import gzip
import io
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from threading import Timer
from typing import NamedTuple

from dgxcheck import limits

ROOT = Path(__file__).parent.parent
BYTES = 64 << 20
MEMORY, CPU_S = 1 << 30, 30
TOPO, HEALTH = ("topo", "--from"), ("health", "-q", "--from", "dgx-1-v100")
LOADERS: dict[str, tuple[tuple[str, ...], str, int]] = {
    "recording": (TOPO, "x.json", limits.RECORDING_BYTES),
    "packed recording": (TOPO, "x.json.gz", limits.RECORDING_BYTES),
    "text": (("import", "-o", "out.json"), "x.txt", limits.IMPORT_BYTES),
    "bug report": ((*TOPO,), "nvidia-bug-report.log.gz", limits.UNPACKED_BYTES),
    "archive": (TOPO, "x.tar.gz", BYTES),
    "kernel log": ((*HEALTH, "--kernel-log"), "x.log", limits.LOG_BYTES),
    "journal": ((*HEALTH, "--kernel-log"), "journal.json", limits.LOG_BYTES),
    "profile": ((*HEALTH, "--profile"), "./x.toml", limits.TOML_BYTES),
    "configuration": ((*HEALTH, "--config"), "x.toml", limits.TOML_BYTES),
    "baseline": ((*HEALTH, "--baseline"), "x.json", limits.RECORDING_BYTES),
    "overlay": (TOPO, "fault.json", limits.OVERLAY_BYTES),
    "result": (("fleet",), "x.json", limits.RESULT_BYTES),
    "results": (("fleet",), "x.jsonl", BYTES),
    "fabric": (("fabric",), "ib.txt.gz", limits.FABRIC_BYTES),
    "counters": (("health", "--state"), "counters.json", limits.RECORDING_BYTES),
    "watch state": (("watch", "--no-health", "--state"), "watch.json", limits.WATCH_BYTES),
    "directory": (("health", "--from"), "tree", limits.TREE_BYTES),
    "outputs": (("import", "-o", "out.json"), "outputs", BYTES),
}
"""Commands, the name of the file that they read, and how much of it is read (unpacked)."""
_GOES_ON_S = {"watch state": 3.0}
"""Commands with an end of their own: after so many seconds, by when their input was read."""
_PACKED = ("packed recording", "bug report", "archive", "fabric")
_RESULT = (
    b'{"schema": "dgxcheck/result/1", "host": "a", "generated_at": "2026-11-22T10:00:00Z", "level": "quick",'
    b' "verdict": "pass", "found": [], "passed": {"ecc.dbe/GPU0": 0}}\n'
)
_ROWS = {
    "recording": b'{"schema": "dgxcheck/recording/1", "facts": {"/x": {"text": {' + b'"a": "b", ',
    "text": b"| N/A   40C    P0    44W / 300W |      0MiB / 16160MiB |      0%      Default |\n",
    "bug report": b"____________________________________________\n\n/usr/bin/lspci -nn\n\n06:00.0 0302: 10de:1db1\n",
    "kernel log": b"[    1.500000] NVRM: Xid (PCI:0000:06:00): 79, pid=17, GPU has fallen off the bus.\n",
    "journal": b'{"MESSAGE":"NVRM: Xid (PCI:0000:06:00): 79, pid=1, x","_BOOT_ID":"a","__MONOTONIC_TIMESTAMP":"15"}\n',
    "profile": b'[gpus]\nmodel = "x"\n',
    "configuration": b'[thresholds]\n"thermal.warn" = 80\n',
    "result": _RESULT,
    "results": _RESULT.replace(b'"a"', b'"node%07d"'),
    "fabric": b"CA 21 1 0x000000000010003f 4x EDR - SW 3 16 0x0000000000200001 ( 'dgx007 mlx5_3' - 'leaf01' )\n",
    "watch state": b'{"schema": "dgxcheck/watch-state/1", "boot_id": "b", "events": [{"at": "x", "text": "y"}], ',
    "outputs": b"[    1.500000] NVRM: Xid (PCI:0000:06:00): 79, pid=17, GPU has fallen off.\nGPU0\tX\tNV1\tSYS\n",
}
"""What such an input is made of; rows with a number differ from the one before, for a repeated row costs nothing."""
_HEAD = b"Start of NVIDIA bug report log file.\n"
_SECTION = b"\n____________________________________________\n\n%s\n\n%s\n"
_TITLES = (b"/usr/bin/dmesg", b"/usr/bin/nvidia-smi -q", b"/usr/bin/lspci -nn -vvv", b"/usr/bin/journalctl -b -1")
_OUTPUTS = ("nvidia-smi_-q.txt", "dmesg.txt", "lspci_-vvv.txt", "ibstat.txt")
_FILES = ("proc/cpuinfo", "proc/meminfo", "proc/modules", "proc/cmdline", "proc/version", "etc/os-release",
          "proc/driver/nvidia/version", "etc/dgx-release", "usr/share/misc/pci.ids")  # fmt: skip
_CLASSES = ("0x030200\n", "0x020000\n", "0x010802\n", "0x088000\n")
_FUNCTION = {"vendor": "0x10de\n", "device": "0x20b0\n", "numa_node": "0\n",
             "current_link_width": "16\n", "current_link_speed": "16.0 GT/s PCIe\n"}  # fmt: skip
_WORDS = (
    "gpu", "GPU0", "NVRM:", "Xid", "error", "failed", "mlx5_0", "PCI:0000:06:00", "link", "0x10de", "|", "=", "SYS",
    "NV1", "kernel:", "node", "Bandwidth", "12.5", "7", "nvidia", "{", "}", '"', ":", "[", "]", "-", "CPU", "state",
)  # fmt: skip
_ALIKE = ("NVRM: ", "[    1.500000] NVRM: ", "NVRM: Xid (", "nvidia ", "GPU0", "mlx5_core 0000:", "| N/A ", "NCCL ",
          "Nov 22 10:00:00 dgx kernel: ", "pcieport 0000:00:01.0: ", "{", "    ", "+---")  # fmt: skip
_LOG = (
    "[{0}.{1:06}] usb 1-1: new high-speed USB device number {0} using xhci_hcd",
    "[{0}.{1:06}] NVRM: Xid (PCI:0000:{2:02x}:00): 79, pid={1}, GPU has fallen off the bus.",
    "[{0}.{1:06}] pcieport 0000:{2:02x}:00.0: AER: Corrected error received: 0000:{2:02x}:00.0",
    "[{0}.{1:06}] mlx5_core 0000:{2:02x}:00.0 ib{0}: Link up",
    "[{0}.{1:06}] nvidia-nvlink: Nvlink Core is being initialized, major device number {1}",
    "[{0}.{1:06}] python3[{1}]: segfault at {0} ip 00007f3a5c0 sp 00007ffd error 4 in libc.so.6[7f3a+1c]",
)


def _lines(line: Callable[[Random], str], size: int) -> bytes:
    """Four MiB of such lines, and again: nothing repeats nearer."""
    random, found, total = Random(1), list[str](), 0
    while total < min(size, 4 << 20):
        found.append(line(random))
        total += len(found[-1]) + 1
    piece = "".join(f"{one}\n" for one in found).encode()
    return (piece * max(1, size // len(piece)))[:size]


def _words(random: Random) -> str:
    return " ".join(random.choices(_WORDS, k=random.randrange(1, 14)))


def _alike(random: Random) -> str:
    return random.choice(_ALIKE) + "".join(random.choices("abcdef0123456789 :.[]", k=random.randrange(40)))


def _log(random: Random) -> str:
    return random.choice(_LOG).format(random.randrange(99999), random.randrange(999999), random.randrange(256))


def _hosts(random: Random) -> str:
    return f"Nov 20 12:00:04 dgx{random.randrange(10**6)} kernel: {_LOG[1].format(1, 2, 3)}"


def _piece(piece: bytes) -> Callable[[str, int], bytes]:
    return lambda _, size: piece * ((size - 1) // len(piece))


def _own(loader: str, size: int) -> bytes:
    row = _ROWS.get(loader, _ROWS["recording"])
    if b"%07d" not in row:
        return _piece(row)(loader, size)
    return b"".join(row % number for number in range(size // len(row % 0)))


CONTENTS: dict[str, Callable[[str, int], bytes]] = {
    "its own rows": _own,
    "lists": lambda _, size: b"[" + _piece(b'{"":[{}]},')("", size - 1),
    "one row": _piece(b"a"),
    "blank rows": _piece(b"\n"),
    "rows of blanks": _piece(b"   \n"),
    "one row again": _piece(b"GPU0 failed\n"),
    "words": lambda _, size: _lines(_words, size - 1),
    "look-alikes": lambda _, size: _lines(_alike, size - 1),
    "a log": lambda _, size: _lines(_log, size - 1),
    "hosts": lambda _, size: _lines(_hosts, size - 1),
    "brackets": _piece(b"["),
    "bytes": _piece(bytes(range(256))),
    "nothing": _piece(b"\0"),
}


class Cost(NamedTuple):
    """What one run took."""

    code: int
    err: str
    printed: int
    """Bytes on stdout."""
    seconds: float
    """Of CPU time."""
    mib: int
    """Resident, at its peak."""


def write(folder: Path, loader: str, content: str, size: int = 0) -> None:
    """The input of a loader: as large as it is read or, if given, of that size; packed, when it is unpacked."""
    data = CONTENTS[content](loader, size or LOADERS[loader][2])
    if loader == "bug report" and not size:
        part = data[: limits.BUNDLE_BYTES // len(_TITLES)]
        data = _HEAD + b"".join(_SECTION % (title, part) for title in _TITLES) + data[limits.BUNDLE_BYTES :]
    place = folder / LOADERS[loader][1]
    if loader == "directory":
        _tree(place, data, functions=10_000 if content == "its own rows" else 10)
    elif loader == "outputs":
        place.mkdir()
        share = len(data) // len(_OUTPUTS)
        for number, name in enumerate(_OUTPUTS):
            (place / name).write_bytes(data[number * share : (number + 1) * share])
    else:
        place.write_bytes(_packed(loader, data) if loader in _PACKED else data)


def _tree(root: Path, data: bytes, functions: int) -> None:
    """A machine's files full of the data, and so many functions, a quarter of them GPUs."""
    devices = root / "sys/bus/pci/devices"
    for number in range(functions):
        folder = devices / f"{number >> 13:04x}:{number >> 5 & 0xFF:02x}:{number & 0x1F:02x}.0"
        folder.mkdir(parents=True)
        for name, text in {**_FUNCTION, "class": _CLASSES[number % len(_CLASSES)]}.items():
            (folder / name).write_text(text)
        if functions < 100:
            for name in ("label", "config", "resource", "uevent"):
                (folder / name).write_bytes(data[: limits.ATTRIBUTE_BYTES])
    for name in _FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data[: limits.FILE_BYTES])


def _packed(loader: str, data: bytes) -> bytes:
    if loader == "archive":
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w:gz", compresslevel=1) as archive:
            member = tarfile.TarInfo("sosreport-x/proc/cpuinfo")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        return whole.getvalue()
    return gzip.compress(data, 1)


def cost(loader: str, folder: Path) -> Cost:
    """Run the command on the input under the limits; both are also killed by the wall clock, after minutes."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))

    words, name, _ = LOADERS[loader]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "STATE_DIRECTORY": str(folder / "state")}
    with (folder / "err").open("w+") as err, (folder / "out").open("w") as out:
        process = subprocess.Popen([sys.executable, "-m", "dgxcheck", *words, name], cwd=folder, env=environment,
                                   stdout=out, stderr=err, preexec_fn=limited)  # fmt: skip
        if loader in _GOES_ON_S:
            Timer(_GOES_ON_S[loader], process.terminate).start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        said = err.read()
    printed = (folder / "out").stat().st_size
    return Cost(process.returncode, said, printed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10)


def every() -> Iterator[tuple[str, str]]:
    """Loaders with contents."""
    for loader in LOADERS:
        yield from ((loader, content) for content in CONTENTS)


def main(*loaders: str) -> None:
    print(f"{'loader':<18}{'full of':<14}{'code':>5}{'CPU s':>8}{'MiB':>6}  stderr")
    for loader, content in every():
        if loaders and loader not in loaders:
            continue
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), loader, content)
            took = cost(loader, Path(folder))
        said = took.err.strip().splitlines() or [""]
        print(f"{loader:<18}{content:<14}{took.code:>5}{took.seconds:>8.1f}{took.mib:>6}  {len(said)} {said[0][:70]}",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
