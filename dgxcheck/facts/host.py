"""The host: CPUs, memory, kernel, firmware, DGX OS release, container or virtual machine."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class Cpu(Record):
    """``/proc/cpuinfo``, which lists online CPUs only."""

    model: str | Missing
    sockets: int | Missing
    cores: int | Missing
    """Physical cores of all sockets."""
    threads: int
    hypervisor: bool | Missing
    """The flag that x86 CPUs show to a guest."""


class Dmi(Record):
    """``/sys/class/dmi/id``; the serial number needs root."""

    sys_vendor: str | Missing
    product_name: str | Missing
    product_version: str | Missing
    product_serial: str | Missing
    board_vendor: str | Missing
    board_name: str | Missing
    bios_vendor: str | Missing
    bios_version: str | Missing
    bios_date: str | Missing


class Host(Record):
    """The machine that the GPUs are in."""

    hostname: str | Missing
    boot_id: str | Missing
    kernel_release: str | Missing
    kernel_version: str | Missing
    cmdline: str | Missing
    cpu: Cpu | Missing
    online_cpus: str | Missing
    memory_kb: int | Missing
    dmi: Dmi
    dgx_release: Mapping[str, str] | Missing
    """``/etc/dgx-release``: ``DGX_NAME``, ``DGX_SWBUILD_VERSION``, ...; the last of repeated names (updates append)."""
    os_release: Mapping[str, str] | Missing
    container: str | Missing | None
    """``docker``, ``podman``, ``lxc``, ...; None outside of containers."""
    vm: str | Missing | None
    """The hypervisor's or the DMI vendor's name; None on bare metal."""
    numa_balancing: int | Missing
    """0 off, 1 on, 2 and 3 with memory tiering."""
    cpufreq_driver: str | Missing
    cpufreq_governor: str | Missing
