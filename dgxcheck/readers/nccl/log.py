"""The log of NCCL (``NCCL_DEBUG=INFO`` or ``WARN``): of each host its GPUs, its HCAs, how data moves, and errors."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nccl.channels import Channels
from dgxcheck.readers.nccl.errors import report
from dgxcheck.readers.nccl.gpus import Gpus
from dgxcheck.readers.nccl.graph import Graph
from dgxcheck.readers.nccl.lines import Line, lines_of, version_in
from dgxcheck.readers.nccl.multicast import Multicast
from dgxcheck.readers.nccl.network import Network
from dgxcheck.readers.reports import HOST, Reports

TOOL = "NCCL"
_FAILED = re.compile(
    r"(?:misc/socket\.cc\S{0,12} )?(?:socketPollConnect|socketStartConnect): .{0,80}(?:returned|failed) "
)
"""Logged as INFO while NCCL tries to connect again."""
_CHOICES = frozenset((
    "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE",
    "NCCL_IB_HCA", "NCCL_NET", "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ", "NCCL_ALGO", "NCCL_PROTO", "NCCL_NVLS_ENABLE",
    "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_CROSS_NIC", "NCCL_IB_GID_INDEX", "NCCL_COLLNET_ENABLE",
))  # fmt: skip
"""Settings that change what NCCL uses: they explain a slow figure without a fault of the machine."""
_SETTING = re.compile(r"(?P<name>NCCL_[A-Z0-9_]{1,60}) set (?:by environment )?to (?P<value>\S{1,200}?)\.?")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One part for each host whose lines tell of the machine; of one host alone without its name."""
    hosts: dict[str, _Host] = {}
    every: set[int] = set()
    for line in lines_of(lines):
        every.add(line.number)
        hosts.setdefault(line.host, _Host()).take(line)
    versions = {at: version for at, line in enumerate(lines) if (version := version_in(line))} if every else {}
    tool = f"{TOOL} {[*versions.values()][-1]}" if versions else TOOL
    told = {name: facts for name, host in hosts.items() if (facts := host.facts(tool))}
    nobodys = every.union(versions) - {number for name in told for number in hosts[name].numbers}
    return tuple(
        Imported(tool=tool, facts=facts, understood=frozenset(hosts[name].numbers | nobodys),
                 host=name if len(hosts) > 1 else "")
        for name, facts in told.items()
    )  # fmt: skip


class _Host:
    """The lines of one host."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self._gpus = Gpus()
        self._graph = Graph()
        self._network = Network()
        self._channels = Channels(self._gpus)
        self._multicast = Multicast()
        self._settings: dict[str, str] = {}
        self._warnings: list[tuple[int | None, str]] = []

    def take(self, line: Line) -> None:
        """One line of a rank."""
        self.numbers.add(line.number)
        if line.is_warning or _FAILED.match(line.text):
            self._warnings.append((line.device, line.text))
        elif setting := _SETTING.fullmatch(line.text):
            self._settings[setting["name"]] = setting["value"]
        else:
            _ = (
                self._channels.take(line.text, line.number) or self._gpus.take(line.text)
                or self._network.take(line.text) or self._multicast.take(line.text) or self._graph.take(line.text)
            )  # fmt: skip

    def facts(self, tool: str) -> dict[str, Json]:
        """Empty for lines that say nothing of the machine."""
        reports = Reports(TOOL)
        reports.tool = tool
        report(self._warnings, self._gpus, reports)
        self._network.report(self._channels, self._settings, reports)
        self._channels.report(self._graph, self._settings, reports)
        self._multicast.report(self._gpus, reports)
        chosen = [f"{name}={value}" for name, value in self._settings.items() if name in _CHOICES]
        if chosen and (reports or self._channels.sent or self._channels.received):
            reports.add(HOST, "settings", "note", text=f"set for this run: {', '.join(chosen)}")
        parts = (self._gpus.facts(), self._graph.facts(), self._network.facts(), self._channels.facts(tool))
        return {key: fact for part in parts for key, fact in part} | reports.facts()
