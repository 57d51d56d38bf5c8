"""The warnings of NCCL, by what they say of the machine.

Their texts: https://github.com/NVIDIA/nccl/tree/master/src (misc/ibvwrap.cc, transport/net_ib.cc, transport/p2p.cc).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.completions import completion
from dgxcheck.readers.nccl.gpus import Gpus
from dgxcheck.readers.network.files import NAME
from dgxcheck.readers.reports import HOST, Reports


class Form(Record, kw_only=False):
    """A warning's words, and what they stand for."""

    words: re.Pattern[str]
    topic: str
    outcome: Outcome
    fault: str
    text: str
    """May name groups of ``words``."""
    of_host: bool = False
    """Not about the GPU of the rank that logs it."""
    follows: bool = False
    """Something else failed before it, here or on another host."""
    subject: str = HOST
    """Where it is not about a GPU: the host, or an HCA or port in names of groups."""


_PORT = rf"(?:(?P<hca>{NAME}):(?P<port>\d{{1,3}}) )?"
_EVENT = rf"NET/IB ?: {_PORT}(?:Got (?:non-fatal )?async event|async fatal event)[^:]{{0,200}}: ?"
_CUDA = r"Cuda failure (?:\d{1,4} )?"
_FORMS = (
    Form(re.compile(r"NET/IB(?:/GIN)? ?: ?Got completion.{0,120}?with (?:error|status=)\D{0,40}(?P<status>\d{1,3})"
                    rf"(?:.{{1,300}} hca (?P<hca>{NAME}))?"),
         "ib-completion", "fail", "transfer-failed", "", True),
    Form(re.compile(rf"{_EVENT}port error"), "ib-port", "warn", "port-down", "the link of the port went down", True,
         subject="{hca}/{port}"),
    Form(re.compile(rf"{_EVENT}(?:local catastrophic error|device fatal)"),
         "ib-fatal", "fail", "hca-unresponsive", "the HCA reported a fatal error", True, subject="{hca}"),
    Form(re.compile(rf"{_EVENT}(?P<event>[\w ]{{1,60}})"),
         "ib-event", "warn", "transfer-failed", "an HCA stopped a transfer: {event}", True, True),
    Form(re.compile(r"(?:[Rr]emote|connect) .{0,20}(?:device is incompatible|incompatible devices)"),
         "link-layer", "fail", "tool-error", "the HCAs at the two ends run different link layers", True),
    Form(re.compile(r"Call to (?P<call>ibv_(?:reg_mr|create_qp|create_cq)\w{0,20}) failed with error Cannot allocate"),
         "memlock", "fail", "memlock",
         "{call} failed: cannot allocate memory, as where the limit of locked memory is low", True),
    Form(re.compile(r"Call to (?P<call>ibv_reg_\w{1,30}) failed(?: with error (?P<why>[\w ]{1,60}))?"),
         "ib-register", "fail", "rdma-access", "{call} failed: {why}", True),
    Form(re.compile(r"Call to (?P<call>ibv_modify_qp\w{0,20}) failed.{0,40}"
                    r"(?P<why>timed out|No route to host|unreachable)"),
         "ib-path", "fail", "transfer-unanswered", "{call} failed: {why}", True),
    Form(re.compile(r"Call to (?P<call>ibv_\w{1,40}) failed(?: with error (?P<why>[\w ]{1,60}))?"),
         "ib-call", "fail", "transfer-failed", "{call} failed: {why}", True),
    Form(re.compile(r"P2P is disabled between NVLINK connected GPUs (?P<a>\d{1,3}) and (?P<b>\d{1,3})"),
         "p2p", "fail", "p2p-blocked", "P2P is disabled between GPU{a} and GPU{b}, which NVLinks join", True),
    Form(re.compile(rf"{_CUDA}'uncorrectable ECC error encountered'"),
         "ecc", "fail", "ecc-uncorrected", "CUDA reports an uncorrectable ECC error"),
    Form(re.compile(rf"{_CUDA}'system not yet initialized|Cuda failure 802\b"),
         "fabric", "fail", "fabric-manager-down", "CUDA reports that the NVSwitch fabric is not initialised", True),
    Form(re.compile(rf"{_CUDA}'uncorrectable NVLink error"),
         "nvlink", "fail", "nvlink-errors", "CUDA reports an uncorrectable NVLink error"),
    Form(re.compile(r"nvml\w{1,60}(?:\(\))? failed: GPU is lost"), "lost", "fail", "gpu-lost", "NVML has lost the GPU"),
    Form(re.compile(r"nvml\w{1,60}(?:\(\))? failed: Driver/library version mismatch"),
         "driver", "fail", "driver-mismatch", "the NVIDIA driver's library and its kernel module do not match", True),
    Form(re.compile(r"transport/nvls\.cc|NVLink SHARP"),
         "nvls", "warn", "fabric-failed", "multicast memory of NVLink SHARP cannot be bound to this GPU"),
    Form(re.compile(r"Cuda failure (?:(?P<number>\d{1,4}) )?'(?P<words>[\w ,.'-]{1,120})'"),
         "cuda", "warn", "tool-error", "CUDA failure: {words}", True),
    Form(re.compile(r"creating shared memory segment|Call to (?:posix_fallocate|ftruncate|shm_open) failed"
                    r"|No space left on device"),
         "shm", "fail", "tool-error", "shared memory cannot be allocated: /dev/shm is too small", True),
    Form(re.compile(r"Duplicate GPU detected : rank (?P<a>\d{1,7}) and rank (?P<b>\d{1,7})"),
         "launch", "warn", "tool-error", "ranks {a} and {b} were started on the same GPU", True),
    Form(re.compile(r"Mismatched NCCL version detected"),
         "version", "warn", "tool-error", "the ranks use different versions of NCCL", True),
    Form(re.compile(r"[Cc]onnect(?:ion)? (?:to|from).{0,80}(?P<why>refused|timed out|No route to host)"),
         "socket", "fail", "transfer-failed", "no TCP connection to another rank: {why}", True),
    Form(re.compile(r"[Cc]onnection closed by (?:remote )?peer|socketProgress: "),
         "peer-gone", "warn", "transfer-failed", "another rank closed its connection", True, True),
)  # fmt: skip
_OTHER = Form(re.compile(""), "warning", "warn", "tool-error", "a warning of another kind, see the log", True, True)
_HARMLESS = re.compile(
    rf"{_EVENT}(?:port active|LID change|P_Key change|SM change|client reregistration|GID table change)"
    r"|GID table changed|Could not find real path of |Failed to open libibverbs|Missing \"iommu=pt\""
    r"|NUMA auto balancing"
)
"""What working machines log too: virtual ones, those without HCAs."""


def classified(warning: str) -> Form:
    """The form of a warning, which may have its file and line before it; its text is that for people."""
    for form in _FORMS:
        if match := form.words.search(warning[:600]):
            return _told(form, match)
    return _OTHER


def _told(form: Form, match: re.Match[str]) -> Form:
    groups = match.groupdict()
    if status := groups.get("status"):
        ended, sentence = completion(int(status))
        text = f"{sentence} at {groups['hca']}" if groups["hca"] else sentence
        return replace(form, outcome=ended.outcome, fault=ended.fault, text=text, follows=ended.follows)
    subject = form.subject.format(**groups) if groups.get("hca") else HOST
    values = {name: value or "no reason given" for name, value in groups.items()}
    return replace(form, text=form.text.format(**values), subject=subject)


def report(warnings: Sequence[tuple[int | None, str]], gpus: Gpus, reports: Reports) -> None:
    """The warnings of one host by CUDA's number of the GPU; what follows from another one only if that is missing."""
    forms = [(device, classified(text)) for device, text in warnings if not _HARMLESS.search(text)]
    begun = any(not form.follows for _, form in forms)
    for device, form in forms:
        if form.follows and begun:
            continue
        about_gpu = device is not None and not form.of_host
        subject = gpus.of_cuda(device) or f"GPU{device}" if about_gpu else form.subject
        reports.add(subject, form.topic, form.outcome, form.fault, form.text)
