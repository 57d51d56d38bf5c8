"""Fabrics in ibsim, seen by the real ibnetdiscover, iblinkinfo and ibqueryerrors."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from fabrics import ADAPTERS, FAULTS, Fabric, Kind
from programs import program
from sample import swept
from used import used

from dgxcheck.cli import main

KINDS = [*ADAPTERS]
FORMS = (("ibnetdiscover", "-p"), ("ibnetdiscover",), ("iblinkinfo",), ("iblinkinfo", "-l"))
Asked = Callable[..., str]


@contextmanager
def simulated(fabric: Fabric, folder: Path, managed: bool = True) -> Iterator[Asked]:
    """ibsim with this fabric, swept by opensm; asks one of the diagnostics, which runs on the first system."""
    (folder / "net").write_text(fabric.net())
    name = f"sim{os.getpid()}-{time.monotonic_ns()}"
    first = f"{fabric.hosts[0]} mlx5_0"
    env = {**os.environ, "IBSIM_SOCKNAME": name, "SIM_HOST": first}
    switches = len({far[0] for far in fabric.up.values()}) + 10
    nodes, ports = len(fabric.up) + 100, 260 * switches + 4 * len(fabric.up)
    limits = [f"-{letter}{number}" for letter, number in (("N", nodes), ("S", 2000), ("P", ports))]
    server = subprocess.Popen(
        [program("ibsim"), "-s", "-n", *limits, str(folder / "net")], env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip

    def asked(*words: str) -> str:
        argv = [program("ibsim-run"), program(words[0]), *words[1:]]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=900, check=False)
        return done.stdout

    try:
        ends = time.monotonic() + 60
        while not asked("ibnetdiscover", "-p"):
            assert server.poll() is None, "ibsim refuses the fabric"
            assert time.monotonic() < ends, "ibsim does not answer"
            time.sleep(0.05)
        if managed:
            asked("opensm", "-o", "-f", str(folder / "opensm.log"))
        yield asked
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def findings(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    main(["fabric", "--format", "json", *words])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


@pytest.mark.parametrize(("kind", "systems"), swept([("fat", 48), *((kind, 124) for kind in KINDS)], [("fat", 48)]))
def test_the_real_tools_tell_the_same(
    kind: Kind, systems: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every kind of fault once, in every form; a plane is seen from one of its ports alone."""
    fabric = Fabric(kind, systems)
    chance = random.Random(7)
    planted = [fault(fabric, chance) for fault in FAULTS]
    (tmp_path / "plan.csv").write_text(fabric.plan())
    files = {}
    with simulated(fabric, tmp_path) as asked:
        for number, words in enumerate(FORMS):
            files[words] = tmp_path / f"{number}.txt"
            files[words].write_text(asked(*words))
    said = {}
    for words, file in files.items():
        for plan in ([], ["--plan", str(tmp_path / "plan.csv")]):
            found = findings(capsys, *plan, str(file))
            said[words, bool(plan)] = {str(each["message"]) for each in found}
            for fault, ends in planted if kind != "planes" else ():
                assert any(each["fault"] == fault and ends <= {*each["ends"]} for each in found), words
            assert kind == "planes" or len(found) == len(planted)
    for compared in (False, True):
        told = [messages for (_, planned), messages in said.items() if planned is compared]
        assert len({len(messages) for messages in told}) == 1


def test_a_sound_fabric_of_124_systems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with simulated(Fabric("fat", 124), tmp_path) as asked:
        (tmp_path / "p.txt").write_text(asked("ibnetdiscover", "-p"))
    assert main(["fabric", str(tmp_path / "p.txt")]) == 0
    assert "124 systems, 496 adapters, 31 leaves, 16 spines: nothing found" in capsys.readouterr().out


def test_a_subnet_manager_and_counters_of_the_real_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fabric = Fabric("fat", 8)
    with simulated(fabric, tmp_path, managed=False) as asked:
        for number, words in enumerate(FORMS):
            (tmp_path / f"{number}.txt").write_text(asked(*words))
        (tmp_path / "p.txt").write_text(asked("ibnetdiscover", "-p"))
        asked("opensm", "-o", "-f", str(tmp_path / "opensm.log"))
        (tmp_path / "q.txt").write_text(asked("ibnetdiscover", "-p"))
        (tmp_path / "c.txt").write_text(asked("perfquery", "2", "1"))
    for number, _ in enumerate(FORMS):
        (finding,) = findings(capsys, str(tmp_path / f"{number}.txt"))
        assert (finding["fault"], len(finding["ends"])) == ("no-subnet-manager", 18)
    assert findings(capsys, str(tmp_path / "q.txt"), str(tmp_path / "p.txt")) == []
    assert "Port counters" in (tmp_path / "c.txt").read_text()
    assert findings(capsys, str(tmp_path / "q.txt"), str(tmp_path / "c.txt")) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_systems(kind: Kind, tmp_path: Path) -> None:
    """3 s of CPU and 200 MB, as the command is run. Spines of these rails have more ports than InfiniBand can count."""
    fabric = Fabric(kind, 1000)
    if kind == "rails":
        (tmp_path / "p.txt").write_text(fabric.discovered())
    else:
        with simulated(fabric, tmp_path) as asked:
            (tmp_path / "p.txt").write_text(asked("ibnetdiscover", "-p"))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    spent = used([sys.executable, "-m", "dgxcheck", "fabric", "p.txt"], env, tmp_path)
    assert spent.printed.startswith("PASS: ")
    assert spent.cpu_s < 3
    assert spent.peak_kib < 200 << 10
