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
from typing import NamedTuple

from dgxcheck.facts import limits

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
    "result": (("fleet",), "x.json", limits.RESULT_BYTES),
}
"""Commands, the name of the file that they read, and how much of it is read (unpacked)."""
_PACKED = ("packed recording", "bug report", "archive")
_ROWS = {
    "recording": b'{"schema": "dgxcheck/recording/1", "facts": {"/x": {"text": {' + b'"a": "b", ',
    "text": b"| N/A   40C    P0    44W / 300W |      0MiB / 16160MiB |      0%      Default |\n",
    "bug report": b"____________________________________________\n\n/usr/bin/lspci -nn\n\n06:00.0 0302: 10de:1db1\n",
    "kernel log": b"[    1.500000] NVRM: Xid (PCI:0000:06:00): 79, pid=17, GPU has fallen off the bus.\n",
    "journal": b'{"MESSAGE":"NVRM: Xid (PCI:0000:06:00): 79, pid=1, x","_BOOT_ID":"a","PRIORITY":"3"}\n',
    "profile": b'[gpus]\nmodel = "x"\n',
    "configuration": b'[thresholds]\n"thermal.warn" = 80\n',
    "result": b'{"schema": "dgxcheck/health/1", "host": "a", "verdict": "pass", "findings": []}\n',
}
"""What such an input is made of."""
CONTENTS: dict[str, Callable[[str], bytes]] = {
    "its own rows": lambda loader: _ROWS.get(loader, _ROWS["recording"]),
    "one row": lambda loader: b"a",
    "blank rows": lambda loader: b"\n",
    "brackets": lambda loader: b"[",
    "bytes": lambda loader: bytes(range(256)),
    "nothing": lambda loader: b"\0",
}


class Cost(NamedTuple):
    """What one run took."""

    code: int
    err: str
    seconds: float
    """Of CPU time."""
    mib: int
    """Resident, at its peak."""


def write(folder: Path, loader: str, content: str, size: int = 0) -> None:
    """The input of a loader: as large as it is read or, if given, of that size; packed, when it is unpacked."""
    data = _repeated(CONTENTS[content](loader), size or LOADERS[loader][2])
    (folder / LOADERS[loader][1]).write_bytes(_packed(loader, data) if loader in _PACKED else data)


def _repeated(piece: bytes, size: int) -> bytes:
    return (piece * (size // len(piece) + 1))[:size]


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
    with (folder / "err").open("w+") as err:
        process = subprocess.Popen([sys.executable, "-m", "dgxcheck", *words, name], cwd=folder, env=environment,
                                   stdout=subprocess.DEVNULL, stderr=err, preexec_fn=limited)  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        said = err.read()
    return Cost(process.returncode, said, usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10)


def every() -> Iterator[tuple[str, str]]:
    """Loaders with contents."""
    for loader in LOADERS:
        yield from ((loader, content) for content in CONTENTS)


def main() -> None:
    print(f"{'loader':<18}{'full of':<14}{'code':>5}{'CPU s':>8}{'MiB':>6}  stderr")
    for loader, content in every():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), loader, content)
            took = cost(loader, Path(folder))
        said = took.err.strip().splitlines() or [""]
        print(f"{loader:<18}{content:<14}{took.code:>5}{took.seconds:>8.1f}{took.mib:>6}  {len(said)} {said[0][:70]}",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
