"""ACS bits that ``rdma_topo check`` of rdma-core (commit 691953d) wants in the same files of newer machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from fabric_box import bad, findings
from rdma_box import MODULE, acs, pair
from test_health_checks import box, changed

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.pcie.acs_rules import acs_rules
from dgxcheck.facts.pci import Iommu, IommuGroup
from dgxcheck.facts.record import replace
from dgxcheck.source.recording.load import open_source

_GB300 = {
    **{f"{domain}:{port}": "xx111x1" for domain in ("0000", "0002", "0010", "0012") for port in ("00:00.0", "02:00.0")},
    **{f"{domain}:00:00.0": "xx111x1" for domain in ("0006", "0016")},
    **{f"{domain}:{port}": bits for domain in ("0008", "0009", "0018", "0019") for port, bits in (
        ("00:00.0", "xx111x0"), ("02:00.0", "xx110x1"), ("02:01.0", "xx101x1"), ("05:00.0", "xx111x1"),
    )},
}  # fmt: skip
_GB200 = dict.fromkeys(
    (
        f"{domain}:00:00.0"
        for domain in ["0000", "0002", "0006", "0008", "0009", "0010", "0012", "0016", "0018", "0019"]
    ),
    "xx111x1",
)
_B300 = {
    f"0000:{port}": "xx000x0" for root in (0x14, 0x34, 0x54, 0x74, 0x94, 0xB4, 0xD4, 0xF0)
    for port in (f"{root:02x}:01.0", f"{root + 2:02x}:00.0", f"{root + 2:02x}:01.0", f"{root + 5:02x}:00.0")
}  # fmt: skip


@pytest.mark.parametrize(("name", "wanted"), [
    ("gb300-nvl72", _GB300), ("gb200-nvl72", _GB200), ("gh200", {"0000:00:00.0": "xx111x1", "0009:00:00.0": "xx111x1"}),
    ("dgx-b300", _B300), ("dgx-h100", {}), ("dgx-b200", {}), ("vm-h100-x8", {}),
])  # fmt: skip
def test_each_port_has_the_bits_of_its_place(name: str, wanted: dict[str, str]) -> None:
    of = box(name)
    spaces = of.snapshot.config_space
    assert isinstance(spaces, tuple)
    with_acs = {row.bdf for row in spaces if row.acs is not None}
    assert {bdf: rule.bits for bdf, rule in acs_rules(of).items() if bdf in with_acs} == wanted
    assert bad(of, "gdr") == set()


@pytest.mark.parametrize(("name", "port", "control"), [
    ("gb300-nvl72", "0009:02:00.0", 0x1D), ("gb300-nvl72", "0009:00:00.0", 0x1D), ("gb300-nvl72", "0000:02:00.0", 0),
    ("gb200-nvl72", "0018:00:00.0", 0), ("gh200", "0009:00:00.0", 0), ("dgx-b300", "0000:16:00.0", 0x01),
    ("dgx-b300", "0000:14:01.0", 0x1D),
])  # fmt: skip
def test_a_wrong_port_is_found(name: str, port: str, control: int, tmp_path: Path) -> None:
    of = box(changed(tmp_path, acs(port, control, name), name))
    assert bad(of, "gdr") == {("gdr.acs", port, "warn")}


def test_virtual_machines_need_a_port_that_redirects(tmp_path: Path) -> None:
    """Of rules that switch ACS off; those of Grace hold there too."""
    port, name = "0000:16:00.0", "dgx-b300"
    names = open_source(name).names(MODULE)
    assert isinstance(names, tuple)
    facts = acs(port, 0x1D, name) | {f"names {MODULE}": [*names, "vfio_pci"]}
    (found,) = (each for each in findings(box(changed(tmp_path, facts, name)), "gdr.acs") if each.subject.bdf == port)
    assert (found.status, found.judgement.reason) == (Status.SKIP, "not-configured")


@pytest.mark.parametrize(("name", "ports"), [("gb200-nvl72", _GB200), ("gh200", ("0000:00:00.0", "0009:00:00.0"))])
def test_a_script_that_clears_all_is_one_finding(name: str, ports: Iterable[str], tmp_path: Path) -> None:
    facts = {key: value for port in ports for key, value in acs(port, 0, name).items()}
    of = box(changed(tmp_path, facts, name))
    assert bad(of, "gdr") == {("gdr.acs", None, "warn")}
    (found,) = (each for each in findings(of, "gdr.acs") if each.status is Status.WARN)
    assert found.judgement.remedy.endswith("the kernel sets these bits itself")


def _with_ats(of: Box, *adapters: str) -> Box:
    spaces = of.snapshot.config_space
    assert isinstance(spaces, tuple)
    rows = tuple(replace(row, ats=True) if row.bdf in adapters else row for row in spaces)
    return replace(of, snapshot=replace(of.snapshot, config_space=rows))


_ADAPTERS = [f"0000:{bus:02x}:00.0" for bus in (0x17, 0x37, 0x57, 0x77, 0x97, 0xB7, 0xD7, 0xF3)]


def test_adapters_with_ats_serve_virtual_machines() -> None:
    of = _groups(_with_ats(box("dgx-b300"), *_ADAPTERS), lambda bdf: int(bdf[5:7], 16))
    wanted = {"0000:16:00.0": "1x111x1", "0000:16:01.0": "xx111x1", "0000:14:01.0": "xx111x1"}
    assert {port: acs_rules(of)[port].bits for port in wanted} == wanted
    assert ("gdr.iommu-groups", None, "warn") not in bad(of, "gdr")


@pytest.mark.parametrize(("name", "adapters"), [
    ("dgx-b300", _ADAPTERS), ("dgx-b300", _ADAPTERS[2:3]), ("gb200-nvl72", ["0002:01:00.0"]),
])  # fmt: skip
def test_ats_without_an_iommu_or_on_grace_is_found(name: str, adapters: list[str]) -> None:
    """rdma_topo, __check_ats(): the bits that it wants without ATS are still those that count."""
    assert bad(_with_ats(box(name), *adapters), "gdr") == {("gdr.iommu-groups", None, "warn")}


def test_a_wrong_port_stops_its_pair_alone() -> None:
    of = box("gb300-nvl72-acs-gpu-port")
    why = dict(pair(of, "GPU1", "mlx5_0").reasons)["gdr.acs"]
    assert why.summary == "ACS is set otherwise than needed here at 0009:02:01.0"
    assert "(xx101x1@0009:02:01.0)" in why.judgement.remedy
    assert "gdr.acs" not in {check for check, _ in pair(of, "GPU0", "mlx5_1").reasons}


def _groups(of: Box, numbers: Callable[[str], int]) -> Box:
    """Each function in a group of this number."""
    iommu = of.snapshot.iommu
    assert isinstance(iommu, Iommu)
    assert isinstance(iommu.functions, tuple)
    rows = tuple(replace(row, group=IommuGroup(number=numbers(row.bdf), type="DMA")) for row in iommu.functions)
    return replace(of, snapshot=replace(of.snapshot, iommu=replace(iommu, functions=rows)))


@pytest.mark.parametrize(("name", "numbers", "status"), [
    # one group for all below a root port, as the kernel makes it of the bits that rdma_topo wants
    ("gb300-nvl72", lambda bdf: int(bdf[:4], 16), Status.PASS),
    ("gb300-nvl72", lambda bdf: int(bdf[:4] + bdf[5:7], 16), Status.WARN),
    ("gb200-nvl72", lambda bdf: int(bdf[:4], 16), Status.PASS),
    ("gb200-nvl72", lambda bdf: 7, Status.WARN),
    ("gh200", lambda bdf: int(bdf[:4], 16), Status.PASS),
    ("dgx-b300", lambda bdf: int(bdf[5], 16), Status.PASS),
    ("dgx-b300", lambda bdf: int(bdf[5:7], 16), Status.WARN),
    ("dgx-b200", lambda bdf: int(bdf[5:7], 16), Status.SKIP),
])  # fmt: skip
def test_groups_are_as_rdma_topo_wants_them(name: str, numbers: Callable[[str], int], status: Status) -> None:
    found = {each.status for each in findings(_groups(box(name), numbers)) if each.id == "gdr.iommu-groups"}
    assert found == {status}
