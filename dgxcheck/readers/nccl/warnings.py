"""The warnings of NCCL, and what each stands for: a part of the machine, or the program and its settings.

The GPUs of one host in NCCL's log: which rank, which number of CUDA and of NVML, which bus id.

NVML's number is the one that nvidia-smi shows; CUDA's depends on CUDA_VISIBLE_DEVICES, so it makes no list.

The words of NCCL's warnings, and what each stands for: a part of the machine, or the program and its settings.

Their texts: https://github.com/NVIDIA/nccl/tree/master/src (misc/ibvwrap.cc, misc/socket.cc, transport/*.cc, init.cc).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.facts.bdf import as_bdf, number_of, unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.listing import INDEX, gpu_function
from dgxcheck.readers.model import HOST, Reports
from dgxcheck.readers.network.files import EFA_ENDINGS, NAME, completion
from dgxcheck.readers.values import gpu

_INIT = LazyPattern(
    r".{0,120}\brank \d{1,7} nranks \d{1,7} cudaDev (?P<cuda>\d{1,3})(?: nvmlDev (?P<nvml>\d{1,3}))?"
    r"(?: busId (?P<bus>[0-9a-f]{3,13}))?\b.{0,400}"
)
_SHORTEST_BUS_ID = 3
"""Digits: ``1e0`` is 00:1e.0; what is shorter is NVML's number."""


def bdf_of(bus_id: str) -> str | None:
    """``9b000`` is 0000:9b:00.0: the digits of a bdf without its separators and leading zeros."""
    digits = bus_id.lower().rjust(9, "0")
    return as_bdf(f"{digits[:-5]}:{digits[-5:-3]}:{digits[-3:-1]}.{digits[-1]}")


class Gpus:
    """What the lines of one host say of its GPUs."""

    def __init__(self) -> None:
        self._of_cuda: dict[int, set[str]] = {}
        self._of_nvml: dict[int, set[str]] = {}
        self._shown: dict[str, None] = {}

    def take(self, text: str) -> bool:
        """Is it a line about the start of a rank?"""
        init = _INIT.fullmatch(text)
        if init is None:
            return False
        nvml, cuda = gpu(init["nvml"] or ""), gpu(init["cuda"])
        bdf = bdf_of(init["bus"]) if init["bus"] else None
        if (place := bdf or (unplaced(nvml) if nvml is not None else None)) is not None:
            self._shown[place] = None
            for numbers, number in ((self._of_nvml, nvml), (self._of_cuda, cuda)):
                if number is not None:
                    numbers.setdefault(number, set()).add(place)
        return True

    def named(self, device: str) -> str | None:
        """The GPU in the brackets of a channel: a bus id (``3b000``, 2.5 to 2.17) or NVML's number (``6``)."""
        number = gpu(device) if len(device) < _SHORTEST_BUS_ID else None
        place = bdf_of(device) if number is None else self._by_number(number)
        if place is not None:
            self._shown[place] = None
        return place

    def of_cuda(self, number: int | None) -> str | None:
        """The GPU with this number of CUDA, where all ranks agree on it."""
        places = self._of_cuda.get(-1 if number is None else number, set())
        return next(iter(places)) if len(places) == 1 else None

    def _by_number(self, number: int) -> str:
        places = self._of_nvml.get(number, set())
        return next(iter(places)) if len(places) == 1 else unplaced(number)

    def words(self, place: str) -> str:
        """``GPU3`` for people, else the bus id."""
        numbers = [number for number, places in self._of_nvml.items() if places == {place}]
        return f"GPU{numbers[0]}" if numbers else place

    def facts(self) -> Iterator[tuple[str, Json]]:
        """NVML's list as far as the log tells it, and the functions of the GPUs."""
        numbers = {number: next(iter(places)) for number, places in self._of_nvml.items() if len(places) == 1}
        numbers |= {number: place for place in self._shown if (number := number_of(place)) is not None}
        if len(set(numbers.values())) == len(numbers):
            yield from ((f"{INDEX} {number}", place) for number, place in sorted(numbers.items()))
        for place in self._shown:
            if number_of(place) is None:
                yield from gpu_function(place).items()


class Form(Record, kw_only=False):
    """A warning's words, and what they stand for."""

    words: LazyPattern
    topic: str
    outcome: Outcome
    fault: FaultKind | None
    """None for a note."""
    text: str
    """May name groups of ``words``."""
    of_host: bool = False
    """Not about the GPU of the rank that logs it."""
    follows: bool = False
    """Something else failed before it, here or on another host."""
    subject: str = HOST
    """Where it is not about a GPU: the host, or an HCA or port in names of groups."""
    unnamed: FaultKind | None = None
    """The fault of the host where the warning names no HCA or port."""


def _host(words: str, topic: str, outcome: Outcome, fault: FaultKind | None, text: str, follows: bool = False) -> Form:
    return Form(LazyPattern(words), topic, outcome, fault, text, True, follows)


def _program(words: str, topic: str, text: str) -> Form:
    return _host(words, topic, "warn", Fault.PROGRAM_ERROR, text)


def _cuda(words: str, topic: str, fault: FaultKind, text: str) -> Form:
    """About the GPU of the rank."""
    return Form(LazyPattern(rf"Cuda failure (?:\d{{1,4}} )?'{words}"), topic, "fail", fault, text)


_PORT = rf"(?:(?P<hca>{NAME}):(?P<port>\d{{1,3}}) )?"
_EVENT = rf"NET/IB ?: {_PORT}(?:Got (?:non-fatal )?async event|async fatal event)[^:]{{0,200}}: ?"
_HCA = (
    Form(LazyPattern(r"NET/IB\w{0,16}(?:/GIN)? ?: ?Got completion.{0,120}?with (?:error|status=)"
                    rf"\D{{0,40}}(?P<status>\d{{1,3}})(?:.{{1,300}} hca (?P<hca>{NAME}))?"),
         "ib-completion", "fail", Fault.TRANSFER_FAILED, "", True),
    Form(LazyPattern(rf"{_EVENT}port error"),
         "ib-port", "warn", Fault.PORT_DOWN, "the link of the port went down", True,
         subject="{hca}/{port}", unnamed=Fault.PORT_EVENT),
    Form(LazyPattern(rf"{_EVENT}(?:local catastrophic error|device fatal)"),
         "ib-fatal", "fail", Fault.HCA_FATAL, "the HCA reported a fatal error", True, subject="{hca}"),
    Form(LazyPattern(rf"{_EVENT}(?P<event>[\w ]{{1,60}})"),
         "ib-event", "warn", Fault.TRANSFER_FAILED, "an HCA stopped a transfer: {event}", True, True),
    Form(LazyPattern(rf"NET/IB ?: Unable to (?P<what>open|query) (?:device|port) (?P<hca>{NAME})"),
         "ib-open", "fail", Fault.VERBS, "cannot {what} the HCA {hca}", True),
    _host(r"NET/IB ?: Unable to query port", "ib-open", "fail", Fault.VERBS, "cannot query a port of an HCA"),
    _host(r"NET/IB ?: (?:Device \d{1,3} marked as failed|Fatal error\. Detected \d)",
          "ib-failed", "warn", Fault.TRANSFER_FAILED, "NCCL gave up on an HCA after errors of its transfers", True),
    _program(r"(?:[Rr]emote|connect|merge) .{0,20}(?:device is incompatible|incompatible devices)", "link-layer",
             "the HCAs at the two ends run different link layers: choose those of one kind with NCCL_IB_HCA"),
    _host(r"Call to (?P<call>ibv_(?:reg_mr|create_qp|create_cq)\w{0,20}) failed with error Cannot allocate", "memlock",
          "fail", Fault.MEMLOCK, "{call} failed: cannot allocate memory, as where the limit of locked memory is low"),
    _host(r"Call to (?P<call>ibv_reg_\w{1,30}) failed(?: with error (?P<why>[\w ]{1,60}))?", "ib-register",
          "fail", Fault.RDMA_ACCESS, "{call} failed: {why}"),
    _host(r"Call to (?P<call>ibv_modify_qp\w{0,20}) failed.{0,60}(?P<why>timed out|No route to host|unreachable)",
          "ib-path", "fail", Fault.TRANSFER_UNANSWERED, "{call} failed: {why}"),
    _host(r"Call to (?P<call>ibv_(?:open|query)_(?:device|port))(?:\(\))? failed", "ib-open", "fail", Fault.VERBS,
          "{call} failed", True),
    _host(r"Call to ibv_get_async_event failed", "ib-event", "warn", Fault.TRANSFER_FAILED,
          "the HCA gives no more events", True),
    _host(r"Call to (?P<call>ibv_\w{1,40})(?:\(\))? (?:failed|returned)(?: with error (?P<why>[\w ]{1,60}))?",
          "ib-call", "fail", Fault.TRANSFER_FAILED, "{call} failed: {why}"),
    _host(r"NET/OFI Unable to register memory .{0,60}RC: -?12\b", "memlock", "fail", Fault.MEMLOCK,
          "the network plug-in cannot register memory (ENOMEM), as where the limit of locked memory is low"),
    _host(r"NET/OFI Unable to register memory .{0,60}RC: -?22\b", "ib-register", "fail", Fault.RDMA_ACCESS,
          "the network plug-in cannot register memory of a GPU (EINVAL): see that plug-in, libfabric and the adapter's"
          " driver are of releases that belong together"),
    _host(r"NET/OFI .{0,40}fi_getinfo\(\) call failed: No data available", "plug-in", "warn", Fault.TCP_FALLBACK,
          "libfabric finds no device: compare fi_info -p efa in a container, which needs /dev/infiniband, and outside"),
    *(_host(rf"NET/OFI .{{0,400}}(?:{words})", "ofi", ended.outcome, ended.fault, f"a transfer ended: {ended.words}",
            ended.follows) for words, ended in EFA_ENDINGS),
    _host(r"NET/(?:OFI|AWS Libfabric|gIB|FastSocket)\b.{0,200}(?:fail|error|[Uu]nable)", "plug-in", "warn",
          Fault.TRANSFER_FAILED, "the network plug-in reports an error, see the log", True),
    _host(r"Failed to initialize any NET plugin", "plug-in", "fail", Fault.TCP_FALLBACK,
          "no network plug-in could start"),
)  # fmt: skip
_GPU = (
    _host(r"P2P is disabled between NVLINK connected GPUs (?P<a>\d{1,3}) and (?P<b>\d{1,3})", "p2p", "fail",
          Fault.P2P_BLOCKED, "P2P is disabled between GPU{a} and GPU{b}, which NVLinks join"),
    _host(r"failed to peer with device \d{1,3}(?:\(=\w{1,16}\))?: \d{1,4} (?P<why>[\w ,-]{1,80})", "p2p", "fail",
          Fault.P2P_BLOCKED, "CUDA gives no access to another GPU: {why}"),
    _cuda("uncorrectable ECC error encountered", "ecc", Fault.ECC_UNCORRECTED,
          "CUDA reports an uncorrectable ECC error"),
    _host(r"Cuda failure (?:\d{1,4} )?'system not yet initialized|Cuda failure 802\b", "fabric", "fail",
          Fault.FABRIC_MANAGER_DOWN, "CUDA reports that the NVSwitch fabric is not initialised"),
    _cuda("(?:uncorrectable NVLink error|Invalid access of peer GPU memory over nvlink)", "nvlink", Fault.NVLINK_ERRORS,
          "CUDA reports an error of NVLink"),
    Form(LazyPattern(r"nvml\w{1,60}(?:\(\))? failed: GPU is lost"),
         "lost", "fail", Fault.GPU_LOST, "NVML has lost the GPU"),
    Form(LazyPattern(r"nvml\w{1,60}(?:\(\))? failed: GPU requires (?:a )?reset"),
         "reset", "fail", Fault.RESET_REQUIRED, "NVML reports that the GPU needs a reset"),
    _host(r"nvml\w{1,60}(?:\(\))? failed: Driver/library version mismatch", "driver", "fail", Fault.DRIVER_MISMATCH,
          "the NVIDIA driver's library and its kernel module do not match"),
    _host(r"MNNVL .{0,80}not working|Check the IMEX (?:channel )?configuration", "imex", "fail", Fault.TOOL_ERROR,
          "NVLinks between hosts (MNNVL) cannot be used: check nvidia-imex and its channels on all hosts"),
    _host(r"transport/nvls\.cc|NVLink SHARP", "nvls", "warn", Fault.FABRIC_MANAGER_ERROR,
          "multicast memory of NVLink SHARP cannot be bound: see whether nvidia-fabricmanager runs, or was started"
          " without a reset of the GPUs (Fabric in nvidia-smi -q)"),
)  # fmt: skip
_ENVIRONMENT = (
    _program(r"Cuda failure (?:\d{1,4} )?'out of memory'|Failed to CUDA (?:host )?(?:m|c)?alloc", "memory-full",
             "no GPU memory left: the job is too large, or other programs hold memory"),
    _program(r"Cuda failure (?:\d{1,4} )?'(?P<words>an illegal (?:memory access|instruction) was encountered|misaligned"
             r" address|device-side assert triggered|unspecified launch failure|invalid program counter)", "kernel",
             "a kernel of the program failed: {words}"),
    _program(r"Cuda failure (?:\d{1,4} )?'(?P<words>invalid device ordinal|no CUDA-capable device is detected)",
             "devices", "{words}: compare ranks per host and CUDA_VISIBLE_DEVICES with the GPUs of the host"),
    _program(r"Cuda failure (?:\d{1,4} )?'(?:all )?CUDA-capable device(?:s are|\(s\) is/are) busy or unavailable",
             "busy", "the GPU is in exclusive use by another program (nvidia-smi -q -d COMPUTE)"),
    _program(r"CUDA [Dd]river version .{0,60}(?:[Mm]inimum|insufficient)|Cuda failure (?:\d{1,4} )?'(?:CUDA driver"
             r" version is insufficient|API call is not supported|no kernel image|device kernel image)", "cuda-version",
             "driver, CUDA and NCCL of the program do not fit together"),
    _host(r"Cuda failure (?:801 )?'operation not supported'", "cuda-feature", "note", None,
          "NCCL asked CUDA for something that is not supported here"),
    _host(r"Cuda failure (?:(?P<number>\d{1,4}) )?'(?P<words>[\w ,.'-]{1,120})'", "cuda", "warn", Fault.TOOL_ERROR,
          "CUDA failure: {words}"),
    _host(r"(?:creating|attaching to|opening) shared memory segment|[Cc]all to (?:posix_fallocate|ftruncate|shm_open)"
          r" failed|No space left on device|failed to (?:create|extend) (?:\S{1,20} )?shared memory", "shm", "fail",
          Fault.SHARED_MEMORY, "shared memory cannot be allocated: /dev/shm is too small"),
    _program(r"Duplicate GPU detected : rank (?P<a>\d{1,7}) and rank (?P<b>\d{1,7})", "launch",
             "ranks {a} and {b} were started on the same GPU"),
    _program(r"Bootstrap Root ?: (?:mismatch in info|rank \d{1,7} of \d{1,7} ranks has already)", "launch",
             "the ranks of the job do not agree on their number, or a rank was started twice"),
    _program(r"Mismatched NCCL version detected|NCCL version mismatch|compiled with (?:too old )?(?:version of )?NCCL",
             "version", "the ranks use different versions of NCCL"),
    _host(r"[Nn]o (?:usable listening |socket |IP )?interface found", "interface", "fail", Fault.TRANSFER_FAILED,
          "NCCL finds no network interface: check NCCL_SOCKET_IFNAME and the addresses of the host"),
    _program(r"has no transport for|Could not find any local path from gpu", "transport",
             "no transport is left between two ranks: check NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET"),
    _program(r"message truncated|posted incorrect receive info|[Mm]ismatched collective", "mismatch",
             "two ranks call different operations or sizes"),
    _program(r"[Ii]nvalid (?:config|argument|root|type|reduction|usage)|: invalid \w|is out of range"
             r"|NCCL_\w{2,60}.{0,40}(?:unknown value|has been set to|out of range)|not supported with"
             r"|memory, use cudaMemcpy|(?:is not|non-) ?(?:a valid|blocking)", "usage",
             "NCCL refuses a call or a setting of the program, see the log"),
)  # fmt: skip
_OTHERS = (
    _host(r"(?:[Cc]onnect(?:ion)? (?:to|from)(?: (?P<peer>\S{1,60}?))? .{0,60}(?:failed|returned)[ :]{1,3}"
          r"|(?:socketPollConnect: )?connect returned |[Cc]all to connect(?: to (?P<other>\S{1,60}?))?"
          r" .{0,60}(?:failed|returned)[ :]{1,3})(?:\d{1,4}\()?(?P<why>[A-Z][a-z]{1,20}(?: [a-z]{2,20}){0,4})",
          "socket", "fail", Fault.NO_CONNECTION, "no TCP connection to {peer}{other}: {why}"),
    _host(r"[Cc]onnection closed by (?:remote )?peer|socketProgress: |[Cc]onnection reset by peer|Broken pipe"
          r"|[Ss]ocket recv failed|is in abort state|\[(?:Proxy|Service)|[Ff]ailed to execute operation|proxy"
          r"|NET/Socket : socket progress error", "peer-gone", "warn", Fault.TRANSFER_FAILED,
          "another rank closed its connection", True),
)  # fmt: skip
FORMS = (*_HCA, *_GPU, *_ENVIRONMENT, *_OTHERS)
HARMLESS = LazyPattern(
    rf"{_EVENT}(?:port active|LID change|P_Key change|SM change|client reregistration|GID table change)"
    r"|GID table changed|Could not find real path of |Failed to open libibverbs|Missing \"iommu=pt\""
    r"|NUMA auto balancing|remote FLID configured as zero|setting (?:to|NCCL_NSOCKS)|defaulting to"
    r"|NCCL_\w{2,60} is deprecated"
)
"""Also logged by healthy machines, such as virtual ones and those without HCAs."""


_LONGEST = 600
_SHOWN = 140
_OTHER = Form(LazyPattern(""), "warning", "warn", Fault.TOOL_ERROR, "", True, True)
_PLACE = LazyPattern(r"[\w./-]{1,120}:\d{1,6} ")
_NUMBERS = LazyPattern(r"0x[0-9a-f]+|\d+")


def classified(warning: str) -> Form:
    """The form of a warning, which may have its file and line before it; its text is that for people."""
    for form in FORMS:
        if match := form.words.search(warning[:_LONGEST]):
            return _filled(form, match)
    return replace(_OTHER, text=_PLACE.sub("", warning, count=1)[:_SHOWN])


def _filled(form: Form, match: re.Match[str]) -> Form:
    groups = match.groupdict()
    if status := groups.get("status"):
        ended, sentence = completion(int(status))
        text = f"{sentence} at {groups['hca']}" if groups["hca"] else sentence
        return replace(form, outcome=ended.outcome, fault=ended.fault, text=text, follows=ended.follows)
    named = bool(groups.get("hca"))
    subject, fault = (form.subject.format(**groups), form.fault) if named else (HOST, form.unnamed or form.fault)
    values = {name: value or "no reason given" for name, value in groups.items()}
    if "peer" in groups:
        values["peer"] = groups["peer"] or groups["other"] or "another rank"
        values["other"] = ""
    return replace(form, text=form.text.format(**values), subject=subject, fault=fault)


def report(warnings: Sequence[tuple[int | None, str]], gpus: Gpus, reports: Reports) -> None:
    """The warnings of one host by CUDA's number of the GPU; what follows from another one only if that is missing.

    Warnings of another kind that differ in numbers alone are counted as one.
    """
    forms = [(device, classified(text)) for device, text in warnings if not HARMLESS.search(text)]
    begun = any(not form.follows and form.fault for _, form in forms)
    others: dict[str, str] = {}
    for device, form in forms:
        if form.follows and begun:
            continue
        about_gpu = device is not None and not form.of_host
        subject = gpus.of_cuda(device) or f"GPU{device}" if about_gpu else form.subject
        text = others.setdefault(_NUMBERS.sub("#", form.text), form.text) if form.topic == _OTHER.topic else form.text
        reports.add(subject, form.topic, form.outcome, form.fault, text)
