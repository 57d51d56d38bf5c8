"""``--host``: one host of a text that holds output of several, by every command that takes ``--from``."""

from __future__ import annotations

from pathlib import Path

import pytest

from dgxcheck.cli import main

NODES = """[root@node01 ~]# nvidia-smi -L
GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-00000000-0000-4000-8000-000000000001)
GPU 1: Tesla V100-SXM2-16GB (UUID: GPU-00000000-0000-4000-8000-000000000002)
[root@node02 ~]# nvidia-smi -L
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-4000-8000-000000000003)
"""


def test_hosts_with_faults_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.log"
    line = "NCCL WARN Cuda failure 'uncorrectable ECC error encountered'"
    file.write_text(f"n1:1:2 [0] x.cc:1 {line}\nn2:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]\n")
    assert main(["health", "--from", str(file)]) == 3
    assert "n1, n2; choose one with --host NAME (their tools found faults at n1)" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["health", "topo", "list"])
def test_one_host_is_examined(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text(NODES)
    assert main([command, "--from", str(file)]) == 3
    assert "several hosts: node01, node02; choose one with --host NAME" in capsys.readouterr().err
    main([command, "--from", str(file), "--host", "node01"])
    first = capsys.readouterr().out
    main([command, "--from", str(file), "--host", "node02"])
    second = capsys.readouterr().out
    gpu1 = "\n1    -" if command == "list" else "GPU1"
    assert gpu1 in first
    assert gpu1 not in second


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["topo", "--host", "node01"], "give the text with --from"),
        (["topo", "--from", "dgx-2", "--host", "node01"], "dgx-2 is no text of several hosts"),
        (["topo", "--from", "{file}", "--host", "node03"], "node01, node02"),
    ],
)
def test_what_has_no_such_host(
    arguments: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text(NODES)
    assert main([each.format(file=file) for each in arguments]) == 3
    assert error in capsys.readouterr().err
