"""The stand-in for the CUDA driver: devices, copies, times, the ledger, and what it refuses."""

from __future__ import annotations

import ctypes
import shutil
import struct
from collections.abc import Callable
from ctypes import c_char_p, c_float, c_int, c_size_t, create_string_buffer
from functools import partial
from pathlib import Path

import pytest
from standin import cuda
from standin.cuda_binding import HANDLE, OPTIONAL, PTX, SIGNATURES, U64, Bench, Driver, code

MIB = 2**20
Opened = Callable[..., Bench]


def gbs(bench: Bench, gpu: int, size: int, work: Callable[[], object]) -> float:
    return size / bench.seconds(gpu, work) / 1e9


def copying(bench: Bench, gpu: int, to: int, source: int, size: int) -> Callable[[], None]:
    return lambda: bench.use(gpu).cuMemcpyDtoDAsync_v2(to, source, size, bench.streams[gpu])


# ---- devices ----


def test_devices_are_those_of_the_description(opened: Opened) -> None:
    box = cuda.dgx1_v100()
    driver = opened(box).driver
    assert driver.told(c_int, "cuDeviceGetCount") == 8
    for index, gpu in enumerate(box.gpus):
        text = create_string_buffer(32)
        driver.cuDeviceGetPCIBusId(text, 32, driver.told(c_int, "cuDeviceGet", index))
        assert text.value.decode() == gpu.bdf.upper()
        asked = {name: driver.told(c_int, "cuDeviceGetAttribute", name, index) for name in (16, 13, 33, 34, 50, 75)}
        assert asked == {16: 80, 13: 1530000, 33: int(gpu.bdf[5:7], 16), 34: 0, 50: 0, 75: 7}
        assert driver.told(c_size_t, "cuDeviceTotalMem_v2", index) == gpu.memory_mib * MIB
    assert code(driver.cuDeviceGet, c_int(), 8) == 101
    assert c_int.in_dll(driver.library, "dgxcheckSimulated").value == 1


def test_every_call_is_there_and_an_old_driver_lacks_the_optional_ones(
    cuda_library: Path, old_cuda_library: Path
) -> None:
    new, old = Driver(cuda_library), Driver(old_cuda_library)
    assert [name for name in SIGNATURES if not hasattr(new.library, name)] == []
    assert tuple(name for name in SIGNATURES if not hasattr(old.library, name)) == OPTIONAL
    assert (new.told(c_int, "cuDriverGetVersion"), old.told(c_int, "cuDriverGetVersion")) == (12020, 9000)


def test_display_mig_and_exclusive(opened: Opened) -> None:
    gpus = (cuda.Gpu(flags=("display",)), cuda.Gpu(flags=("mig",)), cuda.Gpu(flags=("exclusive",)))
    bench = opened(cuda.Box(gpus, {(0, 1): cuda.Link(20.0), (1, 0): cuda.Link(20.0)}))
    driver = bench.driver
    assert [driver.told(c_int, "cuDeviceGetAttribute", 17, index) for index in range(3)] == [1, 0, 0]
    assert [driver.told(c_int, "cuDeviceGetAttribute", 20, index) for index in range(3)] == [0, 0, 3]
    assert driver.told(c_int, "cuDeviceCanAccessPeer", 0, 1) == 0
    assert code(bench.peers, 0, 1) == 217
    assert code(bench.use, 2) == 46


@pytest.mark.parametrize(
    "line", ["gpu 2 0000:06:00.0 1 1 1", "link 0 1 5", "host 0 1", "fault drop 0", "fault oom 0 x"]
)
def test_a_description_that_cannot_be_read_is_said(
    opened: Opened, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert code(opened, cuda.single(), f"oom 0 1\n{line}") == 999
    assert line in capfd.readouterr().err


def test_no_description_is_no_gpu(cuda_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DGXCHECK_CUDA_BOX", "/nonexistent")
    # the loader gives one library once to a process: another test may have initialized it
    driver = Driver(Path(shutil.copy(cuda_library, tmp_path)))
    assert code(driver.cuDeviceGetCount, c_int()) == 3
    assert code(driver.cuInit, 0) == 100


# ---- copies ----


def test_copies_move_bytes(opened: Opened) -> None:
    bench = opened(cuda.dgx1_v100())
    data = bytes(range(256)) * 16
    here, there = bench.alloc(0, 4096), bench.alloc(1, 4096)
    bench.write(0, here, data)
    copying(bench, 0, there, here + 1024, 1024)()
    assert bench.read(1, there, 2048) == data[1024:2048] + bytes(1024)


def test_a_copy_is_made_again_after_either_side_has_changed(opened: Opened) -> None:
    bench = opened(cuda.single())
    one, two = bench.alloc(0, 4096), bench.alloc(0, 4096)
    copy = copying(bench, 0, two, one, 4096)
    bench.write(0, one, b"a" * 4096)
    copy()
    bench.driver.cuMemsetD32Async(two, 7, 1024, bench.streams[0])
    copy()
    assert bench.read(0, two, 4096) == b"a" * 4096
    bench.write(0, one, b"b" * 4096)
    copy()
    copy()
    assert bench.read(0, two, 4096) == b"b" * 4096


def test_pinned_memory_is_read_anew_once_the_stream_has_been_seen_ready(opened: Opened) -> None:
    bench = opened(cuda.single())
    host, there = bench.pinned(0, 64), bench.alloc(0, 64)
    for text in (b"first", b"second"):
        ctypes.memmove(host, text, len(text))
        for _ in range(2):
            bench.driver.cuMemcpyHtoDAsync_v2(there, host, 64, bench.streams[0])
        bench.driver.cuStreamQuery(bench.streams[0])
        assert bench.read(0, there, len(text)) == text
    ctypes.memset(host, 0, 64)
    bench.driver.cuMemcpyDtoHAsync_v2(host, there, 64, bench.streams[0])
    assert ctypes.string_at(host, 6) == b"second"


def test_host_and_device_memory_run_at_their_rates(opened: Opened) -> None:
    gpu = cuda.Gpu(h2d=12.0, d2h=8.0, copy=600.0)
    bench = opened(cuda.Box((gpu,)))
    size = 256 * MIB
    host, one, two = bench.pinned(0, size), bench.alloc(0, size), bench.alloc(0, size)
    driver, stream = bench.driver, bench.streams[0]
    assert gbs(bench, 0, size, lambda: driver.cuMemcpyHtoDAsync_v2(one, host, size, stream)) == pytest.approx(12, 0.001)
    assert gbs(bench, 0, size, lambda: driver.cuMemcpyDtoHAsync_v2(host, one, size, stream)) == pytest.approx(8, 0.001)
    assert gbs(bench, 0, 2 * size, copying(bench, 0, two, one, size)) == pytest.approx(600, 0.01)
    pageable = create_string_buffer(MIB)
    read = partial(driver.cuMemcpyDtoHAsync_v2, ctypes.addressof(pageable), one, MIB, stream)
    assert gbs(bench, 0, MIB, read) == pytest.approx(4, 0.05)


def test_peer_copies_run_at_the_rate_of_their_direction(opened: Opened) -> None:
    links = {(0, 1): cuda.Link(48.0, 9.0, on_us=2.0, off_us=20.0), (1, 0): cuda.Link(24.0, 5.0)}
    bench = opened(cuda.Box((cuda.Gpu(), cuda.Gpu(bdf="0000:07:00.0")), links))
    size = 64 * MIB
    one, two = bench.alloc(0, size), bench.alloc(1, size)
    assert gbs(bench, 0, size, copying(bench, 0, two, one, size)) == pytest.approx(9, 0.01)
    assert gbs(bench, 1, size, copying(bench, 1, one, two, size)) == pytest.approx(5, 0.01)
    assert bench.seconds(0, copying(bench, 0, two, one, 16)) == pytest.approx(20e-6, 0.01)
    bench.peers(0, 1)
    assert gbs(bench, 0, size, copying(bench, 0, two, one, size)) == pytest.approx(48, 0.01)
    assert gbs(bench, 1, size, copying(bench, 1, one, two, size)) == pytest.approx(24, 0.01)
    assert bench.seconds(0, copying(bench, 0, two, one, 16)) == pytest.approx(2e-6, 0.01)
    assert gbs(bench, 0, size, lambda: bench.launch(0, "dgx_copy", two, one, size // 16)) == pytest.approx(48, 0.01)

    def staged() -> None:
        bench.driver.cuMemcpyPeerAsync(two, bench.contexts[1], one, bench.contexts[0], size, bench.streams[0])

    assert gbs(bench, 0, size, staged) == pytest.approx(48, 0.01)
    bench.use(0).cuCtxDisablePeerAccess(bench.contexts[1])
    assert gbs(bench, 0, size, staged) == pytest.approx(9, 0.01)


def test_two_streams_run_at_once_and_one_can_wait_for_the_other(opened: Opened) -> None:
    bench = opened(cuda.Box((cuda.Gpu(h2d=10.0),)))
    size = 100_000_000
    host, there = bench.pinned(0, size), bench.alloc(0, size)
    driver, first = bench.driver, bench.streams[0]
    second = driver.told(HANDLE, "cuStreamCreate", 1)
    events = [driver.told(HANDLE, "cuEventCreate", 0) for _ in range(3)]
    driver.cuMemcpyHtoDAsync_v2(there, host, size, second)
    driver.cuStreamQuery(second)  # what the host has seen end lies before everything that it asks for later
    driver.cuEventRecord(events[0], first)
    driver.cuStreamWaitEvent(second, events[0], 0)
    driver.cuMemcpyHtoDAsync_v2(there, host, size, first)
    driver.cuMemcpyHtoDAsync_v2(there, host, size, second)
    driver.cuEventRecord(events[1], first)
    driver.cuStreamWaitEvent(second, events[1], 0)
    driver.cuMemcpyHtoDAsync_v2(there, host, size, second)
    driver.cuEventRecord(events[2], second)
    took = [driver.told(c_float, "cuEventElapsedTime", events[0], event) for event in events[1:]]
    assert took == [pytest.approx(10, 0.01), pytest.approx(20, 0.01)]


# ---- what is refused ----


def test_misuse_of_memory_is_an_invalid_value(opened: Opened) -> None:
    bench = opened(cuda.dgx1_v100())
    one, two, host = bench.alloc(0, 4096), bench.alloc(0, 4096), bench.pinned(0, 4096)
    driver, stream = bench.driver, bench.streams[0]
    for arguments in ((two, one, 4097), (two + 1, one, 4096), (two, one + 4096, 1), (two, one, 0), (two, 99, 8)):
        assert code(driver.cuMemcpyDtoDAsync_v2, *arguments, stream) == 1
    assert code(driver.cuMemcpyHtoDAsync_v2, one, host + 4000, 97, stream) == 1
    assert code(driver.cuMemcpyHtoDAsync_v2, one, None, 8, stream) == 1
    assert code(driver.cuMemcpyHtoDAsync_v2, one, two, 8, stream) == 1
    assert code(driver.cuMemcpyDtoHAsync_v2, host, one, 4097, stream) == 1
    assert code(driver.cuMemsetD32Async, one, 0, 1025, stream) == 1
    assert code(driver.cuMemsetD32Async, one, 0, 2**62, stream) == 1
    assert code(driver.cuMemFree_v2, one + 16) == 1
    assert code(driver.cuMemFree_v2, host) == 1
    assert code(driver.cuMemFreeHost, one) == 1
    assert code(driver.cuMemHostGetDevicePointer_v2, U64(), one, 0) == 1
    assert code(driver.cuMemAlloc_v2, U64(), 0) == 1
    driver.cuMemFree_v2(two)
    assert code(driver.cuMemFree_v2, two) == 1
    assert code(driver.cuMemcpyDtoDAsync_v2, two, one, 16, stream) == 1


def test_memory_ends(opened: Opened) -> None:
    bench = opened(cuda.Box((cuda.Gpu(memory_mib=100), cuda.Gpu(bdf="0000:07:00.0", memory_mib=100))), "oom 1 50")
    assert code(bench.alloc, 0, 101 * MIB) == 2
    assert code(bench.alloc, 1, 51 * MIB) == 2
    kept = bench.alloc(1, 30 * MIB)
    assert code(bench.alloc, 1, 30 * MIB) == 2
    left, total = c_size_t(), c_size_t()
    bench.use(1).cuMemGetInfo_v2(left, total)
    assert (left.value, total.value) == (70 * MIB, 100 * MIB)
    bench.driver.cuMemFree_v2(kept)
    bench.alloc(1, 50 * MIB)


def test_what_has_been_given_back_is_not_used(opened: Opened) -> None:
    bench = opened(cuda.dgx1_v100())
    driver = bench.use(0)
    stream, event = driver.told(HANDLE, "cuStreamCreate", 1), driver.told(HANDLE, "cuEventCreate", 0)
    function = driver.told(HANDLE, "cuModuleGetFunction", bench.modules[0], b"dgx_fill")
    driver.cuStreamDestroy_v2(stream)
    driver.cuEventDestroy_v2(event)
    driver.cuModuleUnload(bench.modules[0])
    assert code(driver.cuStreamQuery, stream) == 400
    assert code(driver.cuStreamDestroy_v2, stream) == 400
    assert code(driver.cuEventRecord, event, None) == 400
    assert code(driver.cuEventQuery, event) == 400
    assert code(driver.cuModuleUnload, bench.modules[0]) == 400
    assert code(driver.cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, None, (HANDLE * 3)(), None) == 400
    address = bench.alloc(0, 64)
    driver.cuDevicePrimaryCtxRelease_v2(0)
    assert code(driver.cuCtxSynchronize) == 709
    assert code(driver.cuCtxSetCurrent, bench.contexts[0]) == 201
    assert code(driver.cuDevicePrimaryCtxRelease_v2, 0) == 201
    driver.cuDevicePrimaryCtxRetain(HANDLE(), 0)
    driver.cuCtxSetCurrent(bench.contexts[0])
    assert code(driver.cuMemFree_v2, address) == 1
    assert code(driver.cuStreamQuery, bench.streams[0]) == 400


def test_calls_need_a_context_and_streams_belong_to_theirs(opened: Opened) -> None:
    bench = opened(cuda.dgx1_v100())
    assert code(bench.driver.cuCtxSynchronize) == 201
    assert code(bench.driver.cuMemAlloc_v2, U64(), 8) == 201
    bench.use(1)
    driver = bench.use(0)
    event = driver.told(HANDLE, "cuEventCreate", 0)
    assert code(driver.cuEventRecord, event, bench.streams[1]) == 400
    function = driver.told(HANDLE, "cuModuleGetFunction", bench.modules[0], b"dgx_fill")
    assert code(driver.cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, bench.streams[1], (HANDLE * 3)(), None) == 400
    assert code(driver.cuEventElapsedTime, c_float(), event, event) == 400
    untimed = driver.told(HANDLE, "cuEventCreate", 2)
    driver.cuEventRecord(untimed, bench.streams[0])
    assert code(driver.cuEventElapsedTime, c_float(), untimed, untimed) == 400


def test_peer_access_is_enabled_once_and_only_where_there_is_any(opened: Opened) -> None:
    bench = opened(cuda.dgx1_v100())
    for gpu in (5, 1, 0):
        driver = bench.use(gpu)
    assert [driver.told(c_int, "cuDeviceCanAccessPeer", 0, peer) for peer in range(8)] == [0, 1, 1, 1, 1, 0, 0, 0]
    assert driver.told(c_int, "cuDeviceGetP2PAttribute", 2, 0, 1) == 1
    assert driver.told(c_int, "cuDeviceGetP2PAttribute", 2, 0, 5) == 0
    assert code(driver.cuCtxEnablePeerAccess, bench.contexts[5], 0) == 217
    assert code(driver.cuCtxEnablePeerAccess, bench.contexts[1], 1) == 1
    assert code(driver.cuCtxDisablePeerAccess, bench.contexts[1]) == 705
    driver.cuCtxEnablePeerAccess(bench.contexts[1], 0)
    assert code(driver.cuCtxEnablePeerAccess, bench.contexts[1], 0) == 704
    driver.cuCtxDisablePeerAccess(bench.contexts[1])
    assert code(driver.cuCtxDisablePeerAccess, bench.contexts[1]) == 705


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (b"\x7fELF.version", 200),
        (b"kernel void", 200),
        (b".version 4.0\n.target sm_30\n", 218),
        (PTX.replace(b"4.0", b"7.8"), 222),
    ],
)
def test_a_module_is_ptx_that_this_driver_knows(opened: Opened, image: bytes, expected: int) -> None:
    driver = opened(cuda.single()).use(0)
    log = create_string_buffer(256)
    options, values = (c_int * 2)(5, 6), (HANDLE * 2)(ctypes.addressof(log), 256)
    assert code(driver.cuModuleLoadDataEx, HANDLE(), image, 2, options, values) == expected
    assert values[1] == len(log.value) > 0
    driver.cuModuleLoadDataEx(HANDLE(), PTX, 2, options, (HANDLE * 2)(ctypes.addressof(log), 256))


def test_errors_have_names(opened: Opened) -> None:
    driver = opened(cuda.single()).driver
    name, text = c_char_p(), c_char_p()
    driver.cuGetErrorName(214, name)
    driver.cuGetErrorString(2, text)
    assert (name.value, text.value) == (b"CUDA_ERROR_ECC_UNCORRECTABLE", b"out of memory")
    assert code(driver.cuGetErrorName, 12345, c_char_p()) == 1


def test_a_context_that_is_made_anew_has_no_peers(opened: Opened) -> None:
    bench = opened(cuda.dgx1_v100())
    bench.peers(0, 1)
    bench.driver.cuDevicePrimaryCtxRelease(0)
    bench.driver.cuDevicePrimaryCtxRetain(HANDLE(), 0)
    bench.driver.cuCtxSetCurrent(bench.contexts[0])
    assert code(bench.driver.cuCtxDisablePeerAccess, bench.contexts[1]) == 705
    bench.driver.cuCtxEnablePeerAccess(bench.contexts[1], 0)


# ---- the ledger ----


def test_the_ledger_counts_what_is_not_given_back(opened: Opened, tmp_path: Path) -> None:
    bench = opened(cuda.dgx1_v100())
    bench.peers(0, 1)
    one, host = bench.alloc(0, 64), bench.pinned(0, 64)
    driver = bench.use(0)
    event = driver.told(HANDLE, "cuEventCreate", 0)
    driver.cuDevicePrimaryCtxRelease(1)
    owed = {"contexts": 1, "streams": 2, "events": 1, "buffers": 1, "host": 1, "modules": 2, "peers": 2}
    assert cuda.read_ledger(tmp_path / "ledger") == owed
    driver.cuMemFree_v2(one)
    driver.cuMemFreeHost(host)
    driver.cuEventDestroy_v2(event)
    driver.cuStreamDestroy_v2(bench.streams[0])
    driver.cuModuleUnload(bench.modules[0])
    driver.cuDevicePrimaryCtxRelease(0)
    # what died with its context is owed, too
    left = {"contexts": 0, "streams": 1, "events": 0, "buffers": 0, "host": 0, "modules": 1, "peers": 2}
    assert cuda.read_ledger(tmp_path / "ledger") == left


def test_the_host_cannot_look_into_device_memory(opened: Opened) -> None:
    bench = opened(cuda.single())
    address = bench.alloc(0, 4096)
    mapped = [line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines()]
    assert not any(int(start, 16) <= address < int(end, 16) for start, end in mapped)
    bench.write(0, address, struct.pack("<I", 5))
    assert bench.words(0, address, 1) == (5,)
