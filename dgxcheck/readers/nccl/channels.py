"""How the channels of one host move data: directly between GPUs, through host memory, over HCAs or over TCP.

What each form of the line means: https://github.com/NVIDIA/nccl/tree/master/src/transport (p2p.cc, shm.cc, net.cc).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.readers.nccl.gpus import Gpus
from dgxcheck.readers.nccl.graph import Graph
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import imported

_VIA = re.compile(
    r"(?:Channel|Ring) \d{1,3}(?:/\d{1,3})? ?: ?\d{1,7}(?:\[(?P<a>[0-9a-f]{1,13})\])? -> "
    r"\d{1,7}(?:\[(?P<b>[0-9a-f]{1,13})\])? (?:\[(?P<way>send|receive)\] )?via "
    r"(?P<how>P2P/indirect|P2P|SHM|direct shared memory|NET/[\w -]{1,40})(?P<more>.{0,120})"
)
_REFUSED = re.compile(
    r"Could not enable P2P between dev \d{1,3}\(=(?P<a>[0-9a-f]{3,13})\) and dev \d{1,3}\(=(?P<b>[0-9a-f]{3,13})\)"
)
"""CUDA gives no access: usual for GeForce boards, and between sockets."""
_MULTINODE = re.compile(r"\bMNNVL 1\b")
"""NVLinks between hosts: a GPU that data goes to directly may be another host's."""
_DISABLED = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")
_READS = "NCCL_P2P_READ_ENABLE"
GDR = "/GDRDMA"
_READ = re.compile(r"/(?:IPC|CUMEM|direct pointer)/read|direct pointer/read")
Pair = tuple[str, str]


class Channels:
    """The transports of the pairs of GPUs, and of what leaves the host."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self._direct: dict[Pair, int] = {}
        self._by_read: dict[Pair, None] = {}
        self._shared: dict[Pair, None] = {}
        self._refused: dict[Pair, int] = {}
        self._multinode = False
        self.received: Counter[str] = Counter()
        """Ways of data from other hosts: ``NET/IB``, ``NET/IB/GDRDMA``, ``NET/Socket``."""
        self.sent: Counter[str] = Counter()

    def take(self, text: str, number: int) -> bool:
        """Is a line (without NCCL's prefix) a channel's?"""
        self._multinode = self._multinode or _MULTINODE.search(text) is not None
        if refused := _REFUSED.fullmatch(text):
            a, b = self._gpus.named(refused["a"]), self._gpus.named(refused["b"])
            if a is not None and b is not None and a != b:
                self._refused.setdefault((a, b), number)
            return True
        via = _VIA.fullmatch(text)
        if via is None:
            return False
        how, more = via["how"], via["more"]
        if how.startswith("NET/"):
            ways = self.received if via["way"] == "receive" else self.sent
            ways[f"{how}{GDR}" if GDR in more else how] += 1
            return True
        a, b = (self._gpus.named(via[end]) if via[end] else None for end in ("a", "b"))
        if a is not None and b is not None and a != b:
            if how == "P2P":
                self._direct.setdefault((a, b), number)
                if _READ.match(more):
                    self._by_read[a, b] = None
            elif how != "P2P/indirect":
                self._shared[a, b] = None
        return True

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
        told: set[frozenset[str]] = set()
        for a, b in self._shared:
            pair = frozenset((a, b))
            kind = graph.kind(a, b)
            if pair in direct or pair in told:
                continue
            told.add(pair)
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
