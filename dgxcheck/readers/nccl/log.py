"""The log of NCCL (``NCCL_DEBUG=INFO`` or ``WARN``): GPUs, HCAs, how data moves, and errors.

Indexes count on one host each, so of a log of several hosts no GPU is named.
"""

from __future__ import annotations

import re
from collections import Counter

from dgxcheck.facts.missing import Json
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nccl.errors import classified
from dgxcheck.readers.nccl.graph import Graph, bdf_of
from dgxcheck.readers.network.files import NAME, listed, port_files
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded, gpu

TOOL = "NCCL"
_LINE = re.compile(
    r"(?P<host>[\w.-]{1,255}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) \[(?P<dev>\d{1,3})\] "
    r"(?:(?P<where>[\w./-]{1,120}:\d{1,6}) (?:\(\w{1,80}\) )?)?NCCL (?P<level>INFO|WARN|TRACE|VERSION)"
    r" ?(?P<text>.{0,16000})"
)
_VERSION = re.compile(r"NCCL version (?P<version>\d{1,3}\.\d{1,3}\.\d{1,3})(?:[+.]\S{0,40})?")
_INIT = re.compile(
    r".{0,80}\bcudaDev (?P<cuda>\d{1,3})(?: nvmlDev (?P<nvml>\d{1,3}))? busId (?P<bus>[0-9a-f]{4,10})\b.*"
)
_USING = re.compile(r"NET/IB ?: Using (?P<ports>.{1,2000})")
_PORT = re.compile(rf"\[\d{{1,3}}\](?P<name>{NAME}):(?P<port>\d{{1,3}})/(?P<layer>IB|RoCE)", re.ASCII)
_VIA = re.compile(
    r"(?:Channel|Ring) \d{1,3}(?:/\d{1,3})? ?: ?(?P<a>\d{1,5})(?:\[(?P<dev_a>[0-9a-f]{1,10})\])? -> "
    r"(?P<b>\d{1,5})(?:\[(?P<dev_b>[0-9a-f]{1,10})\])? (?:\[(?P<way>send|receive)\] )?via "
    r"(?P<how>P2P|SHM|NET/IB|NET/Socket|NET/[\w-]{1,40}|direct)(?P<more>\S{0,80}).*"
)
_NO_GDR = re.compile(r"NET/IB ?: GPU Direct RDMA Disabled for (?:HCA \d{1,3} '(?P<hca>[\w.-]{1,64})'|GPU .{1,80})")
_GDR = "/GDRDMA"


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """All of NCCL's lines in a text, also between those of a program and behind a launcher's prefixes."""
    log = _Log()
    understood: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        if version := _VERSION.search(line) if "NCCL version" in line else None:
            log.version = version["version"]
            understood.add(number)
        if match := _LINE.search(line) if " NCCL " in line else None:
            before = f"{match['where']} " if match["level"] == "WARN" and match["where"] else ""
            log.take(match["host"], gpu(match["dev"]), match["level"], before + match["text"].strip())
            understood.add(number)
    facts = log.facts()
    return (Imported(tool=log.tool, facts=facts, understood=frozenset(understood)),) if facts else ()


class _Log:
    """The lines of one text."""

    def __init__(self) -> None:
        self.version = ""
        self._hosts: dict[str, None] = {}
        self._order: dict[int, str] = {}
        self._ports: dict[tuple[str, int], str] = {}
        self._how: Counter[str] = Counter()
        self._no_gdr: set[str] = set()
        self._graph = Graph()
        self._shared: dict[tuple[str, str], None] = {}
        """GPUs that talk over memory of the host: CUDA's indexes, or bus ids in older versions."""
        self._warnings: list[tuple[int | None, str]] = []

    @property
    def tool(self) -> str:
        return f"{TOOL} {self.version}".strip()

    def take(self, host: str, device: int | None, level: str, text: str) -> None:
        """One line of a rank whose GPU is ``device``."""
        self._hosts[host] = None
        if level == "WARN":
            self._warnings.append((device, text))
        elif using := _USING.match(text):
            for port in _PORT.finditer(using["ports"]):
                self._ports[port["name"], int(port["port"])] = port["layer"]
        elif init := _INIT.fullmatch(text):
            index, bdf = gpu(init["nvml"] or init["cuda"]), bdf_of(init["bus"])
            if index is not None and bdf is not None:
                self._order[index] = bdf
        elif via := _VIA.match(text):
            how = via["how"]
            if how.startswith("NET/"):
                self._how[f"{how}{_GDR}" if _GDR in via["more"] else how] += 1
            elif how == "SHM" and via["dev_a"] and via["dev_b"]:
                self._shared[via["dev_a"], via["dev_b"]] = None
        elif self._graph.take(text):
            pass
        elif no_gdr := _NO_GDR.match(text):
            self._no_gdr.add(no_gdr["hca"] or "")

    def facts(self) -> dict[str, Json]:
        """Empty for a log that says nothing of the machine."""
        alone = len(self._hosts) == 1
        facts: dict[str, Json] = {}
        if alone:
            if [*sorted(self._order)] == [*range(len(self._order))]:
                facts |= {f"{INDEX} {index}": bdf for index, bdf in sorted(self._order.items())}
            ports: dict[str, list[int]] = {}
            for (name, port), layer in self._ports.items():
                ports.setdefault(name, []).append(port)
                link_layer = "InfiniBand" if layer == "IB" else "Ethernet"
                facts |= port_files(name, port, {"state": "4: ACTIVE", "link_layer": link_layer})
            facts |= listed(ports) | dict(self._graph.facts())
        reports = Reports(TOOL)
        reports.tool = self.tool
        for device, text in self._warnings:
            form, shown = classified(text)
            subject = f"GPU{device}" if alone and device is not None and not form.of_host else HOST
            reports.add(subject, form.topic, form.outcome, form.fault, shown)
        self._transports(reports)
        if alone:
            self._without_p2p(reports)
        return facts | reports.facts()

    def _without_p2p(self, reports: Reports) -> None:
        """Pairs over host memory although the graph shows NVLinks between them."""
        numbers = {bdf: index for index, bdf in self._order.items()}
        for pair in self._shared:
            a, b = (self._order.get(int(word)) if word.isdecimal() and len(word) < 3 else bdf_of(word) for word in pair)
            if a is not None and b is not None and self._graph.joined(a, b):
                names = [f"GPU{numbers[bdf]}" if bdf in numbers else bdf for bdf in (a, b)]
                text = f"{names[0]} and {names[1]} talk over host memory, although NVLinks join them"
                reports.add(HOST, "shm", "warn", "p2p-blocked", text)

    def _transports(self, reports: Reports) -> None:
        verbs, direct = self._how["NET/IB"], self._how[f"NET/IB{_GDR}"]
        if direct:
            reports.add(HOST, "gdr", "pass", text="channels between hosts use GPUDirect RDMA")
        elif verbs:
            why = ", as no HCA has it enabled" if self._no_gdr else ""
            reports.add(HOST, "gdr", "warn", "gdr-unused", f"no channel between hosts uses GPUDirect RDMA{why}")
        if self._how["NET/Socket"] and self._ports:
            reports.add(HOST, "tcp", "warn", "tcp-fallback", "channels between hosts use TCP sockets beside HCAs")
