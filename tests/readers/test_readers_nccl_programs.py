"""What PyTorch, nccl-tests and ncclras print of NCCL: who waited, who is missing or behind, and whose error it was."""

from __future__ import annotations

from typing import Any

import pytest
from readers_text import one, unread

from dgxcheck.readers.model import Reader
from dgxcheck.readers.nccl import programs

WAIT = (
    "[rank{0}]:[E101 00:00:00.1 ProcessGroupNCCL.cpp:600] [{2}Rank {0}] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum={1}, OpType={3}, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before"
    " timing out."
)
DONE = (
    "[rank{0}]:[E101 00:00:00.1 ProcessGroupNCCL.cpp:1700] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Exception"
    " (either an"
    " error or timeout) detected by watchdog at work: {1}, last enqueued NCCL work: {1}, last completed NCCL work: {2}."
)


def wait(rank: int, number: int = 7, operation: str = "ALLREDUCE", group: str = "") -> str:
    return WAIT.format(rank, number, group, operation)


def reports(text: str, reader: Reader = programs.read_programs) -> dict[str, Any]:
    found = one(reader, text)
    assert unread([found], text) == []
    return {key.removeprefix("stated report host "): fact for key, fact in found.facts.items()}


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        ([wait(0), wait(1), wait(3)], "ranks 0, 1, 3 timed out in ALLREDUCE (SeqNum 7): rank 2 did not report"),
        ([wait(0), wait(1), wait(2, 6)], "in ALLREDUCE (SeqNum 6): rank 2 is behind the others"),
        ([wait(0), wait(1, group="PG ID 2 PG GUID 3(tp) "), DONE.format(0, 7, 6), DONE.format(1, 7, 5)],
         "rank 1 is behind the others"),
        ([wait(0), wait(1, 6), DONE.format(0, 7, 4), DONE.format(1, 7, 5)],
         "timed out in ALLREDUCE (SeqNum 6): none of them is behind, so the rank at fault is not in this log, or a"
         " transfer hangs"),
        ([wait(0), wait(1), wait(2), wait(3, 6), wait(4, 6)], "(SeqNum 6): ranks 3, 4 are behind the others"),
        ([wait(2)], "(SeqNum 7): none of them is behind, so the rank at fault is not in this log, or a transfer hangs"),
        ([wait(1)], "(SeqNum 7): rank 0 did not report"),
        ([wait(0), wait(1, operation="BROADCAST")],
         "ALLREDUCE/BROADCAST (SeqNum 7): the ranks call different operations"),
        ([*map(wait, range(8))], "ranks 0, 1, 2, 3, 4, 5, 6, 7 timed out in ALLREDUCE (SeqNum 7): none of them"
         " is behind, so the rank at fault is not in this log, or a transfer hangs"),
        ([*map(wait, range(9))], "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 1 more timed out in ALLREDUCE (SeqNum 7): none of"
         " them is behind, so the rank at fault is not in this log, or a transfer hangs"),
        ([wait(0), wait(1)], "none of them is behind, so the rank at fault is not in this log, or a transfer hangs"),
        (["[rank4]:[F1 ProcessGroupNCCL.cpp:1250] [PG 0 Rank 4] [PG 0 Rank 4] ProcessGroupNCCL's watchdog got stuck. "
          "Heartbeat monitor timed out! Process will be terminated."],
         "rank 4 stopped: the watchdog of NCCL got no answer"
         " from CUDA or a lock"),
        (["[rank4]:[E205 18:11:06.3757 ProcessGroupNCCL.cpp:1870] [PG ID 12 PG GUID 99(TP) Rank 4] ProcessGroupNCCL's"
          " watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives."],
         "rank 4 stopped: the watchdog of NCCL got no answer from CUDA or a lock"),
    ],
)  # fmt: skip
def test_who_kept_the_others_waiting(lines: list[str], end: str) -> None:
    (found,) = reports("\n".join(lines)).values()
    assert found["text"].endswith(end)
    assert (found["fault"], found["outcome"]) == ("collective-timeout", "warn")


def test_a_dump_that_another_rank_asked_for_is_no_result() -> None:
    dump = "[rank1]: Received a dump signal due to a collective timeout from this local rank and we will try our best"
    assert [*reports(f"{wait(0)}\n{wait(1)}\n{dump}")] == [*reports(f"{wait(0)}\n{wait(1)}")]


@pytest.mark.parametrize(
    ("last", "fault"),
    [
        ("Cuda failure 'out of memory'", "program-error"),
        ("Cuda failure 802 'system not yet initialized'", "fabric-manager-down"),
        ("Cuda failure 'uncorrectable ECC error encountered'", "ecc-uncorrected"),
        ("socketStartConnect: Connect to 10.0.0.9<4000> failed : Connection refused", "no-connection"),
    ],
)
def test_the_last_error_counts_not_its_kind(last: str, fault: str) -> None:
    head = "torch.distributed.DistBackendError: NCCL error in: /x/ProcessGroupNCCL.cpp:1970, unhandled cuda error"
    for middle in ("Last error:\n", "Last error: ", "Last error:\n\n"):
        text = f"{head}, NCCL version 2.21.5\nncclUnhandledCudaError: Call to CUDA function failed.\n{middle}{last}"
        assert [fact["fault"] for fact in reports(text).values()] == [fault]


def test_the_kind_counts_where_nothing_more_is_told() -> None:
    remote = "ncclRemoteError: A call failed possibly due to a network error."
    for text in (remote, f"{remote}\nLast error:\ntorch.distributed.DistBackendError: NCCL error in: /x.cpp:1970"):
        (found,) = reports(text).values()
        assert (found["fault"], found["outcome"]) == ("transfer-failed", "warn")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("box: Test NCCL failure common.cu:958 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '",
         "tool-error"),
        ("box: Test NCCL failure all_reduce.cu:44 'remote process exited or there was a network error / '",
         "transfer-failed"),
        ("box: Test CUDA failure common.cu:730 'out of memory'", "program-error"),
        ("box: NCCL failure common.cu:958 'unhandled cuda error'", "tool-error"),
    ],
)  # fmt: skip
def test_failures_of_nccl_tests(line: str, fault: str) -> None:
    text = f"{line}\n .. box pid 4242: Test failure common.cu:891\nanother line\n"
    found = one(programs.read_programs, text)
    assert unread([found], text) == [3]
    assert found.tool == "nccl-tests"
    assert [fact["fault"] for fact in found.facts.values() if isinstance(fact, dict)] == [fault]


@pytest.mark.parametrize(("logged", "outcome"), [
    ("Cuda failure 801 'operation not supported'", "warn"),
    ("NET/IB : mlx5_1:1 Got non-fatal async event: port active(9)", "warn"),
    ("NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129", "note"),
])  # fmt: skip
def test_a_result_counts_unless_nccl_logs_the_error(logged: str, outcome: str) -> None:
    failed = "box: Test NCCL failure common.cu:958 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '"
    found = one(programs.read_programs, f"box:1:2 [0] transport/x.cc:1 NCCL WARN {logged}\n{failed}")
    assert [fact["outcome"] for fact in found.facts.values() if isinstance(fact, dict)] == [outcome]


LAST_OF_XLA = "Last NCCL warning(error) log entry (may be unrelated) '{}'."
CUDA_FAILURE = "Cuda failure 'uncorrectable ECC error encountered'"


@pytest.mark.parametrize(("before", "tool", "found"), [
    ("INTERNAL: NCCL operation ncclGroupEnd() failed: unhandled cuda error. ", "XLA", [("fail", "ecc-uncorrected")]),
    ("", "XLA", [("note", "")]),
    (f"{wait(0)}\n", "PyTorch", [("warn", "collective-timeout")]),
    (f"{LAST_OF_XLA.format('a')}\n" * 3, "XLA", [("note", ""), ("note", "")]),
])  # fmt: skip
def test_what_xla_repeats_counts_where_nccl_failed(before: str, tool: str, found: list[tuple[str, str]]) -> None:
    output = one(programs.read_programs, f"{before}{LAST_OF_XLA.format(CUDA_FAILURE)}")
    assert output.tool == tool
    facts = [fact for fact in output.facts.values() if isinstance(fact, dict)]
    assert [(fact["outcome"], fact["fault"]) for fact in facts] == found
    assert len(output.understood) == len(before.splitlines()) + (not before.startswith("INTERNAL"))


JOB = """\
NCCL version 2.26.2 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          8            1         16       16

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         8        16        16   RUNNING  {}
"""
DEAD = """
Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 77 on node 10.0.0.2 managing GPU 5

#0-0 (00c0ffee00c0ffee) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 13 -- GPU 5 managed by process 77 on node 10.0.0.2

Warnings
========

#0-0 (00c0ffee00c0ffee) MISMATCH
  Communicator ranks have different AllReduce operation counts
  14 ranks have launched up to operation 651
  Rank 3 has launched up to operation 650 -- GPU 3 managed by process 70 on node 10.0.0.1
"""


def test_ras_of_a_job_that_runs() -> None:
    assert {key: fact["outcome"] for key, fact in reports(JOB.format("OK"), programs.read_ras).items()} == {
        "ncclras-communicators": "pass"
    }


def test_ras_of_a_job_with_a_dead_process() -> None:
    found = reports(JOB.format("INCOMPLETE") + DEAD, programs.read_ras)
    assert {key: (fact["outcome"], fact["fault"]) for key, fact in found.items()} == {
        "ncclras-dead": ("fail", "collective-timeout"), "ncclras-incomplete": ("warn", "collective-timeout"),
        "ncclras-mismatch": ("unknown", "collective-timeout"),
    }  # fmt: skip
    assert found["ncclras-dead"]["text"].endswith(": GPU 5 on node 10.0.0.2")
    assert found["ncclras-incomplete"]["text"].endswith("rank 13, GPU 5 on node 10.0.0.2")
    assert "rank 3 has launched up to operation 650" in found["ncclras-mismatch"]["text"]


@pytest.mark.parametrize(("old", "new", "key", "end"), [
    ("1 job process is considered dead (unreachable via the RAS network)", "", "dead",
     "communicators are DEAD: GPU 5 on node 10.0.0.2"),
    ("Rank 13 -- GPU 5 managed by process 77 on node 10.0.0.2", "Rank 13 -- [process 77 on node 10.0.0.2]",
     "incomplete", ": rank 13"),
])  # fmt: skip
def test_ras_with_less(old: str, new: str, key: str, end: str) -> None:
    found = reports(JOB.format("INCOMPLETE") + DEAD.replace(old, new), programs.read_ras)
    assert found[f"ncclras-{key}"]["text"].endswith(end)


@pytest.mark.parametrize(("ranks", "end"), [(4, "GPU 3 on node 10.0.0.2"), (5, "node 10.0.0.2 and 1 more")])
def test_ras_names_four_ranks(ranks: int, end: str) -> None:
    row = "  Rank {0} -- GPU {0} managed by process 77 on node 10.0.0.2\n"
    more = "".join(row.format(rank) for rank in range(ranks))
    found = reports(JOB.format("INCOMPLETE") + DEAD.replace(row.format(13).replace("GPU 13", "GPU 5"), more),
                    programs.read_ras)  # fmt: skip
    assert found["ncclras-incomplete"]["text"].endswith(end)


def test_sections_alone_are_no_output_of_ras() -> None:
    assert programs.read_ras(("Errors", "======", "Warnings", "1 2 3")) == ()
