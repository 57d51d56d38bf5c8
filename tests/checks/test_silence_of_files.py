"""A file that is there for every equal device and not for one is a gap of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample import swept
from test_silence import findings

from dgxcheck.facts.missing import Json

HCA, SWITCH_PORT = "0000:05:00.0", "0000:04:08.0"
GONE: dict[str, Json] = {"missing": "absent"}
SHUT: dict[str, Json] = {"missing": "denied", "detail": "Permission denied", "code": 13}
PORT = "/sys/class/infiniband/mlx5_0/ports/1"


@pytest.mark.parametrize("gap", [GONE, SHUT])
@pytest.mark.parametrize(
    ("key", "bdf"),
    [
        (f"text {PORT}/state", HCA),
        (f"text {PORT}/rate", HCA),
        (f"text {PORT}/counters/symbol_error", HCA),
        (f"text /sys/bus/pci/devices/{HCA}/current_link_width", HCA),
        (f"text /sys/bus/pci/devices/{SWITCH_PORT}/current_link_speed", SWITCH_PORT),
    ],
)
def test_one_device_lacks_a_file(key: str, bdf: str, gap: Json, tmp_path: Path) -> None:
    assert findings(tmp_path, {key: gap}, only=("pcie",)).get(f"pcie.answers/{bdf}") == "unknown"


def test_a_port_in_ethernet_mode_has_other_files(tmp_path: Path) -> None:
    ethernet: dict[str, Json] = {f"text {PORT}/link_layer": "Ethernet\n", f"text {PORT}/sm_lid": GONE}
    assert f"pcie.answers/{HCA}" not in findings(tmp_path, ethernet)


def test_a_file_that_no_device_has_is_not_missed(tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        f"text /sys/class/infiniband/mlx5_{number}/ports/1/counters/symbol_error": GONE for number in range(4)
    }
    assert not [key for key in findings(tmp_path, facts) if key.startswith("pcie.answers")]


@pytest.mark.parametrize("gap", swept([GONE, SHUT, {"missing": "unsupported"}], 3))
@pytest.mark.parametrize(
    "key",
    ["text /proc/cpuinfo", "text /proc/meminfo", "names /sys/devices/system/node", "names /sys/class/block",
     "names /sys/class/net", "names /sys/class/infiniband"],
)  # fmt: skip
def test_a_layer_of_the_host_cannot_be_read(key: str, gap: Json, tmp_path: Path) -> None:
    found = findings(tmp_path, {key: gap})
    assert {"unknown", "fail"} & {*found.values()}
    assert "host.answers" in {name.partition("/")[0] for name in found}
    container: dict[str, Json] = {"text /.dockerenv": ""}
    inside = findings(tmp_path, {key: gap} | container, only=("host", "driver"))
    assert "host.answers" not in {name.partition("/")[0] for name in inside}
