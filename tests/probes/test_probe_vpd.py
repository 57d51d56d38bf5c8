"""Vital product data: which function belongs to which adapter, and what leads to NVSwitches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.assessment import examine
from dgxcheck.components.locate import has_nvswitches
from dgxcheck.facts.firmware import keywords, read_only
from dgxcheck.facts.missing import Missing
from dgxcheck.launch import placements
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.keys import GroupedFacts, from_rows, insert, to_rows
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import Snapshot, survey
from fixtures.reconstruct.pci_files import vital_product_data

DIRECT = {"GPU0": "mlx5_1", "GPU1": "mlx5_0", "GPU2": "mlx5_3", "GPU3": "mlx5_2"}


@pytest.mark.parametrize(
    ("data", "due"),
    [
        (vital_product_data((("PN", "900"), ("V3", "abc"))), {"PN": "900", "V3": "abc"}),
        (vital_product_data((("V3", "abc"),))[:-1], {"V3": "abc"}),
        (b"", {}), (b"\xff" * 64, {}), (b"\x78", {}), (b"\x90\x08\x00PN\xff900", {}),
        (b"\x90\x03\x00PN\x00\x91\x04\x00RW\x01x\x78", {"PN": ""}),
    ],
)  # fmt: skip
def test_keywords(data: bytes, due: dict[str, str]) -> None:
    assert dict(keywords(data)) == due


@given(st.binary(max_size=300))
def test_any_bytes_give_keywords_or_none(data: bytes) -> None:
    assert all(len(key) == 2 for key, _ in keywords(data))


def test_a_direct_nic_belongs_to_the_gpu_beside_its_dma_function() -> None:
    """As rdma_topo pairs them: NIC 0000:03:00.0, GPU 0009:06:00.0, DMA function 0009:03:00.0."""
    topology = examine("gb300-nvl72").topology
    nic, gpu = topology.device("mlx5_0"), topology.device("GPU1")
    assert nic is not None
    assert gpu is not None
    assert (nic.bdf, gpu.bdf, nic.dma and nic.dma.bdf) == ("0000:03:00.0", "0009:06:00.0", "0009:03:00.0")
    link = topology.link(gpu, nic)
    assert (link.pci, link.label) == ("PXB", "SOC")
    facts = survey_of("gb300-nvl72")
    assert {each.gpu.name: each.port.partition(":")[0] for each in placements(facts, topology)} == DIRECT


@pytest.mark.parametrize("name", ["gb300-nvl72", "dgx-b200"])
def test_a_recording_keeps_what_is_read_and_no_number_of_a_part(name: str) -> None:
    recorder = RecordingSource(open_source(name))
    before = survey(recorder, ("vpd", "pci")).vpd
    facts = dict(recorder.facts)
    for key in [key for key, fact in facts.items() if key.endswith("/vpd") and from_rows(fact) is not None]:
        parts = {"PN": "900-PART", "SN": "MT2301X01234"} | dict(keywords(from_rows(facts[key]) or b""))
        facts[key] = to_rows(read_only(parts))
    lines: GroupedFacts = {}
    for key, fact in sorted(facts.items()):
        insert(lines, key, fact)
    saved = anonymized(lines, (), b"k" * 32)[0]
    assert not any(part in repr(saved) for part in (b"900-PART".hex(), b"MT2301X".hex(), "MT2301X"))
    after = survey(RecordedSource(saved, recorder.origin), ("vpd", "pci")).vpd
    assert not isinstance(before, Missing)
    assert not isinstance(after, Missing)
    assert [row.manages_nvswitches for row in after] == [row.manages_nvswitches for row in before]
    shared = [[a.uuid == b.uuid for a in vpd for b in vpd] for vpd in (before, after)]  # functions of one adapter
    assert shared[0] == shared[1]


def survey_of(name: str) -> Snapshot:
    return examine(name, ("pci", "vpd", "numa", "infiniband", "ib_ports", "gpu", "host")).snapshot


def test_adapters_that_lead_to_nvswitches_are_no_hcas() -> None:
    topology = examine("dgx-b200").topology
    assert [each.name for each in topology.devices if each.kind == "nvswitch-bridge"] == [f"mlx5_{n}" for n in range(4)]
    assert has_nvswitches(examine("dgx-b200"))
    assert not has_nvswitches(examine("gb200-nvl72"))


def test_older_adapters_are_not_asked() -> None:
    assert examine("dgx-h100").snapshot.vpd == ()
    assert not isinstance(examine("l40s-x8").snapshot.vpd, Missing)
