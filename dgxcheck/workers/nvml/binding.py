"""NVML through nvidia-ml-py: every quirk of the binding is wrapped here, once.

Newer symbols come first, the older serve where a driver lacks them. Runs in a worker only: the driver is behind it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from ctypes import CDLL, ArgumentError, Array, Structure, byref, c_ubyte, c_uint, c_ulonglong
from functools import partial

import pynvml

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.ids import NVLINK5_BER, NVLINK5_ERRORS, NVLINK_SPEED, NVLINK_SPEEDS
from dgxcheck.facts.missing import NOT_LOADABLE, Gap, Missing
from dgxcheck.package_files import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CPU_WORDS, NODE_WORDS = 128, 16  # room for 8192 CPUs and 1024 NUMA nodes, the most that kernels are built for
MOST_PROCESSES = 64 * 16 * 16
_LIBRARY = "libnvidia-ml.so.1"
_UNKNOWN = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)  # what NVML fills in where a process's memory is not known
_ERRORS = {int(row["code"]): (row["words"], Gap(row["gap"])) for row in table("workers/nvml/errors.tsv")}
_TOGETHER = (*NVLINK5_ERRORS.values(), *NVLINK5_BER.values())
_FIELD_VALUE = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by nvmlValueType_t


def answer(where: str, call: Callable[[], Any]) -> Any:
    """What a call gives as JSON would have it, or the gap that its error stands for."""
    try:
        return _plain(call())
    except pynvml.NVMLError as error:
        return gap(where, error.value)
    except pynvml.NVMLLibraryMismatchError:
        return gap(where, 13)
    except AttributeError:  # a function that this release of the binding no longer has
        return Missing(Gap.UNSUPPORTED, where, "not in this nvidia-ml-py")
    except (ArgumentError, LookupError, TypeError, ValueError) as error:
        return Missing(Gap.GARBLED, where, f"{type(error).__name__} in nvidia-ml-py")


def gap(where: str, code: int) -> Missing:
    """The gap that an nvmlReturn_t stands for."""
    words, kind = _ERRORS.get(code, ("not a known error", Gap.GARBLED))
    return Missing(kind, where, f"NVML {code}: {words}", code)


def call(function: str, handles: tuple[Any, ...], args: tuple[int, ...]) -> Any:
    """Call an NVML function by its C name without ``_vN``."""
    special = _SPECIAL.get(function)
    return special(*handles, *args) if special else getattr(pynvml, function)(*handles, *args)


def init() -> bool | Missing:
    """``nvmlInitWithFlags``; drivers before R390 may have ``nvmlInit_v2`` alone.

    Where the library is there and not loaded, nvidia-ml-py calls it "not found" as well. dlerror(3) has no number: it
    begins with the object that is at fault, which may be another one that this needs.
    """
    try:
        _newest(pynvml.nvmlInit, lambda: pynvml._nvmlCheckReturn(pynvml._nvmlGetFunctionPointer("nvmlInit_v2")()))
    except pynvml.NVMLError_LibraryNotFound:
        try:
            CDLL(_LIBRARY)
        except OSError as error:
            about, _, why = str(error).partition(": ")
            if about != _LIBRARY or not why.endswith(os.strerror(errno.ENOENT)):
                return Missing(Gap.GARBLED, "nvmlInit", f"{_LIBRARY} cannot be loaded: {error}", NOT_LOADABLE)
        raise
    return True


def bdf_of(handle: Any) -> str:
    """The PCI function behind a handle as sysfs spells it: ``0000:06:00.0``."""
    bus_id = str(_plain(call("nvmlDeviceGetPciInfo", (handle,), ()))["busId"])
    if (bdf := as_bdf(bus_id)) is None:
        raise ValueError(f"not a PCI bus id: {bus_id!r}")
    return bdf


def gpu_at(index: int) -> tuple[str, Any]:
    """The PCI function of a GPU, and its handle."""
    handle = call("nvmlDeviceGetHandleByIndex", (), (index,))
    return bdf_of(handle), handle


def _newest(*calls: Callable[[], Any]) -> Any:
    """The first that this driver has; what the last says counts."""
    for attempt in calls[:-1]:
        try:
            return attempt()
        except (pynvml.NVMLError_FunctionNotFound, AttributeError, pynvml.NVMLLibraryMismatchError):
            continue
        except pynvml.NVMLError as error:
            if error.value != 25:
                raise
    return calls[-1]()


def _either(*names: str) -> Callable[..., Any]:
    """One function under the names that it has in newer and older drivers."""
    return lambda *args: _newest(*(lambda name=name: getattr(pynvml, name)(*args) for name in names))


def _pci_struct(function: str, struct: type[Structure], *inputs: Any) -> Any:
    info = struct()
    pynvml._nvmlCheckReturn(pynvml._nvmlGetFunctionPointer(function)(*inputs, byref(info)))
    return info


def _pci_info(function: str, older: str) -> Callable[..., Any]:
    """Older drivers fill in the shorter struct alone, one under an older name of the function."""
    return lambda *args: _newest(
        lambda: getattr(pynvml, function)(*args), lambda: _pci_struct(older, pynvml.nvmlPciInfo_v2_t, *args)
    )


_SRAM = (
    "aggregateUncParity", "aggregateUncSecDed", "aggregateUncBucketL2", "aggregateUncBucketSm",
    "aggregateUncBucketPcie", "aggregateUncBucketMcu", "aggregateUncBucketOther", "bThresholdExceeded",
)  # fmt: skip


def _sram_status(handle: Any) -> Any:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, byref(status))
    return {name: getattr(status, name) for name in _SRAM}


def _valid_inforom(handle: Any) -> int:
    pynvml.nvmlDeviceValidateInforom(handle)
    return 1


def _platform(handle: Any) -> Any:
    """Without GUID and serial number of the rack, which name it."""
    info = pynvml.c_nvmlPlatformInfo_v2_t()
    pynvml.nvmlDeviceGetPlatformInfo(handle, byref(info))
    return {name: ord(getattr(info, name)) for name in ("slotNumber", "trayIndex", "hostId", "moduleId")}


def _unrepairable(handle: Any) -> int:
    """``nvmlUnrepairableMemoryStatus_v1_t`` is the flag alone (nvml.h of R590); nvidia-ml-py has a version before it,
    and so gives 0 whatever the driver says."""
    flag = (c_uint * 2)()
    pynvml._nvmlCheckReturn(pynvml._nvmlGetFunctionPointer("nvmlDeviceGetUnrepairableMemoryFlag_v1")(handle, flag))
    return flag[0]


class FabricInfo(Structure):
    """``nvmlGpuFabricInfo_t``; that of nvidia-ml-py 13.590 and before has 80 bytes for the UUID, and reads no state."""

    _fields_ = (("clusterUuid", c_ubyte * 16), ("status", c_uint), ("cliqueId", c_uint), ("state", c_ubyte))


def _fabric(handle: Any) -> Any:
    def ask(function: str, struct: Callable[[], Any]) -> Any:
        info = struct()
        getattr(pynvml, function)(handle, byref(info))
        raw = bytes(info.clusterUuid).hex()
        uuid = "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))
        answers = {"state": info.state, "status": info.status, "cliqueId": info.cliqueId, "clusterUuid": uuid}
        return answers | {name: getattr(info, name) for name in ("healthMask", "healthSummary") if hasattr(info, name)}

    return _newest(
        lambda: ask("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v3_t),
        lambda: ask("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v2_t),
        lambda: ask("nvmlDeviceGetGpuFabricInfo", FabricInfo),
    )


class _ProcessV1(Structure):
    _fields_ = (("pid", c_uint), ("usedGpuMemory", c_ulonglong))


def _processes(kind: str) -> Callable[[Any], Any]:
    """Process lists of drivers before R510 have shorter structs under other symbols."""
    forms = (("_v3", "c_nvmlProcessInfo_v3_t"), ("_v2", "c_nvmlProcessInfo_v2_t"), ("", ""))

    def ask(handle: Any, suffix: str, struct: str) -> Any:
        function = pynvml._nvmlGetFunctionPointer(f"nvmlDeviceGet{kind}RunningProcesses{suffix}")
        count, code, room = c_uint(), 7, 64
        while code == 7 and room <= MOST_PROCESSES:  # no room for all of them
            found = ((getattr(pynvml, struct) if struct else _ProcessV1) * room)()
            count.value = room
            code = function(handle, byref(count), found)
            room *= 16
        pynvml._nvmlCheckReturn(code)
        rows = found[: count.value]
        memory = [None if row.usedGpuMemory in _UNKNOWN else row.usedGpuMemory for row in rows]
        return [{"pid": row.pid, "usedGpuMemory": used} for row, used in zip(rows, memory, strict=True)]

    return lambda handle: _newest(*(partial(ask, handle, suffix, struct) for suffix, struct in forms))


def _field(handle: Any, field: int, *scope: int) -> Any:
    """One field; of an NVLink, whose number is its scope."""
    return _value(pynvml.nvmlDeviceGetFieldValues(handle, [(field, *scope) if scope else field])[0])


def _value(answer: Any) -> Any:
    pynvml._nvmlCheckReturn(answer.nvmlReturn)
    return getattr(answer.value, _FIELD_VALUE[answer.valueType])


_heard: dict[int, Any] = {}
"""What one call said of the fields that are asked together, until each of them is asked for."""


def _error_field(handle: Any, link: int, field: int) -> Any:
    """An error counter of an NVLink: one call asks for all of them, for a link has a dozen and a GPU 18 links."""
    if field not in _heard or _heard.pop(-1) != (id(handle), link):
        _heard.clear()
        values = pynvml.nvmlDeviceGetFieldValues(handle, [(each, link) for each in _TOGETHER])
        _heard.update(zip(_TOGETHER, values, strict=True))
    _heard[-1] = (id(handle), link)
    return _value(_heard.pop(field))


def _field_of(handle: Any, *args: int) -> Any:
    """A field of the GPU, or of one of its NVLinks (link, field)."""
    if len(args) == 1:
        return _field(handle, *args)
    link, field = args
    if field in _TOGETHER:
        return _error_field(handle, link, field)
    try:
        return _field(handle, field, link)
    except pynvml.NVMLError as error:
        if field != NVLINK_SPEED or link >= len(NVLINK_SPEEDS) or error.value not in (2, 3):
            raise
        return _field(handle, NVLINK_SPEEDS[link])  # drivers before R530 have one field per link


def _words(affinity: Any) -> list[int]:
    """The words of a mask without the empty ones at its end, whatever room was given for it."""
    words = list(affinity)
    while words and not words[-1]:
        words.pop()
    return words


_SPECIAL: dict[str, Callable[..., Any]] = {
    "nvmlDeviceGetPciInfo": _pci_info("nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2"),
    "nvmlDeviceGetNvLinkRemotePciInfo": _pci_info(
        "nvmlDeviceGetNvLinkRemotePciInfo", "nvmlDeviceGetNvLinkRemotePciInfo"
    ),
    "nvmlDeviceGetMemoryInfo": lambda handle: _newest(
        lambda: pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2),
        lambda: pynvml.nvmlDeviceGetMemoryInfo(handle),
    ),
    "nvmlDeviceGetRetiredPages": lambda handle, cause: _newest(
        lambda: pynvml.nvmlDeviceGetRetiredPages_v2(handle, cause),
        lambda: [{"address": page} for page in pynvml.nvmlDeviceGetRetiredPages(handle, cause)],
    ),
    "nvmlDeviceGetSramEccErrorStatus": _sram_status,
    "nvmlDeviceGetUnrepairableMemoryFlag": _unrepairable,
    "nvmlDeviceValidateInforom": _valid_inforom,
    "nvmlDeviceGetPlatformInfo": _platform,
    "nvmlDeviceGetC2cModeInfo": lambda handle: pynvml.nvmlDeviceGetC2cModeInfoV(handle),
    "nvmlDeviceGetCurrentClocksEventReasons": _either(
        "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
    ),
    "nvmlDeviceGetTemperature": _either("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature"),
    "nvmlDeviceGetGpuFabricInfo": _fabric,
    "nvmlDeviceGetFieldValues": _field_of,
    "nvmlDeviceGetComputeRunningProcesses": _processes("Compute"),
    "nvmlDeviceGetGraphicsRunningProcesses": _processes("Graphics"),
    "nvmlDeviceGetCpuAffinity": lambda handle: _words(pynvml.nvmlDeviceGetCpuAffinity(handle, CPU_WORDS)),
    "nvmlDeviceGetMemoryAffinity": lambda handle, scope: _words(
        pynvml.nvmlDeviceGetMemoryAffinity(handle, NODE_WORDS, scope)
    ),
}


def _plain(value: Any) -> Any:
    """A ctypes answer as JSON would have it: structs by NVML's field names, without version and padding."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Structure):
        names = (field[0] for field in value._fields_)
        return {name: _plain(getattr(value, name)) for name in names if name != "version" and name[-1] not in "0123"}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple | Array) else value
