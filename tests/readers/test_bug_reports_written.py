"""A bug report written of a recorded machine: the same causes as from the recording, for all that a report carries."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from report_writer import LINE, report, sections
from sample import BOXES, FAULTS, swept

from dgxcheck.assessment import Assessment, Request, assess, examine
from dgxcheck.facts.missing import Missing
from dgxcheck.source.recording.load import open_source

CARRIED = (
    "dgx-1-v100-gpu-x8", "dgx-1-v100-nvlink-down", "dgx-1-v100-xid-79", "dgx-1-v100-nouveau", "dgx-1-v100-mismatch",
    "dgx-1-v100-gpu-lost", "dgx-1-v100-inforom", "dgx-1-v100-iommu-dma", "dgx-1-v100-numa-lost",
    "dgx-1-v100-port-down", "dgx-1-v100-container", "dgx-1-v100-xid-48-again", "dgx-a100-remap-failed",
    "dgx-a100-sxid-20034", "dgx-a100-reset-required", "dgx-station-v100-nvlink-wrong-peer", "k80-x8-page-pending",
)  # fmt: skip
"""Faults of every layer that a report shows."""
COVERED_ELSEWHERE = {
    **{name: {("pcie.uniform", "0000:09:08.0")} for name in ("k80-x8-p2p-acs", "k80-x8-p2p-acs-silent")},
    "big-sur-acs-switch": {("pcie.uniform", "0000:83:08.0")},
    "l40s-x8-acs-switch": {("pcie.uniform", "0000:9a:00.0")},
    "geforce-x4-own-fans-stalled": {("thermal.outlier", "0000:23:00.0")},
    "dgx-1-v100-no-gpu-starts": {("tools.reports", "")},
    "dgx-b200-no-mlx5-ib": {("pcie.uniform", f"0000:0{bus}:00.{number}") for bus in (5, 6) for number in (0, 1)},
    **{name: {("tools.reports", bdf)} for name, bdf in (
        ("dgx-1-v100-port-1x", "0000:0c:00.0"), ("dgx-1-v100-port-fdr", "0000:0c:00.0"),
        ("dgx-h100-port-200", "0000:4f:00.0"), ("dgx-b200-port-200", "0000:4f:00.0"),
        ("dgx-b300-port-400", "0000:97:00.0"), ("gb300-nvl72-port-400", "0002:03:00.0"),
    )},
}
"""The odd port is a finding of its own where the peer-to-peer status is not known, and so is the hot GPU where no
target of its fans is; nvidia-smi's own words for a driver that started no GPU are in a report alone. Of the B200,
without RDMA devices VPD alone tells the bridges to the NVSwitches from HCAs, and a report has none. The
rate of a port that is slower than its siblings stands there as ibstat prints it, without lanes."""
BAD = ("warn", "fail", "unknown")


def judged(spec: str) -> Assessment:
    return assess(spec, Request(profile="k80-x8") if "k80" in spec else Request())


@cache
def written_of(name: str) -> tuple[str, ...]:
    return tuple(sections(open_source(name), old=False))


def bad(assessment: Assessment) -> set[tuple[str, str]]:
    """What is not in order; what is not known of a GPU that fails is no alarm of its own."""
    failed = {finding.subject.bdf for finding in assessment.findings if finding.status.value == "fail"} - {None}
    return {
        (finding.id, finding.subject.bdf or "") for finding in assessment.findings
        if finding.status.value in BAD and (finding.status.value != "unknown" or finding.subject.bdf not in failed)
    }  # fmt: skip


def causes(assessment: Assessment) -> list[tuple[Any, ...]]:
    named = [(cause.component.kind, cause.component.bdf, cause.component.part) for cause in assessment.diagnosis.causes]
    return sorted(named, key=str)


def written(name: str, folder: Path, old: bool = False) -> str:
    path = folder / f"{name}.log.gz"
    path.write_bytes(report(open_source(name), old))
    return str(path)


@pytest.mark.parametrize("name", swept([*BOXES, *CARRIED], 9))
def test_the_causes_are_those_of_the_recording(name: str, tmp_path: Path) -> None:
    recorded, reported = judged(name), judged(written(name, tmp_path))
    assert bad(reported) == bad(recorded)
    assert causes(reported) == causes(recorded)
    assert reported.verdict == recorded.verdict


@pytest.mark.parametrize("name", swept(BOXES, 7, first=1))
def test_an_old_report_raises_no_alarm(name: str, tmp_path: Path) -> None:
    assert bad(judged(written(name, tmp_path, old=True))) == set()


@pytest.mark.parametrize("name", ["dgx-1-v100", "dgx-a100", "pcie-x8", "k80-x8"])
@pytest.mark.parametrize("old", swept([False, True], 4))
def test_the_wiring_is_that_of_the_recording(name: str, old: bool, tmp_path: Path) -> None:
    recorded = {
        link.label and (link.a, link.b): link.pci for link in examine(name).topology.links if "mlx" not in link.b
    }
    reported = {(link.a, link.b): link.pci for link in examine(written(name, tmp_path, old)).topology.links}
    assert {pair: label for pair, label in reported.items() if "mlx" not in pair[0] + pair[1]} == recorded


QUERY = "/usr/bin/nvidia-smi --query"
INSTEAD = {
    "Skipping: nvidia-smi, vulkaninfo etc. Commands": ("unknown", set()),
    f"{QUERY}\n\nNo devices were found": ("unknown", set()),
    f"{QUERY}\n\nFailed to initialize NVML: Driver/library version mismatch": ("fail", {"driver"}),
    f"{QUERY}\n\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.": ("fail", {"driver"}),
    f"{QUERY}\n\nUnable to determine the device handle for GPU0000:0A:00.0: Unknown Error": ("fail", {"gpu"}),
}
"""In place of nvidia-smi's dump: what is judged, and what is to blame."""


@pytest.mark.parametrize("words", INSTEAD)
def test_without_nvidia_smi_no_box_passes_and_no_hardware_is_blamed(words: str, tmp_path: Path) -> None:
    found = written_of("dgx-1-v100")
    texts = [f"{LINE}\n\n{words}\n\n" if each.startswith(f"{LINE}\n\n{QUERY}") else each for each in found]
    path = tmp_path / "x.log"
    path.write_text("".join(texts), encoding="utf-8")
    assessment = judged(str(path))
    kinds = {cause.component.kind for cause in assessment.diagnosis.causes}
    assert (assessment.verdict.value, kinds) == INSTEAD[words]


MISMATCH = """\
[   50.000000] NVRM: API mismatch: the client has the version 525.125.06, but
[   50.000000] NVRM: this kernel module has the version 550.127.05.  Please
"""


def test_a_mismatch_names_both_versions(tmp_path: Path) -> None:
    words = "Failed to initialize NVML: Driver/library version mismatch\n"
    texts = []
    for each in written_of("dgx-1-v100"):
        text = f"{LINE}\n\n{QUERY}\n\n{words}\n" if each.startswith(f"{LINE}\n\n{QUERY}") else each
        texts.append(text + MISMATCH if each.startswith(f"{LINE}\n\ndmesg:") else text)
    path = tmp_path / "x.log"
    path.write_text("".join(texts), encoding="utf-8")
    found = {each.id: each.judgement.message for each in judged(str(path)).findings if each.status.value == "fail"}
    message = found["driver.version-match"]
    assert "version 525.125.06 by the kernel log" in message
    assert message.endswith("version 550.127.05")


OF_DRIVER = "*** /proc/driver/nvidia/gpus/"


@pytest.mark.parametrize(("listed", "verdict"), [(8, "unknown"), (6, "unknown"), (4, "pass"), (0, "unknown")])
def test_gpus_are_hidden_by_a_container_only_where_the_driver_hides_the_same(
    listed: int, verdict: str, tmp_path: Path
) -> None:
    """The kernel module lists all GPUs that it holds, a container's /proc those that it was given: here four of eight.

    So an incomplete list in the report of a host hides none.
    """
    every = written_of("dgx-1-v100")
    of_driver = [each for each in every if f"{LINE}\n\n{OF_DRIVER}" in each]
    inside = written_of("dgx-1-v100-container")
    given = next(each for each in inside if f"{LINE}\n\n{QUERY}" in each)
    assert len(of_driver) == 8
    texts = [given if f"{LINE}\n\n{QUERY}" in each else each for each in every if each not in of_driver[listed:]]
    path = tmp_path / "x.log"
    path.write_text("".join(texts), encoding="utf-8")
    assert judged(str(path)).verdict.value == verdict


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FAULTS)
def test_no_report_of_a_fault_raises_an_alarm_of_its_own(name: str, tmp_path: Path) -> None:
    recorded, reported = judged(name), judged(written(name, tmp_path))
    if isinstance(recorded.snapshot.gpu, Missing):  # nvidia-smi has words of its own for a driver that is not there
        assert {check for check, _ in bad(reported) - bad(recorded)} <= {"driver.library"}
    else:
        assert bad(reported) - bad(recorded) <= COVERED_ELSEWHERE.get(name, set())
