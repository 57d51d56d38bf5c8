"""What the steps are on a machine: commands that can be typed, what they are called, who does them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

import pytest
from checkout import ROOT
from hand_made import ALL, box_of, finding, gpu_part, planned, step, steps, with_facts
from sample import BOXES, swept
from switches import switch_above

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.components.locate import all_gpus, links_above, nvlinks_between
from dgxcheck.diagnosis.action import PREPARATORY, SOURCES, first_remedy
from dgxcheck.diagnosis.actions import actions
from dgxcheck.diagnosis.escalation import OF_COMPONENT, remedy_finding
from dgxcheck.diagnosis.form_factor import form_factor
from dgxcheck.facts.faults import DEVICE_DEAD, EVERY_FAULT, Fault
from dgxcheck.facts.record import replace
from dgxcheck.output.health.instructions import STEPS, URGENCIES, action_text, disturbed
from dgxcheck.output.health.sentences import SENTENCES, device_list

NO_ARGUMENT = re.compile(r"[;|&<>`$*?{}\n]|^[A-Z]{3,}$|^$")
"""What no argument of ours holds: shell syntax, a placeholder, nothing."""


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


@pytest.mark.parametrize("name", swept(BOXES, ("dgx-1-v100",)))
@pytest.mark.parametrize("part", swept(range(12), 12))
def test_every_action_can_be_typed_or_read(name: str, part: int) -> None:
    """Whatever is wrong with whatever: real argument lists, a whole sentence, and the host drained in time."""
    box = box_of(name)
    for component in dict.fromkeys(components(box)):
        for fault in [*EVERY_FAULT][part::12]:
            for acts in (planned(box, component, fault), planned(box, component, fault, status=Status.WARN)):
                assert acts
                for action in acts:
                    assert not [arg for argv in action.commands for arg in argv if NO_ARGUMENT.search(arg)]
                    text = action_text(action, {action.remedy_of: finding(component, fault)})
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


@pytest.mark.parametrize("name", swept(BOXES, 7, first=3))
def test_a_dead_gpu_is_never_reset(name: str) -> None:
    box = box_of(name)
    lost = str(box.topology.gpus[-1].bdf)
    dead = box.topology.gpus[-1].name
    for component in components(box):
        for fault in (Fault.XID, Fault.ECC_UNCORRECTED, Fault.ECC_OFF, Fault.NVLINK_DOWN, Fault.FABRIC_FAILED):
            for action in planned(box, component, fault, dead=[lost]):
                resets = any(command[:2] == ("nvidia-smi", "-r") for command in action.commands)
                assert not resets or dead not in action.disturbs
    for fault in DEVICE_DEAD:
        assert "reset-gpu" not in steps(planned(box, gpu_part(box, -1), fault, dead=[lost]))


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


def test_a_missing_library_is_looked_for_before_it_is_installed() -> None:
    box = box_of("dgx-1-v100")
    (only,) = planned(box, DRIVER, Fault.LIBRARY_MISSING)
    assert only.commands == (("ldconfig",),)
    assert "550.127" in action_text(only, {})


def test_one_hot_gpu_among_cool_ones_is_no_matter_of_fans() -> None:
    box = box_of("dgx-1-v100")
    acts = planned(box, gpu_part(box, 2, "cooling"), Fault.HEAT_SINK, status=Status.WARN)
    assert steps(acts)[:2] == ["drain", "inspect"]
    assert step(acts, "inspect").instruction.code == "finding-remedy"
    held = step(planned(box, gpu_part(box, 2, "cooling"), Fault.THERMAL_SLOWDOWN, Fault.HEAT_SINK), "inspect")
    assert held.remedy_of.startswith("made.heat-sink")


def test_an_hca_that_did_not_start_is_bound_again_alone() -> None:
    first = planned(box_of("dgx-1-v100"), Component(kind="hca", name="x", bdf="0000:0c:00.0"), Fault.HCA_NOT_STARTED)[0]
    assert (first.commands, first.instruction.code, first.scope) == ((), "finding-remedy", "none")


def test_the_remedy_is_that_of_the_finding_that_blames_the_component() -> None:
    box = box_of("dgx-1-v100")
    setting, gpu = host_part("memlock limit"), gpu_part(box, 2)
    found = [finding(gpu, Fault.SLOW), finding(setting, Fault.MEMLOCK, Status.WARN), finding(setting, None)]
    assert remedy_finding(setting, found).judgement.fault is None  # fails, the other warns
    logged = finding(setting, Fault.XID, witness="log")
    assert remedy_finding(setting, [logged, found[0]]).key == found[0].key
    (only,), _ = actions(box, setting, found[1:2], frozenset())
    assert only.remedy_of == found[1].key
    assert action_text(only, {found[1].key: found[1]}) == "the remedy of the finding"


def test_every_code_has_a_sentence() -> None:
    """Each that a module of the diagnosis writes down is a row."""
    files = (ROOT / "dgxcheck" / "diagnosis").glob("*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    named = [each.value for call in calls for each in call.keywords if each.arg == "code"]
    named += [call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "on_gpus"]
    written = {each.value for each in named if isinstance(each, ast.Constant)}
    assert len(written) > 30
    assert written <= {*SENTENCES}


@pytest.mark.exhaustive
def test_every_code_step_and_urgency_has_its_words() -> None:
    produced = {
        action.instruction.code
        for name in [*BOXES, "dgx-1-v100-memlock-jobs"]
        for component in components(box_of(name))
        for fault in EVERY_FAULT
        for action in planned(box_of(name), component, fault)
    }
    elsewhere = {"stop-gpu-clients-and-display", "default-power-limit", "lower-limit", "reset-all-with-switches",
                 "restore-array", "reset-one", "peer-traffic", "reseat-drive", "reset-named", "power-cycle-tray",
                 "inspect-rack-fabric", "inspect-own-fans", "inspect-compute-boards"}  # fmt: skip
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


def test_bridges_are_looked_at_before_a_card_that_nvlinks_join_is_replaced() -> None:
    without = box_of("l40s-x8")
    devices = tuple(replace(device, nvlink_positions=4) for device in without.topology.devices)
    bridged = replace(without, topology=replace(without.topology, devices=devices))
    for box, part, fault, bridges in ((bridged, "NVLink", Fault.NVLINK_DOWN, True), (bridged, "", Fault.XID, False),
                                      (without, "NVLink", Fault.XID, False)):  # fmt: skip
        acts = planned(box, gpu_part(box, 0, part), fault)
        reseat, replace_card = (action_text(step(acts, name), {}) for name in ("reseat", "replace"))
        assert ("reseat the card, its NVLink bridges and its riser" in reseat) is bridges
        assert ("only once another NVLink bridge did not help" in replace_card) is bridges


def test_a_host_bridge_is_not_serviced_with_the_gpu_tray() -> None:
    box = box_of("dgx-1-v100")
    bridge = Component(kind="host-bridge", name="pci0000:80", shared_by=("GPU4", "GPU5", "GPU6", "GPU7"))
    acts = planned(box, bridge, Fault.GPU_LOST)
    assert [action.step for action in acts] == ["drain", "reboot", "power-cycle", "contact-vendor"]
    assert acts[-1].instruction.code == "vendor-board"
