"""PyTorch's collect_env with the GPUs of a box, vLLM's form of it, and ``lsmod | grep``."""

from __future__ import annotations

from pathlib import Path

import pytest
from readers_text import one, unread

from dgxcheck.assessment.importing.recording import read
from dgxcheck.assessment.importing.texts import text_of
from dgxcheck.readers.host import cuda, system

GPUS = [f"GPU {number}: NVIDIA H100 80GB HBM3" for number in range(4)]
PLAIN = "\n".join((
    "Collecting environment information...", "PyTorch version: 2.5.1+cu124", "Is debug build: False",
    "CUDA used to build PyTorch: 12.4", "ROCM used to build PyTorch: N/A", "", "OS: Ubuntu 22.04.5 LTS (x86_64)",
    "Python platform: Linux-5.15.0-126-generic-x86_64-with-glibc2.35", "Is CUDA available: {}",
    "CUDA_MODULE_LOADING set to: LAZY", "GPU models and configuration: ", *GPUS, "", "Nvidia driver version: 550.54.15",
    "cuDNN version: Could not collect", "", "Versions of relevant libraries:", "[pip3] torch==2.5.1",
    "[conda] torch                     2.5.1                    pypi_0    pypi",
))  # fmt: skip
PADDED = PLAIN.replace("Is debug build:", "Is debug build               :").replace(
    "GPU models and configuration: ", "==============================\n       CUDA / GPU Info\n"
    "==============================\nGPU models and configuration : "
).replace("Nvidia driver version:", "Nvidia driver version        :")  # fmt: skip
TOPOLOGY = """
GPU Topology:
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tNV18\tNV18\t0-55\t0\t\tN/A
GPU1\tNV18\t X \tNV18\tNV18\t0-55\t0\t\tN/A
GPU2\tNV18\tNV18\t X \tNV18\t56-111\t1\t\tN/A
GPU3\tNV18\tNV18\tNV18\t X \t56-111\t1\t\tN/A
"""


@pytest.mark.parametrize("form", [PLAIN, PADDED])
def test_driver_and_gpus(form: str) -> None:
    text = form.format("True")
    found = one(cuda.read_collect_env, text)
    assert unread([found], text) == []
    assert found.facts["nvml nvmlSystemGetDriverVersion"] == "550.54.15"
    named = [fact for key, fact in found.facts.items() if "GetName" in key]
    assert named == ["NVIDIA H100 80GB HBM3"] * 4


def test_a_single_gpu_stands_beside_its_title() -> None:
    text = PLAIN.format("True").replace("\n".join(("configuration: ", *GPUS)), "configuration: GPU 0: NVIDIA L4")
    named = [fact for key, fact in one(cuda.read_collect_env, text).facts.items() if "GetName" in key]
    assert named == ["NVIDIA L4"]


@pytest.mark.parametrize(
    ("build", "answer", "reported"),
    [("12.4", "False", True), ("12.4", "True", False), ("Could not collect", "False", False)],
)
def test_a_pytorch_that_cannot_use_cuda(build: str, answer: str, reported: bool) -> None:
    text = PLAIN.format(answer).replace("build PyTorch: 12.4", f"build PyTorch: {build}")
    assert ("stated report host collect_env-cuda" in one(cuda.read_collect_env, text).facts) == reported


@pytest.mark.parametrize("form", [PLAIN, PADDED])
def test_the_matrix_below_it_is_read_and_nothing_is_refused(form: str) -> None:
    text = form.format("True") + TOPOLOGY
    reading = read([text_of("t", tuple(text.splitlines()))])
    assert not reading.combined.refused
    assert reading.unread["t"] == ()
    assert reading.combined.facts["stated label GPU0 GPU3"] == "NV18"


def test_modules_that_were_taken_out_of_the_list() -> None:
    text = "nvidia_peermem         16384  0\nib_core              397312  9 rdma_cm,ib_ipoib,nvidia_peermem,mlx5_ib\n"
    (report, other) = one(system.read_modules, text).facts.values()
    assert isinstance(report, dict)
    assert isinstance(other, dict)
    assert (report["text"], report["outcome"], other["text"]) == (
        "nvidia_peermem is loaded",
        "pass",
        "ib_core is loaded",
    )
    assert system.read_modules(("some words 16384 0", "nvidia 123")) == ()


def test_lines_of_another_host_that_nobody_reads_are_named(tmp_path: Path) -> None:
    text = "[root@node01 ~]# nvidia-smi -L\nGPU 0: Tesla V100-SXM2-16GB\n[root@node02 ~]# rpm -qa\ncuda-runtime-11-3\n"
    reading = read([text_of("t", tuple(text.splitlines()))])
    assert reading.unread["t"] == (3,)
    assert reading.of_others("t") == {"node02": 1}
