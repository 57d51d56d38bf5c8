"""Which GPUs there are when NVML, a GPU or an answer is broken."""

from __future__ import annotations

import pytest
from fake_nvml_source import LOST, NOT_SUPPORTED, FakeNvml, box

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import fields
from dgxcheck.source.protocol import Json
from probes.gpu.identity import gpu, gpu_affinity
from probes.gpu.readings import gpu_ecc, gpu_power


def test_a_lost_gpu_keeps_its_neighbour() -> None:
    answers: dict[str, Json | Missing] = {"nvmlDeviceGetHandleByIndex 0": LOST, "nvmlDeviceGetName": "V"}
    source = box("0000:06:00.0", "0000:07:00.0", answers=answers)
    nvml = gpu(source)
    assert not isinstance(nvml, Missing)
    assert (nvml.count, nvml.lost) == (2, (LOST,))
    assert [(found.index, found.bdf, found.name) for found in nvml.gpus] == [(1, "0000:07:00.0", "V")]
    power = gpu_power(source)
    assert not isinstance(power, Missing)
    assert [found.bdf for found in power] == ["0000:07:00.0"]


def test_a_gpu_that_got_lost_since_it_was_listed_has_gaps_only() -> None:
    listed: dict[str, Json] = {"nvmlInit": True, "nvmlDeviceGetCount": 1, "nvmlDeviceGetHandleByIndex": "0000:06:00.0"}
    found = gpu_power(FakeNvml(lambda function, subject, args: listed.get(function, LOST)))
    assert not isinstance(found, Missing)
    (power,) = found
    assert power.bdf == "0000:06:00.0"
    assert {getattr(power, field) for field in fields(power)} == {"0000:06:00.0", LOST}


def test_no_nvml_is_the_gap_of_nvml() -> None:
    broken = Missing(Gap.ABSENT, "nvmlInit", "NVML 9: driver not loaded", 9)
    source = box("0000:06:00.0", answers={"nvmlInit": broken})
    assert gpu(source) == gpu_ecc(source) == gpu_affinity(source) == broken


def test_a_count_that_fails_leaves_the_versions() -> None:
    nvml = gpu(box(answers={"nvmlDeviceGetCount": NOT_SUPPORTED, "nvmlSystemGetDriverVersion": "384.183"}))
    assert not isinstance(nvml, Missing)
    assert (nvml.driver_version, nvml.gpus, nvml.count) == ("384.183", (), NOT_SUPPORTED)


@pytest.mark.parametrize("count", [-1, 10**9, "8", 8.0, None, True])
def test_a_garbled_count_is_not_followed(count: int | float | str | None) -> None:
    source = box("0000:06:00.0", answers={"nvmlDeviceGetCount": count})
    power = gpu_power(source)
    assert isinstance(power, Missing)
    assert power.gap is Gap.GARBLED
    assert len(source.asked) == 2


def test_one_bdf_twice_is_one_gpu() -> None:
    nvml = gpu(box("0000:06:00.0", "00000000:06:00.0", "no bdf", answers={}))
    assert not isinstance(nvml, Missing)
    assert [found.bdf for found in nvml.gpus] == ["0000:06:00.0"]
    assert [lost.gap for lost in nvml.lost] == [Gap.GARBLED, Gap.GARBLED]
