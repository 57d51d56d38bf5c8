"""LBNL NHC's check_nv_healthmon runs dgxcheck in place of nvidia-healthmon, with the lines that ship.

NHC reads ``TARGET || CODE`` and evaluates the code of every line whose target matches the node. Its check runs
``$NVIDIA_HEALTHMON $NVIDIA_HEALTHMON_ARGS``, both split into words, drops stderr, and takes 127 for not found, more for
a signal, and any other code but 0 for a failure, which it logs with the whole output (scripts/lbnl_nv.nhc of mej/nhc).
Its PATH is its own.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from checkout import ROOT, python_script
from programs import program

OWN_PATH = '* || PATH="$PATH:/usr/local/bin"\n'
CONFIGURATION = (ROOT / "dgxcheck/integrations/nhc.conf").read_text(encoding="utf-8")
HARNESS = """
PATH="/sbin:/usr/sbin:/bin:/usr/bin"
die() { shift; echo "DIE $*"; exit 1; }
log() { echo "LOG $*"; }
check_nv_healthmon() {
    local output rc
    output=$(${NVIDIA_HEALTHMON:-nvidia-healthmon} ${NVIDIA_HEALTHMON_ARGS:--e -v} 2>/dev/null)
    rc=$?
    [[ $rc -eq 0 ]] && { echo "FINE $output"; return 0; }
    [[ $rc -eq 127 ]] && die 1 "not found"
    [[ $rc -gt 127 ]] && die 1 "signal $((rc - 127))"
    log "$output"
    die 1 "$NVIDIA_HEALTHMON returned failure code $rc"
}
while read -r line; do
    [[ $line == "* || "* ]] && eval "${line#"* || "}"
done
exit 0
"""


class Checked(NamedTuple):
    """What NHC made of a node."""

    code: int
    out: str


def nhc(folder: Path, configuration: str, box: str) -> Checked:
    """One run of NHC's check over the lines of a configuration; ``dgxcheck`` speaks of ``box``."""
    command = folder / "dgxcheck"
    code = f"import sys\nfrom dgxcheck.cli import main\nsys.exit(main([*sys.argv[1:], '--from', {box!r}]))\n"
    command.write_text(python_script(code), encoding="utf-8")
    command.chmod(0o755)
    env = {"PYTHONPATH": str(ROOT)}
    words = [program("bash"), "-c", HARNESS]
    configuration = configuration.replace("/usr/local/bin", str(folder))
    done = subprocess.run(words, input=configuration, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    return Checked(done.returncode, done.stdout)


@pytest.mark.parametrize("box", ["dgx-1-v100", "dgx-station-v100", "k80-x8"])
def test_a_healthy_node_stays(box: str, tmp_path: Path) -> None:
    done = nhc(tmp_path, CONFIGURATION, box)
    assert done.code == 0
    assert done.out.startswith("FINE PASS ")
    assert "\nSystem Results: " in done.out
    assert "\nOne or more tests didn't run." in done.out


@pytest.mark.parametrize(
    ("box", "check"),
    [
        ("dgx-1-v100-gpu-lost", "gpu.lost"),
        ("dgx-1-v100-no-nvml", "driver.library"),
        ("dgx-a100-remap-failed", "ecc.row-remap"),
    ],
)
def test_a_fault_drains_it_and_is_told(box: str, check: str, tmp_path: Path) -> None:
    done = nhc(tmp_path, CONFIGURATION, box)
    assert done.code == 1
    first, *_, last = done.out.splitlines()
    assert first.startswith("LOG FAIL")
    assert f"\n  FAIL {check}" in done.out
    assert last == "DIE dgxcheck health returned failure code 2"


@pytest.mark.parametrize("box", ["dgx-1-v100-power-cap", "dgx-1-v100-persistence-off"])
def test_a_warning_drains_no_node_with_the_lines_that_ship(box: str, tmp_path: Path) -> None:
    done = nhc(tmp_path, CONFIGURATION, box)
    assert done.code == 0
    assert done.out.startswith("FINE WARN")


def test_the_lines_that_ship_read_state_alone() -> None:
    (given,) = re.findall(r'NVIDIA_HEALTHMON_ARGS="(.*)"', CONFIGURATION)
    assert given.split() == ["-q", "--deadline", "20", "--fail-on", "fail"]


def test_without_them_a_warning_drains_it(tmp_path: Path) -> None:
    lines = '* || NVIDIA_HEALTHMON="dgxcheck health"\n* || NVIDIA_HEALTHMON_ARGS="-v"\n* || check_nv_healthmon\n'
    done = nhc(tmp_path, OWN_PATH + lines, "dgx-1-v100-power-cap")
    assert done.code == 1
    assert done.out.endswith("DIE dgxcheck health returned failure code 1\n")


def test_a_box_without_gpus_is_no_failure_of_nhc_s(tmp_path: Path) -> None:
    """Unknown is not fail: a node that shows no GPU drains only without ``--fail-on fail``."""
    (tmp_path / "box" / "sys").mkdir(parents=True)
    assert nhc(tmp_path, CONFIGURATION, str(tmp_path / "box")).code == 0


def test_a_bad_option_is_a_failure_that_says_so(tmp_path: Path) -> None:
    lines = OWN_PATH + '* || NVIDIA_HEALTHMON="dgxcheck health --bogus"\n* || check_nv_healthmon\n'
    done = nhc(tmp_path, lines, "dgx-1-v100")
    assert done == Checked(1, "LOG \nDIE dgxcheck health --bogus returned failure code 3\n")
