"""Data integrity, checked by the GPU that owns the memory: a private mirror would show the writer its own data.

Copies that report success and move nothing are real: translating IOMMUs, P2P mappings that are private mirrors, and
copy engines that work while resident kernels that wait for each other do not (see reference of the checks).
"""

from __future__ import annotations

import ctypes

from dgxcheck.cuda.copies import peer_copy, sm_copy
from dgxcheck.cuda.device import LEFT_FREE, MIB, CudaGpu, Full, PinnedMemory
from dgxcheck.cuda.figures import Fact, single

PEER_BYTES = 16 * MIB
POISON = 0xDEADBEEF
THREADS = 256
PING_PONG_WORDS, ROUNDS = 1024, 64
MEMORY_BYTES = 1024 * MIB
MEMORY_LEAST = 64 * MIB
CHUNK = 4096 * MIB
"""Bytes per launch: its counter has 32 bits, and a GPU with a display must respond within a second."""
PATTERNS = (0x00000000, 0x9E3779B9, 0x55555555)
_NOTHING = 0xFFFFFFFF


def between(a: CudaGpu, b: CudaGpu) -> Fact:
    """Wrong words of what ``a`` sent to ``b``: by copy engine, by stores of a kernel, and by two kernels in turn."""
    for gpu, peer in ((a, b), (b, a)):
        gpu.reach(peer, wanted=True)
    origin, target = a.memory(PEER_BYTES), b.memory(PEER_BYTES)
    copied, first = sent(a, b, origin, target, seed=1, by_kernel=False)
    stored, first_stored = sent(a, b, origin, target, seed=2, by_kernel=True)
    exchanged, rounds = _ping_pong(a, b)
    if rounds < ROUNDS and not exchanged:  # a busy host may start the second kernel too late
        exchanged, rounds = _ping_pong(a, b)
    wrong = copied + stored + exchanged
    offsets = [offset for offset in (first, first_stored) if offset is not None]
    return single(
        wrong, "words", "ce, sm and ping-pong, checked by the owner",
        checked=2 * PEER_BYTES, by={"ce": copied, "sm": stored, "ping-pong": exchanged},
        first=min(offsets) if offsets else None, timed_out=rounds < ROUNDS, rounds=rounds,
    )  # fmt: skip


def memory(gpu: CudaGpu, size: int = MEMORY_BYTES) -> Fact:
    """Wrong words in ``size`` bytes of the GPU's memory, or what is free of them, over several patterns."""
    stream = gpu.stream()
    checker = Checker(gpu, stream)  # its buffer is taken before all that is free
    size = min(size, (gpu.free() - LEFT_FREE) // MIB * MIB)
    if size < MEMORY_LEAST:
        raise Full(f"less than {MEMORY_LEAST // MIB} MiB free beyond the {LEFT_FREE // MIB} MiB left free")
    address = gpu.memory(size)
    wrong, first = 0, None
    chunks = [(at, min(CHUNK, size - at)) for at in range(0, size, CHUNK)]
    for seed in PATTERNS:  # all of it is filled before any is looked at: cells may take the values of others
        for at, part in chunks:
            fill(gpu, stream, address + at, part, seed)
        for at, part in chunks:
            bad, where = checker.look(address + at, part, seed)
            wrong += bad
            first = at + where if first is None and where is not None else first
    return single(wrong, "words", f"sm, {len(PATTERNS)} patterns", checked=size, patterns=len(PATTERNS), first=first)


def sent(a: CudaGpu, b: CudaGpu, origin: int, target: int, seed: int, by_kernel: bool) -> tuple[int, int | None]:
    """Number of wrong words received by ``b``, and byte offset of the first."""
    stream_a, stream_b = a.stream(), b.stream()
    fill(a, stream_a, origin, PEER_BYTES, seed)
    b.call("cuMemsetD32Async", target, POISON, PEER_BYTES // 4, stream_b)
    a.wait(stream_a)
    b.wait(stream_b)
    if by_kernel:
        sm_copy(a, stream_a, target, origin, PEER_BYTES)
    else:
        peer_copy(a, b, target, origin, PEER_BYTES, enabled=True)(stream_a)
    a.wait(stream_a)
    return Checker(b, stream_b).look(target, PEER_BYTES, seed)


def _ping_pong(a: CudaGpu, b: CudaGpu) -> tuple[int, int]:
    """Kernels on both GPUs hand each other payloads in turn: wrong words that ``b`` and ``a`` saw, rounds of both."""
    streams = a.stream(), b.stream()
    flags, data, results = [], [], []
    for gpu, stream in zip((a, b), streams, strict=True):
        flags.append(gpu.memory(256))
        data.append(gpu.memory(4 * PING_PONG_WORDS))
        results.append(gpu.memory(256))
        for address, words in ((flags[-1], 64), (data[-1], PING_PONG_WORDS), (results[-1], 64)):
            gpu.call("cuMemsetD32Async", address, 0, words, stream)
        gpu.wait(stream)
    for mine, gpu in enumerate((a, b)):
        peer = 1 - mine
        gpu.launch(
            "dgx_pingpong", streams[mine], 1, 32,
            ctypes.c_uint64(flags[mine]), ctypes.c_uint64(flags[peer]),
            ctypes.c_uint64(data[mine]), ctypes.c_uint64(data[peer]),
            ctypes.c_uint32(PING_PONG_WORDS), ctypes.c_uint32(ROUNDS), ctypes.c_uint32(int(gpu is a)),
            ctypes.c_uint64(min(gpu.spin_clocks, gpu.clock_hz)), ctypes.c_uint64(results[mine]),
        )  # fmt: skip
    outcomes = []
    for gpu, stream, result in zip((a, b), streams, results, strict=True):
        gpu.wait(stream)
        outcomes.append(_words(gpu, stream, result, gpu.host(8)))
    return outcomes[0][0] + outcomes[1][0], min(outcomes[0][1], outcomes[1][1])


def fill(gpu: CudaGpu, stream: int, address: int, size: int, seed: int) -> None:
    args = (ctypes.c_uint64(address), ctypes.c_uint64(size // 4), ctypes.c_uint32(seed))
    gpu.launch("dgx_fill", stream, 8 * gpu.sms, THREADS, *args)
    gpu.wait(stream)


class Checker:
    """Checks patterns in one GPU's memory, reusing its own small result buffer."""

    def __init__(self, gpu: CudaGpu, stream: int) -> None:
        self._gpu, self._stream = gpu, stream
        self._result, self._host = gpu.memory(8), gpu.host(8)

    def look(self, address: int, size: int, seed: int) -> tuple[int, int | None]:
        """Number of words that differ from what ``fill`` wrote, and byte offset of the first."""
        gpu, stream, result = self._gpu, self._stream, self._result
        gpu.call("cuMemsetD32Async", result, 0, 1, stream)
        gpu.call("cuMemsetD32Async", result + 4, _NOTHING, 1, stream)
        args = (ctypes.c_uint64(address), ctypes.c_uint64(size // 4), ctypes.c_uint32(seed), ctypes.c_uint64(result))
        gpu.launch("dgx_check", stream, 8 * gpu.sms, THREADS, *args)
        wrong, first = _words(gpu, stream, result, self._host)
        return wrong, 4 * first if wrong else None


def _words(gpu: CudaGpu, stream: int, address: int, host: PinnedMemory) -> list[int]:
    """u32 words out of the GPU's memory, when all before them in the stream is done."""
    gpu.call("cuMemcpyDtoHAsync_v2", host.address, address, host.size, stream)
    gpu.wait(stream)
    return list(host.words())
