"""Retransmissions and timeouts that the HCAs count, judged by their growth."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, judged, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import COUNTER_RESET, HOUR_S, MIN_EVENTS, counter_growth, rate
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.network.port_errors import counters_of
from dgxcheck.checks.network.port_totals import judge_total
from dgxcheck.checks.network.ports import fabric, file_of, per_port_growth
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Missing, need

COUNTERS = (
    "local_ack_timeout_err", "rnr_nak_retry_err", "out_of_sequence", "packet_seq_err", "implied_nak_seq_err",
    "roce_adp_retrans", "roce_adp_retrans_to", "rx_icrc_encapsulated",
)  # fmt: skip
"""Of ``hw_counters``, as mlx5 names them: what was lost, came late or was sent again; congestion alone is not."""


def _of_port(box: Box, growth: Growth, port: IbPort) -> Judgement:
    new, old = need(counters_of(growth.new, port, "hw_counters")), counters_of(growth.old, port, "hw_counters")
    if new is None or old is None or isinstance(old, Missing):
        return skip("no-history", "its counters were not read before")
    growths = {name: counter_growth(old[name], new[name]) for name in COUNTERS if name in new and name in old}
    events = {name: more for name, more in growths.items() if isinstance(more, int)}
    if not events:
        gap = next((more for more in growths.values() if isinstance(more, Missing)), None)
        nothing = COUNTER_RESET if growths else skip("not-supported", "the port has none of these counters")
        return nothing if gap is None else unjudged(gap)
    grown = {name: more for name, more in events.items() if more}
    if not grown:
        return Judgement(Status.PASS, f"no new retransmissions or timeouts {growth.how}", 0, 0, "errors")
    return _grown(box, growth, port, grown, new)


def _grown(
    box: Box, growth: Growth, port: IbPort, events: Mapping[str, int], new: Mapping[str, int | Missing]
) -> Judgement:
    most = max(events.values())
    hourly, limit = rate(most, growth, HOUR_S), box.settings.limit("network.transport")
    bad = most >= MIN_EVENTS and hourly >= limit
    by_name = ", ".join(f"{name} {more}" for name, more in events.items())
    message = f"{counted(sum(events.values()), 'retransmission or timeout', 'retransmissions and timeouts')}"
    message += f" {growth.how}: {by_name} ({limit:g} an hour of each allowed)"
    evidence = tuple(
        Evidence(file_of(port, f"hw_counters/{name}"), value)
        for name in events if isinstance(value := new[name], int)
    )  # fmt: skip
    return judged(Fault.TRANSPORT_ERRORS, message, round(hourly, 2), limit, "an hour", evidence, warns=bad)


def _total(box: Box, port: IbPort) -> Judgement | None:
    limit = box.settings.limit("network.transport-total")
    return judge_total(box, port, "hw_counters", COUNTERS, limit, Fault.TRANSPORT_ERRORS)


CHECKS = (
    Check(
        id="network.transport-errors",
        rule="Warns if a counter of timeouts, sequence errors or retransmissions of a port grew by 3 or more and by at"
        " least {network.transport}: peers that end or reboot leave some behind. Without a second reading an hour or"
        " more later, also warns above {network.transport-total} over the whole time since boot.",
        source="hw_counters of /sys/class/infiniband/*/ports/* (mlx5); NVSentinel's and DCGM's watches of the same",
        remedy="compare with the port's error counters and with those of the switch port and of the far end (perfquery;"
        " on RoCE ethtool -S, PFC and ECN settings); if only this port has them, reseat or replace its cable",
        judge=per_port_growth(_of_port, _total),
        witness="counters",
        shared=fabric,
    ),
)
