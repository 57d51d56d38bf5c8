"""InfiniBand devices and ports."""

from __future__ import annotations

from fake_source import PCI, FakeSource

from dgxcheck.facts.infiniband import IbRate, PhysState, PortState
from dgxcheck.facts.missing import Gap, Missing
from probes.infiniband import ib_ports, infiniband

IB = "/sys/class/infiniband"
PORT = f"{IB}/mlx5_0/ports/1"


def test_devices_in_natural_order_with_their_functions() -> None:
    files: dict[str, str | bytes | Missing] = {
        f"{IB}/mlx5_10/node_guid": "0000:0000:0000:0000\n",
        f"{IB}/mlx5_9/node_guid": "506b:4b03:003c:eee8\n",
        f"{IB}/mlx5_9/node_type": "1: CA\n",
        f"{IB}/mlx5_9/fw_ver": "12.28.2006\n",
        f"{IB}/scif0/node_type": "garbage",
    }
    links: dict[str, str | Missing] = {
        f"{IB}/mlx5_9/device": "../../../0000:05:00.0",
        f"{IB}/mlx5_10/device": "../../../0000:05:00.2",
        f"{PCI}/0000:05:00.2/physfn": "../0000:05:00.0",
        f"{IB}/scif0/device": "../../../mic0",
    }
    got = infiniband(FakeSource(files, links))
    assert not isinstance(got, Missing)
    assert [each.name for each in got] == ["mlx5_9", "mlx5_10", "scif0"]
    first, second, third = got
    assert (first.bdf, first.is_vf, first.node_guid) == ("0000:05:00.0", False, "506b:4b03:003c:eee8")
    assert (first.node_type, first.fw_ver) == ("CA", "12.28.2006")
    assert isinstance(first.hca_type, Missing)
    assert (second.bdf, second.is_vf) == ("0000:05:00.2", True)
    assert isinstance(second.node_guid, Missing)
    assert isinstance(third.bdf, Missing)
    assert third.bdf.detail == "not a PCI function: ../../../mic0"
    assert isinstance(third.is_vf, Missing)


def test_a_device_link_without_a_name_leaves_it_to_the_entry_itself() -> None:
    links: dict[str, str | Missing] = {
        f"{IB}/mlx5_0": "../../devices/pci0000:00/0000:00:02.0/0000:05:00.0/infiniband/mlx5_0",
        f"{IB}/mlx5_0/device": "../..",
    }
    got = infiniband(FakeSource({}, links))
    assert not isinstance(got, Missing)
    assert got[0].bdf == "0000:05:00.0"


def test_one_port() -> None:
    einval = Missing(Gap.UNSUPPORTED, "c", "Invalid argument")
    files: dict[str, str | bytes | Missing] = {
        f"{PORT}/state": "4: ACTIVE\n",
        f"{PORT}/phys_state": "5: LinkUp\n",
        f"{PORT}/rate": "100 Gb/sec (4X EDR)\n",
        f"{PORT}/link_layer": "InfiniBand\n",
        f"{PORT}/lid": "0x1f\n",
        f"{PORT}/counters/symbol_error": "65535",
        f"{PORT}/counters/port_xmit_data": "4631917\n",
        f"{PORT}/counters/link_downed": "N/A (no PMA)\n",
        f"{PORT}/counters/VL15_dropped": einval,
        f"{PORT}/hw_counters/lifespan": "10\n",
        f"{PORT}/hw_counters/out_of_buffer": "7\n",
    }
    source = FakeSource(files)
    got = ib_ports(source)
    assert not isinstance(got, Missing)
    ports = got[0].ports
    assert not isinstance(ports, Missing)
    (port,) = ports
    assert (port.device, port.port) == ("mlx5_0", 1)
    assert (port.state, port.phys_state) == (PortState.ACTIVE, PhysState.LINK_UP)
    assert port.rate == IbRate(gbit_per_s=100, lanes=4, speed="EDR")
    assert (port.link_layer, port.lid) == ("InfiniBand", 31)
    assert isinstance(port.sm_lid, Missing)
    assert port.counters == {
        "VL15_dropped": einval,
        "link_downed": Missing(Gap.UNSUPPORTED, f"{PORT}/counters/link_downed", "N/A (no PMA)"),
        "port_xmit_data": 4631917,
        "symbol_error": 65535,
    }
    assert port.hw_counters == {"out_of_buffer": 7}
    assert len(source.asked) == len(set(source.asked))


def test_a_device_whose_ports_cannot_be_listed_is_shown_and_hides_no_other() -> None:
    denied = Missing(Gap.DENIED, "p")
    files: dict[str, str | bytes | Missing] = {
        f"{IB}/hfi1_0/ports/x": "",
        f"{IB}/mlx5_0/ports/2/state": "?",
        f"{IB}/mlx5_0/ports/10/state": "1: DOWN",
    }
    got = ib_ports(FakeSource(files, listings={f"{IB}/hfi1_0/ports": denied}))
    assert not isinstance(got, Missing)
    assert got[0].ports == denied
    ports = got[1].ports
    assert not isinstance(ports, Missing)
    assert [port.port for port in ports] == [2, 10]
    assert isinstance(ports[0].state, Missing)
    assert isinstance(ports[0].counters, Missing)
    assert ports[1].state is PortState.DOWN


def test_no_infiniband() -> None:
    assert isinstance(infiniband(FakeSource({})), Missing)
    assert isinstance(ib_ports(FakeSource({})), Missing)
