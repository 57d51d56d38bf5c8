"""Kernel modules, peer-memory clients and the driver's version file."""

from __future__ import annotations

from fake_source import FakeSource

from dgxcheck.facts.host import Flavour, MemoryPeer, Module, NvidiaDriver
from dgxcheck.facts.missing import Gap, Missing
from probes.host.software import WATCHED, modules

FILES: dict[str, str | bytes | Missing] = {
    "/sys/module/nvidia/version": "535.104.05\n",
    "/sys/module/nvidia/refcnt": "219\n",
    "/sys/module/nvidia/initstate": "live\n",
    "/sys/module/mlx5_core/parameters": "",
    "/sys/module/ib_core/holders/nvidia_peermem": "",
    "/sys/module/ib_core/holders/mlx5_ib": "",
    "/sys/kernel/mm/memory_peers/nv_mem/version": "535.104.05\n",
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 2023\n",
    "/proc/driver/nvidia/params": 'EnableMSI: 1\nRmMsg: ""\n',
}


def module(name: str, source: FakeSource) -> Module:
    return next(each for each in modules(source).modules if each.name == name)


def test_loaded_and_not_loaded() -> None:
    assert module("nvidia", FakeSource(FILES)) == Module(
        name="nvidia", loaded=True, version="535.104.05", refcnt=219, state="live"
    )
    builtin = module("mlx5_core", FakeSource(FILES))
    assert builtin.loaded is True
    assert isinstance(builtin.refcnt, Missing)
    nouveau = module("nouveau", FakeSource(FILES))
    assert nouveau.loaded is False
    assert nouveau.version == Missing(Gap.ABSENT, "/sys/module/nouveau", "not loaded")


def test_peer_memory_and_driver() -> None:
    got = modules(FakeSource(FILES))
    assert got.ib_core_holders == ("mlx5_ib", "nvidia_peermem")
    assert got.memory_peers == (MemoryPeer(name="nv_mem", version="535.104.05"),)
    assert got.driver == NvidiaDriver(version="535.104.05", flavour=Flavour.PROPRIETARY)
    assert got.driver_params == {"EnableMSI": "1", "RmMsg": '""'}


def test_unlisted_modules_are_unknown_not_unloaded() -> None:
    gap = Missing(Gap.UNRECORDED, "/sys/module")
    got = modules(FakeSource({}, listings={"/sys/module": gap}))
    assert {each.loaded for each in got.modules} == {gap}
    assert [each.name for each in got.modules] == list(WATCHED)
    assert isinstance(got.memory_peers, Missing)
    assert isinstance(got.driver, Missing)
