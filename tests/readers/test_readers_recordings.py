"""Every recorded output of a benchmark: what is read of it, some of its figures, and how many lines nobody knows."""

from __future__ import annotations

import pytest
from checkout import ROOT
from readers_text import sane, unread, values

from dgxcheck.facts.missing import Json
from dgxcheck.readers.any_text import BENCHMARKS as READERS
from dgxcheck.readers.model import Imported

RECORDINGS = ROOT.parent / "shared" / "recordings" / "bench"
pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recordings are not part of the project")

P2P = "p2pBandwidthLatencyTest"
READ: dict[str, tuple[dict[str, int], int]] = {
    "azure_ND_A100_v4_results": ({}, 102),
    "azure_ND_H100_v5_results": ({}, 108),
    "azure_ND_H200_v5_results": ({}, 108),
    "bandwidthtest_7gforce_gpu0_keras-multi-gpu": ({"bandwidthTest": 3}, 0),
    "bandwidthtest_az-2x-m60_gpu0_keras-multi-gpu": ({"bandwidthTest": 3}, 0),
    "bandwidthtest_az-4x-m60_gpu0_keras-multi-gpu": ({"bandwidthTest": 3}, 0),
    "bandwidthtest_p100-a100_della": ({"bandwidthTest": 3}, 66),
    "bandwidthtest_p100-pcie_numa-right-and-wrong_gearshifft": ({"bandwidthTest": 3}, 6),
    "bandwidthtest_t4-a100-v100_router-gao": ({"bandwidthTest": 3}, 11),
    "gdrcopy_dgx1-v100-8gpu_readme": ({}, 155),
    "mxnet_bandwidth_8gpu-pcie": ({}, 122),
    "nccl_16x-a100_2node_ocihpcoke": ({"nccl-tests 2.17.9": 1}, 5),
    "nccl_2x-h100-pcie-bridge_nccltests194": ({"nccl-tests": 1}, 0),
    "nccl_4x-t4_likejazz": ({"nccl-tests": 1}, 3),
    "nccl_8x-a100-40gb_allreduce_superbench": ({"nccl-tests": 1}, 0),
    "nccl_8x-a100-40gb_alltoall_superbench": ({"nccl-tests": 1}, 0),
    "nccl_8x-a100-40gb_broadcast_superbench": ({"nccl-tests": 1}, 0),
    "nccl_8x-a100-40gb_reduce_superbench": ({"nccl-tests": 1}, 0),
    "nccl_8x-a100-40gb_reducescatter_superbench": ({"nccl-tests": 1}, 0),
    "nccl_dgx1_tartan_nccl-v1_bandwidth": ({"Tartan": 35}, 0),
    "nccl_dgx1_tartan_nccl-v1_latency": ({"Tartan": 35}, 0),
    "nccl_dgx1_tartan_nccl-v1_packet": ({"Tartan": 5}, 0),
    "nccl_dgx1_tartan_nccl-v2_bandwidth": ({"Tartan": 35}, 0),
    "nccl_dgx1_tartan_nccl-v2_latency": ({"Tartan": 35}, 0),
    "nccl_dgx1_tartan_nccl-v2_packet": ({"Tartan": 5}, 0),
    "nvbandwidth_6x-a6000_nvbandwidth50": ({"nvbandwidth v0.8": 30}, 0),
    "nvbandwidth_8gpu_readme": ({"nvbandwidth": 72}, 0),
    "nvbandwidth_gh200_superbench": ({"nvbandwidth v0.6": 19}, 0),
    "nvbandwidth_sm_8x-h100_asymmetry_nvbandwidth24": ({"nvbandwidth": 16}, 0),
    "nvbandwidth_verify-failure_8x-a100_nvbandwidth34": ({"nvbandwidth v0.7": 10}, 0),
    "p2p_6gpu-p2p-slower-than-host_nccl814": ({P2P: 72}, 1),
    "p2p_7gforce_keras-multi-gpu": ({P2P: 301}, 0),
    "p2p_8x-a100-hgx_nccltests100": ({P2P: 64}, 5),
    "p2p_8x-h100-hgx_nccl1264": ({P2P: 71}, 1),
    "p2p_asus-esc8000a-e12_stelline": ({P2P: 132}, 0),
    "p2p_az-2x-m60_keras-multi-gpu": ({P2P: 26}, 0),
    "p2p_dgx1-p100_tartan_ascending": ({P2P: 392}, 0),
    "p2p_dgx1-v100_nways_row0": ({P2P: 32}, 0),
    "p2p_dgx1_packet-sweep_tartan": ({"Tartan": 328}, 0),
    "p2p_puget-threadripper-pro-wrx90_stelline": ({P2P: 34}, 0),
    "seed_8x-k80_bandwidthtest_simplep2p_p2pbw": ({P2P: 200, "bandwidthTest": 3, "simpleP2P": 7}, 4),
    "seed_k80_nccl1_reduce_broadcast": ({"NCCL 1 tests": 5}, 6),
}
"""By file: the facts by tool, and the lines that nobody accounts for."""

FIGURES: dict[str, dict[str, Json]] = {
    # heading without (P2P Writes): the row is the receiver
    "p2p_dgx1-p100_tartan_ascending": {
        "p2p 0 1": 18.41,
        "p2p 5 0": 9.19,
        "p2p 0 5": 9.18,
        "p2p 3 0": 18.41,
        "p2p 0 3": 18.39,
        "p2p-off 2 0": 10.76,
        "p2p-both 0 1": 36.82,
        "latency 1 0": 9.88,
        "latency-off 7 0": 19.62,
        "access 0 5": False,
        "access 0 4": True,
    },
    "p2p_dgx1_packet-sweep_tartan": {"p2p 0 1": 18.48, "p2p-off 3 2": 9.43, "p2p-both 0 4": 36.96, "latency 1 0": 9.77},
    "p2p_dgx1-v100_nways_row0": {"p2p-both 0 3": 96.85, "latency 0 3": 2.01, "latency-off 0 1": 17.52},
    "p2p_7gforce_keras-multi-gpu": {"p2p-off 6 0": 0.78, "p2p-off 0 6": 0.81, "latency 0 1": 6.93},
    "p2p_8x-h100-hgx_nccl1264": {"p2p-off 0 1": 37.19, "p2p 0 6": 375.94},
    "p2p_8x-a100-hgx_nccltests100": {"latency-off 7 0": 24.51},
    # the reads of 3 from 0 and the writes of 0 to 3 are of one direction
    "p2p_6gpu-p2p-slower-than-host_nccl814": {"p2p-off 0 1": 20.1, "p2p 0 3": 9.95, "p2p 3 0": 10.23},
    "p2p_asus-esc8000a-e12_stelline": {"p2p 0 1": 26.33, "latency 2 0": 1.42, "latency-cpu 2 0": 1.72},
    "p2p_az-2x-m60_keras-multi-gpu": {"access 0 1": False, "p2p 0 1": 5.26, "latency 1 0": 23.37},
    "bandwidthtest_7gforce_gpu0_keras-multi-gpu": {"host-to-device 0": 0.7818},
    "bandwidthtest_p100-pcie_numa-right-and-wrong_gearshifft": {"host-to-device 0": 12.4423, "device-to-host 0": 13.2},
    "bandwidthtest_p100-a100_della": {"device-copy 0": 1251.4},
    "nvbandwidth_gh200_superbench": {"host-to-device 2": 412.11, "latency-host-sm 0": 772.58},
    # GPU(row) -> GPU(column) of the read test: data goes to the row
    "nvbandwidth_6x-a6000_nvbandwidth50": {"p2p 3 0": 21.95, "p2p 0 3": 21.82},
    "nvbandwidth_8gpu_readme": {"p2p 6 0": 274.89, "p2p 0 6": 276.55, "host-to-device-contended 0": 18.56},
    "nvbandwidth_sm_8x-h100_asymmetry_nvbandwidth24": {"host-to-device-sm 0": 35.19, "device-to-host-sm 0": 52.77},
    "nvbandwidth_verify-failure_8x-a100_nvbandwidth34": {"p2p all": "integrity", "p2p-integrity all": 1},
    "nccl_8x-a100-40gb_allreduce_superbench": {"collective all_reduce 8": 235.26},
    "nccl_16x-a100_2node_ocihpcoke": {"collective all_reduce 16": 189.6},
    "nccl_2x-h100-pcie-bridge_nccltests194": {"collective all_reduce 2": 115.86},
    "nccl_dgx1_tartan_nccl-v2_bandwidth": {"collective all_reduce 8": 62.24, "collective all_reduce 5": 5.57},
    "nccl_dgx1_tartan_nccl-v2_latency": {"collective-latency all_gather 8": 45.0},
    "seed_8x-k80_bandwidthtest_simplep2p_p2pbw": {
        "host-to-device 0": 7.8723,
        "access 0 4": False,
        "p2p-both 0 1": 19.39,
        "latency 4 0": 29.89,
    },
    "seed_k80_nccl1_reduce_broadcast": {"collective reduce 2": 7.09, "collective broadcast 2": 11.03},
}


def reading(name: str) -> tuple[list[Imported], str]:
    text = (RECORDINGS / f"{name}.txt").read_text(encoding="utf-8", errors="replace")
    return [part for read in READERS for part in read(tuple(text.splitlines()))], text


@pytest.mark.parametrize("name", READ)
def test_a_recording_is_read(name: str) -> None:
    found, text = reading(name)
    facts, left = READ[name]
    assert {part.tool: len(part.facts) for part in found} == facts
    assert len(unread(found, text)) == left
    assert all(sane(part) for part in found)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_a_recording(name: str) -> None:
    known: dict[str, Json] = {}
    for part in reading(name)[0]:
        known |= values(part)
    assert {key: known.get(key) for key in FIGURES[name]} == FIGURES[name]


def test_no_recording_is_forgotten() -> None:
    assert {path.stem for path in RECORDINGS.glob("*.txt")} == set(READ)
