"""site.versions: what runs against what the site has pinned."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_health_checks import GPU2, NVML, box, changed

from dgxcheck.checks.driver.versions import CHECKS
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.run import run
from dgxcheck.cli import main
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.settings import Settings

VBIOS = f"{NVML}VbiosVersion {GPU2}"
FIRMWARE = "text /sys/class/infiniband/mlx5_1/fw_ver"
DRIVER = "nvml nvmlSystemGetDriverVersion"
NO_NVML: dict[str, Json] = {"nvml nvmlInit": {"missing": "absent", "detail": "NVML 12: not found"}}
GONE: Json = {"missing": "absent"}


FIRMWARES: dict[str, Json] = {f"text /sys/class/infiniband/mlx5_{n}/fw_ver": "12.28.2006\n" for n in range(4)}
RUNS = Settings(driver=("550.127.05",), vbios=("88.00.18.00.01",), hca_firmware=("12.28.2006",))


def found(folder: Path, settings: Settings, facts: dict[str, Json] | None = None) -> list[Finding]:
    """What is said of a DGX-1 whose HCAs tell their firmware, with more facts changed."""
    spec = changed(folder, FIRMWARES | (facts or {}))
    return [*run(replace(box(spec), settings=settings), [each for each in CHECKS if each.id == "site.versions"])]


def test_nothing_pinned_nothing_judged(tmp_path: Path) -> None:
    (only,) = found(tmp_path, Settings())
    assert (only.status, only.judgement.reason) == (Status.SKIP, "not-configured")


def test_a_box_that_runs_what_is_pinned_passes(tmp_path: Path) -> None:
    every = found(tmp_path, RUNS)
    assert {each.status for each in every} == {Status.PASS}
    assert [each.subject.kind for each in every] == ["host", *["gpu"] * 8, *["hca"] * 4]
    assert len({each.key for each in every}) == len(every)


def test_the_device_is_named(tmp_path: Path) -> None:
    pinned = Settings(driver=("1.2", "3.4"), hca_firmware=("1",), vbios=("AB.1",))
    every = found(tmp_path, pinned)
    assert {each.status for each in every} == {Status.WARN}
    assert {each.subject.name for each in every} >= {"host", "GPU2", "mlx5_1"}
    assert every[0].judgement.message == "driver 550.127.05, pinned 1.2 or 3.4"
    assert [each.subject.kind for each in found(tmp_path, Settings(driver=("1.2",)))] == ["host"]
    assert {each.subject.kind for each in found(tmp_path, Settings(hca_firmware=("1",)))} == {"hca"}


@pytest.mark.parametrize(
    ("facts", "bad"),
    [
        ({VBIOS: "00.00.00.00.00"}, {GPU2: "warn"}),
        ({VBIOS: {"missing": "unsupported"}}, {GPU2: "skip not-supported"}),
        ({VBIOS: {"missing": "garbled"}}, {GPU2: "unknown"}),
        ({FIRMWARE: "1.2.3\n"}, {"mlx5_1": "warn"}),
        ({FIRMWARE: {"missing": "denied"}}, {"mlx5_1": "skip no-permission"}),
        ({DRIVER: "1.2.3"}, {"driver": "warn"}),
        ({DRIVER: GONE}, {}),  # the module tells it too
        ({DRIVER: GONE, "text /proc/driver/nvidia/version": GONE}, {"driver": "skip not-supported"}),
        ({"names /sys/class/infiniband": GONE}, {"hca_firmware": "skip not-supported"}),
        ({"names /sys/class/infiniband": []}, {"hca_firmware": "skip not-visible"}),
    ],
)
def test_one_device_that_differs(facts: dict[str, Json], bad: dict[str, str], tmp_path: Path) -> None:
    every = found(tmp_path, RUNS, facts)
    differ = {
        each.subject.part or (each.subject.bdf if each.subject.kind == "gpu" else each.subject.name): " ".join(
            [each.status.value, each.judgement.reason]
        ).rstrip()
        for each in every
        if each.status is not Status.PASS
    }
    assert differ == bad


def test_without_nvml_the_driver_is_judged_still(tmp_path: Path) -> None:
    every = found(tmp_path, RUNS, NO_NVML)
    assert every[0].status is Status.PASS
    assert {each.judgement.reason for each in every if each.subject.kind == "gpu"} == {"dependency-failed"}


def test_letters_of_a_vbios_may_be_of_either_case(tmp_path: Path) -> None:
    pinned = Settings(vbios=(*RUNS.vbios, "88.00.ab.00.01"))
    assert {each.status for each in found(tmp_path, pinned, {VBIOS: "88.00.AB.00.01"})} == {Status.PASS}


def test_the_file_pins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "site.toml"
    path.write_text("versions.driver = '1.2'", encoding="utf-8")
    assert main(["health", "--only", "site", "-c", str(path), "--from", "dgx-1-v100"]) == 1
    assert "  WARN site.versions: driver 550.127.05, pinned 1.2\n" in capsys.readouterr().out
