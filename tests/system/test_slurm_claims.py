"""What a node claims of itself or of another, through ``fleet`` to scontrol, with stand-ins for Slurm's programs."""

from __future__ import annotations

import json
import stat
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from checkout import ROOT

from dgxcheck.cli import main

SCRIPTS = ROOT / "dgxcheck" / "integrations"
FAULT = {"key": "gpu.lost/GPU0", "status": "fail", "fault": "gpu-lost", "subject": "GPU0", "message": "x"}
REASON = "dgxcheck: gpu.lost GPU0 gpu-lost; level quick"
DRAINED, IDLE = f"drained|2026-11-20|{REASON}", "idle|Unknown|none"
STATES = {"dgx001": DRAINED, "dgx002": IDLE, "dgx003": DRAINED, "dgx004": IDLE}
SINFO = """\
echo "$@" >>"${0%/*}/asked"
for one; do [ "$last" = -n ] && want=$one; last=$one; done
grep -F "${want:+$want|}" "${0%/*}/states"
"""


def program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    """Programs that note the arguments of scontrol."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "states").write_text("".join(f"{node}|{state}\n" for node, state in STATES.items()))
    program(folder, "sinfo", SINFO)
    program(folder, "scontrol", f'printf "%s\\n" "$*" >>{folder}/told')
    program(folder, "logger", f'cat <<<"$*" >>{folder}/log')
    program(folder, "sleep", "")
    text = (SCRIPTS / "slurm-nodes.sh").read_text()
    program(folder, "slurm-nodes.sh", text.replace("PATH=/usr/local/sbin:", f"PATH={folder}:/usr/local/sbin:", 1))
    return folder


def result(host: str, verdict: str = "pass", age_h: float = 0, kind: str = "live", serial: str = "") -> str:
    at = datetime.now(timezone.utc) - timedelta(hours=age_h)
    return json.dumps({
        "schema": "dgxcheck/result/1", "host": host, "generated_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "level": "quick", "verdict": verdict, "source": {"kind": kind},
        "parts": [{"kind": "machine", "serial": serial}] if serial else [], "passed": {} if verdict == "fail" else {
            FAULT["key"]: 0}, "found": [FAULT] if verdict == "fail" else [],
    })  # fmt: skip


def told(slurm: Path, results: dict[str, str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The arguments of scontrol after a sweep that left these files."""
    folder = slurm.parent / "results"
    folder.mkdir()
    for name, text in results.items():
        (folder / name).write_text(text)
    main(["fleet", "-n", "dgx[001-004]", "--format", "drain-reason", "--fail-on", "never", str(folder)])
    lines, several = capsys.readouterr().out, {"DGXCHECK_DRAIN_PERCENT": "100"}
    subprocess.run([slurm / "slurm-nodes.sh"], input=lines, text=True, check=True, timeout=60, env=several)
    return (slurm / "told").read_text().splitlines() if (slurm / "told").exists() else []


@pytest.mark.parametrize(
    "claims",
    [
        {"dgx002-0.json": result("dgx001")},  # of another node
        {"dgx002-0.json": f"{result('dgx002')}\n{result('dgx001')}\n{result('dgx004', 'fail')}"},
        {"dgx001-0.json": result("dgx001", age_h=25), "dgx003-1.json": result("dgx003", age_h=-2)},  # old, of tomorrow
        {"dgx001-0.json": result("dgx001", kind="recording")},
        {"dgx001-0.json": result("dgx001").replace("generated_at", "at")},
        {"dgx001-0.json": result("dgx001").replace('"quick"', '"zzz"')},
        {"dgx001-0.json": result("dgx001", "fail").replace('"fail"', '"pass"', 1).replace('"fail"', '"FAIL"')},
        {"dgx001-0.json": result("dgx001", "unknown")[:-1] + ', "verdict": "pass"}'},
        {"dgx001-0.json": result("dgx001", "unknown")},
        {"x.json": result("all", "fail")},
        {"x.json": "\n".join(result(host, "fail") for host in (
            "dgx[001-004]", "dgx002 State=DOWN", "dgx002\tdgxcheck: pass; level extended", "$(touch x)", "-n"))},
    ],
)  # fmt: skip
def test_a_claim_that_does_not_count(
    claims: dict[str, str], slurm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(slurm, claims, capsys) == []


def test_own_results_of_today_count(slurm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = {"dgx001-0.json": result("dgx001"), "dgx002-1.json": result("dgx002.cluster", "fail"), "dgx004-3.json": "{"}
    assert told(slurm, own, capsys) == [
        "update NodeName=dgx001 State=UNDRAIN", f"update NodeName=dgx002 State=DRAIN Reason={REASON}",
    ]  # fmt: skip


def test_nodes_in_service_that_pass_cost_the_controller_one_request(
    slurm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = {f"{host}.json": result(host) for host in STATES}
    assert len(told(slurm, results, capsys)) == 2
    asked = (slurm / "asked").read_text().splitlines()
    assert [line.partition(" -n ")[2].split()[0] for line in asked if " -n " in line] == ["dgx001", "dgx003"]
    assert len(asked) == 3


@pytest.mark.parametrize("other", ["dgx003.other.example", "dgx003."])
@pytest.mark.parametrize(("short", "long"), [("pass", "fail"), ("fail", "pass")])
def test_a_pass_under_one_name_does_not_return_what_fails_under_another(
    short: str, long: str, other: str, slurm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(slurm, {"a.json": result("dgx003", short), "b.json": result(other, long)}, capsys) == []


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_machines_that_share_a_name_return_no_node(
    verdict: str, slurm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = {"a.json": result("dgx001", verdict, 0.5, serial="A"), "b.json": result("dgx001", serial="B")}
    assert told(slurm, results, capsys) == []


def test_the_sweep_names_the_nodes_of_its_job() -> None:
    apply = next(line for line in (SCRIPTS / "slurm-sweep.sh").read_text().splitlines() if "drain-reason" in line)
    assert 'fleet -n "$SLURM_JOB_NODELIST"' in apply
