"""Causes in English: names of components, how sure a cause is, one remedy for a finding and its cause."""

from __future__ import annotations

from typing import get_args

import pytest

from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.diagnosis.confidence import Confidence, Level, Reason
from dgxcheck.output.health.finding_lines import component_name
from dgxcheck.output.health.instructions import confidence_text


@pytest.mark.parametrize(
    ("component", "name"),
    [
        (Component(kind="gpu", name="GPU2", bdf="0000:0a:00.0"), "GPU2 0000:0a:00.0"),
        (Component(kind="gpu", name="GPU2", bdf="0000:0a:00.0", part="cooling"), "cooling of GPU2 0000:0a:00.0"),
        (Component(kind="gpus", name="GPUs", part="ECC mode"), "ECC mode of all GPUs"),
        (Component(kind="nvlink", name="GPU2 - GPU3", bdf="x", peer_bdf="y"), "NVLinks GPU2 - GPU3"),
        (Component(kind="bridge", name="0000:09:08.0", bdf="0000:09:08.0"), "PCIe port 0000:09:08.0"),
        (Component(kind="function", name="0000:00:1f.6", bdf="0000:00:1f.6"), "PCI function 0000:00:1f.6"),
        (host_part("memory", "mc2"), "memory at mc2 of the host"),
        (host_part("cooling"), "cooling of the host"),
        (DRIVER, "the NVIDIA driver"),
    ],
)
def test_components_have_names(component: Component, name: str) -> None:
    assert component_name(component) == name


def test_every_reason_says_how_sure_a_cause_is() -> None:
    other = Component(kind="gpu", name="GPU3", bdf="0000:0b:00.0")
    texts = {
        reason: confidence_text(
            Confidence(level="guess", reason=reason, kinds=2, among=2, beside=("mlx5_1",), others=(other,))
        )
        for reason in get_args(Reason)
    }
    assert len({*texts.values()}) == len(texts)
    assert {text.removeprefix("a ").partition(" ")[0] for text in texts.values()} == {*get_args(Level)}
    assert "mlx5_1" in texts["some-unaffected"]
    assert "GPU3 0000:0b:00.0" in texts["shared-with"]
