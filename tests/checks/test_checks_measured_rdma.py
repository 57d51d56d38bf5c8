"""Figures of HCAs: against their port, their PCIe link and each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from measured_box import fact, found, imported, measured, said
from test_health_checks import box as plain

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json

RDMA = "measure.rdma-bandwidth"
EDR = {f"rdma-write mlx5_{n}": fact(12.1) for n in range(4)}


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, {}),
        ({"rdma-write mlx5_1": fact(11.25)}, {}),
        ({"rdma-write mlx5_1": fact(1.0, memory="cuda")}, {}),
        ({"rdma-write mlx5_1": fact(12.1, memory="cuda", runs=[{"value": 12.1}, {"value": 7.0}])}, {"mlx5_1": "warn"}),
        ({"rdma-write mlx5_1": fact(11.2)}, {"mlx5_1": "warn"}),
        ({"rdma-write mlx5_1": fact(12.1, runs=[{"value": 12.1}, {"value": 7.0}])}, {"mlx5_1": "warn"}),
        ({"rdma-read mlx5_1": fact(6.0)}, {"mlx5_1": "warn"}),
        ({"rdma-write-both mlx5_1": fact(24.0)}, {}),
        ({"rdma-write-both mlx5_1": fact(13.0)}, {"mlx5_1": "warn"}),
    ],
)
def test_a_port_is_held_to_its_rate(facts: dict[str, Json], due: dict[str, str], tmp_path: Path) -> None:
    """100 Gbit/s are 12.5 GB/s; Azure takes a machine out below nine tenths."""
    of = measured(tmp_path, EDR | facts, base="dgx-1-v100")
    assert said(of, RDMA) == due
    for name in due:
        finding = found(of, RDMA)[name]
        assert finding.judgement.fault is Fault.SLOW
        assert [component.name for component in finding.blames] == [name, f"{name}/1"]


def test_a_slower_port_is_not_compared_with_faster_ones(tmp_path: Path) -> None:
    slow = {"rdma-write mlx5_1": fact(6.6)}
    assert said(measured(tmp_path, EDR | slow, base="dgx-1-v100-port-fdr"), RDMA) == {}


def test_a_port_that_is_down_is_not_blamed(tmp_path: Path) -> None:
    differs = {"rdma-write mlx5_1": fact(12.1, runs=[{"value": 12.1}, {"value": 7.0}])}
    finding = found(measured(tmp_path, EDR | differs, base="dgx-1-v100-port-down"), RDMA)["mlx5_1"]
    assert [component.name for component in finding.blames] == ["mlx5_1"]


@pytest.mark.parametrize(("gbs", "due"), [(6.2, "skip dependency-failed"), (3.0, "warn")])
def test_a_narrow_link_explains_what_it_carries_and_no_less(gbs: float, due: str, tmp_path: Path) -> None:
    of = measured(tmp_path, EDR | {"rdma-write mlx5_1": fact(gbs)}, base="dgx-1-v100-hca-x8")
    assert said(of, RDMA) == {"mlx5_1": due}


def test_a_slot_of_eight_lanes_is_the_limit_of_a_faster_port(tmp_path: Path) -> None:
    """The K80 server's HCA: 7.9 GB/s at line rate below a port of 12.5."""
    assert said(measured(tmp_path, {"rdma-write mlx5_0": fact(6.0)}, base="k80-x8"), RDMA) == {}
    assert said(measured(tmp_path, {"rdma-write mlx5_0": fact(2.0)}, base="k80-x8"), RDMA) == {"mlx5_0": "warn"}


def test_without_a_box_a_figure_is_only_shown() -> None:
    assert said(imported({"rdma-write mlx5_0": fact(1.0)}), RDMA) == {}


@pytest.mark.parametrize(("figures", "due"), [
    ([49, 49, 12, 49, 49, 49, 49, 49], {"mlx5_2": "warn"}), ([12.1, 6, 12.1, 12.2], {"mlx5_1": "warn"}),
    ([49, 49, 49, 49, 49, 49, 24, 24], {}), ([49, 12, 49], {}), ([49, 24, 12, 49], {}),
])  # fmt: skip
def test_one_hca_that_differs_from_all_others_of_a_text(figures: list[float], due: dict[str, str]) -> None:
    """Two may be adapters of a slower network beside those of the GPUs."""
    of = imported({f"rdma-write mlx5_{number}": fact(each) for number, each in enumerate(figures)})
    assert said(of, RDMA) == due


def test_nothing_measured() -> None:
    assert said(plain("dgx-1-v100"), RDMA) == {"host": "skip not-recorded"}
