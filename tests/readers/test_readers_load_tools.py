"""gpu_burn, gpu-fryer and the bandwidth checks of NHC: verdicts and figures by GPU."""

from __future__ import annotations

from typing import Any

import pytest
from readers_text import one, unread, values

from dgxcheck.readers.benchmarks import gpu_burn
from dgxcheck.readers.host import health_checks
from dgxcheck.readers.model import Reader

BURN = """\
Using compare file: compare.ptx
Burning for 60 seconds.
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-4000-8000-000000000000)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-4000-8000-000000000001)
GPU 2: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-4000-8000-000000000002)
GPU 3: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-4000-8000-000000000003)
Initialized device 0 with 40536 MB of memory (40123 MB available, using 36111 MB of it), using DOUBLES
50.0%  proc'd: 10 (9100 Gflop/s) - 10 (9100 Gflop/s) - 0 (0 Gflop/s) - 10 (9000 Gflop/s)   errors: 0 - 0 - 0 - 0   \
temps: 50 C - 51 C - 52 C - 53 C
\tSummary at:   Mon Mar  2 03:04:05 UTC 2026

100.0%  proc'd: {}   errors: {}   temps: 60 C - 61 C - 62 C - 63 C
Killing processes.. Freed memory for dev 0
Uninitted cublas
done

Tested 4 GPUs:
\tGPU 0: OK
\tGPU 1: {}
\tGPU 2: OK
\tGPU 3: OK
"""
SOUND = "20 (9100 Gflop/s) - 20 (9100 Gflop/s) - 20 (9050 Gflop/s) - 20 (9000 Gflop/s)"


def reports(text: str, reader: Reader) -> dict[str, Any]:
    found = one(reader, text)
    return {
        key.split()[2]: (fact["outcome"], fact["fault"]) for key, fact in found.facts.items() if isinstance(fact, dict)
    }


@pytest.mark.parametrize(
    ("progress", "errors", "verdict", "wrong"),
    [
        (SOUND, "0 - 0 - 0 - 0", "OK", {}),
        (SOUND, "0 - 7  (WARNING!)- 0 - 0", "FAULTY", {"GPU1": ("fail", "wrong-data")}),
        (SOUND, "0 - -524288000  (WARNING!)- 0 - 0", "FAULTY", {"GPU1": ("fail", "wrong-data")}),
        (SOUND, "0 - 1641686072  (DIED!)- 0 - 0", "FAULTY", {"GPU1": ("fail", "test-failed")}),
        (SOUND, "0 - 0 - 0 - 0", "FAULTY", {"GPU1": ("fail", "test-failed")}),
        (SOUND, "0 - 7  (WARNING!)- 0 - 0 - 7", "FAULTY", {"GPU1": ("fail", "wrong-data")}),
        (SOUND.replace("20 (9050", "20 (4549"), "0 - 0 - 0 - 0", "OK", {"GPU2": ("warn", "slow")}),
        (SOUND.replace("20 (9050", "20 (4550"), "0 - 0 - 0 - 0", "OK", {}),
        (
            SOUND.replace("20 (9050 Gflop/s)", "0 (0 Gflop/s)"),
            "0 - 0 - 0 - 0",
            "OK",
            {"GPU2": ("unknown", "test-failed")},
        ),
    ],
)
def test_gpu_burn(progress: str, errors: str, verdict: str, wrong: dict[str, tuple[str, str]]) -> None:
    text = BURN.format(progress, errors, verdict)
    found = reports(text, gpu_burn.read_burn)
    assert {subject: told for subject, told in found.items() if told[0] != "pass"} == wrong
    assert [*found] == ["GPU0", "GPU1", "GPU2", "GPU3"]
    names = [at + 1 for at, line in enumerate(text.splitlines()) if "UUID" in line]
    assert unread([one(gpu_burn.read_burn, text)], text) == names


def test_gpus_of_different_models_are_not_compared() -> None:
    text = BURN.format(SOUND.replace("20 (9050", "20 (3000"), "0 - 0 - 0 - 0", "OK")
    other = text.replace("GPU 2: NVIDIA A100-SXM4-40GB", "GPU 2: Quadro M4000")
    assert {told[0] for told in reports(other, gpu_burn.read_burn).values()} == {"pass"}


@pytest.mark.parametrize(
    ("why", "found"),
    [
        ("CUDA_ERROR_UNKNOWN", {"host": ("fail", "driver-failed")}),
        ("CUDA_ERROR_SYSTEM_NOT_READY", {"host": ("fail", "fabric-manager-down")}),
        ("CUDA_ERROR_DEVICE_UNAVAILABLE", {"host": ("unknown", "")}),
        ("CUDA_ERROR_OUT_OF_MEMORY", {"host": ("unknown", "")}),
        ("CUDA_ERROR_NO_BINARY_FOR_GPU", {"host": ("unknown", "")}),
        ('Error in "load module": ', {"host": ("unknown", "")}),
        ("nothing known", dict.fromkeys(["GPU0", "GPU1", "GPU2", "GPU3"], ("fail", "test-failed"))),
        ("CUDA_ERROR_ECC_UNCORRECTABLE", dict.fromkeys(["GPU0", "GPU1", "GPU2", "GPU3"], ("fail", "test-failed"))),
    ],
)
def test_a_verdict_of_ok_where_nothing_was_computed(why: str, found: dict[str, tuple[str, str]]) -> None:
    """Where no GPU computed anything no GPU is to blame, but for what CUDA says of its memory; another program may use
    all of it, and the test may be built for other GPUs."""
    idle = " - ".join(["0 (0 Gflop/s)"] * 4)
    text = f"Couldn't init a GPU test: Error: {why}\n{BURN.format(idle, '0 - 0 - 0 - 0', 'OK')}"
    text += "Failure during compute: Error: CUDA_ERROR_LAUNCH_FAILED\n"  # the first one counts
    text = text.replace("10 (9100 Gflop/s)", "0 (0 Gflop/s)").replace("10 (9000 Gflop/s)", "0 (0 Gflop/s)")
    assert reports(text, gpu_burn.read_burn) == found


def test_a_gpu_that_is_hot_under_load() -> None:
    row = f"10.0%  proc'd: {SOUND}   errors: 0 - 0 - 0 - 0  temps: 50 C - -- - {{}} C - 53 C "
    for celsius, faults in ((89, {""}), (90, {"", "overheating"})):
        found = one(gpu_burn.read_burn, row.format(celsius) + row.format(60)).facts
        assert {fact["fault"] for fact in found.values() if isinstance(fact, dict)} == faults


def test_progress_of_several_seconds_in_one_line() -> None:
    row = f"10.0%  proc'd: {SOUND}   errors: 0 - 0 - 0 - 3  (WARNING!)  temps: 50 C - 51 C - 52 C - 53 C "
    assert reports(row * 3, gpu_burn.read_burn)["GPU3"] == ("fail", "wrong-data")


FRYER = """\
GPU #{0}:  {1} Gflops/s (min: 50000.00, max: 52000.00, dev: 51000.00)
         Temperature: 48.83°C (min: 47.00, max: 50.00)
         Throttling HW: {2}, Thermal SW: {3}, Thermal HW: false
"""


def test_a_burn_of_which_every_process_ended_blames_no_gpu() -> None:
    """https://github.com/wilicc/gpu-burn/issues/69"""
    errors = "-533715488  (DIED!)- 1278531568  (DIED!)"
    text = f"30.0%  proc'd: -1 (0 Gflop/s) - -1 (0 Gflop/s)   errors: {errors}  temps: 30 C - 30 C "
    assert reports(text, gpu_burn.read_burn) == {"host": ("unknown", "")}


@pytest.mark.parametrize(("done", "errors", "found"), [
    ("-1 (0 Gflop/s)", "7  (DIED!)", {"GPU0": ("fail", "test-failed")}),
    ("-1 (0 Gflop/s) - -1 (0 Gflop/s)", "7  (DIED!)- 7  (WARNING!)",
     {"GPU0": ("fail", "test-failed"), "GPU1": ("fail", "wrong-data")}),
    ("-1 (0 Gflop/s) - -1 (0 Gflop/s)",
     "7  (WARNING!)- 0  temps: 30 C 40.0%  proc'd: -1 (0 Gflop/s) - -1 (0 Gflop/s)   errors: 8  (DIED!)- 8  (DIED!)",
     {"GPU0": ("fail", "wrong-data"), "GPU1": ("fail", "test-failed")}),
    ("0 (0 Gflop/s)", "0", {"GPU0": ("unknown", "test-failed")}),
    ("9 (99 Gflop/s) - 9 (9 Gflop/s)", "0 - 0", {"GPU0": ("pass", ""), "GPU1": ("pass", "")}),
    ("9 (9 Gflop/s) - 9 (99 Gflop/s) - 9 (99 Gflop/s)", "0 - 0 - 0",
     {"GPU0": ("warn", "slow"), "GPU1": ("pass", ""), "GPU2": ("pass", "")}),
])  # fmt: skip
def test_a_burn_of_few_gpus(done: str, errors: str, found: dict[str, tuple[str, str]]) -> None:
    """Of two none is slower than the others, and one alone whose process ended is to blame."""
    assert reports(f"30.0%  proc'd: {done}   errors: {errors}  temps: 30 C ", gpu_burn.read_burn) == found


@pytest.mark.parametrize(("rates", "slow"), [((51000, 9), []), ((51000, 51000, 43350), []),
                                             ((51000, 51000, 43349), ["GPU2"])])  # fmt: skip
def test_gpus_of_a_fryer_are_compared_with_two_others(rates: tuple[int, ...], slow: list[str]) -> None:
    fryer = "".join(FRYER.format(index, rate, "false", "false") for index, rate in enumerate(rates))
    found = {subject: fault for subject, (_, fault) in reports(fryer, gpu_burn.read_fryer).items()}
    assert found == {f"GPU{index}": "slow" if f"GPU{index}" in slow else "" for index in range(len(rates))}
    ends = "".join(f"GEMM [I] (ADAPTER#{index}) Ending with {rate} GFlops\n" for index, rate in enumerate(rates))
    found = {subject: fault for subject, (_, fault) in reports(ends, gpu_burn.read_ubergemm).items()}
    assert [subject for subject, fault in found.items() if fault] == slow


def test_an_index_that_no_gpu_has_is_of_none() -> None:
    text = BURN.format(SOUND, "0 - 0 - 0 - 0", "OK").replace("GPU 3:", "GPU 64:")
    found = one(gpu_burn.read_burn, text)
    assert {key.split()[2] for key in found.facts} == {f"GPU{index}" for index in range(4)}
    assert [text.splitlines()[number - 1].strip() for number in unread([found], text)][-1] == "GPU 64: OK"
    assert gpu_burn.read_fryer(tuple(FRYER.format(64, 9, "false", "false").splitlines())) == ()
    assert one(gpu_burn.read_ubergemm, "GEMM [I] (ADAPTER#64) Ending with 9 GFlops").facts == {}
    for message in ("Test7 finished in 1.2 seconds", "ERROR: CUDA error: misaligned address, line 9"):
        assert gpu_burn.read_memtest((f"[10/23/2023 10:02:11][node7][64]:{message}",)) == ()


def test_floats_of_a_gpu_that_computed_none_have_no_rate() -> None:
    text = BURN.format(SOUND.replace("20 (9050", "20 (0"), "0 - 0 - 0 - 0", "OK").replace("DOUBLES", "FLOATS")
    assert [key for key in values(one(gpu_burn.read_burn, text)) if "compute" in key] == [
        f"compute {index}" for index in (0, 1, 3)
    ]


def test_gpu_fryer() -> None:
    rows = [(0, 51000, "false", "false"), (1, 51100, "true", "false"), (2, 30000, "false", "false"),
            (3, 51000, "false", "true"), (4, 50900, "false", "false")]  # fmt: skip
    text = "".join(FRYER.format(*row) for row in rows) + "All GPUs seem healthy\n"
    assert unread([one(gpu_burn.read_fryer, text)], text) == []
    assert {subject: fault for subject, (_, fault) in reports(text, gpu_burn.read_fryer).items()} == {
        "GPU0": "", "GPU1": "hardware-slowdown", "GPU2": "slow", "GPU3": "thermal-slowdown", "GPU4": "",
    }  # fmt: skip


def test_bandwidths_of_a_node_health_check() -> None:
    text = """\
Device 0 Device to Host reported bandwidth is 55 GB/s
Device 0 Host to Device reported bandwidth is 54.5 GB/s
IB devices=mlx5_ib0, mlx5_ib4: numa domains=0,1, Measured IB BW 390.4 Gbps
"""
    found = one(health_checks.read_node_health, text)
    assert values(found) == {
        "device-to-host 0": 55, "host-to-device 0": 54.5, "rdma-write mlx5_ib0": 48.8, "rdma-write mlx5_ib4": 48.8,
    }  # fmt: skip
    assert unread([found], text) == []
