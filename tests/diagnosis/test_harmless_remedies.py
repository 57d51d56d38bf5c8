"""First actions that would cost data, downtime or a wrong RMA are not taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hand_made import box_of, gpu_part, planned, step, steps, with_facts, with_units
from judging import briefly, of_text
from test_health_checks import changed

from dgxcheck.assessment import Assessment, Request, assess
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.kernel_log.xid_meaning import fault_of
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import NVSWITCHES_ON_PCI, FaultKind
from dgxcheck.facts.host import Modules
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.output.health.instructions import action_text
from dgxcheck.xid.relations import recovery_of
from dgxcheck.xid.table import REMEDIES, meaning

GPU0 = "0000:07:00.0"
_HERE = "diagnosis/test_harmless_remedies.py"
CORRECTED: Mapping[int, tuple[str, str, str]] = {
    # what was corrected, the file that holds it, words of that file
    1: ("memory that cannot be repaired fails", "checks/test_spare_memory.py", "Fault.MEMORY_UNREPAIRABLE"),
    2: ("the log keeps every line that a form reads", "source/test_kernel_messages.py", "test_every_line_arrives"),
    3: ("a tray is cycled by its BMC", _HERE, "test_a_tray_of_a_rack"),
    4: ("translation is no obstacle beside a Grace", _HERE, "test_translation_is_no_obstacle"),
    5: ("ACS of a ConnectX-8 by its place", "checks/test_acs_rules.py", "test_each_port_has_the_bits_of_its_place"),
    6: ("a recovery of IMEX ends jobs of all nodes", _HERE, "test_a_recovery_of_the_imex_domain"),
    7: ("Xid 144 to 150 by NVIDIA's table", "checks/test_xid_nvlink5.py", "test_the_peer_is_blamed_first"),
    8: ("counters of NVLink 5", _HERE, "test_counters_of_nvlink_5"),
    9: ("ranks are no inventory", _HERE, "test_ranks_of_a_run"),
    10: ("a RAID 0 is assembled again", _HERE, "test_an_array_without_redundancy"),
    11: ("no VBIOS is flashed", _HERE, "test_no_vbios"),
    12: ("a pending row is due now without page offlining", _HERE, "test_a_pending_row"),
    13: ("all that holds a GPU ends before a reset", _HERE, "test_what_holds_a_gpu"),
    14: ("Xid 160 marks a repair", _HERE, '(160, "repair"'),
    15: ("Xids 167, 174 and 176", _HERE, '(174, "program"'),
    16: ("no reason is guessed for a failed remapping", "golden/dgx-h100-remap-failed.health.txt",
         "a row remapping failed\n"),
    17: ("whose limit of retired pages it is", "../dgxcheck/thresholds.tsv", "Meta GCM alone; Azure: 62"),
    18: ("the time of the power brake", _HERE, "test_the_time_of_the_power_brake"),
    19: ("a step's source is about it", "documents/test_remedies_once.py", "Xid 79 is a lost GPU's"),
    20: ("Xid 45 alone", _HERE, "test_xid_45_alone"),
    21: ("Jetson is refused", "readers/test_gpus_named.py", "test_jetson_is_refused_on_the_machine_itself"),
    22: ("no bridge of a board of a rack", _HERE, "test_no_bridge_is_reseated"),
}  # fmt: skip
"""What was wrong with the statements of the first release, by number: what was changed, file, and words now in it."""


@pytest.mark.parametrize("number", CORRECTED)
def test_what_was_corrected_is_held(number: int) -> None:
    what, file, words = CORRECTED[number]
    held = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
    assert held.count(words) > (file == _HERE), what


def named(base: str, model: str) -> Mapping[str, Json]:
    """Every GPU of the box under another name."""
    return {f"nvml nvmlDeviceGetName {gpu.bdf}": model for gpu in box_of(base).topology.gpus}


def result(folder: Path, base: str, facts: Mapping[str, Json]) -> Assessment:
    return assess(changed(folder, dict(facts), base), Request())


def of(found: Assessment, check: str) -> list[Finding]:
    return [each for each in found.findings if each.id == check]


def text_of(box: Box, component: Component, fault: FaultKind, which: str) -> str:
    return action_text(step(planned(box, component, fault), which), {})


def test_a_tray_of_a_rack_is_cycled_by_its_bmc_not_by_the_rack_s_power() -> None:
    tray = with_facts("dgx-a100", dict(named("dgx-a100", "NVIDIA GB200")))
    text = text_of(tray, gpu_part(tray, 0), Fault.GPU_LOST, "power-cycle")
    assert "AuxPowerCycleForce" in text
    assert "remove AC power" not in text
    other = box_of("dgx-a100")
    assert "remove AC power" in text_of(other, gpu_part(other, 0), Fault.GPU_LOST, "power-cycle")


@pytest.mark.parametrize(("model", "due"), [("NVIDIA GB200", Status.SKIP), ("Tesla V100-SXM2-16GB", Status.WARN)])
def test_translation_is_no_obstacle_where_hcas_reach_gpu_memory_over_c2c(
    model: str, due: Status, tmp_path: Path
) -> None:
    found = result(tmp_path, "dgx-1-v100-iommu-dma", named("dgx-1-v100", model))
    assert [each.status for each in of(found, "gdr.iommu")] == [due]


@pytest.mark.parametrize("device", ["0x1023", "0x1013"])
def test_a_connectx_8_below_a_switch_of_another_maker_is_as_any_adapter(device: str, tmp_path: Path) -> None:
    hcas = [each.bdf for each in box_of("dgx-1-v100").topology.devices if each.kind == "nic"]
    ids = {f"text /sys/bus/pci/devices/{bdf}/device": f"{device}\n" for bdf in hcas}
    assert "setpci" in _all_that_is_typed(result(tmp_path, "dgx-1-v100-acs-redirect", ids))


@pytest.mark.parametrize("name", ["dgx-b300-acs-gpu-port", "gb300-nvl72-acs-gpu-port"])
def test_no_acs_bits_are_set_by_hand_where_ports_have_rules_of_their_own(name: str, tmp_path: Path) -> None:
    typed = _all_that_is_typed(result(tmp_path, name, {}))
    assert "setpci -s" not in typed
    assert "pci=config_acs=" in typed


def _all_that_is_typed(found: Assessment) -> str:
    typed = [" ".join(command) for cause in found.causes for act in cause.actions for command in act.commands]
    return " ".join([*typed, *(each.remedy for each in found.findings if each.status is not Status.PASS)])


@pytest.mark.parametrize(
    ("words", "fault"),
    [("0x5 (Recover IMEX Domain)", Fault.IMEX_RECOVERY), ("0x6 (Bus Reset)", Fault.RESET_REQUIRED),
     ("0x7 (System Reboot)", Fault.REBOOT_REQUIRED), ("0x9 (Something New)", Fault.RECOVERY_REQUIRED)],
)  # fmt: skip
def test_recovery_actions_of_xid_154(words: str, fault: FaultKind) -> None:
    text = f"GPU recovery action changed from 0x0 (None) to {words}"
    assert recovery_of(text) != "none"
    assert fault_of([(meaning(154, None), text)]) is fault


def test_a_recovery_of_the_imex_domain_ends_jobs_of_the_fabric_and_resets_no_gpu() -> None:
    box = box_of("dgx-a100")
    acts = planned(box, gpu_part(box, 0), Fault.IMEX_RECOVERY)
    assert step(acts, "restart-service").scope == "jobs"
    assert step(acts, "restart-service").commands == (("systemctl", "restart", "nvidia-imex"),)
    assert "reset-gpu" not in steps(acts)


def test_an_array_without_redundancy_is_assembled_again_before_its_data_is_given_up() -> None:
    array = Component(kind="disk", name="md0")
    text = text_of(box_of("dgx-station-v100-disk-missing"), array, Fault.ARRAY_FAILED, "replace")
    assert text.index("mdadm --assemble") < text.index("lost")


@pytest.mark.parametrize(
    ("model", "fault"),
    [("NVIDIA A100-SXM4-40GB", Fault.REMAP_PENDING), ("NVIDIA H100 80GB HBM3", Fault.REMAP_PENDING),
     ("NVIDIA GH200 480GB", Fault.REMAP_PENDING), ("NVIDIA B200", Fault.REMAP_PENDING),
     ("NVIDIA A30", Fault.REMAP_PENDING), ("NVIDIA A40", Fault.REMAP_DUE), ("NVIDIA A10", Fault.REMAP_DUE),
     ("NVIDIA L40S", Fault.REMAP_DUE), ("NVIDIA L4", Fault.REMAP_DUE), ("NVIDIA RTX A6000", Fault.REMAP_DUE)],
)  # fmt: skip
def test_a_pending_row_is_due_now_where_no_page_is_taken_out(model: str, fault: FaultKind, tmp_path: Path) -> None:
    facts: dict[str, Json] = {**named("dgx-a100", model), f"nvml nvmlDeviceGetRemappedRows {GPU0}": [0, 1, 1, 0]}
    (bad,) = [each for each in of(result(tmp_path, "dgx-a100", facts), "ecc.row-remap") if each.judgement.fault]
    assert bad.judgement.fault is fault
    assert fault.fails == ("now" if fault is Fault.REMAP_DUE else "next-drain")


def test_what_holds_a_gpu_is_stopped_before_its_reset() -> None:
    box = with_units("dgx-a100", "nvidia-imex", "kubelet")
    acts = planned(box, gpu_part(box, 0), Fault.XID)
    assert ("systemctl", "stop", "nvidia-imex") in step(acts, "stop-jobs").commands
    assert "gpu-feature-discovery" in action_text(step(acts, "stop-jobs"), {})
    assert "nvidia-smi -i 0000:07:00.0 -pm 0" in action_text(step(acts, "reset-gpu"), {})


def test_modules_that_hold_the_driver_are_unloaded_first() -> None:
    box = box_of("dgx-a100")
    modules = box.snapshot.modules
    assert isinstance(modules, Modules)
    held = tuple(replace(each, loaded=True) for each in modules.modules)
    box = replace(box, snapshot=replace(box.snapshot, modules=replace(modules, modules=held)))
    (unload, load) = step(planned(box, DRIVER, Fault.DRIVER_MISMATCH), "load-module").commands
    assert unload[:4] == ("modprobe", "-r", "nvidia_fs", "gdrdrv")
    assert load[-2:] == ("gdrdrv", "nvidia_fs")


@pytest.mark.parametrize(
    ("number", "response", "about"),
    [(160, "repair", "memory"), (161, "watch", "memory"), (167, "pcie", "PCIe link"), (174, "program", ""),
     (176, "pcie", "PCIe link")],
)  # fmt: skip
def test_what_newer_xids_are_about(number: int, response: str, about: str) -> None:
    known = meaning(number, None)
    assert (known.response, known.about) == (response, about)


@pytest.mark.parametrize(
    ("field", "value", "due"),
    [(213, 1, Status.WARN), (214, 2, Status.FAIL), (220, 0x509, Status.FAIL), (222, 0x50F, Status.SKIP)],
)  # fmt: skip
def test_counters_of_nvlink_5_are_other_fields(field: int, value: int, due: Status, tmp_path: Path) -> None:
    """Recoveries, and bit error rates of 5e-9 and 5e-15."""
    key = f"nvml nvmlDeviceGetFieldValues 0000:1b:00.0 3 {field}"
    found = of(result(tmp_path, "dgx-b200", {key: value}), "nvlink.errors")
    assert {each.status for each in found if each.subject.bdf == "0000:1b:00.0" and each.subject.part == "3"} == {due}


RANKS = """\
# Using devices
#   Rank  0 Pid  23455 on  box17 device  0 [0x06] Tesla K80
#   Rank  1 Pid  23455 on  box17 device  1 [0x07] Tesla K80
#   Rank  2 Pid  23455 on  box17 device  2 [0x0a] Tesla K80
#
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
   134217728      33554432     float     sum    17200    7.80   10.40  0e+00    17180    7.81   10.42  0e+00
"""


def test_ranks_of_a_run_are_no_inventory(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text(RANKS)
    found = assess(str(tmp_path / "run.txt"), Request(profile="k80-x8"))
    assert {each.status for each in of(found, "gpu.count")} <= {Status.SKIP}
    assert found.causes == ()


def test_no_vbios_of_another_board_is_flashed(tmp_path: Path) -> None:
    found = result(tmp_path, "dgx-a100", {f"nvml nvmlDeviceGetVbiosVersion {GPU0}": "92.00.19.00.0F"})
    (cause,) = found.causes
    (bad,) = [each for each in found.findings if each.key in cause.explains]
    assert "ask the vendor" in bad.remedy


def test_the_time_of_the_power_brake_is_counted(tmp_path: Path) -> None:
    key = "nvml nvmlDeviceGetFieldValues 0000:1b:00.0"
    document = {
        "schema": "dgxcheck/overlay/1", "base": "dgx-h100", "facts": {f"{key} 271": 0},
        "later": [{"at_s": 3600, "facts": {key: {"271": 1_800_000_000_000}}}],
    }  # fmt: skip
    (tmp_path / "box.json").write_text(json.dumps(document))
    found = of(assess(str(tmp_path / "box.json"), Request()), "clock.throttle")
    assert [each.judgement.fault for each in found if each.status is not Status.PASS] == [Fault.POWER_BRAKE]


def test_xid_45_alone_asks_for_fabric_manager_where_there_are_nvswitches() -> None:
    assert "on a machine with NVSwitches drain it and restart Fabric Manager" in REMEDIES[
        meaning(45, None).response
    ]


def test_no_bridge_is_reseated_where_only_the_vendor_may() -> None:
    for name in ("dgx-b200", "gb200-nvl72", "dgx-h100"):
        box = box_of(name)
        acts = planned(box, gpu_part(box, 0, "NVLink"), Fault.XID)
        assert not {"reseat", "replace"} & {*steps(acts)}
        assert "bridge" not in " ".join(action_text(each, {}) for each in acts)


def test_what_a_machine_does_not_have_is_not_looked_at() -> None:
    """A tray has no power supply, a share of a board no settings, a failed fan no coolant."""
    tray, share, guest = box_of("gb200-nvl72"), box_of("vgpu-l40s"), box_of("vm-h100-x8")
    supply = planned(tray, host_part("power supply"), Fault.POWER_SUPPLY)
    assert steps(supply) == ["inspect", "drain", "contact-vendor"]
    assert "power shelves" in action_text(supply[0], {})
    (fan, *_) = planned(tray, host_part("cooling"), Fault.FAN)
    assert "fans" in action_text(fan, {})
    limit, places = gpu_part(share, 0, "power limit"), host_part("placement of GPUs")
    assert steps(planned(share, limit, Fault.POWER_CAPPED, status=Status.WARN)) == ["contact-host"]
    assert steps(planned(guest, places, Fault.MISPLACED)) == ["contact-host"]
    for box, due in ((guest, False), (box_of("dgx-h100"), True)):
        test = step(planned(box, gpu_part(box, 0, "memory"), Fault.REMAP_FAILED), "field-diagnostic")
        assert ("vendor's field diagnostic" in action_text(test, {})) is due


def test_what_a_reset_takes_from_mig_is_made_again_and_off_for_a_diagnostic() -> None:
    box = box_of("dgx-a100-mig")
    acts = planned(box, gpu_part(box, 1, "memory"), Fault.ECC_UNCORRECTED)
    assert all("nvidia-mig-parted" in action_text(step(acts, which), {}) for which in ("reset-gpu", "reboot"))
    assert "-mig 0" in action_text(step(acts, "field-diagnostic"), {})


SIGNAL = """\
Operational Info
----------------
State                           : Polling

Troubleshooting Info
--------------------
Status Opcode                   : 15
Group Opcode                    : PHY FW
Recommendation                  : Bad signal integrity
"""


@pytest.mark.parametrize(
    ("text", "due"),
    [
        (SIGNAL, "reseat the cable"),  # of an adapter without a name there is nothing to type
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "run modprobe nvidia"),
    ],
)
def test_of_a_text_nothing_is_taken_out_or_unloaded_that_it_does_not_name(
    text: str, due: str, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text(text)
    (cause,) = assess(str(tmp_path / "text"), Request()).causes
    found = assess(str(tmp_path / "text"), Request()).found
    typed = [action_text(act, found) for act in cause.actions]
    assert any(due in words for words in typed)
    assert not [words for words in typed if "HCA -" in words or "modprobe -r" in words]


@pytest.mark.parametrize("base", ["gb200-nvl72", "gb300-nvl72", "gh200"])
def test_no_module_is_replaced_where_memory_is_soldered(base: str, tmp_path: Path) -> None:
    path = tmp_path / "soldered.json"
    line = "100.0;EDAC MC0: 3 UE multi-bit ECC on unknown memory (node:0 card:0 module:0 rank:0 page:0x0 offset:0x0)"
    overlay = {"schema": "dgxcheck/overlay/1", "base": base, "facts": {}, "add": {"kmsg 90": line}}
    path.write_text(json.dumps(overlay), encoding="utf-8")
    (found,) = [finding for finding in assess(str(path)).findings if finding.id == "kernel.memory"]
    assert "DIMM" not in found.remedy
    assert "tray" in found.remedy


@pytest.mark.parametrize(("fault", "before"), [
    ("dgx-a100-sxid-20034", "drain and stop jobs, then reset GPU: nvidia-smi -r;"),
    ("dgx-1-v100-xid-79", "drain, then reboot"), ("dgx-1-v100-odd-acs-validation", "compare it"),
])  # fmt: skip
def test_what_ends_jobs_is_not_said_without_what_comes_before_it(fault: str, before: str) -> None:
    """As the remedy of a finding, which Nagios and a fleet print by itself."""
    bad = [each for each in briefly(fault)["findings"] if each["status"] in ("warn", "fail")]
    assert bad
    assert [each["key"] for each in bad if not each["remedy"].startswith(before)] == []


def test_a_log_alone_does_not_say_that_a_gpu_is_a_card(tmp_path: Path) -> None:
    line = "[ 1000.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    (cause,) = of_text(line, tmp_path)[1]["causes"]
    (reseat,) = [action["text"] for action in cause["actions"] if action["action"] == "reseat"]
    assert reseat.endswith(" (of an SXM module only the vendor)")


def test_nvswitches_that_are_not_on_pci_are_no_reason_to_disable_fabric_manager(tmp_path: Path) -> None:
    text = f"""$ nvidia-smi -L
GPU 0: NVIDIA B200 (UUID: GPU-{"1" * 8}-1111-1111-1111-{"1" * 12})
$ systemctl status nvidia-fabricmanager
× nvidia-fabricmanager.service - NVIDIA fabric manager service
     Active: failed (Result: exit-code) since Fri 2026-01-30 11:58:43 UTC; 2 weeks 4 days ago
"""
    said = [each["remedy"] for each in of_text(text, tmp_path)[1]["findings"] if each["id"] == "tools.reports"]
    assert [NVSWITCHES_ON_PCI in each for each in said] == [True]
