"""The CUDA worker on the stand-in: figures as the box has them, and each fault at its GPU or pair alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from clock import SPARE
from cuda_bed import Bed, bdf, first, kind_of, odd, wired
from sample import swept
from standin import cuda

from dgxcheck.measure import plan
from dgxcheck.workers.cuda.supervisor import START

V100 = cuda.dgx1_v100()
G0, G1, G2 = bdf(0), bdf(1), bdf(2)


@pytest.fixture
def bed(cuda_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bed:
    return Bed(cuda_library, tmp_path, monkeypatch)


def test_figures_are_those_of_the_box_and_nothing_leaks(bed: Bed) -> None:
    facts = bed.facts(V100)
    assert not odd(facts)
    assert [key for key, fact in facts.items() if "skipped" in fact] == []
    due = {
        f"host-to-device {G0}": 12.1, f"device-copy {G0}": 750, f"compute {G0}": 14, f"p2p {G0} {G1}": 24.2,
        f"p2p-both {G0} {G1}": 48.4, f"latency {G0} {G1}": 1.6, f"latency-sm {G0} {G1}": 700,
    }  # fmt: skip
    for key, rate in due.items():
        assert facts[f"measure {key}"]["value"] == pytest.approx(rate, rel=0.05), key
    assert {fact["how"] for fact in facts.values()} == {"simulated"}
    assert not any(bed.left().values())


def test_every_pair_and_kind_is_measured(bed: Bed) -> None:
    facts = bed.facts(V100, gpus=2)
    gpus = (G0, G1)
    due = {f"measure {kind} {gpu}" for kind in plan.OF_ONE for gpu in gpus}
    due |= {f"measure {kind} {a} {b}" for kind in plan.ORDERED for a, b in (gpus, gpus[::-1])}
    assert facts.keys() == due | {f"measure {kind} {G0} {G1}" for kind in plan.UNORDERED} | {START}


@pytest.mark.parametrize(("fault", "where"), swept([
    ("drop 0 1", f"p2p-integrity {G0} {G1}"),
    ("drop-sm 0 1", f"p2p-integrity {G0} {G1}"),
    ("mirror 2 0", f"p2p-integrity {G2} {G0}"),
    ("wrong 0 1 4096", f"p2p-integrity {G0} {G1}"),
    ("wrong-memory 2 100", f"memory-integrity {G2}"),
    ("crash dgx_copy 0 1", f"p2p-integrity {G0} {G1}"),
    ("crash cuMemHostAlloc 1", f"under-load {G1}"),
    ("hang cuMemcpyPeerAsync 0 1", f"p2p-off {G0} {G1}"),
    ("never-ready 1", f"under-load {G1}"),
    ("error cuMemcpyDtoDAsync 220 0 1", f"p2p-integrity {G0} {G1}"),
    ("error dgx_fill 214 2", f"memory-integrity {G2}"),
    ("error dgx_fma 719 1", f"under-load {G1}"),
], 6))  # fmt: skip
def test_a_fault_is_told_once_and_where_it_is(bed: Bed, fault: str, where: str) -> None:
    facts = bed.facts(V100, fault, seconds=2.0)
    assert [*odd(facts)] == [f"measure {where}"]
    other = (G1, G2) if G0 in where or where.startswith(("p2p", "latency")) else (G0, G1)
    if not any(gpu in where for gpu in other):
        assert "value" in facts[f"measure p2p {other[0]} {other[1]}"]
    assert len(facts) == len(plan.steps(wired("dgx-1-v100"), first("dgx-1-v100", 3))) + 1


def test_no_bandwidth_of_a_pair_whose_data_did_not_arrive(bed: Bed) -> None:
    facts = bed.facts(V100, "drop 0 1")
    for kind in ("p2p", "p2p-both", "latency", "latency-sm"):
        assert facts[f"measure {kind} {G0} {G1}"] == {
            "skipped": "dependency-failed", "detail": "data did not arrive intact"}  # fmt: skip
    assert "value" in facts[f"measure p2p {G1} {G0}"]
    assert "value" in facts[f"measure p2p-off {G0} {G1}"]


@pytest.mark.parametrize(("fault", "expected"), [
    ("error cuInit 802", {"failed": "CUDA_ERROR_SYSTEM_NOT_READY", "code": 802, "detail": "cuInit"}),
    ("error cuInit 100", {"skipped": "not-visible", "detail": "cuInit: CUDA_ERROR_NO_DEVICE (100)"}),
    ("crash cuInit", {"failed": "died: SIGSEGV", "detail": "the process that measured"}),
])  # fmt: skip
def test_without_a_driver_that_opens_nothing_else_is_said(bed: Bed, fault: str, expected: object) -> None:
    assert bed.facts(V100, fault) == {START: expected}


def test_no_library_is_a_skip(bed: Bed, tmp_path: Path) -> None:
    facts = bed.facts(V100, library=tmp_path / "libcuda.so.1")
    assert [*facts] == [START]
    assert facts[START]["skipped"] == "not-supported"
    assert "libcuda.so.1" in facts[START]["detail"]


def test_a_full_gpu_is_skipped_and_512_mib_are_left(bed: Bed) -> None:
    full = V100._replace(gpus=(V100.gpus[0]._replace(memory_mib=560), *V100.gpus[1:]))
    facts = bed.facts(full, kinds=("host-to-device", "device-copy", "memory-integrity"), gpus=2)
    for kind in ("device-copy", "memory-integrity"):
        fact = facts[f"measure {kind} {G0}"]
        assert fact["skipped"] == "busy"
        assert "512 MiB" in fact["detail"]
        assert "value" in facts[f"measure {kind} {G1}"]
    assert "value" in facts[f"measure host-to-device {G0}"]


def test_all_memory_that_is_free_is_tested(bed: Bed) -> None:
    """The result of the test has its place before all that is free is taken."""
    few = V100._replace(gpus=(V100.gpus[0]._replace(memory_mib=700), *V100.gpus[1:]))
    steps = [step | {"long": True} for step in plan.steps(wired("dgx-1-v100"), first("dgx-1-v100", 1))]
    key = f"measure memory-integrity {G0}"
    fact = bed.stage(few).run([step for step in steps if step["key"] == key])[key]
    assert isinstance(fact, dict)
    assert fact["checked"] in range(64 << 20, 188 << 20)


def test_old_drivers_serve(bed: Bed, old_cuda_library: Path) -> None:
    facts = bed.facts(V100, library=old_cuda_library, gpus=2)
    assert not odd(facts)
    assert not any(bed.left().values())


def test_a_gpu_that_cuda_does_not_list_is_not_visible(bed: Bed) -> None:
    facts = bed.facts(V100._replace(gpus=V100.gpus[:2], links={}), gpus=3, kinds=("host-to-device", "p2p-off"))
    assert facts[f"measure host-to-device {G2}"] == {"skipped": "not-visible", "detail": f"CUDA does not list {G2}"}
    assert "value" in facts[f"measure host-to-device {G0}"]


def test_sleeps_between_enqueues_do_not_count(bed: Bed) -> None:
    steps = [step | {"bytes": 1 << 20} for step in plan.steps(wired("dgx-1-v100"), first("dgx-1-v100", 1))]
    step = [each for each in steps if kind_of(each["key"]) == "host-to-device"]
    stage = bed.stage(V100)
    key = str(step[0]["key"])
    once, slept = stage.run(step)[key], bed.stage(V100).fresh(between_ms=1).run(step)[key]
    assert isinstance(once, dict)
    assert isinstance(slept, dict)
    assert slept["value"] == once["value"]


@pytest.mark.parametrize("gpu", swept([0, 1, 2], 3))
def test_a_hang_costs_its_deadline_and_the_other_gpus_are_measured(bed: Bed, gpu: int) -> None:
    import time

    begun = time.monotonic()
    facts = bed.facts(V100, f"hang dgx_fill {gpu}", seconds=2.0)
    assert time.monotonic() - begun < 3 * 2.0 + 3 * SPARE
    assert [*odd(facts)] == [f"measure memory-integrity {bdf(gpu)}"]
    others = [bdf(other) for other in range(3) if other != gpu]
    assert "value" in facts[f"measure p2p {others[0]} {others[1]}"]


def test_what_is_stopped_leaves_what_was_measured(bed: Bed) -> None:
    stage = bed.stage(V100)
    steps = [step | {"bytes": 1 << 20} for step in plan.steps(wired("dgx-1-v100"), first("dgx-1-v100", 2))]

    def stop(key: str, done: int) -> None:
        stage.stop()

    facts = stage.run([step | {"seconds": 30} for step in steps], stop)
    assert START in facts
    assert len(facts) < len(steps)


def test_the_plan_takes_disjoint_pairs_over_a_shared_hop_and_all_rings() -> None:
    steps = plan.steps(wired("k80-x8"), first("k80-x8", 8))
    shared = [step for step in steps if kind_of(step["key"]) == "p2p-shared"]
    assert shared
    for step in shared:
        gpus = [*step["gpus"], *(gpu for pair in step["with"] for gpu in pair)]  # type: ignore[misc, union-attr]
        assert len(gpus) == len(set(gpus)) >= 4
    rings = [step for step in plan.steps(wired("dgx-1-v100"), first("dgx-1-v100", 8)) if kind_of(step["key"]) == "ring"]
    assert [len(step["gpus"]) for step in rings] == [8, 8, 8]  # type: ignore[arg-type]
    assert not [
        step for step in plan.steps(wired("dgx-1-v100"), first("dgx-1-v100", 4)) if kind_of(step["key"]) == "ring"
    ]
