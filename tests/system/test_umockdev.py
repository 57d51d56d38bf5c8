"""The live path on the sysfs of a real DGX Station, as umockdev serves it from a recording."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT
from programs import program

from dgxcheck.facts.missing import Json

STATION = ROOT.parent / "shared" / "recordings" / "sysfs-trees" / "checkbox-dgx-station.umockdev"
NEAR = {frozenset(("0000:07:00.0", "0000:08:00.0")), frozenset(("0000:0e:00.0", "0000:0f:00.0"))}


def test_the_station_below_umockdev(tmp_path: Path) -> None:
    if not STATION.is_file():
        pytest.skip("the recordings of other projects are not at hand")
    # umockdev-run refuses a command with other letters than ASCII, as the interpreter's path may have
    command = 'exec "$PYTHON" -m dgxcheck topo -m --format json --deadline 10'
    given = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "LD_LIBRARY_PATH": "", "PYTHON": sys.executable}
    ran = subprocess.run(
        (program("umockdev-run"), "-d", str(STATION), "--", "sh", "-c", command),
        env=given, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 3, ran.stderr  # no NVML: NVLink is not known
    document: dict[str, list[dict[str, Json]]] = json.loads(ran.stdout)
    bdf = {device["name"]: str(device["bdf"]) for device in document["devices"] if device["kind"] == "gpu"}
    assert sorted(bdf.values()) == ["0000:07:00.0", "0000:08:00.0", "0000:0e:00.0", "0000:0f:00.0"]
    links = [link for link in document["links"] if link["a"] in bdf and link["b"] in bdf]
    classes = {frozenset((bdf[link["a"]], bdf[link["b"]])): link["pci"] for link in links}
    assert classes == {pair: "PIX" if pair in NEAR else "PHB" for pair in classes}
    assert len(classes) == 6
