"""What is expected of the machine around the GPUs: NVLink graph, HCAs and their ports, CPUs, memory, data, Ethernet."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.check import Box
from dgxcheck.facts.host import Cpu, Host
from dgxcheck.facts.ib_ports import IbPort, PortState
from dgxcheck.profiles.model import Choice
from dgxcheck.reading import Gap, Missing
from dgxcheck.score.expectation import Area, Expectation
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.reference import matches

GIB_IN_KB = 1 << 20
ETHERNET = 1
Number = int | float


def expected(box: Box, choice: Choice) -> Iterator[Expectation]:
    """Everything but what each GPU has of its own."""
    if choice.profile.nvlink_graph and (choice.how != "gpus" or choice.number("nvlink.links")):
        yield _one("nvlink", "nvlink.graph", "host", _graph(box, choice), 1, "", choice.profile.nvlink_graph)
    for area, key, unit, measure, tolerance in OF_THE_HOST:
        if number := choice.number(key):
            yield _one(area, key, "host", measure(box), number.value, unit, number.source, tolerance)
    if rate := choice.number("network.rate"):
        for port in ports_in_use(box):
            yield _one("network", "network.rate", f"{port.device}/{port.port}", port_rate(port), rate.value, "Gbit/s",
                       rate.source)  # fmt: skip


def _one(
    area: Area, id: str, subject: str, measured: Number | Missing, expected: Number, unit: str, source: str,
    tolerance: float = 0.0,
) -> Expectation:  # fmt: skip
    return Expectation(
        area=area, id=id, subject=subject, measured=measured, expected=expected, unit=unit, source=source,
        tolerance=tolerance,
    )  # fmt: skip


def _graph(box: Box, choice: Choice) -> int | Missing:
    graph = nvlink_graph(box.topology)
    if isinstance(graph, Missing):
        return graph
    found = matches(graph, nvlink_generation(box.topology))
    return int(choice.profile.nvlink_graph in [reference.name for reference in found])


def _hcas(box: Box) -> int | Missing:
    devices = box.snapshot.infiniband
    if isinstance(devices, Missing):
        return 0 if devices.gap is Gap.ABSENT else devices
    return len({device.bdf for device in devices if isinstance(device.bdf, str) and device.is_vf is not True})


def ports_in_use(box: Box) -> list[IbPort]:
    """All ports, unless none is up: then the network is not in use, which says nothing about the machine."""
    devices = box.snapshot.ib_ports
    ports = [] if isinstance(devices, Missing) else [
        port for device in devices if not isinstance(device.ports, Missing) for port in device.ports
    ]  # fmt: skip
    return ports if any(port.state is PortState.ACTIVE for port in ports) else []


def port_rate(port: IbPort) -> float | Missing:
    if isinstance(port.state, Missing):
        return port.state
    if port.state is not PortState.ACTIVE:
        return 0.0
    return port.rate if isinstance(port.rate, Missing) else port.rate.gbit_per_s


def _of_cpu(get: Callable[[Cpu], int | Missing]) -> Callable[[Box], int | Missing]:
    def measured(box: Box) -> int | Missing:
        host = box.snapshot.host
        cpu = host.cpu if isinstance(host, Host) else host
        return cpu if isinstance(cpu, Missing) else get(cpu)

    return measured


def _memory(box: Box) -> float | Missing:
    host = box.snapshot.host
    total = host.memory_kb if isinstance(host, Host) else host
    return total if isinstance(total, Missing) else total / GIB_IN_KB


def _data(box: Box) -> float | Missing:
    """TB of the largest volume: a software array, or what a controller shows as one disk."""
    storage = box.snapshot.storage
    disks = storage if isinstance(storage, Missing) else storage.disks
    if isinstance(disks, Missing):
        return disks
    return max((disk.size_bytes for disk in disks if isinstance(disk.size_bytes, int)), default=0) / 1e12


def _ethernet(box: Box) -> float | Missing:
    """Gbit/s of the fastest physical interface with a carrier."""
    interfaces = box.snapshot.network
    if isinstance(interfaces, Missing):
        return interfaces
    speeds = [
        each.speed_mbit
        for each in interfaces
        if each.type == ETHERNET and each.carrier is True and isinstance(each.bdf, str)
    ]
    known = [speed for speed in speeds if isinstance(speed, int)]
    nothing = Missing(Gap.ABSENT, "/sys/class/net", "no physical interface has a carrier")
    return max(known) / 1000 if known else next((speed for speed in speeds if isinstance(speed, Missing)), nothing)


OF_THE_HOST: tuple[tuple[Area, str, str, Callable[[Box], int | float | Missing], float], ...] = (
    ("network", "network.hcas", "HCAs", _hcas, 0),
    ("host", "host.sockets", "sockets", _of_cpu(lambda cpu: cpu.sockets), 0),
    ("host", "host.cores", "cores", _of_cpu(lambda cpu: cpu.cores), 0),
    ("host", "host.memory", "GiB", _memory, 0.03),
    ("host", "host.data", "TB", _data, 0.02),
    ("host", "host.ethernet", "Gbit/s", _ethernet, 0),
)
