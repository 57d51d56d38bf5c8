"""What a tool prints of a healthy box, put onto that box, contradicts nothing and finds nothing new."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from checkout import ROOT
from programs import program
from report_writer import sections
from sample import swept
from seam import run

from dgxcheck.assessment import Request, assess
from dgxcheck.assessment.importing.onto import base_of, stated
from dgxcheck.assessment.importing.recording import facts_of, read
from dgxcheck.assessment.importing.texts import text_of
from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.keys import flatten, from_rows
from dgxcheck.source.recording.load import load, open_source, recording

FIXTURES = ROOT / "fixtures"
BOXES = sorted(path.stem for path in FIXTURES.glob("*.json"))
D = "/sys/bus/pci/devices/"


def configuration_spaces(box: str) -> str:
    """The box as ``lspci -xxx`` dumps it, which ``lspci -F`` reads."""
    facts = flatten(recording(load(str(FIXTURES / f"{box}.json")), box).lines)
    found = []
    for key, fact in facts.items():
        if key.startswith(f"data {D}") and key.endswith("/config") and (space := from_rows(fact)):
            rows = (space[at : at + 16].hex(" ") for at in range(0, len(space) - 15, 16))
            found += [f"{key.split('/')[-2]} device", *(f"{16 * at:02x}: {row}" for at, row in enumerate(rows)), ""]
    return "\n".join(found)


def faults(spec: str) -> set[tuple[str, str, str]]:
    findings = assess(spec, Request()).findings
    return {(each.id, each.subject.name, each.judgement.fault.word) for each in findings if each.judgement.fault}


@cache
def facts_of_base() -> Mapping[str, Json]:
    return flatten(base_of("dgx-1-v100", open_source("dgx-1-v100")).lines)


G, PORT = "0000:0b:00.0", "/sys/class/infiniband/mlx5_1/ports/1"


@pytest.mark.in_ci
@pytest.mark.parametrize("box", swept(("dgx-1-v100", "dgx-a100", "k80-x8"), 3))
def test_its_bug_report(box: str) -> None:
    """Thousands of facts in the words and units of seven tools."""
    base = base_of(box, open_source(box))
    lines = tuple("\n".join(sections(open_source(box), old=False)).splitlines())
    facts = facts_of(read([text_of("report", lines)]).combined, base)
    assert len(facts) > 1000
    assert stated(facts, flatten(base.lines)) == {}


@pytest.mark.parametrize(
    ("key", "value", "told"),
    swept([
        (f"nvml nvmlDeviceGetPowerManagementLimit {G}", 250000, f"{G} import-power-limit"),
        (f"nvml nvmlDeviceGetComputeMode {G}", 3, f"{G} import-compute-mode"),
        (f"nvml nvmlDeviceGetNvLinkState {G} 2", 0, f"{G} import-nvlink-symmetry"),
        (f"text {D}{G}/numa_node", "1", f"{G} import-numa-node"),
        (f"text {PORT}/rate", "56 Gb/sec (4X FDR)", "mlx5_1/1 import-network-port-rate"),
        ("text /sys/module/nvidia/version", "535.54.03", "host import-module-version"),
        (f"text {D}{G}/current_link_speed", "2.5 GT/s", ""),
        (f"text {PORT}/rate", "100 Gb/sec", ""),
        (f"text {D}{G}/class", "0x0302ff", ""),
        (f"nvml nvmlDeviceGetTemperature {G} 0", 77, ""),
        (f"nvml nvmlDeviceGetTotalEccErrors {G} 1 0", 3, f"{G} import-ecc-volatile"),
    ], 2),
)
def test_a_fact_that_lasts_and_differs(key: str, value: Json, told: str) -> None:
    own = facts_of_base()
    assert key in own
    found = stated({key: value}, own)
    assert any(told in each for each in found) if told else not found


@pytest.mark.parametrize("box", swept(BOXES, 11, first=2))
def test_lspci(box: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, text, out = tmp_path / "dump", tmp_path / "lspci.txt", tmp_path / "out.json"
    dump.write_text(configuration_spaces(box))
    done = subprocess.run([program("lspci"), "-F", dump, "-D", "-nn", "-vv"], capture_output=True, check=True)
    text.write_bytes(done.stdout)
    assert b"LnkSta" in done.stdout
    assert run(capsys, "import", str(text), "--onto", box, "-o", str(out)).code == 0
    assert faults(str(out)) == faults(box)
