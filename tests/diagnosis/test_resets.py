"""What a reset takes along: no GPU that is dead, that the box does not have, or of which nothing says which it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from checkout import ROOT
from hand_made import ALL, box_of, gpu_part, in_place, planned, step, steps, stopped, with_facts, with_units
from judging import judged

from dgxcheck.assessment import assess
from dgxcheck.assessment.request import Request
from dgxcheck.cli import main
from dgxcheck.components.component import FABRIC_MANAGER, Component, host_part
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.diagnosis.action import first_remedy
from dgxcheck.diagnosis.reset_domain import can_reset, is_before_ampere
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json, rows
from dgxcheck.facts.record import replace
from dgxcheck.output.health.instructions import action_text

RESET_ALL = ("nvidia-smi", "-r")
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


@pytest.mark.parametrize(
    ("name", "component", "reset"),
    [
        ("dgx-a100", Component(kind="nvswitch", name="0000:c6:00.0", bdf="0000:c6:00.0"), False),
        ("dgx-1-v100", gpu_part(box_of("dgx-1-v100"), 2), False),
        ("dgx-a100", gpu_part(box_of("dgx-a100"), 2), True),
        ("k80-x8", gpu_part(box_of("k80-x8"), 2), True),
    ],
    ids=["NVSwitches with all GPUs", "all that NVLinks join", "from Ampere on alone", "a board"],
)
def test_all_gpus_are_reset_only_where_none_is_lost_that_is_not_found(
    name: str, component: Component, reset: bool
) -> None:
    fault = Fault.XID if component.kind == "gpu" else Fault.NVSWITCH
    acts = steps(planned(box_of(name), component, fault, dead=["0000:ff:00.0"]))
    assert ("reset-gpu" in acts) is reset
    assert "reboot" in acts


@pytest.mark.parametrize(
    ("name", "gpu", "reset", "argv"),
    [
        ("dgx-a100", 0, ("GPU0",), ("nvidia-smi", "-r", "-i", "0000:07:00.0")),
        ("dgx-1-v100", 2, ALL, ("nvidia-smi", "-r")),
        ("dgx-1-p100", 2, ALL, ("nvidia-smi", "-r")),
        ("dgx-station-v100", 0, ALL[:4], ("nvidia-smi", "-r")),
        ("k80-x8", 6, ("GPU6", "GPU7"), ("nvidia-smi", "-r", "-i", "0000:89:00.0,0000:8a:00.0")),
    ],
)
def test_what_a_reset_takes_along_is_the_architectures(
    name: str, gpu: int, reset: tuple[str, ...], argv: tuple[str, ...]
) -> None:
    acts = planned(box_of(name), gpu_part(box_of(name), gpu), Fault.XID)
    assert steps(acts)[:3] == ["drain", "stop-jobs", "reset-gpu"]
    assert step(acts, "reset-gpu").commands == (argv,)
    assert step(acts, "reset-gpu").disturbs == step(acts, "stop-jobs").disturbs == reset
    assert first_remedy(acts).step == "reset-gpu"


def test_from_ampere_on_a_gpu_is_reset_alone_also_without_nvswitches() -> None:
    bdfs = [gpu.bdf for gpu in box_of("dgx-1-v100").topology.gpus]
    box = with_facts("dgx-1-v100", {f"nvml nvmlDeviceGetArchitecture {bdf}": 7 for bdf in bdfs})
    reset = step(planned(box, gpu_part(box, 2), Fault.XID), "reset-gpu")
    assert (reset.commands, reset.disturbs) == ((("nvidia-smi", "-r", "-i", "0000:0a:00.0"),), ("GPU2",))
    assert reset.instruction.code == "reset-one"


@pytest.mark.parametrize(("second", "reset"), [("145, RLW_REMAP Fatal XC1 i0 Link -1 (0x80)", ("GPU0", "GPU1")),
                                              ("145, RLW_REMAP Nonfatal XC1 i0 Link -1 (0x80)", ("GPU0",))])
def test_a_gpu_that_fails_for_what_follows_from_another_is_reset_too(
    second: str, reset: tuple[str, ...], tmp_path: Path
) -> None:
    first = "NVRM: Xid (PCI:0000:1a:00): 145, RLW_REMAP Fatal XC1 i0 Link -1 (0x80)"
    lines = {"kmsg 40": f"3600.4;{first}", "kmsg 41": f"3600.41;NVRM: Xid (PCI:0000:3a:00): {second}"}
    path = tmp_path / "box.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-b300", "facts": {}, "add": lines}))
    (cause,) = judged(str(path))[1]["causes"]
    (act,) = [act for act in cause["actions"] if act["action"] == "reset-gpu"]
    assert tuple(act["disturbs"]) == reset


def test_an_architecture_that_is_not_reported_is_that_of_the_capability_the_name_or_the_siblings() -> None:
    bdfs = [gpu.bdf for gpu in box_of("dgx-a100").topology.gpus]
    unknown: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
    names = ("Architecture", "CudaComputeCapability")
    one = with_facts("dgx-a100", {f"nvml nvmlDeviceGet{name} {bdfs[0]}": unknown for name in names})
    assert is_before_ampere(one, one.topology.gpus[0]) is False
    named = with_facts("dgx-a100", {f"nvml nvmlDeviceGet{name} {bdf}": unknown for name in names for bdf in bdfs})
    assert is_before_ampere(named, named.topology.gpus[0]) is False
    asked = (*names, "Name")
    nameless = {f"nvml nvmlDeviceGet{name} {bdf}": unknown for name in asked for bdf in bdfs}
    none = with_facts("dgx-a100", nameless)
    assert is_before_ampere(none, none.topology.gpus[0]) is None
    assert step(planned(none, gpu_part(none, 0), Fault.XID), "reset-gpu").disturbs == ALL
    links = {f"nvml nvmlDeviceGetNvLinkState {bdf} {link}": unknown for bdf in bdfs for link in range(12)}
    dark = with_facts("dgx-a100", links | nameless)
    dark = replace(dark, choice=None)  # a machine that no profile describes; its NVSwitches join the GPUs
    assert step(planned(dark, gpu_part(dark, 0), Fault.XID), "reset-gpu").disturbs == ALL
    beside = with_facts("dgx-station-a100", {f"nvml nvmlDeviceGet{name} 0000:81:00.0": unknown for name in asked})
    answers = {gpu.bdf: is_before_ampere(beside, gpu) for gpu in beside.topology.gpus}
    assert (answers["0000:81:00.0"], answers["0000:c1:00.0"]) == (False, True)
    p100 = box_of("dgx-1-p100")
    assert is_before_ampere(p100, p100.topology.gpus[0]) is True


def test_nvswitches_are_reset_with_all_gpus_and_fabric_manager_stopped() -> None:
    box = with_units("dgx-a100", "nvidia-fabricmanager")
    acts = planned(box, Component(kind="nvswitch", name="0000:c6:00.0", bdf="0000:c6:00.0"), Fault.NVSWITCH)
    assert step(acts, "stop-jobs").commands[0] == ("systemctl", "stop", "nvidia-fabricmanager")
    assert step(acts, "reset-gpu").commands == (("nvidia-smi", "-r"),)
    assert step(acts, "reset-gpu").instruction.code == "reset-all-with-switches"


def test_from_hopper_on_fabric_manager_is_started_after_a_reset_of_all() -> None:
    """NVIDIA Fabric Manager guide, initializing NVSwitch and NVLink; earlier ones are restarted alone."""
    for name in ("dgx-h100", "dgx-b200", "dgx-b300"):
        box = box_of(name)
        acts = planned(box, FABRIC_MANAGER, Fault.FABRIC_MANAGER_DOWN)
        assert steps(acts) == ["inspect", "drain", "stop-jobs", "restart-service", "reboot"]
        assert "nvidia-fabricmanager" in stopped(acts)
        assert step(acts, "restart-service").commands == (RESET_ALL, ("systemctl", "start", "nvidia-fabricmanager"))
        lost = planned(box, FABRIC_MANAGER, Fault.FABRIC_MANAGER_DOWN, dead=[str(box.topology.gpus[0].bdf)])
        assert steps(lost) == ["inspect", "drain", "reboot"]
    before = planned(box_of("dgx-a100"), FABRIC_MANAGER, Fault.FABRIC_MANAGER_DOWN)
    assert step(before, "restart-service").commands == (("systemctl", "restart", "nvidia-fabricmanager"),)


def test_in_a_guest_nothing_is_reset_or_restarted_that_is_its_hosts() -> None:
    """NVIDIA Fabric Manager guide, reset capabilities and virtualization models."""
    linked = in_place("dgx-a100", vm="kvm")
    assert "reset-gpu" not in steps(planned(linked, gpu_part(linked, 0), Fault.XID))
    guest = box_of("vm-h100-x8")
    assert "reset-gpu" in steps(planned(guest, gpu_part(guest, 0), Fault.XID))
    for component in (FABRIC_MANAGER, NVSWITCHES):
        assert {*steps(planned(guest, component, Fault.NVLINK_DOWN))} <= {"drain", "contact-host"}
    for fault in (Fault.LINK_SLOW, Fault.NUMA_MODE):
        acts = planned(guest, Component(kind="host", name="host", part="NUMA setting"), fault)
        assert "change-setting" not in steps(acts)
        assert steps(acts).count("contact-host") == 1


@pytest.mark.parametrize(
    ("name", "up", "reset"),
    [("dgx-a100", 8, False), ("dgx-a100", 1, False), ("dgx-a100", 0, True), ("dgx-1-v100", 0, True),
     ("dgx-1-v100", 8, False)],
)  # fmt: skip
def test_a_guest_resets_what_no_nvlink_joins(name: str, up: int, reset: bool) -> None:
    """An A100 that is passed through alone, or a card without a bridge, has NVLinks of which none is up."""
    box = in_place(name, vm="kvm")
    linked = {gpu.bdf for gpu in box.topology.gpus[-up:]} if up else set()
    links = tuple(replace(row, up=row.bdf in linked and row.up) for row in rows(box.snapshot.nvlink))
    box = replace(box, snapshot=replace(box.snapshot, nvlink=links))
    assert can_reset(box, gpu_part(box, 0), frozenset()) is reset


def test_fabric_manager_of_a_guest_is_restarted_there_if_it_is_its_own() -> None:
    """NVSwitches of HGX B300 are not on PCI; those of H100 are, wherever they are passed through."""
    whole = ["inspect", "drain", "stop-jobs", "restart-service", "reboot"]
    for name, units, due in (
        ("dgx-b300", ("nvidia-fabricmanager",), whole),
        ("dgx-b300", (), ["drain", "contact-host"]),
        ("vm-h100-x8", ("nvidia-fabricmanager",), ["drain", "contact-host"]),
        ("dgx-b200", (), whole),
    ):
        guest = in_place(name, vm="kvm")
        guest = replace(guest, snapshot=replace(guest.snapshot, units=with_units(name, *units).snapshot.units))
        assert (name, units, steps(planned(guest, FABRIC_MANAGER, Fault.FABRIC_MANAGER_DOWN))) == (name, units, due)


def test_beside_a_dead_gpu_no_restart_of_fabric_manager_resets_all() -> None:
    for name, reset in (("hgx-h100", True), ("dgx-a100", False)):
        box = box_of(name)
        for component in (gpu_part(box, 0, "fabric"), NVSWITCHES, FABRIC_MANAGER):
            acts = planned(box, component, Fault.FABRIC_FAILED, dead=[str(box.topology.gpus[5].bdf)])
            assert ("restart-service" in steps(acts)) is not reset
            assert RESET_ALL not in [command for act in acts for command in act.commands]
            assert "restart-service" in steps(planned(box, component, Fault.FABRIC_FAILED))
    tray = box_of("gb300-nvl72")
    acts = planned(tray, host_part("IMEX"), Fault.IMEX_RECOVERY, dead=[str(tray.topology.gpus[1].bdf)])
    assert "restart-service" in steps(acts)


def test_what_a_container_cannot_do_is_for_its_host() -> None:
    box = in_place("dgx-a100", container="docker")
    for acts in (
        planned(box, FABRIC_MANAGER, Fault.FABRIC_MANAGER_DOWN),
        planned(box, host_part("power supply"), Fault.POWER_SUPPLY),
        planned(box, Component(kind="port", name="NIC0/1"), Fault.PORT_ERRORS)[1:],
        planned(box, gpu_part(box, 0), Fault.XID),
        planned(box, Component(kind="disk", name="md0"), Fault.ARRAY_FAILED),
        planned(box, gpu_part(box, 0, "persistence mode"), Fault.PERSISTENCE_OFF),
    ):
        marked = [action for action in acts if action_text(action, {}).startswith("on the host of this container")]
        assert [action.step for action in marked] == [acts[0].step]
    settings = planned(box, Component(kind="host", name="host", part="settings of NCCL"), Fault.SLOW)
    assert "container" not in action_text(settings[0], {})


def test_what_the_driver_asks_for_is_done_as_it_asks() -> None:
    """nvidia-smi(1), GPU Recovery Action and --gpu-reset: a GPU that drains works on; a bus reset is its own option."""
    key = "nvml nvmlDeviceGetFieldValues 0000:07:00.0 230"
    box = with_facts("dgx-a100", {key: 6})
    assert step(planned(box, gpu_part(box, 0), Fault.RESET_REQUIRED), "reset-gpu").commands == (
        ("nvidia-smi", "-r", "bus", "-i", "0000:07:00.0"),
    )
    acts = planned(box_of("dgx-a100"), gpu_part(box_of("dgx-a100"), 0), Fault.DRAIN_AND_RESET, Fault.ECC_UNCORRECTED)
    assert [action.urgency for action in acts[:3]] == ["now", "next-drain", "next-drain"]


def test_a_profile_of_ones_own_may_name_a_board_that_is_not_listed(tmp_path: Path) -> None:
    """Of a machine without GPUs its model is asked for."""
    shipped = (ROOT / "dgxcheck/profiles/dgx-1-v100.toml").read_text(encoding="utf-8")
    (own := tmp_path / "own.toml").write_text(re.sub(r"(?m)^boards = .*", 'boards = ["10de:ffff"]', shipped))
    (tree := tmp_path / "tree/sys/bus/pci/devices").mkdir(parents=True)
    assessment = assess(str(tree.parents[3]), Request(profile=str(own)))
    assert [cause.component.part for cause in assessment.diagnosis.causes] == ["missing GPU"]
