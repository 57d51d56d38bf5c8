"""NVLinks, their counters and peers, and what NVML says of pairs of GPUs."""

from __future__ import annotations

import pytest
from fake_nvml_source import INVALID, LOST, NOT_SUPPORTED, FakeNvml, box
from nvml_boards import A100, K80, V100

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.nvlink import GpuPair, NvLink, P2pStatus
from probes.gpu.nvlink import gpu_pairs, nvlink, nvlink_capability, nvlink_errors, p2p

BDF = "0000:06:00.0"


def links_of(source: FakeNvml) -> tuple[NvLink, ...]:
    links = nvlink(source)
    assert not isinstance(links, Missing)
    return links


def states(**answers: Missing | int) -> dict[str, Missing | int]:
    return {f"nvmlDeviceGetNvLinkState {position[1:]}": answer for position, answer in answers.items()}


def test_a_v100_has_six_links_and_one_is_down() -> None:
    links = links_of(box(BDF, answers=V100))
    assert [link.up for link in links] == [True] * 5 + [False]
    assert [link.generation for link in links[:5]] == [2] * 5
    down = links[5]
    assert isinstance(down.generation, Missing)
    assert down.generation == down.remote_bdf == down.remote_type
    assert down.generation.gap is Gap.UNASKED


def test_a_peer_is_named_by_bus_id_or_its_legacy_form() -> None:
    plain, legacy, zeros, empty, silent = (link.remote_bdf for link in links_of(box(BDF, answers=V100))[:5])
    assert (plain, legacy) == ("0000:07:00.0", "0000:0a:00.0")
    assert isinstance(zeros, Missing)
    assert isinstance(empty, Missing)
    assert isinstance(silent, Missing)
    assert (zeros.gap, empty.gap, silent.gap) == (Gap.UNSUPPORTED, Gap.GARBLED, Gap.UNSUPPORTED)


def test_an_a100_has_twelve_links_to_switches() -> None:
    links = links_of(box(BDF, answers=A100))
    assert len(links) == 12
    assert {(link.up, link.generation, link.remote_type) for link in links} == {(True, 3, 2)}


def test_a_k80_has_no_links() -> None:
    source = box(BDF, answers=K80)
    assert nvlink(source) == ()
    assert nvlink_errors(source) == ()
    assert nvlink_capability(source) == ()


@pytest.mark.parametrize(
    ("version", "generation"),
    [
        (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 5), (8, 6),
        (9, Gap.UNSUPPORTED), (0xFE, Gap.UNSUPPORTED), (0, Gap.GARBLED), (0xFF, Gap.GARBLED), (1 << 20, Gap.GARBLED),
    ],
)  # fmt: skip
def test_the_version_is_an_enum_which_grows(version: int, generation: int | Gap) -> None:
    answers = {"nvmlDeviceGetNvLinkState 0": 1, "nvmlDeviceGetNvLinkVersion 0": version}
    got = links_of(box(BDF, answers=answers))[0].generation
    assert (got.gap if isinstance(got, Missing) else got) == generation


def test_a_position_that_is_not_supported_is_not_the_last() -> None:
    links = links_of(box(BDF, answers=states(_0=1, _1=NOT_SUPPORTED, _2=0)))
    assert [link.up for link in links] == [True, NOT_SUPPORTED, False]


def test_positions_end_at_an_invalid_argument() -> None:
    source = box(BDF, answers=states(_0=1, _1=INVALID, _2=1))
    assert [link.link for link in links_of(source)] == [0]


def test_a_lost_gpu_has_one_link_that_says_so() -> None:
    links = links_of(box(BDF, answers={f"nvmlDeviceGetNvLinkState {link}": LOST for link in range(36)}))
    assert [(link.link, link.up, link.remote_bdf) for link in links] == [(0, LOST, LOST)]


def test_a_state_that_is_no_state_is_garbled() -> None:
    up = links_of(box(BDF, answers=states(_0=2)))[0].up
    assert isinstance(up, Missing)
    assert up.gap is Gap.GARBLED


def test_error_counters_are_those_of_each_link() -> None:
    errors = nvlink_errors(box(BDF, answers=V100))
    assert not isinstance(errors, Missing)
    assert len(errors) == 6
    first = errors[0]
    assert (first.replay, first.recovery, first.crc_flit, first.crc_data) == (0, 1, 2, 3)
    assert isinstance(first.ecc_data, Missing)


def test_capabilities_are_those_of_each_link() -> None:
    capabilities = nvlink_capability(box(BDF, answers=V100))
    assert not isinstance(capabilities, Missing)
    first = capabilities[0]
    assert (first.p2p, first.sysmem_access, first.p2p_atomics, first.sysmem_atomics) == (True, True, True, True)
    assert (first.sli_bridge, first.valid) == (False, True)


def test_counters_of_a_link_without_a_state_have_its_gap() -> None:
    source = box(BDF, answers=states(_0=LOST))
    errors, capabilities = nvlink_errors(source), nvlink_capability(source)
    assert not isinstance(errors, Missing)
    assert not isinstance(capabilities, Missing)
    assert (errors[0].replay, capabilities[0].valid) == (LOST, LOST)


def test_the_ancestor_is_asked_once_per_pair_in_nvml_s_order() -> None:
    pairs = gpu_pairs(box("0000:0a:00.0", BDF, "0000:07:00.0", answers=V100))
    assert not isinstance(pairs, Missing)
    assert [(pair.a[5:7], pair.b[5:7]) for pair in pairs] == [("0a", "06"), ("0a", "07"), ("06", "07")]
    assert pairs[0] == GpuPair(a="0000:0a:00.0", b=BDF, common_ancestor=10)


def test_a_level_that_nvml_does_not_have_is_garbled() -> None:
    pairs = gpu_pairs(box(BDF, "0000:07:00.0", answers={"nvmlDeviceGetTopologyCommonAncestor": 15}))
    assert not isinstance(pairs, Missing)
    (pair,) = pairs
    assert isinstance(pair.common_ancestor, Missing)
    assert pair.common_ancestor.gap is Gap.GARBLED


def test_p2p_is_asked_in_both_directions() -> None:
    pairs = p2p(box(BDF, "0000:07:00.0", answers=V100))
    assert not isinstance(pairs, Missing)
    there = P2pStatus(a=BDF, b="0000:07:00.0", read="OK", write="OK", nvlink="OK", atomics="DR", prop="NS")
    back = P2pStatus(a="0000:07:00.0", b=BDF, read="OK", write="OK", nvlink="OK", atomics="DR", prop="NS")
    assert pairs == (there, back)


@pytest.mark.parametrize(
    ("status", "word"),
    [(0, "OK"), (1, "CNS"), (2, "GNS"), (3, "TNS"), (4, "DR"), (5, "NS"), (6, "U"), (7, None), (-1, None)],
)
def test_p2p_words_are_those_of_nvidia_smi(status: int, word: str | None) -> None:
    pairs = p2p(box(BDF, "0000:07:00.0", answers={"nvmlDeviceGetP2PStatus 0": status}))
    assert not isinstance(pairs, Missing)
    got = pairs[0].read
    assert got == word if word else isinstance(got, Missing) and got.gap is Gap.GARBLED
