"""What an admin meets and no shipped fault has: faults that hang together, and what must not be offered then."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from measured_box import GPUS, fact
from sample import BY_NAME, FAULTS
from test_diagnosis import components, health
from test_diagnosis import steps_of as steps

V100 = "dgx-1-v100"
UNTOLD = {"missing": "unsupported", "detail": "NVML 3: Not Supported"}
LOST = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
Overlay = dict[str, Any]


def fault(name: str, old: str = "", new: str = "") -> Overlay:
    """One that ships; at another device where ``old`` is given."""
    text = Path(FAULTS[f"{V100}-{name}"]).read_text(encoding="utf-8")
    document: Overlay = json.loads(text.replace(old, new) if old else text)
    return document


def merged(*overlays: Overlay, base: str = V100) -> Overlay:
    """Facts of all; of what two change the last one's."""
    document: Overlay = {"schema": "dgxcheck/overlay/1", "base": base, "facts": {}, "add": {}, "drop": []}
    for each in overlays:
        document["facts"] |= each.get("facts", {})
        document["add"] |= each.get("add", {})
        document["drop"] += each.get("drop", [])
        document |= {"later": each["later"]} if "later" in each else {}
    return document


def judged(folder: Path, *overlays: Overlay, base: str = V100) -> dict[str, Any]:
    path = folder / "life.json"
    path.write_text(json.dumps(merged(*overlays, base=base)), encoding="utf-8")
    return health(str(path))


def nvlinks_down(base: str, which: Callable[[str, str], bool], forgotten: bool = False) -> Overlay:
    """Those between these two ends; ``forgotten`` as where the other end is not there."""
    lines = json.loads(Path(BY_NAME[base]).read_text(encoding="utf-8"))["facts"]
    facts: Overlay = {}
    for line, states in lines.items():
        if not line.startswith("nvml nvmlDeviceGetNvLinkState "):
            continue
        bdf = line.split()[2]
        remotes = lines[f"nvml nvmlDeviceGetNvLinkRemotePciInfo {bdf}"]
        for position in (each for each, state in states.items() if state == 1):
            if not which(bdf, remotes[position]["busIdLegacy"].lower()):
                continue
            facts[f"{line} {position}"] = 0
            for name in ("RemotePciInfo", "Version", "RemoteDeviceType") if forgotten else ():
                facts[f"nvml nvmlDeviceGetNvLink{name} {bdf} {position}"] = UNTOLD
    return {"facts": facts}


def absent(*gpus: str) -> Overlay:
    """GPUs that are nowhere on the PCI tree."""
    down = nvlinks_down(V100, lambda bdf, remote: bdf not in gpus and remote in gpus, forgotten=True)
    return {**down, "drop": list(gpus)}


def lost(*gpus: int) -> Overlay:
    return {"facts": {f"nvml nvmlDeviceGetHandleByIndex {gpu}": LOST for gpu in gpus}}


def test_a_switch_that_is_gone_is_one_cause(tmp_path: Path) -> None:
    hca = {"drop": ["0000:0c:00.0", "/sys/class/infiniband/mlx5_1", "/sys/class/net/ib1", "/dev/infiniband/uverbs1"]}
    (cause,) = judged(tmp_path, absent(GPUS[2], GPUS[3]), hca)["causes"]
    assert (cause["component"]["part"], cause["component"]["bdf"]) == ("empty PCIe switch", "0000:08:00.0")
    assert cause["explains"] == ["gpu.count", "network.hca-count"]
    assert "GPU tray" in cause["actions"][-1]["text"]


def test_two_gpus_gone_beside_an_hca_are_behind_its_switch(tmp_path: Path) -> None:
    (cause,) = judged(tmp_path, absent(GPUS[2], GPUS[3]))["causes"]
    assert (cause["component"]["bdf"], cause["component"]["part"]) == ("0000:08:00.0", "missing GPU")
    assert "mlx5_1" in cause["component"]["name"]


def test_two_gpus_lost_behind_one_switch_are_not_the_switch_for_the_hca_speaks_for_it(tmp_path: Path) -> None:
    (cause,) = judged(tmp_path, lost(2, 3))["causes"]
    assert (cause["component"]["kind"], cause["component"]["part"]) == ("host", "GPU baseboard")
    assert (cause["confidence"]["level"], cause["confidence"]["reason"]) == ("inferred", "rest-responds")
    assert "mlx5_1" in cause["confidence"]["text"]
    assert steps(cause) == ["inspect", "power-cycle", "contact-vendor"]


@pytest.mark.parametrize("one_sided", [False, True])
def test_a_gpu_without_nvlinks_is_reset_with_all_that_they_join(one_sided: bool, tmp_path: Path) -> None:
    """Its links are down, but nvidia-smi asks for the GPUs at their other ends all the same."""
    down = nvlinks_down(V100, lambda bdf, remote: GPUS[2] in ((bdf,) if one_sided else (bdf, remote)))
    (cause,) = judged(tmp_path, down)["causes"]
    assert (cause["component"]["bdf"], cause["component"]["part"]) == (GPUS[2], "NVLink")
    reset = next(each for each in cause["actions"] if each["action"] == "reset-gpu")
    assert reset["disturbs"] == [f"GPU{number}" for number in range(8)]
    assert reset["commands"] == [["nvidia-smi", "-r"]]
    assert "fabricmanager" not in json.dumps(cause["actions"])


@pytest.mark.parametrize("base", [V100, "dgx-station-v100"])
def test_nvlinks_that_are_all_down_are_a_setting(base: str, tmp_path: Path) -> None:
    (cause,) = judged(tmp_path, nvlinks_down(base, lambda *_: True), base=base)["causes"]
    assert cause["id"] == "host/host/NVLink setting"
    assert steps(cause) == ["change-setting", "reboot"]
    assert "nvidia-bug-report.sh" in [each["text"] for each in cause["save_first"]]


@pytest.mark.parametrize("base", [V100, "dgx-station-v100"])
@pytest.mark.parametrize(
    ("guest", "cause", "first"),
    [({}, "gpus/GPUs/NVLink", "reset-gpu"),
     ({"text /sys/hypervisor/type": "xen\n"}, "host/host/NVLink setting", "change-setting")],
)  # fmt: skip
def test_nvlinks_that_the_driver_was_to_use_are_not_down_by_its_setting(
    guest: Overlay, cause: str, first: str, base: str, tmp_path: Path
) -> None:
    """NvLinkDisable is in the parameters of every driver; of a guest its hypervisor may hide the links."""
    in_use: Overlay = {"facts": {"text /proc/driver/nvidia/params": "NvLinkDisable: 0\n", **guest}}
    (only,) = judged(tmp_path, nvlinks_down(base, lambda *_: True), in_use, base=base)["causes"]
    assert only["id"] == cause
    assert next(step for step in steps(only) if step not in ("drain", "stop-jobs")) == first


@pytest.mark.parametrize("every", [True, False])
def test_nvlinks_through_switches_are_the_fabric_managers(every: bool, tmp_path: Path) -> None:
    """All down, it has not set them up; a link of each GPU down, a switch is."""
    seen: set[str] = set()

    def which(bdf: str, _: str) -> bool:
        first = bdf not in seen
        seen.add(bdf)
        return every or first

    (cause,) = judged(tmp_path, nvlinks_down("dgx-a100", which), base="dgx-a100")["causes"]
    assert cause["id"] == ("host/host/Fabric Manager" if every else "host/host/NVSwitches")
    assert steps(cause)[:2] == (["inspect", "restart-service"] if every else ["restart-service", "reset-gpu"])
    restart = next(each for each in cause["actions"] if each["action"] == "restart-service")
    assert (restart["scope"], len(restart["disturbs"])) == ("jobs", 8)
    assert restart["commands"] == [["systemctl", "restart", "nvidia-fabricmanager"]]


def test_beside_a_lost_gpu_none_that_nvlinks_join_to_it_is_reset(tmp_path: Path) -> None:
    document = judged(tmp_path, lost(5), fault("xid-62"), fault("ecc-off", GPUS[2][:10], GPUS[0][:10]))
    causes = {cause["id"]: steps(cause) for cause in document["causes"]}
    assert causes == {
        f"gpu/{GPUS[5]}": ["reboot", "power-cycle", "field-diagnostic", "contact-vendor"],
        f"gpu/{GPUS[2]}": ["reboot", "power-cycle", "field-diagnostic", "contact-vendor"],
        f"gpu/{GPUS[0]}/ECC mode": ["change-setting", "reboot", "power-cycle"],
    }


@pytest.mark.parametrize("ports", [(1, 2), (0, 1, 2, 3)])
def test_ports_that_the_site_expects_and_are_down(ports: Sequence[int], tmp_path: Path) -> None:
    """Without the site's word a box of which no port is up is one that nobody has cabled."""
    config = tmp_path / "site.toml"
    config.write_text(f"[network]\nports = {[f'mlx5_{each}/1' for each in range(4)]}\n", encoding="utf-8")
    path = tmp_path / "life.json"
    down = [json.loads(json.dumps(fault("port-polling", "mlx5_1", f"mlx5_{each}")).replace("ib1", f"ib{each}"))
            for each in ports]  # fmt: skip
    path.write_text(json.dumps(merged(*down)), encoding="utf-8")
    causes = health(str(path), "--config", str(config))["causes"]
    kinds = [cause["component"]["kind"] for cause in causes]
    assert kinds == (["fabric"] if len(ports) == 4 else ["port", "port"])
    saved = [each["output"] for cause in causes for each in cause["save_first"] if each["command"][0] == "mlxlink"]
    assert len(saved) == len({*saved})


def test_a_port_that_is_disabled_is_enabled_before_its_cable_is_touched() -> None:
    (cause,) = health(f"{V100}-port-down")["causes"]
    assert cause["action"]["commands"] == [["mlxlink", "-d", "0000:0c:00.0", "--port_state", "UP"]]
    assert steps(cause) == ["change-setting", "reseat"]


def test_one_gpu_with_four_troubles_has_two_causes(tmp_path: Path) -> None:
    slow = {"add": {f"measure device-copy {gpu}": fact(300.0 if gpu == GPUS[2] else 755.0) for gpu in GPUS}}
    causes = judged(tmp_path, fault("ecc-volatile"), fault("xid-48"), fault("hot"), slow)["causes"]
    assert [cause["component"]["part"] for cause in causes] == ["memory", "cooling"]
    assert {"ecc.volatile", "kernel.xid", "measure.memory-bandwidth"} <= {
        key.partition("/")[0] for key in causes[0]["explains"]
    }


def test_two_dimms_are_two_causes(tmp_path: Path) -> None:
    document = judged(tmp_path, fault("edac-corrected"), fault("edac-uncorrected"))
    assert {cause["id"] for cause in document["causes"]} == {"host/host/memory/mc1", "host/host/memory/mc2"}


def test_an_iommu_goes_before_acs_and_neither_where_machines_run(tmp_path: Path) -> None:
    both = (fault("iommu-dma"), fault("acs-everywhere"))
    (cause,) = judged(tmp_path, *both)["causes"]
    assert cause["component"]["part"] == "IOMMU setting"
    assert "setpci" not in json.dumps(cause)
    assert judged(tmp_path, *both, fault("hypervisor"))["causes"] == []


def test_after_an_upgrade_the_driver_and_what_the_log_says(tmp_path: Path) -> None:
    causes = judged(tmp_path, fault("mismatch"), fault("xid-79"))["causes"]
    assert [cause["id"] for cause in causes] == ["driver/NVIDIA driver", f"gpu/{GPUS[2]}"]
    assert "modprobe -r nvidia_peermem nvidia_uvm" in causes[0]["actions"][3]["text"]
    assert steps(causes[1])[0] == "reboot"


def test_a_library_that_is_not_there_is_not_loaded_as_a_module() -> None:
    (cause,) = health(f"{V100}-no-nvml")["causes"]
    assert "modprobe" not in json.dumps(cause)


def test_another_vbios_in_half_of_the_gpus_is_one_cause(tmp_path: Path) -> None:
    half = {f"nvml nvmlDeviceGetVbiosVersion {gpu}": "88.00.4F.00.09" for gpu in GPUS[::2]}
    (cause,) = judged(tmp_path, {"facts": half})["causes"]
    assert cause["component"]["part"] == "VBIOS and settings of GPUs"


def test_a_full_bar1_asks_for_the_jobs_of_that_gpu_alone() -> None:
    (cause,) = health(f"{V100}-bar1-full")["causes"]
    assert steps(cause) == ["stop-jobs"]
    assert (cause["action"]["scope"], cause["action"]["disturbs"]) == ("jobs", ["GPU5"])


def test_a_device_node_is_made_by_its_minor() -> None:
    (cause,) = health(f"{V100}-node-shut")["causes"]
    assert cause["action"]["commands"] == [["nvidia-modprobe", "-c", "2"]]


@pytest.mark.in_ci
def test_ten_faults_at_once(tmp_path: Path) -> None:
    names = ("switch-x8", "nvlink-down", "xid-48", "one-hot", "port-symbol-errors", "dimm-missing", "persistence-off",
             "disk-missing", "ethernet-1g", "acs-redirect")  # fmt: skip
    document = judged(tmp_path, *map(fault, names))
    causes = document["causes"]
    assert components(document) == {each for name in names for each in components(health(f"{V100}-{name}"))}
    order = [("fail", "unknown", "warn").index(cause["severity"]) for cause in causes]
    assert order == sorted(order)
    assert causes[0]["id"] == f"gpu/{GPUS[2]}/memory"  # the only one that explains three
    assert document["unexplained"] == []
