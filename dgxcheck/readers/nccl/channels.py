"""How the GPUs of one host are connected in NCCL's log: the system graph, and what its channels move data over.

NCCL's classes are its own: PHB includes NODE, and PIX what nvidia-smi calls PXB within one switch chip. What each form
of the line means: https://github.com/NVIDIA/nccl/tree/master/src/transport (p2p.cc, shm.cc, net.cc).

What it logs of a GPU's NVLink fabric at start is NVML's answer, as ``nvmlGpuFabricInfo_v2_t`` has it: ``MNNVL busId
0x901000 fabric UUID 3143b15b.28cc9b54 cliqueId 0x7ffe state 3 healthMask 0xaa``, from 2.21 on
(https://github.com/NVIDIA/nccl/blob/master/src/init.cc).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from dgxcheck.facts.bdf import IdPair
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.listing import WITHOUT_NUMBER, gpu_function
from dgxcheck.readers.model import HOST, Reports
from dgxcheck.readers.nccl.warnings import Gpus, bdf_of
from dgxcheck.readers.values import gpu, imported

_NODE = r"GPU/(?:(?P<{0}host>\d{{1,5}})-)?(?P<{0}bus>[0-9A-Fa-f]{{4,10}})"
_HANGS = LazyPattern(rf"\s{{0,64}}\+ (?:PCI|NVL|C2C)\[[\d.]{{1,12}}\] - {_NODE.format('')}(?: \(\d{{1,6}}\))?")
_FROM = LazyPattern(rf"{_NODE.format('')} :(?P<ways>GPU/.{{1,8000}})")
_WAY = LazyPattern(rf"{_NODE.format('')} \(\d{{1,4}}/[\d.]{{1,16}}/(?P<kind>[A-Z0-9]{{3}})\)")


class Graph:
    """The GPUs of the host that a log's lines are of, and the classes of their pairs."""

    def __init__(self) -> None:
        self._gpus: dict[str, None] = {}
        self._pairs: dict[tuple[str, str], str] = {}

    def take(self, text: str) -> None:
        """A line without NCCL's prefix. Hosts other than the first are left out."""
        if match := _HANGS.fullmatch(text):
            self._gpu(match)
        elif match := _FROM.fullmatch(text):
            begin = self._gpu(match)
            for way in _WAY.finditer(match["ways"]):
                end = self._gpu(way)
                if begin and end and begin != end:
                    self._pairs[begin, end] = way["kind"]

    def kind(self, a: str, b: str) -> str:
        """NCCL's class of a pair of GPUs, ``NVL``, ``PIX`` ..; empty where the log does not show it."""
        return self._pairs.get((a, b)) or self._pairs.get((b, a), "")

    def facts(self) -> Iterator[tuple[str, Json]]:
        """What sysfs and ``nvidia-smi topo -mp`` would say."""
        for bdf in self._gpus:
            yield from gpu_function(bdf).items()
        for (a, b), kind in self._pairs.items():
            is_path = kind in ("SYS", "PXB")
            gap: Json = {"missing": "unrecorded", "detail": f"NCCL's log says {kind}, which may be another class here"}
            yield f"stated label-pci {a} {b}", kind if is_path else gap

    def _gpu(self, match: re.Match[str]) -> str | None:
        bdf = bdf_of(match["bus"])
        if bdf is None or int(match["host"] or 0):
            return None
        self._gpus[bdf] = None
        return bdf


_VIA = LazyPattern(
    r"(?:Channel|Ring) \d{1,3}(?:/\d{1,3})? ?: ?\d{1,7}(?:\[(?P<a>[0-9a-f]{1,13})\])? -> "
    r"\d{1,7}(?:\[(?P<b>[0-9a-f]{1,13})\])? (?:\[(?P<way>send|receive)\] )?via "
    r"(?P<how>P2P/indirect|P2P|SHM|direct shared memory|NET/[\w -]{1,40})(?P<more>.{0,120})"
)
_REFUSED = LazyPattern(
    r"Could not enable P2P between dev \d{1,3}\(=(?P<a>[0-9a-f]{3,13})\) and dev \d{1,3}\(=(?P<b>[0-9a-f]{3,13})\)"
)
"""CUDA gives no access: usual for GeForce boards, and between sockets."""
_MULTINODE = LazyPattern(r"\bMNNVL 1\b")
"""NVLinks between hosts: a GPU that data goes to directly may be another host's."""
_DISABLED = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")
_READS = "NCCL_P2P_READ_ENABLE"
GDR = "/GDRDMA"
_READ = LazyPattern(r"/(?:IPC|CUMEM|direct pointer)/read|direct pointer/read")


class Channels:
    """The transports of the pairs of GPUs, and of what leaves the host."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self._direct: dict[IdPair, int] = {}
        self._by_read: dict[IdPair, None] = {}
        self._shared: dict[IdPair, None] = {}
        self._refused: dict[IdPair, int] = {}
        self._multinode = False
        self.received: Counter[str] = Counter()
        """Ways of data from other hosts: ``NET/IB``, ``NET/IB/GDRDMA``, ``NET/Socket``."""
        self.sent: Counter[str] = Counter()

    def take(self, text: str, number: int) -> bool:
        """Is a line (without NCCL's prefix) a channel's?"""
        self._multinode = self._multinode or _MULTINODE.search(text) is not None
        if refused := _REFUSED.fullmatch(text):
            for pair in self._pair(refused["a"], refused["b"]):
                self._refused.setdefault(pair, number)
            return True
        via = _VIA.fullmatch(text)
        if via is None:
            return False
        how, more = via["how"], via["more"]
        if how.startswith("NET/"):
            ways = self.received if via["way"] == "receive" else self.sent
            ways[f"{how}{GDR}" if GDR in more else how] += 1
            return True
        for pair in self._pair(via["a"] or "", via["b"] or ""):
            if how == "P2P":
                self._direct.setdefault(pair, number)
                if _READ.match(more):
                    self._by_read[pair] = None
            elif how != "P2P/indirect":
                self._shared[pair] = None
        return True

    def _pair(self, a: str, b: str) -> Iterator[IdPair]:
        """Two GPUs that are known, or nothing."""
        first, second = self._gpus.named(a), self._gpus.named(b)
        if first is not None and second is not None and first != second:
            yield first, second

    def facts(self, tool: str) -> Iterator[tuple[str, Json]]:
        """``measure access A B``: whether CUDA gives A access to the memory of B, as a direct channel needs."""
        if self._multinode:
            return
        for answer, pairs in ((False, self._refused), (True, self._direct)):
            for (a, b), number in pairs.items():
                yield f"measure access {a} {b}", imported(answer, "", tool=tool, line=number, method="channel of NCCL")

    def report(self, graph: Graph, settings: Mapping[str, str], reports: Reports) -> None:
        """Pairs over host memory where the same log shows that the two GPUs could do without.

        Either its graph has NVLinks between them, or a PCIe path over which others of its pairs talk directly. Or they
        read from several GPUs each, as NCCL does over NVLinks alone: then these lead everywhere.
        """
        if self._multinode:
            return
        direct = {frozenset(pair) for pair in self._direct}
        used = {graph.kind(*pair) for pair in self._direct}
        why = ", ".join(f"{name} is set to {settings[name]}" for name in _DISABLED if name in settings)
        reported: set[frozenset[str]] = set()
        for a, b in self._shared:
            pair = frozenset((a, b))
            kind = graph.kind(a, b)
            if pair in direct or pair in reported:
                continue
            reported.add(pair)
            if kind == "NVL" or (not kind and _READS not in settings and self._reads(a) > 1 < self._reads(b)):
                because = "although NVLinks join them"
            elif kind in ("PIX", "PXB") and kind in used:
                because = f"although other pairs that are {kind} talk directly"
            else:
                continue
            text = f"{self._gpus.words(a)} and {self._gpus.words(b)} talk over host memory, {because}"
            reports.add(HOST, "shm", "warn", Fault.P2P_BLOCKED, f"{text}; {why}" if why else text)

    def _reads(self, gpu: str) -> int:
        """From how many GPUs it reads, or is read."""
        return len({other for pair in self._by_read if gpu in pair for other in pair} - {gpu})


_NVLS = LazyPattern(r"NVLS multicast support is (?P<no>not )?available on dev (?P<dev>\d{1,3})\b.{0,80}")


class Multicast:
    """By CUDA's number of the GPU."""

    def __init__(self) -> None:
        self._with: set[int] = set()
        self._without: set[int] = set()

    def take(self, text: str) -> bool:
        """Does a line (without NCCL's prefix) say whether a GPU has it?"""
        match = _NVLS.fullmatch(text)
        number = gpu(match["dev"]) if match is not None else None
        if match is not None and number is not None:
            (self._without if match["no"] else self._with).add(number)
        return match is not None

    def report(self, gpus: Gpus, reports: Reports) -> None:
        """It belongs to the fabric: where some GPUs have it, those that do not have lost theirs."""
        for number in sorted(self._without - self._with) if self._with else ():
            text = "no multicast over NVSwitches, which other GPUs of the host have"
            reports.add(gpus.of_cuda(number) or f"GPU{number}", "nvls", "warn", Fault.FABRIC_FAILED, text)


_FABRIC = LazyPattern(
    r"MNNVL busId (?:0x)?(?P<bus>[0-9a-f]{3,13}) fabric UUID (?P<low>[0-9a-f]{1,16})\.(?P<high>[0-9a-f]{1,16}) "
    r"cliqueId (?:0x)?(?P<clique>[0-9a-f]{1,8}) state (?P<state>\d{1,2}) healthMask (?:0x)?(?P<mask>[0-9a-f]{1,8})"
)
_OVERRIDES = {"NCCL_MNNVL_UUID", "NCCL_MNNVL_CLIQUE_ID"}
"""Settings with which NCCL logs its own numbers in place of NVML's."""


class Fabrics:
    """The answers of one host's GPUs, by bus id: the last one logged."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Json]] = {}

    def take(self, text: str) -> bool:
        """Is it such a line?"""
        match = _FABRIC.fullmatch(text)
        bdf = bdf_of(match["bus"]) if match else None
        if match is None or bdf is None:
            return False
        # NCCL prints the UUID's sixteen bytes as two little-endian numbers without leading zeros.
        raw = b"".join(int(match[half], 16).to_bytes(8, "little") for half in ("low", "high")).hex()
        self._answers[bdf] = {
            "state": int(match["state"]), "healthMask": int(match["mask"], 16), "cliqueId": int(match["clique"], 16),
            "clusterUuid": "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:])),
        }  # fmt: skip
        return True

    def facts(self, settings: Collection[str]) -> Iterator[tuple[str, Json]]:
        """NVML's, without cluster and clique where one of the log's settings replaced them; the log has no status."""
        hidden = {"cliqueId", "clusterUuid"} if _OVERRIDES.intersection(settings) else set()
        for bdf, answer in self._answers.items():
            yield f"{WITHOUT_NUMBER} {bdf}", True
            yield from gpu_function(bdf).items()
            kept: Json = {name: fact for name, fact in answer.items() if name not in hidden}
            yield f"nvml nvmlDeviceGetGpuFabricInfo {bdf}", kept
