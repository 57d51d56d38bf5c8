"""``--root``: the host of a container, its files below a mount, NVML as the container was given it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from live_box import Box, Ran, answered, facts_of, finished, gpu_bdfs, serve, shipped, started, with_gpus
from standin import nvml

from dgxcheck.cli import main

Served = Callable[..., Box]
HEALTH = ("health", "-q", "--skip", "host.inventory", "--format", "json")


def contained(box: Box, environment: Mapping[str, str], *argv: str) -> Ran:
    """The installed command, with the place of the host's files."""
    command, *rest = argv
    words = (sys.executable, "-m", "dgxcheck", command, "--root", f"{box.tree}/", *rest)
    return finished(started(words, environment))


def statuses(ran: Ran) -> dict[str, str]:
    listed = json.loads(ran.out)["findings"]
    return {each["key"]: each["status"] for each in listed}


@pytest.mark.in_ci
@pytest.mark.parametrize("fault", ["", "error 15 * {gpu}"])
def test_the_host_is_judged_as_from_outside(fault: str, served: Served, standin: Path) -> None:
    box = served("dgx-1-v100")
    faults = [fault.format(gpu=gpu_bdfs(box.lines)[2])] if fault else []
    inside = contained(box, box.environment(standin, *faults), *HEALTH)
    outside = box.live(box.environment(standin, *faults), *HEALTH)
    assert (inside.code, inside.err) == (outside.code, "")
    assert inside.code == (2 if fault else 0)
    assert statuses(inside) == statuses(outside)


@pytest.mark.parametrize(("file", "name"), [("node7\n", "node7"), (None, None)])
def test_the_name_is_that_of_the_host(
    file: str | None, name: str | None, served: Served, standin: Path, tmp_path: Path
) -> None:
    box = serve(shipped("pcie-x4"), tmp_path)
    (box.tree / "proc/sys/kernel/hostname").write_text("dgxcheck-x7k2p\n", encoding="ascii")  # of the pod
    if file is not None:
        (box.tree / "etc").mkdir(exist_ok=True)
        (box.tree / "etc/hostname").write_text(file, encoding="ascii")
    assert json.loads(contained(box, box.environment(standin), *HEALTH).out)["host"] == name


@pytest.mark.parametrize("lacks", ["the driver's library", "/dev/nvidiactl"])
def test_what_the_container_lacks_is_no_fault_of_the_host(lacks: str, served: Served, standin: Path) -> None:
    box = served("dgx-1-v100")
    environment = box.environment(standin, *([] if "library" in lacks else ["error 9 nvmlInit"]))
    if "library" in lacks:
        del environment["LD_LIBRARY_PATH"]
    ran = contained(box, environment, *HEALTH)
    found = json.loads(ran.out)
    assert not [each for each in found["findings"] if each["status"] in ("warn", "fail")], ran.err
    assert f"this container is not given {lacks}" in ran.out
    assert found["summary"]["pass"] > 50


@pytest.mark.in_ci
def test_devices_that_the_container_may_not_open_are_not_judged(served: Served, standin: Path, tmp_path: Path) -> None:
    box = serve(shipped("dgx-1-v100"), tmp_path)
    node = box.tree / "dev/nvidia-uvm"
    node.unlink()
    node.symlink_to("/proc/sys/kernel/ostype")  # root may not open it for writing either
    key = "driver.device-nodes"
    assert statuses(box.live(box.environment(standin), *HEALTH))[key] == "warn"
    ran = contained(box, box.environment(standin), *HEALTH)
    assert statuses(ran)[key] in ("skip", "unknown")
    assert "this container is not given the device" in ran.out
    node.unlink()  # where the host's /dev lacks it, it is lacking
    assert statuses(contained(box, box.environment(standin), *HEALTH))[key] == "warn"


def test_gpus_that_the_container_is_not_given_are_not_lost(served: Served, standin: Path, tmp_path: Path) -> None:
    document = shipped("dgx-1-v100")
    box = serve(document, tmp_path)
    nvml.write_answers(answered(facts_of(with_gpus(document, 4))), box.answers)
    outside = statuses(box.live(box.environment(standin), *HEALTH))
    assert "fail" in outside.values()
    for number in range(4, 8):
        (box.tree / f"dev/nvidia{number}").unlink()
        (box.tree / f"dev/nvidia{number}").symlink_to("/proc/sys/kernel/ostype")
    found = statuses(contained(box, box.environment(standin), *HEALTH))
    assert "fail" not in found.values()
    assert sum(status == "pass" for status in found.values()) > 100


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--root", "TMP"), "no sys/bus/pci below it; mount the host's / there, and with it its /sys"),
        (("--root", "TMP/with"), "no dev below it; mount the host's / there, and with it its /dev"),
        (("--root", "/", "--from", "dgx-2"), "--root is for this machine, --from for another one; give one of them"),
    ],
)
def test_a_root_that_is_none_is_refused(
    argv: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "with/sys/bus/pci").mkdir(parents=True)
    (tmp_path / "with/proc/sys/kernel").mkdir(parents=True)
    assert main(["topo", *(word.replace("TMP", str(tmp_path)) for word in argv)]) == 3
    assert said in capsys.readouterr().err
