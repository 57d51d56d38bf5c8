"""What is to be done first about slow figures: nothing is reset where settings may be the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made import box_of, finding
from judging import judged
from measured_box import fact, overlay

from dgxcheck.components.component import Component
from dgxcheck.components.locate import peer_path
from dgxcheck.diagnosis.change_setting import setting
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import need
from dgxcheck.facts.record import replace

SLOW_RUNS = {"collective all_reduce 8": fact(62.0), "collective broadcast 8": fact(56.8)}


@pytest.mark.parametrize(("base", "pair", "code"), [
    ("dgx-1-v100", (0, 3), None),
    ("k80-x8", (0, 1), "peer-traffic"),
    ("pcie-x4", (0, 1), "peer-traffic"),
])  # fmt: skip
def test_a_pair_with_nvlink_gets_no_advice_for_pcie(base: str, pair: tuple[int, int], code: str | None) -> None:
    box = box_of(base)
    path = peer_path(*(box.topology.gpus[number] for number in pair))
    found = setting(box, path, [finding(path, Fault.SLOW)], ())
    assert (found and found[1].code) == code


@pytest.mark.parametrize(("vm", "due"), [("kvm", "kvm"), (None, "")])
def test_what_a_guest_cannot_set_is_its_host_s(vm: str | None, due: str) -> None:
    bare = box_of("pcie-x4")
    box = replace(bare, snapshot=replace(bare.snapshot, host=replace(need(bare.snapshot.host), vm=vm)))
    path = peer_path(*box.topology.gpus[:2])
    found = setting(box, path, [finding(path, Fault.SLOW)], ())
    assert found is not None
    assert found[1].values == {"guest": due}


def test_sockets_and_root_complexes_have_settings_of_their_own() -> None:
    box = box_of("pcie-x8")
    sockets = Component(kind="socket-interconnect", name="NUMA nodes 0 and 1")
    found = setting(box, sockets, [finding(sockets, Fault.SLOW)], ())
    assert found is not None
    assert found[1].code == "socket-links"


def test_a_slow_collective_alone_resets_no_gpu(tmp_path: Path) -> None:
    """As with NCCL over PCIe: every GPU is as likely as the next, and NCCL's settings are looked at first."""
    _, document = judged(overlay(tmp_path, SLOW_RUNS, "dgx-a100"))
    (cause,) = document["causes"]
    assert cause["id"] == "host/host/settings of NCCL"
    assert [action["action"] for action in cause["actions"]] == ["change-setting"]
