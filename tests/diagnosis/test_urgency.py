"""When a step is due, what it disturbs, and whether the host is drained for it."""

from __future__ import annotations

import pytest
from hand_made import ALL, box_of, ecc, gpu_part, planned, step, steps, with_facts

from dgxcheck.checks.engine.finding import Status
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.components.locate import links_above
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind


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
    for contained in (Fault.REMAP_PENDING, Fault.XID_CONTAINED):
        faults = (contained, Fault.ECC_UNCORRECTED)
        assert {action.urgency for action in planned(box, memory, *faults)} == {"next-drain"}
        assert {action.urgency for action in planned(box, memory, *faults, Fault.XID)} == {"now"}
    hot = planned(box, gpu_part(box, 2, "cooling"), Fault.HEAT_SINK, status=Status.WARN)
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


def test_a_machine_is_drained_before_it_is_opened() -> None:
    box = box_of("geforce-x4")
    for part, fault in (("power supply", Fault.POWER_BRAKE), ("cooling", Fault.HEAT_SINK)):
        for status in (Status.WARN, Status.FAIL):
            acts = planned(box, gpu_part(box, 0, part), fault, status=status)
            assert steps(acts)[:2] == ["drain", "inspect"]
            assert (acts[1].scope, acts[1].urgency) == ("host", acts[0].urgency)


def test_the_vendor_disturbs_nothing() -> None:
    box = box_of("dgx-1-v100")
    vendor = step(planned(box, gpu_part(box, 2), Fault.XID), "contact-vendor")
    assert (vendor.scope, vendor.disturbs) == ("none", ())
    assert "drain" not in steps(planned(box, gpu_part(box, 2), Fault.XID_SOFTWARE, status=Status.WARN))


@pytest.mark.parametrize("name", ["dgx-h100", "l40s-x8"])
@pytest.mark.parametrize("fault", [Fault.XID_SOFTWARE, Fault.XID_NOTICE, Fault.DRIVER_ERROR])
def test_no_board_is_repaired_for_what_software_can_have_caused(name: str, fault: FaultKind) -> None:
    box = box_of(name)
    vendor = step(planned(box, gpu_part(box, 2), fault, status=Status.WARN), "contact-vendor")
    assert vendor.instruction.code == "vendor-report"


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
