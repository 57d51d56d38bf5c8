"""From a fault of the CUDA stand-in to the finding that it must cause: at the right GPU or pair, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_bed import Bed, bdf, first
from measured_box import of_box
from sample import swept
from standin import cuda

from dgxcheck.assessment.load import as_facts
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.record import replace
from dgxcheck.source.recording.load import open_source

V100 = cuda.dgx1_v100()
GPUS = 4
JUDGED = [check for check in CHECKS if check.id.startswith("measure.")]


@pytest.fixture
def bed(cuda_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bed:
    return Bed(cuda_library, tmp_path, monkeypatch)


def found(bed: Bed, box: cuda.Box, *faults: str, kinds: tuple[str, ...] = ()) -> dict[str, Status]:
    """What is bad, by key, judged without a reference machine."""
    facts = bed.facts(box, *faults, gpus=GPUS, seconds=3.0, kinds=kinds)
    whole = of_box(open_source("dgx-1-v100"), "none")
    judged = replace(
        whole, gpus=first("dgx-1-v100", GPUS), snapshot=replace(whole.snapshot, measurement=as_facts(facts))
    )
    bad = (Status.WARN, Status.FAIL, Status.UNKNOWN)
    return {finding.key: finding.status for finding in run(judged, JUDGED) if finding.status in bad}


def at(check: str, *gpus: int) -> str:
    return "/".join((f"measure.{check}", *(bdf(gpu) for gpu in gpus)))


def test_a_healthy_box_has_no_finding(bed: Bed) -> None:
    assert found(bed, V100) == {}


@pytest.mark.parametrize(("fault", "key"), swept([
    ("drop 0 1", at("p2p-integrity", 0, 1)),
    ("drop-sm 3 2", at("p2p-integrity", 2, 3)),
    ("mirror 2 0", at("p2p-integrity", 0, 2)),
    ("wrong 1 3 65536", at("p2p-integrity", 1, 3)),
    ("wrong-memory 2 4096", at("memory-integrity", 2)),
    ("wrong-compute 3 5", at("compute", 3)),
    ("hang dgx_fill 3", at("memory-integrity", 3)),
    ("hang cuMemcpyPeerAsync 0 1", at("p2p-bandwidth", 0, 1)),
    ("error cuMemcpyDtoDAsync 220 0 1", at("p2p-integrity", 0, 1)),
    ("error dgx_check 214 1", at("memory-integrity", 1)),
    ("crash dgx_fma 2", None),
], 6))  # fmt: skip
def test_a_fault_fails_at_its_gpu_or_pair(bed: Bed, fault: str, key: str | None) -> None:
    seen = found(bed, V100, fault)
    assert [*seen.values()] == [Status.FAIL]
    assert [*seen] == [key] if key is not None else bdf(2) in next(iter(seen))


@pytest.mark.parametrize(("links", "key"), swept([
    ({(0, 1): 24.2 / 2, (1, 0): 24.2 / 2}, at("p2p-bandwidth", 0, 1)),
    ({(2, 0): 24.2 * 0.6}, at("p2p-bandwidth", 0, 2)),
    ({(0, 3): 5.0, (3, 0): 5.0}, at("p2p-bandwidth", 0, 3)),
], 3), ids=("half rate", "one direction", "slower than through the host"))  # fmt: skip
def test_a_slow_pair_warns_without_a_reference(bed: Bed, links: dict[tuple[int, int], float], key: str) -> None:
    box = V100
    for ends, gbs in links.items():
        box = box.with_link(*ends, box.links[ends]._replace(gbs=gbs))
    assert found(bed, box) == {key: Status.WARN}


def test_a_latency_that_peer_access_does_not_help_warns(bed: Bed) -> None:
    box = V100
    for ends in ((0, 2), (2, 0)):
        box = box.with_link(*ends, box.links[ends]._replace(on_us=16.0))
    kinds = ("access", "p2p-integrity", "latency", "latency-off")  # small copies of other kinds are slower, too
    assert found(bed, box, kinds=kinds) == {at("p2p-latency", 0, 2): Status.WARN}


def test_a_fabric_that_is_not_ready_is_one_finding(bed: Bed) -> None:
    assert [*found(bed, V100, "error cuInit 802").values()] == [Status.FAIL]


def test_a_driver_that_finds_no_gpu_leaves_unknown_what_was_to_be_measured(bed: Bed) -> None:
    assert found(bed, V100, "error cuInit 100") == {"measure.host-bandwidth": Status.UNKNOWN}


def test_a_driver_that_cannot_be_opened_is_one_finding(bed: Bed) -> None:
    assert [*found(bed, V100, "error cuInit 999").values()] == [Status.FAIL]
