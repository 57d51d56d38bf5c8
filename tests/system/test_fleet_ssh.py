"""``fleet -w`` over real ssh to an sshd of its own: nodes that refuse, hang or greet with words hide no other."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import ROOT
from many import node_program
from processes import end_within
from programs import program as installed
from sample import swept

from dgxcheck.cli import main

REFUSED, SILENT, FAULTY, HUNG = "n01", "n04", "n05", "n50"
MANY = 50
SCRIPT = """#!/bin/sh
case $NODE in
n03) echo 'Welcome! {"not": "a result'; echo; cat FOLDER/well.json;;
n04) exit 127;;
n05) cat FOLDER/sick.json; : > FOLDER/said-$NODE;;
n06) [ -e FOLDER/long ] && { sleep 300 & echo $! > FOLDER/pid; wait; }; cat FOLDER/well.json;;
*) cat FOLDER/well.json; : > FOLDER/said-$NODE;;
esac
"""


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def ssh_path(tmp_path: Path, silent_port: int) -> Iterator[Path]:
    """A folder with an ``ssh`` that knows the nodes: all are one sshd, but for the two that refuse and hang."""
    pytest.importorskip("ClusterShell")
    server, client, keygen = installed("sshd"), installed("ssh"), installed("ssh-keygen")
    for key in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / key], check=True)
    port, closed = _free_port(), _free_port()
    settings = {
        "HostKey": tmp_path / "host", "AuthorizedKeysFile": tmp_path / "user.pub", "ListenAddress": "127.0.0.1",
        "Port": port, "UsePAM": "no", "StrictModes": "no", "PasswordAuthentication": "no", "MaxStartups": 200,
        "AcceptEnv": "NODE", "PidFile": "none", "PermitRootLogin": "yes",
    }  # fmt: skip
    (tmp_path / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    hosts = [f"Host n{n:02}\n  SetEnv NODE=n{n:02}\n" for n in range(1, MANY + 1)]
    (tmp_path / "config").write_text(
        f"Host {REFUSED}\n  Port {closed}\nHost {HUNG}\n  Port {silent_port}\n{''.join(hosts)}Host *\n"
        f"  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {tmp_path / 'user'}\n  IdentitiesOnly yes\n"
        "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    if os.geteuid() == 0:  # as its service does
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {client} -F {tmp_path / "config"} "$@"\n')
    (folder / "ssh").chmod(0o755)
    running = subprocess.Popen([server, "-D", "-e", "-f", tmp_path / "sshd_config"], stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, running)
        yield folder
    finally:
        running.terminate()
        running.wait(10)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end and running.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"sshd does not listen (exit code {running.poll()})")


@pytest.mark.parametrize("count", swept((10, MANY), 2))
def test_what_answers_is_judged_and_what_does_not_is_named(
    count: int, ssh_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = str(node_program(tmp_path, SCRIPT))
    monkeypatch.setenv("PATH", f"{ssh_path}:{os.environ['PATH']}")
    argv = ["fleet", "-w", f"n[01-{count}]", "--program", program, "--timeout", "60", "--format", "json"]
    assert main([*argv, "--", "--quick"]) == 2
    document = json.loads(capsys.readouterr().out)
    verdicts = {node["name"]: node["verdict"] for node in document["nodes"]}
    names = {f"n{number:02}" for number in range(1, count + 1)}
    silent = {REFUSED, HUNG, SILENT} & names
    assert verdicts == dict.fromkeys(names - silent, "pass") | {FAULTY: "fail"}
    why = {each["where"]: each["why"] for each in document["unread"]}
    assert set(document["silent"]) == set(why) == silent
    assert "Connection refused" in why[REFUSED]
    assert why[SILENT].startswith("exit code 127")
    assert HUNG not in names or "timed out" in why[HUNG]


def test_sigterm_prints_what_has_answered_and_ends_what_runs_on_the_nodes(ssh_path: Path, tmp_path: Path) -> None:
    program = str(node_program(tmp_path, SCRIPT))
    (tmp_path / "long").touch()
    argv = ["fleet", "-w", "n[05-07]", "--program", program, "--format", "json"]
    running = subprocess.Popen(
        [sys.executable, "-m", "dgxcheck", *argv], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PATH": f"{ssh_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    end = time.monotonic() + 60
    while not all((tmp_path / each).exists() for each in ("pid", "said-n05", "said-n07")) and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(3)
    pid = int((tmp_path / "pid").read_text())
    assert Path(f"/proc/{pid}").exists()
    running.terminate()
    document = json.loads(running.communicate(timeout=30)[0])
    assert [node["name"] for node in document["nodes"]] == ["n05", "n07"]
    assert document["unread"] == [{"where": "n06", "why": "no answer when interrupted"}]
    assert end_within(10, [pid])
