"""Each fault of the stand-in for the CUDA driver does what it should, and leaves the rest as it was."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from ctypes import c_int, create_string_buffer
from pathlib import Path
from threading import Timer

import pytest
from checkout import ROOT, TESTS
from standin import cuda
from standin.cuda_binding import Bench, code, ping_pong

SIZE, WORDS = 4096, 1024
OLD, NEW = 1, 2  # seeds of the pattern before and after
Opened = Callable[..., Bench]


def three_gpus() -> cuda.Box:
    gpus = tuple(cuda.Gpu(bdf=f"0000:0{index}:00.0") for index in range(3))
    return cuda.Box(gpus, {(a, b): cuda.Link(20.0) for a in range(3) for b in range(3) if a != b})


class Rig:
    """Three GPUs that let each other in, with a buffer each."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.buffers = [bench.alloc(gpu, SIZE) for gpu in range(3)]
        bench.peers(0, 1, 2)

    def sent(self, a: int, b: int, *, by: str, engine: int | None = None) -> tuple[int, int]:
        """Wrong words in B's memory by B's own check, and by A's, after new data went from A by ``ce`` or ``sm``."""
        bench, (source, target) = self.bench, (self.buffers[a], self.buffers[b])
        bench.launch(a, "dgx_fill", source, WORDS, NEW)
        bench.launch(b, "dgx_fill", target, WORDS, OLD)
        user = a if engine is None else engine
        if by == "ce":
            bench.use(user).cuMemcpyDtoDAsync_v2(target, source, SIZE, bench.streams[user])
        else:
            bench.launch(user, "dgx_copy", target, source, SIZE // 16)
        return bench.wrong(b, target, WORDS, NEW)[0], bench.wrong(a, target, WORDS, NEW)[0]

    def others_are_well(self, *, but: tuple[int, int] = (0, 1)) -> bool:
        pairs = [(a, b) for a in range(3) for b in range(3) if a != b and (a, b) != but]
        return all(self.sent(a, b, by=by) == (0, 0) for a, b in pairs for by in ("ce", "sm"))


@pytest.fixture
def rig(opened: Opened) -> Callable[..., Rig]:
    return lambda *faults: Rig(opened(three_gpus(), *faults))


def test_without_a_fault_all_is_well(rig: Callable[..., Rig]) -> None:
    healthy = rig()
    assert healthy.others_are_well(but=(9, 9))
    assert ping_pong(healthy.bench) == [(0, 10), (0, 10)]


def test_drop_loses_copies_of_the_engine_alone(rig: Callable[..., Rig]) -> None:
    ill = rig("drop 0 1")
    assert ill.sent(0, 1, by="ce") == (WORDS, WORDS)
    assert ill.sent(0, 1, by="ce", engine=1) == (WORDS, WORDS)
    assert ill.sent(0, 1, by="sm") == (0, 0)
    assert ill.others_are_well()
    assert ping_pong(ill.bench) == [(0, 10), (0, 10)]
    ill.bench.use(0).cuCtxDisablePeerAccess(ill.bench.contexts[1])
    ill.bench.use(0).cuMemcpyDtoDAsync_v2(ill.buffers[1], ill.buffers[0], SIZE, ill.bench.streams[0])
    assert ill.bench.wrong(1, ill.buffers[1], WORDS, NEW)[0] == 0


def test_drop_sm_loses_what_kernels_store(rig: Callable[..., Rig]) -> None:
    ill = rig("drop-sm 0 1")
    assert ill.sent(0, 1, by="ce") == (0, 0)
    assert ill.sent(0, 1, by="sm") == (WORDS, WORDS)
    assert ill.sent(0, 1, by="sm", engine=1) == (0, 0)
    assert ill.others_are_well()
    assert ping_pong(ill.bench) == [(0, 0), (0, 0)]


def test_a_mirror_shows_the_writer_what_the_owner_does_not_see(rig: Callable[..., Rig]) -> None:
    ill = rig("mirror 0 1")
    assert ill.sent(0, 1, by="ce") == (WORDS, 0)
    assert ill.sent(0, 1, by="sm") == (WORDS, 0)
    assert ill.bench.wrong(2, ill.buffers[1], WORDS, OLD)[0] == 0
    assert ill.others_are_well()
    assert ping_pong(ill.bench) == [(0, 0), (0, 0)]


def test_wrong_spoils_one_byte_of_each_copy(rig: Callable[..., Rig]) -> None:
    ill = rig("wrong 0 1 100")
    for by in ("ce", "sm", "ce"):
        assert ill.sent(0, 1, by=by) == (1, 1)
        assert ill.bench.wrong(1, ill.buffers[1], WORDS, NEW) == (1, 25)
    assert ill.others_are_well()
    assert ping_pong(ill.bench) == [(0, 10), (10, 10)]
    assert ping_pong(ill.bench, words=8) == [(0, 10), (0, 10)]


def test_wrong_memory_holds_a_bit(rig: Callable[..., Rig]) -> None:
    ill = rig("wrong-memory 1 100")
    bench, (one, two, _) = ill.bench, ill.buffers
    bench.use(1).cuMemsetD32Async(two, 0, WORDS, bench.streams[1])
    assert [index for index, word in enumerate(bench.words(1, two, WORDS)) if word] == [25]
    bench.use(1).cuMemsetD32Async(two, 0xFFFFFFFF, WORDS, bench.streams[1])
    assert set(bench.words(1, two, WORDS)) == {0xFFFFFFFF}
    bench.write(1, two, bytes(SIZE))
    assert bench.words(1, two + 100, 1) == (8,)
    bench.use(0).cuMemsetD32Async(one, 0, WORDS, bench.streams[0])
    assert not any(bench.words(0, one, WORDS))
    wrong = set()
    for seed in range(16):
        bench.launch(1, "dgx_fill", two, WORDS, seed)
        wrong.add(bench.wrong(1, two, WORDS, seed)[0])
    assert wrong == {0, 1}


def test_never_ready_is_a_gpu_or_a_pair(rig: Callable[..., Rig]) -> None:
    ill = rig("never-ready 2", "never-ready 0 1")
    bench = ill.bench
    assert [code(bench.use(gpu).cuStreamQuery, bench.streams[gpu]) for gpu in range(3)] == [0, 0, 600]
    bench.use(1).cuMemcpyDtoDAsync_v2(ill.buffers[0], ill.buffers[1], SIZE, bench.streams[1])
    bench.use(0).cuMemcpyDtoDAsync_v2(ill.buffers[1], ill.buffers[0], SIZE, bench.streams[0])
    assert [code(bench.use(gpu).cuStreamQuery, bench.streams[gpu]) for gpu in range(3)] == [600, 0, 600]


# ---- errors of a call ----


def test_an_error_strikes_the_call_between_these_memories(rig: Callable[..., Rig]) -> None:
    ill = rig("error cuMemcpyDtoDAsync 999 0 1")
    bench, (one, two, three) = ill.bench, ill.buffers
    assert code(bench.use(0).cuMemcpyDtoDAsync_v2, two, one, 16, bench.streams[0]) == 999
    assert code(bench.use(1).cuMemcpyDtoDAsync_v2, two, one, 16, bench.streams[1]) == 999
    for to, source in ((one, two), (three, one), (two, three), (one, one)):
        assert code(bench.use(0).cuMemcpyDtoDAsync_v2, to, source, 16, bench.streams[0]) == 0
    host = create_string_buffer(16)
    assert code(bench.driver.cuMemcpyPeerAsync, two, bench.contexts[1], one, bench.contexts[0], 16, None) == 0
    assert code(bench.driver.cuMemcpyDtoHAsync_v2, host, one, 16, None) == 0


def test_an_error_strikes_the_calls_of_one_gpu(opened: Opened) -> None:
    bench = opened(three_gpus(), "error cuMemAlloc_v2 2 1", "error cuDevicePrimaryCtxRetain 802 2")
    assert code(bench.alloc, 0, 16) == 0
    assert code(bench.alloc, 1, 16) == 2
    assert code(bench.use, 2) == 802
    assert code(bench.alloc, 0, 16) == 0


def test_an_error_strikes_the_first_call(opened: Opened) -> None:
    assert code(opened, three_gpus(), "error cuInit 802") == 802


def test_an_error_strikes_a_kernel_that_points_into_a_memory(rig: Callable[..., Rig]) -> None:
    ill = rig("error dgx_copy 999 0 1", "error dgx_fma 998")
    bench, (one, two, three) = ill.bench, ill.buffers
    assert code(bench.launch, 0, "dgx_copy", two, one, 1) == 999
    assert code(bench.launch, 0, "dgx_copy", three, one, 1) == 0
    assert code(bench.launch, 1, "dgx_copy", one, two, 1) == 0
    assert code(bench.launch, 0, "dgx_fill", two, 1, 1) == 0
    assert code(bench.launch, 2, "dgx_fma", three, 1) == 998


def test_an_error_strikes_the_stream_that_carried_the_data(rig: Callable[..., Rig]) -> None:
    ill = rig("error cuStreamQuery 999 0 1", "error cuStreamQuery 998 1 2")
    bench, (one, two, three) = ill.bench, ill.buffers
    bench.use(0).cuMemcpyDtoDAsync_v2(three, one, 16, bench.streams[0])
    bench.launch(1, "dgx_fill", one, 1, 1)
    assert [code(bench.use(gpu).cuStreamQuery, bench.streams[gpu]) for gpu in range(3)] == [0, 0, 0]
    bench.use(0).cuMemcpyDtoDAsync_v2(two, one, 16, bench.streams[0])
    bench.launch(1, "dgx_fill", three, 1, 1)
    assert [code(bench.use(gpu).cuStreamQuery, bench.streams[gpu]) for gpu in range(3)] == [999, 998, 0]


@pytest.mark.parametrize("number", [214, 220, 226, 700, 702, 714, 719, 721])
def test_an_error_that_poisons_the_context_comes_back(rig: Callable[..., Rig], number: int) -> None:
    ill = rig(f"error cuMemcpyDtoDAsync {number} 0 1")
    bench, (one, two, _) = ill.bench, ill.buffers
    assert code(bench.use(0).cuMemcpyDtoDAsync_v2, one, two, 16, bench.streams[0]) == 0
    assert code(bench.driver.cuMemcpyDtoDAsync_v2, two, one, 16, bench.streams[0]) == number
    assert code(bench.driver.cuMemcpyDtoDAsync_v2, one, two, 16, bench.streams[0]) == number
    assert code(bench.driver.cuCtxSetCurrent, bench.contexts[2]) == number
    assert code(bench.driver.cuDeviceGetCount, c_int()) == number


# ---- hang and crash, in a process of their own ----

CHILD = """
import sys
from pathlib import Path
from threading import Timer
from standin.cuda_binding import Bench
bench = Bench(Path("libcuda.so.1"))
one, two = bench.alloc(0, 64), bench.alloc(1, 64)
bench.peers(0, 1)
bench.use(1).cuMemcpyDtoDAsync_v2(one, two, 64, bench.streams[1])
bench.use(1).cuStreamQuery(bench.streams[1])
print("before", flush=True)
if sys.argv[1] == "kernel":
    bench.launch(0, "dgx_copy", two, one, 4)
else:
    bench.use(0).cuMemcpyDtoDAsync_v2(two, one, 64, bench.streams[0])
bench.use(0).cuStreamQuery(bench.streams[0])
print("after", flush=True)
"""
AT = [
    ("cuMemcpyDtoDAsync 0 1", "copy"),
    ("cuStreamQuery 0", "copy"),
    ("cuLaunchKernel 0 1", "kernel"),
    ("dgx_copy", "kernel"),
]


def child(library: Path, folder: Path, fault: str, how: str) -> subprocess.Popen[str]:
    description = folder / "box"
    description.write_text(three_gpus().text(fault))
    environment = cuda.environment(library, description, ledger=folder / "ledger")
    environment["PYTHONPATH"] = f"{TESTS}:{ROOT}"
    command = (sys.executable, "-c", CHILD.replace("libcuda.so.1", str(library)), how)
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE)


def finished(running: subprocess.Popen[str]) -> str:
    """What the child has written when it has ended; one that does not end is killed."""
    try:
        return running.communicate(timeout=60)[0]
    finally:
        running.kill()


@pytest.mark.parametrize(("at", "how"), AT)
def test_a_crash_is_a_segmentation_fault(cuda_library: Path, tmp_path: Path, at: str, how: str) -> None:
    running = child(cuda_library, tmp_path, f"crash {at}", how)
    assert finished(running) == "before\n"
    assert running.returncode == -signal.SIGSEGV


@pytest.mark.parametrize(("at", "how"), AT)
def test_a_hang_does_not_end(cuda_library: Path, tmp_path: Path, at: str, how: str) -> None:
    running = child(cuda_library, tmp_path, f"hang {at}", how)
    assert running.stdout is not None
    last_resort = Timer(60, running.kill)
    last_resort.start()
    try:
        assert running.stdout.readline() == "before\n"
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.5)
    finally:
        last_resort.cancel()
        running.kill()
        running.communicate(timeout=60)


@pytest.mark.parametrize("how", ["copy", "kernel"])
def test_a_fault_elsewhere_does_nothing_and_the_ledger_is_written_at_exit(
    cuda_library: Path, tmp_path: Path, how: str
) -> None:
    running = child(cuda_library, tmp_path, "hang cuMemcpyDtoDAsync 0 2", how)
    assert finished(running) == "before\nafter\n"
    assert running.returncode == 0
    owed = {"contexts": 2, "streams": 2, "events": 0, "buffers": 2, "host": 0, "modules": 2, "peers": 2}
    assert cuda.read_ledger(tmp_path / "ledger") == owed


def test_the_library_is_found_by_its_name(cuda_library: Path, tmp_path: Path) -> None:
    """As the product loads it: by soname, from the library path."""
    (tmp_path / "box").write_text(cuda.dgx1_p100().text())
    program = (
        "import ctypes; d = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); d.cuInit(0);"
        "d.cuDeviceGetCount(ctypes.byref(n)); print(n.value)"
    )
    environment = cuda.environment(cuda_library, tmp_path / "box")
    ran = subprocess.run((sys.executable, "-c", program), env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "8\n"
