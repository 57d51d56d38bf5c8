"""Every shipped box served live says what its recording says, but for source, time and identities."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from live_box import BOXES, Box
from sample import swept

from dgxcheck.assessment import machine
from dgxcheck.cli import main
from dgxcheck.facts.missing import Json
from dgxcheck.source.live import LiveSource
from dgxcheck.source.recording.keys import flatten
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.survey import ALL, WIRING, survey
from dgxcheck.workers.files.driver_backed import driver_backed
from dgxcheck.workers.nvml import plan
from dgxcheck.workers.nvml.plan import IDENTITY, TOPOLOGY

Served = Callable[..., Box]
Command = Callable[..., tuple[int, str]]
SINCE_GRACE = ("dgx-b", "gb", "gh", "vm-h100")
"""Boxes of which a driver of 2017 would not even have the NVLinks and NUMA nodes."""
NOT_RECORDED = ("--skip", "host.inventory")
"""What only the live machine can be compared with: its earlier runs."""
COMMANDS = {
    "topo -m": ("topo", "-m"),
    "topo -mp": ("topo", "-mp"),
    "topo --tree": ("topo", "--tree"),
    "topo --rings": ("topo", "--rings"),
    "topo -p2p=n": ("topo", "-p2p=n"),
    "topo nvidia-smi": ("topo", "--format", "nvidia-smi"),
    "topo json": ("topo", "--format", "json"),
    "health -q": ("health", "-q", *NOT_RECORDED),
    "health -q json": ("health", "-q", "--format", "json", *NOT_RECORDED),
    "topo --peers": ("topo", "--peers"),
    "topo --peers json": ("topo", "--peers", "--format", "json"),
    "topo --rdma": ("topo", "--rdma"),
    "topo --rdma json": ("topo", "--rdma", "--format", "json"),
    "topo -c": ("topo", "-c", "0"),
    "topo -n": ("topo", "-n", "3", "-i", "0"),
    "topo -p": ("topo", "-p", "-i", "0,1"),
    "topo -C": ("topo", "-C", "-i", "1"),
    "topo -M": ("topo", "-M", "-i", "1"),
    "topo -gnid": ("topo", "-gnid", "-i", "1"),
    "topo --path": ("topo", "--path", "GPU0", "GPU1"),
    "health -L": ("health", "-L"),
    "list": ("list",),
    "list json": ("list", "--format", "json"),
}
FROM_THE_KERNEL = ("unsupported", "denied")
"""Gaps of files that a directory tree cannot give back."""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, standin: Path) -> Callable[[Box], None]:
    """Make the NVML of a served box the one that workers of this process load."""

    def meet(box: Box) -> None:
        for name, value in box.environment(standin).items():
            monkeypatch.setenv(name, value)

    return meet


def without_source(text: str) -> Json:
    """Text or JSON without its ``source`` and the time of the run.

    Only the live machine has earlier runs, so that ``host.last-run`` does not run for another reason.
    """
    if not text.startswith("{"):
        own = ("Source: ", "System Results: ", "One or more tests didn't run.")
        return [_counts(line) for line in text.splitlines() if line and not line.startswith(own)]
    document: dict[str, Json] = json.loads(text)
    assert document.pop("source")
    for of_the_run in ("generated_at", "duration_seconds"):
        document.pop(of_the_run, None)
    if isinstance(findings := document.get("findings"), list):
        document["findings"] = [one for one in findings if isinstance(one, dict) and one["id"] != "host.last-run"]
    return document


def _counts(line: str) -> Json:
    """What did not run, by reason; an earlier run that only the live machine could have is not in the recording."""
    if not line.startswith("Did not run: "):
        return line
    found: dict[str, int] = {}
    for number, why in re.findall(r"(\d+) ([^,;]+)", line):
        same = "not in this recording" if why == "no earlier reading to compare with" else why
        found[same] = found.get(same, 0) + int(number)
    return {**found}


@pytest.mark.parametrize("name", swept(BOXES, ("dgx-station-v100",)))
def test_commands_say_the_same(
    served: Served, here: Callable[[Box], None], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    box = served(name)
    here(box)
    for title, argv in COMMANDS.items():
        live_code = main([*argv], None, str(box.tree))
        live = capsys.readouterr()
        code = main([*argv, "--from", str(box.recording)])
        recorded = capsys.readouterr()
        assert without_source(live.out) == without_source(recorded.out), title
        assert (live_code, live.err) == (code, recorded.err), title


@pytest.mark.parametrize("name", swept(BOXES, 7, first=4))
def test_record_keeps_the_same_facts(
    served: Served, here: Callable[[Box], None], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    box = served(name)
    here(box)
    live, again = tmp_path / "live.json", tmp_path / "again.json"
    assert main(["record", str(live), "--keep-identity"], None, str(box.tree)) == 0, capsys.readouterr().err
    assert main(["record", str(again), "--keep-identity", "--from", str(box.recording)]) == 0, capsys.readouterr().err
    ours, theirs = flat(live), {key: fact for key, fact in flat(again).items() if not key.startswith("measure ")}
    assert ours.keys() == theirs.keys()
    assert {key: (ours[key], theirs[key]) for key in ours if not same(key, ours[key], theirs[key])} == {}


def flat(file: Path) -> dict[str, Json]:
    return flatten(json.loads(file.read_text(encoding="utf-8"))["facts"])


def same(key: str, live: Json, recorded: Json) -> bool:
    """Equal but for the words of a gap, for what a tree of files cannot give back, and for empty words of a mask."""
    if isinstance(live, list) and isinstance(recorded, list) and "Affinity" in key:
        return live == recorded[: len(live)] and not any(recorded[len(live) :])
    kind = gap(recorded)
    if kind is None:
        return live == recorded
    if kind == "unrecorded" and key.startswith("link "):  # by an older dgxcheck, which did not ask
        return gap(live) == "absent"
    return gap(live) is not None if kind in FROM_THE_KERNEL and key.startswith("text ") else gap(live) == kind


def gap(fact: Json) -> Json:
    return fact["missing"] if isinstance(fact, dict) and "missing" in fact else None


@pytest.mark.parametrize("name", swept([name for name in BOXES if not name.startswith(SINCE_GRACE)], 6, first=1))
def test_an_old_driver_gives_the_same_matrix(
    served: Served, standin_384: Path, monkeypatch: pytest.MonkeyPatch, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R384, the first driver of a DGX-1 V100, has no symbol that came later, and needs none for the wiring."""
    box = served(name)
    for variable, value in box.environment(standin_384).items():
        monkeypatch.setenv(variable, value)
    for title in ("topo -m", "topo --rings", "list"):
        code = main([*COMMANDS[title]], None, str(box.tree))
        live = capsys.readouterr().out
        assert code == main([*COMMANDS[title], "--from", str(box.recording)]), title
        assert without_source(live) == without_source(capsys.readouterr().out), title


WATCHED = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from dgxcheck.source.live import LiveSource
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.survey import ALL, survey
tape = RecordingSource(LiveSource(sys.argv[1]))
survey(tape, ALL)
tape.later(0)
gaps = {key: fact for key, fact in tape.facts.items() if isinstance(fact, dict) and "missing" in fact}
print(json.dumps([len(tape.facts), [p for p in opened if p.startswith(sys.argv[1])], gaps]))
"""


@pytest.mark.parametrize("name", swept(BOXES, 7, first=2))
def test_every_question_to_a_driver_is_asked_by_a_worker(served: Served, standin: Path, name: str) -> None:
    """No question of any probe is left unasked, and no file with a driver behind it is opened by the tool itself."""
    box = served(name)
    ran = subprocess.run(
        (sys.executable, "-c", WATCHED, str(box.tree)),
        env=box.environment(standin), capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    asked, opened, gaps = json.loads(ran.stdout)
    assert asked > (300 if name in ("vgpu-l40s", "gh200", "h100", "h200") else 900)
    assert {key for key, fact in gaps.items() if fact["missing"] in ("unasked", "timeout")} == set()
    paths = [path.removeprefix(str(box.tree)) for path in opened]
    assert any(path.endswith("/class") for path in paths)
    assert [path for path in paths if driver_backed(path)] == []


@pytest.mark.parametrize("name", swept(["dgx-1-v100", "dgx-a100"], 3))
@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (WIRING, TOPOLOGY),
        ((*WIRING, "p2p"), plan.P2P),
        (machine.PEERS, plan.PEERS),
        (machine.RDMA, plan.RDMA),
        (("pci", "gpu", "slots"), IDENTITY),
    ],
    ids=["topo", "topo -p2p", "topo --peers", "topo --rdma", "list"],
)
def test_each_command_asks_no_more_than_its_plan_holds(
    served: Served, here: Callable[[Box], None], name: str, names: tuple[str, ...], groups: tuple[str, ...]
) -> None:
    box = served(name)
    here(box)
    source = LiveSource(str(box.tree), groups)
    recorder = RecordingSource(source)
    survey(recorder, names)
    source.close()
    assert [key for key, fact in recorder.facts.items() if gap(fact) == "unasked"] == []
    assert sum(key.startswith("nvml ") and gap(fact) is None for key, fact in recorder.facts.items()) > 20


@pytest.mark.parametrize("title", swept(COMMANDS, 5))
def test_the_installed_command_says_the_same(served: Served, standin: Path, title: str) -> None:
    """With the worker that it starts before it knows what is asked."""
    box = served("dgx-1-v100", 3)
    ran, recorded = box.live(box.environment(standin), *COMMANDS[title]), box.recorded(*COMMANDS[title])
    assert without_source(ran.out) == without_source(recorded.out)
    assert (ran.code, ran.err) == (recorded.code, recorded.err)


@pytest.mark.parametrize("spelt", [("-p2p", "r"), ("-p2p=r",), ("--p2pstatus", "r"), ("--p2pstatus=r",)])
def test_what_is_asked_early_is_what_the_command_needs(served: Served, standin: Path, spelt: tuple[str, ...]) -> None:
    """The worker is started before the command line is parsed."""
    box = served("dgx-station-v100")
    ran = box.live(box.environment(standin), "topo", *spelt)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == box.recorded("topo", "-p2p", "r").out.partition("\n\nSource: ")[0] + "\n"


def test_a_probe_that_is_not_in_the_plan_would_show(served: Served, here: Callable[[Box], None]) -> None:
    box = served("dgx-1-v100")
    here(box)
    source = LiveSource(str(box.tree), IDENTITY)
    recorder = RecordingSource(source)
    survey(recorder, ALL)
    source.close()
    p2p = [key for key in recorder.facts if key.startswith("nvml nvmlDeviceGetP2PStatus")]
    assert {gap(recorder.facts[key]) for key in p2p} == {"unasked"}
