"""The samples that ship for monitors and schedulers, each read by the program that it is for."""

from __future__ import annotations

import copy
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from checkout import ROOT
from live_box import CHILD, Box, serve, shipped
from programs import program
from sample import swept

from dgxcheck.cli import main
from dgxcheck.facts.missing import Json
from dgxcheck.output.health.for_programs.metrics import QUANTITIES
from dgxcheck.settings import Settings

FOLDER = ROOT / "dgxcheck" / "integrations"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.sh"))
ALERTS = "dgxcheck-alerts.yml"
UNITS = ("dgxcheck-textfile.service", "dgxcheck-textfile.timer", "dgxcheck-watch.service")
REAL = "/usr/local/bin/dgxcheck"
GONE = "GPU (0a:00.0): lost, NVML cannot open it -> drain, reboot"
"""What is wrong with the recording ``dgx-1-v100-gpu-lost``."""


def ran(*words: str, cwd: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_the_alert_rules_are_rules() -> None:
    done = ran(program("promtool"), "check", "rules", ALERTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_alerts_fire_when_they_should() -> None:
    done = ran(program("promtool"), "test", "rules", "dgxcheck-alerts.test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("rule", "broken"),
    swept([
        ("dgxcheck_verdict == 3", "dgxcheck_verdict == 5"),
        ("dgxcheck_verdict == 2", "dgxcheck_verdict >= 2"),
        ("dgxcheck_verdict == 1", "dgxcheck_verdict >= 1"),
        ("dgxcheck_cause_severity == 2", "dgxcheck_cause_severity >= 1"),
        ("dgxcheck_check_status == 2", "dgxcheck_check_status >= 1"),
        ("(dgxcheck_check_status == 2 unless dgxcheck_check_acknowledged)", "dgxcheck_check_status == 2"),
        (" and on (job, instance) dgxcheck_unexplained_findings > 0", ""),
        (" unless on (job, instance) time() - node_boot_time_seconds < 86400", ""),
        ('increase1d{counter!~"crc_.*"}', "increase1d"),
        (">= 10\n", ">= 0\n"),
        ("> 1800", "> 18000"),
        (" and on (job, instance) up == 1", ""),
        (" or (last_over_time(instance:dgxcheck_up:seen[15m]) and on (job, instance) up)", ""),
        ("dgxcheck_score < 90", "dgxcheck_score <= 100"),
        ("silent_nodes > 0", "silent_nodes >= 0"),
    ], 15),
)
def test_their_tests_see_a_broken_rule(rule: str, broken: str, tmp_path: Path) -> None:
    assert read(ALERTS).count(rule) == 1
    (tmp_path / ALERTS).write_text(read(ALERTS).replace(rule, broken), encoding="utf-8")
    shutil.copy(FOLDER / "dgxcheck-alerts.test.yml", tmp_path)
    assert ran(program("promtool"), "test", "rules", "dgxcheck-alerts.test.yml", cwd=tmp_path).returncode == 1


def test_the_alerts_speak_of_metrics_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    main(["health", "--from", "dgx-1-v100", "--format", "prometheus", "--metrics", "all"])
    there = set(re.findall(r"^# TYPE (\S+)", capsys.readouterr().out, re.MULTILINE))
    measured = {id for id in QUANTITIES if id.startswith("measure.")}  # under load, no box that ships
    assert {f"dgxcheck_{QUANTITIES[id].metric}" for id in QUANTITIES.keys() - measured} <= there
    exprs = "\n".join(re.findall(r"expr: (.*)", read(ALERTS)))
    recorded = {*re.findall(r"record: (\S+)", read(ALERTS))}
    assert {*re.findall(r"\b\w+:\w+:\w+", exprs)} <= recorded
    outputs = (ROOT / "dgxcheck" / "output").rglob("*.py")
    written = "".join(path.read_text(encoding="utf-8") for path in outputs)
    named = {f"dgxcheck_{name}" for name in re.findall(r'\b(?:metric|now)\(\s*"(\w+)"', written)}
    asked = {*re.findall(r"(?<![\w:])dgxcheck_\w+(?!\w*\()", exprs)} - {"dgxcheck_"}
    assert asked - there <= named
    # what judges, and when it did, has a reader
    of_time = set(re.findall(r"dgxcheck_\((\S+)\)_timestamp_seconds", exprs)[0].split("|"))
    assert {f"dgxcheck_{room}_timestamp_seconds" for room in of_time} <= named
    shown = read("grafana-dashboard.json") + exprs
    verdicts = {name for name in named if name.endswith("_verdict")}
    of_parts = {"dgxcheck_fleet_verdict", "dgxcheck_device_verdict"}  # nodes and causes have alerts
    assert {name for name in verdicts if name not in shown} == of_parts


def test_alerts_on_growth_have_the_limits_of_the_checks() -> None:
    (day, crc, other, hour) = re.findall(r"increase1[dh](?:{[^}]*})? >=? ([1-9]\d*)", read(ALERTS))
    names = ("kernel.corrected-pcie", "nvlink.total-crc", "nvlink.total", "network.errors")
    assert [*map(float, (day, crc, other, hour))] == [Settings().limit(name) for name in names]


@pytest.mark.parametrize("broken", ["", "ProtectHome=", "OnBootSec="])
def test_the_units_are_units(broken: str, tmp_path: Path) -> None:
    for unit in UNITS:
        text = read(unit).replace(REAL, program("true"))
        (tmp_path / unit).write_text(text.replace(broken, f"X{broken}") if broken else text, encoding="utf-8")
    done = ran(program("systemd-analyze"), "verify", *UNITS, cwd=tmp_path)
    said = [line for line in done.stderr.splitlines() if "dgxcheck" in line]
    assert (done.returncode == 0 and not said) == (not broken), done.stderr


@pytest.mark.parametrize("name", [unit for unit in UNITS if unit.endswith(".service")])
def test_the_service_is_confined(name: str) -> None:
    """systemd's own figure, from 0 to 10: 9.0 with nothing set."""
    unit = FOLDER / name
    done = ran(program("systemd-analyze"), "security", "--offline=true", "--threshold=30", str(unit), cwd=FOLDER)
    assert done.returncode == 0, done.stdout[-200:]


def test_the_service_writes_the_metrics(tmp_path: Path) -> None:
    (line,) = re.findall(r"^ExecStart=(.*)$", read("dgxcheck-textfile.service"), re.MULTILINE)
    words = shlex.split(line)
    assert words[0] == REAL
    file = tmp_path / "dgxcheck.prom"
    assert words[-1] == "/var/lib/prometheus/node-exporter/dgxcheck.prom"
    assert main([*words[1:-1], str(file), "--from", "dgx-1-v100"]) == 0
    assert "dgxcheck_verdict 0\n" in file.read_text(encoding="utf-8")


def test_the_nagios_command_is_a_plug_in(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = re.findall(r"^command\[check_dgxcheck\]=(.*)$", read("nrpe.cfg"), re.MULTILINE)
    words = shlex.split(line)
    assert words[0] == REAL
    assert main([*words[1:], "--from", "dgx-1-v100-gpu-lost"]) == 2
    assert capsys.readouterr().out.startswith(f"DGXCHECK CRITICAL - {GONE} | ")


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_bash(name: str) -> None:
    done = ran(program("bash"), "-n", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(FOLDER / name, os.X_OK)
    assert read(name).startswith("#!/bin/bash\n")


class Node(NamedTuple):
    """How a script of Slurm ended, and what it asked the programs around it."""

    code: int
    err: str
    asked: str


def slurm(script: str, folder: Path, dgxcheck: str, state: str = "idle", scontrol: str = ":") -> Node:
    """Run as slurmd runs it: in an empty environment, with these programs first on the path that it sets itself."""
    programs = {
        "dgxcheck": dgxcheck, "sinfo": f"case \"$*\" in *%N*) echo 'n1|{state}|0|none';; *) echo '{state}|none';; esac",
        "scontrol": scontrol, "logger": ":",
    }  # fmt: skip
    for name, body in programs.items():
        calls = f"printf '%s\\n' '{name}' \"$@\" >> '{folder}/asked'; " if name in ("scontrol", "logger") else ""
        (folder / name).write_text(f"#!/bin/bash\n{calls}{body}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    for each in SCRIPTS:
        text = read(each).replace("\nPATH=", f"\nPATH={folder}:").replace("/etc/default/", f"{folder}/default-")
        (folder / each).write_text(text.replace("/run/dgxcheck", f"{folder}/run"), encoding="utf-8")
        (folder / each).chmod(0o755)
    done = subprocess.run([str(folder / script)], env={"SLURMD_NODENAME": "n1", "SLURM_JOB_ID": "7"}, cwd="/",
                          capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    assert done.stdout == ""
    asked = folder / "asked"
    return Node(done.returncode, done.stderr, asked.read_text(encoding="utf-8") if asked.exists() else "")


NODE_SCRIPTS = ("slurm-healthcheck.sh", "slurm-prolog.sh", "slurm-epilog.sh")
"""Those that slurmd runs."""
OPTIONS = ("-q", "--fail-on", "fail", "--format", "drain-reason")
"""What they ask."""


def said(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """A ``dgxcheck`` that says what it says of a recording."""
    code = main(["health", *OPTIONS, "--from", name])
    return f"printf '%s' {shlex.quote(capsys.readouterr().out)}; exit {code}"


REASON = "dgxcheck: gpu.lost GPU@0000:0a:00.0 gpu-lost [REBOOT]; level quick"


@pytest.mark.parametrize("state", ["drained", "draining", "down*", "failing"])
def test_slurm_keeps_the_reason_that_somebody_gave(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = slurm("slurm-healthcheck.sh", tmp_path, said("dgx-1-v100-gpu-lost", capsys), state)
    assert done.code == 0
    assert "scontrol" not in done.asked
    assert f"n1 is already {state} (none) and has a fault: {REASON}" in done.asked


@pytest.mark.parametrize("name", ["dgx-1-v100", "dgx-1-v100-power-cap"])
def test_slurm_leaves_a_node_without_a_fault(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert slurm("slurm-healthcheck.sh", tmp_path, said(name, capsys)) == Node(0, "", "")


BROKEN = {
    "not there": "exit 127",
    "no Python": 'echo "python: can\'t open file" >&2; exit 2',
    "a traceback": "echo Traceback >&2; exit 1",
    "a bad option": "echo 'dgxcheck: no such option: --x; try --help' >&2; exit 3",
    "unknown": "echo 'dgxcheck: unknown; level quick'; exit 0",
    "unknown, and the site says --fail-on unknown": "echo 'dgxcheck: unknown; level quick'; exit 3",
    "killed": "kill -9 $$",
}


@pytest.mark.parametrize("how", BROKEN)
def test_slurm_takes_no_node_away_for_a_broken_checker(how: str, tmp_path: Path) -> None:
    done = slurm("slurm-healthcheck.sh", tmp_path, BROKEN[how])
    assert done.code == 0
    assert "health of n1 is unknown" in done.asked
    assert "scontrol" not in done.asked


def test_slurm_s_controller_may_be_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The script still ends with 0 and says so in the log of the system."""
    done = slurm("slurm-healthcheck.sh", tmp_path, said("dgx-1-v100-gpu-lost", capsys), scontrol="exit 1")
    assert done.code == 0
    assert f"scontrol failed for n1: State=DRAIN Reason={REASON}" in done.asked


def test_slurm_s_time_is_enough() -> None:
    """slurmd kills a health check after 60 s; of the commands of slurm-nodes.sh one node runs six at most."""
    for script in NODE_SCRIPTS:
        lines = [line for line in read(script).splitlines() if "timeout " in line and not line.startswith("#")]
        spans = [re.findall(r"timeout (?:-k (\d+) )?(\d+) ", line) for line in lines]
        assert 0 < sum(int(grace or 0) + int(limit) for ((grace, limit),) in spans) < 55
        deadlines = re.findall(r"--deadline (\d+)", read(script))
        longest = max(int(limit) for ((_, limit),) in spans)
        assert max(map(int, deadlines)) + 5 < longest


@pytest.mark.parametrize("script", ["slurm-prolog.sh", "slurm-epilog.sh"])
def test_a_job_is_stopped_for_a_fault_alone(script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = slurm(script, tmp_path, said("dgx-1-v100-gpu-lost", capsys))
    assert (done.code, done.err) == (1, f"{REASON}\n")
    assert f"scontrol\nupdate\nNodeName=n1\nState=DRAIN\nReason={REASON}\n" in done.asked
    given = slurm(script, tmp_path, said("dgx-1-v100-gpu-lost", capsys), "draining").asked
    assert given.count("scontrol") == 1
    for name in ("dgx-1-v100", "dgx-1-v100-power-cap"):
        done = slurm(script, tmp_path, said(name, capsys))
        assert (done.code, done.err) == (0, "")
    for broken in BROKEN.values():
        assert slurm(script, tmp_path, broken).code == 0


@pytest.mark.parametrize("how", ["a fault", "a warning", *BROKEN])
def test_the_prolog_logs_all_but_a_sound_box(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"a fault": "dgx-1-v100-gpu-lost", "a warning": "dgx-1-v100-power-cap"}
    done = slurm("slurm-prolog.sh", tmp_path, said(names[how], capsys) if how in names else BROKEN[how])
    assert done.asked.startswith("logger\n-t\ndgxcheck\n--\nprolog of job 7 (exit code ")


def test_the_prolog_is_silent_about_a_sound_box(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert slurm("slurm-prolog.sh", tmp_path, said("dgx-1-v100", capsys)) == Node(0, "", "")


LINK_COUNTERS = "nvml nvmlDeviceGetNvLinkErrorCounter 0000:0a:00.0"


def live(box: Box, standin: Path) -> str:
    """A ``dgxcheck`` that asks this machine as if it were here."""
    environment = " ".join(shlex.quote(f"{name}={value}") for name, value in box.environment(standin).items())
    return f'exec env {environment} {shlex.quote(sys.executable)} -c {shlex.quote(CHILD)} {box.tree} "$@"'


@pytest.mark.parametrize("counted_before", [True, False])
def test_an_epilog_counts_the_errors_of_the_job(counted_before: bool, tmp_path: Path, standin: Path) -> None:
    """The quick level does not see them."""
    for name in ("job", "before", "after"):
        (tmp_path / name).mkdir()
    before, after = shipped("dgx-1-v100"), copy.deepcopy(shipped("dgx-1-v100"))
    facts = cast("dict[str, dict[str, Json]]", after["facts"])
    facts[LINK_COUNTERS] |= {"1 2": 9120, "1 3": 7}
    counters = tmp_path / "job" / "run" / "job-7.json"
    if counted_before:
        counters.parent.mkdir()
        for number in range(100, 300):
            (counters.parent / f"job-{number}.json").touch()
        start = live(serve(before, tmp_path / "before"), standin)
        assert slurm("slurm-prolog.sh", tmp_path / "job", start) == Node(0, "", "")
        assert counters.is_file()
        assert len(list(counters.parent.iterdir())) == 128
    done = slurm("slurm-epilog.sh", tmp_path / "job", live(serve(after, tmp_path / "after"), standin))
    assert not counters.exists()
    assert done.code == int(counted_before)
    assert ("dgxcheck: nvlink.errors GPU2_0000:0a:00.0 nvlink-errors 9127 errors" in done.err) == counted_before


def test_options_of_the_site_reach_dgxcheck(tmp_path: Path) -> None:
    (tmp_path / "default-dgxcheck").write_text(
        'DGXCHECK_OPTIONS="--skip power --only gpu"\nSLURM_CONF=/x\nDGXCHECK_JOB_ERRORS=no\n'
    )
    arguments = f"printf '%s\\n' \"$@\" > '{tmp_path}/given'; echo 'dgxcheck: pass; level quick'; exit 0"
    for script in NODE_SCRIPTS:
        assert slurm(script, tmp_path, arguments).code == 0
        given = (tmp_path / "given").read_text(encoding="utf-8")
        assert given.split() == ["health", *OPTIONS, "--deadline", "20", "--skip", "power", "--only", "gpu"]
