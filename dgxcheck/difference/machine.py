"""The host: driver, kernel and firmware versions, CPUs, memory, RAID."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Difference, Side
from dgxcheck.difference.numbers import ComparedQuantity, compared
from dgxcheck.facts.host import Modules, Storage
from dgxcheck.facts.missing import Missing

HOST = "host"
KERNEL_RESERVE = 0.01
"""Share of the memory that the kernel version reserves."""


def _named(release: Any, key: str) -> Any:
    return None if isinstance(release, Missing) else release.get(key)


def _cpu(host: Any, field: str) -> Any:
    return host.cpu if isinstance(host.cpu, Missing) else getattr(host.cpu, field)


OF_HOST = (
    ComparedQuantity("hardware", "product", lambda row: row.dmi.product_name),
    ComparedQuantity("host", "memory", lambda row: row.memory_kb, "more", "kB", KERNEL_RESERVE),
    ComparedQuantity("host", "cpu-sockets", lambda row: _cpu(row, "sockets"), "more"),
    ComparedQuantity("host", "cpu-cores", lambda row: _cpu(row, "cores"), "more"),
    ComparedQuantity("host", "cpu-threads", lambda row: _cpu(row, "threads"), "more"),
    ComparedQuantity("host", "cpu-model", lambda row: _cpu(row, "model")),
    ComparedQuantity("firmware", "bios", lambda row: row.dmi.bios_version),
    ComparedQuantity("firmware", "kernel", lambda row: row.kernel_release),
    ComparedQuantity("firmware", "os", lambda row: _named(row.os_release, "PRETTY_NAME")),
    ComparedQuantity("firmware", "dgx-os", lambda row: _named(row.dgx_release, "DGX_SWBUILD_VERSION")),
    ComparedQuantity("setting", "kernel-command-line", lambda row: row.cmdline),
    ComparedQuantity("setting", "cpufreq-governor", lambda row: row.cpufreq_governor),
)
OF_NVML = (
    ComparedQuantity("firmware", "nvidia-driver", lambda row: row.driver_version),
    ComparedQuantity("firmware", "nvml", lambda row: row.nvml_version),
    ComparedQuantity("firmware", "cuda", lambda row: row.cuda_version),
)
OF_DRIVER = (
    ComparedQuantity("firmware", "nvidia-kernel-module", lambda row: row.version),
    ComparedQuantity("firmware", "nvidia-kernel-module-flavour", lambda row: row.flavour.value),
)
OF_MODULE = (
    ComparedQuantity("setting", "loaded", lambda row: row.loaded),
    ComparedQuantity("firmware", "version", lambda row: row.version),
)
NODES = ComparedQuantity("host", "numa-nodes", len, "more")
DEGRADED = ComparedQuantity("host", "raid-members-missing", lambda row: row.degraded, "less")
RAID_STATE = ComparedQuantity("host", "raid-state", lambda row: row.state)


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    for quantity in OF_HOST:
        yield from compared(old.snapshot.host, new.snapshot.host, quantity, HOST, None)
    for quantity in OF_NVML:
        yield from compared(old.snapshot.gpu, new.snapshot.gpu, quantity, HOST, None)
    yield from compared(old.snapshot.numa, new.snapshot.numa, NODES, HOST, None)
    yield from _modules(old.snapshot.modules, new.snapshot.modules)
    yield from _raid(old.snapshot.storage, new.snapshot.storage)


def _modules(old: Modules | Missing, new: Modules | Missing) -> Iterator[Difference]:
    if isinstance(old, Missing) or isinstance(new, Missing):
        return
    for quantity in OF_DRIVER:
        yield from compared(old.driver, new.driver, quantity, HOST, None)
    before = {module.name: module for module in old.modules}
    for module in new.modules:
        for quantity in OF_MODULE:
            yield from compared(before.get(module.name), module, quantity, f"module {module.name}", None)


def _raid(old: Storage | Missing, new: Storage | Missing) -> Iterator[Difference]:
    if isinstance(old, Missing) or isinstance(new, Missing):
        return
    if isinstance(old.arrays, Missing) or isinstance(new.arrays, Missing):
        return
    before = {array.name: array for array in old.arrays}
    for array in new.arrays:
        for quantity in (DEGRADED, RAID_STATE):
            yield from compared(before.get(array.name), array, quantity, array.name, None)
