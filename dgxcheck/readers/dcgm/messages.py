"""What the messages of DCGM's tests and health watches say, and words of other tools for the same faults.

Messages: https://github.com/NVIDIA/DCGM/blob/master/dcgmlib/dcgm_errors.h
"""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.xid.table import architecture_of, meaning

_OF_RESPONSE = {
    "off-bus": Fault.GPU_LOST, "contained": Fault.XID_CONTAINED, "pcie": Fault.XID_PCIE, "vm": Fault.XID_SOFTWARE,
    "update": Fault.XID_SOFTWARE, "watch": Fault.XID_NOTICE, "report": Fault.XID_NOTICE,
    "recovery": Fault.RECOVERY_REQUIRED, "field-diagnostic": Fault.RETIREMENT_FAILED, "memory": Fault.ECC_UNCORRECTED,
}  # fmt: skip
"""Every other response asks for a reset."""


def of_xid(number: int, model: str = "") -> tuple[Outcome, FaultKind | None]:
    """What an Xid that a tool names stands for: a note where programs cause it. A GPU off the bus stays so until a
    reboot, which ends what the tools remember; another may be of long ago."""
    entry = meaning(number, architecture(model))
    if entry.severity in ("application", "information"):
        return "note", None
    fault = _OF_RESPONSE.get(entry.response, Fault.XID)
    return "fail" if fault is Fault.GPU_LOST else "warn", fault


def architecture(model: str) -> int | None:
    """Of a GPU by its name; None where that is not known."""
    try:
        return architecture_of(model)[1]
    except BadInput:
        return None


XID_NUMBER = LazyPattern(
    r"(?:\bX[Ii][Dd](?:(?: [Ee]rrors?)?[ :=_#]{0,3}|\w{0,20} is True \(\{\"| \([\w:. ]{7,40}\): )"
    r"|\bNvidiaXID(?=\d{1,3}(?:Error|Warning)\b))"
    r"(?P<number>\d{1,3})(?:\b|(?=[EW]))"
)
"""The second form is that of GKE, ``XidCriticalError`` with the reason ``{"48":true}``, the third the driver's, the
last the reason of EKS."""
_FORMS = (
    (Fault.DIMM_ERRORS, r"\bDIMM|(?:\b|_)EDAC\b"),
    (Fault.GPU_MISSING, r"^check_gpu_count: Expected"),
    (Fault.GPU_LOST, r"f[ae]ll(?:en)? off the bus|GPU[ _]is[ _]lost|not be detected|unable to communicate"),
    (Fault.IMEX_NODES, r"^NodePrepareResources.{1,600} not ready in ComputeDomain"),
    (Fault.GPUS_NOT_OFFERED,
     r"gres/gpu count (?:repor|too low)|of \d{1,3} GPUs are allocatable|(?:stat|Waiting for) gres\.conf file"
     r"|^gres\.conf |^Ignoring file-less|configured to autodetect nvml|number of devices unavailable for nvidia\.com/"
     r"|DRA driver \S{1,60} is not registered|registered DRA plugins|^NodePrepareResources(?: failed for .{1,320})?: "
     r"|device marked unhealthy|no healthy devices present|expected \d{1,3} GPUs?,? (?:but )?(?:found|got) \d"
     r"|\bnvml\.Init(?:: [A-Z]|$)"
     r"|^nvidia-(?!dcgm)\S{1,120} is (?:Init:)?(?:CrashLoopBackOff|(?:Run|Create)Container(?:Config)?Error|Error$)"),
    (Fault.CONTAINER_RUNTIME, r"Detected non-NVML platform|Incompatible (?:strategy|platform) detected"),
    (Fault.FILE_SYSTEM, r"shutting down file ?system|file ?system is read-?only"),
    (Fault.RESET_REQUIRED, r"\(GPU_RESET\)|GPU requires reset|of type '?(?:GPU )?Reset Required"),
    (Fault.REBOOT_REQUIRED, r"\(NODE_REBOOT\)"),
    (Fault.DRAIN_REQUIRED, r"\(DRAIN_P2P\)"),
    (Fault.DRAIN_AND_RESET, r"\(DRAIN_AND_RESET\)|of type '?(?:GPU )?Drain and Reset Recommended"),
    (Fault.XID_CONTAINED, r"\ba contained error"),
    (Fault.SRAM_EXCEEDED, r"SRAM Threshold"),
    (Fault.ROWS_EXHAUSTED, r"row remap limit"),
    (Fault.MEMORY_FAULTY, r"faulty memory elements|memory mismatch|NaN-value memory|\bmiscompare"),
    (Fault.P2P_TESTED, r"\bunsuccessfully (?:written to|wrote data)\b"),
    (Fault.REMAP_FAILED, r"row[ -]remap\w* (?:has )?fail|failed to remap"),
    (Fault.REMAP_PENDING, r"(?:row remap\w*|remapp\w*)[\w ]{0,24}pending|pending row remap"),
    (Fault.RETIREMENT_PENDING, r"(?:page retire\w*|retired pages)[\w ]{0,24}pending"
     r"|pending (?:page retire|retired page)"),
    (Fault.PAGES_EXHAUSTED, r"(?:retired|page retire)[\w ]{0,60}(?:limit|more than|maximum)|or more retired pages"),
    (Fault.AER_UNCORRECTABLE, r"^ConnectX entity Id:\d{1,3} uncorrectable"),
    (Fault.ECC_UNCORRECTED, r"(?<!PCIe )uncorrectable(?! (?:PCI|bus|machine check))|double[- ]bit"
     r"|(?:\b|_)DBEs?(?:\b|_)"),
    (Fault.ECC_CORRECTED, r"single[- ]bit|(?:\b|_)SBEs?(?:\b|_)"),
    (Fault.ECC_PENDING, r"ECC memory for GPU \d{1,3} is in a pending"),
    (Fault.ECC_OFF, r"ECC (?:mode )?is (?:disabled|not enabled)"),
    (Fault.THERMAL_SLOWDOWN, r"thermal violation|thermal slowdown|clocks?[ _](?:event|throttl)\w*.{0,40}thermal"),
    (Fault.OVERHEATING, r"temperature"),
    (Fault.HARDWARE_SLOWDOWN, r"^Clocks event for GPU|clock throttling"),
    (Fault.TEST_FAILED, r"\bIMEX (?:daemon|domain)|_IMEX_"),
    (Fault.FABRIC_MANAGER_ERROR, r"NvSwitch (?:physical ID )?\d{1,3}(?:'s| -) .{0,40}(?:down|NvLinks are up)"),
    (Fault.FABRIC_FAILED, r"\bFabric State is"),
    (Fault.NVLINK_REPORTED,
     r"NV_?Link (?:link|port) \d{1,2} is (?:currently )?down|NVLinks? (?:(?:is|are) down|inactive)"
     r"|Only \d{1,2} NvLinks are up out of"),
    (Fault.NVSWITCH_FATAL, r"Detected fatal (?:errors on NvSwitch|NvSwitch SXID)"),
    (Fault.NVSWITCH_WATCHED, r"Detected nonfatal errors on NvSwitch"),
    (Fault.NOUVEAU, r"Found driver on the denylist: (?:nouveau|nova)"),
    (Fault.LINK_TESTED, r"^(?!.*\bmemory bandwidth).*bandwidth .{0,80}minimum required bandwidth"
     r"|^Latency type .{1,80} exceeded maximum allowed latency"),
    (Fault.NVLINK_ERRORS, r"NV_?Link.{0,80}error|error.{0,40}NV_?Link|\bBER [\d.e+-]{1,12} exceeds"),
    (Fault.FABRIC_MANAGER_DOWN, r"fabric ?manager|system not yet initialized"),
    (Fault.PCIE_REPLAYS, r"PCIe?[ _]replay"),
    (Fault.LINK_TESTED, r"\b(?:PCIe?|GPU)\b.{0,40}(?:\bPCIe? generation|link (?:generation|width|speed))"
     r"|\bPCIe?\b.{0,40}\bgeneration"),
    (Fault.POWER_VIOLATION, r"power violation|power brake"),
    (Fault.SLOW, r"did not reach desired|only achieved a memory bandwidth|which is below the threshold"),
    (Fault.INFOROM, r"inforom"),
    (Fault.TRANSFER_UNANSWERED, r"^(?:[\w-]{1,60}: )?only \d{1,3} port(?:s|\(s\))? .{0,40}active"),
    (Fault.PERSISTENCE_OFF, r"persistence mode"),
)  # fmt: skip
_DID_NOT_RUN = caseless_pattern(
    r"busy or unavailable|exclusive(?:[- ]process)? (?:compute )?mode|(?:is|are) in use by|resource (?:is )?in use"
    r"|other (?:compute )?process(?:es)? (?:is|are) running|(?:not enough|insufficient|out of) (?:free )?memory"
    r"|(?:could not|unable to|failed to) allocate|incompatible with the diagnostic|unsupported toolchain"
    r"|no kernel image|driver version is insufficient|processes with graphics contexts|performance-limiting environment"
    r"|host ?engine|aborted early|have permissions to create|which is too low to|without 2 or more|^Skipping "
    r"|internal error during the test|field watches|get field information|Could not query field|collect stat\b"
    r"|Bad parameter to function|Error using DCGM API|memory copy utilization"
    r"|executable which is required")  # fmt: skip
"""A test that another program or a setting kept from running is no evidence about the hardware."""
_MOMENT = LazyPattern(r"\bviolations totaling 0\.0 seconds")
"""Of heat; DCGM fails a test for it all the same (https://github.com/NVIDIA/DCGM/issues/242)."""
_COMPILED = tuple((fault, caseless_pattern(words)) for fault, words in _FORMS)


def judged(outcome: Outcome, message: str) -> tuple[Outcome, FaultKind | None]:
    """The outcome and the fault of a test with this message: unknown, without a fault, where it did not run."""
    if outcome != "pass" and _DID_NOT_RUN.search(message):
        return "unknown", None
    if outcome == "fail" and _MOMENT.search(message):
        outcome = "warn"
    return outcome, fault_of(message)


def fault_of(message: str) -> FaultKind:
    """The fault that a message tells, by the Xid that it names, else by its words; a failed test where neither does."""
    if xid := XID_NUMBER.search(message):
        return of_xid(int(xid["number"]))[1] or Fault.XID_APPLICATION
    return next((fault for fault, words in _COMPILED if words.search(message)), Fault.TEST_FAILED)
