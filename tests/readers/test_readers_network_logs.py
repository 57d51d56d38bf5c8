"""UCX and libibverbs: transfers that failed, and limits of locked memory that are too low."""

from __future__ import annotations

import pytest
from readers_text import one, unread

from dgxcheck.readers.network import logs


@pytest.mark.parametrize(
    ("logged", "subject"),
    [
        ("ib_mlx5_log.c:171  UCX  ERROR Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81 hw_synd)",
         "mlx5_0/1"),
        ("ib_device.c:1332 UCX  ERROR   ibv_create_ah(dlid=49152 sl=0 port=1) for UD mlx5 connect on mlx5_3 failed:"
         " Connection timed out", "mlx5_3"),
    ],
)  # fmt: skip
def test_transfers_that_ucx_logs(logged: str, subject: str) -> None:
    """openucx/ucx issue 6000, ai-dynamo/dynamo issue 814"""
    found = one(logs.read_ucx, f"[1608212345.123456] [gpu01:12345:0]    {logged}")
    ((key, fact),) = found.facts.items()
    assert isinstance(fact, dict)
    assert (key.split()[2], fact["outcome"], fact["fault"]) == (subject, "fail", "transfer-unanswered")


@pytest.mark.parametrize("process", ["gpu01:29714:0:29714", "gpu01:3012 :0:3012"])
def test_a_fatal_message_of_ucx_has_no_time(process: str) -> None:
    text = "Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)"
    found = one(logs.read_ucx, f"[{process}] ib_mlx5_log.c:177  {text}")
    assert [key.split()[2] for key in found.facts] == ["mlx5_0/1"]


@pytest.mark.parametrize("sign", [" :", "."])
def test_a_limit_of_locked_memory_that_ucx_names(sign: str) -> None:
    """openucx/ucx src/uct/ib/base: the two forms of its releases; without a limit it says only that memory lacks."""
    head = "[1736959004.001121] [gpu01:29714:0]  ib_iface.c:1060 UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot"
    limited = f"{head} allocate memory{sign} Please set max locked memory (ulimit -l) to 'unlimited' (current: 64)"
    (fact,) = one(logs.read_ucx, limited).facts.values()
    assert isinstance(fact, dict)
    assert (fact["outcome"], fact["fault"]) == ("fail", "memlock")
    (fact,) = one(logs.read_ucx, f"{head} allocate memory").facts.values()
    assert isinstance(fact, dict)
    assert (fact["outcome"], fact["fault"]) == ("note", "")


@pytest.mark.parametrize(("why", "fault"), [("Cannot allocate memory", "memlock"), ("Bad address", "rdma-access")])
def test_memory_that_libfabric_could_not_register(why: str, fault: str) -> None:
    line = f"libfabric:4242:1700000000::efa:mr:efa_mr_reg_impl():900<warn> Unable to register MR of 4096 bytes: {why}"
    (fact,) = one(logs.read_libfabric, line).facts.values()
    assert isinstance(fact, dict)
    assert fact["fault"] == fault


@pytest.mark.parametrize(("logged", "many"), [
    ("ERROR no device", 1), ("FATAL no device", 1), ("WARN  no device", 0), ("ERROR no device of QP 0x12", 0),
])  # fmt: skip
def test_other_lines_of_ucx_are_notes(logged: str, many: int) -> None:
    found = one(logs.read_ucx, f"[1608212345.123456] [gpu01:12345:0]    ib_device.c:1332 UCX  {logged}")
    assert len(found.facts) == many


def test_the_limit_that_libibverbs_warns_of() -> None:
    text = "libibverbs: Warning: RLIMIT_MEMLOCK is 32768 bytes.\n    This will severely limit memory registrations."
    found = one(logs.read_ucx, text)
    (fact,) = found.facts.values()
    assert isinstance(fact, dict)
    assert (fact["outcome"], fact["fault"]) == ("warn", "memlock")
    assert unread([found], text) == []


def test_ucx_of_several_hosts_is_of_each() -> None:
    """The same name of a port at two hosts is two ports."""
    line = "[1764324675.552211] [{}:5511 :0]   ib_mlx5_log.c:177  UCX  ERROR Transport retry count exceeded on"
    line += " mlx5_2:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)"
    found = logs.read_ucx((line.format("dgx-03.site.org"), line.format("dgx-04")))
    assert [(output.host, len(output.facts)) for output in found] == [("", 0), ("dgx-03", 1), ("dgx-04", 1)]
    (alone,) = logs.read_ucx((line.format("dgx-03"), line.format("dgx-03")))
    assert alone.host == ""
