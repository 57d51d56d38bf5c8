"""What a tool prints of a healthy box, put onto that box, contradicts nothing and finds nothing new."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from checkout import ROOT
from programs import program
from seam import run

from dgxcheck.assessment import Request, assess
from dgxcheck.source.recording.keys import flatten, from_rows
from dgxcheck.source.recording.load import load, recording

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


@pytest.mark.parametrize("box", BOXES)
def test_lspci(box: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, text, out = tmp_path / "dump", tmp_path / "lspci.txt", tmp_path / "out.json"
    dump.write_text(configuration_spaces(box))
    done = subprocess.run([program("lspci"), "-F", dump, "-D", "-nn", "-vv"], capture_output=True, check=True)
    text.write_bytes(done.stdout)
    assert b"LnkSta" in done.stdout
    assert run(capsys, "import", str(text), "--onto", box, "-o", str(out)).code == 0
    assert faults(str(out)) == faults(box)
