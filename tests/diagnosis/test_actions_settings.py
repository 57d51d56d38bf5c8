"""Steps that change a setting: which command, whether it can be changed at all, and what waits for a reset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hand_made import box_of, ecc, finding, gpu_part, in_place, planned, steps, with_facts
from judging import of_text
from sample import FAULTS

from dgxcheck.checks.engine.box import pci_subject
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.gpu.clocks import held_memory_clock
from dgxcheck.components.component import DRIVER, Component
from dgxcheck.components.locate import all_gpus, device_part, switch_setting
from dgxcheck.diagnosis.action import PREPARATORY, first_remedy
from dgxcheck.diagnosis.actions import actions
from dgxcheck.diagnosis.change_setting import setting
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import DeviceNode, DeviceNodes, Modules
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.record import replace
from dgxcheck.output.health.instructions import action_text


@pytest.mark.parametrize(
    ("current", "pending", "due"),
    [
        (0, 0, ["change-setting", "reset-gpu"]),
        (0, 1, ["reset-gpu"]),
        (1, 0, ["change-setting"]),  # taken back: no reset
    ],
)
def test_an_ecc_mode_is_set_reset_or_taken_back(current: int, pending: int, due: list[str]) -> None:
    box = ecc(current, pending)
    acts = planned(box, gpu_part(box, 2, "ECC mode"), Fault.ECC_OFF if not pending else Fault.ECC_PENDING)
    assert [name for name in steps(acts) if name not in PREPARATORY] == due
    if due[0] == "change-setting":
        assert acts[0].commands == (("nvidia-smi", "-i", "0000:0a:00.0", "-e", "1"),)
        assert (acts[0].instruction.code == "take-back-or-reset") is (len(due) == 1)


def test_a_power_limit_is_set_to_the_default_that_nvml_reports() -> None:
    limit, default = "nvml nvmlDeviceGetPowerManagementLimit", "nvml nvmlDeviceGetPowerManagementDefaultLimit"
    bdfs = [gpu.bdf for gpu in box_of("dgx-1-v100").topology.gpus]
    capped = with_facts("dgx-1-v100", {f"{limit} {bdf}": 200000 for bdf in bdfs[:3]})
    (one,) = planned(capped, gpu_part(capped, 2, "power limit"), Fault.POWER_CAPPED)
    assert one.commands == (("nvidia-smi", "-i", "0000:0a:00.0", "-pl", "300"),)
    (every,) = planned(capped, all_gpus(capped, "power limit"), Fault.POWER_CAPPED)
    assert [(argv[2], argv[-1]) for argv in every.commands] == [(",".join(map(str, bdfs[:3])), "300")]
    (none,) = planned(capped, gpu_part(capped, 5, "power limit"), Fault.POWER_CAPPED)
    assert (none.commands, none.instruction.code) == ((), "finding-remedy")
    silent = with_facts("dgx-1-v100", {f"{default} 0000:0a:00.0": {"missing": "unsupported", "detail": "NVML 3"}})
    (unknown,) = planned(silent, gpu_part(silent, 2, "power limit"), Fault.POWER_CAPPED)
    assert (unknown.commands, unknown.instruction.code) == ((), "default-power-limit")


def test_a_clock_ceiling_is_no_setting() -> None:
    box = box_of("dgx-1-v100")
    application = with_facts("dgx-1-v100", {"nvml nvmlDeviceGetApplicationsClock 0000:0a:00.0 0": 1005})
    (lowered,) = planned(application, gpu_part(application, 2, "clock setting"), Fault.CLOCKS_LOWERED)
    assert lowered.commands == (("nvidia-smi", "-i", "0000:0a:00.0", "-rac"),)
    (locked,) = planned(box, gpu_part(box, 2, "clock setting"), Fault.CLOCKS_LOWERED)
    assert locked.commands == (("nvidia-smi", "-i", "0000:0a:00.0", "-rgc"),)
    (limited,) = planned(box, gpu_part(box, 2, "clock setting"), Fault.CLOCKS_LIMITED)
    assert (limited.commands, limited.instruction.code) == ((), "finding-remedy")


def test_acs_is_changed_by_no_command_where_virtual_machines_run() -> None:
    port = Component(kind="bridge", name="0000:09:08.0", bdf="0000:09:08.0", part="ACS setting")
    box = box_of("dgx-1-v100")
    assert planned(box, port, Fault.ACS)[0].commands == (("setpci", "-s", "0000:09:08.0", "ECAP_ACS+0x6.w=0:3c"),)
    virtual = box_of("dgx-1-v100-hypervisor")
    (only,) = planned(virtual, port, Fault.ACS)
    assert (only.commands, only.instruction.code) == ((), "finding-remedy")


def test_one_gpu_without_its_bar1_is_no_matter_of_the_firmware_setup() -> None:
    alone = box_of("dgx-1-v100-bars-unassigned")
    gpu = next(gpu for gpu in alone.topology.gpus if gpu.bdf == "0000:86:00.0")
    acts = planned(alone, device_part(alone, gpu, "BAR1"), Fault.BAR1_SMALL)
    assert steps(acts) == ["inspect", "drain", "reboot", "power-cycle", "contact-vendor"]
    equal = box_of("dgx-1-v100")
    assert first_remedy(planned(equal, gpu_part(equal, 0, "BAR1"), Fault.BAR1_SMALL)).instruction.code == "large-bars"


_CARD = """\
41:00.0 {} [10de:{}] (rev a1)
\tControl: I/O- Mem+ BusMaster+ SpecCycle-
\tRegion 0: Memory at b8000000 (32-bit, non-prefetchable) [size=16M]
\tRegion 1: Memory at 20040000000 (64-bit, prefetchable) [size=256M]
\tRegion 3: Memory at 20050000000 (64-bit, prefetchable) [size=32M]
\tKernel driver in use: nvidia
"""


@pytest.mark.parametrize(("kind", "device", "cause"), [
    ("VGA compatible controller [0300]: NVIDIA Corporation AD102GL [L40S]", "26b9", "warn bar1-small inspect"),
    ("3D controller [0302]: NVIDIA Corporation AD102GL [L40S]", "26b9", "fail bar1-small drain"),
    ("VGA compatible controller [0300]: NVIDIA Corporation GA100 [A100 SXM4 80GB]", "20b2", "fail bar1-small drain"),
])
def test_a_card_with_displays_has_a_small_bar1(kind: str, device: str, cause: str, tmp_path: Path) -> None:
    """Which no firmware setup makes larger."""
    causes, found = of_text(_CARD.format(kind, device), tmp_path)
    assert causes == (cause,)
    assert ("displaymodeselector" in str(found["causes"])) == (cause == "warn bar1-small inspect")


def test_displays_explain_no_bar1_that_is_not_assigned(tmp_path: Path) -> None:
    text = _CARD.format("VGA compatible controller [0300]: NVIDIA Corporation GA102GL [RTX A6000]", "2230")
    region = next(line for line in text.splitlines() if "Region 1" in line)
    bare = "\tRegion 1: Memory at <unassigned> (64-bit, prefetchable) [size=64G]"
    causes, found = of_text(text.replace(region, bare), tmp_path)
    assert causes == ("fail bar1-small drain",)
    assert "displaymodeselector" not in str(found["causes"])


def test_where_bars_get_room_depends_on_who_gives_it() -> None:
    part = Component(kind="host", name="host", bdf=None, part="large BARs")
    bare, guest = (box_of(name) for name in ("dgx-1-v100", "vm-h100-x8"))
    unknown = replace(bare, snapshot=replace(bare.snapshot, host=Missing(Gap.UNRECORDED, "host")))
    said = [action_text(first_remedy(planned(box, part, Fault.BAR1_SMALL)), {}) for box in (bare, guest, unknown)]
    assert ["system firmware" in text for text in said] == [True, False, True]
    assert ["pciPassthru.64bitMMIOSizeGB" in text for text in said] == [False, True, True]


def test_jobs_end_before_a_setting_that_makes_data_wrong_is_changed() -> None:
    box = box_of("k80-x8-p2p-acs-silent")
    port = Component(kind="bridge", name="0000:09:08.0", bdf="0000:09:08.0", part="ACS setting")
    acts = planned(box, port, Fault.WRONG_DATA)
    assert steps(acts) == ["drain", "stop-jobs", "change-setting"]
    assert acts[1].scope == "jobs"


@pytest.mark.parametrize(("name", "option"), [("dgx-a100", "-rmc"), ("dgx-h100", "-rmcd"), ("dgx-b200", "-rmc")])
def test_a_locked_memory_clock_of_hopper_is_free_once_the_driver_is_loaded_again(name: str, option: str) -> None:
    """nvidia-smi(1), -rmcd."""
    bdf, model = box_of(name).topology.gpus[0].bdf, box_of(name)
    clocks = next(row for row in rows(model.snapshot.gpu_clocks) if row.bdf == bdf)
    held = replace(clocks, current=replace(clocks.current, memory=1000), max=replace(clocks.max, memory=1500),
                   application=replace(clocks.application, memory=1500), performance_state=0)  # fmt: skip
    box = replace(model, snapshot=replace(model.snapshot, gpu_clocks=(held,)))
    (reset,) = planned(box, gpu_part(box, 0, "clock setting"), Fault.CLOCKS_LOWERED, status=Status.WARN)
    assert reset.commands == (("nvidia-smi", "-i", bdf, option),)
    assert ("when the driver is loaded again" in action_text(reset, {})) is (option == "-rmcd")


NODE = DeviceNode(path="/dev/x", opens=True)
UNREAD = Missing(Gap.DENIED, "x")


@pytest.mark.parametrize(("control", "uvm", "ask"), [
    (True, False, ["-u -c 0"]), (False, True, ["-c 255"]), (False, UNREAD, ["-c 255", "-u -c 0"]), (True, True, []),
    (UNREAD, True, ["-c 255"]), (None, None, ["-c 255", "-u -c 0"]),
])  # fmt: skip
def test_the_shared_node_that_is_missing_is_made(
    control: bool | Missing | None, uvm: bool | Missing | None, ask: list[str]
) -> None:
    box = box_of("dgx-1-v100")
    nodes: DeviceNodes | Missing = UNREAD if control is None or uvm is None else DeviceNodes(
        control=replace(NODE, opens=control), uvm=replace(NODE, opens=uvm), gpus=(), verbs=())
    changed = replace(box, snapshot=replace(box.snapshot, device_nodes=nodes))
    found = setting(changed, Component(kind="host", name="host", part="device nodes"), (), ())
    assert found is not None
    assert [" ".join(command) for command in found[0]] == [f"nvidia-modprobe {option}" for option in ask]


@pytest.mark.parametrize(("version", "code"), [("550.127.05", "driver-library"), ("", "finding-remedy")])
def test_the_library_of_a_driver_of_unknown_version_is_what_the_finding_says(version: str, code: str) -> None:
    box = box_of("dgx-1-v100")
    modules = box.snapshot.modules
    assert isinstance(modules, Modules)
    unread = box if version else replace(box, snapshot=replace(box.snapshot, modules=replace(modules, driver=UNREAD)))
    assert planned(unread, DRIVER, Fault.LIBRARY_MISSING)[0].instruction.code == code
    nothing = box if version else replace(box, snapshot=replace(box.snapshot, modules=UNREAD))
    assert planned(nothing, DRIVER, Fault.LIBRARY_MISSING)[0].instruction.code == code


def test_locked_clocks_exist_from_volta_on() -> None:
    cases = (("pcie-x8-clocks-locked-under-load", 0, "-rac"), ("dgx-1-v100-clocks-locked", 6, "-rgc"))
    for name, number, option in cases:
        box = box_of(name)
        (only,) = planned(box, gpu_part(box, number, "clock setting"), Fault.CLOCKS_LOWERED, status=Status.WARN)
        assert only.commands == (("nvidia-smi", "-i", box.topology.gpus[number].bdf, option),)


def test_a_mode_that_is_taken_back_needs_no_reset() -> None:
    acts = planned(box_of("dgx-a100-mig-pending"), gpu_part(box_of("dgx-a100-mig-pending"), 1, "MIG mode"),
                   Fault.MIG_PENDING)  # fmt: skip
    assert [(action.step, action.instruction.code) for action in acts] == [("change-setting", "mig-pending")]
    assert not acts[0].commands


@pytest.mark.parametrize(
    ("name", "number", "applies"),
    [
        ("dgx-1-p100", 0, "nvidia-smi -r"),
        ("k80-x8", 0, "nvidia-smi -r -i 0000:06:00.0,0000:07:00.0"),
        ("dgx-a100", 0, "nvidia-smi -r -i 0000:07:00.0"),
    ],
)
def test_a_pending_mode_is_applied_by_the_reset_of_all_that_it_takes_along(
    name: str, number: int, applies: str
) -> None:
    bdf = box_of(name).topology.gpus[number].bdf
    box = with_facts(name, {f"nvml nvmlDeviceGetEccMode {bdf}": [1, 0]})
    (change,) = planned(box, gpu_part(box, number, "ECC mode"), Fault.ECC_PENDING, status=Status.WARN)
    assert f"if the change was intended, {applies} instead" in action_text(change, {})


@pytest.mark.parametrize(("name", "dead", "applies"), [
    ("dgx-1-v100", ("0000:86:00.0",), "reboot"), ("dgx-1-v100", (), "nvidia-smi -r"),
    ("dgx-a100", ("0000:87:00.0",), "nvidia-smi -r -i 0000:07:00.0"), ("k80-x8", ("0000:07:00.0",), "reboot"),
])  # fmt: skip
def test_a_pending_mode_is_not_applied_by_a_reset_of_a_gpu_that_is_dead(
    name: str, dead: tuple[str, ...], applies: str
) -> None:
    bdf = box_of(name).topology.gpus[0].bdf
    box = with_facts(name, {f"nvml nvmlDeviceGetEccMode {bdf}": [1, 0]})
    change = planned(box, gpu_part(box, 0, "ECC mode"), Fault.ECC_PENDING, status=Status.WARN, dead=dead)[0]
    assert f"if the change was intended, {applies} instead" in action_text(change, {})


def test_where_a_guest_resets_no_gpu_a_reboot_applies_its_mig_mode() -> None:
    for vm, applies in (("kvm", "reboot applies the change"), (None, "nvidia-smi -r -i 0000:07:00.0 applies")):
        box = in_place("dgx-a100", vm=vm)
        modes = tuple(replace(row, mig=False) for row in rows(box.snapshot.gpu_modes))
        box = replace(box, snapshot=replace(box.snapshot, gpu_modes=modes))
        (change,) = planned(box, gpu_part(box, 0, "MIG mode"), Fault.MIG_PENDING, status=Status.WARN)
        assert action_text(change, {}).startswith(applies)


def test_persistence_mode_holds_by_a_unit_that_does_not_switch_it_off() -> None:
    box = box_of("dgx-1-v100")
    (change,) = planned(box, gpu_part(box, 0, "persistence mode"), Fault.PERSISTENCE_OFF, status=Status.WARN)
    assert "not with --no-persistence-mode in its unit" in action_text(change, {})


def test_of_a_switch_only_the_ports_that_were_found_have_acs_cleared() -> None:
    """Another port of it, of a disk or a second adapter, redirects too."""
    ports = json.loads(Path(FAULTS["hgx-h100-acs-ports-of-a-switch"]).read_text(encoding="utf-8"))["facts"]
    box = with_facts("hgx-h100", ports)
    switch = switch_setting(box, "0000:51:00.0", "ACS setting")
    assert switch is not None
    assert switch.bdf == "0000:4b:00.0"
    found = replace(finding(switch, Fault.ACS, Status.WARN), subject=pci_subject("0000:4c:04.0"))
    (act,) = actions(box, switch, [found], frozenset())[0]
    assert act.commands == (("setpci", "-s", "0000:4c:04.0", "ECAP_ACS+0x6.w=0:3c"),)


def test_a_memory_clock_far_down_is_set_where_all_gpus_work_with_it() -> None:
    """Of one GPU that woke up meanwhile, or of idle ones, it says nothing."""
    model = box_of("dgx-h100")

    def held(percent: int, **application: int) -> int | None:
        clocks = tuple(replace(row, current=replace(row.current, memory=1200), performance_state=0,
                               application=replace(row.application, **application))
                       for row in rows(model.snapshot.gpu_clocks))  # fmt: skip
        used = tuple(replace(row, gpu_percent=percent) for row in rows(model.snapshot.gpu_processes))
        box = replace(model, snapshot=replace(model.snapshot, gpu_clocks=clocks, gpu_processes=used))
        one = replace(box, snapshot=replace(box.snapshot, gpu_clocks=clocks[:1]))
        assert held_memory_clock(one, clocks[0]) is None
        return held_memory_clock(box, clocks[0])

    assert (held(98), held(0), held(98, memory=1200)) == (1200, None, None)
