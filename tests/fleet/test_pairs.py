"""Nodes measured in pairs: the rounds, the scripts, and who is blamed."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from fabrics import Fabric
from programs import program
from schemas import complaints

from dgxcheck.cli import main
from dgxcheck.fleet.pairs import ALL, JudgedPairs, Measured, figure, judge, rounds

NODES = [f"dgx{number:03}" for number in range(124)]
RATE = 24.5


def measured(
    factors: dict[tuple[str, str], float], count: int = 3, adapters: tuple[str, ...] = (ALL,), seed: int = 1,
    nodes: list[str] = NODES,
) -> list[Measured]:  # fmt: skip
    """A pair is as fast as its slower end, with 1.5 % of noise."""
    draw = random.Random(seed)
    return [
        Measured(round=turn, nodes=pair, adapter=adapter,
                 figure=RATE * draw.gauss(1, 0.015) * min(factors.get((node, adapter), 1.0) for node in pair))
        for turn, pairs in enumerate(rounds(nodes, count)) for pair in pairs for adapter in adapters
    ]  # fmt: skip


def found(judged: JudgedPairs) -> set[tuple[str, str]]:
    return {(each.what, each.name) for each in judged.blamed}


@pytest.mark.parametrize("number", [2, 3, 8, 9, 124])
def test_every_pair_meets_once_and_no_node_twice_in_a_round(number: int) -> None:
    nodes = NODES[:number]
    turns = rounds(nodes)
    assert len(turns) == number - 1 + number % 2
    assert len({frozenset(pair) for pairs in turns for pair in pairs}) == number * (number - 1) // 2
    for count in (1, 2, 3):
        some = rounds(nodes, count)
        assert len({frozenset(pair) for pairs in some for pair in pairs}) == sum(map(len, some))
    assert all(len({node for pair in pairs for node in pair}) == 2 * (number // 2) for pairs in turns)


@pytest.mark.parametrize("bad", [1, 3, 8])
def test_bad_nodes_are_found_and_innocents_never_blamed(bad: int) -> None:
    suspects = 0
    for seed in range(40):
        draw = random.Random(seed)
        nodes = draw.sample(NODES, len(NODES))
        slow = set(draw.sample(nodes, bad))
        tests = measured({(node, ALL): 0.6 for node in slow}, 3, seed=seed, nodes=nodes)
        judged = found(judge(tests))
        assert {name for what, name in judged if what == "node"} <= slow
        assert slow <= {name for _, name in judged}
        suspects += sum(what == "suspect" and name not in slow for what, name in judged)
    assert suspects <= 4


def test_after_one_round_it_is_one_of_two_and_the_chance_is_told() -> None:
    tests = measured({("dgx005", ALL): 0.5}, 1)
    partner = next(set(test.nodes) - {"dgx005"} for test in tests if "dgx005" in test.nodes)
    judged = judge(tests)
    assert found(judged) == {("suspect", "dgx005"), ("suspect", *partner)}
    assert {each.chance for each in judged.blamed} == {1 / 123}


def test_adapter_node_path_and_what_gave_no_figure() -> None:
    four = tuple(f"mlx5_{number}" for number in range(4))
    factors = {("dgx007", "mlx5_2"): 0.7, **{("dgx040", name): 0.0 for name in four}}
    tests = measured(factors, 3, four)
    number = next(at for at, test in enumerate(tests) if not {"dgx007", "dgx040"} & {*test.nodes})
    slow = tests[number]
    tests[number] = Measured(round=slow.round, nodes=slow.nodes, adapter=slow.adapter, figure=5.0)
    judged = judge(tests)
    assert found(judged) == {("adapter", "dgx007"), ("node", "dgx040"), ("path", " and ".join(slow.nodes))}
    node = next(each for each in judged.blamed if each.what == "node")
    assert (node.share, node.adapters, len(node.partners) > 1) == (0.0, four, True)


def test_a_leaf_or_its_uplinks() -> None:
    leaves = {(node, ALL): f"leaf{at // 16}" for at, node in enumerate(NODES)}
    fast = measured({}, 40)
    across = [
        Measured(round=test.round, nodes=test.nodes, adapter=ALL, figure=test.figure / 2)
        if len(ends := {leaves[node, ALL] for node in test.nodes}) == 2 and "leaf3" in ends else test for test in fast
    ]  # fmt: skip
    assert found(judge(across, leaves=leaves)) == {("uplinks", "leaf3")}
    of_leaf = measured({port: 0.5 for port, leaf in leaves.items() if leaf == "leaf3"}, 40)
    assert found(judge(of_leaf, leaves=leaves)) == {("leaf", "leaf3")}


PERFTEST = """\
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      664644           0.00               {}                    0.18
"""
NCCL = """\
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1   2918.9  367.85  367.85      0   2905.0  369.62  369.62      0
"""


@pytest.mark.parametrize(
    ("text", "gbs"),
    [
        (PERFTEST.format("196.45"), 196.45 / 8),
        ('{"results": {"MsgSize": 65536, "BW_peak": 0.0, "BW_average": 196.4, "MsgRate": 0.1}}', 24.55),
        ("results: {\nMsgSize: 65536,\nBW_average: 96,\n}", 12.0),
        (NCCL, 367.85),
        ("SUM multinode_device_to_device_memcpy_read_ce 795.08\nSUM multinode_device_to_device_memcpy_write_ce 700\n",
         700.0),
        ("", 0.0),
        ("Unable to init the socket connection\n", 0.0),
        ('{"BW_average": 9.7e+01}', 97 / 8), ('{"BW_average":970E-1}', 97 / 8), ('{"BW_average": 0}', 0.0),
        ("SUM multinode_device_to_device_memcpy_read_ce 7.9508e2\n", 795.08),
    ],
)  # fmt: skip
def test_figures(text: str, gbs: float) -> None:
    assert figure(text) == pytest.approx(gbs, rel=1e-3)


@pytest.mark.parametrize("number", [
    "-5", "1e400", "-0.1", "NaN", "Infinity", "inf", "true", '"97"', "null", "9" * 4000, "1e300", "97x", "{", "0x10",
])  # fmt: skip
@pytest.mark.parametrize("form", ['{{"BW_average": {}}}', "BW_average: {},", "SUM multinode_copy {}"])
def test_a_figure_that_no_machine_has_is_unreadable(form: str, number: str) -> None:
    with pytest.raises(ValueError, match="is no rate"):
        figure(form.format(number))


def test_an_unreadable_figure_is_no_slow_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for turn, pairs in enumerate(rounds(["n1", "n2", "n3", "n4"]), 1):
        for a, b in pairs:
            number = "-5" if (turn, a) == (1, "n1") else "97"
            (tmp_path / f"{turn},{a},{b},-.txt").write_text(f'{{"BW_average": {number}}}')
    assert main(["fleet", "pairs", str(tmp_path)]) == 3
    printed = capsys.readouterr().out
    assert printed.startswith("UNKNOWN: 4 nodes, 5 measurements in 3 rounds: all alike\n")
    assert "-5 is no rate" in printed
    for path in tmp_path.iterdir():
        path.write_text('{"BW_average": -5}')
    assert main(["fleet", "pairs", str(tmp_path)]) == 3
    assert "no output can be read" in capsys.readouterr().err
    for path in tmp_path.iterdir():
        path.write_text("bash: ib_write_bw: command not found\n")
    assert main(["fleet", "pairs", str(tmp_path)]) == 3
    assert "no output has a figure; one ends with: bash: ib_write_bw: comm" in capsys.readouterr().err


def outputs(folder: Path, slow: str, adapter: str) -> None:
    fabric = Fabric("fat", 16)
    for turn, pairs in enumerate(rounds(fabric.hosts, 3), 1):
        for a, b in pairs:
            for number in range(4):
                name = f"mlx5_{number}"
                rate = 97 if slow not in (a, b) or name != adapter else 24
                (folder / f"{turn},{a},{b},{name}.txt").write_text(PERFTEST.format(rate))


def test_a_node_without_a_figure_shows_the_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs(tmp_path, "", "")
    for path in tmp_path.glob("*,dgx003,*"):
        path.write_text("Couldn't connect to dgx003:18515\n")
    assert main(["fleet", "pairs", str(tmp_path)]) == 2
    said = "dgx003 mlx5_0, mlx5_1, mlx5_2, mlx5_3: at best no figure (one output ends with: Couldn't connect to dgx003:"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(("rate", "code"), [(97, 0), (40, 1)])
def test_where_most_nodes_are_slow_the_links_are_the_measure(
    rate: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fabric = Fabric("fat", 16)
    (tmp_path / "ib.txt").write_text(fabric.discovered())
    (out := tmp_path / "out").mkdir()
    for turn, pairs in enumerate(rounds(fabric.hosts, 3), 1):
        for a, b in pairs:
            (out / f"{turn},{a},{b},mlx5_1.txt").write_text(PERFTEST.format(rate))
    assert main(["fleet", "pairs", str(out)]) == 0
    capsys.readouterr()
    assert main(["fleet", "pairs", "--fabric", str(tmp_path / "ib.txt"), str(out)]) == code
    said = "mlx5_1: the median is 40 % of the 12.5 GB/s of its links; do: measure pairs below one leaf; if"
    assert (said in capsys.readouterr().out) is bool(code)


def test_links_of_others_are_no_measure() -> None:
    """mlx5_0 of storage nodes that were not measured is faster."""
    links = {(node, "mlx5_0"): 50.0 for node in NODES[8:20]} | {(node, "mlx5_0"): 30.0 for node in NODES[:4]}
    tests = measured({}, 3, ("mlx5_0",), nodes=NODES[:4])
    assert judge(tests, links=links).blamed == ()
    (slow,) = judge(tests, links=dict.fromkeys(links, 50.0)).blamed
    assert (slow.what, slow.rounds, slow.note) == ("rate", 3, "50 GB/s of its links")


def test_with_the_fabric_it_is_the_cable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fabric = Fabric("fat", 16)
    fabric.rates["dgx003 mlx5_1", 1] = "1xEDR"
    (tmp_path / "ib.txt").write_text(fabric.discovered())
    out = tmp_path / "out"
    out.mkdir()
    outputs(out, "dgx003", "mlx5_1")
    assert main(["fleet", "pairs", "--fabric", str(tmp_path / "ib.txt"), str(out)]) == 2
    said = capsys.readouterr().out
    assert said.startswith("FAIL: 16 nodes, 96 measurements in 3 rounds: 1 bad adapter\n")
    assert "dgx003 mlx5_1: at best 25 % of the median in 3 rounds" in said
    assert "reseat or replace its cable; dgx003 mlx5_1 - leaf000 port 14: 1x EDR, 4x EDR at most others" in said
    (out / "notes").write_text("x")
    assert main(["fleet", "pairs", "--format", "json", str(out)]) == 2
    document = json.loads(capsys.readouterr().out)
    assert complaints("pairs", document) == []
    assert [(each["what"], each["name"]) for each in document["blamed"]] == [("adapter", "dgx003")]
    assert document["unread"][0]["where"] == "notes"


ON_NODE = """#!/bin/bash
# stands for srun, clush and mpirun: runs the program here, for the node of -w or -H
node=; words=()
while [ $# -gt 0 ]; do
  case $1 in
    -w|-H) node=$2; shift 2;;
    -np) shift 2;;
    -N|-n|--overlap|-N[0-9]|-n[0-9]|--ntasks-per-node=1) shift;;
    *) break;;
  esac
done
NODE=$node exec bash -c "$*"
"""
MEASURES = """#!/bin/bash
case "$NODE $*" in *dgx2*) rate=40;; *) rate=97;; esac
printf '%s\\n' "{\\"BW_average\\": $rate}"
"""


@pytest.mark.parametrize("launcher", ["slurm", "clush"])
@pytest.mark.parametrize("test", ["ib_write_bw", "nccl-tests", "nvbandwidth"])
def test_the_script_runs_and_what_it_leaves_is_judged(
    launcher: str, test: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stands = dict.fromkeys(("srun", "clush", "mpirun"), ON_NODE) | {"sleep": "#!/bin/bash\n"}
    stands |= dict.fromkeys(("ib_write_bw", "all_reduce_perf", "nvbandwidth"), MEASURES)
    for name, text in stands.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script, out = tmp_path / "pairs.sh", tmp_path / "out"
    assert main(["fleet", "pairs", "-w", "dgx[1-6]", "--test", test, "--launcher", launcher, "-o", str(script)]) == 0
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = [program("bash"), str(script), str(out)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len([*out.iterdir()]) == 9
    assert main(["fleet", "pairs", str(out)]) == 2
    assert "dgx2" in capsys.readouterr().out.split("\n\n")[1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "give -w NODES for a script"),
        (["-w", "dgx1", "x"], "give -w NODES for a script"),
        (["-w", "dgx1"], "two nodes at least"),
        (["-w", "a;b,c"], "is no host name"),
        (["-w", "a,b", "--rounds", "0"], "neither a number"),
        (["-w", "a,b", "--adapters", "mlx5_0;rm"], "is no list such as"),
        (["-w", "a,b", "--test", "nvbandwidth", "--adapters", "mlx5_0"], "goes over NVLink"),
        (["nowhere"], "cannot be read"),
        (["."], "no output of a pair"),
    ],
)
def test_what_is_refused(
    words: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["fleet", "pairs", *words]) == 3
    assert why in capsys.readouterr().err


def test_a_folder_called_pairs_is_still_one_of_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["fleet", "./pairs"]) == 3
    assert "no results" in capsys.readouterr().err


def test_many_slow_paths_lead_to_the_fabric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for turn, pairs in enumerate(rounds(NODES[:12]), 1):
        for a, b in pairs:
            rate = 24 if (a < "dgx004") != (b < "dgx004") else 97
            (tmp_path / f"{turn},{a},{b},mlx5_0.txt").write_text(PERFTEST.format(rate))
    assert main(["fleet", "pairs", str(tmp_path)]) == 1
    assert "so many may have a switch in common: --fabric FILE shows it:\n" in capsys.readouterr().out


def test_a_system_with_slow_links_is_told_with_its_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fabric = Fabric("fat", 16)
    fabric.rates = {end: "1xEDR" for end in fabric.up if end[0].startswith("dgx003 ")}
    (tmp_path / "ib.txt").write_text(fabric.discovered())
    (out := tmp_path / "out").mkdir()
    outputs(out, "dgx003", "mlx5_1")
    main(["fleet", "pairs", "--fabric", str(tmp_path / "ib.txt"), str(out)])
    assert "dgx003: 4 links at 1x EDR, 4x EDR at most others" in capsys.readouterr().out
