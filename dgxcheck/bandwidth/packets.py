"""What PCI Express packets leave of a link's line rate, by MaxPayload.

A packet costs 24 bytes beside its data when it writes and 20 when it answers a read: framing, sequence number, LCRC
and a header for 64-bit addresses. Acknowledgements and flow control take 8 % more. Both: Neugebauer et al.,
"Understanding PCIe performance for end host networking", SIGCOMM 2018 (57.88 of 62.96 Gbit/s are left to packets).
Measured writes agree: 13 of 15.75 GB/s on generation 3 (apache/mxnet), 26.3 of 31.5 on generation 4
(luigifcruz/stelline), 54 of 63 on generation 5 (voipmonitor/rtx6kpro), where 256 bytes give 13.2, 26.5 and 53.
"""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.bandwidth.rate import Direction

SOURCE = "Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018"
OVERHEAD: Mapping[Direction, int] = {"read": 20, "write": 24}
"""Bytes per packet."""
LINK_LAYER = 57.88 / 62.96
SMALLEST, LARGEST = 128, 4096
"""MaxPayload, bytes: every function can do with the one, no function has more than the other."""


def share(payload: int, direction: Direction) -> float:
    """The part of the line rate that is data, in packets of ``payload`` bytes."""
    return LINK_LAYER * payload / (payload + OVERHEAD[direction])
