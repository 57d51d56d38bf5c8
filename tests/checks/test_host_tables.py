"""NUMA tables against sockets, memory and PCI tree; the kernel command line; a socket that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu_box import choice
from test_health_checks import box, changed

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.host_limits import parameters
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import Number

NODE = "/sys/devices/system/node"
CMDLINE = "text /proc/cmdline"


def findings(tmp_path: Path, check: str, facts: dict[str, Json], base: str = "dgx-1-v100") -> list[Finding]:
    (wanted,) = [each for each in CHECKS if each.id == check]
    return [*run(box(changed(tmp_path, facts, base=base)), [wanted])]


@pytest.mark.parametrize(
    ("cmdline", "expected"),
    [
        ("BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro quiet", None),
        ("pci=realloc,nomsi", "pci=nomsi"),
        ("maxcpus=8", "maxcpus=8"),
        ("maxcpus", None),
        ("nolapic quiet", "nolapic"),
        ("mem=64G", "mem=64G"),
        ("mem_encrypt=on memmap=1G$4G crashkernel=auto", None),
        ("numa=off", "numa=off"),
        ("numa=on numa_balancing=disable", None),
        ("mce=off", "mce=off"),
        ("mce=2 nomodeset noht nosmt", None),
        ("pci=noaer pcie_ports=compat", "pci=noaer, pcie_ports=compat"),
        ("pcie_ports=native iommu=pt pci=nocrs", None),
        ("quiet -- mem=1G maxcpus=1", None),
        ('dyndbg="file x +p mem=3"', None),
    ],
)
def test_parameters_that_take_something_away(cmdline: str, expected: str | None, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "host.command-line", {CMDLINE: f"{cmdline}\n"})
    assert found.judgement.measured == expected
    assert found.status is (Status.PASS if expected is None else Status.WARN)


def test_values_of_one_parameter() -> None:
    assert parameters("pci=nomsi,noaer quiet a='b c' -- x=y") == (
        ("pci", "nomsi"), ("pci", "noaer"), ("quiet", ""), ("a", "b c"),
    )  # fmt: skip
    assert parameters("a='b") == (("a", "'b"),)


@pytest.mark.parametrize(
    ("facts", "fault", "blamed"),
    [
        ({f"text {NODE}/node1/distance": "31 10\n"}, Fault.NUMA_TABLES, "NUMA setting"),
        ({f"text {NODE}/node1/distance": "21 11\n"}, Fault.NUMA_TABLES, "NUMA setting"),
        ({f"text {NODE}/node1/distance": "10 10\n", f"text {NODE}/node0/distance": "10 10\n"}, Fault.NUMA_TABLES,
         "NUMA setting"),
        ({f"text {NODE}/node1/distance": "21 31 10\n"}, Fault.NUMA_TABLES, "NUMA setting"),
        ({f"names {NODE}": ["node0"]}, Fault.NUMA_TABLES, "NUMA setting"),
        ({f"names {NODE}": ["node0"], CMDLINE: "numa=off\n"}, Fault.NUMA_TABLES, "kernel command line"),
        ({"text /sys/bus/pci/devices/0000:85:00.0/numa_node": "0\n"}, Fault.NUMA_TABLES, "NUMA setting"),
        ({f"text {NODE}/node1/meminfo": "Node 1 MemTotal: 0 kB\n"}, Fault.NODE_EMPTY, "memory"),
        ({f"text {NODE}/node1/distance": "21 10\n", f"text {NODE}/node0/distance": "10 21\n"}, None, ""),
        ({f"text {NODE}/node1/distance": "32 10\n", f"text {NODE}/node0/distance": "10 32\n"}, None, ""),
        ({"text /sys/bus/pci/devices/0000:85:00.0/numa_node": "-1\n"}, None, ""),
        ({f"text {NODE}/node1/distance": {"missing": "unrecorded"}}, None, ""),
        ({f"text {NODE}/node1/meminfo": "Node 1 MemTotal: 0 kB\n", f"text {NODE}/node1/cpulist": "\n"}, None, ""),
    ],
)  # fmt: skip
def test_numa_tables(facts: dict[str, Json], fault: FaultKind | None, blamed: str, tmp_path: Path) -> None:
    bad = [each for each in findings(tmp_path, "host.numa", facts) if each.status is Status.WARN]
    assert [(each.judgement.fault, each.blames[0].part) for each in bad] == ([(fault, blamed)] if fault else [])
    assert all(bool(each.judgement.measured) == (fault is not Fault.NODE_EMPTY) for each in bad)


def test_a_guest_s_nodes_are_not_judged(tmp_path: Path) -> None:
    facts: dict[str, Json] = {f"text {NODE}/node1/distance": "31 10\n", "text /sys/hypervisor/type": "xen\n"}
    (found,) = findings(tmp_path, "host.numa", facts)
    assert (found.status, found.judgement.reason) == (Status.SKIP, "not-visible")


def blamed(tmp_path: Path, check: str, facts: dict[str, Json]) -> list[str]:
    """Parts of the host that a check blames on a machine that should have two sockets."""
    (wanted,) = [each for each in CHECKS if each.id == check]
    chosen = choice("dgx-1-v100")
    numbers = {key: Number(value, "x") for key, value in (("sockets", 2), ("cores", 40), ("memory", 512))}
    profile = replace(chosen.profile, numbers={f"host.{key}": number for key, number in numbers.items()})
    machine = replace(box(changed(tmp_path, facts)), choice=replace(chosen, profile=profile))
    (found,) = run(machine, [wanted])
    return [each.part for each in found.blames]


def test_fewer_cpus_are_blamed_on_what_leaves_them_out(tmp_path: Path) -> None:
    """The parameter; else the socket, which takes memory, GPUs and HCAs along; else the CPUs."""
    cpuinfo = "".join(f"processor\t: {n}\nphysical id\t: 0\ncore id\t: {n}\nflags\t: fpu\n\n" for n in range(20))
    one: dict[str, Json] = {"text /proc/cpuinfo": cpuinfo, "text /sys/devices/system/cpu/online": "0-19\n"}
    few: dict[str, Json] = {"text /proc/meminfo": "MemTotal: 250000000 kB\n"}
    assert blamed(tmp_path, "host.cpu", one) == ["missing socket", "CPUs"]
    assert blamed(tmp_path, "host.cpu", {**one, CMDLINE: "nr_cpus=20\n"}) == ["kernel command line", "CPUs"]
    assert blamed(tmp_path, "host.memory", {**one, **few}) == ["memory", "missing socket"]
    assert blamed(tmp_path, "host.memory", few) == ["memory"]
    assert blamed(tmp_path, "host.memory", {**few, CMDLINE: "mem=256G\n"}) == ["kernel command line", "memory"]
