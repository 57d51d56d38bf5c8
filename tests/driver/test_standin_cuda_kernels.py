"""The stand-in for the CUDA driver runs the kernels of dgxcheck as the GPU would."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from ctypes import c_float, c_int
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standin import cuda
from standin.cuda_binding import HANDLE, KERNELS, PTX, U64, Bench, Refused, code, pattern, ping_pong

MIB = 2**20
LONG = 2**62
Opened = Callable[..., Bench]


def two_gpus() -> cuda.Box:
    links = {(a, b): cuda.Link(20.0, sm_ns=800.0) for a, b in ((0, 1), (1, 0))}
    return cuda.Box((cuda.Gpu(), cuda.Gpu(bdf="0000:07:00.0")), links)


# ---- spin ----


def test_a_spinning_stream_is_ready_when_its_flag_is_set(opened: Opened) -> None:
    bench = opened(cuda.single())
    flag = bench.pinned(0, 4)
    driver, stream = bench.driver, bench.streams[0]
    start, end = driver.told(HANDLE, "cuEventCreate", 0), driver.told(HANDLE, "cuEventCreate", 0)
    bench.launch(0, "dgx_spin", flag, LONG, threads=1)
    driver.cuEventRecord(start, stream)
    driver.cuEventRecord(end, stream)
    other = driver.told(HANDLE, "cuStreamCreate", 1)
    driver.cuStreamWaitEvent(other, start, 0)
    assert [code(driver.cuStreamQuery, one) for one in (stream, other)] == [600, 600]
    assert code(driver.cuEventQuery, end) == 600
    assert code(driver.cuEventElapsedTime, c_float(), start, end) == 600
    c_int.from_address(flag).value = 1
    driver.cuStreamQuery(stream)
    driver.cuStreamQuery(other)
    driver.cuEventQuery(end)
    driver.cuCtxSynchronize()


def test_a_spin_ends_at_its_time_out(opened: Opened) -> None:
    bench = opened(cuda.Box((cuda.Gpu(clock_khz=1000),)))
    flag = bench.pinned(0, 4)
    bench.launch(0, "dgx_spin", flag, 50_000, threads=1)
    start = time.monotonic()
    bench.driver.cuCtxSynchronize()
    assert time.monotonic() - start >= 0.04
    bench.driver.cuStreamQuery(bench.streams[0])


# ---- fill, check, copy ----


@given(words=st.integers(1, 40_000), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_check_counts_the_words_that_differ_from_the_pattern(
    bench: Bench, words: int, seed: int, data: st.DataObject
) -> None:
    address = bench.alloc(0, 4 * words)
    bench.launch(0, "dgx_fill", address, words, seed)
    index = data.draw(st.integers(0, words - 1))
    assert bench.words(0, address + 4 * index, 1) == (pattern(index, seed),)
    assert bench.wrong(0, address, words, seed) == (0, 0xFFFFFFFF)
    spoilt = data.draw(st.sets(st.integers(0, words - 1), min_size=1, max_size=5))
    for place in spoilt:
        bench.write(0, address + 4 * place, struct.pack("<I", pattern(place, seed) ^ 1))
    assert bench.wrong(0, address, words, seed) == (len(spoilt), min(spoilt))
    bench.driver.cuMemFree_v2(address)


@pytest.fixture(scope="module")
def bench(cuda_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    description = tmp_path_factory.mktemp("box") / "box"
    description.write_text(two_gpus().text())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DGXCHECK_CUDA_BOX", str(description))
        return Bench(cuda_library)


def test_check_adds_to_what_the_result_holds(opened: Opened) -> None:
    bench = opened(cuda.single())
    address, result = bench.alloc(0, 400), bench.alloc(0, 8)
    bench.launch(0, "dgx_fill", address, 100, 1)
    bench.write(0, result, struct.pack("<2I", 3, 7))
    bench.launch(0, "dgx_check", address, 100, 2, result)
    assert bench.words(0, result, 2) == (103, 0)


def test_fill_and_check_of_large_buffers_are_exact_and_take_the_time_of_the_memory(opened: Opened) -> None:
    bench = opened(cuda.Box((cuda.Gpu(copy=500.0),)))
    size = 64 * MIB
    address = bench.alloc(0, size)
    took = bench.seconds(0, lambda: bench.launch(0, "dgx_fill", address, size // 4, 9, blocks=160, threads=256))
    assert size / took / 1e9 == pytest.approx(500, 0.01)
    last = size // 4 - 1
    assert bench.words(0, address + 4 * last, 1) == (pattern(last, 9),)
    bench.write(0, address + 4 * last, bytes(4))
    assert bench.wrong(0, address, size // 4, 9) == (1, last)


def test_copy_moves_quads(opened: Opened) -> None:
    bench = opened(two_gpus())
    bench.peers(0, 1)
    one, two = bench.alloc(0, 256), bench.alloc(1, 256)
    bench.write(0, one, bytes(range(256)))
    bench.launch(0, "dgx_copy", two, one + 16, 2)
    assert bench.read(1, two, 64) == bytes(range(16, 48)) + bytes(32)
    bench.launch(1, "dgx_copy", two, one, 16)
    assert bench.read(1, two, 256) == bytes(range(256))


# ---- chase, fma ----


def test_chase_follows_pointers_at_the_latency_of_the_pair(opened: Opened) -> None:
    bench = opened(two_gpus())
    bench.peers(0, 1)
    there, out = bench.alloc(1, 800), bench.alloc(0, 16)
    bench.write(1, there, struct.pack("<100Q", *(there + 8 * ((i + 37) % 100) for i in range(100))))
    took = bench.seconds(0, lambda: bench.launch(0, "dgx_chase", there, 1000, out, threads=1))
    last, clocks = struct.unpack("<2Q", bench.read(0, out, 16))
    assert last == there + 8 * (37 * 1000 % 100)
    assert clocks / 1000 / 1_530_000 * 1e6 == pytest.approx(800, 0.001)
    assert took == pytest.approx(800e-6, 0.01)


def test_fma_runs_at_the_rate_of_the_gpu(opened: Opened) -> None:
    bench = opened(cuda.Box((cuda.Gpu(tflops=14.0),)))
    out = bench.alloc(0, 4 * 80 * 256)
    took = bench.seconds(0, lambda: bench.launch(0, "dgx_fma", out, 10_000, blocks=80, threads=256))
    assert 80 * 256 * 256 * 10_000 / took / 1e12 == pytest.approx(14, 0.01)
    assert all(struct.unpack(f"<{80 * 256}f", bench.read(0, out, 4 * 80 * 256)))


# ---- ping-pong ----


def test_ping_pong_passes_data_both_ways(opened: Opened) -> None:
    bench = opened(two_gpus())
    bench.peers(0, 1)
    assert ping_pong(bench) == [(0, 10), (0, 10)]
    assert bench.seconds(0, lambda: ping_pong(bench, rounds=1000)) == pytest.approx(1600e-6, 0.01)


def test_one_half_of_a_ping_pong_waits_for_the_other(opened: Opened) -> None:
    bench = opened(cuda.Box((cuda.Gpu(clock_khz=1000),)))
    address = bench.alloc(0, 64)
    start = time.monotonic()
    bench.launch(0, "dgx_pingpong", address, address + 8, address, address, 1, 5, 1, 50_000, address + 16)
    assert code(bench.driver.cuStreamQuery, bench.streams[0]) == 600
    bench.driver.cuCtxSynchronize()
    assert time.monotonic() - start >= 0.04
    assert bench.words(0, address + 16, 2) == (0, 0)


# ---- what a kernel may not do ----


def test_a_kernel_that_reaches_where_it_may_not_ends_everything(opened: Opened) -> None:
    bench = opened(two_gpus())
    there = bench.alloc(1, 64)
    bench.launch(0, "dgx_fill", there, 16, 1)
    assert code(bench.driver.cuStreamQuery, bench.streams[0]) == 700
    assert code(bench.driver.cuDeviceGetCount, c_int()) == 700


@pytest.mark.parametrize(("words", "shift", "expected"), [(17, 0, 700), (4, 2, 716), (16, 64, 700)])
def test_a_kernel_stays_inside_its_buffer(opened: Opened, words: int, shift: int, expected: int) -> None:
    bench = opened(cuda.single())
    here = bench.alloc(0, 64)
    bench.launch(0, "dgx_fill", here + shift, words, 1)
    assert code(bench.driver.cuCtxSynchronize) == expected


def test_a_kernel_does_not_use_memory_that_was_freed(opened: Opened) -> None:
    bench = opened(cuda.single())
    here = bench.alloc(0, 64)
    bench.driver.cuMemFree_v2(here)
    assert bench.alloc(0, 64) != here
    bench.launch(0, "dgx_fill", here, 16, 1)
    assert code(bench.driver.cuMemAlloc_v2, U64(), 8) == 700


def test_launches_are_looked_at(opened: Opened) -> None:
    bench = opened(two_gpus())
    here = bench.alloc(0, 64)
    for blocks, threads in ((0, 32), (1, 0), (1, 1025)):
        with pytest.raises(Refused, match=r"cuLaunchKernel: 1$"):
            bench.launch(0, "dgx_fill", here, 16, 1, blocks=blocks, threads=threads)
    with pytest.raises(Refused, match=r"cuLaunchKernel: 1$"):
        bench.launch(0, "dgx_pingpong", here, here, here, here, 1, 1, 1, 1, here, threads=64)
    assert code(bench.driver.told, HANDLE, "cuModuleGetFunction", bench.modules[0], b"dgx_nothing") == 500


def test_a_module_has_the_kernels_that_are_emulated(opened: Opened, capfd: pytest.CaptureFixture[str]) -> None:
    driver = opened(cuda.single()).use(0)
    image = PTX.replace(b"dgx_fill(.param .u64", b"dgx_fill(.param .u32").replace(b"dgx_fma", b"dgx_fma2")
    module = driver.told(HANDLE, "cuModuleLoadDataEx", image, 0, None, None)
    for name in KERNELS.keys() - {"dgx_fill", "dgx_fma"}:
        driver.cuModuleGetFunction(HANDLE(), module, name.encode())
    assert code(driver.cuModuleGetFunction, HANDLE(), module, b"dgx_fma") == 500
    assert capfd.readouterr().err == ""
    assert code(driver.cuModuleGetFunction, HANDLE(), module, b"dgx_fill") == 500
    assert "dgx_fill takes other parameters" in capfd.readouterr().err
