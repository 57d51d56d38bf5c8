"""Logs of programs, containers and services: what they say of GPUs, host and driver, and what is no fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers_text import one, unread

from dgxcheck.facts.faults import EVERY_FAULT
from dgxcheck.readers.dcgm import health
from dgxcheck.readers.host import containers, cuda, services
from dgxcheck.readers.layout.undo import undone
from dgxcheck.readers.model import Imported, Reader
from dgxcheck.readers.network import carrier

READERS = (cuda.read_cuda_errors, containers.read_containers, health.read_log, carrier.read_carrier)
TRAINING = """\
Traceback (most recent call last):
  File "/srv/job/train.py", line 41, in <module>
    loss.backward()
RuntimeError: CUDA error: uncorrectable ECC error encountered
CUDA kernel errors might be asynchronously reported at some other API call
"""
SERVICES = """\
2026-02-03 04:05:06.789 ERROR [951:958] Failed to load module 9 [/src/dcgmlib/Handler.cpp:83] [LoadModule]
2026-02-03 04:05:07.001 ERROR [951:958] GPU 3 had uncorrectable memory errors [/src/nvvs/Memory.cpp:12] [Run]
2026-02-03 04:05:07.101 DEBUG [951:958] GPU 5 fabric manager is there [/src/nvvs/Software.cpp:1] [Check]
"""
INFO = """\
NVRM version:   550.54.14
CUDA version:   12.4

Device Index:   0
Device Minor:   0
Model:          NVIDIA A100-SXM4-80GB
Brand:          Nvidia
GPU UUID:       GPU-01234567-89ab-cdef-0123-456789abcdef
Bus Location:   00000000:0f:00.0
Architecture:   8.0
"""


def results(found: Imported) -> list[tuple[str, str, str]]:
    """Subject, outcome and fault of each result."""
    rows = [(key.split(" ")[2], fact) for key, fact in found.facts.items() if isinstance(fact, dict)]
    return [(subject, str(fact["outcome"]), str(fact["fault"])) for subject, fact in rows]


@pytest.mark.parametrize(
    ("line", "outcome", "fault"),
    [
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "warn", "program-crashed"),
        ("RuntimeError: CUDA error: device-side assert triggered", "warn", "program-crashed"),
        ("cuda runtime error (802) : system not yet initialized at /src/THCGeneral.cpp:50", "fail",
         "fabric-manager-down"),
        ('CUDA error at bandwidthTest.cu:256 code=802(cudaErrorSystemNotReady) "cudaSetDevice(0)"', "fail",
         "fabric-manager-down"),
        ("-> system not yet initialized", "fail", "fabric-manager-down"),
        ("Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non",
         "warn", "cuda-too-new"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.", "note", ""),
        ("failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", "warn", "not-ready"),
        ("CUDA error: no kernel image is available for execution on the device", "warn", "program-crashed"),
        ("RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.", "warn",
         "cuda-too-new"),
        ("torch.AcceleratorError: CUDA error: all CUDA-capable devices are busy or unavailable", "warn", "gpu-busy"),
        ("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", "warn", "gpu-busy"),
        ("THCudaCheck FAIL file=torch/csrc/cuda/Module.cpp line=59 error=46 : all CUDA-capable devices are busy or"
         " unavailable", "warn", "gpu-busy"),
        ("Couldn't init CUDA: Error (gpu_burn-drv.cpp:304): system not yet initialized", "fail",
         "fabric-manager-down"),
        ("cuInit failed: system not yet initialized", "fail", "fabric-manager-down"),
        ("CUDA: Check failed: e == cudaSuccess (803 vs. 0) : system has unsupported display driver / cuda driver"
         " combination", "fail", "driver-mismatch"),
    ],
)  # fmt: skip
def test_an_error_of_the_host_or_of_the_program(line: str, outcome: str, fault: str) -> None:
    assert results(one(cuda.read_cuda_errors, line)) == [("host", outcome, fault)]


ERRORS = {
    2: "MemoryAllocation", 3: "InitializationError", 35: "InsufficientDriver", 46: "DevicesUnavailable",
    98: "InvalidDeviceFunction", 100: "NoDevice", 101: "InvalidDevice", 200: "InvalidKernelImage",
    209: "NoKernelImageForDevice", 214: "ECCUncorrectable", 217: "PeerAccessUnsupported", 220: "NvlinkUncorrectable",
    222: "UnsupportedPtxVersion", 226: "Contained", 304: "OperatingSystem", 700: "IllegalAddress",
    701: "LaunchOutOfResources", 702: "LaunchTimeout", 710: "Assert", 714: "HardwareStackError",
    715: "IllegalInstruction", 716: "MisalignedAddress", 718: "InvalidPc", 719: "LaunchFailure",
    721: "TensorMemoryLeak", 801: "NotSupported", 802: "SystemNotReady", 803: "SystemDriverMismatch",
    804: "CompatNotSupportedOnDevice", 805: "MpsConnectionFailed", 999: "Unknown",
}  # fmt: skip
"""Of cudaError_t, in driver_types.h."""


def test_numbers_and_names_of_errors_say_the_same() -> None:
    for number, name in ERRORS.items():
        (key,) = (found := one(cuda.read_cuda_errors, f"CUDA error: cudaError{name}")).facts
        assert key.endswith(f"CUDA-error-{number}")
        assert one(cuda.read_cuda_errors, f"CUDA error {number}").facts == found.facts
    assert {error.number for error in cuda.ERRORS} == {*ERRORS}


def test_the_log_of_vllm() -> None:
    begin = "(EngineCore_0 pid=812) ERROR 10-02 08:11:22 [core.py:700] "
    lines = undone((f"{begin}Traceback (most recent call last):", f"{begin}CUDA error: unknown error")).lines
    assert lines == ("Traceback (most recent call last):", "CUDA error: unknown error")


@pytest.mark.parametrize(("named", "subject"), [("", "unnamed"), (" on cuda:3", "GPU3"), (" (GPU 5)", "GPU5")])
@pytest.mark.parametrize(
    ("error", "due"),
    [
        ("uncorrectable ECC error encountered", ("fail", "ecc-uncorrected")),
        ("uncorrectable NVLink error detected during the execution", ("fail", "nvlink-errors")),
        ("Invalid access of peer GPU memory over nvlink or a hardware error", ("warn", "peer-contained")),
    ],
)
def test_an_error_of_a_gpu_is_of_the_one_that_the_line_names(
    error: str, due: tuple[str, str], named: str, subject: str
) -> None:
    text = TRAINING.replace("uncorrectable ECC error encountered", f"{error}{named}")
    found = one(cuda.read_cuda_errors, text)
    ((who, *said),) = results(found)
    assert (who if who.startswith("GPU") else "unnamed", *said) == (subject, *due)
    assert unread([found], text) == []


@pytest.mark.parametrize(
    "line",
    ["unknown error", "no CUDA error was found", "n1:1:2 [0] NCCL WARN Cuda failure 'unknown error'", "error 802"],
)
def test_other_lines_are_no_errors_of_cuda(line: str) -> None:
    assert cuda.read_cuda_errors((line,)) == ()


@pytest.mark.parametrize(
    ("line", "outcome", "fault"),
    [
        ("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown", "fail",
         "driver-mismatch"),
        ("stderr: nvidia-container-cli.real: initialization error: driver error: driver not loaded", "fail",
         "driver-not-loaded"),
        ("nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open", "fail",
         "library-missing"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver",
         "warn", "cuda-too-new"),
        ("nvidia-container-cli: initialization error: driver rpc error: timed out: unknown", "fail",
         "driver-unresponsive"),
        ("nvidia-container-cli: device error: 9: unknown device", "warn", "container-error"),
        ("nvidia-container-cli: initialization error: cuda error: out of memory", "warn", "container-error"),
        ("nvidia-container-cli: initialization error: cuda error: invalid device function", "warn", "container-error"),
        ("nvidia-container-cli: initialization error: cuda error: unknown error", "fail", "driver-failed"),
        ('Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for'
         ' "nvidia" is configured', "fail", "container-runtime"),
        ("nvidia-container-cli: initialization error: cuda error: no cuda-capable device is detected", "warn",
         "not-ready"),
        ('could not select device driver "" with capabilities: [[gpu]].', "fail", "container-runtime"),
        ("docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0",
         "fail", "container-runtime"),
    ],
)  # fmt: skip
def test_errors_of_containers(line: str, outcome: str, fault: str) -> None:
    assert results(one(containers.read_containers, line)) == [("host", outcome, fault)]


def test_the_gpus_that_a_container_would_get() -> None:
    found = one(containers.read_containers, INFO)
    assert found.facts["nvml nvmlDeviceGetHandleByIndex 0"] == "0000:0f:00.0"
    assert found.facts["nvml nvmlDeviceGetName 0000:0f:00.0"] == "NVIDIA A100-SXM4-80GB"
    assert found.facts["nvml nvmlSystemGetDriverVersion"] == "550.54.14"
    assert found.facts["nvml nvmlDeviceGetUUID 0000:0f:00.0"] == "GPU-01234567-89ab-cdef-0123-456789abcdef"
    assert unread([found], INFO) == []
    unnamed = one(containers.read_containers, INFO.replace("GPU-01234567-89ab-cdef-0123-456789abcdef", "N/A"))
    assert unnamed.facts.keys() == found.facts.keys() - {"nvml nvmlDeviceGetUUID 0000:0f:00.0"}
    assert containers.read_containers(("Model: something else",)) == ()


def test_of_dcgm_s_logs_only_what_names_a_fault_of_a_gpu_counts() -> None:
    found = one(health.read_log, SERVICES)
    assert results(found) == [("GPU3", "warn", "ecc-uncorrected")]
    assert unread([found], SERVICES) == []
    quiet = one(health.read_log, "\n".join(SERVICES.splitlines()[::2]))
    assert quiet.facts == {}


NETWORKD = "Aug 17 06:18:01 node7 systemd-networkd[539]: {}: {} carrier"


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([("ib6", "Lost"), ("ib6", "Gained")], []),
        ([("ib6", "Lost"), ("ib6", "Gained"), ("ib6", "Lost"), ("ib6", "Gained")], [("ib6", "warn", "port-errors")]),
        ([("ib6", "Gained"), ("ib6", "Lost")], [("ib6", "fail", "port-down")]),
        ([("ib0", "Lost"), ("ib0", "Gained"), ("ib1", "Lost")], [("ib1", "fail", "port-down")]),
    ],
)
def test_carriers(events: list[tuple[str, str]], expected: list[tuple[str, str, str]]) -> None:
    assert results(one(carrier.read_carrier, "\n".join(NETWORKD.format(*each) for each in events))) == expected


def test_a_port_of_an_adapter_flaps_and_one_without_a_cable_is_free() -> None:
    down, up = (f"mlx5_core 0000:4b:00.0 ens2f0np0: Link {state}" for state in ("down", "up"))
    flapped = one(carrier.read_carrier, "\n".join((down, up, down, up)))
    assert results(flapped) == [("0000:4b:00.0/ens2f0np0", "warn", "port-errors")]
    lost = one(carrier.read_carrier, "\n".join((up, down)))
    assert results(lost) == [("0000:4b:00.0/ens2f0np0", "fail", "port-down")]
    assert results(one(carrier.read_carrier, down)) == []
    assert results(one(carrier.read_carrier, "\n".join((up, down, "reboot: Restarting system")))) == []
    begun = "mlx5_core 0000:{}:00.0: firmware version: 28.39.1002"
    assert results(one(carrier.read_carrier, "\n".join((up, down, begun.format("4b"))))) == []
    assert results(one(carrier.read_carrier, "\n".join((up, down, begun.format("5e"))))) == results(lost)


def test_an_rdma_device_logs_a_port_down_only_if_it_was_up() -> None:
    """From Linux 6.15 on, drivers/infiniband/core/cache.c: ib_cache_update."""
    of = "mlx5_core 0000:53:00.0"
    down = f"{of} enp83s0f0np0: Link down\n{of} mlx5_3: Port: 1 Link DOWN"
    assert results(one(carrier.read_carrier, down)) == [("0000:53:00.0/mlx5_3/1", "fail", "port-down")]
    for back in (f"{of} mlx5_3: Port: 1 Link ACTIVE", f"{of}: firmware version: 22.39.1048"):
        assert results(one(carrier.read_carrier, f"{down}\n{back}")) == []


def test_interfaces_of_containers_come_and_go() -> None:
    assert carrier.read_carrier((NETWORKD.format("veth01", "Lost"), NETWORKD.format("eth0", "Lost"))) == ()


UNIT = "Jan 05 14:4{}:41 node7 systemd[1]: {} nvidia-fabricmanager.service - NVIDIA fabric manager service."


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["Starting", "Started"], ("host", "pass", "")),
        (["Started", "Stopping", "Stopped"], ("host", "unknown", "fabric-manager-down")),
        (["Stopped", "Starting", "Started"], ("host", "pass", "")),
    ],
)
def test_a_service_that_was_stopped(words: list[str], expected: tuple[str, str, str]) -> None:
    text = "\n".join(UNIT.format(number, word) for number, word in enumerate(words))
    assert results(one(services.read_fabric_manager, text)) == [expected]


JOB = "Job for nvidia-fabricmanager.service failed because the control process exited with error code."
FOUND = "Jan 05 14:45:28 node7 nv-fabricmanager[7]: Successfully configured all the available NVSwitches"


@pytest.mark.parametrize("more", [[], [JOB], [JOB, FOUND], [UNIT.format(6, "Stopped")]])
def test_a_service_that_failed_is_one_result(more: list[str]) -> None:
    failed = "Jan 05 14:45:41 node7 systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'."
    text = "\n".join([failed, *more])
    found = [fault for _, _, fault in results(one(services.read_fabric_manager, text)) if fault]
    assert found == ["fabric-manager-down"]


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ([JOB], "unknown"),
        ([JOB, FOUND], "fail"),
        ([JOB, FOUND, UNIT.format(6, "Stopped")], "fail"),
        ([JOB, FOUND, UNIT.format(6, "Started")], "unknown"),
    ],
)
def test_a_service_that_did_not_start_is_missed_where_it_found_nvswitches(lines: list[str], outcome: str) -> None:
    found = {fault: how for _, how, fault in results(one(services.read_fabric_manager, "\n".join(lines)))}
    assert found["fabric-manager-down"] == outcome


@pytest.mark.parametrize(("line", "outcome", "fault"), [
    ("fabric manager NVIDIA GPU driver interface version 590.48.01 don't match with driver version 580.126.09.",
     "fail", "fabric-manager-version"),  # NVIDIA/gpu-driver-container issue 735
    ("fabric manager NVIDIA GPU driver interface version 590.48.01 don’t match with driver version 580.126.09.",
     "fail", "fabric-manager-version"),
    ("[ERROR] failed to configure all the available GPUs or NVSwitches", "warn", "fabric-manager-error"),
    ("10.0.0.101: nvlsm: ibwarn: [15] umad_init: can't read ABI version: is ib_umad module loaded?",
     "fail", "umad-missing"),  # siderolabs/docs issue 581
])  # fmt: skip
def test_what_fabric_manager_says_on_a_terminal(line: str, outcome: str, fault: str) -> None:
    assert results(one(services.read_fabric_manager, line)) == [("host", outcome, fault)]


def test_what_starts_fabric_manager_in_a_container() -> None:
    quiet = "2026/01/02 03:04:05 nvidia-fabricmanager-wrapper: found NVSwitch LPF: device=mlx5_8\nnvlsm: OpenSM 2025"
    assert results(one(services.read_fabric_manager, quiet)) == [("host", "pass", "")]
    failed = f"{quiet}\nnvidia-fabricmanager-wrapper: failed to find an NVSwitch management port"
    assert results(one(services.read_fabric_manager, failed)) == [("host", "warn", "fabric-manager-error")]


SEEDS = [*TRAINING.split("\n"), *SERVICES.split("\n"), *INFO.split("\n"), NETWORKD.format("ib0", "Lost")]


@given(st.lists(st.one_of(st.text(max_size=80), st.sampled_from(SEEDS)), max_size=12), st.sampled_from(READERS))
def test_any_text_gives_known_faults_of_its_own_lines(lines: list[str], reader: Reader) -> None:
    for found in reader(tuple(lines)):
        assert found.understood <= {*range(len(lines))}
        assert {fault for _, _, fault in results(found)} <= {"", *(fault.word for fault in EVERY_FAULT)}
