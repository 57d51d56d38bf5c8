"""A real Slurm on this machine: munged, slurmctld and a slurmd per node, each on a port of its own.

``dgxcheck`` of a node is asked of the recording that the file ``box/NODE`` names. Its answers are kept, as 16 nodes
that start Python at once would take longer than what is tested; none of the programs of Slurm is a stand-in.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from checkout import ROOT
from programs import program

INTEGRATIONS = ROOT / "dgxcheck" / "integrations"
PATIENCE = 120.0
"""Seconds after which a step counts as hung; what it takes is seconds."""
CONF = """ClusterName=t
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={spool}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
GresTypes=gpu
HealthCheckProgram={folder}/bin/slurm-healthcheck.sh
HealthCheckInterval=2
HealthCheckNodeState=ANY
PrologFlags=Alloc
Prolog={folder}/bin/slurm-prolog.sh
Epilog={folder}/bin/slurm-epilog.sh
PartitionName=p Nodes=ALL Default=YES State=UP
"""
DGXCHECK = r"""#!/bin/bash
box=FOLDER/box/$SLURMD_NODENAME
[ -e "$box.$SLURM_SCRIPT_CONTEXT" ] && box=$box.$SLURM_SCRIPT_CONTEXT
[ "$1" = fleet ] && exec PYTHON -m dgxcheck "$@"
box=$(cat "$box")
kept=FOLDER/said/$(printf '%s ' "$box" "$@" | tr '/ ' '__')
exec 9>"$kept.lock"
flock 9
if [ ! -e "$kept" ]; then
    PYTHON -m dgxcheck "$@" --from "$box" >"$kept.new" 2>&1
    echo $? >"$kept.code"
    mv "$kept.new" "$kept"
fi
exec 9>&-
# the results stand for those of the nodes themselves: one of a recording drains nothing, two of one machine are none
sed -E 's/"host": ?"[^"]*"/"host":"'"$SLURMD_NODENAME"'"/; s/"kind": ?"recording"/"kind": "live"/
    s/"serial": ?"/&'"$SLURMD_NODENAME"' /g; s/"boot_id": ?"/&'"$SLURMD_NODENAME"' /' "$kept"
exit "$(cat "$kept.code")"
"""


class State(NamedTuple):
    """Of a node, as ``sinfo`` prints it."""

    state: str
    reason: str


class Cluster(NamedTuple):
    """What runs, and where its files are."""

    folder: Path
    nodes: Sequence[str]

    def asked(self, *words: str) -> str:
        """What a program of Slurm prints; any failure is one of the test."""
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}
        done = subprocess.run(words, env=env, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def box(self, node: str, spec: str, script: str = "") -> None:
        """What dgxcheck finds on a node from now on, or in one script of its jobs: ``prolog_slurmd``."""
        (self.folder / "box" / f"{node}{script and '.'}{script}").write_text(spec, encoding="utf-8")

    def states(self) -> dict[str, State]:
        """By node."""
        rows = (row.split("|", 2) for row in self.asked("sinfo", "-a", "-h", "-N", "-o", "%N|%T|%E").splitlines())
        return {node: State(state.rstrip("*"), reason) for node, state, reason in rows}

    def drained(self) -> dict[str, str]:
        """Reasons by node."""
        return {node: each.reason for node, each in self.states().items() if each.state.startswith("drain")}

    def checked(self) -> None:
        """Wait until every node has ended a health check that began from now on."""
        since = time.time()
        self.until(lambda: all(self._begun(node) > since for node in self.nodes), "health checks")

    def _begun(self, node: str) -> float:
        """When the last health check began that has ended."""
        log = self.folder / "checked" / node
        return float(log.read_text(encoding="utf-8") or 0) if log.exists() else 0

    def until(self, wanted: Callable[[], bool], what: str) -> None:
        """Ask again until it is so."""
        ends = time.monotonic() + PATIENCE
        while not wanted():
            if time.monotonic() > ends:
                queue = self.asked("squeue", "-o", "%i %T %r")
                pytest.fail(f"{what}: not in time\n{self.states()}\n{queue}{self.log()}")
            time.sleep(0.1)

    @contextmanager
    def setting(self, name: str, value: str) -> Iterator[None]:
        """Of the scripts, in place of what /etc/default/dgxcheck holds."""
        path = self.folder / "dgxcheck"
        before = path.read_text(encoding="utf-8")
        path.write_text(f"{before}{name}={value}\n", encoding="utf-8")
        yield
        path.write_text(before, encoding="utf-8")

    def log(self) -> str:
        """What the scripts logged."""
        log = self.folder / "log"
        return log.read_text(encoding="utf-8") if log.exists() else ""


@contextmanager
def cluster(folder: Path, nodes: Mapping[str, str], gres: str, topology: str = "") -> Iterator[Cluster]:
    """Up and idle. ``nodes``: the hardware of each, as slurm.conf has it; the texts of gres.conf and topology.conf."""
    if os.geteuid() != 0:
        pytest.skip("slurmd sets the user of jobs: it needs root")
    programs = {name: program(name) for name in ("munged", "slurmctld", "slurmd", "sinfo", "logger", "flock")}
    folder.chmod(0o755)
    for name in ("state", "bin", "box", "said", "checked", "run"):
        (folder / name).mkdir()
    _scripts(folder)
    ports = _ports(len(nodes) + 1)
    host = socket.gethostname().partition(".")[0]
    # the sockets of steps lie there, and a socket's path has at most 107 bytes: unix(7)
    spool = Path(tempfile.mkdtemp(prefix="slurm"))
    text = CONF.format(host=host, folder=folder, spool=spool, port=ports[0])
    rows = "".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} RealMemory=100 {hardware}\n"
        for (node, hardware), port in zip(nodes.items(), ports[1:], strict=True)
    )
    if topology:
        text += "TopologyPlugin=topology/tree\n"
        (folder / "topology.conf").write_text(topology, encoding="utf-8")
    (folder / "slurm.conf").write_text(rows + text, encoding="utf-8")
    (folder / "gres.conf").write_text(gres, encoding="utf-8")
    made = Cluster(folder, [*nodes])
    for node in nodes:
        made.box(node, "dgx-1-v100")
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    try:
        munge = ["--key-file", key, "--socket", folder / "munge.sock", "--pid-file", folder / "munged.pid",
                 "--log-file", folder / "munged.log", "--seed-file", folder / "seed"]  # fmt: skip
        made.asked(programs["munged"], "--force", *map(str, munge))
        made.asked(programs["slurmctld"], "-f", str(folder / "slurm.conf"), "-i")
        for node in nodes:
            made.asked(programs["slurmd"], "-f", str(folder / "slurm.conf"), "-N", node)
        made.until(lambda: _all_up(made), "nodes up")
        yield made
    finally:
        _ended(folder)
        shutil.rmtree(spool, ignore_errors=True)


def _all_up(made: Cluster) -> bool:
    try:
        return all(each.state == "idle" for each in made.states().values())
    except AssertionError:  # slurmctld does not answer yet
        return False


def _scripts(folder: Path) -> None:
    """Those that ship, with these programs first on the path that they set, and files of their own."""
    bin = folder / "bin"
    text = DGXCHECK.replace("FOLDER", str(folder)).replace("PYTHON", shlex.quote(sys.executable))
    (bin / "dgxcheck").write_text(text, encoding="utf-8")
    (bin / "logger").write_text(f"#!/bin/bash\nprintf '%s\\n' \"${{*: -1}}\" >> '{folder}/log'\n", encoding="utf-8")
    for path in INTEGRATIONS.glob("slurm-*.sh"):
        text = path.read_text(encoding="utf-8").replace("\nPATH=", f"\nPATH={bin}:")
        text = text.replace("/etc/default/", f"{folder}/").replace("/run/dgxcheck", f"{folder}/run")
        if path.name == "slurm-healthcheck.sh":
            ended = f"echo $begun >'{folder}/checked'/\"$node.new\"; mv '{folder}/checked'/\"$node\"{{.new,}}"
            text = text.replace("\nPATH=", "\nbegun=$EPOCHREALTIME\nPATH=")
            text = text.replace("\nexit 0\n", f"\n{ended}\nexit 0\n")
        (bin / path.name).write_text(text, encoding="utf-8")
    for path in bin.iterdir():
        path.chmod(0o755)
    made = f"SLURM_CONF={folder}/slurm.conf\nDGXCHECK_DRAIN_PERCENT=15\nDGXCHECK_JOB_ERRORS=no\n"
    (folder / "dgxcheck").write_text(made, encoding="utf-8")


def _ports(number: int) -> list[int]:
    held = [socket.socket() for _ in range(number)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports: list[int] = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def _ended(folder: Path) -> None:
    """All daemons, by the process ids that they wrote."""
    pids = [int(path.read_text(encoding="utf-8")) for path in folder.glob("*.pid")]
    for pid in pids:
        subprocess.run(["kill", str(pid)], check=False, capture_output=True)
    ends = time.monotonic() + 3
    while time.monotonic() < ends and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.1)
    for pid in pids:
        if Path(f"/proc/{pid}").exists():
            subprocess.run(["kill", "-9", str(pid)], check=False, capture_output=True)
