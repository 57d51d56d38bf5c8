"""Copies between host and GPU and within a GPU: thresholds, gaps, and what figures alone tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from measured_box import GPUS, dgx1_p100, fact, found, host_copies, imported, measured, of_box, overlay, said

from dgxcheck.checks.measurement.expectations import quantity
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Gap, Json, Missing, rows
from dgxcheck.facts.nvml.gpu import GpuProcess
from dgxcheck.facts.record import replace
from dgxcheck.source.recording.load import open_source

HOST, MEMORY = "measure.host-bandwidth", "measure.memory-bandwidth"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(9.5, "us", "9.5 µs"), (18.412, "GB/s", "18.41 GB/s"), (9999, "GB/s", "9999 GB/s"), (10000, "GB/s", "10000 GB/s")],
)
def test_a_figure_in_words(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize("check", [HOST, MEMORY])
def test_a_good_box_passes(check: str, tmp_path: Path) -> None:
    box = measured(tmp_path, dgx1_p100())
    assert len(found(box, check)) == 8
    assert said(box, check) == {}


@pytest.mark.parametrize(
    ("kind", "value", "due"),
    [
        ("host-to-device", 10.8, {}),
        ("host-to-device", 10.79, {"GPU2": "warn"}),
        ("host-to-device", 9.0, {"GPU2": "warn"}),
        ("host-to-device", 8.99, {"GPU2": "fail"}),
        ("device-to-host", 11.26, {}),
        ("device-to-host", 11.24, {"GPU2": "warn"}),
    ],
)
def test_host_copies_against_the_profile(kind: str, value: float, due: dict[str, str], tmp_path: Path) -> None:
    box = measured(tmp_path, host_copies() | {f"{kind} {GPUS[2]}": fact(value)})
    assert said(box, HOST) == due


@pytest.mark.parametrize(("value", "due"), [(451, {}), (449, {"GPU2": "warn"}), (374, {"GPU2": "fail"})])
def test_device_copies_against_the_model(value: float, due: dict[str, str], tmp_path: Path) -> None:
    box = measured(tmp_path, {f"device-copy {gpu}": fact(value if gpu == GPUS[2] else 500) for gpu in GPUS})
    assert said(box, MEMORY) == due


def test_a_finding_says_all_that_is_needed(tmp_path: Path) -> None:
    low = fact(6.2, retries=[[6.1, 6.1], [6.2, 6.2]])
    finding = found(measured(tmp_path, host_copies() | {f"host-to-device {GPUS[3]}": low}), HOST)["GPU3"]
    said = finding.judgement
    assert (said.measured, said.expected, said.unit) == (6.2, 12.0, "GB/s")
    assert said.message == (
        "host to device: 6.2 GB/s, 52 % of 12 GB/s; expected by dgx-1-p100, best of 3 measurements"
    )
    assert [(each.where, each.value) for each in said.evidence] == [(f"measure host-to-device {GPUS[3]}", 6.2)]
    assert finding.key == f"{HOST}/{GPUS[3]}"


def test_both_directions_are_one_finding(tmp_path: Path) -> None:
    wrong = {f"host-to-device {GPUS[3]}": fact(3.8), f"device-to-host {GPUS[3]}": fact(2.5)}
    finding = found(measured(tmp_path, host_copies() | wrong), HOST)["GPU3"]
    assert (finding.status.value, finding.judgement.measured, len(finding.judgement.evidence)) == ("fail", 2.5, 2)


@pytest.mark.parametrize(("value", "due"), [(7.6, {}), (7.2, {"GPU2": "warn"}), (0.5, {"GPU2": "fail"})])
def test_without_a_profile_the_path_warns_and_fails_far_below(
    value: float, due: dict[str, str], tmp_path: Path
) -> None:
    facts = {f"{kind} {GPUS[2]}": fact(value) for kind in ("host-to-device", "device-to-host")}
    assert said(measured(tmp_path, facts, profile="none"), HOST) == due


def test_a_guest_s_copies_far_below_warn_alone(tmp_path: Path) -> None:
    """Its paths are made up by the hypervisor, and its GPUs may be slices."""
    facts = {f"{kind} {GPUS[2]}": fact(0.5) for kind in ("host-to-device", "device-to-host")}
    box = measured(tmp_path, facts, profile="none")
    host = box.snapshot.host
    assert isinstance(host, Host)
    assert said(box, HOST) == {"GPU2": "fail"}
    in_guest = replace(box, snapshot=replace(box.snapshot, host=replace(host, vm="KVM")))
    assert said(in_guest, HOST) == {"GPU2": "warn"}


@pytest.mark.parametrize(
    ("value", "due"), [(450, {}), (440, {"GPU2": "warn"}), (150, {"GPU2": "warn"}), (140, {"GPU2": "fail"})]
)
def test_memory_far_below_its_model_fails_without_a_reference_machine(
    value: float, due: dict[str, str], tmp_path: Path
) -> None:
    copies = {f"device-copy {GPUS[2]}": fact(value)}
    assert said(measured(tmp_path, copies, profile="none"), MEMORY) == due


def test_what_is_simulated_is_held_to_no_reference(tmp_path: Path) -> None:
    facts = {
        key: {**each, "how": "simulated", "value": 9.0} for key, each in host_copies().items() if isinstance(each, dict)
    }
    assert said(measured(tmp_path, facts), HOST) == {}
    copies = {f"device-copy {gpu}": fact(100, how="simulated") for gpu in GPUS}
    assert said(measured(tmp_path, copies), MEMORY) == {}
    slow = copies | {f"device-copy {GPUS[5]}": fact(50, how="simulated")}
    assert said(measured(tmp_path, slow), MEMORY) == {"GPU5": "warn"}


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({"host-to-device 0": fact(35.19), "device-to-host 0": fact(52.77)}, "warn"),  # SM copies, nvbandwidth 24
        ({"host-to-device 0": fact(9.6), "device-to-host 0": fact(11.4)}, ""),
        ({"host-to-device 0": fact(369.36), "device-to-host 0": fact(295.15)}, ""),
        ({"host-to-device 0": fact(0.76), "device-to-host 0": fact(0.8)}, "warn"),  # 7gforce
        ({"host-to-device 0": fact(2)}, ""),
        ({"host-to-device 0": fact(1.99)}, "warn"),
        ({"host-to-device 0": fact(12.15, runs=[{"value": 12.15}, {"value": 3.78}])}, "warn"),  # gearshifft
        ({"host-to-device 0": fact(12.15, runs=[{"value": 12.15}, {"value": 9.2}])}, ""),
        ({"pageable-host-to-device 0": fact(1.0)}, None),
    ],
)
def test_figures_alone(facts: dict[str, Json], due: str | None) -> None:
    told = said(imported(facts), HOST)
    assert told == ({"host": "skip not-recorded"} if due is None else {"GPU0": due} if due else {})


def test_a_gpu_that_is_slower_than_its_siblings(tmp_path: Path) -> None:
    low = {f"device-copy-sm {gpu}": fact(530 if gpu != GPUS[1] else 470) for gpu in GPUS}
    assert said(measured(tmp_path, low), MEMORY) == {"GPU1": "warn"}
    assert said(measured(tmp_path, {f"device-copy-sm {GPUS[0]}": fact(500)}), MEMORY) == {"GPU0": "skip no-reference"}


def test_a_kernel_reads_host_memory_slower_than_it_writes() -> None:
    """An HGX H100 that is healthy: https://github.com/NVIDIA/nvbandwidth/issues/24"""
    healthy = {f"{kind} {gpu}": fact(rate) for kind, rate in (("host-to-device-sm", 35.2), ("device-to-host-sm", 52.8))
               for gpu in range(8)}  # fmt: skip
    assert said(imported(healthy), HOST) == {}
    assert said(imported(healthy | {"host-to-device-sm 2": fact(17.3)}), HOST) == {"GPU2": "warn"}


GAPS: list[tuple[Json, str]] = [
    ({"skipped": "busy", "detail": "pid 7"}, "skip busy"),
    ({"skipped": "not-configured", "detail": "exclusive"}, "skip not-configured"),
    ({"skipped": "out of the blue", "detail": ""}, "skip not-supported"),
    ({"failed": "CUDA_ERROR_OUT_OF_MEMORY", "code": 2, "detail": "x"}, "skip busy"),
    ({"failed": "CUDA_ERROR_ECC_UNCORRECTABLE", "code": 214, "detail": "x"}, "fail"),
    ({"failed": "crashed (SIGSEGV)", "detail": "x"}, "fail"),
    ({"missing": "timeout", "detail": "no answer for 120 s"}, "fail"),
    ({"missing": "garbled"}, "unknown"),
    ({"missing": "unrecorded"}, "skip not-recorded"),
    ({"value": "x"}, "unknown"),
    ({"value": None}, "skip not-recorded"),
]


@pytest.mark.parametrize(("fact", "due"), GAPS)
@pytest.mark.parametrize(("check", "kind"), [(HOST, "host-to-device"), (MEMORY, "device-copy")])
def test_where_there_is_no_figure(check: str, kind: str, fact: Json, due: str, tmp_path: Path) -> None:
    facts = {key: each for key, each in dgx1_p100().items() if not key.endswith(GPUS[2])}
    assert said(measured(tmp_path, {**facts, f"{kind} {GPUS[2]}": fact}), check) == {"GPU2": due}


@pytest.mark.parametrize(
    ("free_mib", "processes", "due"),
    [
        (1024, (), "fail"),
        (1023, (), "unknown"),
        (Missing(Gap.GARBLED, ""), (), "unknown"),
        (1024, Missing(Gap.UNSUPPORTED, ""), "skip busy"),
        (40, (GpuProcess(pid=7, used_memory=1 << 34, name="x"),), "skip busy"),
    ],
)
def test_a_gpu_without_memory_for_anything(
    free_mib: int | Missing, processes: tuple[GpuProcess, ...] | Missing, due: str, tmp_path: Path
) -> None:
    """Of memory that nobody holds nothing is known to be well."""
    full: Json = {"skipped": "busy", "detail": "40 MiB free", "code": 2}
    facts = {key: full if GPUS[2] in key else each for key, each in dgx1_p100().items()}
    access: Json = {"value": True, "unit": "", "how": "measured", "method": "x", "tool": "dgxcheck"}
    box = measured(tmp_path, {**facts, f"access {GPUS[2]} {GPUS[3]}": access})
    free = free_mib if isinstance(free_mib, Missing) else free_mib << 20
    memory = tuple(replace(row, free=free) if row.bdf == GPUS[2] else row for row in rows(box.snapshot.gpu_memory))
    running = tuple(
        replace(row, compute=processes) if row.bdf == GPUS[2] else row for row in rows(box.snapshot.gpu_processes)
    )
    assert said(replace(box, snapshot=replace(box.snapshot, gpu_memory=memory, gpu_processes=running)), HOST) == {
        "GPU2": due
    }


def test_a_gpu_that_fails_is_told_once(tmp_path: Path) -> None:
    dead: Json = {"failed": "CUDA_ERROR_ECC_UNCORRECTABLE", "code": 214, "detail": "cuStreamQuery"}
    facts = dgx1_p100() | {f"{kind} {GPUS[2]}": dead for kind in ("host-to-device", "device-copy")}
    box = measured(tmp_path, facts)
    assert said(box, HOST) == {"GPU2": "fail"}
    assert "an uncorrectable ECC error" in found(box, HOST)["GPU2"].judgement.message
    assert said(box, MEMORY) == {"GPU2": "skip dependency-failed"}


def test_a_fabric_that_is_not_set_up_is_told_once(tmp_path: Path) -> None:
    dead: Json = {"failed": "CUDA_ERROR_SYSTEM_NOT_READY", "code": 802, "detail": "cuInit"}
    box = measured(tmp_path, {f"{kind} {gpu}": dead for gpu in GPUS for kind in ("host-to-device", "device-copy")})
    assert said(box, HOST) == {"host": "fail"}
    assert said(box, MEMORY) == {"host": "skip dependency-failed"}


@pytest.mark.parametrize(("check", "count"), [(HOST, 1), (MEMORY, 1), ("measure.p2p-bandwidth", 7)])
def test_only_gpus_that_were_asked_about_are_judged(check: str, count: int, tmp_path: Path) -> None:
    box = measured(tmp_path, dgx1_p100())
    assert len(found(replace(box, gpus=box.gpus[2:3]), check)) == count


@pytest.mark.parametrize("check", [HOST, MEMORY])
def test_nothing_measured_is_one_skip(check: str, tmp_path: Path) -> None:
    assert said(measured(tmp_path, {}), check) == {"host": "skip not-recorded"}
    assert said(measured(tmp_path, {"latency 0 1": fact(1, "us")}), check) == {"host": "skip not-recorded"}


EXPLAINED = "skip dependency-failed"


@pytest.mark.parametrize(
    ("base", "profile", "gpu", "value", "due"),
    [
        ("dgx-1-v100-gpu-x8", "auto", 2, 6.1, EXPLAINED),
        ("dgx-1-v100-gpu-x8", "auto", 2, 5.0, "fail"),  # less than eight lanes carry
        ("dgx-1-v100-gpu-x8", "auto", 3, 6.1, "fail"),
        ("dgx-1-v100-switch-x8", "auto", 2, 6.1, EXPLAINED),
        ("dgx-1-v100-slot-gen2", "auto", 2, 6.1, EXPLAINED),
        ("dgx-1-v100-gpu-x8", "none", 2, 6.1, EXPLAINED),
        ("dgx-1-v100-gpu-x8", "none", 2, 3.5, "warn"),
        ("dgx-1-v100-gpu-x8", "none", 2, 0.5, "fail"),
        ("dgx-1-v100-gpu-x8", "none", 3, 6.1, "warn"),
        ("dgx-1-v100-slot-gen2", "none", 2, 6.1, ""),  # as much as such a slot carries
    ],
)
def test_what_a_narrow_link_explains_is_not_told_again(
    base: str, profile: str, gpu: int, value: float, due: str, tmp_path: Path
) -> None:
    facts = {f"{kind} {GPUS[gpu]}": fact(value) for kind in ("host-to-device", "device-to-host")}
    assert said(measured(tmp_path, facts, base, profile), HOST) == ({f"GPU{gpu}": due} if due else {})


@pytest.mark.parametrize("profile", ["auto", "none"])
def test_a_narrow_link_explains_beside_one_that_cannot_be_read(profile: str, tmp_path: Path) -> None:
    facts = {f"{kind} {GPUS[2]}": fact(6.1) for kind in ("host-to-device", "device-to-host")}
    unread: dict[str, Json] = {"text /sys/bus/pci/devices/0000:08:00.0/current_link_width": {"missing": "denied"}}
    spec = overlay(tmp_path, facts, "dgx-1-v100-gpu-x8", unread)
    assert said(of_box(open_source(spec), profile), HOST) == {"GPU2": EXPLAINED}


def test_lanes_that_are_lost_under_load_explain_it_too(tmp_path: Path) -> None:
    load = fact(None, "", link_width=8)
    facts = host_copies() | {f"host-to-device {GPUS[2]}": fact(6.1), f"under-load {GPUS[2]}": load}
    box = measured(tmp_path, facts)
    assert said(box, "pcie.width") == {"GPU2": "fail"}
    assert said(box, HOST) == {"GPU2": EXPLAINED}


@pytest.mark.parametrize(("idle", "loaded", "due"), [
    ("8", 16, {"GPU2": EXPLAINED}), ("8", 8, {"GPU2": EXPLAINED}), ("8", None, {"GPU2": EXPLAINED}),
    (None, 8, {"GPU2": EXPLAINED}), (None, 16, {"GPU2": "fail"}), ("16", 16, {"GPU2": "fail"}),
])  # fmt: skip
def test_the_fewer_lanes_of_two_readings_count(
    idle: str | None, loaded: int | None, due: dict[str, str], tmp_path: Path
) -> None:
    """``idle``: of the PCI tree, None where it cannot be read; ``loaded``: of NVML under load."""
    facts = host_copies() | {f"host-to-device {GPUS[2]}": fact(6.1)}
    facts |= {f"under-load {GPUS[2]}": fact(None, "", link_width=loaded)} if loaded else {}
    text: Json = {"missing": "denied"} if idle is None else f"{idle}\n"
    width: dict[str, Json] = {f"text /sys/bus/pci/devices/{GPUS[2]}/current_link_width": text}
    assert said(of_box(open_source(overlay(tmp_path, facts, "dgx-1-v100", width)), "auto"), HOST) == due


def test_the_best_copy_of_a_gpu_to_itself_counts() -> None:
    slow_first = {f"p2p-off {gpu} {gpu}": fact(140 if gpu == 0 else 800) for gpu in range(4)}
    assert said(imported(slow_first | {f"p2p {gpu} {gpu}": fact(802) for gpu in range(4)}), MEMORY) == {}


@pytest.mark.parametrize(("gpus", "due"), [
    ((500, 500, 140), {"GPU2": "warn"}),
    ((500, 500, 300), {}),
    ((500, 500, 299), {"GPU2": "warn"}),
    ((500, 140), {"GPU0": "skip no-reference", "GPU1": "skip no-reference"}),
    ((500, 0, 0, 140), {"GPU0": "skip no-reference", "GPU1": "warn", "GPU2": "warn", "GPU3": "skip no-reference"}),
])  # fmt: skip
def test_copies_of_a_gpu_to_itself_are_held_to_those_of_two(gpus: list[float], due: dict[str, str]) -> None:
    assert said(imported({f"p2p-off {gpu} {gpu}": fact(gbs) for gpu, gbs in enumerate(gpus)}), MEMORY) == due


@pytest.mark.parametrize(("names", "tool", "due"), [
    ({}, "t 1", {"GPU1": "warn"}),
    ({}, "t 2", {}),  # no two of one tool and model
    (dict.fromkeys(range(3), "Model A"), "t 1", {"GPU1": "warn"}),
    ({0: "Model A", 1: "Model B", 2: "Model A"}, "t 1", {}),
])  # fmt: skip
def test_an_odd_figure_among_gpus_that_only_a_tool_names(
    names: dict[int, str], tool: str, due: dict[str, str]
) -> None:
    devices = {f"device {gpu}": fact(None, "", name=name) for gpu, name in names.items()}
    rates = {f"host-to-device {gpu}": fact(3.12, tool=tool) if gpu == 1 else fact(12.3) for gpu in range(3)}
    assert said(imported(rates | devices), HOST) == due


@pytest.mark.parametrize(
    ("slow", "again", "due"),
    [
        (3, None, {"GPU3": "warn"}),
        (0, None, {"GPU0": "skip no-reference"}),  # the first copy of a run
        (0, 140.0, {"GPU0": "warn"}),
        (0, 500.0, {}),
    ],
)
def test_copies_of_a_gpu_to_itself(slow: int, again: float | None, due: dict[str, str], tmp_path: Path) -> None:
    """The diagonal of a matrix of p2pBandwidthLatencyTest, and of a second one."""
    facts = {f"p2p-off {gpu} {gpu}": fact(140.0 if at == slow else 500.0) for at, gpu in enumerate(GPUS)}
    if again is not None:
        facts |= {f"p2p {gpu} {gpu}": fact(again if at == slow else 500.0) for at, gpu in enumerate(GPUS)}
    assert said(measured(tmp_path, facts), "measure.memory-bandwidth") == due
