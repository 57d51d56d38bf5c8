"""What the steps are on a machine: commands that can be typed, what they disturb, who does them, when."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import get_args

import pytest
from hand_made import box_of, finding, gpu_part, planned, steps
from measured_box import of_box
from sample import BOXES
from switches import switch_above

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status, Subject
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.components.locate import all_gpus, links_above, nvlinks_between
from dgxcheck.diagnosis.action import PREPARATORY, SOURCES, Action, Code, first_remedy
from dgxcheck.diagnosis.actions import actions, remedy_finding
from dgxcheck.diagnosis.escalation import OF_COMPONENT
from dgxcheck.diagnosis.form_factor import form_factor
from dgxcheck.diagnosis.reset_domain import is_before_ampere
from dgxcheck.diagnosis.steps import services
from dgxcheck.facts.faults import DEVICE_DEAD, EVERY_FAULT, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.host import Storage, Unit
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.output.health.instructions import SENTENCES, STEPS, URGENCIES, action_text, device_list, disturbed
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.load import load, recording
from dgxcheck.source.recording.overlay import applied
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.shipped import shipped
from probes.host.software import SERVICES

ALL = tuple(f"GPU{number}" for number in range(8))
PATHS = dict(shipped())
NO_ARGUMENT = re.compile(r"[;|&<>`$*?{}\n]|^[A-Z]{3,}$|^$")
"""What no argument of ours holds: shell syntax, a placeholder, nothing."""


def with_facts(base: str, facts: dict[str, Json]) -> Box:
    """The box with other answers."""
    changed = applied({"base": base, "facts": facts}, base, lambda name: recording(load(PATHS[name]), name))
    return of_box(RecordedSource(changed.lines, Origin("recording"), changed.later, head=changed.head))


def step(acts: tuple[Action, ...], name: str) -> Action:
    (only,) = [action for action in acts if action.step == name]
    return only


def components(box: Box) -> Iterator[Component]:
    """One of every kind and part that has steps of its own, and some that have none."""
    gpus = box.topology.gpus
    for kind, part in OF_COMPONENT:
        if kind == "gpu":
            yield gpu_part(box, -1, part)
        elif kind == "host":
            yield host_part(part)
        elif kind == "gpus":
            yield all_gpus(box, part)
        elif kind == "slot":
            yield Component(kind="slot", name="behind the switch of GPU0", bdf=None, part=part)
        elif kind == "driver":
            yield DRIVER
        else:
            yield Component(kind=kind, name="x", bdf="0000:0c:00.0", part=part)
    for part in ("compute mode", "clock setting", "power limit", "persistence mode", "device node", "MIG mode"):
        yield gpu_part(box, 0, part)
        yield all_gpus(box, part)
    yield from links_above(box, gpus[-1])
    yield nvlinks_between(box, gpus[0], gpus[-1])
    yield from filter(None, [switch_above(box, gpus[0])])
    yield Component(kind="bridge", name="0000:09:08.0", bdf="0000:09:08.0", part="ACS setting")
    yield from (host_part(part) for part in ("device nodes", "settings of NCCL", "memlock limit", "ACS setting"))
    yield Component(kind="disk", name="md0")
    yield host_part("memory", "mc2")


@pytest.mark.parametrize(
    "name", [name if name == "dgx-1-v100" else pytest.param(name, marks=pytest.mark.exhaustive) for name in BOXES]
)
def test_every_action_can_be_typed_or_read(name: str) -> None:
    """Whatever is wrong with whatever: real argument lists, a whole sentence, and the host drained in time."""
    box = box_of(name)
    for component in dict.fromkeys(components(box)):
        for fault in EVERY_FAULT:
            for acts in (planned(box, component, fault), planned(box, component, fault, status=Status.WARN)):
                assert acts
                for action in acts:
                    assert not [arg for argv in action.commands for arg in argv if NO_ARGUMENT.search(arg)]
                    text = action_text(action, {action.remedy_of: "the remedy"})
                    assert text == text.strip()
                    plain = re.sub(r"""'\{"\w+":"\w+"\}'""", "BODY", text)  # the body of a request
                    assert not re.search(r"[{}]|  |;$|; ;|\bNone\b|\(\)", plain)
                    assert bool(disturbed(action)) is (action.scope != "none")
                    assert (action.instruction.code == "finding-remedy") is bool(action.remedy_of)
                    assert set(action.disturbs) <= {device.name for device in box.topology.devices} | {component.name}
                order = [action.step for action in acts]
                if "drain" in order:
                    before = {action.scope for action in acts[: order.index("drain")]}
                    assert before <= {"none", "device", "fabric", "programs"}
                elif order != ["stop-jobs"]:
                    assert all(action.scope not in ("jobs", "traffic", "host") for action in acts)
                assert acts[-1].step not in PREPARATORY or len(acts) == 1


@pytest.mark.parametrize("name", BOXES)
def test_a_dead_gpu_is_never_reset(name: str) -> None:
    box = box_of(name)
    lost = str(box.topology.gpus[-1].bdf)
    dead = box.topology.gpus[-1].name
    for component in components(box):
        for fault in (Fault.XID, Fault.ECC_UNCORRECTED, Fault.ECC_OFF, Fault.NVLINK_DOWN):
            for action in planned(box, component, fault, dead=[lost]):
                assert action.step != "reset-gpu" or dead not in action.disturbs
    for fault in DEVICE_DEAD:
        assert "reset-gpu" not in steps(planned(box, gpu_part(box, -1), fault, dead=[lost]))


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


def stopped(acts: tuple[Action, ...]) -> tuple[str, ...]:
    """The services that a plan names to be stopped."""
    named = step(acts, "stop-jobs").instruction.values["services"]
    assert isinstance(named, tuple)
    return named


def test_on_nvswitches_fabric_manager_stays_up_from_ampere_on() -> None:
    box = box_of("dgx-a100")
    acts = planned(box, gpu_part(box, 0), Fault.XID)
    assert step(acts, "reset-gpu").instruction.code == "reset-with-fabric-manager"
    assert "nvidia-fabricmanager" not in stopped(acts)
    reload = planned(box, DRIVER, Fault.DRIVER_MISMATCH)
    assert "nvidia-fabricmanager" in stopped(reload)


def test_an_architecture_that_is_not_reported_is_that_of_the_capability_the_name_or_the_siblings() -> None:
    bdfs = [gpu.bdf for gpu in box_of("dgx-a100").topology.gpus]
    unknown: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
    names = ("Architecture", "CudaComputeCapability")
    one = with_facts("dgx-a100", {f"nvml nvmlDeviceGet{name} {bdfs[0]}": unknown for name in names})
    assert is_before_ampere(one, one.topology.gpus[0]) is False
    named = with_facts("dgx-a100", {f"nvml nvmlDeviceGet{name} {bdf}": unknown for name in names for bdf in bdfs})
    assert is_before_ampere(named, named.topology.gpus[0]) is False
    asked = (*names, "Name")
    none = with_facts("dgx-a100", {f"nvml nvmlDeviceGet{name} {bdf}": unknown for name in asked for bdf in bdfs})
    assert is_before_ampere(none, none.topology.gpus[0]) is None
    assert step(planned(none, gpu_part(none, 0), Fault.XID), "reset-gpu").disturbs == ALL
    p100 = box_of("dgx-1-p100")
    assert is_before_ampere(p100, p100.topology.gpus[0]) is True


def test_a_display_is_closed_before_the_reset() -> None:
    box = with_facts("dgx-station-v100", {"nvml nvmlDeviceGetDisplayActive 0000:07:00.0": 1})
    stop = step(planned(box, gpu_part(box, 0), Fault.XID), "stop-jobs")
    assert ("systemctl", "isolate", "multi-user.target") in stop.commands
    assert stop.instruction.code == "stop-gpu-clients-and-display"
    dark = box_of("dgx-1-v100")
    assert step(planned(dark, gpu_part(dark, 0), Fault.XID), "stop-jobs").instruction.code == "stop-gpu-clients"


def test_services_are_candidates_and_nvsm_is_dgx_os() -> None:
    for name in BOXES:
        box = box_of(name)
        named = services(box, box.topology.gpus)
        assert {"nvidia-persistenced", "nvidia-dcgm"} <= {*named}
        assert ("nvsm" in named) is (name.startswith("dgx") and name != "dgx-b300")


def with_units(base: str, *running: str) -> Box:
    """The box, on which of the units that are asked for just these run."""
    box = box_of(base)
    units = tuple(Unit(name=name, running=name in running, enabled=False) for name in SERVICES)
    return replace(box, snapshot=replace(box.snapshot, units=units))


def test_of_the_units_just_those_are_stopped_that_run() -> None:
    box = with_units("dgx-a100", "nvidia-dcgm", "nvidia-persistenced", "nvidia-fabricmanager", "slurmd")
    acts = planned(box, gpu_part(box, 0), Fault.XID)
    stop = step(acts, "stop-jobs")
    assert stop.commands[0] == ("systemctl", "stop", "nvidia-persistenced", "nvidia-dcgm")
    assert stop.commands[1][:2] == ("fuser", "-v")
    assert stop.instruction.values == {}
    assert step(acts, "drain").commands[0][0] == "scontrol"
    reload = step(planned(box, DRIVER, Fault.DRIVER_MISMATCH), "stop-jobs").commands[0]
    assert reload[-1] == "nvidia-fabricmanager"


def test_nothing_is_stopped_where_no_unit_runs() -> None:
    box = with_units("dgx-a100")
    (command,) = step(planned(box, gpu_part(box, 0), Fault.XID), "stop-jobs").commands
    assert command[0] == "fuser"


def test_a_node_of_kubernetes_is_cordoned_and_its_pods_are_evicted_with_the_jobs() -> None:
    """A cordon lets running jobs end; an eviction stops those of all GPUs."""
    box = with_units("dgx-a100", "kubelet")
    acts = planned(box, gpu_part(box, 0), Fault.XID)
    drain, stop = step(acts, "drain"), step(acts, "stop-jobs")
    assert [command[:2] for command in drain.commands] == [("kubectl", "cordon")]
    assert drain.scope == "none"
    node = drain.commands[0][2]
    assert stop.commands[0] == ("kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data")
    assert (stop.scope, stop.disturbs) == ("jobs", ALL)


@pytest.mark.parametrize(
    ("name", "form", "last", "code"),
    [
        ("dgx-1-v100", "sxm", "contact-vendor", "vendor-gpu-tray"),
        ("dgx-a100", "sxm", "contact-vendor", "vendor-gpu-tray"),
        ("dgx-station-v100", "water-cooled", "contact-vendor", "vendor-water-cooled"),
        ("k80-x8", "dual-gpu-card", "replace", "replace-dual-gpu-card"),
    ],
)
def test_only_the_vendor_takes_out_modules_and_water_cooled_cards(name: str, form: str, last: str, code: str) -> None:
    box = box_of(name)
    gpu = gpu_part(box, 0)
    acts = planned(box, gpu, Fault.XID)
    assert form_factor(box, gpu) == form
    assert (acts[-1].step, acts[-1].instruction.code) == (last, code)
    assert acts[-2].step == "field-diagnostic"
    assert ("reseat" in steps(acts)) is (last == "replace")


@pytest.mark.parametrize(("model", "form"), [
    ("NVIDIA H20", "sxm"), ("NVIDIA H20-3e", "sxm"), ("NVIDIA H100", "sxm"), ("NVIDIA H800", "sxm"),
    ("NVIDIA A800-SXM4-80GB", "sxm"), ("NVIDIA H200", "sxm"), ("NVIDIA H200 NVL", "card"), ("NVIDIA H100 NVL", "card"),
    ("NVIDIA H800 PCIe", "card"), ("NVIDIA A800 80GB PCIe", "card"), ("NVIDIA A10", "card"), ("NVIDIA L20", "card"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "card"),
])  # fmt: skip
def test_the_model_tells_modules_from_cards(model: str, form: str) -> None:
    box = with_facts("l40s-x8", {f"nvml nvmlDeviceGetName {gpu.bdf}": model for gpu in box_of("l40s-x8").topology.gpus})
    assert form_factor(box, gpu_part(box, 0)) == form


def test_water_cooling_is_no_airflow() -> None:
    for name, code in (("dgx-station-v100", "inspect-water-cooling"), ("dgx-1-v100", "inspect-airflow")):
        box = box_of(name)
        first = first_remedy(planned(box, gpu_part(box, 0, "cooling"), Fault.OVERHEATING))
        assert (first.step, first.instruction.code, first.scope) == ("inspect", code, "none")
        assert first_remedy(planned(box, host_part("cooling"), Fault.OVERHEATING)).instruction.code == code


def test_a_failure_that_is_due_now_is_looked_at_then_drained() -> None:
    box = box_of("dgx-1-v100")
    cooling, supply, switch = gpu_part(box, 2, "cooling"), gpu_part(box, 2, "power supply"), host_part("cooling")
    hot = planned(box, cooling, Fault.OVERHEATING)
    assert steps(hot)[:3] == ["drain", "stop-jobs", "inspect"]
    assert (hot[1].instruction.code, hot[1].disturbs) == ("stop-load", ("GPU2",))
    assert next(action for action in hot if action.step == "field-diagnostic").instruction.code.endswith("-cooled")
    assert planned(box, switch, Fault.OVERHEATING)[1].disturbs == ALL
    assert steps(planned(box, supply, Fault.POWER_BRAKE))[:2] == ["inspect", "drain"]
    assert steps(planned(box, host_part("CPUs"), Fault.MACHINE_CHECK))[:2] == ["inspect", "drain"]
    for component, fault in ((cooling, Fault.OVERHEATING), (supply, Fault.POWER_BRAKE)):
        assert steps(planned(box, component, fault, status=Status.WARN))[0] == "inspect"
    assert steps(planned(box, gpu_part(box, 2, "memory"), Fault.PAGES_MANY))[0] == "watch"


def ecc(current: int, pending: int) -> Box:
    return with_facts("dgx-1-v100", {"nvml nvmlDeviceGetEccMode 0000:0a:00.0": [current, pending]})


def test_a_missing_library_is_looked_for_before_it_is_installed() -> None:
    box = box_of("dgx-1-v100")
    (only,) = planned(box, DRIVER, Fault.LIBRARY_MISSING)
    assert only.commands == (("ldconfig",),)
    assert "550.127" in action_text(only, {})


@pytest.mark.parametrize(("level", "last"), [("raid0", "restore-array"), ("raid1", "replace-disk")])
def test_a_raid_0_is_not_rebuilt(level: str, last: str) -> None:
    box = box_of("dgx-station-v100")
    storage = box.snapshot.storage
    assert isinstance(storage, Storage)
    assert not isinstance(storage.arrays, Missing)
    arrays = tuple(replace(row, level=level) for row in storage.arrays)
    changed = replace(box, snapshot=replace(box.snapshot, storage=replace(storage, arrays=arrays)))
    acts = planned(changed, Component(kind="disk", name="md0"), Fault.DISK)
    assert [action.instruction.code for action in acts] == ["finding-remedy", "reseat-disk", last]
    assert acts[0].commands == (("cat", "/proc/mdstat"), ("mdadm", "--detail", "/dev/md0"))


def test_one_hot_gpu_among_cool_ones_is_no_matter_of_fans() -> None:
    box = box_of("dgx-1-v100")
    first = planned(box, gpu_part(box, 2, "cooling"), Fault.HOTTER, status=Status.WARN)[0]
    assert (first.step, first.instruction.code) == ("inspect", "finding-remedy")
    held = step(planned(box, gpu_part(box, 2, "cooling"), Fault.THERMAL_SLOWDOWN, Fault.HOTTER), "inspect")
    assert held.remedy_of.startswith("made.hotter")


def test_an_hca_that_did_not_start_is_bound_again_alone() -> None:
    first = planned(box_of("dgx-1-v100"), Component(kind="hca", name="x", bdf="0000:0c:00.0"), Fault.HCA_NOT_STARTED)[0]
    assert (first.commands, first.instruction.code, first.scope) == ((), "finding-remedy", "none")


def test_a_drives_link_and_an_nvswitchs_link_name_what_ends_there() -> None:
    drives = box_of("dgx-a100-nvme-x2")
    link = Component(kind="link", name="0000:04:04.0 - 0000:08:00.0", bdf="0000:08:00.0")
    assert "reseat-drive" in [action.instruction.code for action in planned(drives, link, Fault.LINK_NARROW)]
    switches = box_of("dgx-2-nvswitch-gen1")
    link = Component(kind="link", name="0000:60:02.0 - 0000:61:00.0", bdf="0000:61:00.0")
    assert steps(planned(switches, link, Fault.LINK_NARROW))[-1] == "contact-vendor"


def test_the_boot_mirror_of_a_dgx_is_changed_with_the_power_off() -> None:
    acts = planned(box_of("dgx-a100"), Component(kind="disk", name="md0"), Fault.DISK, status=Status.WARN)
    assert [(action.step, action.scope) for action in acts] == [
        ("inspect", "none"), ("drain", "none"), ("contact-vendor", "host"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "status", "urgency"),
    [
        (Fault.GPU_LOST, Status.FAIL, "now"),
        (Fault.ECC_UNCORRECTED, Status.FAIL, "now"),
        (Fault.DRIVER_UNRESPONSIVE, Status.UNKNOWN, "now"),
        (Fault.REMAP_PENDING, Status.FAIL, "next-drain"),
        (Fault.RETIREMENT_PENDING, Status.WARN, "next-drain"),
        (Fault.NVLINK_ERRORS, Status.WARN, "watch"),
        (Fault.NVLINK_ERRORS, Status.FAIL, "now"),
        (Fault.ECC_CORRECTED, Status.WARN, "watch"),
        (Fault.UNEQUAL, Status.WARN, "next-maintenance"),
        (Fault.LINK_NARROW, Status.WARN, "next-drain"),
    ],
)
def test_urgency_is_the_faults_and_the_severitys(fault: FaultKind, status: Status, urgency: str) -> None:
    box = box_of("dgx-1-v100")
    assert {action.urgency for action in planned(box, gpu_part(box, 2), fault, status=status)} == {urgency}


def test_the_most_urgent_fault_counts_and_settings_need_not_wait() -> None:
    box = box_of("dgx-1-v100")
    memory = gpu_part(box, 2, "memory")
    both = planned(box, memory, Fault.RETIREMENT_PENDING, Fault.ECC_UNCORRECTED)
    assert {action.urgency for action in both} == {"now"}
    contained = (Fault.REMAP_PENDING, Fault.ECC_UNCORRECTED)
    assert {action.urgency for action in planned(box, memory, *contained)} == {"next-drain"}
    assert {action.urgency for action in planned(box, memory, *contained, Fault.XID)} == {"now"}
    hot = planned(box, gpu_part(box, 2, "cooling"), Fault.HOTTER, status=Status.WARN)
    assert {action.urgency for action in hot} == {"next-drain"}
    ecc_off = planned(ecc(0, 0), gpu_part(box, 2, "ECC mode"), Fault.ECC_OFF, status=Status.WARN)
    assert [action.urgency for action in ecc_off] == ["now", "next-drain", "next-drain", "next-drain"]


def test_the_scheduler_that_runs_here_drains_the_host() -> None:
    slurm = with_facts("dgx-1-v100", {})
    assert planned(slurm, gpu_part(slurm, 0), Fault.XID)[0].instruction.code == "drain-host"
    jobs = box_of("dgx-1-v100-memlock-jobs")
    drain = planned(jobs, gpu_part(jobs, 0), Fault.XID)[0]
    assert drain.commands[0][:2] == ("scontrol", "update")
    assert drain.commands[0][2].startswith("NodeName=")
    assert (drain.scope, drain.disturbs) == ("none", ())


def test_the_remedy_is_that_of_the_finding_that_blames_the_component() -> None:
    box = box_of("dgx-1-v100")
    setting, gpu = host_part("memlock limit"), gpu_part(box, 2)
    found = [finding(gpu, Fault.SLOW), finding(setting, Fault.MEMLOCK, Status.WARN), finding(setting, None)]
    assert remedy_finding(setting, found).judgement.fault is None  # fails, the other warns
    logged = finding(setting, Fault.XID, witness="log")
    assert remedy_finding(setting, [logged, found[0]]).key == found[0].key
    (only,), _ = actions(box, setting, found[1:2], frozenset())
    assert only.remedy_of == found[1].key
    assert action_text(only, {found[1].key: found[1].remedy}) == "the remedy of the finding"


@pytest.mark.exhaustive
def test_every_code_step_and_urgency_has_its_words() -> None:
    assert {*get_args(Code)} == {*SENTENCES}
    produced = {
        action.instruction.code
        for name in [*BOXES, "dgx-1-v100-memlock-jobs"]
        for component in components(box_of(name))
        for fault in EVERY_FAULT
        for action in planned(box_of(name), component, fault)
    }
    elsewhere = {"stop-gpu-clients-and-display", "default-power-limit", "lower-limit", "reset-all-with-switches",
                 "restore-array", "reset-one", "peer-traffic", "reseat-drive", "reset-named", "power-cycle-tray",
                 "inspect-rack-fabric"}  # fmt: skip
    assert {*SENTENCES} - produced - elsewhere == set()
    assert len({*STEPS.values()}) == len(STEPS)
    assert len({*URGENCIES.values()}) == len(URGENCIES)


def test_gpus_in_a_row_are_a_range() -> None:
    assert device_list(ALL) == "GPU0 to GPU7"
    assert device_list(("GPU6", "GPU7")) == "GPU6, GPU7"
    assert device_list(("GPU0", "GPU2", "GPU3")) == "GPU0, GPU2, GPU3"
    assert device_list(("mlx5_0",)) == "mlx5_0"
    assert device_list(()) == ""


def test_actions_are_data_in_json() -> None:
    from dgxcheck.output.health.causes import _action_json

    box = box_of("k80-x8")
    acts = planned(box, gpu_part(box, 6), Fault.XID)
    document = json.loads(json.dumps(_action_json(acts[2], "", (), {})))
    assert document == {
        "action": "reset-gpu", "commands": [["nvidia-smi", "-r", "-i", "0000:89:00.0,0000:8a:00.0"]],
        "instruction": "reset-board", "remedy_of": None, "condition": None, "disturbs": ["GPU6", "GPU7"],
        "scope": "jobs",
        "text": "nvidia-smi -r -i 0000:89:00.0,0000:8a:00.0; both GPUs of the board are reset together; if it is"
        " refused as in use, nvidia-smi -i 0000:89:00.0,0000:8a:00.0 -pm 0, reset, nvidia-smi -i"
        " 0000:89:00.0,0000:8a:00.0 -pm 1; then restart the stopped services",
        "source": SOURCES["reset-board"], "urgency": "now",
    }  # fmt: skip


def test_a_switch_above_several_cards_is_on_a_board_or_riser() -> None:
    """One above the two GPUs of a K80 is on their card; one above two cards is on neither."""
    cards, k80 = box_of("pcie-x8"), box_of("k80-x8")
    for box, gpu, code in ((cards, 6, "reseat-carrier"), (k80, 6, "reseat-dual-gpu-card")):
        switch = switch_above(box, box.topology.gpus[gpu])
        assert switch is not None
        acts = planned(box, switch, Fault.GPU_LOST)
        assert step(acts, "reseat").instruction.code == code
        assert acts[-1].step == "replace"
    above_two_cards = [*links_above(k80, k80.topology.gpus[0])][-1]
    assert len(above_two_cards.shared_by) == 4
    assert step(planned(k80, above_two_cards, Fault.LINK_NARROW), "reseat").instruction.code == "reseat-carrier"


def test_a_host_bridge_is_not_serviced_with_the_gpu_tray() -> None:
    box = box_of("dgx-1-v100")
    bridge = Component(kind="host-bridge", name="pci0000:80", shared_by=("GPU4", "GPU5", "GPU6", "GPU7"))
    acts = planned(box, bridge, Fault.GPU_LOST)
    assert [action.step for action in acts] == ["drain", "reboot", "power-cycle", "contact-vendor"]
    assert acts[-1].instruction.code == "vendor-board"


def test_data_of_an_array_is_lost_only_once_it_failed() -> None:
    box = box_of("dgx-a100")
    array = Component(kind="disk", name="md1")
    assert planned(box, array, Fault.ARRAY_FAILED)[-1].instruction.code == "restore-array"
    errors = planned(box, array, Fault.DISK_ERRORS)[-1]
    assert action_text(errors, {}) == (
        "back up now all that is on it, of an array without redundancy all of the array; then stop what uses it,"
        " replace the failing disk of md1 (mdadm --detail /dev/md1 shows which) and restore the data"
    )
    sick = replace(finding(array, Fault.DISK_ERRORS), subject=Subject(kind="disk", name="nvme3n1", bdf=None))
    named = actions(box, array, [sick], frozenset())[0][-1]
    assert "replace nvme3n1 of md1 and restore" in action_text(named, {})
    assert [act.instruction.code for act in planned(box, array, Fault.ARRAY_FAILED)][1:] == [
        "drain-host", "reassemble-array", "restore-array",
    ]  # fmt: skip


def test_nvswitches_are_reset_with_all_gpus_and_fabric_manager_stopped() -> None:
    box = with_units("dgx-a100", "nvidia-fabricmanager")
    acts = planned(box, Component(kind="nvswitch", name="0000:c6:00.0", bdf="0000:c6:00.0"), Fault.NVSWITCH)
    assert step(acts, "stop-jobs").commands[0] == ("systemctl", "stop", "nvidia-fabricmanager")
    assert step(acts, "reset-gpu").commands == (("nvidia-smi", "-r"),)
    assert step(acts, "reset-gpu").instruction.code == "reset-all-with-switches"


def test_a_port_that_is_down_carries_no_traffic_to_disturb() -> None:
    box = box_of("dgx-1-v100")
    port = Component(kind="port", name="mlx5_1/1", bdf="0000:0c:00.0")
    down, disabled = planned(box, port, Fault.PORT_DOWN), planned(box, port, Fault.PORT_DISABLED)
    assert steps(down) == ["inspect", "reseat", "replace"]
    assert steps(disabled) == ["change-setting", "reseat", "replace"]
    assert {action.scope for action in (*down, *disabled)} == {"none"}
    slow = planned(box, port, Fault.PORT_SLOW)
    assert (steps(slow)[:2], slow[2].scope, slow[2].disturbs) == (["inspect", "drain"], "traffic", ("mlx5_1/1",))
    fabric = Component(kind="fabric", name="InfiniBand fabric")
    assert {action.scope for action in planned(box, fabric, Fault.PORT_DOWN)} == {"none"}
    assert "drain" in steps(planned(box, fabric, Fault.PORT_DOWN, Fault.PORT_SLOW))


def test_the_vendor_disturbs_nothing() -> None:
    box = box_of("dgx-1-v100")
    vendor = step(planned(box, gpu_part(box, 2), Fault.XID), "contact-vendor")
    assert (vendor.scope, vendor.disturbs) == ("none", ())
    assert "drain" not in steps(planned(box, gpu_part(box, 2), Fault.XID_SOFTWARE, status=Status.WARN))


@pytest.mark.parametrize(
    ("component", "fault"),
    [
        (DRIVER, Fault.NOUVEAU),
        (host_part("kernel command line"), Fault.COMMAND_LINE),
        (Component(kind="hca", name="mlx5_1", bdf="0000:0c:00.0", part="MaxReadReq"), Fault.READ_REQUEST),
        (Component(kind="port", name="mlx5_1/1", bdf="0000:0c:00.0", part="link layer"), Fault.LINK_LAYER),
    ],
)
def test_the_host_is_drained_before_a_change_that_waits_for_the_reboot(component: Component, fault: FaultKind) -> None:
    for status in (Status.FAIL, Status.WARN):
        acts = planned(box_of("dgx-1-v100"), component, fault, status=status)
        assert steps(acts) == ["drain", "change-setting", "reboot"]
        assert len({action.urgency for action in acts}) == 1


def test_a_warning_is_inspected_and_a_module_loaded_before_the_drain() -> None:
    box = box_of("dgx-1-v100")
    link = next(iter(links_above(box, box.topology.gpus[2])))
    warned = steps(planned(box, link, Fault.XID_PCIE, status=Status.WARN))
    assert warned[:2] == ["inspect", "drain"]
    loaded = planned(box, host_part("peer memory module"), Fault.PEER_MEMORY, status=Status.WARN)
    assert steps(loaded) == ["load-module", "drain", "reboot"]
