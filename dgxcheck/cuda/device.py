"""A GPU as CUDA has it: its context, memory, streams, events and kernels, given back at the end of each step."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from dgxcheck.cuda.driver import (
    NOT_READY,
    OUT_OF_MEMORY,
    PEER_ALREADY_ENABLED,
    PEER_NOT_ENABLED,
    UNLOADABLE,
    CudaError,
    Driver,
)
from dgxcheck.facts.record import Record
from dgxcheck.package_files import FOLDER, read

KERNELS, TENSOR = (os.path.join(FOLDER, "cuda", name) for name in ("kernels.ptx", "tensor.ptx"))
_OF_TENSOR_CORES = ("dgx_mma",)
"""The kernels of ``tensor.ptx``; all others are for every GPU from Kepler on."""
MIB = 1 << 20
LEFT_FREE = 512 * MIB
"""Bytes of each GPU's memory that a measurement leaves free."""
_SMS, _CLOCK_KHZ, _WATCHED, _L2 = 16, 13, 17, 38  # CU_DEVICE_ATTRIBUTE_..
_NON_BLOCKING = 1
_PORTABLE_MAPPED = 3
WATCHED_S, UNWATCHED_S = 0.9, 10.0


class Full(Exception):
    """The GPU has too little memory free for a measurement."""


class CudaGpu:
    """One device and its primary context. Memory, streams and events live until ``give_back``."""

    def __init__(self, driver: Driver, ordinal: int) -> None:
        self.driver = driver
        self.device = driver.number("cuDeviceGet", ordinal)
        self.sms = driver.number("cuDeviceGetAttribute", _SMS, self.device)
        self.clock_hz = 1000 * driver.number("cuDeviceGetAttribute", _CLOCK_KHZ, self.device)
        self.l2_bytes = driver.number("cuDeviceGetAttribute", _L2, self.device)
        self.watched = bool(driver.number("cuDeviceGetAttribute", _WATCHED, self.device))
        """A display is attached: a watchdog ends kernels that run too long."""
        self.context = 0
        self._kernels: dict[str, int] = {}
        self._modules: dict[str, int] = {}
        self._unloadable: dict[str, CudaError] = {}
        self._kept = ExitStack()
        self._flag: PinnedMemory | None = None
        self._peers: set[CudaGpu] = set()

    @property
    def spin_clocks(self) -> int:
        """Longest time a kernel may wait for the host, in clocks."""
        return int((WATCHED_S if self.watched else UNWATCHED_S) * self.clock_hz)

    def use(self) -> None:
        """Make its context the current one."""
        if not self.context:
            self.context = self.driver.handle("cuDevicePrimaryCtxRetain", self.device)
        self.driver.call("cuCtxSetCurrent", self.context)

    def call(self, function: str, *args: Any) -> None:
        """A call of the driver in its context."""
        self.use()
        self.driver.call(function, *args)

    def can_access(self, peer: CudaGpu) -> bool:
        return bool(self.driver.number("cuDeviceCanAccessPeer", self.device, peer.device))

    def reach(self, peer: CudaGpu, wanted: bool) -> None:
        """Peer access from here to ``peer``'s memory, on or off."""
        if wanted == (peer in self._peers):
            return
        peer.use()
        self.use()
        name, *args = ("cuCtxEnablePeerAccess", 0) if wanted else ("cuCtxDisablePeerAccess",)
        code = self.driver.status(name, peer.context, *args)
        if code not in (0, PEER_ALREADY_ENABLED if wanted else PEER_NOT_ENABLED):
            raise CudaError(name, code, self.driver.error_name(code))
        (self._peers.add if wanted else self._peers.discard)(peer)

    def flag(self) -> PinnedMemory:
        """A word of pinned memory that a kernel can wait for; the same in every step, until the end."""
        if self._flag is None:
            self._flag = self._pinned(4)
        return self._flag

    def memory(self, size: int) -> int:
        """Address of ``size`` bytes of device memory; Full if less than ``LEFT_FREE`` would be left."""
        if (free := self.free()) - size < LEFT_FREE:
            raise Full(
                f"needs {size // MIB} MiB beyond the {LEFT_FREE // MIB} MiB left free, {free // MIB} MiB are free"
            )
        try:
            return self._kept_handle("cuMemFree_v2", "cuMemAlloc_v2", size)
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            raise Full(f"no contiguous {size // MIB} MiB free") from None

    def free(self) -> int:
        """Bytes of free device memory."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def host(self, size: int) -> PinnedMemory:
        """Pinned host memory that this and every other GPU can address."""
        pinned = self._pinned(size)
        self._kept.callback(self.call, "cuMemFreeHost", pinned.address)
        return pinned

    def stream(self) -> int:
        return self._kept_handle("cuStreamDestroy_v2", "cuStreamCreate", _NON_BLOCKING)

    def event(self) -> int:
        return self._kept_handle("cuEventDestroy_v2", "cuEventCreate", 0)

    def _kept_handle(self, end: str, function: str, *args: int) -> int:
        """What a call makes in its context; ``end`` is called for it by ``give_back``."""
        self.use()
        made = self.driver.handle(function, *args)
        self._kept.callback(self.call, end, made)
        return made

    def _pinned(self, size: int) -> PinnedMemory:
        self.use()
        address = self.driver.handle("cuMemHostAlloc", size, _PORTABLE_MAPPED)
        return PinnedMemory(address, self.driver.handle("cuMemHostGetDevicePointer_v2", address, 0), size)

    def kernel(self, name: str) -> int:
        """A kernel, compiled by the driver on first use; CudaError where it has no compiler, or not for this GPU."""
        file = TENSOR if name in _OF_TENSOR_CORES else KERNELS
        if file in self._unloadable:
            raise self._unloadable[file]
        if name not in self._kernels:
            self.use()
            try:
                if file not in self._modules:
                    self._modules[file] = self.driver.handle("cuModuleLoadDataEx", read(file) + b"\0", 0, None, None)
                self._kernels[name] = self.driver.handle("cuModuleGetFunction", self._modules[file], name.encode())
            except CudaError as error:
                if error.code in UNLOADABLE:
                    self._unloadable[file] = error
                raise
        return self._kernels[name]

    def has_kernel(self, name: str = "dgx_spin") -> bool:
        """Can the driver load this kernel for this GPU? Copies work without any."""
        try:
            return bool(self.kernel(name))
        except CudaError as error:
            if error.code in UNLOADABLE:
                return False
            raise

    def launch(self, name: str, stream: int, blocks: int, threads: int, *args: Any) -> None:
        """Start a kernel; ``args`` are ctypes values in the order of its parameters."""
        kernel = self.kernel(name)
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(arg) for arg in args))
        self.call("cuLaunchKernel", kernel, blocks, 1, 1, threads, 1, 1, 0, stream, pointers, None)

    def wait(self, stream: int) -> None:
        """Wait for the stream, by polling, so that the parent process can end a hang after its deadline."""
        self.use()
        pause = 20e-6
        while code := self.driver.status("cuStreamQuery", stream):
            if code != NOT_READY:
                raise CudaError("cuStreamQuery", code, self.driver.error_name(code))
            time.sleep(pause)
            pause = min(pause * 1.5, 1e-3)

    def give_back(self) -> None:
        """Free memory, streams and events of the last step; peer access stays."""
        self._kept.close()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Frees on exit what was allocated within the block; earlier allocations stay."""
        before, self._kept = self._kept, ExitStack()
        try:
            yield
        except CudaError:
            with suppress(CudaError):  # in a broken context nothing can be freed: what broke it is what counts
                self._kept.close()
            raise
        finally:
            self._kept.close()
            self._kept = before

    def part(self) -> None:
        """Disable peer access to all other GPUs, whose contexts must still exist."""
        self.give_back()
        for peer in [*self._peers]:
            self.reach(peer, wanted=False)

    def release(self) -> None:
        """Release the context and its kernels."""
        if self.context:
            self.use()
            if self._flag is not None:
                self.driver.call("cuMemFreeHost", self._flag.address)
                self._flag = None
            for module in self._modules.values():
                self.driver.call("cuModuleUnload", module)
            newer = "cuDevicePrimaryCtxRelease_v2"
            self.driver.call(newer if self.driver.has(newer) else "cuDevicePrimaryCtxRelease", self.device)
            self.context = 0
            self._modules.clear()
            self._kernels.clear()


class PinnedMemory(Record, kw_only=False):
    """Pinned host memory: its address on the host and on the device."""

    address: int
    on_device: int
    size: int

    def words(self) -> ctypes.Array[ctypes.c_uint32]:
        """Its content as u32."""
        return (ctypes.c_uint32 * (self.size // 4)).from_address(self.address)
