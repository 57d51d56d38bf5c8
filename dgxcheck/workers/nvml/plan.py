"""Which groups of NVML quantities the worker is asked, by what a command needs."""

from __future__ import annotations

from dgxcheck.facts.nvml.quantities import GROUPS

TOPOLOGY = ("system", "identity", "nvlink", "ancestor", "fabric")
P2P = (*TOPOLOGY, "p2p")
PEERS = (*P2P, "modes")
RDMA = (*TOPOLOGY, "board", "pcie", "memory")
IDENTITY = ("system", "identity")
HEALTH = tuple(group for group in GROUPS if group not in ("affinity", "nvlink capability"))
COUNTERS = ("nvlink", "ecc", "counters", "nvlink errors")
EVERYTHING = tuple(GROUPS)
