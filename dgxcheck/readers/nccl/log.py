"""NCCL's log (``NCCL_DEBUG=INFO``): its lines, the network, and all of one host together.

The lines of NCCL's log: who wrote each, and what it says behind that.

``node1:4242:4250 [3] NCCL INFO text``: host, process, thread and CUDA's number of the GPU
(https://github.com/NVIDIA/nccl/blob/master/src/debug.cc); a warning has its place in the source before the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import INFINIBAND
from dgxcheck.facts.tool_outputs import OVER_TCP
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.model import HOST, Imported, Reports
from dgxcheck.readers.nccl.channels import GDR, Channels, Fabrics, Graph, Multicast
from dgxcheck.readers.nccl.warnings import HARMLESS, Form, Gpus, far_ends, forms_of, report
from dgxcheck.readers.network.files import NAME, listed, port_files
from dgxcheck.readers.values import bounded, gpu
from dgxcheck.readers.wording import any_of

_LINE = LazyPattern(
    r"(?<![\w.-])(?P<host>[\w.-]{1,255}|<[\w .-]{1,80}>|\*[\w .-]{1,80}\*)(?::(?:\d{1,10}|X{2,12})){1,2}"
    r" \[(?P<dev>\d{1,3})\] "
    r"(?:(?P<where>[\w./-]{1,120}:\d{1,6}) (?:\(\w{1,80}\) )?)?NCCL (?P<level>INFO|WARN|TRACE|VERSION)"
    r" ?(?P<text>.{0,16000})"
)
_BARE = LazyPattern(
    r"\s{0,40}(?:[\w.-]{1,64}: )?(?:\[(?P<dev>\d{1,3})\] )?(?:(?P<where>[\w./-]{1,120}:\d{1,6}) )?"
    r"NCCL (?P<level>INFO|WARN) (?P<text>(?:NET/|GPU Direct|Error:? |Channel |Ring |NCCL_|Call to |Cuda failure|comm "
    r"|Using |(?:socket|bootstrap|nccl)\w{2,60}: ).{1,16000})"
)
"""A line that lost who wrote it, as ``grep -o`` leaves it."""
_TEXT = LazyPattern(r"\s{0,40}(?P<dev>)(?P<where>)(?P<level>)(?P<text>NET/IB\w{0,16} ?: ?Got completion .{1,16000})")
"""What is left of it is its text."""
_VERSION = LazyPattern(r"NCCL version (?P<version>\d{1,3}\.\d{1,3}\.\d{1,3})(?:[+.]\S{0,40})?")


class Line(Record):
    """One line of a rank."""

    number: int
    """From 0."""
    host: str
    """The first label of its name; empty for a placeholder, as in a log whose names were replaced, and for none."""
    device: int | None
    """CUDA's number of the GPU of the rank."""
    is_warning: bool
    text: str
    """Of a warning with its place in the source before it."""


def lines_of(text: tuple[str, ...]) -> Iterator[Line]:
    """NCCL's own lines, behind whatever a launcher put before them."""
    for number, line in enumerate(bounded(text)):
        match = (_LINE.search(line) if " NCCL " in line else None) or (
            _BARE.fullmatch(line) if "NCCL " in line else _TEXT.fullmatch(line)
        )
        if match is not None:
            name = match["host"] if match.re is _LINE.compiled else "<"
            warning = match["level"] in ("WARN", "")
            where = f"{match['where']} " if warning and match["where"] else ""
            yield Line(
                number=number, host="" if name[0] in "<*" else name.partition(".")[0], device=gpu(match["dev"] or ""),
                is_warning=warning, text=where + match["text"].strip(),
            )  # fmt: skip


def version_in(line: str) -> str:
    """``2.21.5``; empty where a line does not tell the version."""
    match = _VERSION.search(line) if "NCCL version" in line else None
    return match["version"] if match is not None else ""


_USING = LazyPattern(r"NET/IB(?:ext(?:_v\d{1,2})?)? ?: Using (?P<ports>.{1,2000})")
_PORT = ascii_pattern(
    rf"\[\d{{1,3}}\](?P<name>{NAME}):(?P<port>\d{{1,3}})(?::\d{{0,6}}){{0,2}}/(?P<layer>IB|RoCE)", "/RoCE", "/IB"
)
_FOUND = ascii_pattern(
    rf"NET/IB ?: \[\d{{1,3}}\] (?P<name>{NAME}):uverbs\d{{1,4}}:(?P<port>\d{{1,3}})/(?P<layer>IB|RoCE) "
    r"provider=.{1,200}?pciPath=/sys/devices/(?:[\w:./-]{1,400}/)?(?P<bdf>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b.{0,80}"
)
"""With NCCL_DEBUG_SUBSYS=NET, since 2.19."""
_SOCKETS = LazyPattern(r"NET/(?P<kind>Socket|FastSocket) ?: Using (?P<interfaces>\[\d{1,3}\].{1,2000})")
_INTERFACE = LazyPattern(r"\[\d{1,3}\](?P<name>[\w.@-]{1,32}):")
_SOCKET_BEFORE_2_4 = LazyPattern(r"NET(?:/Socket)? ?: Using interface (?P<name>[\w.@-]{1,32}):.{1,100}")
_ADDRESS = LazyPattern(r"(?:\bOOB|\bBootstrap ?: Using) (?:\[\d{1,3}\])?[\w.@-]{1,32}:(?P<address>[\w.:%-]{1,80}?)<\d")
"""Over which the ranks find one another; NCCL names the other end of a transfer by it."""
_NO_HCA = LazyPattern(r"NET/IB ?: No device found\.?")
_CHOSEN = LazyPattern(r"(?:Using (?:internal N|n)etwork|Assigned NET plugin) (?P<name>[\w .-]{1,40}?)(?: to comm)?")
_GDR = LazyPattern(
    r"(?:NET/(?!Socket)[\w ]{1,40}? ?: ?)?GPU Direct RDMA (?P<state>Enabled|Disabled) for "
    r"(?:HCA \d{1,3} '(?P<hca>[\w.-]{1,64})'|GPU .{1,60}?/ HCA .{1,60}?\((?P<why>[^()]{1,80})\)).{0,60}"
)
TOOL = "NCCL"
_DISABLED = "NCCL_IB_DISABLE"
_OVER_TCP = "channels between hosts use TCP sockets"
_IPOIB = LazyPattern(r"ib(?:\d{1,3}|[ps]\d\w{0,12})", "ib")
"""Interfaces over InfiniBand, by the names of the kernel and of systemd."""
_VERBS = ("NET/IB", "NET/gIB")
"""NCCL's own and what plug-ins of NVIDIA (IBext) and Google derive from it; others have names of their own."""


class Network:
    """What the lines of one host say of its HCAs."""

    def __init__(self) -> None:
        self._layers: dict[tuple[str, int], str] = {}
        self._bdfs: dict[str, str] = {}
        self._named: dict[str, None] = {}
        self._interfaces: dict[str, None] = {}
        self._gdr_states: set[str] = set()
        self._without_hcas = False
        self._chosen: dict[str, None] = {}

    def take(self, text: str) -> bool:
        """Is a line (without NCCL's prefix) about an HCA?"""
        if using := _USING.fullmatch(text):
            for port in _PORT.finditer(using["ports"]):
                self._layers[port["name"], int(port["port"])] = port["layer"]
        elif found := _FOUND.fullmatch(text):
            self._layers[found["name"], int(found["port"])] = found["layer"]
            if (bdf := as_bdf(found["bdf"])) is not None:
                self._bdfs[found["name"]] = bdf
        elif sockets := _SOCKETS.fullmatch(text):
            self._interfaces |= dict.fromkeys(_INTERFACE.findall(sockets["interfaces"]))
        elif before := _SOCKET_BEFORE_2_4.fullmatch(text):
            self._interfaces[before["name"]] = None
        elif _NO_HCA.fullmatch(text):
            self._without_hcas = True
        elif chosen := _CHOSEN.fullmatch(text):
            self._chosen[chosen["name"]] = None
        elif gdr := _GDR.fullmatch(text):
            if gdr["hca"] and "IB" in text.partition("GPU Direct")[0]:
                self._named[gdr["hca"]] = None
            far = gdr["state"] == "Disabled" and "distance" in (gdr["why"] or "")
            self._gdr_states.add("too far" if far else gdr["state"])
        else:
            return False
        return True

    def facts(self) -> Iterator[tuple[str, Json]]:
        """The ports, which NCCL uses where they are ACTIVE, and the functions of the HCAs."""
        ports: dict[str, list[int]] = {name: [] for name in self._named}
        for (name, port), layer in self._layers.items():
            ports.setdefault(name, []).append(port)
            link_layer = "InfiniBand" if layer == "IB" else "Ethernet"
            yield from port_files(name, port, {"state": "4: ACTIVE", "link_layer": link_layer}).items()
        yield from listed(ports).items()
        for name, bdf in self._bdfs.items():
            yield f"link {INFINIBAND}/{name}/device", f"../../../{bdf}"

    def report(self, channels: Channels, settings: Mapping[str, str], reports: Reports) -> None:
        """Data from other hosts: with GPUDirect RDMA, without it, or over TCP beside HCAs.

        What is sent tells nothing: NCCL lets HCAs read the memory of GPUs from Ampere on, or over NVLinks. Where an HCA
        has it enabled, or is too far from the GPUs, it is NCCL's choice and no fault.
        """
        verbs = {way for way in channels.received if way.startswith(_VERBS)}
        direct = sum(count for way, count in channels.received.items() if way.endswith(GDR))
        if direct:
            self._direct(channels, direct, reports)
        elif verbs and self._gdr_states <= {"Disabled"}:
            why = ", as no HCA has it enabled" if "Disabled" in self._gdr_states else ""
            reports.add(HOST, "gdr", "warn", Fault.GDR_UNUSED, f"no channel between hosts uses GPUDirect RDMA{why}")
        elif "Enabled" in self._gdr_states and not channels.received:
            reports.add(HOST, "gdr", "pass", text="HCAs have GPUDirect RDMA enabled")
        over_tcp = "NET/Socket" in {*channels.received, *channels.sent}
        disabled = settings.get(_DISABLED, "0") != "0"
        if over_tcp and (self._layers or disabled):
            why = f": {_DISABLED} is set to {settings[_DISABLED]}" if disabled else " beside HCAs"
            reports.add(HOST, "tcp", "warn", Fault.TCP_FALLBACK, f"{_OVER_TCP}{why}")
        elif over_tcp and self._without_hcas:
            text = f"{_OVER_TCP}, and NCCL found no HCA"
            if name := next(filter(_IPOIB.fullmatch, self._interfaces), ""):
                reports.add(HOST, "tcp", "warn", Fault.TCP_FALLBACK, f"{text}, though {name} is an interface of one")
            else:
                reports.add(HOST, OVER_TCP.removeprefix(f"{TOOL}-"), "note", text=text)
        self._note(reports)

    def _direct(self, channels: Channels, direct: int, reports: Reports) -> None:
        """Some channels come by GPUDirect RDMA: which ones do not, of all that is received or sent."""
        plain = sum(channels.received.values()) - direct
        sent = sum(count for way, count in channels.sent.items() if way.startswith(_VERBS) and not way.endswith(GDR))
        if plain:
            text = f"{direct} of {direct + plain} channels from other hosts use GPUDirect RDMA; compare the distance of"
            reports.add(HOST, "gdr", "note", text=f"{text} the GPUs of the others to their HCAs (dgxcheck topo)")
        elif sent:
            text = "data from other hosts comes by GPUDirect RDMA; what is sent goes over host memory, as NCCL chooses"
            reports.add(HOST, "gdr", "note", text=f"{text} before Ampere where no NVLinks join the GPUs")
        else:
            reports.add(HOST, "gdr", "pass", text="channels between hosts use GPUDirect RDMA")

    def _note(self, reports: Reports) -> None:
        """Which network NCCL chose, where the log shows no HCA in use."""
        if self._layers or not (self._interfaces or self._without_hcas or self._chosen):
            return
        names = ", ".join([*self._interfaces][:8])
        over = f"sockets over {names}" if names else "sockets"
        parts = ["NCCL found no HCA"] if self._without_hcas else []
        if self._interfaces and not {*self._chosen} - {"Socket", "FastSocket"}:
            parts.append(f"data to other hosts goes through {over}")
        elif self._chosen:
            parts.append(f"NCCL uses the network plug-in {', '.join(self._chosen)}")
        reports.add(HOST, "network", "note", text="; ".join(parts))


_FAILED = LazyPattern(
    r"(?:misc/socket\.cc\S{0,12} )?(?:socketPollConnect|socketStartConnect): .{0,80}(?:returned|failed) "
)
"""Logged as INFO while NCCL tries to connect again."""
_CHOICES = LazyPattern(any_of("nccl/lines", "settings"))
"""Settings that change what NCCL uses: they explain a slow figure without a fault of the machine."""
_SETTING = LazyPattern(r"(?P<name>NCCL_[A-Z0-9_]{1,60}) set (?:by environment )?to (?P<value>\S{1,200}?)\.?")


def read_log(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One part for each host whose lines tell of the machine; of one host alone without its name."""
    hosts: dict[str, _Host] = {}
    every: set[int] = set()
    texts: list[str] = []
    for line in lines_of(lines):
        every.add(line.number)
        texts.append(line.text)
        hosts.setdefault(line.host, _Host()).take(line)
    versions = {at: version for at, line in enumerate(lines) if (version := version_in(line))} if every else {}
    tool = f"{TOOL} {[*versions.values()][-1]}" if versions else TOOL
    silent = Counter(end for host in hosts.values() for end in far_ends(host.warnings))
    owners = {address: name for name, host in hosts.items() for address in host.addresses if name}
    by_host = {name: facts for name, host in hosts.items() if (facts := host.facts(tool, silent, owners))}
    if not by_host and any(map(HARMLESS.search, texts)):
        return (Imported(tool=tool, facts={}, understood=frozenset(every)),)
    nobodys = every.union(versions) - {number for name in by_host for number in hosts[name].numbers}
    return tuple(
        Imported(tool=tool, facts=facts, understood=frozenset(hosts[name].numbers | nobodys),
                 host=name if len(hosts) > 1 else "")
        for name, facts in by_host.items()
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
        self._fabrics = Fabrics()
        self._settings: dict[str, str] = {}
        self.warnings: list[tuple[int | None, Form]] = []
        self.addresses: set[str] = set()

    def take(self, line: Line) -> None:
        """One line of a rank."""
        self.numbers.add(line.number)
        self.addresses.update(_ADDRESS.findall(line.text))
        if line.is_warning or _FAILED.match(line.text):
            self.warnings += forms_of([(line.device, line.text)])
        elif setting := _SETTING.fullmatch(line.text):
            self._settings[setting["name"]] = setting["value"]
        elif not (
            self._channels.take(line.text, line.number) or self._gpus.take(line.text)
            or self._network.take(line.text) or self._multicast.take(line.text) or self._fabrics.take(line.text)
        ):  # fmt: skip
            self._graph.take(line.text)

    def facts(self, tool: str, silent: Mapping[str, int], owners: Mapping[str, str]) -> dict[str, Json]:
        """Empty for lines that say nothing of the machine.

        ``silent``: how many hosts had no answer from an address; ``owners``: whose it is.
        """
        reports = Reports(TOOL)
        reports.tool = tool
        many = {end: f" (as on {count} hosts of this log)" for end, count in silent.items() if count > 1}
        names = {end: f"{owners.get(end, end)}{many.get(end, '')}" for end in {*silent, *owners}}
        report(self.warnings, self._gpus, reports, names)
        if asked := max((silent.get(end, 0) for end in self.addresses), default=0):
            text = f"{asked} of the other hosts of this log had no answer from this one"
            reports.add(HOST, "ib-completion", "fail", Fault.TRANSFER_UNANSWERED, text)
        self._network.report(self._channels, self._settings, reports)
        self._channels.report(self._graph, self._settings, reports)
        self._multicast.report(self._gpus, reports)
        chosen = [f"{name}={value}" for name, value in self._settings.items() if _CHOICES.fullmatch(name)]
        if chosen and (reports or self._channels.sent or self._channels.received):
            reports.add(HOST, "settings", "note", text=f"set for this run: {', '.join(chosen)}")
        parts = (self._gpus.facts(), self._graph.facts(), self._network.facts(), self._channels.facts(tool),
                 self._fabrics.facts(self._settings))  # fmt: skip
        return {key: fact for part in parts for key, fact in part} | reports.facts()
