"""The driver calls of a ``libcuda.so.1`` through ctypes, with the types of ``cuda.h``."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from itertools import permutations
from pathlib import Path
from typing import Any

U64, HANDLE, OUT = c_uint64, c_void_p, c_void_p
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDeviceGetPCIBusId": (c_char_p, c_int, c_int),
    "cuDeviceGetUuid": (OUT, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(HANDLE), c_int),
    "cuDevicePrimaryCtxRelease": (c_int,),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxSetCurrent": (HANDLE,),
    "cuCtxSynchronize": (),
    "cuDeviceCanAccessPeer": (POINTER(c_int), c_int, c_int),
    "cuDeviceGetP2PAttribute": (POINTER(c_int), c_int, c_int, c_int),
    "cuCtxEnablePeerAccess": (HANDLE, c_uint),
    "cuCtxDisablePeerAccess": (HANDLE,),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(U64), c_size_t),
    "cuMemFree_v2": (U64,),
    "cuMemHostAlloc": (POINTER(HANDLE), c_size_t, c_uint),
    "cuMemHostGetDevicePointer_v2": (POINTER(U64), HANDLE, c_uint),
    "cuMemFreeHost": (HANDLE,),
    "cuMemsetD32Async": (U64, c_uint, c_size_t, HANDLE),
    "cuMemcpyHtoDAsync_v2": (U64, HANDLE, c_size_t, HANDLE),
    "cuMemcpyDtoHAsync_v2": (HANDLE, U64, c_size_t, HANDLE),
    "cuMemcpyDtoDAsync_v2": (U64, U64, c_size_t, HANDLE),
    "cuMemcpyPeerAsync": (U64, HANDLE, U64, HANDLE, c_size_t, HANDLE),
    "cuStreamCreate": (POINTER(HANDLE), c_uint),
    "cuStreamDestroy_v2": (HANDLE,),
    "cuStreamQuery": (HANDLE,),
    "cuStreamWaitEvent": (HANDLE, HANDLE, c_uint),
    "cuEventCreate": (POINTER(HANDLE), c_uint),
    "cuEventDestroy_v2": (HANDLE,),
    "cuEventRecord": (HANDLE, HANDLE),
    "cuEventQuery": (HANDLE,),
    "cuEventElapsedTime": (POINTER(c_float), HANDLE, HANDLE),
    "cuModuleLoadDataEx": (POINTER(HANDLE), c_char_p, c_uint, POINTER(c_int), POINTER(HANDLE)),
    "cuModuleGetFunction": (POINTER(HANDLE), HANDLE, c_char_p),
    "cuModuleUnload": (HANDLE,),
    "cuLaunchKernel": (HANDLE, *(c_uint,) * 7, HANDLE, POINTER(HANDLE), POINTER(HANDLE)),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}
OPTIONAL = ("cuDeviceGetUuid", "cuDevicePrimaryCtxRelease_v2", "cuDeviceGetP2PAttribute")
KERNELS: dict[str, tuple[Any, ...]] = {
    "dgx_spin": (U64, U64),
    "dgx_fill": (U64, U64, c_uint32),
    "dgx_check": (U64, U64, c_uint32, U64),
    "dgx_copy": (U64, U64, U64),
    "dgx_chase": (U64, c_uint32, U64),
    "dgx_pingpong": (U64, U64, U64, U64, c_uint32, c_uint32, c_uint32, U64, U64),
    "dgx_fma": (U64, c_uint32),
    "dgx_mma": (U64, c_uint32),
}


def _entry(name: str) -> str:
    parameters = ", ".join(f".param .u{8 * ctypes.sizeof(kind)} p{n}" for n, kind in enumerate(KERNELS[name]))
    return f".visible .entry {name}({parameters}) {{ ret; }}\n"


PTX = "".join((".version 4.0\n.target sm_30\n.address_size 64\n", *map(_entry, KERNELS))).encode()


class Refused(Exception):
    """A driver call that returned ``code``."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: {code}")
        self.code = code


def code(call: Callable[..., object], *arguments: object) -> int:
    """The code with which the driver refuses a call, 0 if it does not."""
    try:
        call(*arguments)
    except Refused as refused:
        return refused.code
    return 0


class Driver:
    """``driver.cuCtxSynchronize()`` calls, and raises where the call does not return 0."""

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))
        for name, types in SIGNATURES.items():
            if hasattr(self.library, name):
                getattr(self.library, name).argtypes = types

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.library, name)

        def call(*arguments: Any) -> None:
            code = function(*arguments)
            if code:
                raise Refused(name, code)

        return call

    def told(self, kind: Any, name: str, *arguments: Any) -> Any:
        """The value that a call writes behind its first argument."""
        out = kind()
        getattr(self, name)(ctypes.byref(out), *arguments)
        return out.value


class Bench:
    """GPUs with a context, a stream, the kernels and their memory; ``gpu`` is the index of one."""

    def __init__(self, library: Path) -> None:
        self.driver = Driver(library)
        self.driver.cuInit(0)
        self.contexts: dict[int, int] = {}
        self.streams: dict[int, int] = {}
        self.modules: dict[int, int] = {}

    def use(self, gpu: int) -> Driver:
        """The driver with this GPU's context current."""
        if gpu not in self.contexts:
            self.contexts[gpu] = self.driver.told(HANDLE, "cuDevicePrimaryCtxRetain", gpu)
        self.driver.cuCtxSetCurrent(self.contexts[gpu])
        if gpu not in self.streams:
            self.streams[gpu] = self.driver.told(HANDLE, "cuStreamCreate", 1)
            self.modules[gpu] = self.driver.told(HANDLE, "cuModuleLoadDataEx", PTX, 0, None, None)
        return self.driver

    def alloc(self, gpu: int, size: int) -> int:
        address: int = self.use(gpu).told(U64, "cuMemAlloc_v2", size)
        return address

    def pinned(self, gpu: int, size: int) -> int:
        pointer: int = self.use(gpu).told(HANDLE, "cuMemHostAlloc", size, 3)
        return pointer

    def peers(self, *gpus: int) -> None:
        """Let each of the GPUs into the memory of the others."""
        for gpu in gpus:
            self.use(gpu)
        for gpu, peer in permutations(gpus, 2):
            self.use(gpu).cuCtxEnablePeerAccess(self.contexts[peer], 0)

    def launch(self, gpu: int, kernel: str, *values: int, blocks: int = 1, threads: int = 32) -> None:
        driver = self.use(gpu)
        function = driver.told(HANDLE, "cuModuleGetFunction", self.modules[gpu], kernel.encode())
        arguments = [kind(value) for kind, value in zip(KERNELS[kernel], values, strict=True)]
        pointers = (HANDLE * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, self.streams[gpu], pointers, None)

    def seconds(self, gpu: int, work: Callable[[], object]) -> float:
        """How long the work on the GPU's stream takes by its events."""
        driver, stream = self.use(gpu), self.streams[gpu]
        start, end = (driver.told(HANDLE, "cuEventCreate", 0) for _ in range(2))
        driver.cuEventRecord(start, stream)
        work()
        driver = self.use(gpu)
        driver.cuEventRecord(end, stream)
        driver.cuStreamQuery(stream)
        took: float = driver.told(c_float, "cuEventElapsedTime", start, end) / 1000
        driver.cuEventDestroy_v2(start)
        driver.cuEventDestroy_v2(end)
        return took

    def write(self, gpu: int, address: int, data: bytes) -> None:
        """Bytes into the memory of a GPU, from pageable memory."""
        source = ctypes.create_string_buffer(data, len(data))
        self.use(gpu).cuMemcpyHtoDAsync_v2(address, ctypes.addressof(source), len(data), self.streams[gpu])

    def read(self, gpu: int, address: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.use(gpu).cuMemcpyDtoHAsync_v2(ctypes.addressof(data), address, size, self.streams[gpu])
        return data.raw

    def words(self, gpu: int, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self.read(gpu, address, 4 * count))

    def wrong(self, gpu: int, address: int, words: int, seed: int) -> tuple[int, int]:
        """What ``dgx_check`` of this GPU tells: wrong words, and the first of them."""
        result = self.alloc(gpu, 8)
        self.write(gpu, result, struct.pack("<2I", 0, 0xFFFFFFFF))
        self.launch(gpu, "dgx_check", address, words, seed, result)
        told = self.words(gpu, result, 2)
        self.use(gpu).cuMemFree_v2(result)
        return told[0], told[1]


def ping_pong(bench: Bench, *, words: int = 64, rounds: int = 10, timeout: int = 2**62) -> list[tuple[int, int]]:
    """Wrong words and rounds, as GPU 0 (first) and GPU 1 tell."""
    flags, data, results = ([bench.alloc(gpu, 4 * words + 8) for gpu in (0, 1)] for _ in range(3))
    for gpu in (0, 1):
        arguments = (flags[gpu], flags[1 - gpu], data[gpu], data[1 - gpu], words, rounds, 1 - gpu, timeout)
        bench.launch(gpu, "dgx_pingpong", *arguments, results[gpu])
    for gpu in (0, 1):
        bench.use(gpu).cuCtxSynchronize()
    return [(told[0], told[1]) for told in (bench.words(gpu, results[gpu], 2) for gpu in (0, 1))]


def pattern(index: int, seed: int) -> int:
    """The word that ``dgx_fill`` writes at an index."""
    x = (index * 2654435761 + seed) & 0xFFFFFFFF
    return x ^ (x >> 15)
