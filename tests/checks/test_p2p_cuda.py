"""Peer access as p2pBandwidthLatencyTest prints it, judged and shown where NVML's status is not in the text."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import combinations, permutations
from pathlib import Path

import pytest
from read_box import box

from dgxcheck.assessment import assess, examine
from dgxcheck.assessment.machine import PEERS
from dgxcheck.assessment.reach import peers
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.peer_access.cuda import judged
from dgxcheck.facts.faults.kind import NVLINK_XIDS
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import rows
from dgxcheck.facts.record import replace

Refused = Collection[tuple[int, int]]
NONE: Refused = ()


def report(count: int, refused: Refused, label: str = "", model: str = "NVIDIA A100-SXM4-40GB") -> str:
    """``nvidia-smi -q``, with ``label`` a matrix, and the head of p2pBandwidthLatencyTest."""
    gpus = range(count)
    text = f"==============NVSMI LOG==============\n\nAttached GPUs : {count}\n"
    text += "".join(f"GPU 00000000:{bus + 1:02X}:00.0\n    Product Name : {model}\n" for bus in gpus)
    if label:
        text += "\t" + "\t".join(f"GPU{a}" for a in gpus) + "\n"
        text += "".join(f"GPU{a}\t" + "\t".join(" X " if a == b else label for b in gpus) + "\n" for a in gpus)
    text += "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
    text += "".join(f"Device: {a}, {model}, pciBusID: {a + 1:x}, pciDeviceID: 0, pciDomainID:0\n" for a in gpus)
    for a, b in permutations(gpus, 2):
        text += f"Device={a} {'CANNOT' if (a, b) in refused else 'CAN'} Access Peer Device={b}\n"
    return text


def both_ways(*pairs: tuple[int, int]) -> Refused:
    return {*pairs, *((b, a) for a, b in pairs)}


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        path = tmp_path / "pasted.txt"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def named(text: str) -> str:
    """Without what NVML says."""
    return "".join(text.partition("[P2P")[1:])


PAIRS = (*combinations(range(8), 2),)
ALL = both_ways(*PAIRS)
ACROSS = both_ways(*((a, b) for a in range(4) for b in range(4, 8) if b != a + 4))
ALONE = both_ways(*((4, other) for other in range(4)))


@pytest.mark.parametrize(("text", "due"), [
    pytest.param(report(4, NONE), {}, id="all"),
    pytest.param(report(4, both_ways((0, 2), (0, 3), (1, 2), (1, 3))), {}, id="two sockets"),
    pytest.param(report(3, both_ways((0, 2), (1, 2))), {}, id="one alone on a socket"),
    pytest.param(report(2, both_ways((0, 1)), "PIX", "NVIDIA GeForce RTX 4090"), {}, id="a model without"),
    pytest.param(report(2, {(1, 0)}), {"GPU0-GPU1": "fail"}, id="one way"),
    pytest.param(report(4, both_ways((1, 2)), "NV4"), {"GPU1-GPU2": "fail"}, id="joined by NVLink"),
    pytest.param(report(4, both_ways((1, 2)), "PIX"), {"GPU1-GPU2": "fail"}, id="below one switch as others"),
    pytest.param(report(5, ALONE), {f"GPU{other}-GPU4": "warn" for other in range(4)}, id="one of five"),
    pytest.param(named(report(5, ALONE)), {f"GPU{other}-GPU4": "warn" for other in range(4)}, id="one of five by CUDA"),
    pytest.param(named(report(8, ALL, model="NVIDIA H200")), {f"GPU{a}-GPU{b}": "warn" for a, b in PAIRS}, id="none"),
    pytest.param(named(report(8, ALL, model="NVIDIA H100 PCIe")), {}, id="none of cards"),
    pytest.param(named(report(8, ACROSS, model="Tesla P100-SXM2-16GB")), {}, id="of a cube of NVLinks"),
])  # fmt: skip
def test_access_is_judged(text: str, due: dict[str, str], file: Callable[[str], Path]) -> None:
    found = [each for each in assess(file(text)).findings if each.id == "p2p.status" and each.subject.peer]
    assert found
    bad = [each.judgement for each in found if each.status in (Status.WARN, Status.FAIL)]
    assert all((each.measured, each.expected) == (False, True) for each in bad)
    assert {
        f"{each.subject.name}-{each.subject.peer.name}": each.status.value
        for each in found
        if each.subject.peer and each.status in (Status.WARN, Status.FAIL)
    } == due


def _measured(*pairs: tuple[int, int, object], asked: slice = slice(None), mig: bool = False, vm: str = "") -> Box:
    """By GPUs of a DGX-1 what CUDA says of one direction; GPU0 and GPU1 are joined by an NVLink."""
    of = box("dgx-1-v100")
    figures = tuple(
        Measurement(kind="access", a=of.gpus[a].bdf or "", b=of.gpus[b].bdf or "", value=value,  # type: ignore[arg-type]
                    unit="", method="x", tool="x", how="measured", samples=(), runs=(), more={})
        for a, b, value in pairs
    )  # fmt: skip
    modes = tuple(replace(row, mig=mig) for row in rows(of.snapshot.gpu_modes))
    host = replace(of.snapshot.known_host, vm=vm or of.snapshot.known_host.vm)
    facts = replace(of.snapshot, measurement=figures, gpu_modes=modes, host=host)
    return replace(of, snapshot=facts, gpus=of.gpus[asked])


@pytest.mark.parametrize(("of", "due"), [
    (_measured((0, 1, False), (1, 0, False)), ["fail"]), (_measured((0, 1, True), (1, 0, True)), ["pass"]),
    (_measured((0, 1, False), (1, 0, False), mig=True), ["skip"]),
    (_measured((0, 1, False), (1, 0, False), vm="xen"), ["skip"]),
    (_measured((0, 1, False)), []),  # one direction says nothing of the other
    (_measured((0, 1, False), (1, 0, 1.0)), []),
    (_measured((0, 1, False), (1, 0, False), asked=slice(1, 2)), ["fail"]),
    (_measured((0, 1, False), (1, 0, False), asked=slice(2, 8)), []),
])  # fmt: skip
def test_access_of_pairs_that_were_asked_about(of: Box, due: list[str]) -> None:
    assert [judgement.status.value for judgement in judged(of).values()] == due


@pytest.mark.parametrize(("label", "nvlink"), [("NV4", True), ("PIX", False)])
def test_what_nvlink_joins_has_the_remedy_of_nvlink(label: str, nvlink: bool, file: Callable[[str], Path]) -> None:
    """And the evidence is the answer of both directions."""
    assessment = assess(file(report(4, {(1, 2)}, label)))
    (found,) = [each for each in assessment.findings if each.id == "p2p.status" and each.status is Status.FAIL]
    assert (f"check the kernel log for {NVLINK_XIDS}" in found.remedy) is nvlink
    assert [(each.where.partition(" ")[2], each.value) for each in found.judgement.evidence] == [
        ("0000:02:00.0 0000:03:00.0", False), ("0000:03:00.0 0000:02:00.0", True),
    ]  # fmt: skip


def test_access_is_shown(file: Callable[[str], Path]) -> None:
    pairs = peers(examine(file(report(4, both_ways((0, 2), (0, 3), (1, 2), (1, 3)))), PEERS))
    assert not isinstance(pairs, Judgement)
    assert {f"{pair.a.name}-{pair.b.name}": pair.verdict for pair in pairs} == {
        "GPU0-GPU1": "direct", "GPU2-GPU3": "direct",
        **dict.fromkeys(("GPU0-GPU2", "GPU0-GPU3", "GPU1-GPU2", "GPU1-GPU3"), "through the host"),
    }  # fmt: skip


@pytest.mark.parametrize(("word", "due"), [("OK", "pass"), ("CNS", "skip")])
def test_a_matrix_of_words_says_nothing_where_what_joins_the_gpus_is_unknown(
    word: str, due: str, file: Callable[[str], Path]
) -> None:
    text = "".join(f"GPU {n}: Tesla K80 (UUID: GPU-11111111-2222-3333-4444-55555555555{n})\n" for n in range(2))
    text += "".join(f"$ nvidia-smi topo -p2p {option}\n\tGPU0\tGPU1\nGPU0\tX\t{word}\nGPU1\t{word}\tX\n"
                    for option in "rw")  # fmt: skip
    (found,) = [each for each in assess(file(text)).findings if each.id == "p2p.status"]
    assert found.status.value == due
