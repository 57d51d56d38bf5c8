"""Causes: one for each fault, at the component that its overlay names; of several faults each its own."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from judging import BAD, judged
from sample import BOXES, FAULTS, swept
from test_diagnosis_shipped import CAUSES, OF_TWO

BDF = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
ELSEWHERE = {
    "pcie-x4-power-brake-at-load": None,  # what feeds all four
    # what is missing has no address: the bridge above is named, or the socket's
    "dgx-1-v100-gpu-missing": "0000:09:10.0", "dgx-1-v100-hca-missing": "0000:09:14.0",
    "dgx-station-v100-gpu-missing": "0000:0d:10.0", "k80-x8-board-missing": "0000:03:10.0",
    "k80-x8-board-moved": None, "dgx-1-v100-nouveau": None, "dgx-1-v100-nvml-disagrees": None,
    "dgx-1-v100-slot-gen2": "0000:0a:00.0", "dgx-1-v100-switch-aer": "0000:0a:00.0",
    # the link's other end is named first
    "dgx-1-v100-nvlink-crc": "0000:07:00.0", "dgx-1-v100-nvlink-recoveries": "0000:07:00.0",
    "dgx-1-v100-nvlink-recovery-xid-74": "0000:07:00.0", "dgx-1-v100-nvlink-replays": "0000:06:00.0",
    "dgx-1-v100-nvlink-crc-flood": "0000:07:00.0", "dgx-1-v100-nvlink-crc-total": "0000:07:00.0",
    # of all devices alike, or missing without an address
    **dict.fromkeys(
        ("dgx-1-v100-root-complex", "dgx-1-v100-supply-failed", "dgx-1-v100-two-hot", "dgx-a100-nvlink-unsupported",
         "dgx-a100-nvswitches-down", "pcie-x4-root-complex-slow", "pcie-x8-sockets-slow", "k80-x8-board-hot",
         "dgx-1-v100-brakes-scattered", "dgx-h200-power-brake", "dgx-b200-error-rate-everywhere", "dgx-h100-hcas-gen4",
         "gb200-nvl72-switch-links-down", "gb300-nvl72-imex-recovery",
         "dgx-1-v100-no-gpu-starts", "dgx-2-open-modules", "dgx-2-trunks-slow",
         "dgx-a100-gsp-everywhere", "dgx-a100-ports-down", "dgx-a100-iommu-refuses-gpu", "dgx-a100-no-mlx5-ib",
         "dgx-b200-no-mlx5-ib", "l40s-x8-nova", "dgx-b200-slot-contained",
         "dgx-a100-no-nvme", "dgx-h100-gsp-image-missing")
    ),
    # the link or the switch on the board that the devices named share
    "dgx-2-uplink-slow": "0000:2c:00.0", "k80-x8-board-off-bus": None, "pcie-x4-uplink-slow": "0000:0c:00.0",
    "pcie-x8-uplink-slow": "0000:06:00.0",
    "pcie-x4-root-port-messages": "0000:05:00.0", "dgx-1-v100-hca-firmware-split": None,
    "dgx-a100-no-subnet-manager": None, "dgx-2-nvlinks-slow": None, "dgx-a100-read-request-all": None,
    "dgx-2-nvswitch-missing": None, "dgx-h100-nvswitch-missing": None,
    "dgx-h100-power-cap": None, "dgx-h100-nvme-gen3-everywhere": None, "hgx-h100-default-limit-350": None,
    "dgx-b300-power-limit-of-four": None,
}  # fmt: skip
COMBINED = (
    ("dgx-1-v100-nvlink-down", "dgx-1-v100-port-down"),
    ("dgx-1-v100-switch-x8", "dgx-1-v100-hot"),
    ("dgx-1-v100-xid-48", "dgx-1-v100-port-fdr"),
    ("dgx-1-v100-gpu-x8", "dgx-1-v100-disk-missing", "dgx-1-v100-ecc-off"),
    ("dgx-1-v100-gpu-missing", "dgx-1-v100-hca-missing"),
    ("dgx-1-v100-persistence-off", "dgx-1-v100-power-brake"),
    ("dgx-1-v100-switch-x8", "dgx-1-v100-gpu-x8"),
    ("dgx-1-v100-one-hot", "dgx-1-v100-dimm-missing"),
    ("dgx-1-v100-nvlink-crc", "dgx-1-v100-xid-62"),
    ("dgx-a100-remap-pending", "dgx-a100-nvlink-down"),
    ("dgx-a100-mig-pending", "dgx-a100-md-degraded", "dgx-a100-governor"),
    ("k80-x8-ecc-off", "k80-x8-p2p-broken"),
    ("dgx-1-v100-gpu-lost", "dgx-1-v100-port-symbol-errors"),
    ("dgx-1-v100-switch-gen1", "dgx-1-v100-transport-errors", "dgx-1-v100-hca-without-ports"),
    ("dgx-1-v100-hca-ethernet", "dgx-1-v100-uplink-limited"),
    ("dgx-2-nvswitch-missing", "dgx-2-nvme-gen1"),
    ("dgx-2-nvswitch-off-pci", "dgx-2-hca-without-guid"),
    ("pcie-x8-switch-gen2", "pcie-x8-bridge-off"),
    ("dgx-a100-nvlink-slow", "dgx-a100-hca-ethernet", "dgx-a100-nvme-x2"),
    ("dgx-a100-fabric-degraded", "dgx-a100-nvswitch-unbound", "dgx-a100-reboot-required"),
)
V100 = ("06", "07", "0a", "0b", "85", "86", "89", "8a")
PORTS = ("04:10", "04:14", "09:08", "09:10", "83:08", "83:10", "88:08", "88:10")


def bad_keys(document: dict[str, Any]) -> list[str]:
    return [each["key"] for each in document["findings"] if each["status"] in BAD]


def components(document: dict[str, Any]) -> set[tuple[str, str, str | None]]:
    """By kind, bus id or name, and part; ``memory at mc2`` where there are several such parts."""
    named = [cause["component"] for cause in document["causes"]]
    parts = [" at ".join(filter(None, (each["part"], each["position"]))) or None for each in named]
    return {(each["kind"], each["bdf"] or each["name"], part) for each, part in zip(named, parts, strict=True)}


@pytest.mark.parametrize("box", BOXES)
def test_a_healthy_box_has_no_cause(box: str) -> None:
    document = judged(box)[1]
    assert (document["causes"], document["unexplained"]) == ([], [])


def a_fault_has_one_cause_at_its_component(fault: str) -> None:
    document = judged(fault)[1]
    keys = bad_keys(document)
    explained = [key for cause in document["causes"] for key in cause["explains"]]
    assert sorted([*explained, *document["unexplained"]]) == sorted(keys)
    due_causes = OF_TWO.get(fault) or ([CAUSES[fault]] if fault in CAUSES else [])
    assert len(document["causes"]) == len(due_causes)
    # what could not be read blames nothing
    unread = {each["key"] for each in document["findings"] if each["status"] == "unknown"}
    assert {*document["unexplained"]} <= unread
    if fault in OF_TWO:
        return
    for cause in document["causes"]:
        assert cause["action"] in cause["actions"]
        before = cause["actions"][: cause["actions"].index(cause["action"])]
        assert {action["action"] for action in before} <= {"drain", "stop-jobs"}
        assert cause["severity"] == document["verdict"]
        expect = json.loads(Path(FAULTS[fault]).read_text(encoding="utf-8"))["expect"]
        due = ELSEWHERE[fault] if fault in ELSEWHERE else next(iter(BDF.findall(expect["component"])), None)
        at = cause["component"]["bdf"]
        if cause["component"]["kind"] == "link" and fault not in ELSEWHERE:
            assert at in expect["component"]
        elif due is not None:
            assert at == due


@pytest.mark.parametrize("faults", swept([(each,) for each in COMBINED], 8), ids=" ".join)
def test_of_several_faults_each_has_its_cause(faults: tuple[str, ...], tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(len(faults))]
    for fault, path in zip(faults, paths, strict=True):
        path.write_text(Path(FAULTS[fault]).read_text(encoding="utf-8"), encoding="utf-8")
    for below, path in pairwise(paths):
        overlay = json.loads(path.read_text(encoding="utf-8")) | {"base": below.name}
        path.write_text(json.dumps(overlay), encoding="utf-8")
    named = ("--profile", "k80-x8") if faults[0].startswith("k80") else ()
    document = health(str(paths[-1]), *named)
    assert components(document) == {each for fault in faults for each in components(judged(fault)[1])}
    assert document["unexplained"] == []


def health(*argv: str) -> dict[str, Any]:
    from contextlib import redirect_stdout
    from io import StringIO

    from dgxcheck.cli import main

    with redirect_stdout(StringIO()) as out:
        main(["health", "--format", "json", "--from", *argv])
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


@pytest.mark.parametrize("fault", ["dgx-1-v100-gpu-missing", "dgx-1-v100-switch-x8", "dgx-1-p100-pages-63"])
def test_what_the_baseline_says_as_well_is_the_same_cause(fault: str) -> None:
    document = health(fault, "--baseline", fault[:10])
    assert "baseline.drift" in {key.partition("/")[0] for key in bad_keys(document)}
    assert components(document) == components(judged(fault)[1])


def steps_of(cause: dict[str, Any]) -> list[str]:
    """Less the draining of the host and the stopping of jobs before one of them."""
    names = [action["action"] for action in cause["actions"]]
    return [name for name in names if name not in ("drain", "stop-jobs")] or names


def test_a_reset_takes_what_nvlinks_join_and_both_halves_of_a_k80() -> None:
    (cause,) = judged("k80-x8-page-pending")[1]["causes"]
    reset = next(step for step in cause["actions"] if step["action"] == "reset-gpu")
    assert reset["disturbs"] == ["GPU6", "GPU7"]
    assert reset["commands"] == [["nvidia-smi", "-r", "-i", "0000:89:00.0,0000:8a:00.0"]]
    (cause,) = judged("dgx-1-v100-xid-62")[1]["causes"]
    assert cause["action"]["disturbs"] == [f"GPU{number}" for number in range(8)]


def test_an_iommu_takes_a_reboot_to_be_set() -> None:
    (cause,) = judged("dgx-1-v100-iommu-dma")[1]["causes"]
    assert steps_of(cause) == ["change-setting", "reboot"]


def test_no_reset_is_offered_for_a_lost_gpu() -> None:
    (cause,) = judged("dgx-1-v100-xid-79")[1]["causes"]
    assert steps_of(cause) == ["reboot", "power-cycle", "field-diagnostic", "contact-vendor"]


def test_what_nobody_could_read_blames_nothing(tmp_path: Path) -> None:
    garbled = {"text /sys/class/infiniband/mlx5_1/ports/1/state": "many\n"}
    path = tmp_path / "garbled.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": garbled}))
    document = health(str(path))
    assert document["verdict"] == "unknown"
    assert document["causes"] == []
    assert document["unexplained"] == bad_keys(document)


@pytest.mark.parametrize(
    ("line", "kind", "name", "part"),
    [
        ("NVRM: Xid (PCI:0000:9b:00): 62, pid=1, name=x, halt", "gpu", "GPU@0000:9b:00.0", None),
        (
            "nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30",
            "nvswitch",
            "0000:c4:00.0",
            None,
        ),
    ],
)
def test_a_log_names_what_the_topology_does_not_have(
    line: str, kind: str, name: str, part: str | None, tmp_path: Path
) -> None:
    log = tmp_path / "dmesg.txt"
    log.write_text(f"[    0.000000] Linux version 5.4\n[  100.000000] {line}\n", encoding="utf-8")
    (cause,) = health("dgx-1-v100", "--kernel-log", str(log))["causes"]
    assert (cause["component"]["kind"], cause["component"]["name"], cause["component"]["part"]) == (kind, name, part)
