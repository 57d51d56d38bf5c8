"""What is stopped for a reset or for another driver: services, displays, jobs of others, virtual machines, IMEX."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hand_made import ALL, box_of, gpu_part, in_place, planned, step, stopped, with_facts, with_units
from sample import BOXES

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.component import DRIVER, FABRIC_MANAGER
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.diagnosis.clients import FABRIC_UNIT, drives_a_display, services
from dgxcheck.diagnosis.steps import restart, stop_load
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Modules, Unit
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.nvml.gpu import GpuProcess
from dgxcheck.facts.record import replace
from dgxcheck.output.health.instructions import action_text
from probes.host.software import SERVICES


def test_on_nvswitches_fabric_manager_stays_up_from_ampere_on() -> None:
    box = box_of("dgx-a100")
    acts = planned(box, gpu_part(box, 0), Fault.XID)
    assert step(acts, "reset-gpu").instruction.code == "reset-with-fabric-manager"
    assert "nvidia-fabricmanager" not in stopped(acts)
    reload = planned(box, DRIVER, Fault.DRIVER_MISMATCH)
    assert "nvidia-fabricmanager" in stopped(reload)


def test_a_display_is_closed_before_the_reset() -> None:
    box = with_facts("dgx-station-v100", {"nvml nvmlDeviceGetDisplayActive 0000:07:00.0": 1})
    stop = step(planned(box, gpu_part(box, 0), Fault.XID), "stop-jobs")
    assert ("systemctl", "isolate", "multi-user.target") in stop.commands
    assert stop.instruction.code == "stop-gpu-clients-and-display"
    for units, instruction in ((["gdm"], "stop-gpu-clients-and-display"), (["slurmd"], "stop-gpu-clients")):
        listed = box_of("dgx-station-v100")
        running = tuple(Unit(name=name, running=True, enabled=True) for name in units)
        unlisted = Missing(Gap.UNSUPPORTED, "NVML")  # what runs on the GPUs
        box = replace(listed, snapshot=replace(listed.snapshot, units=running, gpu_processes=unlisted))
        assert step(planned(box, gpu_part(box, 0), Fault.XID), "stop-jobs").instruction.code == instruction
    dark = box_of("dgx-1-v100")
    assert step(planned(dark, gpu_part(dark, 0), Fault.XID), "stop-jobs").instruction.code == "stop-gpu-clients"


def test_services_are_candidates_and_nvsm_is_dgx_os() -> None:
    for name in BOXES:
        box = box_of(name)
        named = services(box, box.topology.gpus, with_switches=False)
        assert {"nvidia-persistenced", "nvidia-dcgm"} <= {*named}
        assert ("nvsm" in named) is (name.startswith("dgx") and name != "dgx-b300")
        assert (FABRIC_UNIT in named) is (name == "dgx-2"), "a reset takes NVSwitches along before Ampere"
        assert services(box, box.topology.gpus, with_switches=True)[-1] == FABRIC_UNIT


def with_clients(program: str, enabled: Sequence[str] = ()) -> Box:
    """GPUs with this program on the first, and enabled units of which nobody knows whether they run."""
    box, gap = box_of("dgx-1-v100"), Missing(Gap.DENIED, "x")
    activity = box.snapshot.gpu_processes
    assert isinstance(activity, tuple)
    process = GpuProcess(pid=7, used_memory=gap, name=f"/usr/bin/{program} -x")
    rows = (replace(activity[0], compute=(), graphics=(process,)), *activity[1:])
    units = tuple(Unit(name=name, running=gap, enabled=name in enabled) for name in SERVICES)
    return replace(box, snapshot=replace(box.snapshot, gpu_processes=rows, units=units))


@pytest.mark.parametrize(("program", "enabled", "first"), [
    ("nv-hostengine", (), ["nvidia-dcgm", "nvidia-persistenced"]), ("python3", (), ["nvidia-persistenced"]),
    ("python3", ("dcgm-exporter",), ["dcgm-exporter", "nvidia-persistenced"]),
    ("nv-hostengine", ("nvsm",), ["nvidia-dcgm", "nvsm", "nvidia-persistenced"]),
])  # fmt: skip
def test_what_is_seen_on_a_gpu_or_enabled_comes_first(program: str, enabled: tuple[str, ...], first: list[str]) -> None:
    box = with_clients(program, enabled)
    named = services(box, box.topology.gpus, with_switches=False)
    assert [*named[: len(first)]] == first
    assert {*named} >= {"nvidia-persistenced", "nvidia-dcgm", "dcgm", "dcgm-exporter"}


@pytest.mark.parametrize(("program", "due"), [("Xorg", True), ("gnome-shell", True), ("python3", False)])
def test_a_screen_is_a_program_too(program: str, due: bool) -> None:
    box = with_clients(program)
    assert drives_a_display(box, box.topology.gpus) is due
    assert not drives_a_display(box, box.topology.gpus[1:])


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


def test_a_tray_without_imex_ends_jobs_of_all_its_gpus() -> None:
    """NVIDIA IMEX guide, signal handling: when it ends, what this node exports is taken from the others."""
    box = box_of("gb200-nvl72")
    acts = planned(box, gpu_part(box, 0), Fault.XID)
    stop, reset = (step(acts, name) for name in ("stop-jobs", "reset-gpu"))
    assert (stop.disturbs, reset.disturbs) == (ALL[:4], ALL[:1])
    assert "without nvidia-imex every job ends" in action_text(stop, {})
    alone = box_of("l40s-x8")
    stop = step(planned(alone, gpu_part(alone, 0), Fault.XID), "stop-jobs")
    assert stop.disturbs == ALL[:1]
    assert "imex" not in action_text(stop, {})


def test_the_driver_is_reloaded_where_it_is_loaded() -> None:
    box = box_of("dgx-1-v100")
    modules = box.snapshot.modules
    assert isinstance(modules, Modules)
    rows = tuple(replace(row, loaded=False) if row.name == "nvidia" else row for row in modules.modules)
    without = replace(box, snapshot=replace(box.snapshot, modules=replace(modules, modules=rows)))
    for of, due in ((box, "reload-driver"), (without, "finding-remedy")):
        assert step(planned(of, DRIVER, Fault.DRIVER_MISMATCH), "load-module").instruction.code == due


@pytest.mark.parametrize(("facts", "values"), [
    ({}, {}), ({"nvml nvmlDeviceGetMigMode 0000:07:00.0": [1, 1]}, {"mig": 1}),
    ({"names /sys/module": ["nvidia", "vfio_pci"]}, {"machines": 1}),
])  # fmt: skip
def test_a_restart_of_fabric_manager_says_whom_it_ends(facts: dict[str, Json], values: dict[str, int]) -> None:
    box = with_facts("dgx-a100", facts)
    assert restart(box, FABRIC_MANAGER).instruction.values == values


@pytest.mark.parametrize(("units", "commands", "names"), [
    (("kubelet",), ["kubectl", "nvidia-smi"], ALL), ((), ["nvidia-smi"], ("GPU0",)),
])  # fmt: skip
def test_a_load_that_kubernetes_would_start_again_is_evicted(
    units: tuple[str, ...], commands: list[str], names: tuple[str, ...]
) -> None:
    box = with_units("dgx-a100", *units)
    stop = stop_load(box, gpu_part(box, 0), ())
    assert [command[0] for command in stop.commands] == commands
    assert stop.disturbs == names


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


def test_virtual_machines_with_shares_of_a_gpu_are_shut_down_before_its_reset() -> None:
    key = "nvml nvmlDeviceGetVirtualizationMode 0000:07:00.0"
    for mode, due in ((3, True), (0, False)):
        box = with_facts("dgx-a100", {key: mode})
        text = action_text(step(planned(box, gpu_part(box, 0), Fault.XID), "stop-jobs"), {})
        assert ("shut down the virtual machines that use them first" in text) is due
    driver: dict[str, Json] = {"link /sys/bus/pci/devices/0000:bd:00.0/driver": "../../../bus/pci/drivers/vfio-pci"}
    given = with_facts("dgx-a100", driver)
    for part, due in ((NVSWITCHES, True), (gpu_part(given, 0), False)):
        text = action_text(step(planned(given, part, Fault.XID), "stop-jobs"), {})
        assert ("shut down the virtual machines that use them first" in text) is due


def test_what_holds_the_driver_of_a_host_of_vgpus_is_stopped_and_unloaded() -> None:
    key = "nvml nvmlDeviceGetVirtualizationMode 0000:1a:00.0"
    for mode, loaded in ((3, True), (0, False)):
        box = with_facts("l40s-x8", {key: mode})
        modules = box.snapshot.modules
        assert isinstance(modules, Modules)
        of_vgpus = tuple(replace(each, loaded=loaded) if each.name == "nvidia_vgpu_vfio" else each
                         for each in modules.modules)  # fmt: skip
        box = replace(box, snapshot=replace(box.snapshot, modules=replace(modules, modules=of_vgpus)))
        acts = planned(box, DRIVER, Fault.DRIVER_MISMATCH)
        unload, load = step(acts, "load-module").commands
        assert ("nvidia_vgpu_vfio" in unload, "nvidia_vgpu_vfio" in load) == (loaded, loaded)
        assert not loaded or unload.index("nvidia_vgpu_vfio") < unload.index("nvidia")
        assert ("nvidia-vgpu-mgr, nvidia-vgpud" in action_text(step(acts, "stop-jobs"), {})) is loaded
        for running, named in ((("nvidia-vgpu-mgr",), ("nvidia-vgpu-mgr",)), ((), ())):
            found = replace(box, snapshot=replace(box.snapshot, units=with_units("l40s-x8", *running).snapshot.units))
            assert services(found, box.topology.gpus, False) == (named if loaded else ())


@pytest.mark.parametrize(
    ("daemon", "hostname", "back"),
    [
        ("slurmd", "node7.example", "scontrol update NodeName=node7 State=RESUME"),
        ("pbs_mom", "node7.example", "pbsnodes -r node7"),
        ("kubelet", "node7.example", "kubectl uncordon node7.example"),
    ],
)
def test_a_drained_node_is_given_back(daemon: str, hostname: str, back: str) -> None:
    units = (Unit(name=daemon, running=True, enabled=True),)
    nameless = in_place("dgx-a100", hostname="")
    nameless = replace(nameless, snapshot=replace(nameless.snapshot, units=units))
    acts = planned(nameless, gpu_part(nameless, 0), Fault.XID)
    assert step(acts, "drain").instruction.code == "drain-host"
    assert not [command for action in acts for command in action.commands if command[0] == "kubectl"]
    box = in_place("dgx-a100", hostname=hostname)
    box = replace(box, snapshot=replace(box.snapshot, units=units))
    drain = step(planned(box, gpu_part(box, 0), Fault.XID), "drain")
    assert action_text(drain, {}).endswith(f"once dgxcheck health passes again, {back}")
