"""Slow figures: what is common to the slow ones, or left when all is taken away that good ones crossed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import combinations, permutations
from pathlib import Path

import pytest
from judging import of_text
from measured_box import GPUS, fact, overlay
from sample import FAULTS, swept
from test_diagnosis import components, health

from dgxcheck.facts.missing import Json

Pair = tuple[int, int]
SPEED = {1: 24.2, 2: 47.9}
LINKS: Mapping[Pair, int] = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
    (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip
"""NVLinks of each pair of a DGX-1 V100."""
K80 = [f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a")]


def nvlink(slow: Iterable[Pair], measured: Iterable[Pair] = tuple(LINKS)) -> dict[str, Json]:
    """One-way copies over the NVLinks of these pairs, some at half of what they can."""
    low = {*slow}
    return {
        f"p2p {GPUS[x]} {GPUS[y]}": fact(SPEED[LINKS[a, b]] / (2 if (a, b) in low else 1))
        for a, b in measured
        for x, y in ((a, b), (b, a))
    }


def k80(slow: Iterable[Pair]) -> dict[str, Json]:
    """Copies over PCIe both ways at once, some at a third."""
    low = {*slow}
    return {
        f"p2p-both {K80[a]} {K80[b]}": fact(17.5 / (3 if (a, b) in low else 1)) for a, b in combinations(range(8), 2)
    }


def host(slow: Iterable[int]) -> dict[str, Json]:
    low = {*slow}
    return {
        f"{kind} {gpu}": fact((12.1 if kind == "host-to-device" else 12.6) / (3 if number in low else 1))
        for number, gpu in enumerate(GPUS)
        for kind in ("host-to-device", "device-to-host")
    }


def blamed(folder: Path, facts: Mapping[str, Json], base: str = "dgx-1-v100") -> set[tuple[str, str, str | None]]:
    named = ("--profile", "k80-x8") if base == "k80-x8" else ()
    document = health(overlay(folder, facts, base), *named)
    assert bool(document["causes"]) != bool(document["unexplained"])
    return components(document)


@pytest.mark.parametrize("pair", swept([(pair,) for pair in LINKS], 5))
def test_one_slow_pair_is_its_nvlinks(pair: Pair, tmp_path: Path) -> None:
    (found,) = blamed(tmp_path, nvlink([pair]))
    assert found == ("nvlink", GPUS[pair[0]], None)


@pytest.mark.parametrize("gpu", range(8))
def test_all_pairs_of_a_gpu_are_its_nvlink(gpu: int, tmp_path: Path) -> None:
    (found,) = blamed(tmp_path, nvlink(pair for pair in LINKS if gpu in pair))
    assert found == ("gpu", GPUS[gpu], "NVLink")


NAMED = "".join(f"Device: {n}, NVIDIA H100 80GB HBM3, pciBusID: {n + 16:x}, pciDeviceID: 0, pciDomainID:0\n"
                for n in range(8))  # fmt: skip


@pytest.mark.parametrize(("head", "slow", "blamed"), [
    (NAMED, [(3, n) for n in range(8) if n != 3], [("gpu", "GPU3", "NVLink")]),
    ("", [(3, n) for n in range(8) if n != 3], [("gpu", "GPU3", "")]),
])
def test_a_matrix_of_nvswitches_whose_pairs_are_slow(
    head: str, slow: list[Pair], blamed: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    rates = {(a, b): 120 if (a, b) in slow or (b, a) in slow else 375 for a, b in permutations(range(8), 2)}
    rows = "".join(f"{a:6} {' '.join(f'{rates.get((a, b), 2490):.2f}' for b in range(8))}\n" for a in range(8))
    text = f"{head}Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D 0 1 2 3 4 5 6 7\n{rows}"
    found = [each["component"] for each in of_text(text, tmp_path)[1]["causes"]]
    assert [(each["kind"], each["name"], each["part"] or "") for each in found] == blamed


def test_two_slow_pairs_apart_are_two_causes(tmp_path: Path) -> None:
    assert blamed(tmp_path, nvlink([(0, 3), (5, 6)])) == {("nvlink", GPUS[0], None), ("nvlink", GPUS[5], None)}


def test_a_slow_pair_of_which_nothing_is_cleared_has_no_cause(tmp_path: Path) -> None:
    assert blamed(tmp_path, nvlink([(2, 3)], measured=[(2, 3)])) == set()


def test_a_slow_collective_is_the_slow_pairs(tmp_path: Path) -> None:
    slow = nvlink([(2, 3)]) | {"collective all_reduce 8": fact(60.0, wrong=0, sizes=[[1 << 28, 1.0, 1.0, 60.0]])}
    assert blamed(tmp_path, slow) == {("nvlink", GPUS[2], None)}


def test_a_slow_collective_of_fast_pairs_is_ncclS_settings(tmp_path: Path) -> None:
    slow = nvlink([]) | {"collective all_reduce 8": fact(30.0, wrong=0, sizes=[[1 << 28, 1.0, 1.0, 30.0]])}
    assert blamed(tmp_path, slow) == {("host", "host", "settings of NCCL")}


@pytest.mark.parametrize(
    ("slow", "due"),
    [
        ([2, 3], ("link", "0000:08:00.0", None)),
        ([5], None),
        ([4, 5, 6, 7], ("host", "host", "memory bandwidth at NUMA node 1")),
        (range(8), ("host", "host", "memory bandwidth")),
    ],
    ids=["switch", "gpu", "socket", "all"],
)
def test_host_copies_are_what_the_slow_ones_share(
    slow: list[int], due: tuple[str, str, str | None] | None, tmp_path: Path
) -> None:
    found = blamed(tmp_path, host(slow) | {f"device-copy {gpu}": fact(760.0) for gpu in GPUS})
    assert found == ({due} if due else {("link", GPUS[5], None)})


def test_slow_pairs_across_the_sockets_are_what_joins_these(tmp_path: Path) -> None:
    across = [(a, b) for a, b in combinations(range(8), 2) if (a < 4) != (b < 4)]
    copies = {f"{kind} {gpu}": fact(7.8) for gpu in K80 for kind in ("host-to-device", "device-to-host")}
    due = {("socket-interconnect", "NUMA nodes 0 and 1", None)}
    assert blamed(tmp_path, k80(across) | copies, "k80-x8") == due


def test_where_two_things_are_common_both_are_named(tmp_path: Path) -> None:
    """All four GPUs of socket 0 reach the other through one link: without copies to the host it may be that."""
    across = [(a, b) for a, b in combinations(range(8), 2) if (a < 4) != (b < 4)]
    (cause,) = health(overlay(tmp_path, k80(across), "k80-x8"), "--profile", "k80-x8")["causes"]
    assert cause["confidence"]["level"] == "guess"
    assert "NUMA nodes 0 and 1" in cause["confidence"]["text"]


@pytest.mark.parametrize("iommu", [False, True])
def test_slow_pairs_behind_acs_or_an_iommu_are_the_setting(iommu: bool, tmp_path: Path) -> None:
    """The IOMMU goes first: while it translates ACS must stay as the kernel has set it."""
    overlay = json.loads(Path(FAULTS["k80-x8-p2p-acs"]).read_text(encoding="utf-8"))
    overlay["add"] = {f"measure {key}": value for key, value in k80([(2, 3)]).items()}
    if iommu:
        for number, gpu in enumerate(K80):
            overlay["facts"][f"link /sys/bus/pci/devices/{gpu}/iommu_group"] = f"../../../kernel/iommu_groups/{number}"
            overlay["add"][f"text /sys/kernel/iommu_groups/{number}/type"] = "DMA\n"
    path = tmp_path / "both.json"
    path.write_text(json.dumps(overlay), encoding="utf-8")
    (cause,) = health(str(path), "--profile", "k80-x8")["causes"]
    port = {"kind": "bridge", "bdf": "0000:09:08.0", "part": "ACS setting"}
    assert cause["component"].items() >= ({"kind": "host", "part": "IOMMU setting"} if iommu else port).items()
    explained = {key.partition("/")[0] for key in cause["explains"]}
    assert explained == {"p2p.status", "measure.p2p-bandwidth", "gdr.iommu" if iommu else "gdr.acs"}
    assert ("iommu=pt" if iommu else "setpci -s 0000:09:08.0 ECAP_ACS+0x6.w=0:3c") in cause["action"]["text"]
    assert ("setpci" in json.dumps(cause["action"])) is not iommu


def test_every_pair_slow_is_one_cause_of_the_host(tmp_path: Path) -> None:
    assert len(blamed(tmp_path, nvlink(LINKS))) == 1
    assert len(blamed(tmp_path, k80(combinations(range(8), 2)), "k80-x8")) == 1


@pytest.mark.parametrize("iommu", [False, True])
def test_p2p_that_is_refused_below_a_bridge_is_one_setting(iommu: bool, tmp_path: Path) -> None:
    refused: dict[str, Json] = {
        f"nvml nvmlDeviceGetP2PStatus {a} {b} {way}": 1 for a, b in permutations(K80[:4], 2) for way in (0, 1)
    }
    add: dict[str, Json] = {}
    if iommu:
        refused |= {
            f"link /sys/bus/pci/devices/{gpu}/iommu_group": f"../../../kernel/iommu_groups/{number}"
            for number, gpu in enumerate(K80)
        }
        add = {f"text /sys/kernel/iommu_groups/{number}/type": "DMA\n" for number in range(8)}
    document = {"schema": "dgxcheck/overlay/1", "base": "k80-x8", "facts": refused, "add": add}
    path = tmp_path / "refused.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    found = components(health(str(path), "--profile", "k80-x8"))
    assert found == {("host", "host", "IOMMU setting" if iommu else "P2P setting")}


def test_a_part_that_good_figures_clear_is_not_blamed_for_a_slow_one(tmp_path: Path) -> None:
    """The memory of GPU2 has errors, and its copies are fast but for one pair: that is the pair's NVLinks."""
    document = json.loads(Path(FAULTS["dgx-1-v100-xid-63"]).read_text(encoding="utf-8"))
    document["add"] = document.get("add", {}) | {f"measure {key}": value for key, value in nvlink([(2, 3)]).items()}
    path = tmp_path / "both.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert components(health(str(path))) == {("gpu", GPUS[2], "memory"), ("nvlink", GPUS[2], None)}


def test_wrong_values_are_no_slow_figure(tmp_path: Path) -> None:
    wrong = nvlink([]) | {"collective all_reduce 8": fact(130.0, wrong=3, sizes=[[1 << 28, 1.0, 1.0, 130.0]])}
    assert blamed(tmp_path, wrong) == {("host", "host", "results of NCCL at all_reduce 8")}
