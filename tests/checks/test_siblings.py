"""Odd one out: what is compared, with whom, and what is left to other checks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from sample import BOXES
from test_health_checks import GPU2, NVML, box, changed
from together import for_each

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.checks.siblings.compare import _picked, compared
from dgxcheck.checks.siblings.kinds import Kind, _image, siblings
from dgxcheck.facts import nature
from dgxcheck.facts.missing import Gap, Json, Missing, rows
from dgxcheck.facts.nvml.nvlink import NvLinkCapability
from dgxcheck.facts.record import Record, fields, replace
from dgxcheck.facts.values import leaves, where
from dgxcheck.source.recording.load import open_source
from dgxcheck.survey import NO_DEVICES, Snapshot

KINDS: tuple[Kind, ...] = get_args(Kind)
ONE_OF_A_KIND = {
    "gpu_pairs": "pairs: p2p.status", "pci_names": "names for people", "slots": "names of slots",
    "modules": "the host has each once", "host": "the host itself", "device_nodes": "driver.device-nodes",
    "memlock": "limits of daemons", "units": "services", "imex": "nodes of a list", "p2p": "pairs: p2p.status",
    "kernel_log": "events",
    "measurement": "figures", "empty_ports": "paths",
    "stated": "what another tool printed", "tool_reports": "what another tool found",
}  # fmt: skip
"""Fields of the snapshot that hold no devices of a kind."""


class Vent(Record):
    """A record that no check knows."""

    bdf: str = nature.key()
    flap: int = nature.setting()


def odd(facts: dict[str, Json], folder: Path, base: str = "dgx-1-v100") -> list[tuple[str, str, str]]:
    """Check, subject and message of what the checks of siblings report."""
    return [(each.id, each.subject.name, each.judgement.message) for each in found(box(changed(folder, facts, base)))]


def found(of: Box) -> list[Finding]:
    last = {check.id for check in CHECKS if check.last}
    return [each for each in run(of, CHECKS) if each.id in last and each.status in BAD]


def test_a_record_that_is_added_is_compared_at_once() -> None:
    made = box("dgx-1-v100")
    rows: Any = tuple(Vent(bdf=device.bdf or "", flap=7 if device.bdf == GPU2 else 3) for device in made.topology.gpus)
    (finding,) = found(replace(made, snapshot=replace(made.snapshot, gpu_counters=rows)))
    assert (finding.subject.bdf, finding.judgement.message) == (GPU2, "flap 7, others 3")


def test_ports_of_one_switch_model_support_the_same_generation(tmp_path: Path) -> None:
    """Without a profile nothing else knows what a slot should support; the ports of another switch are no measure."""
    port = "/sys/bus/pci/devices/0000:b9:04.0"
    slow: dict[str, Json] = {f"text {port}/max_link_speed": "5.0 GT/s PCIe\n"}
    assert odd(slow, tmp_path, "l40s-x8") == [("pcie.uniform", "0000:b9:04.0", "max link gen 2, others 4")]
    assert odd(slow | {f"text {port}/device": "0x8733\n"}, tmp_path, "l40s-x8") == []


@pytest.mark.parametrize(("more", "found"), [(1 << 29, []), (4 << 30, ["reserved memory 4576 MiB, others 480 MiB"])])
def test_a_gpu_of_which_the_driver_keeps_more_than_of_the_others(more: int, found: list[str], tmp_path: Path) -> None:
    reserved, total = 480 << 20, 81559 << 20
    memory: Json = {"total": total, "reserved": reserved + more, "used": 0, "free": total - reserved - more}
    facts: dict[str, Json] = {"nvml nvmlDeviceGetMemoryInfo 0000:c3:00.0": memory}
    assert odd(facts, tmp_path, "dgx-h100") == [("gpu.uniform", "GPU5", message) for message in found]


@cache
def compared_records(shipped: str) -> frozenset[str]:
    """The names of all records of devices that have siblings."""
    return frozenset(type(row).__name__ for each in siblings(box(shipped), KINDS) for row in each.rows)


@for_each("name", fields(Snapshot))
def test_a_field_of_the_snapshot_holds_devices_or_says_why_not(name: str) -> None:
    held: set[str] = set()
    for shipped in BOXES:
        value = getattr(box(shipped).snapshot, name)
        if not isinstance(value, Missing):
            held |= compared_records(shipped) & {type(row).__name__ for row in _records(value)}
    unasked = isinstance(getattr(box("dgx-1-v100").snapshot, name), Missing)
    assert (name in ONE_OF_A_KIND) != bool(held) or (unasked and name not in ONE_OF_A_KIND)
    assert name in ONE_OF_A_KIND or name not in NO_DEVICES


def _records(value: object) -> list[Record]:
    if isinstance(value, Record):
        return [each for name in fields(value) for each in _records(getattr(value, name))]
    rows = value if isinstance(value, tuple) else ()
    return [each for row in rows if isinstance(row, Record) for each in (row, *_records(row))]


@pytest.mark.parametrize("shipped", BOXES)
def test_every_value_that_is_compared_says_where_it_stands(shipped: str) -> None:
    made = box(shipped)
    places = {where(row, of) for each in siblings(made, KINDS) for row in each.rows
              for _, of, _ in leaves(row, _picked(each.kind))}  # fmt: skip
    assert places
    assert {place for place in places if not place.startswith(("/sys/", "nvml"))} == set()


@pytest.mark.parametrize("shipped", BOXES)
def test_a_healthy_box_has_no_odd_one(shipped: str) -> None:
    assert compared(box(shipped), KINDS).odd == {}


@pytest.mark.parametrize(("facts", "due"), [
    ({f"{NVML}ComputeMode {GPU2}": 3}, [("gpu.uniform", "GPU2", "compute mode exclusive process, others default")]),
    ({f"{NVML}TemperatureThreshold {GPU2} 1": 90},
     [("gpu.uniform", "GPU2", "slowdown temperature 90 °C, others 87 °C")]),
    ({f"{NVML}EccMode {GPU2}": [0, 0]}, []),  # ecc.mode reports it
    ({f"{NVML}BAR1MemoryInfo {GPU2}": {"bar1Total": 268435456, "bar1Free": 1, "bar1Used": 1}}, []),  # pcie.bar1
    ({f"{NVML}Temperature {GPU2} 0": 52, f"{NVML}PerformanceState {GPU2}": 8}, []),
    ({f"{NVML}Name {GPU2}": "Tesla P40", f"{NVML}ComputeMode {GPU2}": 3}, []),  # another model
    ({f"{NVML}Name {GPU2}": {"missing": "lost", "code": 15}, f"{NVML}ComputeMode {GPU2}": 3}, []),
    ({"text /sys/class/net/ib2/mtu": "65520\n"}, [("network.uniform", "ib2", "MTU 65520, others 2044")]),
    ({"text /sys/class/net/enp2s0f0/mtu": "9000\n"}, []),
    ({"text /sys/class/infiniband/mlx5_2/ports/1/rate": "56 Gb/sec (4X FDR)\n"}, []),  # network.port-rate
    ({"text /sys/devices/system/edac/mc/mc1/size_mb": "98304\n", "text /proc/meminfo": "MemTotal: 492579061 kB\n"},
     [("host.uniform", "host", "mc1: memory 96 GiB, others 128 GiB")]),
    ({"text /sys/devices/system/node/node0/distance": "10 20\n"}, []),  # host.numa
])  # fmt: skip
def test_what_is_alone_is_named_with_the_value_of_the_others(
    facts: dict[str, Json], due: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    assert odd(facts, tmp_path) == due


def test_a_gap_is_odd_where_as_many_siblings_were_read() -> None:
    made = box("dgx-1-v100")
    gap: Any = Missing(Gap.UNSUPPORTED, "vent")
    rows: Any = (Vent(bdf="0000:02:00.0", flap=3), Vent(bdf="0000:02:00.1", flap=gap))
    (finding,) = found(replace(made, snapshot=replace(made.snapshot, gpu_counters=rows)))
    assert finding.judgement.message == "flap not readable, others 3"


@pytest.mark.parametrize(("unread", "due"), [(4, 4), (5, 0)])
def test_gaps_are_odd_up_to_as_many_as_were_read(unread: int, due: int) -> None:
    made = box("dgx-1-v100")
    gap: Any = Missing(Gap.UNSUPPORTED, "vent")
    rows: Any = tuple(Vent(bdf=gpu.bdf or "", flap=gap if at < unread else 3) for at, gpu in enumerate(made.gpus))
    assert len(found(replace(made, snapshot=replace(made.snapshot, gpu_counters=rows)))) == due


@pytest.mark.parametrize(("odd", "due"), [
    ({(GPU2, 3)}, [("GPU2", "NVLink 3: P2P over NVLink off, others on")]),
    ({("0000:06:00.0", 3)}, []),  # of a GPU that was not asked about
])  # fmt: skip
def test_an_nvlink_that_is_alone(odd: set[tuple[str, int]], due: list[tuple[str, str]]) -> None:
    made = box("dgx-1-v100")
    gap = Missing(Gap.UNSUPPORTED, "x")
    every = [(gpu.bdf or "", link) for gpu in made.topology.gpus for link in range(6)]
    rows = tuple(NvLinkCapability(bdf=bdf, link=link, p2p=(bdf, link) not in odd, sysmem_access=gap, p2p_atomics=gap,
                                  sysmem_atomics=gap, sli_bridge=gap, valid=gap) for bdf, link in every)  # fmt: skip
    asked = replace(made, gpus=made.gpus[1:], snapshot=replace(made.snapshot, nvlink_capability=rows))
    assert [(each.subject.name, each.judgement.message) for each in found(asked)] == due


@pytest.mark.parametrize(("versions", "is_model"), [
    (("1", "1", "1", "2"), True), (("1", "1", "2"), False), (("1", "1", "1", "2", "2"), False), (("1",) * 4, False),
    (("1", "1", "1", "2", "3"), False),
])  # fmt: skip
def test_an_adapter_without_a_board_is_of_the_others_model(versions: tuple[str, ...], is_model: bool) -> None:
    row = replace(rows(box("dgx-1-v100").snapshot.infiniband)[0], board_id=Missing(Gap.ABSENT, "x"))
    assert _image(row, None, versions) == (row.hca_type if is_model else row.name)


def test_two_siblings_that_differ_are_both_named() -> None:
    """The two functions of an Ethernet adapter."""
    made = box("dgx-1-v100")
    rows: Any = (Vent(bdf="0000:02:00.0", flap=3), Vent(bdf="0000:02:00.1", flap=7))
    (finding,) = found(replace(made, snapshot=replace(made.snapshot, gpu_counters=rows)))
    assert finding.subject.kind == "host"
    assert finding.judgement.message == (
        "PCIe devices of one kind differ in flap, and no value has a majority: 3 (0000:02:00.0), 7 (0000:02:00.1)"
    )


def test_a_gap_is_no_value(tmp_path: Path) -> None:
    for gap in Gap:
        assert odd({f"{NVML}ComputeMode {GPU2}": {"missing": gap.value}}, tmp_path) == []


def test_a_node_without_distances_is_no_fault_of_the_next(tmp_path: Path) -> None:
    spec = changed(tmp_path, {"text /sys/devices/system/node/node0/distance": {"missing": "unsupported"}})
    (told,) = [each for each in run(box(spec), CHECKS) if each.id == "host.numa" and not each.subject.part]
    assert told.status not in (Status.WARN, Status.FAIL)


def test_all_alike_is_never_odd(tmp_path: Path) -> None:
    gpus = [device.bdf for device in box("dgx-1-v100").topology.gpus]
    assert odd({f"{NVML}ComputeMode {bdf}": 3 for bdf in gpus}, tmp_path) == []


def test_the_checks_run_last_whatever_their_place() -> None:
    made = box("dgx-1-v100-ecc-off")
    assert [each.id for each in run(made, CHECKS[::-1]) if each.id == "gpu.uniform" and each.status in BAD] == []
    (alone,) = [check for check in CHECKS if check.id == "gpu.uniform"]
    assert [each.subject.bdf for each in run(made, [alone]) if each.status in BAD] == [GPU2]


@pytest.mark.parametrize(("line", "due"), [(6, []), (3, ["gpu.uniform"])])
def test_the_rom_of_the_boot_display_is_its_own(line: int, due: list[str], tmp_path: Path) -> None:
    where = f"/sys/bus/pci/devices/{GPU2}/resource"
    text = open_source("dgx-1-v100").text(where)
    assert isinstance(text, str)
    rows = text.splitlines()
    rows[line] = "0x00000000000c0000 0x00000000000dffff 0x0000000000040212"
    assert [each for each, _, _ in odd({f"text {where}": "\n".join(rows) + "\n"}, tmp_path)] == due
