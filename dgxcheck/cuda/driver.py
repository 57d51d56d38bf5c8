"""The CUDA driver through ctypes: no toolkit, no package, from the drivers of the K80 to today's.

The names are those that ``libcuda.so.1`` exports; a name with ``_v2`` is the 64-bit form since CUDA 3.2. Sources: the
CUDA Driver API reference, https://docs.nvidia.com/cuda/cuda-driver-api/.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from dgxcheck.package_files import table

_TYPES: Mapping[str, Any] = {
    "pointer": ctypes.c_void_p, "u64": ctypes.c_uint64, "size": ctypes.c_size_t, "int": ctypes.c_int,
    "uint": ctypes.c_uint, "text": ctypes.c_char_p,
}  # fmt: skip
_SIGNATURES = {row["function"]: [_TYPES[each] for each in row["arguments"].split()]
               for row in table("cuda/functions.tsv")}  # fmt: skip
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

    def __init__(self, library: str) -> None:
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
        out = ctypes.c_uint64()
        self.call(function, ctypes.byref(out), *args)
        return out.value

    def error_name(self, code: int) -> str:
        """``CUDA_ERROR_ECC_UNCORRECTABLE``; the number where the driver has no name for it."""
        text = ctypes.c_char_p()
        if self.status("cuGetErrorName", code, ctypes.byref(text)) or not text.value:
            return f"CUresult {code}"
        return text.value.decode("ascii", "replace")
