"""The stand-in for the CUDA driver does what tests of the measurements rely on: bytes, times, kernels, errors."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from ctypes import c_int, c_size_t, create_string_buffer
from pathlib import Path

import pytest
from programs import program
from standin import cuda
from standin.cuda_binding import OPTIONAL, SIGNATURES, Bench, Driver, Refused

MIB = 2**20
Opened = Callable[..., Bench]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program("gcc")
    return cuda.build(tmp_path_factory.mktemp("cuda"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program("gcc")
    return cuda.build(tmp_path_factory.mktemp("cuda-old"), old_driver=True)


@pytest.fixture
def opened(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """``opened(box, fault, ...)``: this box behind a copy of the library, which is as fresh as in a new process."""

    def bench(box: cuda.Box, *faults: str) -> Bench:
        description, copy = tmp_path / "box", tmp_path / cuda.SONAME
        description.write_text(box.text(*faults))
        shutil.copy(library, copy)
        monkeypatch.setenv("DGXCHECK_CUDA_BOX", str(description))
        monkeypatch.setenv("DGXCHECK_CUDA_LEDGER", str(tmp_path / "ledger"))
        return Bench(copy)

    return bench


def code(call: Callable[..., object], *arguments: object) -> int:
    with pytest.raises(Refused) as refused:
        call(*arguments)
    return refused.value.code


def gbs(bench: Bench, gpu: int, size: int, work: Callable[[], object]) -> float:
    return size / bench.seconds(gpu, work) / 1e9


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


def test_every_call_of_the_contract_is_there(library: Path, old_library: Path) -> None:
    new, old = Driver(library).library, Driver(old_library).library
    assert [name for name in SIGNATURES if not hasattr(new, name)] == []
    assert tuple(name for name in SIGNATURES if not hasattr(old, name)) == OPTIONAL


def test_display_mig_and_exclusive(opened: Opened) -> None:
    gpus = (cuda.Gpu(flags=("display",)), cuda.Gpu(flags=("mig",)), cuda.Gpu(flags=("exclusive",)))
    bench = opened(cuda.Box(gpus, {(0, 1): cuda.Link(20.0), (1, 0): cuda.Link(20.0)}))
    driver = bench.driver
    assert [driver.told(c_int, "cuDeviceGetAttribute", 17, index) for index in range(3)] == [1, 0, 0]
    assert [driver.told(c_int, "cuDeviceGetAttribute", 20, index) for index in range(3)] == [0, 0, 3]
    assert driver.told(c_int, "cuDeviceCanAccessPeer", 0, 1) == 0
    assert code(bench.peers, 0, 1) == 217
    assert code(bench.use, 2) == 46


# ---- copies ----


def test_copies_move_bytes(opened: Opened) -> None:
    bench = opened(cuda.dgx1_v100())
    data = bytes(range(256)) * 16
    here, there = bench.alloc(0, 4096), bench.alloc(1, 4096)
    bench.write(0, here, data)
    bench.use(0).cuMemcpyDtoDAsync_v2(there, here + 1024, 1024, bench.streams[0])
    assert bench.read(1, there, 2048) == data[1024:2048] + bytes(1024)


def test_a_copy_is_made_again_after_either_side_has_changed(opened: Opened) -> None:
    bench = opened(cuda.single())
    one, two = bench.alloc(0, 4096), bench.alloc(0, 4096)
    driver, stream = bench.use(0), bench.streams[0]
    bench.write(0, one, b"a" * 4096)
    driver.cuMemcpyDtoDAsync_v2(two, one, 4096, stream)
    driver.cuMemsetD32Async(two, 7, 1024, stream)
    driver.cuMemcpyDtoDAsync_v2(two, one, 4096, stream)
    assert bench.read(0, two, 4096) == b"a" * 4096
    bench.write(0, one, b"b" * 4096)
    driver.cuMemcpyDtoDAsync_v2(two, one, 4096, stream)
    assert bench.read(0, two, 4096) == b"b" * 4096
