"""The one model of expected bandwidth: links, packets, root complexes, sockets, NVLinks and ports."""

from __future__ import annotations

from collections.abc import Callable
from math import isinf

import pytest
from fake_source import FakeSource
from hypothesis import given
from hypothesis import strategies as st
from topology_boxes import NO_FILE, Box, dgx1, fabric, gpu_at, nvml, tree

from dgxcheck.bandwidth.expected import Expected, between, through_port, to_host
from dgxcheck.bandwidth.links import GENERATIONS, as_it_is, as_supported, generation
from dgxcheck.bandwidth.rate import LARGEST, SMALLEST, Limit, Rate, exactly, least_of, share
from dgxcheck.facts.host import Cpu
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.pci import ConfigSpace, Express, PciFunction, PortType
from dgxcheck.facts.record import Record, replace
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology
from probes.host.host import host

LINE = 15.754
"""GB/s of generation 3 x16."""
INTEL, AMD = "GenuineIntel", "AuthenticAMD"
BROADWELL, SKYLAKE, IVY, ROME, GENOA = (INTEL, 6, 79), (INTEL, 6, 85), (INTEL, 6, 62), (AMD, 23, 49), (AMD, 25, 17)


class Machine(Record):
    snapshot: Snapshot
    topology: Topology


def machine(box: Box, cpu: tuple[str, int, int] | None = None, payload: int | Missing = 256) -> Machine:
    """A box with a CPU by vendor, family and model, and one MaxPayload everywhere."""
    functions = rows(box.functions)
    spaces = tuple(
        ConfigSpace(
            bdf=each.bdf,
            power_state=NO_FILE,
            express=Express(
                port_type=PortType.ENDPOINT,
                max_payload_supported=NO_FILE,
                max_payload=payload,
                max_read_request=NO_FILE,
            ),
            acs=None,
            ats=NO_FILE,
            control=NO_FILE,
        )
        for each in functions
    )
    vendor, family, model = cpu or ("", 0, 0)
    text = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
    snapshot = Snapshot(config_space=spaces, host=host(FakeSource({"/proc/cpuinfo": text})))
    return Machine(snapshot=snapshot, topology=box.topology())


def device(on: Machine, name: str) -> Device:
    found = on.topology.device(name)
    assert found is not None
    return found


def expected(on: Machine, a: str, b: str) -> Expected:
    return between(on, device(on, a), device(on, b))


def bounds(rate: Rate) -> tuple[float | None, float | None]:
    """Rounded; None for a bound that is not known."""
    low, high = (None if isinstance(gbs, Missing) else round(gbs, 1) for gbs in (rate.least, rate.most))
    return low, high


def without_nvlink() -> Box:
    return dgx1()._replace(nvlinks=())


def changed(box: Box, bdf: str, change: Callable[[PciFunction], PciFunction]) -> Box:
    assert not isinstance(box.functions, Missing)
    return box._replace(functions=tuple(change(it) if it.bdf == bdf else it for it in box.functions))


@pytest.mark.parametrize(
    ("line", "measured"),
    [(15.754, 13.0), (15.754, 12.89), (15.754, 13.2), (31.508, 26.33), (31.508, 26.2), (63.015, 54.0), (63.015, 52.0)],
)
def test_packets_of_256_bytes_agree_with_what_others_measured(line: float, measured: float) -> None:
    """Peer copies and copies to the host of PCIe generations 3, 4 and 5; sources in ``packets.py``, measurement.md."""
    assert line * share(256, "write") == pytest.approx(measured, rel=0.03)


@given(st.sampled_from([128, 256, 512, 1024, 2048]))
def test_larger_packets_carry_more(payload: int) -> None:
    assert share(payload, "write") < share(payload, "read") < 1
    assert share(payload, "write") < share(2 * payload, "write")


def test_nvlink_goes_before_pci() -> None:
    found = expected(machine(dgx1()), "GPU0", "GPU3")
    assert (found.medium, found.line_gbs) == ("nvlink", 50.0)
    assert bounds(found.read.rate) == bounds(found.write.rate) == (48.0, 48.0)
    assert [limit.name for limit in found.write.limited_by] == ["2 NVLinks of 25 GB/s"]
    assert "Dell" in found.limits[0].source


@pytest.mark.parametrize(("generation", "gbs"), [(1, 18.4), (2, 24.0), (3, 22.75), (4, 20.5)])
def test_nvlink_shares(generation: int, gbs: float) -> None:
    found = expected(machine(dgx1({(0, 1): 1}, generation)), "GPU0", "GPU1")
    assert found.write.rate.is_known
    assert found.write.rate.most == pytest.approx(gbs)


def test_what_copies_reach_over_nvlink_5_lies_between_nccls_figure_and_the_line_rate() -> None:
    found = expected(machine(dgx1({(0, 1): 2}, 5)), "GPU0", "GPU1")
    assert (found.line_gbs, bounds(found.write.rate)) == (100.0, (80.0, 100.0))
    assert bounds(expected(machine(dgx1({(0, 1): 2}, 9)), "GPU0", "GPU1").write.rate) == (None, None)


def test_below_one_switch_packets_limit_writes() -> None:
    found = expected(machine(without_nvlink(), BROADWELL), "GPU0", "GPU1")
    assert (found.medium, found.notes) == ("pci", ())
    assert bounds(found.write.rate) == (13.2, 13.2)
    assert bounds(found.read.rate) == (11.8, 13.4)


@pytest.mark.parametrize(
    ("cpu", "b", "read", "write"),
    [
        (IVY, "GPU2", (3.7, 3.7), (6.1, 13.2)),
        (BROADWELL, "GPU2", (None, 11.0), (7.1, 10.5)),
        (SKYLAKE, "GPU2", (None, 11.0), (10.5, 10.5)),
        (ROME, "GPU2", (None, 13.4), (13.2, 13.2)),
        (None, "GPU2", (None, 13.4), (None, 13.2)),
        (IVY, "GPU5", (0.8, 13.4), (0.8, 13.2)),
        (BROADWELL, "GPU5", (None, 11.0), (6.0, 10.5)),
        (GENOA, "GPU5", (None, 13.4), (13.2, 13.2)),
        (None, "GPU5", (None, 13.4), (None, 13.2)),
    ],
)
def test_root_complexes_and_sockets_by_host_generation(
    cpu: tuple[str, int, int] | None, b: str, read: tuple[float | None, float], write: tuple[float | None, float]
) -> None:
    found = expected(machine(without_nvlink(), cpu), "GPU0", b)
    assert (bounds(found.read.rate), bounds(found.write.rate)) == (read, write)


def test_the_part_that_limits_is_named_and_so_is_the_unknown_one() -> None:
    box = changed(without_nvlink(), "0000:03:00.0", lambda it: replace(it, max_link_width=8, link_width=8))
    found = expected(machine(box), "GPU0", "GPU2")
    assert [limit.name for limit in found.write.limited_by] == ["link 0000:00:02.0 - 0000:03:00.0"]
    assert [limit.name for limit in found.write.unknown] == ["host bridge pci0000:00"]
    assert bounds(found.write.rate) == (None, 6.6)
    assert found.line_gbs == pytest.approx(LINE / 2, abs=0.01)


def test_a_link_that_cannot_be_read_leaves_an_upper_bound() -> None:
    box = changed(without_nvlink(), "0000:03:00.0", lambda it: replace(it, max_link_gen=NO_FILE))
    found = expected(machine(box, BROADWELL), "GPU0", "GPU2")
    assert (found.line_gbs, found.write.rate.least) == (NO_FILE, NO_FILE)
    assert bounds(found.write.rate) == (None, 10.5)


def test_max_payload_decides_and_where_it_cannot_be_read_its_range_does() -> None:
    """Only root reads the words that hold it."""
    small = expected(machine(without_nvlink(), BROADWELL, 128), "GPU0", "GPU1")
    denied = expected(machine(without_nvlink(), BROADWELL, Missing(Gap.DENIED, "config")), "GPU0", "GPU1")
    assert bounds(small.write.rate) == (12.2, 12.2)
    assert denied.write.rate.least == small.write.rate.least
    assert denied.write.rate.most == pytest.approx(LINE * share(LARGEST, "write"), abs=0.01)
    assert SMALLEST == 128


def test_the_way_to_memory() -> None:
    on = machine(dgx1(), BROADWELL)
    found = to_host(on, device(on, "GPU0"))
    assert bounds(found.read.rate) == (12.1, 13.4)
    assert bounds(found.write.rate) == (12.6, 13.2)
    old = machine(dgx1(), IVY)
    assert bounds(to_host(old, device(old, "GPU0")).read.rate) == (7.6, 13.4)


def test_a_port_limits_what_an_hca_moves() -> None:
    on = machine(dgx1(), BROADWELL)
    gpu, nic = device(on, "GPU0"), device(on, "mlx5_0")
    rate, limits = through_port(on, gpu, nic, 12.5, as_it_is(nic))
    assert (rate, [limit.name for limit in limits]) == (exactly(11.25), ["port of mlx5_0", "port of mlx5_0"])
    rate, limits = through_port(on, gpu, nic, Missing(Gap.ABSENT, "ports", "no port is up"), as_it_is(nic))
    assert (bounds(rate), limits) == ((None, None), ())


def test_lanes_that_an_hca_lost_count_and_the_generation_of_an_idle_gpu_does_not() -> None:
    narrow = changed(dgx1(), "0000:05:00.0", lambda it: replace(it, link_width=4))
    idle = changed(narrow, "0000:06:00.0", lambda it: replace(it, link_gen=1))
    on = machine(idle, BROADWELL)
    gpu, nic = device(on, "GPU0"), device(on, "mlx5_0")
    rate, limits = through_port(on, gpu, nic, 12.5, as_it_is(nic))
    assert bounds(rate) == (3.0, 3.3)
    assert {limit.name for limit in limits} == {"link 0000:04:08.0 - 0000:05:00.0"}
    assert bounds(through_port(on, gpu, nic, 12.5, as_supported)[0]) == (11.2, 11.2)


def test_unknown_nvlink_shows_the_pci_path_and_says_so() -> None:
    gap = Missing(Gap.ABSENT, "nvmlInit")
    found = expected(machine(dgx1()._replace(nvlinks=gap, nvml=gap)), "GPU0", "GPU1")
    assert (found.medium, found.notes[0]) == ("pci", "NVLink is unknown: this is the PCI path.")


def test_an_unknown_class_claims_nothing() -> None:
    box = fabric(2, 2, 1)._replace(numa=NO_FILE, nvlinks=())
    box = changed(box, "0000:10:00.0", lambda it: replace(it, numa_node=-1))
    assert bounds(expected(machine(box), "GPU0", "GPU1").read.rate) == (None, None)


def test_without_a_path_nothing_is_claimed() -> None:
    gap = Missing(Gap.DENIED, "/sys/bus/pci/devices")
    on = machine(dgx1()._replace(functions=gap, nvlinks=()))
    assert expected(on, "GPU0", "GPU1").read.rate == to_host(on, on.topology.gpus[0]).read.rate == Rate(gap, gap)


def test_a_virtual_machine_has_no_link_to_judge() -> None:
    flat = [gpu_at("pci0000:00", f"0000:00:0{i}.0", node=0) for i in (4, 5)]
    on = machine(Box(functions=tree(flat), nvml=nvml([end.bdf for end in flat]), nvlinks=()))
    assert "no dedicated PCIe link between them" in str(expected(on, "GPU0", "GPU1").read.rate.most)


@given(st.sampled_from(GENERATIONS), st.sampled_from(["GPU1", "GPU2", "GPU5", "mlx5_0", "mlx5_1", "mlx5_3"]))
def test_no_host_carries_more_than_the_links(one: object, b: str) -> None:
    chosen = next(each for each in GENERATIONS if each is one)
    model = next(number for number in range(256) if number in chosen.models)
    on = machine(without_nvlink(), (chosen.vendor, chosen.family, model))
    assert generation(on.snapshot.host.cpu) is chosen  # type: ignore[union-attr]
    found = expected(on, "GPU0", b)
    for total in (found.read, found.write):
        assert not isinstance(total.rate.most, Missing)
        assert not isinf(total.rate.most)
        assert total.rate.most < LINE
        assert isinstance(total.rate.least, Missing) or total.rate.least <= total.rate.most


def test_cpus_are_known_by_family_and_model_alone() -> None:
    def cpu(vendor: str, family: int, model: int) -> Cpu:
        return Cpu(
            model="Xeon(R) Gold", sockets=2, cores=2, threads=2, hypervisor=False, vendor=vendor, family=family,
            model_number=model,
        )  # fmt: skip

    names = [generation(cpu(*each)) for each in (BROADWELL, SKYLAKE, ROME, GENOA, (AMD, 6, 79), (INTEL, 6, 999))]
    assert [each and each.name for each in names] == [
        "Intel Broadwell", "Intel Skylake, Cascade Lake or Cooper Lake", "AMD EPYC 7002", "AMD EPYC 9004", None, None,
    ]  # fmt: skip
    assert generation(NO_FILE) is None


RATES = st.one_of(st.floats(0.1, 1000), st.just(NO_FILE))


@given(st.lists(st.tuples(RATES, RATES), min_size=1, max_size=6))
def test_a_chain_is_as_strong_as_its_weakest_part(parts: list[tuple[float | Missing, float | Missing]]) -> None:
    """Each bound is one of the parts' own; a part whose least is unknown leaves the chain's unknown."""
    limits = [Limit(name=str(n), read=Rate(*p), write=Rate(*p), basis="", source="") for n, p in enumerate(parts)]
    rate = least_of(limits, "read").rate
    lows, highs = zip(*parts, strict=True)
    assert isinstance(rate.least, Missing) == any(isinstance(low, Missing) for low in lows)
    known = [high for high in highs if not isinstance(high, Missing)]
    assert rate.most == min(known, default=NO_FILE)
    if not isinstance(rate.least, Missing):
        assert rate.least == min([*lows, *known])
