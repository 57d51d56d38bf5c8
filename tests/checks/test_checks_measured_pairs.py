"""Between GPUs: bandwidth, latency and whether the data arrive; thresholds, gaps, and what figures alone tell."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from measured_box import GPUS, P100_EDGES, dgx1_p100, fact, found, imported, measured, said, words
from test_checks_measured_gpus import GAPS

from dgxcheck.facts.missing import Json

BANDWIDTH, LATENCY, INTEGRITY = "measure.p2p-bandwidth", "measure.p2p-latency", "measure.p2p-integrity"
MEMORY = "measure.memory-integrity"
AB, BA = f"{GPUS[2]} {GPUS[3]}", f"{GPUS[3]} {GPUS[2]}"
PAIR = "GPU2 GPU3"


@pytest.mark.parametrize(("check", "count"), [(BANDWIDTH, 28), (LATENCY, 16), (INTEGRITY, 28), (MEMORY, 8)])
def test_a_good_box_passes(check: str, count: int, tmp_path: Path) -> None:
    box = measured(tmp_path, dgx1_p100())
    assert len(found(box, check)) == count
    assert said(box, check) == {}


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({f"p2p {AB}": fact(16.6), f"p2p {BA}": fact(16.6)}, ""),
        ({f"p2p {AB}": fact(16.5)}, "warn"),
        ({f"p2p {AB}": fact(13.7)}, "fail"),
        ({f"p2p-both {AB}": fact(33.0)}, "warn"),
        ({f"p2p-both {AB}": fact(18.4)}, "fail"),
        ({f"p2p-off {AB}": fact(8.2)}, "warn"),
        ({f"p2p-off {AB}": fact(6.8)}, "warn"),
        ({f"p2p-off-both {AB}": fact(6.9)}, "warn"),
        ({f"p2p {AB}": fact(18.4, runs=[{"value": 18.4}, {"value": 11}])}, "warn"),
        ({f"p2p {AB}": fact(4.0), f"access {AB}": fact(False, ""), f"access {BA}": fact(False, ""),
          f"p2p {BA}": fact(4.0)}, ""),  # through the host, as the tool says itself
    ],
)  # fmt: skip
def test_bandwidth_against_the_profile(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert said(measured(tmp_path, dgx1_p100() | facts), BANDWIDTH) == ({PAIR: due} if due else {})


def test_a_finding_names_the_direction(tmp_path: Path) -> None:
    low = fact(9.2, retries=[[9.1]])
    finding = found(measured(tmp_path, dgx1_p100() | {f"p2p {BA}": low}), BANDWIDTH)[PAIR]
    assert finding.judgement.message == (
        "GPU3 to GPU2, P2P on: 9.2 GB/s, 50 % of 18.4 GB/s; expected by dgx-1-p100, best of 2 measurements"
    )
    assert (finding.judgement.measured, finding.judgement.expected) == (9.2, 18.4)
    assert finding.key == f"{BANDWIDTH}/{GPUS[2]}/{GPUS[3]}"


def simulated(facts: dict[str, Json]) -> dict[str, Json]:
    return {key: {**each, "how": "simulated"} for key, each in facts.items() if isinstance(each, dict)}


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, {}),
        ({f"p2p {AB}": fact(9.2), f"p2p {BA}": fact(9.2)}, {PAIR: "warn"}),
        ({f"p2p {AB}": fact(16.4)}, {PAIR: "warn"}),  # the way back has 18.41
        ({f"p2p {AB}": fact(16.7)}, {}),
    ],
)
@pytest.mark.parametrize("profile", ["auto", "none"])
def test_what_is_simulated_or_unknown_warns_at_most(
    facts: dict[str, Json], due: dict[str, str], profile: str, tmp_path: Path
) -> None:
    good = {key: each for key, each in dgx1_p100().items() if not key.startswith("p2p-both")} | facts
    assert said(measured(tmp_path, simulated(good) if profile == "auto" else good, profile=profile), BANDWIDTH) == due


def matrix(kind: str, value: float, gpus: int = 6) -> dict[str, Json]:
    return {f"{kind} {a} {b}": fact(value) for a, b in permutations(range(gpus), 2)}


def test_p2p_slower_than_staged_is_told_once() -> None:
    """As in NVIDIA/nccl issue 814: 9.9 with P2P on, 22 with P2P off."""
    slow = matrix("p2p", 9.9) | matrix("p2p-off", 22.2)
    dead: Json = {"failed": "crashed (SIGSEGV)", "detail": "x"}
    beside = slow | {"p2p 0 7": fact(9.9), "p2p-off 0 7": dead, "p2p 1 7": dead, "p2p-off 1 7": fact(9.9)}
    kept = {key: status for key, status in said(imported(beside), BANDWIDTH).items() if "GPU7" in key or key == "host"}
    assert kept == {"GPU0 GPU7": "fail", "GPU1 GPU7": "fail", "host": "warn"}
    told = said(imported(slow), BANDWIDTH)
    assert {key: status for key, status in told.items() if status != "skip dependency-failed"} == {"host": "warn"}
    assert len(told) == 16
    assert found(imported(slow), BANDWIDTH)["host"].remedy.startswith("check NVLinks, if any join them")
    three, two = ({**matrix("p2p", 9.9, gpus), **matrix("p2p-off", 22.2, gpus)} for gpus in (3, 2))
    assert (said(imported(three), BANDWIDTH)["host"], said(imported(two), BANDWIDTH)) == ("warn", {"GPU0 GPU1": "warn"})
    one = matrix("p2p", 26.3) | matrix("p2p-off", 22.2) | {"p2p 2 4": fact(19.9), "p2p 4 2": fact(19.9)}
    assert said(imported(one), BANDWIDTH) == {"GPU2 GPU4": "warn"}
    near = matrix("p2p", 20.1) | matrix("p2p-off", 22.2)
    assert said(imported(near), BANDWIDTH) == {}
    barred = slow | {f"access {a} {b}": fact(False, "") for a, b in permutations(range(6), 2)}
    assert said(imported(barred), BANDWIDTH) == {}


@pytest.mark.parametrize(("base", "first"), [
    ("dgx-1-p100", "check NVLinks (nvidia-smi"), ("pcie-x4", "see whether ACS or an IOMMU"),
])  # fmt: skip
def test_what_joins_the_pairs_is_the_first_to_check(base: str, first: str, tmp_path: Path) -> None:
    bdfs = [gpu.bdf for gpu in measured(tmp_path, {}, base).topology.gpus]
    facts = {f"{kind} {a} {b}": fact(value) for a, b in permutations(bdfs, 2)
             for kind, value in (("p2p", 9.9), ("p2p-off", 22.2))}  # fmt: skip
    assert found(measured(tmp_path, facts, base, "none"), BANDWIDTH)["host"].remedy.startswith(first)


@pytest.mark.parametrize(("on", "failed", "host"), [(4.0, len(P100_EDGES), None), (18.4, 0, "warn")])
def test_pairs_that_the_reference_calls_slow_are_told_one_by_one(
    on: float, failed: int, host: str | None, tmp_path: Path
) -> None:
    values = {"p2p": on, "p2p-off": max(9.4, on + 3)}
    facts = {key: fact(values[kind]) if (kind := key.partition(" ")[0]) in values else each
             for key, each in dgx1_p100().items()}  # fmt: skip
    told = said(measured(tmp_path, facts), BANDWIDTH)
    assert (told.get("host"), [*told.values()].count("fail")) == (host, failed)


@pytest.mark.parametrize(("facts", "due"), [
    ({"p2p 1 0": fact(18.0)}, {}),
    ({"p2p 1 0": fact(17.9)}, {"GPU0 GPU1": "warn"}),
    ({"p2p 1 0": fact(9, tool="another")}, {}),
    ({"p2p 1 0": fact(9, how="simulated")}, {}),
    ({"p2p-both 1 0": fact(20), "p2p-off-both 0 1": fact(40)}, {"GPU0 GPU1": "warn"}),
    ({"p2p-both 1 0": fact(37), "p2p-off-both 0 1": fact(40)}, {}),
])  # fmt: skip
def test_figures_of_a_pair_without_a_box(facts: dict[str, Json], due: dict[str, str]) -> None:
    assert said(imported({"p2p 0 1": fact(20), **facts}), BANDWIDTH) == due


@pytest.mark.parametrize(("gpus", "usual", "slow", "value", "due"), [
    (4, 274.1, ((0, 2),), 22.3, ["GPU0 GPU2"]),
    (4, 274.1, ((0, 2),), 246.0, ["GPU0 GPU2"]),
    (4, 274.1, ((0, 2),), 247.0, []),
    (8, 143.4, tuple((5, other) for other in range(8) if other != 5), 119.8,  # five of six links
     [f"GPU{min(5, other)} GPU{max(5, other)}" for other in range(8) if other != 5]),
    (8, 24.0, ((0, 2),), 20.0, []),
    (4, 48.2, ((0, 2), (1, 3)), 14.1, []),  # two thirds are alike, as on a DGX-1 whose GPUs 0 and 2 have no NVLink
    (4, 20.0, ((0, 2),), 14.1, ["GPU0 GPU2"]),
    (3, 274.1, ((0, 2),), 79.7, []),
    (8, 374.0, tuple((5, other) for other in range(8) if other != 5), 187.0,
     [f"GPU{min(5, other)} GPU{max(5, other)}" for other in range(8) if other != 5]),
    (8, 64.0, tuple((5, other) for other in range(8) if other != 5), 46.0, []),  # no faster than PCIe of generation 5
    (8, 20.0, tuple((5, other) for other in range(8) if other != 5), 14.0, []),  # alone at another socket
])  # fmt: skip
def test_a_pair_below_all_others_without_a_box(
    gpus: int, usual: float, slow: tuple[tuple[int, int], ...], value: float, due: list[str]
) -> None:
    """The links are unknown: 14 of 48 GB/s is sound on a DGX-1; half is not where all others are alike."""
    rates = {f"p2p {a} {b}": fact(usual) for a, b in permutations(range(gpus), 2)}
    rates |= {f"p2p {a} {b}": fact(value) for pair in slow for a, b in permutations(pair)}
    assert said(imported(rates), BANDWIDTH) == dict.fromkeys(due, "warn")


def test_both_directions_at_once_are_no_faster_link() -> None:
    """95 GB/s are two directions of PCIe of generation 5: the GPU alone at its socket is a little slower."""
    rates = {f"p2p-both {a} {b}": fact(82 if 7 in (a, b) else 95) for a, b in permutations(range(8), 2)}
    assert said(imported(rates), BANDWIDTH) == {}


def test_pairs_joined_alike(tmp_path: Path) -> None:
    """Half of one class of pairs of a box that nobody knows: below the median, though within the profile's limits."""
    links = {f"p2p {a} {b}": fact(18.4) for a, b in permutations((GPUS[0], GPUS[1], GPUS[2], GPUS[3]), 2)}
    slow = {f"p2p {AB}": fact(16.5), f"p2p {BA}": fact(16.5)}
    assert said(measured(tmp_path, links | slow, profile="none"), BANDWIDTH) == {PAIR: "warn"}


@pytest.mark.parametrize(
    ("on", "off", "access", "due"),
    [
        (9.9, 18.8, True, ""),
        (6.0, 10.0, True, ""),
        (6.01, 10.0, True, "warn"),
        (22.8, 19.6, False, "skip not-supported"),
        (22.8, 19.6, None, "skip not-recorded"),
        (9.9, 18.8, 1, "skip not-recorded"),
        (9.9, None, True, "skip not-recorded"),
        (9.9, 0, True, "skip not-recorded"),
        (0, 18.8, True, "skip not-recorded"),
        (0.9, 1.0, True, "warn"),
    ],
)
def test_latency(on: float, off: float | None, access: bool | None, due: str) -> None:
    facts = {"latency 0 1": fact(on, "us")}
    facts |= {} if off is None else {"latency-off 0 1": fact(off, "us")}
    facts |= {} if access is None else {"access 0 1": fact(access, "")}
    assert said(imported(facts), LATENCY) == ({"GPU0 GPU1": due} if due else {})


@pytest.mark.parametrize(("other", "linked"), [(3, True), (7, False)])
def test_nvlinks_are_looked_at_where_they_join_the_pair(other: int, linked: bool, tmp_path: Path) -> None:
    ends = f"{GPUS[2]} {GPUS[other]}"
    slow = {f"latency {ends}": fact(18, "us"), f"access {ends}": fact(True, "")}
    finding = found(measured(tmp_path, dgx1_p100() | slow), LATENCY)[f"GPU2 GPU{other}"]
    assert (finding.status.value, bool(finding.judgement.remedy)) == ("warn", linked)


@pytest.mark.parametrize(("gpus", "slow", "due"), [
    (4, {"latency 0 1": 2.5}, {"GPU0 GPU1": "warn"}),
    (4, {"latency 0 1": 2.3}, {}),
    (3, {"latency 0 1": 2.5}, {}),
    (4, {"latency 0 1": 2.5} | {f"latency {gpu} {gpu}": 0.2 for gpu in range(4)}, {"GPU0 GPU1": "warn"}),
    (4, {"latency 0 1": 2.5, "latency 1 2": 2.5, "latency 2 3": 2.5}, {}),  # no longer nearly all
])  # fmt: skip
def test_a_latency_of_twice_that_of_the_others(gpus: int, slow: dict[str, float], due: dict[str, str]) -> None:
    facts = {f"latency {a} {b}": fact(1.2, "us") for a, b in permutations(range(gpus), 2)}
    found = said(imported(facts | {key: fact(value, "us") for key, value in slow.items()}), LATENCY)
    assert {key: status for key, status in found.items() if status != "skip not-recorded"} == due


def test_latencies_of_two_methods_are_not_compared() -> None:
    facts = {"latency 0 1": fact(19, "us"), "access 0 1": fact(True, ""), "latency-off 0 1": fact(20, "us", method="x")}
    assert said(imported(facts), LATENCY) == {"GPU0 GPU1": "skip not-recorded"}


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize(("check", "kind"), [(BANDWIDTH, "p2p"), (LATENCY, "latency"), (INTEGRITY, "p2p-integrity")])
def test_where_there_is_no_figure(check: str, kind: str, gap: tuple[Json, str]) -> None:
    facts = {f"{kind} 0 1": gap[0], "access 0 1": fact(True, "")}
    assert said(imported(facts), check) == {"GPU0 GPU1": gap[1]}


@pytest.mark.parametrize(("facts", "message"), [
    ({}, "no wrong words either way in 64 MiB"),
    ({f"p2p-integrity {AB}": fact(0, "words")}, "no wrong words either way"),
    ({f"p2p-integrity {BA}": None}, "GPU2 to GPU3: no wrong words in 64 MiB"),
])  # fmt: skip
def test_how_much_was_compared(facts: dict[str, Json], message: str, tmp_path: Path) -> None:
    known = {key: each for key, each in (dgx1_p100() | facts).items() if each is not None}
    assert found(measured(tmp_path, known), INTEGRITY)[PAIR].judgement.message == message


def test_wrong_words_are_told_once_and_nothing_is_said_of_their_speed(tmp_path: Path) -> None:
    wrong = words(3, by={"ce": 0, "sm": 3, "ping-pong": 0}, timed_out=False)
    unread: Json = {"failed": "integrity", "detail": "3 words wrong"}
    facts = dgx1_p100() | {f"p2p-integrity {AB}": wrong, f"p2p {AB}": unread, f"p2p-both {AB}": unread}
    box = measured(tmp_path, facts)
    assert said(box, INTEGRITY) == {PAIR: "fail"}
    assert found(box, INTEGRITY)[PAIR].judgement.message == (
        "GPU2 to GPU3: 3 wrong words in 64 MiB (3 by stores of a kernel), first at byte 4096"
    )
    assert said(box, BANDWIDTH) == {PAIR: "skip dependency-failed"}
    assert said(box, LATENCY) == {}


def test_wrong_words_somewhere_are_the_host_s() -> None:
    """nvbandwidth gives up at the first wrong pattern and does not say between which GPUs."""
    box = imported({"p2p-integrity all": words(1)})
    assert said(box, INTEGRITY) == {"host": "fail"}
    told = found(box, INTEGRITY)["host"].judgement.message
    assert told == "some GPUs: 1 wrong word in 64 MiB, first at byte 4096"
    bare = found(imported({"p2p-integrity all": fact(1, "words")}), INTEGRITY)["host"]
    assert bare.judgement.message == "some GPUs: 1 wrong word"


def test_kernels_that_wait_in_vain_fail(tmp_path: Path) -> None:
    facts = {f"p2p-integrity {BA}": words(timed_out=True), f"p2p {AB}": fact(4)}
    box = measured(tmp_path, dgx1_p100() | facts)
    assert said(box, INTEGRITY) == {PAIR: "fail"}
    assert said(box, BANDWIDTH) == {PAIR: "skip dependency-failed"}
    assert "GPU3 to GPU2" in found(box, INTEGRITY)[PAIR].judgement.message


def test_memory_that_is_wrong_is_the_gpu_s_alone(tmp_path: Path) -> None:
    facts = dgx1_p100() | {f"memory-integrity {GPUS[2]}": words(1), f"p2p-integrity {BA}": words(1)}
    box = measured(tmp_path, facts)
    assert said(box, MEMORY) == {"GPU2": "fail"}
    assert said(box, INTEGRITY) == {PAIR: "skip dependency-failed"}


def test_a_pair_that_hangs_is_told_once(tmp_path: Path) -> None:
    hung: Json = {"missing": "timeout", "detail": "no answer for 120 s"}
    facts = dgx1_p100() | {f"{kind} {AB}": hung for kind in ("p2p", "latency")}
    box = measured(tmp_path, facts)
    assert said(box, BANDWIDTH) == {PAIR: "fail"}
    assert found(box, BANDWIDTH)[PAIR].judgement.message == "GPU2 to GPU3, P2P on: hung, no answer for 120 s"
    assert said(box, LATENCY) == {PAIR: "skip dependency-failed"}


def test_a_nvlink_error_is_named_in_words(tmp_path: Path) -> None:
    bad: Json = {"failed": "CUDA_ERROR_NVLINK_UNCORRECTABLE", "code": 220, "detail": "cuStreamQuery"}
    finding = found(measured(tmp_path, dgx1_p100() | {f"p2p {AB}": bad}), BANDWIDTH)[PAIR]
    assert "GPU2 to GPU3, P2P on: failed with an uncorrectable NVLink error" in finding.judgement.message


@pytest.mark.parametrize("check", [BANDWIDTH, LATENCY, INTEGRITY])
def test_nothing_measured_is_one_skip(check: str) -> None:
    assert said(imported({"device-copy 0": fact(500)}), check) == {"host": "skip not-recorded"}


@pytest.mark.parametrize(("gbs", "due"), [(7.2, {}), (6.8, {"GPU0 GPU4": "warn"}), (10.0, {})])
def test_copies_through_host_memory_are_no_slower_across_sockets(
    gbs: float, due: dict[str, str], tmp_path: Path
) -> None:
    """On a box without a reference; 9.2 to 9.7 GB/s within a socket of a DGX-1, 10.0 across (uuudown/Tartan)."""
    buses = [f"0000:{bus}:00.0" for bus in ("04", "05", "08", "84")]
    near = {f"p2p-off {a} {b}": fact(9.4) for a in buses[:3] for b in buses[:3] if a != b}
    far = {f"p2p-off {buses[0]} {buses[3]}": fact(gbs)}
    assert said(measured(tmp_path, near | far, base="pcie-x8"), BANDWIDTH) == due
