"""ACS and an IOMMU between GPUs that PCIe alone joins, with or without an HCA beside them."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest
from fabric_box import bad
from rdma_box import PCI, acs, modules
from test_health_checks import box, changed

from dgxcheck.facts.missing import Json

WITH_HCA = "k80-x8"
CNS = 1


def translated(folder: Path, base: str, bdf: str, facts: dict[str, Json]) -> str:
    document: dict[str, Json] = {
        "schema": "dgxcheck/overlay/1", "base": base, "add": {"text /sys/kernel/iommu_groups/20/type": "DMA-FQ\n"},
        "facts": {**facts, f"link {PCI}/{bdf}/iommu_group": "../../../../kernel/iommu_groups/20"},
    }  # fmt: skip
    path = folder / "translated.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("base", "port", "gpu"), [
    ("pcie-x8", "0000:03:08.0", "0000:04:00.0"), ("pcie-x4", "0000:06:08.0", "0000:07:00.0"),
    ("big-sur", "0000:83:08.0", "0000:84:00.0"), ("l40s-x8", "0000:9a:00.0", "0000:9b:00.0"),
    (WITH_HCA, "0000:09:08.0", "0000:0a:00.0"),
])  # fmt: skip
def test_what_gpus_send_each_other_over_pcie(base: str, port: str, gpu: str, tmp_path: Path) -> None:
    redirecting = acs(port, 0x1D, base)
    assert bad(box(changed(tmp_path, redirecting, base)), "gdr") == {("gdr.acs", port, "warn")}
    assert bad(box(translated(tmp_path, base, gpu, redirecting)), "gdr") == {("gdr.iommu", None, "warn")}


@pytest.mark.parametrize(("base", "port"), [("pcie-x8", "0000:03:08.0"), (WITH_HCA, "0000:09:08.0")])
def test_no_port_matters_where_the_driver_grants_no_p2p(base: str, port: str, tmp_path: Path) -> None:
    pairs = permutations((each.bdf for each in box(base).topology.gpus), 2)
    refused: dict[str, Json] = {f"nvml nvmlDeviceGetP2PStatus {a} {b} 0": CNS for a, b in pairs}
    assert bad(box(changed(tmp_path, acs(port, 0x1D, base) | refused, base)), "gdr") == set()


def test_gpus_in_mig_mode_send_each_other_nothing(tmp_path: Path) -> None:
    base, port = "l40s-x8", "0000:9a:00.0"
    on: dict[str, Json] = {f"nvml nvmlDeviceGetMigMode {each.bdf}": [1, 1] for each in box(base).topology.gpus}
    assert bad(box(changed(tmp_path, acs(port, 0x1D, base) | on, base)), "gdr") == set()


@pytest.mark.parametrize("base", ["geforce-x4", "dgx-station-v100", "dgx-1-v100"])
def test_translation_disturbs_nothing_where_no_gpu_sends_over_pcie(base: str, tmp_path: Path) -> None:
    facts = modules("nvidia_peermem", "nv_peer_mem", base=base) if base == "dgx-1-v100" else {}
    bdf = box(base).topology.gpus[0].bdf
    assert bdf is not None
    assert bad(box(translated(tmp_path, base, bdf, facts)), "gdr") == set()
