"""``fleet -w``: real ClusterShell over its exec worker; nodes that hang, fail or print rubbish hide no other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from many import node_program
from processes import end_within
from sample import swept

from dgxcheck.cli import main

SCRIPT = """#!/bin/sh
: > FOLDER/ran-$1
case $1 in
n3) echo 'ssh: connect to host n3 port 22: Connection refused' >&2; exit 255;;
n4) echo $$ > FOLDER/pid; exec sleep 60;;
n10) sleep 60 & echo $! > FOLDER/pid; wait;;
n5) echo '{"schema": "dgxcheck/topo/1"}';;
n6) echo Welcome to n6; cat FOLDER/sick.json;;
n7) sed 's/"generated_at": "..../"generated_at": "2999/' FOLDER/well.json;;
n8) sed 's/"generated_at": "..../"generated_at": "2020/' FOLDER/well.json;;
n9) cat FOLDER/well.json; echo 'Connection to n9 closed by remote host.' >&2; exit 255;;
n11) sed 's/"host": "[^"]*"/"host": "n12"/' FOLDER/well.json;;
*) cat FOLDER/well.json;;
esac
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    """What stands for ssh and dgxcheck: each node answers from a file, or does not."""
    return f"{node_program(tmp_path, SCRIPT)} %h"


def test_partial_results_are_judged_and_silent_nodes_named(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ClusterShell")
    argv = ["fleet", "-w", "n[1-6]", "--worker", "exec", "--program", program, "--timeout", "3", "--format", "json"]
    assert main([*argv, "--", "-q"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert {node["name"]: node["verdict"] for node in document["nodes"]} == {"n1": "pass", "n2": "pass", "n6": "fail"}
    assert document["silent"] == ["n3", "n4", "n5"]
    why = {each["where"]: each["why"] for each in document["unread"]}
    assert why["n3"] == "exit code 255: ssh: connect to host n3 port 22: Connection refused"
    assert why["n4"] == "no answer within the time limit"
    assert "dgxcheck/result/1" in why["n5"]


def test_a_node_that_dies_after_its_result_is_named(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ClusterShell")
    argv = ["fleet", "-w", "n[1,9]", "--worker", "exec", "--program", program, "--format", "json"]
    assert main(argv) == 3
    document = json.loads(capsys.readouterr().out)
    assert [node["name"] for node in document["nodes"]] == ["n1", "n9"]
    why = "printed its result, then exit code 255: Connection to n9 closed by remote host."
    assert document["unread"] == [{"where": "n9", "why": why}]


def test_a_node_with_a_wrong_clock_or_an_old_answer_proves_nothing(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ClusterShell")
    argv = ["fleet", "-w", "n[7-8]", "--worker", "exec", "--program", program, "--format", "json"]
    assert main(argv) == 3
    document = json.loads(capsys.readouterr().out)
    assert {node["name"]: node["verdict"] for node in document["nodes"]} == {"n8": "unknown"}
    assert "is in the future; check its clock" in document["unread"][0]["why"]


@pytest.mark.parametrize("nodes", ["n[11-12]", "n11"])
def test_an_answer_of_another_node_proves_nothing(
    nodes: str, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ClusterShell")
    assert main(["fleet", "-w", nodes, "--worker", "exec", "--program", program, "--gate"]) == 2
    found = capsys.readouterr().out
    assert "n11: hold: no result" in found
    assert "n11: answered as n12" in found


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["results", "-w", "n1"], "results: with -w only options"),
        (["-w", "@none"], "'@none' names no node"),
        (["-", "-n", "@none"], "'@none' names no node"),
        (["-", "-n", ""], "the list of nodes is empty"),
    ],
)
def test_what_names_no_node_is_refused(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ClusterShell")
    assert main(["fleet", *argv]) == 3
    assert said in capsys.readouterr().err


def started(argv: list[str], folder: Path, **environment: str) -> subprocess.Popen[str]:
    """The command in a process of its own, with a group of nodes of the site."""
    (folder / "groups.conf").write_text("[Main]\ndefault: site\n[site]\nmap: echo n[11-208]\nlist: echo rack\n")
    return subprocess.Popen(
        [sys.executable, "-m", "dgxcheck", "fleet", "--worker", "exec", "--format", "json", *argv],
        env={**os.environ, "CLUSTERSHELL_CFGDIR": str(folder), **environment},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.in_ci
@pytest.mark.parametrize("number", swept([signal.SIGINT, signal.SIGTERM], 2, first=1))
def test_a_group_of_200_nodes_is_interrupted(number: int, program: str, tmp_path: Path) -> None:
    pytest.importorskip("ClusterShell")
    running = started(["-w", "@rack,n[3-4]", "--program", program, "--fanout", "256", "--", "--quick"], tmp_path)
    end = time.monotonic() + 60
    while len(list(tmp_path.glob("ran-*"))) < 200 and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(0.5)
    running.send_signal(number)
    text, _ = running.communicate(timeout=50)
    document = json.loads(text)
    assert running.returncode == 3
    assert document["summary"]["pass"] > 0
    assert len(document["nodes"]) + len(document["silent"]) == 200
    assert {"n3", "n4"} <= set(document["silent"])
    assert {"where": "n4", "why": "no answer when interrupted"} in document["unread"]


def ended(node: str, number: int | None, program: str, folder: Path, **environment: str) -> bool:
    """Does the process whose id a node writes end, when the time limit is over or the command gets a signal?"""
    limit = () if number else ("--timeout", "1")
    running = started(["-w", node, "--program", program, *limit, "--", "--quick"], folder, **environment)
    file, end = folder / "pid", time.monotonic() + 60
    while not (file.is_file() and file.read_text()) and time.monotonic() < end:
        time.sleep(0.1)
    if number is not None:
        running.send_signal(number)
    running.communicate(timeout=50)
    return end_within(20, [int(file.read_text())])


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT], ids=["too late", "SIGTERM", "SIGINT"])
def test_what_a_node_started_ends_too(number: int | None, program: str, tmp_path: Path) -> None:
    pytest.importorskip("ClusterShell")
    assert ended("n10", number, program, tmp_path)


def test_the_command_itself_ends_without_setsid(program: str, tmp_path: Path) -> None:
    pytest.importorskip("ClusterShell")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "sleep"):
        (folder / name).symlink_to(f"/bin/{name}")
    assert ended("n4", None, program, tmp_path, PATH=str(folder))


def test_what_is_no_set_of_nodes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ClusterShell")
    for nodes in ("n[1-", "", "@nothing"):
        assert main(["fleet", "-w", nodes, "--worker", "exec"]) == 3
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "Traceback" not in error


def test_neither_results_nor_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet"]) == 3
    assert "-w NODES" in capsys.readouterr().err
