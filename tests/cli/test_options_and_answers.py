"""Options that exclude each other, and answers of ``topo`` and ``health`` where a fact is missing or unusual."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from seam import run
from test_bad_input import refused

NODE0 = "/sys/devices/system/node/node0"
RANKS = "OMPI_COMM_WORLD_LOCAL_RANK"


@pytest.mark.parametrize(
    ("argv", "due"),
    [
        (("health", "--ticket", "--brief"), "--ticket and --brief cannot be combined"),
        (("health", "--ticket", "--format", "json"), "--ticket cannot be combined with --format json"),
        (("health", "--brief", "--format", "svg"), "--brief cannot be combined with --format svg"),
        (("fabric", "--timeout", "5", "out.txt"), "runs without FILE"),
        (("fleet", "--gate", "--format", "json", "x"), "--gate has one format, text"),
        (("fleet", "--config", "pyproject.toml", "x"), "--config names racks, for --format html"),
        (("fleet", "-n", "a", "-w", "b"), "with -w every node must have one"),
        (("fleet", "pairs", "-w", "n[1-4]", "--rounds", "0"), "'0' is neither a number from 1 on nor all"),
        (("fleet", "pairs", "-w", "n[1-4]", "--adapters", "a b"), "is no list such as mlx5_0,mlx5_1"),
        (("fleet", "pairs", "-w", "n-,-x"), "is no host name"),
        (("bind", "--from", "dgx-1-v100", "true"), "--from is another machine; add --dry-run"),
        (("bind", "--from", "dgx-1-v100", "--dry-run", "true"), f"{RANKS}, "),
        (("topo", "-c", "80", "--from", "dgx-1-v100"), "no CPU 80; the CPUs of the machine are 0-19,40-59 and 20-39"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused_in_one_line(
    argv: tuple[str, ...], due: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_LOCALID", raising=False)
    assert due in refused(capsys, *argv)


def overlay(folder: Path, base: str, facts: dict[str, Any]) -> str:
    whole = {"schema": "dgxcheck/overlay/1", "base": base, "fault": "a fact", "sources": ["a test"], "facts": facts}
    (folder / "box.json").write_text(json.dumps(whole))
    return str(folder / "box.json")


@pytest.mark.parametrize(
    ("argv", "facts", "code", "due"),
    [
        (("-M", "-i", "0"), {f"text {NODE0}/meminfo": "Node 0 MemTotal:       0 kB\n"}, 0,
         "NUMA node of the nearest memory of GPU0: 1\n"),
        (("-M", "-i", "0"), {f"text {node}/meminfo": "Node 0 MemTotal:       0 kB\n"
                             for node in (NODE0, f"{NODE0[:-1]}1")}, 3, "GPU0: unknown (meminfo"),
        (("-M", "-i", "0"), {f"names {NODE0[:-6]}": ["node1"]}, 3, "no data for NUMA node 0"),
        (("-n", "4", "-i", "0"), {"text /sys/bus/pci/devices/0000:06:00.0/numa_node": "-1\n"}, 3,
         "GPU1, GPU2, GPU3\nUnknown for GPU4, GPU5, GPU6, GPU7"),
        (("-n", "3", "-i", "0"), {"text /sys/bus/pci/devices/0000:06:00.0/numa_node": "-1\n"}, 0,
         "GPU1, GPU2, GPU3\n\n"),
        (("-p2p", "r", "--format", "nvidia-smi"), {}, 0,
         " GPU4\tOK\tTNS\tTNS\tTNS\tX\tOK\tOK\tOK\t\n"),
        (("-mp", "--format", "nvidia-smi"), {}, 0, "GPU2\tPHB\tPHB\t X \tPIX\tSYS"),
    ],
)  # fmt: skip
def test_topo(
    argv: tuple[str, ...], facts: dict[str, Any], code: int, due: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    done = run(capsys, "topo", *argv, "--from", overlay(tmp_path, "dgx-1-v100", facts))
    assert due in done.out
    assert done.code == code


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("dgx-1-v100-nvlink-down", ["GPU2 - GPU3: NV1 instead of NV2"]),
        ("dgx-station-v100-nvlink-wrong-peer",
         ["GPU0 - GPU1: no NVLink instead of NV1", "GPU0 - GPU2: NV2 instead of NV1"]),
    ],
)  # fmt: skip
def test_links_that_the_reference_machine_has(name: str, due: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "topo", "-m", "--from", name).out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("NVLink graph: differs from"))
    assert [line.strip() for line in lines[begin + 1 : -1]] == due
