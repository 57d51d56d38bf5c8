"""Options that exclude each other, and answers of ``topo`` and ``health`` where a fact is missing or unusual."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
import pytest
from seam import run
from test_bad_input import refused

from dgxcheck.cli.options import _option
from dgxcheck.cli.results import terminal_columns

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


def test_a_log_of_harmless_lines_is_recognised_and_gives_no_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, target = tmp_path / "dmesg.txt", tmp_path / "box.json"
    log.write_text("[    1.100000] usb 1-1: new high-speed USB device number 2 using xhci_hcd\n" * 4)
    assert "nothing reported in it" in run(capsys, "import", str(log), "--show").out
    assert "no file was written" in refused(capsys, "import", str(log), "-o", str(target))
    assert not target.exists()


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys)
    assert (done.code, done.err) == (0, "")
    assert "Usage: dgxcheck [OPTIONS] [COMMAND] [ARGS]...\n" in done.out


@pytest.mark.parametrize(
    ("environment", "more", "coloured"),
    [
        ({}, (), False), ({"FORCE_COLOR": "1"}, (), True), ({"CLICOLOR_FORCE": "1"}, (), True),
        ({"CLICOLOR_FORCE": "0"}, (), False), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, (), False),
        ({"NO_COLOR": "1"}, ("--color", "always"), True), ({"FORCE_COLOR": "1"}, ("--color", "never"), False),
    ],
)  # fmt: skip
def test_colours_follow_the_environment_and_the_option_more(
    environment: dict[str, str], more: tuple[str, ...], coloured: bool, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in run(capsys, "health", "--from", "dgx-1-v100-gpu-x8", *more).out) == coloured


@pytest.mark.parametrize("columns", ["0", "x", "-5", "123456"])
def test_a_width_that_is_none_is_not_taken(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with open(os.devnull, encoding="utf-8") as nowhere:
        monkeypatch.setattr("sys.stdout", nowhere)
        assert terminal_columns() == 80


@pytest.mark.parametrize(("value", "choices"), [("[text|JSON]", ("text", "JSON")), ("N|all", None), ("FILE", None)])
def test_a_value_in_brackets_is_a_choice(value: str, choices: tuple[str, ...] | None) -> None:
    row = {"names": "--as", "value": value, "help": "", "default": "", "more": "", "range": ""}
    (option,) = click.command()(_option("list", row)(lambda **_: None)).params
    assert getattr(option.type, "choices", None) == choices
    assert option.metavar == (None if choices else value)
