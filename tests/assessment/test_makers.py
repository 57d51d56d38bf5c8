"""HGX boards in other makers' machines: known by what is below, whatever the firmware calls the machine.

Names are those of the firmware where a kernel log shows them (``Hardware name:``), else those under which the maker's
submissions to MLPerf or its firmware tools list the machine.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from read_box import box
from sample import swept

from dgxcheck.assessment import assess
from dgxcheck.checks.engine.finding import BAD
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.source.recording.load import open_source

KERNEL_LOG, MLPERF = "kernel log", "results of MLPerf"
MAKERS = (
    ("Supermicro", "SYS-821GE-TNHR", "hgx-h100", "support matrix of the maker's SAA tool"),
    ("Supermicro", "AS -8125GS-TNHR", "hgx-h100", "product page; kernel logs have AS - with a blank"),
    ("Dell Inc.", "PowerEdge XE9680", "hgx-h100", f"{KERNEL_LOG}: Dell Inc. PowerEdge XE9680/0KK0RG"),
    ("Dell Inc.", "PowerEdge XE9680", "dgx-h200", f"{KERNEL_LOG}: Dell Inc. PowerEdge XE9680/0KK0RG"),
    ("Dell Inc.", "PowerEdge XE9680L", "dgx-b200", "data sheet: HGX B200 in 4 units"),
    ("Lenovo", "ThinkSystem SR680a V3", "dgx-h200", "netbox-community/devicetype-library pull request 4186"),
    ("Lenovo", "ThinkSystem SR685a V3", "dgx-h200", f"{MLPERF}: 8x H200-SXM-141GB"),
    ("HPE", "HPE Cray XD670", "hgx-h100", "model that HPE's Ansible firmware modules compare with"),
    ("HPE", "ProLiant Compute DL384 Gen12", "gh200", MLPERF),
    ("GIGABYTE", "G593-SD0-AAX1-000", "hgx-h100", f"{MLPERF}; model list of the maker"),
    ("ASUSTeK COMPUTER INC.", "ESC N8-E11", "hgx-h100", f"{KERNEL_LOG}: ESC N8-E11/Z13PN-D32 Series"),
    ("Quanta Cloud Technology Inc.", "QuantaGrid D74H-7U", "hgx-h100", f"{MLPERF}; maker as in a kernel log"),
    ("Supermicro", "SYS-A22GA-NBRT", "dgx-b200", f"{MLPERF}: 8xB200_SXM"),
    ("GIGABYTE", "G893-SD1-AAX5-000", "dgx-b200", f"{MLPERF}; model by Redfish"),
    ("Lenovo", "ThinkSystem SR680a V4", "dgx-b300", f"{MLPERF}: 8x B300-SXM-270GB"),
    ("Dell Inc.", "PowerEdge XE9780", "dgx-b300", "public logs: 8 x B300 SXM6 AC, driver 610.57"),
    ("Quanta Cloud Technology Inc.", "QuantaGrid D75U-1U", "gb300-nvl72", f"{MLPERF}: GB300 NVL72"),
)  # fmt: skip
FOUR = (
    (
        "Dell Inc.",
        "PowerEdge XE8545",
        "dgx-a100-80",
        4,
        f"{MLPERF}: A100-SXM-80GB",
    ),
    ("Lenovo", "ThinkSystem SR675 V3", "hgx-h100", 6, "Redfish model SR675 V3; four H100 SXM5"),
)


def judged(spec: str) -> tuple[str, set[tuple[str, str | None, str]]]:
    """Profile and bad findings."""
    of = assess(spec)
    bad = {(each.id, each.subject.bdf, each.status.value) for each in of.findings if each.status in BAD}
    return of.choice.profile.name if of.choice is not None else "", bad


def named(vendor: str, product: str, facts: dict[str, Json] | None = None) -> dict[str, Json]:
    dmi = {"sys_vendor": vendor, "product_name": product, "board_vendor": vendor}
    return {f"text /sys/class/dmi/id/{key}": f"{text}\n" for key, text in dmi.items()} | (facts or {})


def written(folder: Path, base: str, facts: dict[str, Json], *gone: str) -> str:
    path = folder / "box.json"
    document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, "drop": [*gone]}
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("vendor", "product", "base"), swept([row[:3] for row in MAKERS], 4))
def test_the_name_of_the_machine_changes_nothing(vendor: str, product: str, base: str, tmp_path: Path) -> None:
    profile, _ = plain = judged(base)
    assert judged(written(tmp_path, base, named(vendor, product))) == plain == (profile, set())
    assert profile or base == "gh200"


@pytest.mark.parametrize(("vendor", "product", "base"), swept([row[:3] for row in MAKERS if row[2] == "hgx-h100"], 3))
def test_its_nvlinks_and_nvswitches_are_due_in_every_chassis(
    vendor: str, product: str, base: str, tmp_path: Path
) -> None:
    _, bad = judged(written(tmp_path, base, named(vendor, product), "0000:06:00.0"))
    assert ("nvlink.nvswitches", None, "fail") in bad


@pytest.mark.parametrize(("vendor", "product", "base", "links"), [row[:4] for row in FOUR])
def test_boards_of_four_gpus_need_no_nvswitches(
    vendor: str, product: str, base: str, links: int, tmp_path: Path
) -> None:
    of = box(base)
    gpus = [str(gpu.bdf) for gpu in of.topology.gpus]
    stay, gone = gpus[:4], [*gpus[4:], *(f.bdf for f in of.topology.functions.values() if f.class_code == 0x068000)]
    facts: dict[str, Json] = {"nvml nvmlDeviceGetCount": 4}
    source = open_source(base)
    for bdf in stay:
        others = [other for other in stay if other != bdf for _ in range(links)]
        for link, other in enumerate(others):
            facts[f"nvml nvmlDeviceGetNvLinkRemoteDeviceType {bdf} {link}"] = 0
            known = source.nvml("nvmlDeviceGetPciInfo", other)
            assert not isinstance(known, Missing)
            facts[f"nvml nvmlDeviceGetNvLinkRemotePciInfo {bdf} {link}"] = known
    path = written(tmp_path, base, named(vendor, product, facts), *gone)
    profile, bad = judged(path)
    assert profile
    assert bad == set()


BOARD = ("0000:08:00.0", "0000:09:08.0", "0000:09:10.0")
"""The switch of a K80."""


@pytest.mark.parametrize(("base", "due", "beside"), [(*row, ()) for row in (
    ("hgx-h100", "fail 8"), ("dgx-a100", "fail 8"), ("dgx-b200", "fail 8"), ("dgx-b300", "fail 8"),
    ("dgx-2", "fail 16"), ("k80-x8", "fail 8"), ("pcie-x8", "warn 8"), ("l40s-x8", "warn 8"), ("big-sur", "warn 8"),
    ("geforce-x4", "skip None"),
)] + [("k80-x8", "warn 8", ("0000:0b:00.0", *BOARD))])  # fmt: skip
def test_a_gpu_that_did_not_come_up_at_boot_is_missed(
    base: str, due: str, beside: tuple[str, ...], tmp_path: Path
) -> None:
    """By boards that have all their GPUs, by the other half of a K80, or by the ports of other switches."""
    source, every = open_source(base), [str(gpu.bdf) for gpu in box(base).topology.gpus]
    gone = (every[2], *beside)
    gpus = [bdf for bdf in every if bdf not in gone]
    number = "nvml nvmlDeviceGetMinorNumber"
    facts: dict[str, Json] = {f"{number} {bdf}": minor for minor, bdf in enumerate(gpus)
                              if source.nvml("nvmlDeviceGetMinorNumber", bdf) != minor}  # fmt: skip
    product = {"text /sys/class/dmi/id/product_name": "X\n"} if base.startswith("dgx") else {}
    nodes = [f"/dev/nvidia{minor}" for minor in range(len(gpus), len(every))]
    found = assess(written(tmp_path, base, {**facts, **product}, *gone, *nodes))
    (count,) = [each.judgement for each in found.findings if each.id == "gpu.count"]
    assert f"{count.status.value} {count.expected}" == due
