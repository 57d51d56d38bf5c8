"""Who does not answer: the other end of NCCL's transfers, by its name, and for how many hosts of one log."""

from __future__ import annotations

import pytest

from dgxcheck.facts.missing import members_of
from dgxcheck.readers.nccl import log


def unanswered(host: int, *peers: int, hca: str = "mlx5_1") -> str:
    own = f"node{host}:41:52 [0] NCCL INFO NET/IB : Using [0]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.{host}<0>\n"
    return own + "".join(
        f"node{host}:41:57 [0] net_ib.cc:1 NCCL WARN NET/IB: Got completion from peer 10.0.0.{peer}<47214> with"
        f" status=12 opcode=0 len=0 vendor err 129 (Send) localGid fe80::1 remoteGids fe80::2 hca {hca}\n"
        for peer in peers
    )


@pytest.mark.parametrize(
    ("text", "host", "texts"),
    [
        (unanswered(1, 3) + unanswered(3), "node1", ["at mlx5_1 to node3"]),
        (unanswered(1, 3) + unanswered(3), "node3", ["1 of the other hosts of this log had no answer from this one"]),
        (unanswered(1, 3) + unanswered(2, 3), "node2", ["at mlx5_1 to 10.0.0.3 (as on 2 hosts of this log)"]),
        (unanswered(1, 3) + unanswered(2, 3) + unanswered(3), "node3",
         ["2 of the other hosts of this log had no answer from this one"]),
        (unanswered(1, 3), "", ["at mlx5_1 to 10.0.0.3"]),
        (unanswered(1, 3, 4, 5, 4), "", ["at mlx5_1 to 10.0.0.3 and to 2 more"]),
        (unanswered(1, 3, 4) + unanswered(1, 3, hca="mlx5_2"), "",
         ["at mlx5_1 to 10.0.0.3 and to 1 more", "at mlx5_2 to 10.0.0.3"]),
        (unanswered(1, 3).replace("12", "11") + unanswered(2, 3).replace("12", "11"), "node2",
         ["(remote operation error: the other end failed) at mlx5_1 to 10.0.0.3"]),
    ],
)  # fmt: skip
def test_who_does_not_answer(text: str, host: str, texts: list[str]) -> None:
    (found,) = (part.facts for part in log.read_log(tuple(text.splitlines())) if part.host == host)
    shown = [str(members_of(fact)["text"]) for key, fact in found.items() if "completion" in key]
    assert [one[-len(end) :] for one, end in zip(shown, texts, strict=True)] == texts
