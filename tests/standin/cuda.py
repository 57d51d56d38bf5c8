"""A ``libcuda.so.1`` of GPUs that a text describes: memory that holds bytes, virtual time, and faults on request.

The library reads the file of ``DGXCHECK_CUDA_BOX`` at ``cuInit``: lines of words, GPUs by index::

    gpu INDEX BDF MEMORY_MIB SMS CLOCK_KHZ [display] [mig] [exclusive]    in CUDA's order; exclusive: taken by another
    host INDEX H2D D2H        memory INDEX GB/s (2 x bytes copied)        fma INDEX TFLOP/s
    link A B GB/s             from A's memory to B's, peer access enabled; gives A access to B
    staged A B GB/s           without peer access        access A B 0|1   whether A may reach B
    latency A B US_ON US_OFF NS_SM                       the last: a load by A from B (A A: from its own memory)
    pace MS                                               real time, below a second, that each wait for work sleeps
    fault KIND ...

Faults, as ``fault`` lines::

    drop A B             copies by an engine from A to B with peer access move nothing
    drop-sm A B          what kernels of A store into B's memory vanishes
    mirror A B           what A writes into B's memory is seen by A alone
    wrong A B OFFSET     this byte of every copy from A to B with peer access, and of a ping-pong's data, arrives wrong
    wrong-memory A OFFSET    this byte of every buffer on A has bit 3 stuck at 1
    never-ready A [B]    streams of A never end; with B, a stream that carried data from A to B
    oom A MIB            A gives no more than this
    hang FUNCTION [A [B]]        crash FUNCTION [A [B]]        error FUNCTION CODE [A [B]]

FUNCTION is a driver call, with or without ``_v2``, or a kernel. A alone: in the context of A, or on its memory; A and
B: between their memories, from A to B (a kernel of A with a pointer into B; ``cuStreamQuery`` of a stream whose last
data between GPUs went so). An error that poisons a context in a real driver comes back from every later call.

Where real drivers differ by age, this one has ``cuDeviceGetUuid``, ``cuDeviceGetP2PAttribute`` and
``cuDevicePrimaryCtxRelease_v2``, or (``old_driver``) not. A copy takes latency + bytes / rate, whatever else runs; of
pageable memory, twice that. A stream with a spinning kernel is not ready until its flag or time-out comes.

``DGXCHECK_CUDA_LEDGER`` names a file that says what was never given back, after each release of a context and at exit;
what died with its context counts, too.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from standin.nvml import compiler

SONAME = "libcuda.so.1"
HERE = Path(__file__).parent
PARTS = (
    "box",
    "contexts",
    "copies",
    "devices",
    "errors",
    "faults",
    "kernels",
    "memory",
    "modules",
    "pingpong",
    "streams",
)
FLAGS = ("-std=gnu11", "-O2", "-ftree-vectorize", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
FIXTURES = HERE.parents[1] / "fixtures"


class Gpu(NamedTuple):
    """One GPU; rates in GB/s and TFLOP/s, ``flags`` of display, mig, exclusive, tensor."""

    bdf: str = "0000:06:00.0"
    memory_mib: int = 16160
    sms: int = 80
    clock_khz: int = 1_530_000
    h2d: float = 12.1
    d2h: float = 12.8
    copy: float = 750.0
    tflops: float = 14.0
    flags: tuple[str, ...] = ()


class Link(NamedTuple):
    """From one GPU to another: GB/s with peer access (None: no access) and staged, latency in us, us and ns."""

    gbs: float | None
    staged: float = 9.2
    on_us: float = 2.0
    off_us: float = 17.0
    sm_ns: float = 700.0


Links = Mapping[tuple[int, int], Link]


class Box(NamedTuple):
    """What ``text`` describes: change it with ``_replace`` and ``with_link``."""

    gpus: tuple[Gpu, ...]
    links: Links = MappingProxyType({})

    def text(self, *faults: str) -> str:
        return describe(self.gpus, self.links, faults)

    def with_link(self, a: int, b: int, link: Link) -> Box:
        return self._replace(links={**self.links, (a, b): link})


def describe(gpus: Iterable[Gpu], links: Links | None = None, faults: Sequence[str] = ()) -> str:
    """The text of a description file; ``faults`` without the word ``fault``."""
    lines = []
    for index, gpu in enumerate(gpus):
        size = f"{gpu.memory_mib} {gpu.sms} {gpu.clock_khz}"
        lines.append(" ".join((f"gpu {index} {gpu.bdf} {size}", *gpu.flags)))
        lines += [f"host {index} {gpu.h2d} {gpu.d2h}", f"memory {index} {gpu.copy}", f"fma {index} {gpu.tflops}"]
    for (a, b), link in (links or {}).items():
        if link.gbs is not None:
            lines.append(f"link {a} {b} {link.gbs}")
        lines += [f"staged {a} {b} {link.staged}", f"latency {a} {b} {link.on_us} {link.off_us} {link.sm_ns}"]
    lines += [f"fault {fault}" for fault in faults]
    return "\n".join([*lines, ""])


def build(directory: Path, *, old_driver: bool = False) -> Path:
    """Compile the library into a directory."""
    gcc = compiler()
    if gcc is None:
        raise FileNotFoundError("gcc")
    library = directory / SONAME
    variant = ("-DOLD_DRIVER",) if old_driver else ()
    sources = [str(HERE / f"cuda_{part}.c") for part in PARTS]
    linking = ("-fvisibility=hidden", f"-Wl,-soname,{SONAME}")
    subprocess.run((gcc, *FLAGS, *variant, *linking, "-o", str(library), *sources), check=True)
    return library


def environment(
    library: Path, description: Path, *, ledger: Path | None = None, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a child process that is to meet this library and this box."""
    given = dict(os.environ if base is None else base)
    path = [str(library.parent), *filter(None, [given.get("LD_LIBRARY_PATH")])]
    given |= {"LD_LIBRARY_PATH": ":".join(path), "DGXCHECK_CUDA_BOX": str(description)}
    if ledger is not None:
        given["DGXCHECK_CUDA_LEDGER"] = str(ledger)
    return given


def read_ledger(path: Path) -> dict[str, int]:
    """How many of each thing were never given back."""
    words = path.read_text().split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


# ---- boxes ----


def single() -> Box:
    """One GPU."""
    return Box((Gpu(),))


def dgx1_v100(first: int = 8, memory_mib: int = 16160) -> Box:
    """A DGX-1 with V100: hybrid cube mesh, one or two NVLinks of 24 GB/s, no peer access elsewhere; its first GPUs."""
    one, two = Link(24.2, on_us=1.6), Link(47.9, on_us=2.0)
    gpus, wired = _nvlinks("dgx-1-v100.json")
    return Box(tuple(Gpu(bdf, memory_mib) for bdf in gpus[:first]), _wired(first, wired, {1: one, 2: two}))


def dgx1_p100() -> Box:
    """A DGX-1 with P100: hybrid cube mesh, one NVLink of 18 GB/s, no peer access elsewhere."""
    gpus, wired = _nvlinks("dgx-1-p100.json")
    each = tuple(Gpu(bdf, 16276, 56, 1_480_500, copy=510.0, tflops=9.5) for bdf in gpus)
    return Box(each, _wired(len(gpus), wired, {1: Link(18.4, on_us=3.0, off_us=19.0, sm_ns=1100.0)}))


def k80_box() -> Box:
    """Eight GPUs of four K80: peer access over PCIe everywhere, slower the further apart."""
    gpus, _ = _nvlinks("k80-x8.json")
    each = tuple(Gpu(bdf, 11441, 13, 823_500, h2d=7.7, d2h=7.7, copy=145.0, tflops=2.5) for bdf in gpus)
    near, far = Link(9.3, 4.2, 7.5, 26.0, 1500.0), Link(7.9, 7.0, 27.0, 31.0, 2500.0)
    return Box(each, {(a, b): near if a // 4 == b // 4 else far for a, b in permutations(range(len(gpus)), 2)})


def _nvlinks(fixture: str) -> tuple[tuple[str, ...], dict[tuple[int, int], int]]:
    """The GPUs of a shipped box in NVML's order, and how many NVLinks join two of them."""
    facts = json.loads((FIXTURES / fixture).read_text())["facts"]
    handles = facts["nvml nvmlDeviceGetHandleByIndex"]
    gpus = tuple(handles[str(index)] for index in range(len(handles)))
    wired: dict[tuple[int, int], int] = {}
    for a, bdf in enumerate(gpus):
        for end in facts.get(f"nvml nvmlDeviceGetNvLinkRemotePciInfo {bdf}", {}).values():
            if "busIdLegacy" in end and (peer := end["busIdLegacy"].lower()) in gpus:
                pair = a, gpus.index(peer)
                wired[pair] = wired.get(pair, 0) + 1
    return gpus, wired


def _wired(gpus: int, wired: Mapping[tuple[int, int], int], links: Mapping[int, Link]) -> Links:
    apart = Link(None)
    return {pair: links[wired[pair]] if pair in wired else apart for pair in permutations(range(gpus), 2)}
