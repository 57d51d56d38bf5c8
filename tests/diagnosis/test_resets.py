"""A reset takes no GPU that is dead, that the box does not have, or of which nothing says which it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hand_made import box_of, gpu_part
from judging import judged

from dgxcheck.cli import main
from dgxcheck.components.component import Component
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.diagnosis.reset_domain import can_reset

UNKNOWN: frozenset[str | None] = frozenset({None})


def test_beside_a_dead_gpu_of_unknown_place_all_are_not_reset_and_one_can_be() -> None:
    for box in map(box_of, ("dgx-1-v100", "dgx-a100")):
        assert can_reset(box, NVSWITCHES, frozenset())
        assert not can_reset(box, NVSWITCHES, UNKNOWN)
    assert can_reset(box_of("dgx-a100"), gpu_part(box_of("dgx-a100"), 2), UNKNOWN)
    assert not can_reset(box_of("dgx-1-v100"), gpu_part(box_of("dgx-1-v100"), 2), UNKNOWN)


def test_a_gpu_that_the_box_does_not_have_is_no_reason_to_reset_all() -> None:
    stranger = Component(kind="gpu", name="GPU 0000:fe:00.0", bdf="0000:fe:00.0")
    assert not can_reset(box_of("dgx-h100"), stranger, frozenset())


def test_a_silent_gsp_without_a_number_is_of_the_gpu_that_logs_an_xid_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "silent.json"
    lines = {
        "kmsg 40": "3600.000000;NVRM: _kgspRpcRecvPoll: GSP RM heartbeat timed out",
        "kmsg 41": "3600.100000;NVRM: Xid (PCI:0000:52:00): 154, GPU recovery action changed from 0x0 (None) to 0x1"
        " (GPU Reset Required)",
    }
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-h100", "add": lines}), encoding="utf-8")
    (cause,) = judged(str(path))[1]["causes"]
    assert cause["component"]["bdf"] == "0000:52:00.0"
    (reset,) = [action for action in cause["actions"] if action["action"] == "reset-gpu"]
    assert reset["disturbs"] == ["GPU2"]


def test_a_log_that_names_an_nvswitch_alone_resets_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Form of the line: NVIDIA Fabric Manager guide, appendix D."""
    log = tmp_path / "dmesg.txt"
    log.write_text("[1.5] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 30 sourcetrack timeout error\n")
    assert main(["health", "--from", str(log)]) == 2
    text = capsys.readouterr().out
    assert "reset GPU: nvidia-smi -r; resets all GPUs and NVSwitches" in text
    assert "nvidia-fabricmanager" in text
    assert "this GPU" not in text
