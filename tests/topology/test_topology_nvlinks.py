"""NVLinks between GPUs: both ends, switches, and ends that do not answer."""

from __future__ import annotations

import pytest
from topology_boxes import DGX1_GPUS, Box, dgx1, down, fabric, gpu_at, nvlink, nvml, tree

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace


def test_the_lower_count_of_two_ends_counts_and_is_noted() -> None:
    bdfs = ["0000:01:00.0", "0000:02:00.0"]
    links = (nvlink(bdfs[0], 0, bdfs[1]), nvlink(bdfs[0], 1, bdfs[1]), nvlink(bdfs[1], 0, bdfs[0]), down(bdfs[1], 1))
    ends = [gpu_at("pci0000:00", f"0000:00:0{i}.0", bdf, node=0) for i, bdf in enumerate(bdfs)]
    topology = Box(functions=tree(ends), nvml=nvml(bdfs), nvlinks=links).topology()
    assert next(iter(topology.links)).label == "NV1"
    note = "GPU0 reports 2 links up to GPU1, GPU1 reports 1 link up to GPU0: using the lower count."
    assert topology.notes == (note,)


@pytest.mark.parametrize("silent", [0, 1])
def test_one_silent_end_leaves_the_word_to_the_other(silent: int) -> None:
    bdfs = ["0000:01:00.0", "0000:02:00.0"]
    gap = Missing(Gap.TIMEOUT, "nvmlDeviceGetNvLinkState", "no answer")
    links = (nvlink(bdfs[1 - silent], 0, bdfs[silent]), down(bdfs[silent], 0, up=gap))
    ends = [gpu_at("pci0000:00", f"0000:00:0{i}.0", bdf, node=0) for i, bdf in enumerate(bdfs)]
    topology = Box(functions=tree(ends), nvml=nvml(bdfs), nvlinks=links).topology()
    assert next(iter(topology.links)).label == "NV1"
    assert topology.notes == (f"Some NVLinks of GPU{silent} are unknown (nvmlDeviceGetNvLinkState: no answer).",)
    both = Box(functions=tree(ends), nvml=nvml(bdfs), nvlinks=tuple(down(bdf, 0, up=gap) for bdf in bdfs)).topology()
    assert (next(iter(both.links)).nvlinks, next(iter(both.links)).label) == (None, "PHB")
    assert "GPU0" in next(iter(both.links)).nvlink_reason


def test_boards_without_nvlink_have_none() -> None:
    bdfs = ["0000:01:00.0", "0000:02:00.0"]
    unsupported = Missing(Gap.UNSUPPORTED, "nvmlDeviceGetNvLinkState", "NVML 3: Not Supported", 3)
    ends = [gpu_at("pci0000:00", f"0000:00:0{i}.0", bdf, node=0) for i, bdf in enumerate(bdfs)]
    for links in ((), tuple(down(bdf, 0, up=unsupported) for bdf in bdfs)):
        topology = Box(functions=tree(ends), nvml=nvml(bdfs), nvlinks=links).topology()
        assert (next(iter(topology.links)).nvlinks, next(iter(topology.links)).nvlink_reason) == (0, "")
        assert topology.gpus[0].nvlink_positions == 0
        assert topology.notes == ()


@pytest.mark.parametrize("kind", [2, Missing(Gap.UNSUPPORTED, "nvmlDeviceGetNvLinkRemoteDeviceType")])
def test_nvswitch_pairs_count_what_both_have_to_each_switch(kind: int | Missing) -> None:
    """Below R470 the kind of a peer comes from its PCI class."""
    box = fabric(4, 6, 2, kind)
    topology = box.topology()
    assert {link.label for link in topology.links} == {"NV12"}
    assert all(link.switched for link in topology.links)
    assert not isinstance(box.nvlinks, Missing)
    first, *rest = box.nvlinks
    one_down = box._replace(nvlinks=(down(first.bdf, first.link), *rest)).topology()
    assert {link.label for link in one_down.links if "GPU0" in (link.a, link.b)} == {"NV11"}
    assert {link.label for link in one_down.links if "GPU0" not in (link.a, link.b)} == {"NV12"}


@pytest.mark.parametrize(("generation", "across"), [(2, "NV6"), (3, "NODE")])
def test_gpus_of_both_baseboards_of_a_dgx_2_are_joined(generation: int, across: str) -> None:
    """The last two of four GPUs are on switches of their own; later machines have no second baseboard."""
    box = fabric(4, 12, 1)
    assert not isinstance(box.nvlinks, Missing)
    boards = [{link.bdf for link in box.nvlinks[24 * half : 24 * half + 24]} for half in (0, 1)]
    kept = [replace(link, generation=generation) for link in box.nvlinks if (link.link < 6) == (link.bdf in boards[0])]
    labels = {(link.a, link.b): link.label for link in box._replace(nvlinks=tuple(kept)).topology().links}
    assert labels["GPU0", "GPU1"] == labels["GPU2", "GPU3"] == "NV6"
    assert {labels[a, b] for a in ("GPU0", "GPU1") for b in ("GPU2", "GPU3")} == {across}


def test_switches_that_the_driver_does_not_name() -> None:
    box = fabric(3, 6, 2)
    assert not isinstance(box.nvlinks, Missing)
    unnamed = Missing(Gap.UNSUPPORTED, "nvmlDeviceGetNvLinkRemotePciInfo", "the driver names no peer")
    links = tuple(replace(link, remote_bdf=unnamed) for link in box.nvlinks)
    assert {link.label for link in box._replace(nvlinks=links).topology().links} == {"NV12"}
    untyped = tuple(replace(link, remote_type=unnamed) for link in links)
    topology = box._replace(nvlinks=untyped).topology()
    assert {link.nvlinks for link in topology.links} == {None}


def test_one_silent_gpu_of_a_fabric_is_unknown_not_zero() -> None:
    box = fabric(3, 6, 2)
    assert not isinstance(box.nvlinks, Missing)
    silent = "0000:10:00.0"
    gap = Missing(Gap.LOST, "nvmlDeviceGetNvLinkState", "NVML 15: GPU is lost", 15)
    links = (down(silent, 0, up=gap), *(link for link in box.nvlinks if link.bdf != silent))
    topology = box._replace(nvlinks=links).topology()
    assert [link.nvlinks for link in topology.links] == [None, None, 12]
    assert "GPU is lost" in next(iter(topology.links)).nvlink_reason


def test_links_to_a_gpu_that_is_hidden_here_are_noted() -> None:
    whole = dgx1()
    seen = DGX1_GPUS[:4]
    assert not isinstance(whole.nvlinks, Missing)
    assert not isinstance(whole.functions, Missing)
    box = whole._replace(
        functions=tuple(it for it in whole.functions if it.bdf not in DGX1_GPUS[4:]),
        nvml=nvml(seen),
        nvlinks=tuple(link for link in whole.nvlinks if link.bdf in seen),
        pairs=(),
    )
    topology = box.topology()
    assert topology.links["GPU0", "GPU3"].label == "NV2"
    note = "GPU0 has 2 NVLinks up to 0000:85:00.0, which is neither a GPU nor an NVSwitch listed here."
    assert topology.notes[0] == note
