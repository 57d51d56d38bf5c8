"""The host, each file on its own."""

from __future__ import annotations

from typing import Any

import pytest
from fake_source import FakeSource
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.host import Cpu
from dgxcheck.facts.memory import MemoryController
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from probes.host.host import cpuinfo, host, release
from probes.host.memory import edac

MODEL = "Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz"


def proc_cpuinfo(sockets: int, cores: int, threads_per_core: int, flags: str = "fpu vme") -> str:
    blocks = [
        f"processor\t: {number}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 79\n"
        f"model name\t: {MODEL}\nphysical id\t: {socket}\n"
        f"core id\t\t: {core}\nflags\t\t: {flags}\n"
        for number, (_, socket, core) in enumerate(
            (thread, socket, core)
            for thread in range(threads_per_core)
            for socket in range(sockets)
            for core in range(cores)
        )
    ]
    return "\n".join(blocks)


@given(st.integers(1, 4), st.integers(1, 20), st.integers(1, 2))
def test_cpuinfo_counts(sockets: int, cores: int, threads_per_core: int) -> None:
    got = cpuinfo(proc_cpuinfo(sockets, cores, threads_per_core), "")
    assert got == Cpu(
        model=MODEL,
        sockets=sockets,
        cores=sockets * cores,
        threads=sockets * cores * threads_per_core,
        hypervisor=False,
        vendor="GenuineIntel",
        family=6,
        model_number=79,
    )


def test_cpuinfo_of_power9_has_no_sockets_and_no_flags() -> None:
    text = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800.0MHz\n\nprocessor\t: 4\n"
    got = cpuinfo(text, "/proc/cpuinfo")
    assert isinstance(got, Cpu)
    assert (got.model, got.threads) == ("POWER9, altivec supported", 2)
    gaps = [got.sockets, got.cores, got.hypervisor, got.vendor, got.family, got.model_number]
    assert [gap.gap for gap in gaps if isinstance(gap, Missing)] == [Gap.UNSUPPORTED] * 6


DAMAGED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a number that is none": ("processor\t: 1\n", "processor\t: f\n", {"threads": 7}),
    "a first name that is empty": (f"model name\t: {MODEL}\n", "model name\t:\n", {}),
    "a name that is none": ("processor\t: 1\n", "proc?ssor\t: 1\n", {"threads": 7}),
    "flags of which none is left": ("flags\t\t: fpu vme\n", "flags\t\t:\n", {}),
    "a line before the first CPU": ("processor\t: 0\n", "flags\t: hypervisor\nprocessor\t: 0\n", {"hypervisor": True}),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_line_of_cpuinfo_costs_no_other(name: str) -> None:
    """Sockets and cores are those of all blocks, whichever of them have a number that can be read."""
    old, new, differs = DAMAGED[name]
    whole = proc_cpuinfo(2, 4, 1)
    got, usual = cpuinfo(whole.replace(old, new, 1), ""), cpuinfo(whole, "")
    assert isinstance(usual, Cpu)
    assert got == replace(usual, **differs)


def test_dgx_release_keeps_the_last_update() -> None:
    text = (
        'DGX_NAME="DGX Server"\nDGX_SWBUILD_VERSION="5.1.0"\nDGX_SERIAL_NUMBER=QTF1\n\n# note\n'
        'DGX_OTA_VERSION="5.2.0"\nDGX_OTA_VERSION="5.3.1"\n'
    )
    assert release(text, "") == {
        "DGX_NAME": "DGX Server",
        "DGX_SWBUILD_VERSION": "5.1.0",
        "DGX_SERIAL_NUMBER": "QTF1",
        "DGX_OTA_VERSION": "5.3.1",
    }


def test_a_dgx() -> None:
    mc = "/sys/devices/system/edac/mc"
    files: dict[str, str | bytes | Missing] = {
        "/proc/cpuinfo": proc_cpuinfo(2, 20, 2),
        "/proc/meminfo": "MemTotal:       528278540 kB\nMemFree: 1 kB\n",
        "/proc/cmdline": "BOOT_IMAGE=/vmlinuz iommu=pt\n",
        "/proc/sys/kernel/osrelease": "4.15.0-96-generic\n",
        "/proc/sys/kernel/numa_balancing": "1\n",
        "/sys/class/dmi/id/product_name": "DGX-1 with V100\n",
        "/sys/class/dmi/id/product_version": "\n",
        "/sys/class/dmi/id/product_serial": Missing(Gap.DENIED, "s"),
        "/sys/devices/system/cpu/online": "0-79\n",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        f"{mc}/mc10/ce_count": "0\n",
        f"{mc}/mc2/ce_count": "5\n",
        f"{mc}/mc2/ue_count": "x\n",
        f"{mc}/mc2/mc_name": "Broadwell Socket#0\n",
        f"{mc}/mc2/size_mb": "131072\n",
        f"{mc}/power/control": "",
    }
    got = host(FakeSource(files))
    assert isinstance(got.cpu, Cpu)
    assert (got.cpu.sockets, got.cpu.cores, got.cpu.threads) == (2, 40, 80)
    assert (got.memory_kb, got.cmdline, got.kernel_release) == (
        528278540,
        "BOOT_IMAGE=/vmlinuz iommu=pt",
        "4.15.0-96-generic",
    )
    assert (got.numa_balancing, got.online_cpus, got.cpufreq_governor) == (1, "0-79", "performance")
    assert got.dmi.product_name == "DGX-1 with V100"
    assert got.dmi.product_serial == Missing(Gap.DENIED, "s")
    assert got.dmi.product_version == Missing(Gap.ABSENT, "/sys/class/dmi/id/product_version", "empty")
    assert (got.container, got.vm) == (None, None)
    assert isinstance(got.dgx_release, Missing)
    controllers = edac(FakeSource(files))
    assert not isinstance(controllers, Missing)
    assert [each.name for each in controllers] == ["mc2", "mc10"]
    assert controllers[0] == MemoryController(
        name="mc2",
        mc_name="Broadwell Socket#0",
        corrected=5,
        uncorrected=Missing(Gap.GARBLED, f"{mc}/mc2/ue_count", "x"),
        size_mb=131072,
    )


def test_nothing_there_is_missing_everywhere_and_no_virtual_machine_is_claimed() -> None:
    got = host(FakeSource({}))
    assert isinstance(got.cpu, Missing)
    assert isinstance(got.vm, Missing)
    assert got.container is None
    assert isinstance(edac(FakeSource({})), Missing)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/run/systemd/container": "podman\n", "/.dockerenv": ""}, "podman"),
        ({"/.dockerenv": ""}, "docker"),
        ({"/run/.containerenv": ""}, "podman"),
        ({"/.singularity.d/runscript": ""}, "apptainer"),
        ({"/run/secrets/kubernetes.io/serviceaccount/namespace": ""}, "kubernetes"),
        ({"/etc/hostname": ""}, None),
    ],
)
def test_container(files: dict[str, str | bytes | Missing], expected: str | None) -> None:
    assert host(FakeSource(files)).container == expected


@pytest.mark.parametrize(
    ("flags", "vendor", "hypervisor", "expected"),
    [
        ("fpu", "Amazon EC2", "", None),
        ("fpu hypervisor", "QEMU", "", "QEMU"),
        ("fpu hypervisor", "", "", "a hypervisor"),
        ("fpu hypervisor", "QEMU", "xen", "xen"),
    ],
)
def test_virtual_machine(flags: str, vendor: str, hypervisor: str, expected: str | None) -> None:
    files: dict[str, str | bytes | Missing] = {
        "/proc/cpuinfo": proc_cpuinfo(1, 1, 1, flags),
        "/sys/class/dmi/id/sys_vendor": vendor,
        "/sys/hypervisor/type": hypervisor,
    }
    assert host(FakeSource(files)).vm == expected
