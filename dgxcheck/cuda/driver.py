"""The CUDA driver through ctypes: no toolkit, no package, from the drivers of the K80 to today's.

The names are those that ``libcuda.so.1`` exports; a name with ``_v2`` is the 64-bit form since CUDA 3.2. Sources: the
CUDA Driver API reference, https://docs.nvidia.com/cuda/cuda-driver-api/.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

LIBRARY = "libcuda.so.1"
_P, _U64, _SIZE, _INT, _UINT = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint
_SIGNATURES: Mapping[str, tuple[Any, ...]] = {
    "cuInit": (_UINT,), "cuDriverGetVersion": (_P,), "cuDeviceGetCount": (_P,), "cuDeviceGet": (_P, _INT),
    "cuDeviceGetAttribute": (_P, _INT, _INT), "cuDeviceGetPCIBusId": (_P, _INT, _INT),
    "cuDevicePrimaryCtxRetain": (_P, _INT), "cuDevicePrimaryCtxRelease": (_INT,),
    "cuDevicePrimaryCtxRelease_v2": (_INT,), "cuCtxSetCurrent": (_P,), "cuDeviceCanAccessPeer": (_P, _INT, _INT),
    "cuCtxEnablePeerAccess": (_P, _UINT), "cuCtxDisablePeerAccess": (_P,), "cuMemGetInfo_v2": (_P, _P),
    "cuMemAlloc_v2": (_P, _SIZE), "cuMemFree_v2": (_U64,), "cuMemHostAlloc": (_P, _SIZE, _UINT),
    "cuMemHostGetDevicePointer_v2": (_P, _P, _UINT), "cuMemFreeHost": (_P,),
    "cuMemsetD32Async": (_U64, _UINT, _SIZE, _P), "cuMemcpyHtoDAsync_v2": (_U64, _P, _SIZE, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _U64, _SIZE, _P), "cuMemcpyDtoDAsync_v2": (_U64, _U64, _SIZE, _P),
    "cuMemcpyPeerAsync": (_U64, _P, _U64, _P, _SIZE, _P), "cuStreamCreate": (_P, _UINT), "cuStreamDestroy_v2": (_P,),
    "cuStreamQuery": (_P,), "cuStreamWaitEvent": (_P, _P, _UINT), "cuEventCreate": (_P, _UINT),
    "cuEventDestroy_v2": (_P,), "cuEventRecord": (_P, _P), "cuEventQuery": (_P,), "cuEventElapsedTime": (_P, _P, _P),
    "cuModuleLoadDataEx": (_P, _P, _UINT, _P, _P), "cuModuleGetFunction": (_P, _P, ctypes.c_char_p),
    "cuModuleUnload": (_P,), "cuLaunchKernel": (_P, *[_UINT] * 7, _P, _P, _P), "cuGetErrorName": (_INT, _P),
}  # fmt: skip
NOT_READY = 600
PEER_ALREADY_ENABLED, PEER_NOT_ENABLED = 704, 705
UNLOADABLE = (200, 209, 218, 221, 222, 223)
"""The driver cannot compile or load the kernels; copies still work."""
STICKY = (214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 999)
"""The context is corrupted and all further calls fail: the process must end."""
UNAVAILABLE = (3, 34, 35, 36, 46, 100, 101, 803, 804)
"""Results of cuInit: no driver, no GPU in this container, or a kernel driver too old for the library."""
OUT_OF_MEMORY, TAKEN = 2, 46
"""``CUDA_ERROR_OUT_OF_MEMORY``; ``CUDA_ERROR_DEVICE_UNAVAILABLE``: another process has the GPU exclusively."""


class CudaError(Exception):
    """A failed call, with its CUresult by number and name."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.call = call
        self.code = code
        self.name = name


class Driver:
    """``libcuda.so.1``, its functions looked up when they are first called."""

    def __init__(self, library: str = LIBRARY) -> None:
        """OSError where there is no such library, or it cannot be loaded."""
        self._library = ctypes.CDLL(library)
        self._functions: dict[str, Any] = {}

    @property
    def simulated(self) -> bool:
        """Is this a stand-in for tests, with simulated results?"""
        return hasattr(self._library, "dgxcheckSimulated")

    def has(self, function: str) -> bool:
        """Does this driver know the function?"""
        return hasattr(self._library, function)

    def status(self, function: str, *args: Any) -> int:
        """Call a function; returns its CUresult."""
        if (entry := self._functions.get(function)) is None:
            if (entry := getattr(self._library, function, None)) is None:
                raise CudaError(function, 500, "not in this driver")
            entry.argtypes = _SIGNATURES[function]
            entry.restype = ctypes.c_int
            self._functions[function] = entry
        code: int = entry(*args)
        return code

    def call(self, function: str, *args: Any) -> None:
        """Call a function; CudaError unless it returns CUDA_SUCCESS."""
        if code := self.status(function, *args):
            raise CudaError(function, code, self.error_name(code))

    def number(self, function: str, *args: Any) -> int:
        """Call a function with an int output as its first argument; returns that."""
        out = ctypes.c_int()
        self.call(function, ctypes.byref(out), *args)
        return out.value

    def handle(self, function: str, *args: Any) -> int:
        """Call a function with a handle or address output as its first argument; returns that."""
        out = _U64()
        self.call(function, ctypes.byref(out), *args)
        return out.value

    def error_name(self, code: int) -> str:
        """``CUDA_ERROR_ECC_UNCORRECTABLE``; the number where the driver has no name for it."""
        text = ctypes.c_char_p()
        if self.status("cuGetErrorName", code, ctypes.byref(text)) or not text.value:
            return f"CUresult {code}"
        return text.value.decode("ascii", "replace")
